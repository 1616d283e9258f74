//! The slots ("places") for a run's figures in shared memory, one for each process.
//!
//! A process that takes a place locks the byte of the shared file with the same number (see
//! [`crate::sys::locks`]): a place whose lock is free belongs to a process that was killed, exited,
//! or called exec. Places of ended processes are kept as long as others are free, so that a run's
//! figures show which process did what; after that, the least active one is reused, and its counts
//! go to [`Run::others`]. If all places belong to living processes, a process counts in
//! [`Run::others`] directly.

use crate::sys::{self, locks};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use pagewise_wire::shared::{PROCESSES, Process, Run};

static RUN: AtomicPtr<Run> = AtomicPtr::new(core::ptr::null_mut());
/// The open file description of the shared file that has this process's lock; -1 without one.
static FILE: AtomicI32 = AtomicI32::new(-1);
/// Number of the program that opened this process's store.
static FAMILY: AtomicU32 = AtomicU32::new(0);

/// This process's own place; null without one.
static PLACE: AtomicPtr<Process> = AtomicPtr::new(core::ptr::null_mut());
/// Its share of the run's budget, if it has no place in which the command could write another one.
static FIXED_SHARE: AtomicU64 = AtomicU64::new(0);

/// All processes that start between two checks by the command share this part of the run's budget.
const NEWCOMERS: u64 = 8;
/// Smallest share at the start, in bytes; less in a small budget.
const LEAST_START: u64 = 1 << 20;

/// The shared memory is `run`; `file` is this process's own open file description of it.
pub fn use_run(run: &'static Run, file: i32) {
    FILE.store(file, Ordering::Relaxed);
    RUN.store(core::ptr::from_ref(run).cast_mut(), Ordering::Release);
}

/// The run's shared memory.
pub fn run() -> Option<&'static Run> {
    // SAFETY: published: `use_run` stored a reference that lives forever; null until then.
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

/// This is the child of a fork: it is alive as long as its own lock, not its parent's.
pub fn forked() {
    let former = descriptor();
    if former < 0 {
        return;
    }
    FILE.store(locks::reopen(former), Ordering::Relaxed);
    // SAFETY: a descriptor that nothing else uses.
    unsafe { sys::call3(libc::SYS_close, former as usize, 0, 0) };
}

/// The run's budget if all of its processes share it; otherwise 0.
#[must_use]
pub fn tree() -> u64 {
    run().map_or(0, |run| run.tree_bytes.load(Ordering::Relaxed))
}

/// Whether the kernel evicts pages of the run's processes from now on.
#[must_use]
pub fn are_evicted_by_kernel() -> bool {
    run().is_some_and(|run| run.by_kernel.load(Ordering::Relaxed) != 0)
}

/// Whether other processes share the budget with this one.
#[must_use]
pub fn has_others() -> bool {
    run().is_some_and(|run| run.several.load(Ordering::Relaxed) != 0)
}

/// A fork of this process will share the budget, once it has taken its place.
pub fn expect_others() {
    if let Some(run) = run() {
        run.several.store(1, Ordering::Relaxed);
    }
}

/// Bytes that this process may keep resident, if all processes of the run share a budget.
#[must_use]
pub fn share() -> Option<u64> {
    if tree() == 0 {
        return None;
    }
    // SAFETY: published: `take` stored a reference that lives forever; null until then, or without
    // a place.
    let place = unsafe { PLACE.load(Ordering::Acquire).as_ref() };
    let word = place.map_or(&FIXED_SHARE, |place| &place.share_bytes);
    Some(word.load(Ordering::Relaxed))
}

/// The share of a process until the next check by the command: the first process has the whole
/// budget. A fork keeps what it shares with its parent, and takes from the part for newcomers: each
/// takes half of the rest, so that together they exceed the budget by no more than that part.
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

/// Takes a place for this process's counters; the process has `inherited_bytes` from its parent.
/// Also returns whether the place is its own. `None` without shared memory.
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
            // The program before an exec leaves its share to this one.
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

/// One of the first `most` places: there were that many programs so far, so no place beyond is in
/// use.
fn claim(run: &'static Run, file: i32, pid: u32, most: usize) -> Option<&'static Process> {
    let places = || run.processes.iter().zip(0_u32..).take(most);
    let lock = |number: u32| locks::attempt(file, number);
    // The place of this process's program before an exec.
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
    // Without locks it is unknown which process would be displaced.
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

/// The least active of the processes whose end can be detected, among those not `tried` yet.
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

/// Moves the counts of `place` to the others.
fn displace(run: &Run, place: &Process) {
    place.hand_over(&run.others);
    run.displaced.fetch_add(1, Ordering::Relaxed);
}

/// The store of this process's family has this many bytes on disk. All processes of the family get
/// the figure, since they may sleep for a long time.
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

    /// Shared memory for one run.
    fn empty() -> &'static Run {
        // SAFETY: it consists of atomics, for which zeros are valid.
        Box::leak(unsafe { Box::<Run>::new_zeroed().assume_init() })
    }

    fn description(file: &std::fs::File) -> i32 {
        let fd = locks::reopen(file.as_raw_fd());
        assert!(fd >= 0);
        fd
    }

    fn close(fd: i32) {
        // SAFETY: as the kernel does at the end of a process.
        unsafe { libc::close(fd) };
    }

    /// A process of the test: an open file description of its own, and its place.
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
    fn exec_keeps_the_place_of_the_process() {
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
    fn newcomers_exceed_the_budget_by_an_eighth_at_most() {
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

    /// A field that is neither moved nor cleared would show a dead process's figures.
    #[test]
    fn nothing_of_the_gone_is_left() {
        let (place, other) = (&empty().processes[0], &empty().processes[0]);
        let regions = core::mem::offset_of!(Process, regions);
        let behind = regions + size_of_val(&place.regions);
        let words = |place: &Process| {
            let at = |offset: usize| {
                // SAFETY: within the place, aligned, and part of an atomic.
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
        // SAFETY: any bytes are valid for atomics; nothing else uses the memory.
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
