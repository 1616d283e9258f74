//! Settings of the machine that a killed controller left.

use super::system;
use crate::journal::{self, Subject};
use std::path::{Path, PathBuf};

/// Restores the settings of the machine, below `sys`, that a killed controller had changed, and
/// removes its journal. The journal of a running process stays, for `--undo`. Returns how many
/// settings are restored, and the paths of those that another process has written since.
///
/// # Errors
/// [`system::Error`].
pub(crate) fn restore_settings(
    mut journal: journal::Journal,
    sys: &Path,
) -> Result<(u64, Vec<PathBuf>), system::Error> {
    let record = journal.record()?.unwrap_or_default();
    let is_of_boot = record.is_of_boot(&journal::boot_id());
    let is_running = |one: &Subject| journal::is_running(one.pid, one.start_ticks);
    if is_of_boot && record.subject.as_ref().is_some_and(is_running) {
        return Ok((0, Vec::new()));
    }
    let found = match is_of_boot {
        true => system::restore(sys, &record.settings)?,
        false => (0, Vec::new()),
    };
    journal.remove()?;
    Ok(found)
}
