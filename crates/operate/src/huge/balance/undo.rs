//! `--undo`: reverts the changes in the journals of earlier controllers.

use super::population::boot_id;
use anyhow::{Result, bail};
use pagewise_linux::hugepages::actuator::{Outcome, Target};
use pagewise_linux::hugepages::journal::{self, Record};
use pagewise_linux::hugepages::map::PageSizes;
use pagewise_linux::hugepages::system;
use pagewise_linux::proc::ProcRoot;
use pagewise_model::answer::Document;
use pagewise_model::huge_undo::{HugeUndo, Undone};
use std::path::Path;

/// Reverts the changes made to `pids`, or to all processes with a journal.
///
/// # Errors
/// If a journal is unreadable or in use by a running controller.
pub fn undo(pids: &[i32]) -> Result<Document<HugeUndo>> {
    let proc = ProcRoot::default();
    let boot = boot_id(&proc);
    let folder = journal::folder();
    let mut undone = Vec::new();
    for record in journal::all(&folder)? {
        let record = record?;
        if !pids.is_empty() && !pids.contains(&record.subject.pid) {
            continue;
        }
        if !journal::is_free(&record.path)? {
            bail!("{}", journal::Error::Held(record.path));
        }
        undone.push(take_back(&proc, &record, &boot)?);
    }
    if undone.is_empty() && !pids.is_empty() {
        bail!(
            "there is no journal of process {} in {}: nothing was changed, or it has already been restored",
            pids[0],
            folder.display()
        );
    }
    Ok(Document::new(HugeUndo { processes: undone }))
}

fn take_back(proc: &ProcRoot, record: &Record, boot: &str) -> Result<Undone> {
    let mut undone = Undone {
        pid: record.subject.pid,
        comm: record.subject.comm.clone(),
        running: false,
        restored: 0,
        gone: 0,
        refused: 0,
        settings: 0,
        settings_left: 0,
    };
    if record.subject.boot_id == boot {
        let (restored, left) = system::restore(Path::new("/sys"), &record.knobs)?;
        (undone.settings, undone.settings_left) = (restored, left.len() as u64);
    }
    let sizes = PageSizes::read(Path::new("/sys"))?;
    let target = Target::open(proc, record.subject.pid, sizes).ok();
    let target = target.filter(|target| record.is_about(target, boot));
    let Some(target) = target else {
        // The process has ended, so its page sizes are gone.
        journal::remove(&record.path)?;
        return Ok(undone);
    };
    undone.running = true;
    for (address, before, change) in record.restorations() {
        let now = target.slot(address)?;
        if now.is_empty() {
            undone.gone += 1;
        } else if now.huge == before.huge {
            undone.restored += 1;
        } else {
            match target.apply(change, address)?.outcome {
                Outcome::Done | Outcome::Already => undone.restored += 1,
                Outcome::Refused(_) => undone.refused += 1,
            }
        }
    }
    if undone.refused == 0 {
        journal::remove(&record.path)?;
    }
    Ok(undone)
}
