//! Changes tracefs such that its earlier state is restored afterwards.
//!
//! tracefs has no owner: a write changes it for every process, and leftover settings slow the
//! machine down until the next reboot. So every change goes through a [`Guard`]. It refuses if
//! another process is tracing ([`conflicts`]), notes the content of a file before the first write
//! ([`Journal`]), and restores everything when it is dropped: at the end, on an error, on a panic.
//! What a SIGKILL leaves behind is restored by the next [`Guard::begin`], by [`recover`], or by the
//! next start of another command ([`crate::left_behind`]).
//!
//! Deliberately absent: restoring the content of a trace buffer. A buffer that is not empty is a
//! conflict.

mod conflict;
pub(crate) mod journal;
mod restore;

pub use conflict::{Conflict, conflicts, explain};
pub use journal::{Entries, Journal, Saved, boot_id, usual_folder};
pub use restore::Difference;

use super::Error;
use super::control::{Control, Rejected};
use std::fs;
use std::path::Path;

/// The right to change tracefs, with the duty to restore it.
#[derive(Debug)]
pub struct Guard {
    top: Control,
    journal: Journal,
    entries: Entries,
    restored: bool,
}

/// What was restored after a killed process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The process that was killed.
    pub owner: String,
    /// Files restored.
    pub files: usize,
    /// Instances removed.
    pub instances: usize,
    /// What could not be restored.
    pub differences: Vec<Difference>,
}

impl Guard {
    /// Acquires the right, after restoring what a killed process left behind.
    ///
    /// Settings left behind by others are a conflict, unless `forced`; another tracer always is.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::InUse`], [`Error::Journal`], or a file that can't be read.
    pub fn begin(
        top: Control,
        folder: &Path,
        forced: bool,
    ) -> Result<(Self, Option<Recovered>), Error> {
        let mut journal = Journal::open(folder)?;
        let recovered = recover_from(&mut journal, &top)?;
        let found: Vec<Conflict> = conflicts(&top)?
            .into_iter()
            .filter(|conflict| !(forced && conflict.is_leftover))
            .collect();
        if !found.is_empty() {
            return Err(Error::InUse(found));
        }
        let boot = boot_id();
        journal.begin(&boot)?;
        let guard = Self {
            top,
            journal,
            entries: Entries {
                boot,
                ..Entries::default()
            },
            restored: false,
        };
        Ok((guard, recovered))
    }

    /// The control files at the top of tracefs.
    #[must_use]
    pub fn top(&self) -> &Control {
        &self.top
    }

    /// Creates an instance of our own, whose files need no saving: it is removed as a whole.
    ///
    /// # Errors
    /// If it can't be created.
    pub fn instance(&mut self) -> Result<Control, Error> {
        let name = format!("pagewise-{}", std::process::id());
        self.journal.note_instance(&name)?;
        self.entries.instances.push(name.clone());
        let path = self.top.path("instances").join(&name);
        fs::create_dir(&path).map_err(|cause| Error::Control {
            action: "make",
            path: path.clone(),
            cause,
        })?;
        Ok(Control::at(path))
    }

    /// Notes the content of a file at the top of tracefs, unless it is already noted.
    ///
    /// # Errors
    /// If it can't be read or noted.
    pub fn keep(&mut self, file: &str) -> Result<(), Error> {
        if self.entries.saved.iter().any(|saved| saved.file == file) {
            return Ok(());
        }
        let saved = Saved {
            file: file.to_owned(),
            content: self.top.read(file)?,
        };
        self.journal.note(&saved)?;
        self.entries.saved.push(saved);
        Ok(())
    }

    /// Writes a file of `control`, an instance of ours or the top of tracefs.
    ///
    /// # Errors
    /// As [`Guard::keep`], and if it can't be written.
    pub fn set(&mut self, control: &Control, file: &str, value: &str) -> Result<(), Error> {
        self.keep_of(control, file)?;
        control.write(file, value)
    }

    /// Replaces a list of `control`, as [`Control::replace`].
    ///
    /// # Errors
    /// As [`Guard::set`].
    pub fn replace(
        &mut self,
        control: &Control,
        file: &str,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Vec<Rejected>, Error> {
        self.keep_of(control, file)?;
        control.replace(file, names)
    }

    fn keep_of(&mut self, control: &Control, file: &str) -> Result<(), Error> {
        match control == &self.top {
            true => self.keep(file),
            false => Ok(()),
        }
    }

    /// Restores everything, and returns what differs from before.
    ///
    /// # Errors
    /// If the journal can't be emptied.
    pub fn restore(&mut self) -> Result<Vec<Difference>, Error> {
        if self.restored {
            return Ok(Vec::new());
        }
        self.restored = true;
        let differences = restore::restore(&self.top, &self.entries);
        self.journal.empty()?;
        Ok(differences)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // To see the result, call `restore`; here it cannot be reported.
        let _ = self.restore();
    }
}

/// Restores what a killed process left behind; `None` if there is nothing.
///
/// # Errors
/// [`Error::Busy`] if its owner is alive, [`Error::Journal`].
pub fn recover(top: &Control, folder: &Path) -> Result<Option<Recovered>, Error> {
    recover_from(&mut Journal::open(folder)?, top)
}

pub(crate) fn recover_from(
    journal: &mut Journal,
    top: &Control,
) -> Result<Option<Recovered>, Error> {
    let Some(entries) = journal.entries()? else {
        return Ok(None);
    };
    if entries.boot != boot_id() {
        journal.empty()?;
        return Ok(None);
    }
    let differences = restore::restore(top, &entries);
    journal.empty()?;
    Ok(Some(Recovered {
        files: entries.saved.len(),
        instances: entries.instances.len(),
        owner: entries.owner,
        differences,
    }))
}

#[cfg(test)]
mod tests;
