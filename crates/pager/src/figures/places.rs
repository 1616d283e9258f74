//! The places of a run's figures in shared memory, one for each process.
//!
//! Who takes a place locks the byte of the shared file that has its number (see
//! [`crate::sys::locks`]): a place whose lock is free belongs to a process that was killed, ended, or
//! called exec. Places of the gone are kept as long as there are others, so that a run's figures show
//! who did what; then the least active one is taken again, and what it had counted goes to
//! [`Run::others`]. Where all places are of the living, a process counts there right away.

use crate::sys::{self, locks};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use pagewise_wire::shared::{PROCESSES, Process, Run};

static RUN: AtomicPtr<Run> = AtomicPtr::new(core::ptr::null_mut());
/// The description of the shared file that carries this process's lock; -1 without one.
static FILE: AtomicI32 = AtomicI32::new(-1);
/// Number of the program that opened this process's store.
static FAMILY: AtomicU32 = AtomicU32::new(0);

/// This process's own place; null without one.
static PLACE: AtomicPtr<Process> = AtomicPtr::new(core::ptr::null_mut());
/// Its share of the run's budget, where it has no place that the command line could write another to.
static FIXED_SHARE: AtomicU64 = AtomicU64::new(0);

/// All newcomers between two looks of the command line start with this part of the run's budget together.
const NEWCOMERS: u64 = 8;
/// The least that one of them starts with, bytes; less in a small budget.
const LEAST_START: u64 = 1 << 20;

/// The shared memory is `run`; `file` is a description of it that is this process's own.
pub fn use_run(run: &'static Run, file: i32) {
    FILE.store(file, Ordering::Relaxed);
    RUN.store(core::ptr::from_ref(run).cast_mut(), Ordering::Release);
}

/// The run's shared memory.
pub fn run() -> Option<&'static Run> {
    // SAFETY: published: `use_run` stored a reference that lives for ever; null until then.
    unsafe { RUN.load(Ordering::Acquire).as_ref() }
}

/// Whether a process of the run has taken a place before.
#[must_use]
pub fn any_taken() -> bool {
    run().is_some_and(|run| run.taken.load(Ordering::Acquire) != 0)
}

/// The descriptor in use, -1 for none.
#[must_use]
pub fn descriptor() -> i32 {
    FILE.load(Ordering::Relaxed)
}

/// This is the child of a fork: it lives as long as a lock of its own, not its parent's.
pub fn forked() {
    let former = descriptor();
    if former < 0 {
        return;
    }
    FILE.store(locks::reopen(former), Ordering::Relaxed);
    // SAFETY: a descriptor that nobody else knows.
    unsafe { sys::call3(libc::SYS_close, former as usize, 0, 0) };
}

/// The run's budget, where it is for all of its processes; else 0.
#[must_use]
pub fn tree() -> u64 {
    run().map_or(0, |run| run.tree_bytes.load(Ordering::Relaxed))
}

/// Whether other processes share that with this one.
#[must_use]
pub fn has_others() -> bool {
    run().is_some_and(|run| run.several.load(Ordering::Relaxed) != 0)
}

/// Bytes that this process may keep resident where the run's budget is for all of its processes.
#[must_use]
pub fn share() -> Option<u64> {
    if tree() == 0 {
        return None;
    }
    // SAFETY: published: `take` stored a reference that lives for ever; null until then, or without a place.
    let place = unsafe { PLACE.load(Ordering::Acquire).as_ref() };
    let word = place.map_or(&FIXED_SHARE, |place| &place.share_bytes);
    Some(word.load(Ordering::Relaxed))
}

/// What a process starts with until the command line has looked: the first one has the whole budget. A
/// fork keeps what it shares with its parent, and takes of what is there for newcomers: each half of what
/// is left, so that all of them pass the budget by no more than that.
fn first_share(run: &Run, number: u32, inherited_bytes: u64) -> u64 {
    let tree = run.tree_bytes.load(Ordering::Relaxed);
    if number == 1 || tree == 0 {
        return tree;
    }
    run.several.store(1, Ordering::Relaxed);
    let taken = run.newcomers_bytes.load(Ordering::Relaxed);
    let half = (tree / NEWCOMERS).saturating_sub(taken) / 2;
    let start = half.max(LEAST_START.min(tree / 64));
    run.newcomers_bytes.fetch_add(start, Ordering::Relaxed);
    inherited_bytes + start
}

/// Takes a place for this process's counters, which has so many bytes of its parent's; whether it is its
/// alone. None without shared memory.
pub fn take(inherited_bytes: u64) -> Option<(&'static Process, bool)> {
    let run = run()?;
    let number = run.taken.fetch_add(1, Ordering::AcqRel) + 1;
    if FAMILY.load(Ordering::Relaxed) == 0 {
        FAMILY.store(number, Ordering::Relaxed);
    }
    let file = descriptor();
    let tried = (number as usize).min(PROCESSES);
    PLACE.store(core::ptr::null_mut(), Ordering::Release);
    match claim(run, file, sys::process_id(), tried) {
        Some(place) => {
            // What this process was before an exec leaves it its share.
            if place.share_bytes.load(Ordering::Relaxed) == 0 {
                let share = first_share(run, number, inherited_bytes);
                place.share_bytes.store(share, Ordering::Relaxed);
            }
            PLACE.store(core::ptr::from_ref(place).cast_mut(), Ordering::Release);
            place
                .family
                .store(FAMILY.load(Ordering::Relaxed), Ordering::Relaxed);
            place.marked.store(u32::from(file >= 0), Ordering::Release);
            Some((place, true))
        }
        None => {
            run.unplaced.fetch_add(1, Ordering::Relaxed);
            let share = first_share(run, number, inherited_bytes);
            FIXED_SHARE.store(share, Ordering::Relaxed);
            Some((&run.others, false))
        }
    }
}

/// A place of the first `most`: as many as there were programs yet, for none took one further behind.
fn claim(run: &'static Run, file: i32, pid: u32, most: usize) -> Option<&'static Process> {
    let places = || run.processes.iter().zip(0_u32..).take(most);
    let lock = |number: u32| locks::attempt(file, number);
    // The program that this process was before an exec.
    let mut former = places().filter(|(place, _)| place.pid.load(Ordering::Acquire) == pid);
    let own = former.find(|(place, number)| match file {
        ..0 => place.marked.load(Ordering::Relaxed) == 0,
        _ => lock(*number),
    });
    if let Some((place, _)) = own {
        let share = place.share_bytes.load(Ordering::Relaxed);
        displace(run, place);
        place.share_bytes.store(share, Ordering::Relaxed);
        return Some(place);
    }
    let take = |place: &Process| {
        place
            .pid
            .compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    };
    for (place, number) in places() {
        let free = place.pid.load(Ordering::Acquire) == 0;
        if free && (file < 0 || lock(number)) {
            if take(place) {
                return Some(place);
            }
            locks::release(file, number);
        }
    }
    // Without a lock nobody can tell whom it would displace.
    let mut tried = [file < 0; PROCESSES];
    while let Some(number) = least_active(run, &tried) {
        tried[number] = true;
        if !lock(number as u32) {
            continue;
        }
        let place = &run.processes[number];
        displace(run, place);
        place.pid.store(pid, Ordering::Release);
        return Some(place);
    }
    None
}

/// The least active of the processes whose end can be told, of those not `tried` yet.
fn least_active(run: &Run, tried: &[bool; PROCESSES]) -> Option<usize> {
    let places = run.processes.iter().enumerate();
    let known = places.filter(|(number, place)| {
        let tells = &[&place.marked, &place.ended];
        !tried[*number] && tells.iter().any(|mark| mark.load(Ordering::Acquire) != 0)
    });
    let activity = |place: &Process| {
        place.pages_evicted.load(Ordering::Relaxed) + place.first_touches.load(Ordering::Relaxed)
    };
    let least = known.min_by_key(|(_, place)| activity(place));
    least.map(|(number, _)| number)
}

/// What was counted in `place` goes to the others.
fn displace(run: &Run, place: &Process) {
    place.hand_over(&run.others);
    run.displaced.fetch_add(1, Ordering::Relaxed);
}

/// The store of this process's family has so many bytes on disk: all of it are told, as they may
/// sleep for long.
pub fn tell_store(disk_bytes: u64) {
    let family = FAMILY.load(Ordering::Relaxed);
    let Some(run) = run().filter(|_| family != 0) else {
        return;
    };
    let relatives = run.processes.iter();
    for place in relatives.filter(|place| place.family.load(Ordering::Relaxed) == family) {
        place.store_disk_bytes.store(disk_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    /// Shared memory of a run's own.
    fn empty() -> &'static Run {
        // SAFETY: all of it are atomics, for which zeros are valid.
        Box::leak(unsafe { Box::<Run>::new_zeroed().assume_init() })
    }

    fn description(file: &std::fs::File) -> i32 {
        let fd = locks::reopen(file.as_raw_fd());
        assert!(fd >= 0);
        fd
    }

    fn close(fd: i32) {
        // SAFETY: what the kernel does at the end of a process.
        unsafe { libc::close(fd) };
    }

    /// A process of the test: a description of its own, and the place that it got.
    fn start(run: &'static Run, file: &std::fs::File, pid: u32) -> (i32, Option<&'static Process>) {
        let fd = description(file);
        let place = claim(run, fd, pid, PROCESSES);
        if let Some(place) = place {
            place.marked.store(1, Ordering::Relaxed);
            place.pages_evicted.store(u64::from(pid), Ordering::Relaxed);
            place.resident_pages.store(5, Ordering::Relaxed);
        }
        (fd, place)
    }

    fn evicted(run: &Run) -> u64 {
        let all = run.processes.iter().chain([&run.others]);
        all.map(|place| place.pages_evicted.load(Ordering::Relaxed))
            .sum()
    }

    #[test]
    fn places_of_the_gone_are_taken_again_and_sums_stay() {
        let (run, file) = (empty(), tempfile::tempfile().expect("a file"));
        let living: Vec<_> = (1..=PROCESSES as u32)
            .map(|pid| start(run, &file, pid))
            .collect();
        assert!(living.iter().all(|(_, place)| place.is_some()));
        let sum = evicted(run);
        let (late, none) = start(run, &file, 1000);
        assert!(none.is_none(), "all live");
        close(late);

        close(living[40].0);
        close(living[20].0);
        let place = start(run, &file, 2000).1.expect("two are gone");
        assert!(
            std::ptr::eq(place, living[20].1.expect("had one")),
            "the least active"
        );
        assert_eq!(evicted(run), sum + 2000);
        assert_eq!(run.others.pages_evicted.load(Ordering::Relaxed), 21);
        assert_eq!(run.others.resident_pages.load(Ordering::Relaxed), 0);
        assert_eq!(run.displaced.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn exec_keeps_the_place_and_a_living_namesake_does_not_lose_its_own() {
        let (run, file) = (empty(), tempfile::tempfile().expect("a file"));
        let (shell, first) = start(run, &file, 7);
        let (_, namesake) = start(run, &file, 7); // in another name space of processes
        assert!(!std::ptr::eq(first.expect("free"), namesake.expect("free")));
        close(shell);
        let (_, program) = start(run, &file, 7);
        assert!(std::ptr::eq(
            first.expect("free"),
            program.expect("its own")
        ));
        assert_eq!(evicted(run), 21);
    }

    #[test]
    fn newcomers_pass_the_budget_by_an_eighth_at_most_and_forks_keep_what_they_share() {
        const TREE: u64 = 1 << 30;
        let run = empty();
        assert_eq!(first_share(run, 1, 0), 0, "each has its own");
        run.tree_bytes.store(TREE, Ordering::Relaxed);
        assert_eq!(first_share(run, 1, 0), TREE);
        let shares: Vec<u64> = (2..8).map(|number| first_share(run, number, 0)).collect();
        assert_eq!(shares[..2], [TREE / 16, TREE / 32]);
        assert!(shares.iter().sum::<u64>() <= TREE / 8);
        run.newcomers_bytes.store(0, Ordering::Relaxed);
        assert_eq!(first_share(run, 8, 77 << 20), (77 << 20) + TREE / 16);
    }

    #[test]
    fn who_cannot_mark_gets_free_places_only() {
        let run = empty();
        for pid in 1..=PROCESSES as u32 {
            assert!(claim(run, -1, pid, PROCESSES).is_some());
        }
        run.processes[3].ended.store(1, Ordering::Relaxed);
        assert!(claim(run, -1, 100, PROCESSES).is_none());
        let file = tempfile::tempfile().expect("a file");
        let place = start(run, &file, 100).1.expect("one ended in order");
        assert!(std::ptr::eq(place, &raw const run.processes[3]));
    }

    /// A field that is neither handed over nor cleared would show a dead process's figures.
    #[test]
    fn nothing_of_the_gone_is_left() {
        let (place, other) = (&empty().processes[0], &empty().processes[0]);
        let regions = core::mem::offset_of!(Process, regions);
        let behind = regions + size_of_val(&place.regions);
        let words = |place: &Process| {
            let at = |offset: usize| {
                // SAFETY: within the place, aligned, and of atomics.
                unsafe {
                    &*core::ptr::from_ref(place)
                        .byte_add(offset)
                        .cast::<core::sync::atomic::AtomicU64>()
                }
                .load(Ordering::Relaxed)
            };
            let all = (8..size_of::<Process>()).step_by(8);
            all.filter(|offset| !(regions..behind).contains(offset))
                .map(at)
                .collect::<Vec<_>>()
        };
        let bytes = core::ptr::from_ref(place).cast_mut().cast::<u8>();
        // SAFETY: any bytes are valid for atomics; nobody else has the memory.
        unsafe { bytes.write_bytes(1, size_of::<Process>()) };
        let (full, counters) = (words(place).len(), place.counters().count());
        place.hand_over(other);
        place.ended.store(0, Ordering::Relaxed);
        assert!(words(place).iter().all(|word| *word == 0));
        assert_eq!(
            words(other).iter().filter(|word| **word != 0).count(),
            counters
        );
        assert!(full > counters);
    }
}
