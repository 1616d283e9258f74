//! `kernel.task_delayacct`, on while somebody counts.
//!
//! A journal holds what the switch was before. It is written before the switch is; whoever counts
//! shares a lock on it, and the last one puts the switch back. After a SIGKILL the journal stands,
//! and the next one to count puts back what was there before.

use crate::own_folder;
use crate::sys::file_lock::{try_lock, try_share};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

const SWITCH: &str = "/proc/sys/kernel/task_delayacct";
const JOURNAL: &str = "task-delayacct";

/// The switch, held on.
#[derive(Debug)]
pub(super) struct Switch {
    path: PathBuf,
    journal: File,
}

impl Switch {
    /// Switches counting on; `None` where that is not ours to do.
    pub fn on() -> Option<Self> {
        Self::on_at(Path::new(SWITCH), &own_folder::runtime()?)
    }

    fn on_at(path: &Path, folder: &Path) -> Option<Self> {
        own_folder::make(folder).ok()?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let journal = own_folder::open(&folder.join(JOURNAL), &mut options).ok()?;
        if !try_share(journal.as_fd()).ok()? {
            return None;
        }
        let mut switch = Self {
            path: path.to_owned(),
            journal,
        };
        let now = fs::read_to_string(path).ok()?;
        if now.trim() != "1" {
            if switch.noted().is_empty() {
                switch.note(now.trim())?;
            }
            fs::write(path, "1").ok()?;
        }
        Some(switch)
    }

    /// What is to be put back; empty where nothing is.
    fn noted(&mut self) -> String {
        let mut before = String::new();
        let read = self.journal.rewind();
        match read.and_then(|()| self.journal.read_to_string(&mut before)) {
            Ok(_) => before,
            Err(_) => String::new(),
        }
    }

    fn note(&mut self, before: &str) -> Option<()> {
        self.journal.rewind().ok()?;
        self.journal.set_len(0).ok()?;
        self.journal.write_all(before.as_bytes()).ok()?;
        self.journal.sync_all().ok()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        if !matches!(try_lock(self.journal.as_fd()), Ok(true)) {
            return;
        }
        let before = self.noted();
        if !before.is_empty() && fs::write(&self.path, &before).is_ok() {
            // Where the journal stays, the next one puts back the same once more.
            let _ = self.note("");
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
        fs::write(journals.join(JOURNAL), "0").expect("a journal");
        let next = machine.on().expect("it counts");
        assert_eq!(machine.value(), "1");
        drop(next);
        assert_eq!(machine.value(), "0");
        assert_eq!(fs::read(journals.join(JOURNAL)).expect("a journal"), b"");
    }
}
