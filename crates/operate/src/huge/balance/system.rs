//! `--system`: page sizes that faults use on the whole machine while the controller works.

use super::population::boot_id;
use anyhow::{Context, Result};
use pagewise_linux::hugepages::journal::{self, Journal, Knob, Subject};
use pagewise_linux::hugepages::system::{self, Wish};
use pagewise_linux::proc::ProcRoot;
use std::path::Path;

/// Settings of the machine that we have written. They are restored when this is dropped, however we
/// end except by a kill; then `--undo` restores them from the journal.
pub struct Written {
    journal: Option<Journal>,
    knobs: Vec<Knob>,
}

impl Written {
    /// Writes the requested settings, noted in a journal of our own process.
    ///
    /// # Errors
    /// If the machine lacks a size, or the setting or the journal cannot be written.
    pub fn write(wishes: &[Wish]) -> Result<Self> {
        if wishes.is_empty() {
            return Ok(Self {
                journal: None,
                knobs: Vec::new(),
            });
        }
        let proc = ProcRoot::default();
        let pid = i32::try_from(std::process::id()).context("no process id")?;
        let stat = proc.stat(pid)?.context("/proc does not know us")?;
        let subject = Subject {
            pid,
            start_ticks: stat.start_ticks,
            boot_id: boot_id(&proc),
            comm: stat.comm,
        };
        let mut journal = Journal::open(&journal::folder(), &subject)?;
        let written = system::write(Path::new("/sys"), wishes, &mut journal);
        // Settings written before one failed are in the journal.
        let noted = journal::read(journal.path())?.knobs;
        let this = Self {
            journal: Some(journal),
            knobs: noted,
        };
        written.context("--system")?;
        Ok(this)
    }

    /// Restores them, and reports the result for each.
    ///
    /// # Errors
    /// If one cannot be written: the journal then stays for `--undo`.
    pub fn give_back(mut self) -> Result<Vec<String>> {
        self.restore()
    }

    fn restore(&mut self) -> Result<Vec<String>> {
        let Some(journal) = self.journal.take() else {
            return Ok(Vec::new());
        };
        let knobs = std::mem::take(&mut self.knobs);
        let (_, left) = system::restore(Path::new("/sys"), &knobs)?;
        journal.remove()?;
        let message = |knob: &Knob| {
            let Knob {
                path,
                before,
                after,
            } = knob;
            let now = match left.contains(path) {
                true => "another program has changed it since, so it was left as it is",
                false => "given back",
            };
            format!("{}: {before} → {after} meanwhile, {now}.", path.display())
        };
        Ok(knobs.iter().map(message).collect())
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // We are already ending with an error; the journal stays if this fails too.
        let _ = self.restore();
    }
}
