//! Changes made by tracing, each noted before it is made ([`crate::journal`]).

use super::super::Error;
use crate::journal::{self, Line, Lock, Owner, Setting};
use std::io;
use std::path::{Component, Path};

pub use crate::journal::{boot_id, machine_folder as usual_folder};

/// Its name.
pub(crate) const NAME: &str = "trace.journal";

/// A journal that no other process has open.
#[derive(Debug)]
pub struct Journal(journal::Journal);

/// Content of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// The boot that it belongs to.
    pub boot: String,
    /// The process that wrote it.
    pub owner: String,
    /// Instances that were created.
    pub instances: Vec<String>,
    /// Files with their content, in the order in which they were first changed.
    pub saved: Vec<Saved>,
}

impl Entries {
    /// A name that would leave its base folder.
    fn outside(&self) -> Option<&str> {
        let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
        let stays = |name: &str| !name.is_empty() && Path::new(name).components().all(is_name);
        let files = self.saved.iter().map(|saved| saved.file.as_str());
        let instances = self.instances.iter().map(String::as_str);
        let mut leaving = instances
            .filter(|name| name.contains('/') || !stays(name))
            .chain(files.filter(|name| !stays(name)));
        leaving.next()
    }
}

impl From<journal::Record> for Entries {
    fn from(record: journal::Record) -> Self {
        let (boot, owner) = record.owner.map_or_else(Default::default, |owner| {
            (owner.boot_id, owner.pid.to_string())
        });
        let saved = record.settings.into_iter().map(|setting| Saved {
            file: setting.path.to_string_lossy().into_owned(),
            content: setting.before,
        });
        Self {
            boot,
            owner,
            instances: record.instances,
            saved: saved.collect(),
        }
    }
}

/// Earlier state of a control file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Its path below the top of tracefs.
    pub file: String,
    /// Its content.
    pub content: String,
}

impl Journal {
    /// Opens and locks the journal in `folder`, which is created if missing.
    ///
    /// # Errors
    /// [`Error::Busy`] if another process has it, [`Error::Journal`] if it can't be opened.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let opened = journal::Journal::open(folder, NAME, Lock::Alone);
        opened.map(Self).map_err(error)
    }

    /// A journal that was opened because it was left behind.
    pub(crate) fn abandoned(journal: journal::Journal) -> Self {
        Self(journal)
    }

    /// Its content; `None` if it is empty.
    ///
    /// # Errors
    /// [`Error::Journal`] if it can't be read or is not ours.
    pub fn entries(&mut self) -> Result<Option<Entries>, Error> {
        let Some(record) = self.0.record().map_err(error)? else {
            return Ok(None);
        };
        let entries = Entries::from(record);
        match entries.outside() {
            Some(name) => Err(wrong(
                self.0.path(),
                &format!("it names {name:?}, which is outside of tracefs"),
            )),
            None => Ok(Some(entries)),
        }
    }

    /// Starts afresh, for this process.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub fn begin(&mut self, boot: &str) -> Result<(), Error> {
        self.empty()?;
        let owner = Owner {
            boot_id: boot.to_owned(),
            ..Owner::this("trace")
        };
        self.add(Line {
            owner: Some(owner),
            ..Line::default()
        })
    }

    /// Notes an instance that is about to be created.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub fn note_instance(&mut self, name: &str) -> Result<(), Error> {
        self.add(Line {
            instance: Some(name.to_owned()),
            ..Line::default()
        })
    }

    /// Notes a file that is about to be changed.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub fn note(&mut self, saved: &Saved) -> Result<(), Error> {
        let setting = Setting {
            path: saved.file.as_str().into(),
            before: saved.content.clone(),
            after: String::new(),
        };
        self.add(Line {
            setting: Some(setting),
            ..Line::default()
        })
    }

    /// Empties it: everything is restored.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub fn empty(&mut self) -> Result<(), Error> {
        self.0.empty().map_err(error)
    }

    fn add(&mut self, line: Line) -> Result<(), Error> {
        self.0.note(&line).map_err(error)
    }
}

/// The error as one of tracing.
fn error(error: journal::Error) -> Error {
    match error {
        journal::Error::Held(path) => {
            // It may be in the middle of a write: what can be read is good enough for a message.
            let record = journal::read(&path).ok().flatten();
            let owner = record.map(|record| Entries::from(record).owner);
            Error::Busy {
                owner: owner.unwrap_or_default(),
            }
        }
        journal::Error::Line { path, .. } => wrong(&path, "it is not a journal of pagewise"),
        journal::Error::File { path, source, .. } | journal::Error::Folder { path, source } => {
            Error::Journal {
                path,
                cause: source,
            }
        }
    }
}

fn wrong(path: &Path, why: &str) -> Error {
    Error::Journal {
        path: path.to_path_buf(),
        cause: io::Error::other(format!("{why}: inspect it, then remove it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn saved(file: &str, content: &str) -> Saved {
        Saved {
            file: file.to_owned(),
            content: content.to_owned(),
        }
    }

    #[test]
    fn what_was_noted_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&folder.path().join("new")).unwrap();
        assert_eq!(journal.entries().unwrap(), None);
        journal.begin("boot-1").unwrap();
        journal.note_instance("pagewise-1").unwrap();
        let files = [
            saved("current_tracer", "nop\n"),
            saved("a b", "x\n\nsave 1 y\n"),
        ];
        files.iter().for_each(|file| journal.note(file).unwrap());
        let entries = journal.entries().unwrap().unwrap();
        assert_eq!(entries.boot, "boot-1");
        assert_eq!(entries.owner, std::process::id().to_string());
        assert_eq!(entries.instances, ["pagewise-1"]);
        assert_eq!(entries.saved, files);
        journal.empty().unwrap();
        assert_eq!(journal.entries().unwrap(), None);
    }

    #[test]
    fn a_journal_is_one_process_s_at_a_time_and_its_owner_s_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mut first = Journal::open(folder.path()).unwrap();
        first.begin("boot").unwrap();
        let mode = fs::metadata(folder.path().join(NAME))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let second = Journal::open(folder.path()).unwrap_err();
        let owner = std::process::id().to_string();
        assert!(matches!(second, Error::Busy { owner: message } if message == owner));
        drop(first);
        Journal::open(folder.path()).unwrap();
    }

    #[test]
    fn names_outside_of_tracefs_are_refused() {
        for line in [
            "{\"setting\":{\"path\":\"/etc/victim\",\"before\":\"x\"}}\n",
            "{\"setting\":{\"path\":\"../victim\",\"before\":\"x\"}}\n",
            "{\"setting\":{\"path\":\"events/../../victim\",\"before\":\"x\"}}\n",
            "{\"instance\":\"..\"}\n",
            "{\"instance\":\"../../victim\"}\n",
            "{\"instance\":\"/victim\"}\n",
            "{\"instance\":\"\"}\n",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut journal = Journal::open(folder.path()).unwrap();
            fs::write(folder.path().join(NAME), line).unwrap();
            let error = journal.entries().unwrap_err().to_string();
            assert!(error.contains("outside of tracefs"), "{line}: {error}");
        }
    }

    #[test]
    fn a_journal_that_others_may_have_made_is_refused() {
        use std::os::unix::fs::{PermissionsExt, chown, symlink};
        let top = tempfile::tempdir().unwrap();
        let [folder, link] = ["folder", "link"].map(|name| top.path().join(name));
        drop(Journal::open(&folder).unwrap());
        symlink(&folder, &link).unwrap();
        let message = |folder: &Path| Journal::open(folder).unwrap_err().to_string();
        assert!(message(&link).contains("it is a link or not a folder"));
        let file = folder.join(NAME);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o622)).unwrap();
        assert!(message(&folder).contains("others can write to it"));
        // Only root can give files away.
        if crate::sys::process::effective_user() == 0 {
            chown(&folder, Some(1), None).unwrap();
            assert!(message(&folder).contains("another user"));
        }
    }

    #[test]
    fn a_foreign_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), "shopping list\n").unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        let error = journal.entries().unwrap_err().to_string();
        assert!(error.contains("not a journal of pagewise"), "{error}");
    }
}
