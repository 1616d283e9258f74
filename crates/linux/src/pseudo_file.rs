//! Reads the kernel's text files: an absent file is `None`, a malformed one an error with the
//! place.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Why a kernel text file gave no value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file exists, but could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The file's text does not match its format.
    #[error("{}:{line}: expected {expected}, found {text:?}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The expected text.
        expected: &'static str,
        /// The text found.
        text: String,
    },
}

impl Error {
    /// Whether permission is missing, which a user can change.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Read { source, .. }
            if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// Result of reading a file.
pub type Result<T> = std::result::Result<T, Error>;

/// Bytes that a kernel text file gives at once: seq_file starts with one page, and most files
/// fit in it.
const FIRST_READ: usize = 4096;

/// The whole content of `path`, or `None` if the file, its folder or its process does not exist
/// (`ENOENT`, `ENOTDIR`; `ESRCH` if a process ends while its file is open).
///
/// # Errors
/// [`Error::Read`] for anything else, above all missing permission.
pub fn bytes(path: &Path) -> Result<Option<Vec<u8>>> {
    match whole(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(source) => Err(Error::Read {
            path: path.to_path_buf(),
            source,
        }),
    }
}

/// Like [`bytes`], as text; bytes that are not UTF-8 become U+FFFD.
///
/// # Errors
/// As [`bytes`].
pub fn text(path: &Path) -> Result<Option<String>> {
    Ok(bytes(path)?.map(lossy))
}

/// The text without surrounding white space; `None` if absent or unreadable. For settings that are
/// noted if available and skipped otherwise.
#[must_use]
pub fn setting(path: &Path) -> Option<String> {
    let text = text(path).ok().flatten()?;
    Some(text.trim().to_string())
}

/// One unsigned number, as in `memory.usage_in_bytes`.
///
/// # Errors
/// [`Error::Read`], or [`Error::Parse`] if the text is not a number.
pub fn number(path: &Path) -> Result<Option<u64>> {
    let Some(text) = text(path)? else {
        return Ok(None);
    };
    let word = text.trim();
    match word.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(malformed(path, 1, "a number", word)),
    }
}

/// A parse error at `line` of `path`.
pub(crate) fn malformed(path: &Path, line: usize, expected: &'static str, text: &str) -> Error {
    Error::Parse {
        path: path.to_path_buf(),
        line,
        expected,
        text: text.chars().take(120).collect(),
    }
}

/// Target of a symbolic link such as `/proc/PID/exe`; `None` if absent.
///
/// # Errors
/// [`Error::Read`].
pub fn link(path: &Path) -> Result<Option<PathBuf>> {
    match std::fs::read_link(path) {
        Ok(target) => Ok(Some(target)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(source) => Err(Error::Read {
            path: path.to_path_buf(),
            source,
        }),
    }
}

/// Names in a folder, sorted; empty if it is absent or unreadable.
#[must_use]
pub fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The choice in brackets of a line such as `always [madvise] never`.
#[must_use]
pub fn bracketed(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once('[')?;
    rest.split_once(']').map(|(choice, _)| choice)
}

pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::ESRCH | libc::ENOTDIR)
    )
}

fn whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut content = Vec::with_capacity(FIRST_READ);
    file.read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_no_error_but_a_wrong_number_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage");
        assert_eq!(number(&path).unwrap(), None);
        std::fs::write(&path, "12x\n").unwrap();
        let error = number(&path).unwrap_err().to_string();
        assert!(error.ends_with("usage:1: expected a number, found \"12x\""));
        std::fs::write(&path, "12\n").unwrap();
        assert_eq!(number(&path).unwrap(), Some(12));
    }

    #[test]
    fn a_file_below_a_file_is_absent_too() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        assert!(bytes(&folder.path().join("a/b")).unwrap().is_none());
    }

    #[test]
    fn finds_the_bracketed_choice() {
        assert_eq!(bracketed("always [madvise] never"), Some("madvise"));
        assert_eq!(bracketed("none"), None);
    }
}
