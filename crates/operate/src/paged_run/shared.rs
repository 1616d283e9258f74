//! Memory shared between a run's processes and the launcher.

use anyhow::{Context, Result};
use pagewise_wire::snapshot;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Memory that the program's processes write their figures to: a file without a name.
pub fn memory() -> Result<File> {
    let file = tempfile::tempfile().context("cannot make a file for statistics")?;
    file.set_len(snapshot::BYTES as u64)
        .and_then(|()| file.write_all_at(&snapshot::header(), 0))
        .context("cannot prepare the file for statistics")?;
    Ok(file)
}

/// A path by which other processes of this user can open the file while this process lives.
pub fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}
