//! What was changed in a process, on disk before it is done, so that it can be taken back whatever
//! became of us.
//!
//! One text file for each process, mode 0600, one JSON object a line: the process first, then each
//! change as it is begun. A journal gets its name when its first line stands. A line that was cut
//! off by a crash is the last one and is left out: its change was not begun.

use super::actuator::{Change, Target};
use crate::own_folder;
use crate::sys::file_lock::lock_soon;
use pagewise_model::huge_pages::Slot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The process that a journal is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Process id.
    pub pid: i32,
    /// When it started, in clock ticks since boot: ids are used again.
    pub start_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Its name.
    pub comm: String,
}

/// A change that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Address of the slot, in hexadecimal.
    #[serde(with = "hexadecimal")]
    pub address: u64,
    /// What was about to be done.
    pub change: Change,
    /// What the slot held.
    pub before: Slot,
}

/// A setting of the machine that was about to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knob {
    /// The file below `/sys`.
    pub path: PathBuf,
    /// What it was.
    pub before: String,
    /// What it became.
    pub after: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Subject(Subject),
    Entry(Entry),
    Knob(Knob),
}

/// Why a journal cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be opened, made or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The folder is not ours: what lies in it may be anybody's.
    #[error(
        "cannot keep journals in {}: {source}; set XDG_RUNTIME_DIR to a folder of your own",
        path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A controller holds it.
    #[error(
        "{} is held by a controller that is still at work: end that first (Ctrl-C, or SIGTERM)",
        .0.display()
    )]
    Held(PathBuf),
    /// A line is no line of a journal.
    #[error("{}:{line}: not a line of a journal: {text:?}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// A journal that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it lies.
    pub path: PathBuf,
    /// The process.
    pub subject: Subject,
    /// Changes in the order in which they were begun.
    pub entries: Vec<Entry>,
    /// Settings of the machine in the order in which they were written.
    pub knobs: Vec<Knob>,
}

/// Folder of the journals of this user. Page sizes do not outlive a reboot, and this need not.
#[must_use]
pub fn folder() -> PathBuf {
    own_folder::runtime().unwrap_or_else(own_folder::temporary)
}

impl Journal {
    /// Opens the journal of `subject` in `folder`, which is made where missing. Changes are added
    /// to those of an earlier controller of the same process.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Folder`], [`Error::Held`].
    pub fn open(folder: &Path, subject: &Subject) -> Result<Self, Error> {
        own_folder::make(folder).map_err(|source| not_ours(folder, source))?;
        remove_unborn(folder);
        let path = folder.join(name(subject.pid, subject.start_ticks));
        let failed = |source| Error::File {
            action: "open",
            path: path.clone(),
            source,
        };
        let mut file = match open(&path, &mut OpenOptions::new()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(&path, subject).map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        if !lock_soon(file.as_fd()).map_err(failed)? {
            return Err(Error::Held(path));
        }
        if drop_cut_line(&mut file).map_err(failed)? == 0 {
            write_line(&mut file, &Line::Subject(subject.clone())).map_err(failed)?;
        }
        Ok(Self { file, path })
    }

    /// Notes a change before it is tried.
    ///
    /// # Errors
    /// [`Error::File`]: then the change must not be made.
    pub fn note(&mut self, entry: Entry) -> Result<(), Error> {
        self.write(&Line::Entry(entry))
    }

    /// Notes a setting before it is written.
    ///
    /// # Errors
    /// [`Error::File`]: then it must not be written.
    pub fn note_knob(&mut self, knob: Knob) -> Result<(), Error> {
        self.write(&Line::Knob(knob))
    }

    fn write(&mut self, line: &Line) -> Result<(), Error> {
        write_line(&mut self.file, line).map_err(|source| Error::File {
            action: "write",
            path: self.path.clone(),
            source,
        })
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it: nothing is left to take back.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn remove(self) -> Result<(), Error> {
        remove(&self.path)
    }
}

/// Removes a journal.
///
/// # Errors
/// [`Error::File`].
pub fn remove(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(|source| Error::File {
        action: "remove",
        path: path.to_path_buf(),
        source,
    })
}

/// Journals in `folder`, of all processes. One that can't be read is an error in its place; what
/// else lies there (tracing keeps its journal in the same folder) is none.
///
/// # Errors
/// [`Error::Folder`].
pub fn all(folder: &Path) -> Result<Vec<Result<Record, Error>>, Error> {
    match own_folder::check(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        checked => checked.map_err(|source| not_ours(folder, source))?,
    }
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files
        .map(|file| file.path())
        .filter(|path| is_name(path))
        .collect();
    paths.sort();
    Ok(paths.iter().map(|path| read(path)).collect())
}

fn not_ours(folder: &Path, source: io::Error) -> Error {
    Error::Folder {
        path: folder.to_path_buf(),
        source,
    }
}

/// Whether no controller holds the journal at `path`.
///
/// # Errors
/// [`Error::File`].
pub fn is_free(path: &Path) -> Result<bool, Error> {
    let failed = |source| Error::File {
        action: "lock",
        path: path.to_path_buf(),
        source,
    };
    let file = own_folder::open(path, OpenOptions::new().read(true)).map_err(failed)?;
    lock_soon(file.as_fd()).map_err(failed)
}

/// Reads the journal at `path`.
///
/// # Errors
/// [`Error::File`], [`Error::Line`].
pub fn read(path: &Path) -> Result<Record, Error> {
    let failed = |source| Error::File {
        action: "read",
        path: path.to_path_buf(),
        source,
    };
    let file = own_folder::open(path, OpenOptions::new().read(true)).map_err(failed)?;
    let lines: Vec<String> = BufReader::new(file)
        .lines()
        .collect::<io::Result<_>>()
        .map_err(failed)?;
    let malformed = |at: usize, text: &str| Error::Line {
        path: path.to_path_buf(),
        line: at + 1,
        text: text.chars().take(80).collect(),
    };
    let first = lines.first().map_or("", String::as_str);
    let Ok(Line::Subject(subject)) = serde_json::from_str(first) else {
        return Err(malformed(0, first));
    };
    let mut record = Record {
        path: path.to_path_buf(),
        subject,
        entries: Vec::new(),
        knobs: Vec::new(),
    };
    for (at, line) in lines.iter().enumerate().skip(1) {
        match serde_json::from_str(line) {
            Ok(Line::Entry(entry)) => record.entries.push(entry),
            Ok(Line::Knob(knob)) => record.knobs.push(knob),
            // Cut off when we died.
            Err(_) if at + 1 == lines.len() => {}
            Ok(Line::Subject(_)) | Err(_) => return Err(malformed(at, line)),
        }
    }
    Ok(record)
}

impl Record {
    /// Whether `target` is the process that this journal is about.
    #[must_use]
    pub fn is_about(&self, target: &Target, boot_id: &str) -> bool {
        self.subject.pid == target.pid()
            && self.subject.start_ticks == target.start_ticks()
            && self.subject.boot_id == boot_id
    }

    /// What each touched slot was before its first change, by address, and the change that gives
    /// it back.
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
    format!("{BEGIN}{pid}-{start_ticks}.{ENDING}")
}

/// How names of journals begin and end.
const BEGIN: &str = "balance-";
const ENDING: &str = "journal";

/// Whether [`name`] gives such names.
fn is_name(path: &Path) -> bool {
    let begins = path.file_name().and_then(|name| name.to_str());
    begins.is_some_and(|name| name.starts_with(BEGIN))
        && path.extension().is_some_and(|ending| ending == ENDING)
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    own_folder::open(path, options.read(true).append(true))
}

/// Ending of a journal that is being made, before the id of the process that makes it.
const UNBORN: &str = "new-";

/// Removes journals whose makers were killed before they had their names: nothing was done yet that
/// they could tell of. What can't be removed does no harm.
fn remove_unborn(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = file.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let maker = ending.and_then(|ending| ending.strip_prefix(UNBORN)?.parse::<u32>().ok());
        if maker.is_some_and(|maker| !Path::new(&format!("/proc/{maker}")).exists()) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Makes a journal that holds its first line from the moment it can be found at `path`.
fn make(path: &Path, subject: &Subject) -> io::Result<File> {
    let unborn = path.with_extension(format!("{UNBORN}{}", std::process::id()));
    let mut file = open(&unborn, OpenOptions::new().create(true))?;
    write_line(&mut file, &Line::Subject(subject.clone()))?;
    let made = fs::hard_link(&unborn, path);
    fs::remove_file(&unborn)?;
    match made {
        // Another controller was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            open(path, &mut OpenOptions::new())
        }
        made => made.map(|()| file),
    }
}

/// Cuts off what a controller that died amid a line left, so that the next line stands alone.
/// Returns the bytes that remain.
fn drop_cut_line(file: &mut File) -> io::Result<u64> {
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|&byte| byte == b'\n');
    let whole = whole.map_or(0, |newline| newline + 1) as u64;
    if file.metadata()?.len() > whole {
        file.set_len(whole)?;
    }
    Ok(whole)
}

/// Adds a line, or nothing where the disk is full.
fn write_line(file: &mut File, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let before = file.metadata()?.len();
    file.write_all(&text).inspect_err(|_| {
        // Where this fails too, the cut line is dropped by whoever opens the journal next.
        let _ = file.set_len(before);
    })
}

mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{value:#x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        // Tracing keeps its own journal beside it.
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
        // The next controller's line stands alone behind the cut one.
        let mut journal = Journal::open(&place, &subject()).unwrap();
        journal.note(entry(0x60_0000, Change::Split, true)).unwrap();
        assert_eq!(read(&path).unwrap().entries.len(), 4);
        let files: Vec<_> = fs::read_dir(&place).unwrap().collect();
        assert_eq!(files.len(), 1, "{files:?}");
    }

    #[test]
    fn a_whole_journal_is_not_cut_wherever_its_file_stands() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\ntwo\nthr").unwrap();
        assert_eq!(drop_cut_line(&mut file).unwrap(), 8);
        assert_eq!(drop_cut_line(&mut file).unwrap(), 8);
        assert_eq!(file.metadata().unwrap().len(), 8);
    }

    #[test]
    fn a_journal_that_was_emptied_begins_with_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("pagewise");
        let path = Journal::open(&place, &subject()).unwrap().path;
        fs::write(&path, b"").unwrap();
        drop(Journal::open(&place, &subject()).unwrap());
        assert_eq!(read(&path).unwrap().subject, subject());
    }

    #[test]
    fn what_killed_makers_left_goes_and_what_living_ones_make_stays() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("pagewise");
        own_folder::make(&place).unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let left = place.join(format!("balance-7-1.new-{}", gone.id()));
        let others = [
            place.join("balance-7-2.new-1"),
            place.join("balance-7-3.new-thing"),
        ];
        fs::write(&left, "").unwrap();
        others.iter().for_each(|path| fs::write(path, "").unwrap());
        drop(Journal::open(&place, &subject()).unwrap());
        assert!(!left.exists());
        assert!(others.iter().all(|path| path.exists()));
    }

    #[test]
    fn what_others_may_have_written_is_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("pagewise");
        assert_eq!(all(&place).unwrap().len(), 0);
        let path = Journal::open(&place, &subject()).unwrap().path;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("others can write to it"), "{error}");
        // A link in its place, and a folder that is one.
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
        let first = serde_json::to_string(&Line::Subject(subject())).unwrap();
        fs::write(&path, format!("{first}\nnonsense\n{first}\n")).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(":2: not a line of a journal"), "{error}");
    }
}
