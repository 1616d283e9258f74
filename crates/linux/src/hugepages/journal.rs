//! Changes made to a process, each noted before it is made ([`crate::journal`]).
//!
//! One journal for each process. It stays when the controller ends, for `--undo`; machine-wide
//! settings that a killed controller left are restored without a request ([`super::left`]).

use super::actuator::{Change, Target};
use crate::journal::{self, Line, Lock, Owner};
use pagewise_model::huge_pages::Slot;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use crate::journal::{
    Error, Setting as Knob, SlotChange as Entry, Subject, is_free, process_folder as folder, remove,
};

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal(journal::Journal);

/// A journal that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its path.
    pub path: PathBuf,
    /// The process.
    pub subject: Subject,
    /// Changes in the order in which they were started.
    pub entries: Vec<Entry>,
    /// Settings of the machine in the order in which they were written.
    pub knobs: Vec<Knob>,
}

impl Journal {
    /// Opens the journal of `subject` in `folder`, which is created if missing. Changes are added
    /// to those of an earlier controller of the same process.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Folder`], [`Error::Held`].
    pub fn open(folder: &Path, subject: &Subject) -> Result<Self, Error> {
        let name = name(subject.pid, subject.start_ticks);
        let mut journal = journal::Journal::open(folder, &name, Lock::Alone)?;
        if journal.drop_cut_line()? == 0 {
            journal.note(&Line {
                owner: Some(Owner::this("huge balance")),
                subject: Some(subject.clone()),
                ..Line::default()
            })?;
        }
        Ok(Self(journal))
    }

    /// Notes a change before it is tried.
    ///
    /// # Errors
    /// [`Error::File`]: then the change must not be made.
    pub fn note(&mut self, entry: Entry) -> Result<(), Error> {
        self.0.note(&Line {
            slot: Some(entry),
            ..Line::default()
        })
    }

    /// Notes a setting before it is written.
    ///
    /// # Errors
    /// [`Error::File`]: then the setting must not be written.
    pub fn note_knob(&mut self, knob: Knob) -> Result<(), Error> {
        self.0.note(&Line {
            setting: Some(knob),
            ..Line::default()
        })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Removes it: nothing is left to undo.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn remove(self) -> Result<(), Error> {
        self.0.remove()
    }
}

/// Journals in `folder`, of all processes. A journal that cannot be read is an error in its place;
/// empty journals and other files are skipped.
///
/// # Errors
/// [`Error::Folder`].
pub fn all(folder: &Path) -> Result<Vec<Result<Record, Error>>, Error> {
    let read = |path: &PathBuf| match journal::read(path) {
        Ok(None) => None,
        Ok(Some(record)) => Some(parse(path, record)),
        Err(error) => Some(Err(error)),
    };
    Ok(journal::files(folder, is_name)?
        .iter()
        .filter_map(read)
        .collect())
}

/// Reads the journal at `path`.
///
/// # Errors
/// [`Error::File`], [`Error::Line`].
pub fn read(path: &Path) -> Result<Record, Error> {
    parse(path, journal::read(path)?.unwrap_or_default())
}

fn parse(path: &Path, record: journal::Record) -> Result<Record, Error> {
    let path = path.to_path_buf();
    match record.subject {
        Some(subject) => Ok(Record {
            path,
            subject,
            entries: record.slots,
            knobs: record.settings,
        }),
        None => Err(Error::Line {
            path,
            line: 1,
            text: String::new(),
        }),
    }
}

impl Record {
    /// Whether this journal is about `target`.
    #[must_use]
    pub fn is_about(&self, target: &Target, boot_id: &str) -> bool {
        self.subject.pid == target.pid()
            && self.subject.start_ticks == target.start_ticks()
            && self.subject.boot_id == boot_id
    }

    /// The state of each touched slot before its first change, by address, and the change that
    /// restores it.
    #[must_use]
    pub fn restorations(&self) -> Vec<(u64, Slot, Change)> {
        let mut first: BTreeMap<u64, &Entry> = BTreeMap::new();
        for entry in &self.entries {
            first.entry(entry.address).or_insert(entry);
        }
        first
            .into_values()
            .map(|entry| (entry.address, entry.before, entry.change.inverse()))
            .collect()
    }
}

fn name(pid: i32, start_ticks: u64) -> String {
    format!("{BEGIN}{pid}-{start_ticks}{ENDING}")
}

/// Prefix and suffix of a journal's name.
const BEGIN: &str = "balance-";
const ENDING: &str = ".journal";

/// Whether `name` has the form that [`name`] produces.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(BEGIN) && name.ends_with(ENDING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    fn subject() -> Subject {
        Subject {
            pid: 7,
            start_ticks: 99,
            boot_id: "b".into(),
            comm: "x".into(),
        }
    }

    fn entry(address: u64, change: Change, huge: bool) -> Entry {
        Entry {
            address,
            change,
            before: Slot {
                huge,
                present: 512,
                ..Slot::default()
            },
        }
    }

    #[test]
    fn a_cut_off_last_line_is_left_out_and_the_first_state_counts() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("pagewise");
        let mut journal = Journal::open(&place, &subject()).unwrap();
        journal
            .note(entry(0x20_0000, Change::Collapse, false))
            .unwrap();
        journal.note(entry(0x40_0000, Change::Split, true)).unwrap();
        let path = journal.path().to_path_buf();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        // One controller at a time; the next one adds to the same journal.
        assert!(matches!(
            Journal::open(&place, &subject()),
            Err(Error::Held(_))
        ));
        assert!(!is_free(&path).unwrap());
        drop(journal);
        let mut journal = Journal::open(&place, &subject()).unwrap();
        journal.note(entry(0x20_0000, Change::Split, true)).unwrap();
        drop(journal);
        assert!(is_free(&path).unwrap());
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"entry\":{\"addr").unwrap();
        // Tracing keeps its own journal next to it.
        let other = place.join("trace.journal");
        fs::write(&other, "").unwrap();
        let records: Vec<Record> = (all(&place).unwrap().into_iter())
            .map(Result::unwrap)
            .collect();
        fs::remove_file(other).unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].subject, subject());
        assert_eq!(records[0].entries.len(), 3);
        let back: Vec<_> = records[0]
            .restorations()
            .into_iter()
            .map(|(address, before, change)| (address, before.huge, change))
            .collect();
        let expected = [
            (0x20_0000, false, Change::Split),
            (0x40_0000, true, Change::Collapse),
        ];
        assert_eq!(back, expected);
        // The next controller's line starts afresh after the cut one.
        let mut journal = Journal::open(&place, &subject()).unwrap();
        journal.note(entry(0x60_0000, Change::Split, true)).unwrap();
        assert_eq!(read(&path).unwrap().entries.len(), 4);
        let files: Vec<_> = fs::read_dir(&place).unwrap().collect();
        assert_eq!(files.len(), 1, "{files:?}");
    }

    #[test]
    fn a_journal_that_was_emptied_begins_with_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("pagewise");
        let path = Journal::open(&place, &subject()).unwrap().path().to_owned();
        fs::write(&path, b"").unwrap();
        drop(Journal::open(&place, &subject()).unwrap());
        assert_eq!(read(&path).unwrap().subject, subject());
    }

    #[test]
    fn an_empty_file_of_a_killed_maker_is_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("pagewise");
        let path = Journal::open(&place, &subject()).unwrap().path().to_owned();
        for left in ["", "{\"owner\":{\"who\":"] {
            fs::write(&path, left).unwrap();
            assert!(all(&place).unwrap().is_empty(), "{left}");
            drop(Journal::open(&place, &subject()).unwrap());
            assert_eq!(read(&path).unwrap().subject, subject());
        }
    }

    #[test]
    fn what_others_may_have_written_is_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("pagewise");
        assert_eq!(all(&place).unwrap().len(), 0);
        let path = Journal::open(&place, &subject()).unwrap().path().to_owned();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("others can write to it"), "{error}");
        // A symlink in place of the file, and in place of the folder.
        let moved = folder.path().join("moved");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        assert!(all(&place).unwrap()[0].is_err());
        assert!(Journal::open(&place, &subject()).is_err());
        let link = folder.path().join("link");
        symlink(&place, &link).unwrap();
        assert!(matches!(all(&link), Err(Error::Folder { .. })));
        // Only root can give files away.
        if crate::sys::process::effective_user() == 0 {
            fs::remove_file(&path).unwrap();
            fs::rename(&moved, &path).unwrap();
            assert!(read(&path).is_ok());
            chown(&path, Some(1), None).unwrap();
            assert!(
                read(&path)
                    .unwrap_err()
                    .to_string()
                    .contains("another user")
            );
            chown(&place, Some(1), None).unwrap();
            assert!(matches!(all(&place), Err(Error::Folder { .. })));
        }
    }

    #[test]
    fn a_spoilt_line_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("balance-1-1.journal");
        let first = r#"{"subject":{"pid":7,"start_ticks":99,"boot_id":"b","comm":"x"}}"#;
        fs::write(&path, format!("{first}\nnonsense\n{first}\n")).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(":2: not a line of a journal"), "{error}");
    }
}
