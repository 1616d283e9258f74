//! A swap file for one run, made at its start and taken away at its end.
//!
//! It is noted in a journal ([`crate::journal`]) before it is made, so that the next command takes it away
//! if we are killed. A swap file serves the whole machine: while the run lasts, the kernel may put pages of
//! others there as well, and reads them back at the end.

use crate::journal::{self, Journal, Line, Lock, Owner, machine_folder};
use crate::sys::process::effective_user;
use crate::sys::swap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Names of journals and of files, before the number of the process.
const JOURNAL: &str = "swap-file-";
const FILE: &str = ".pagewise-swap-";
/// Bytes of the first page, which holds the header.
const PAGE: usize = 4096;

/// Why there is no swap file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Only root may.
    #[error("making a swap file takes root")]
    NotRoot,
    /// A file that cannot be made or used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The journal could not be written, so nothing was changed.
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

/// A swap file that we made. Taken away when dropped.
#[derive(Debug)]
pub struct SwapArea {
    path: PathBuf,
    journal: Option<Journal>,
}

impl SwapArea {
    /// Makes one of `bytes` in `folder`, and has the kernel use it.
    ///
    /// # Errors
    /// [`Error`]; then nothing is left.
    pub fn make(folder: &Path, bytes: u64) -> Result<Self, Error> {
        if effective_user() != 0 {
            return Err(Error::NotRoot);
        }
        let number = std::process::id();
        let path = folder.join(format!("{FILE}{number}"));
        let mut journal = Journal::open(
            &machine_folder(),
            &format!("{JOURNAL}{number}"),
            Lock::Alone,
        )?;
        journal.note(&Line {
            owner: Some(Owner::this("run --engine kernel")),
            swap: Some(path.clone()),
            ..Line::default()
        })?;
        let area = Self {
            path,
            journal: Some(journal),
        };
        area.fill(bytes)?;
        swap::on(&area.path).map_err(|source| area.failed("swap to", source))?;
        Ok(area)
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn fill(&self, bytes: u64) -> Result<(), Error> {
        let pages = u32::try_from(bytes / PAGE as u64).unwrap_or(u32::MAX);
        let file = create(&self.path).map_err(|source| self.failed("create", source))?;
        swap::allocate(&file, u64::from(pages) * PAGE as u64)
            .map_err(|source| self.failed("allocate", source))?;
        let header = header(pages);
        let written = (&file).write_all(&header).and_then(|()| file.sync_data());
        written.map_err(|source| self.failed("write", source))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> Error {
        let path = self.path.clone();
        Error::File {
            action,
            path,
            source,
        }
    }
}

impl Drop for SwapArea {
    fn drop(&mut self) {
        // If it stays in use, so does the journal, and the next command tries again.
        if take_away(&self.path).is_ok()
            && let Some(journal) = self.journal.take()
        {
            let _ = journal.remove();
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// The first page of an area of so many pages (`union swap_header`, include/linux/swap.h).
fn header(pages: u32) -> [u8; PAGE] {
    const VERSION_AT: usize = 1024;
    const LAST_PAGE_AT: usize = 1028;
    const SIGNATURE: &[u8; 10] = b"SWAPSPACE2";
    let mut header = [0; PAGE];
    header[VERSION_AT..LAST_PAGE_AT].copy_from_slice(&1_u32.to_ne_bytes());
    let last = pages.saturating_sub(1).to_ne_bytes();
    header[LAST_PAGE_AT..LAST_PAGE_AT + 4].copy_from_slice(&last);
    header[PAGE - SIGNATURE.len()..].copy_from_slice(SIGNATURE);
    header
}

/// Whether a journal of this name is about swap files.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(JOURNAL)
}

/// Ends the use of a swap file of ours and removes it. Returns whether there was one.
///
/// # Errors
/// If the kernel has no room for what is in it, or it is not ours.
pub(crate) fn take_away(path: &Path) -> io::Result<bool> {
    let name = path.file_name().and_then(|name| name.to_str());
    if !name.is_some_and(|name| name.starts_with(FILE)) {
        return Err(io::Error::other("not a swap file that Pagewise makes"));
    }
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(false);
    }
    match swap::off(path) {
        // It is not in use.
        Err(error) if error.raw_os_error() != Some(libc::EINVAL) => Err(error),
        _ => fs::remove_file(path).map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_the_last_page() {
        let header = header(1000);
        assert_eq!(header[1024..1032], [1, 0, 0, 0, 231, 3, 0, 0]);
        assert_eq!(header[4086..], *b"SWAPSPACE2");
    }

    #[test]
    fn only_files_of_ours_are_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("swap");
        fs::write(&other, "x").unwrap();
        assert!(take_away(&other).is_err() && other.exists());
        let ours = folder.path().join(format!("{FILE}7"));
        assert!(!take_away(&ours).unwrap());
    }

    #[test]
    fn a_swap_file_is_used_and_leaves_nothing() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let area = match SwapArea::make(folder.path(), 4 << 20) {
            Ok(area) => area,
            Err(why) => return skipped!("no swap file can be made here: {why}"),
        };
        let path = area.path().to_path_buf();
        let is_used = || {
            let areas = fs::read_to_string("/proc/swaps").unwrap();
            areas.contains(path.to_str().unwrap())
        };
        assert!(is_used());
        let journal = area.journal.as_ref().unwrap().path().to_path_buf();
        let noted = journal::read(&journal).unwrap().unwrap();
        assert_eq!(noted.swaps, std::slice::from_ref(&path));
        drop(area);
        assert!(!is_used() && !path.exists() && !journal.exists());
    }
}
