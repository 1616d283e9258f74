//! What tracing changed, written down before it is changed.
//!
//! A program that is killed with SIGKILL can't restore anything. So whatever a file held is in
//! this journal before the file is written, and whoever traces next restores from it first. The
//! journal is locked for as long as its owner lives: a journal that can be locked and is not
//! empty belongs to somebody who was killed.
//!
//! ```text
//! pagewise-trace-journal 1
//! boot 6fd1b2c3-…              boot id: after a restart there is nothing to restore
//! owner 4242                   for the message to whoever comes second
//! instance pagewise-4242       folder below instances/, to be removed
//! save 4 current_tracer        length in bytes, file, then its content and a newline
//! nop
//! ```

use super::super::Error;
use crate::own_folder;
use crate::sys::file_lock;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};

const HEAD: &str = "pagewise-trace-journal 1";
const NAME: &str = "trace.journal";

/// A journal that nobody else has open.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// What a journal tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// The boot that it belongs to.
    pub boot: String,
    /// The process that wrote it.
    pub owner: String,
    /// Instances that were made.
    pub instances: Vec<String>,
    /// Files with their content, in the order in which they were first changed.
    pub saved: Vec<Saved>,
}

impl Entries {
    /// A name that leaves the folder that it is to be below.
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

/// A control file as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Its path below the top of tracefs.
    pub file: String,
    /// Its content.
    pub content: String,
}

/// Where journals are kept: a place that a restart empties, where there is one.
#[must_use]
pub fn usual_folder() -> PathBuf {
    if crate::sys::perf_event::is_root() {
        return "/run/pagewise".into();
    }
    let variable = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let state = || {
        let named = variable("XDG_STATE_HOME");
        let state = named.or_else(|| Some(variable("HOME")?.join(".local/state")));
        state.map(|state| state.join("pagewise"))
    };
    let folder = own_folder::runtime().or_else(state);
    folder.unwrap_or_else(own_folder::temporary)
}

impl Journal {
    /// Opens and locks the journal in `folder`, which is made where it is missing.
    ///
    /// # Errors
    /// [`Error::Busy`] when another process has it, [`Error::Journal`] when it can't be opened.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(NAME);
        let failed = |cause| Error::Journal {
            path: path.clone(),
            cause,
        };
        own_folder::make(folder).map_err(|cause| Error::Journal {
            path: folder.to_path_buf(),
            cause,
        })?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = own_folder::open(&path, &mut options).map_err(failed)?;
        if !file_lock::lock_soon(file.as_fd()).map_err(failed)? {
            let mut text = String::new();
            // It is being written: what is readable of it is good enough for a message.
            let _ = file.read_to_string(&mut text);
            let owner = parse(&text).map(|entries| entries.owner);
            return Err(Error::Busy {
                owner: owner.unwrap_or_default(),
            });
        }
        Ok(Self { path, file })
    }

    /// What is in it; `None` when it is empty.
    ///
    /// # Errors
    /// [`Error::Journal`] when it can't be read or is none of ours.
    pub fn entries(&mut self) -> Result<Option<Entries>, Error> {
        let mut text = String::new();
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.read_to_string(&mut text))
            .map_err(|cause| self.failed(cause))?;
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = |why: &str| {
            let text = format!("{why}: look at it and remove it");
            self.failed(io::Error::other(text))
        };
        let entries = parse(&text).ok_or_else(|| wrong("it is no journal of pagewise"))?;
        if let Some(name) = entries.outside() {
            return Err(wrong(&format!(
                "it names {name:?}, which is outside of tracefs"
            )));
        }
        Ok(Some(entries))
    }

    /// Begins anew, for this process.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub fn begin(&mut self, boot: &str) -> Result<(), Error> {
        self.empty()?;
        let owner = std::process::id();
        self.append(&format!("{HEAD}\nboot {boot}\nowner {owner}\n"))
    }

    /// Notes an instance that is about to be made.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub fn note_instance(&mut self, name: &str) -> Result<(), Error> {
        self.append(&format!("instance {name}\n"))
    }

    /// Notes a file that is about to be changed.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub fn note(&mut self, saved: &Saved) -> Result<(), Error> {
        let Saved { file, content } = saved;
        self.append(&format!("save {} {file}\n{content}\n", content.len()))
    }

    /// Empties it: everything is as it was.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub fn empty(&mut self) -> Result<(), Error> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)).map(drop))
            .map_err(|cause| self.failed(cause))
    }

    fn append(&mut self, text: &str) -> Result<(), Error> {
        // One write, so that a kill leaves whole entries.
        self.file
            .seek(SeekFrom::End(0))
            .and_then(|_| self.file.write_all(text.as_bytes()))
            .map_err(|cause| self.failed(cause))
    }

    fn failed(&self, cause: io::Error) -> Error {
        Error::Journal {
            path: self.path.clone(),
            cause,
        }
    }
}

/// The id of this boot.
#[must_use]
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn parse(text: &str) -> Option<Entries> {
    let mut rest = text.strip_prefix(HEAD)?.strip_prefix('\n')?;
    let mut entries = Entries::default();
    while let Some((line, after)) = rest.split_once('\n') {
        rest = after;
        let (key, value) = line.split_once(' ')?;
        match key {
            "boot" => value.clone_into(&mut entries.boot),
            "owner" => value.clone_into(&mut entries.owner),
            "instance" => entries.instances.push(value.to_owned()),
            "save" => {
                let (length, file) = value.split_once(' ')?;
                // A writer that was killed in the middle never got to change the file.
                let Some((content, after)) = rest.split_at_checked(length.parse().ok()?) else {
                    break;
                };
                rest = after.strip_prefix('\n').unwrap_or_default();
                entries.saved.push(Saved {
                    file: file.to_owned(),
                    content: content.to_owned(),
                });
            }
            _ => return None,
        }
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(matches!(second, Error::Busy { owner: told } if told == owner));
        drop(first);
        Journal::open(folder.path()).unwrap();
    }

    #[test]
    fn names_outside_of_tracefs_are_refused() {
        for line in [
            "save 1 ../victim\nx\n",
            "save 1 events/../../victim\nx\n",
            "save 1 /etc/victim\nx\n",
            "instance ..\n",
            "instance ../../victim\n",
            "instance /victim\n",
            "instance \n",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut journal = Journal::open(folder.path()).unwrap();
            journal.begin("boot").unwrap();
            journal.append(line).unwrap();
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
        let told = |folder: &Path| Journal::open(folder).unwrap_err().to_string();
        assert!(told(&link).contains("it is a link or no folder"));
        let file = folder.join(NAME);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o622)).unwrap();
        assert!(told(&folder).contains("others can write to it"));
        // Only root can give files away.
        if crate::sys::process::effective_user() == 0 {
            chown(&folder, Some(1), None).unwrap();
            assert!(told(&folder).contains("another user"));
        }
    }

    #[test]
    fn a_foreign_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), "shopping list\n").unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        let error = journal.entries().unwrap_err().to_string();
        assert!(error.contains("no journal of pagewise"), "{error}");
    }
}
