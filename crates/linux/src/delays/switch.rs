//! `kernel.task_delayacct`, on while delays are counted.
//!
//! A journal ([`crate::journal`]) holds the switch's earlier value. All who count share a lock on
//! it, and the last one restores the switch.

use crate::journal::{Error, Journal, Line, Lock, Owner, Setting, boot_id, machine_folder};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

/// The switch below `/proc`.
pub(crate) const SWITCH: &str = "sys/kernel/task_delayacct";
/// Its journal.
pub(crate) const JOURNAL: &str = "task-delayacct";
const ON: &str = "1";

/// The switch, kept on.
#[derive(Debug)]
pub(crate) struct Switch {
    path: PathBuf,
    journal: Journal,
}

impl Switch {
    /// Switches counting on; `None` if we may not.
    pub fn on() -> Option<Self> {
        Self::on_at(&Path::new("/proc").join(SWITCH), &machine_folder())
    }

    pub(crate) fn on_at(path: &Path, folder: &Path) -> Option<Self> {
        let now = fs::read_to_string(path).ok()?;
        // Without the right to write the switch, nothing is noted.
        let writable = OpenOptions::new().write(true).open(path);
        writable.ok()?;
        let mut journal = Journal::open(folder, JOURNAL, Lock::Shared).ok()?;
        if now.trim() != ON {
            if journal.record().ok()?.is_none() {
                journal.note(&line(path, now.trim())).ok()?;
            }
            fs::write(path, ON).ok()?;
        }
        let path = path.to_owned();
        Some(Self { path, journal })
    }
}

/// The process that switches, and the earlier value: one line, as others may write theirs at the
/// same time.
fn line(path: &Path, before: &str) -> Line {
    Line {
        owner: Some(Owner::this("delay accounting")),
        setting: Some(Setting {
            path: path.to_owned(),
            before: before.to_owned(),
            after: ON.to_owned(),
        }),
        ..Line::default()
    }
}

/// Restores the switch at `path` if the journal has its earlier value from this boot and no one
/// else has switched it off since. Returns whether it was restored.
///
/// # Errors
/// [`Error::File`] if it cannot be written: then the journal stays.
pub(crate) fn put_back(journal: &mut Journal, path: &Path) -> Result<bool, Error> {
    let Some(record) = journal.record()? else {
        return Ok(false);
    };
    let before = record.settings.first().map(|noted| noted.before.as_str());
    // Nothing but a number is written from a journal.
    let before = before.filter(|before| before.parse::<u32>().is_ok());
    let is_on = fs::read_to_string(path).is_ok_and(|now| now.trim() == ON);
    let mut is_back = false;
    if let Some(before) = before
        && is_on
        && record.is_of_boot(&boot_id())
    {
        fs::write(path, before).map_err(|source| Error::File {
            action: "write",
            path: path.to_owned(),
            source,
        })?;
        is_back = true;
    }
    journal.empty()?;
    Ok(is_back)
}

impl Drop for Switch {
    fn drop(&mut self) {
        if matches!(self.journal.is_last(), Ok(true)) {
            // If the journal stays, the next start of a command restores the switch.
            let _ = put_back(&mut self.journal, &self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn with(value: &str) -> Self {
            let machine = Self(tempfile::tempdir().expect("a folder"));
            fs::write(machine.path(), value).expect("a switch");
            machine
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("switch")
        }

        fn on(&self) -> Option<Switch> {
            Switch::on_at(&self.path(), &self.0.path().join("journals"))
        }

        fn value(&self) -> String {
            fs::read_to_string(self.path()).expect("the switch")
        }
    }

    #[test]
    fn the_last_one_puts_it_back() {
        let machine = Machine::with("0\n");
        let (first, second) = (machine.on(), machine.on());
        assert_eq!(machine.value(), "1");
        drop(first);
        assert_eq!(machine.value(), "1");
        drop(second);
        assert_eq!(machine.value(), "0");
    }

    #[test]
    fn what_was_on_stays_on() {
        let machine = Machine::with("1\n");
        drop(machine.on().expect("it counts"));
        assert_eq!(machine.value(), "1\n");
    }

    #[test]
    fn what_a_killed_one_left_is_put_back_by_the_next() {
        let machine = Machine::with("1");
        let journals = machine.0.path().join("journals");
        fs::create_dir(&journals).expect("a folder");
        let noted = serde_json::to_string(&line(&machine.path(), "0")).expect("a line");
        fs::write(journals.join(JOURNAL), noted + "\n").expect("a journal");
        let next = machine.on().expect("it counts");
        assert_eq!(machine.value(), "1");
        drop(next);
        assert_eq!(machine.value(), "0");
        assert_eq!(fs::read(journals.join(JOURNAL)).expect("a journal"), b"");
    }
}
