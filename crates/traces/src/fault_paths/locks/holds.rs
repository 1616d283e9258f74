//! Which tasks kept others waiting for an mmap lock.
//!
//! A reader-writer semaphore (`kernel/locking/rwsem.c`) serves its waiters in turn: behind a
//! waiting writer, new readers queue even if only readers hold the lock. So a wait consists of
//!
//! ```text
//! time in which …                    is attributed to       for readers   for writers
//! a writer held the lock             that writer                 1             1
//! a writer was queued before         that writer                 2             3
//! readers held the lock              the last to release it      3             2
//! no traced task had it              no task
//! ```
//!
//! in the order of the last columns if several apply. The last line is mostly the time between a
//! release and the moment when the woken waiter got a CPU.

use pagewise_model::fault_paths::Hold;
use rustc_hash::FxHashMap;

/// Shorter waits are the tracer's own time between two events, ns.
const SHORTEST_WAIT: u64 = 100_000;
/// Number of ended stretches of one lock that are kept before those that no waiter has overlapped
/// are dropped.
const KEPT: usize = 64;

/// A stretch in which a task had the lock, or was queued for it.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    pid: u32,
    how: Hold,
    from: u64,
    /// `u64::MAX` while it is open.
    to: u64,
    /// Time off the CPU during the stretch.
    off: u64,
}

/// The lock of one address space.
#[derive(Clone, Debug, Default)]
struct Space {
    /// Stretches that have not ended.
    open: Vec<Stretch>,
    ended: Vec<Stretch>,
    /// Length of `ended` at which it is searched for entries to drop.
    full: usize,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    mm: u64,
    since: u64,
    write: bool,
}

/// The waits caused by a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Blamed {
    pub waits: u64,
    pub wait_ns: u64,
    /// The longest stretch that a task waited for.
    pub longest: u64,
    /// Total length of its stretches, waited for or not, and its time off the CPU in them.
    pub had: u64,
    pub off: u64,
}

/// Number and time of all waits, and of those attributed to a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waited {
    pub all: (u64, u64),
    pub known: (u64, u64),
}

/// The mmap locks of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds {
    spaces: FxHashMap<u64, Space>,
    waiting: FxHashMap<u32, Wait>,
    off_since: FxHashMap<u32, u64>,
    pub blamed: FxHashMap<(u32, Hold), Blamed>,
    pub waited: Waited,
}

impl Holds {
    /// Whether any event of an mmap lock occurred.
    pub fn has_any(&self) -> bool {
        !self.spaces.is_empty()
    }

    /// A task starts to acquire the lock.
    pub fn start(&mut self, mm: u64, pid: u32, time: u64, write: bool) {
        let space = self.spaces.entry(mm).or_default();
        let since = time;
        self.waiting.insert(pid, Wait { mm, since, write });
        if write {
            space.begin(pid, Hold::Queued, time);
        }
    }

    /// It got the lock, or gave up.
    pub fn returned(&mut self, mm: u64, pid: u32, time: u64, write: bool, got: bool) {
        self.end(mm, time, |stretch| {
            stretch.pid == pid && stretch.how == Hold::Queued
        });
        let wait = self.waiting.remove(&pid).filter(|wait| wait.mm == mm);
        if !got {
            return;
        }
        if let Some(wait) = wait {
            self.waited(wait, pid, time);
        }
        // When a task gets the lock, no other has it for writing any more: a write hold may have
        // been downgraded to reading, which is visible only through this return.
        self.end(mm, time, |stretch| stretch.how == Hold::Writing);
        let how = if write { Hold::Writing } else { Hold::Reading };
        self.spaces.entry(mm).or_default().begin(pid, how, time);
    }

    /// A task released the lock.
    pub fn released(&mut self, mm: u64, pid: u32, time: u64, write: bool) {
        match write {
            true => self.end(mm, time, |stretch| stretch.how == Hold::Writing),
            false => self.end(mm, time, |stretch| {
                stretch.pid == pid && stretch.how == Hold::Reading
            }),
        }
    }

    /// A task left its CPU.
    pub fn left(&mut self, pid: u32, time: u64) {
        self.off_since.insert(pid, time);
    }

    /// A task runs again.
    pub fn came(&mut self, pid: u32, time: u64) {
        let Some(since) = self.off_since.remove(&pid) else {
            return;
        };
        for stretch in self.spaces.values_mut().flat_map(|space| &mut space.open) {
            if stretch.pid == pid {
                stretch.off += time.saturating_sub(since.max(stretch.from));
            }
        }
    }

    fn end(&mut self, mm: u64, time: u64, which: impl Fn(&Stretch) -> bool) {
        let Some(space) = self.spaces.get_mut(&mm) else {
            return;
        };
        for mut stretch in space.open.extract_if(.., |stretch| which(stretch)) {
            stretch.to = time;
            let blamed = self.blamed.entry((stretch.pid, stretch.how)).or_default();
            blamed.had += time.saturating_sub(stretch.from);
            blamed.off += stretch.off;
            space.ended.push(stretch);
        }
        if space.ended.len() > space.full.max(KEPT) {
            let waits = self.waiting.values().filter(|wait| wait.mm == mm);
            let first = waits.map(|wait| wait.since).min().unwrap_or(time);
            space.ended.retain(|stretch| stretch.to > first);
            space.full = space.ended.len() * 2;
        }
    }

    /// Attributes a wait to the tasks that caused it.
    fn waited(&mut self, wait: Wait, pid: u32, until: u64) {
        let whole = until.saturating_sub(wait.since);
        if whole < SHORTEST_WAIT {
            return;
        }
        let order = match wait.write {
            false => [Hold::Writing, Hold::Queued, Hold::Reading],
            true => [Hold::Writing, Hold::Reading, Hold::Queued],
        };
        let mut left = vec![(wait.since, until)];
        if let Some(space) = self.spaces.get(&wait.mm) {
            for how in order {
                for (stretch, ns) in space.cover(how, pid, &mut left) {
                    let blamed = self.blamed.entry((stretch.pid, how)).or_default();
                    blamed.waits += 1;
                    blamed.wait_ns += ns;
                    let length = stretch.to.min(until).saturating_sub(stretch.from);
                    blamed.longest = blamed.longest.max(length);
                }
            }
        }
        let unknown: u64 = left.iter().map(|(from, to)| to - from).sum();
        let known = whole - unknown;
        self.waited.all.0 += 1;
        self.waited.all.1 += whole;
        self.waited.known.0 += u64::from(known > 0);
        self.waited.known.1 += known;
    }
}

impl Space {
    fn begin(&mut self, pid: u32, how: Hold, from: u64) {
        self.open.push(Stretch {
            pid,
            how,
            from,
            to: u64::MAX,
            off: 0,
        });
    }

    /// Removes from `left` the parts covered by others' stretches of this kind, the latest-ending
    /// first; returns these stretches, and how much each covered.
    fn cover(&self, how: Hold, pid: u32, left: &mut Vec<(u64, u64)>) -> Vec<(Stretch, u64)> {
        let all = self.ended.iter().chain(&self.open);
        let mut others: Vec<&Stretch> = all
            .filter(|stretch| stretch.how == how && stretch.pid != pid)
            .collect();
        others.sort_by_key(|stretch| (std::cmp::Reverse(stretch.to), stretch.from));
        let mut found = Vec::new();
        for stretch in others {
            let ns = take(left, stretch.from, stretch.to);
            if ns > 0 {
                found.push((*stretch, ns));
            }
        }
        found
    }
}

/// Removes an interval from disjoint ones; returns how much of it they contained.
fn take(left: &mut Vec<(u64, u64)>, from: u64, to: u64) -> u64 {
    let mut taken = 0;
    let mut rest = Vec::with_capacity(left.len() + 1);
    for &(begin, end) in left.iter() {
        let (a, b) = (from.max(begin), to.min(end));
        if a >= b {
            rest.push((begin, end));
            continue;
        }
        taken += b - a;
        if begin < a {
            rest.push((begin, a));
        }
        if b < end {
            rest.push((b, end));
        }
    }
    *left = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const MM: u64 = 0xaa;

    fn wait_ns(holds: &Holds, pid: u32, how: Hold) -> u64 {
        holds
            .blamed
            .get(&(pid, how))
            .map_or(0, |blamed| blamed.wait_ns)
    }

    /// 1 reads for a long time, 2 queues to write behind it, 3 queues to read behind 2.
    #[test]
    fn readers_wait_for_the_writer_that_waits_for_readers() {
        let mut holds = Holds::default();
        holds.start(MM, 1, 0, false);
        holds.returned(MM, 1, 0, false, true);
        holds.start(MM, 2, 2 * MS, true);
        holds.start(MM, 3, 3 * MS, false);
        holds.released(MM, 1, 10 * MS, false);
        // 1 ms until the writer runs.
        holds.returned(MM, 2, 11 * MS, true, true);
        holds.released(MM, 2, 15 * MS, true);
        holds.returned(MM, 3, 16 * MS, false, true);
        assert_eq!(wait_ns(&holds, 1, Hold::Reading), 8 * MS);
        assert_eq!(wait_ns(&holds, 2, Hold::Queued), 8 * MS);
        assert_eq!(wait_ns(&holds, 2, Hold::Writing), 4 * MS);
        assert_eq!(holds.waited.all, (2, 22 * MS));
        assert_eq!(holds.waited.known, (2, 20 * MS));
    }

    #[test]
    fn of_several_readers_the_last_to_leave_is_waited_for() {
        let mut holds = Holds::default();
        for pid in [1, 2] {
            holds.start(MM, pid, 0, false);
            holds.returned(MM, pid, 0, false, true);
        }
        holds.start(MM, 3, MS, true);
        holds.released(MM, 1, 4 * MS, false);
        holds.released(MM, 2, 9 * MS, false);
        holds.returned(MM, 3, 9 * MS, true, true);
        assert_eq!(wait_ns(&holds, 1, Hold::Reading), 0);
        assert_eq!(wait_ns(&holds, 2, Hold::Reading), 8 * MS);
    }

    #[test]
    fn stretches_that_no_waiter_has_seen_are_dropped() {
        let mut holds = Holds::default();
        for turn in 0..10_000 {
            holds.start(MM, 1, turn * MS, false);
            holds.returned(MM, 1, turn * MS, false, true);
            holds.released(MM, 1, turn * MS + 1, false);
        }
        assert!(holds.spaces[&MM].ended.len() <= KEPT + 1);
        assert!(holds.spaces[&MM].open.is_empty());
    }

    #[test]
    fn intervals_are_taken_out() {
        let mut left = vec![(0, 10), (20, 30)];
        assert_eq!(take(&mut left, 5, 25), 10);
        assert_eq!(left, [(0, 5), (25, 30)]);
        assert_eq!(take(&mut left, 1, 2), 1);
        assert_eq!(left, [(0, 1), (2, 5), (25, 30)]);
        assert_eq!(take(&mut left, 0, u64::MAX), 9);
        assert_eq!(left, []);
    }
}
