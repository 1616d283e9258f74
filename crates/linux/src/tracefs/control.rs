//! Reading and writing tracefs control files.
//!
//! A control file is not a plain file: each `write(2)` is a command, opening a list with `O_TRUNC`
//! is a command of its own, and what is read back often differs from what was written.

use super::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The folder of one trace array: the top of tracefs, or an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    root: PathBuf,
}

/// A name that the kernel did not add to a list, and why.
#[derive(Debug)]
pub struct Rejected {
    /// The name.
    pub name: String,
    /// The kernel's reason.
    pub cause: io::Error,
}

impl Control {
    /// The control files in `root`.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Their folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a file named relative to the folder.
    #[must_use]
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// Whether this kernel has the file.
    #[must_use]
    pub fn has(&self, file: &str) -> bool {
        self.path(file).exists()
    }

    /// The file's content.
    ///
    /// # Errors
    /// [`Error::Control`] with the file and the kernel's reason.
    pub fn read(&self, file: &str) -> Result<String, Error> {
        let mut text = Vec::new();
        File::open(self.path(file))
            .and_then(|mut file| file.read_to_end(&mut text))
            .map_err(|cause| self.failed("read", file, cause))?;
        Ok(crate::pseudo_file::lossy(text))
    }

    /// The file's content without white space around it; `None` if this kernel lacks the file.
    ///
    /// # Errors
    /// As [`Control::read`].
    pub fn setting(&self, file: &str) -> Result<Option<String>, Error> {
        match self.read(file) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(Error::Control { cause, .. }) if crate::pseudo_file::is_absence(&cause) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a value in one call, as `echo VALUE > FILE` does.
    ///
    /// # Errors
    /// As [`Control::read`].
    pub fn write(&self, file: &str, value: &str) -> Result<(), Error> {
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.path(file))
            .and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()))
            .map_err(|cause| self.failed("write", file, cause))
    }

    /// Adds an entry to a list, as `echo ENTRY >> FILE` does.
    ///
    /// # Errors
    /// As [`Control::read`].
    pub fn add(&self, file: &str, entry: &str) -> Result<(), Error> {
        OpenOptions::new()
            .append(true)
            .open(self.path(file))
            .and_then(|mut file| file.write_all(format!("{entry}\n").as_bytes()))
            .map_err(|cause| self.failed("write", file, cause))
    }

    /// Empties a list, or a trace buffer; opening the file is enough.
    ///
    /// # Errors
    /// As [`Control::read`].
    pub fn clear(&self, file: &str) -> Result<(), Error> {
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.path(file))
            .map(drop)
            .map_err(|cause| self.failed("clear", file, cause))
    }

    /// Replaces a list. Each name is a separate write, because a bad name makes the kernel drop the
    /// rest of a write; all are applied together when the file is closed.
    ///
    /// # Errors
    /// If the file can't be opened. Names that the kernel refuses are returned.
    pub fn replace(
        &self,
        file: &str,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Vec<Rejected>, Error> {
        let mut open = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.path(file))
            .map_err(|cause| self.failed("write", file, cause))?;
        let mut rejected = Vec::new();
        for name in names {
            let name = name.into();
            if let Err(cause) = open.write_all(format!("{name}\n").as_bytes()) {
                rejected.push(Rejected { name, cause });
            }
        }
        Ok(rejected)
    }

    /// The entries of a list; comment lines such as `#### all functions enabled ####` and `no pid`
    /// are not entries.
    ///
    /// # Errors
    /// As [`Control::read`].
    pub fn list(&self, file: &str) -> Result<Vec<String>, Error> {
        let text = self.read(file)?;
        let entries = text.lines().map(str::trim);
        let entries = entries.filter(|line| !is_no_entry(line));
        Ok(entries.map(str::to_owned).collect())
    }

    pub(super) fn failed(&self, action: &'static str, file: &str, cause: io::Error) -> Error {
        Error::Control {
            action,
            path: self.path(file),
            cause,
        }
    }
}

/// Lines of an empty list.
pub(super) fn is_no_entry(line: &str) -> bool {
    line.is_empty() || line.starts_with("####") || line == "no pid"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_has_no_entries_whatever_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let control = Control::at(folder.path());
        for text in ["", "no pid\n", "#### all functions enabled ####\n"] {
            std::fs::write(control.path("list"), text).unwrap();
            assert_eq!(control.list("list").unwrap(), Vec::<String>::new());
        }
        let rejected = control.replace("list", ["b", "a"]).unwrap();
        assert!(rejected.is_empty());
        assert_eq!(control.list("list").unwrap(), ["b", "a"]);
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let control = Control::at(folder.path());
        assert_eq!(control.setting("max_graph_depth").unwrap(), None);
        let error = control.write("max_graph_depth", "1").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("cannot write "), "{text}");
        assert!(text.contains("max_graph_depth"), "{text}");
    }
}
