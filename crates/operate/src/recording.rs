//! The output file of an observation.

use crate::destination;
use anyhow::{Context, Result};
use std::borrow::Cow;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Destination of a recording: a name given by the user, or a file that vanishes with us.
pub enum Recording {
    /// Under the user's name.
    Kept(PathBuf),
    /// Without a name; gone however we end.
    Nameless(File),
    /// Under a temporary name.
    Temporary(tempfile::TempPath),
}

impl Recording {
    /// A file of this name, or a nameless one.
    ///
    /// # Errors
    /// If no file can be created there.
    pub fn named(path: Option<&Path>) -> Result<Self> {
        if let Some(path) = path {
            destination::check(path)?;
            return Ok(Self::Kept(path.to_path_buf()));
        }
        // However we end, a file without a name leaves nothing behind.
        if let Some(file) = tempfile::tempfile()
            .ok()
            .filter(|file| path_of(file).exists())
        {
            return Ok(Self::Nameless(file));
        }
        let file = tempfile::Builder::new()
            .prefix("pagewise-")
            .suffix(".data")
            .tempfile();
        let file = file.context("cannot make a temporary file (see TMPDIR) for the recording")?;
        Ok(Self::Temporary(file.into_temp_path()))
    }

    /// Path for writing and reading.
    pub fn path(&self) -> Cow<'_, Path> {
        match self {
            Self::Kept(path) => path.into(),
            Self::Nameless(file) => path_of(file).into(),
            Self::Temporary(path) => Cow::from(&**path),
        }
    }
}

/// A path to an open file while this process lives.
fn path_of(file: &File) -> PathBuf {
    Path::new("/proc/self/fd").join(file.as_raw_fd().to_string())
}
