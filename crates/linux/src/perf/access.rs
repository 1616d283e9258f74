//! What the kernel allows us to record, found by trying on this process.

use super::notes::Note;
use super::source::{Access, Fault, Source};
use super::threads;
use crate::sys::perf_event;
use std::io;
use std::path::Path;

/// Tries the widest access first, then narrows it step by step. `None` if there is no perf at all.
pub(super) fn probe(notes: &mut Vec<Note>) -> Option<Access> {
    let mut access = Access {
        kernel: true,
        counts_losses: true,
        cgroups: true,
        machine: false,
    };
    let mut outcome = try_on_ourselves(access);
    if is(&outcome, &[libc::EACCES, libc::EPERM]) {
        access.kernel = false;
        outcome = try_on_ourselves(access);
    }
    for give_up in [
        (|a: &mut Access| a.cgroups = false) as fn(&mut Access),
        |a| a.counts_losses = false,
    ] {
        if is(&outcome, &[libc::EINVAL, libc::E2BIG]) {
            give_up(&mut access);
            outcome = try_on_ourselves(access);
        }
    }
    match outcome {
        Ok(()) => {
            if !access.kernel {
                notes.push(Note::UserOnly);
            }
            access.machine = access.kernel && may_watch_a_cpu(access);
            Some(access)
        }
        Err(error) => {
            let denials = [libc::EACCES, libc::EPERM];
            notes.push(Note::NoPerf {
                forbidden: error
                    .raw_os_error()
                    .is_some_and(|code| denials.contains(&code)),
                reason: error.to_string(),
            });
            None
        }
    }
}

/// Opens the two sources that everything else depends on.
fn try_on_ourselves(access: Access) -> io::Result<()> {
    let sources = [
        Source::fault_with_chain(Fault::Entry, 1 << 20, access),
        Source::lifetimes(access),
    ];
    for source in sources {
        let mut attr = source.attr;
        attr.set_disabled(1);
        perf_event::open(&mut attr, 0, -1, None)?;
    }
    Ok(())
}

/// Whether events may observe everything that a CPU runs (`perf_event_paranoid` of 0 and below, or
/// `CAP_PERFMON`).
fn may_watch_a_cpu(access: Access) -> bool {
    let Some(&cpu) = threads::online_cpus(Path::new("/sys")).first() else {
        return false;
    };
    let mut attr = Source::nothing(access).attr;
    attr.set_disabled(1);
    perf_event::open(&mut attr, -1, cpu, None).is_ok()
}

fn is(outcome: &io::Result<()>, codes: &[i32]) -> bool {
    matches!(outcome, Err(error) if error.raw_os_error().is_some_and(|code| codes.contains(&code)))
}
