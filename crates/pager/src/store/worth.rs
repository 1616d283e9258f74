//! How much memory packed pages are worth: `auto`.
//!
//! Memory of the pool is missing for pages as the program uses them. A page that returns from the
//! pool saves a wait for the disk; but one that was away for so short that it would never have left,
//! had the pool's memory been left to pages as they are, costs a fault for nothing. So each return is
//! one or the other, by the evictions meanwhile, and packing costs processor time. Windows of
//! evictions are summed up in nanoseconds: those of reads and of packing are measured here, what a
//! fault takes is a constant ([`HIT_NS`]). The pool grows while it gains, and
//! shrinks while it loses.

use crate::page::PAGE_BYTES;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Shares of the pool are in units of one part in this many.
pub const WHOLE: u32 = 1024;
/// The pool starts with this share of what it may have at most, and keeps at least [`LEAST`].
const FIRST: u32 = WHOLE / 2;
const LEAST: u32 = WHOLE / 32;
/// Evictions in a window.
const WINDOW: u32 = 1024;
/// Returns without which a window says nothing: a program that fills its memory has none.
const TELLING: i64 = 64;
/// So many pages of a window may find no room in a pool that is large enough.
const FEW: i64 = WINDOW as i64 / 64;
/// Nanoseconds that the return of a packed page is taken for: a fault through a handler thread, unpacking
/// (1 to 3 µs) and the eviction that makes room. A clock would also count waits for a processor.
const HIT_NS: i64 = 14_000;
/// Of a read and of packing, until they are measured.
const READ_NS: u32 = 80_000;
const PACK_NS: u32 = 4_000;
/// For so many pages that found no room, one that has been in the pool for long moves down: what is
/// never used again must not fill the pool for good, and moving costs a write.
const REFUSED_FOR_ONE: u32 = 4;
/// The same while the pool does not pay: then only to see whether it would.
const REFUSED_FOR_A_TRIAL: u32 = 64;
/// Pages that move down together.
const TOGETHER: u32 = 64;
/// After so many pages in turn that do not pack, only one in as many is tried.
const MOST_SKIPPED: u32 = 32;

/// What is known of the pool's returns.
#[derive(Debug)]
pub struct Worth {
    /// Evictions so far.
    clock: AtomicU32,
    /// The clock at the start of the window.
    began: AtomicU32,
    /// Returns in the window that saved a wait, and those that cost a fault.
    saved: AtomicU32,
    vain: AtomicU32,
    /// A bit for each thread that waited in the window, by its number.
    threads: AtomicU64,
    /// Pages packed in the window, and read from the disk because they were missed.
    packed: AtomicU32,
    missed: AtomicU32,
    /// Pages in the window that found no room.
    without_room: AtomicU32,
    /// Pages that found no room since pages moved down last.
    refused: AtomicU32,
    /// Mean of what a read takes, and about the least of what packing does.
    read_ns: AtomicU32,
    pack_ns: AtomicU32,
    share: AtomicU32,
    /// Pages in turn that did not pack, and how many are skipped before the next is tried.
    unpackable: AtomicU32,
    skipped: AtomicU32,
    /// What the pool gained lately, in nanoseconds: each window adds its own, and takes an eighth of
    /// what was before.
    score_ns: AtomicI64,
}

impl Worth {
    /// Nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        const fn cell(value: u32) -> AtomicU32 {
            AtomicU32::new(value)
        }
        Self {
            clock: cell(0),
            began: cell(0),
            saved: cell(0),
            vain: cell(0),
            threads: AtomicU64::new(0),
            packed: cell(0),
            missed: cell(0),
            without_room: cell(0),
            refused: cell(0),
            read_ns: cell(READ_NS),
            pack_ns: cell(PACK_NS),
            share: cell(FIRST),
            unpackable: cell(0),
            skipped: cell(0),
            score_ns: AtomicI64::new(0),
        }
    }

    /// Evictions so far: the stamp of a page that leaves now.
    pub fn now(&self) -> u32 {
        self.clock.load(Ordering::Relaxed)
    }

    /// The share of the pool that may be used, in parts of [`WHOLE`].
    pub fn share(&self) -> u32 {
        self.share.load(Ordering::Relaxed)
    }

    /// A page leaves memory.
    pub fn leaves(&self) {
        self.clock.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the pool has gained lately.
    pub fn pays(&self) -> bool {
        self.score_ns.load(Ordering::Relaxed) > 0
    }

    /// Whether to try and pack a page.
    pub fn tries(&self) -> bool {
        let skip = self.skipped.load(Ordering::Relaxed);
        if skip > 0 {
            self.skipped.store(skip - 1, Ordering::Relaxed);
        }
        skip == 0
    }

    /// A page was packed, or did not pack, in so many nanoseconds.
    pub fn tried(&self, packs: bool, ns: u64) {
        // Who packs may be interrupted, above all where the threads of the program are many.
        let before = u64::from(self.pack_ns.load(Ordering::Relaxed));
        follow(&self.pack_ns, ns.min(before + before / 8 + 1));
        if packs {
            self.unpackable.store(0, Ordering::Relaxed);
            return;
        }
        let run = self.unpackable.load(Ordering::Relaxed) + 1;
        self.unpackable
            .store(run.min(MOST_SKIPPED), Ordering::Relaxed);
        if run >= MOST_SKIPPED {
            self.skipped.store(MOST_SKIPPED, Ordering::Relaxed);
        }
    }

    /// Whether pages have packed lately.
    pub fn packs(&self) -> bool {
        self.unpackable.load(Ordering::Relaxed) < MOST_SKIPPED / 4
    }

    /// A packed page is in the pool.
    pub fn put(&self) {
        self.packed.fetch_add(1, Ordering::Relaxed);
    }

    /// A page that packs found no room.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.without_room.fetch_add(1, Ordering::Relaxed);
    }

    /// A thread waited for a packed page that left at `stamp`, in a pool of so many bytes.
    pub fn returns(&self, stamp: u32, pool_bytes: u64) {
        let away = u64::from(self.now().wrapping_sub(stamp));
        let counter = match away * PAGE_BYTES as u64 <= pool_bytes {
            true => &self.vain,
            false => &self.saved,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Thread number `thread` waited.
    pub fn waited(&self, thread: u32) {
        self.threads.fetch_or(1 << (thread % 64), Ordering::Relaxed);
    }

    /// A thread waited so long for the disk.
    pub fn read(&self, ns: u64) {
        follow(&self.read_ns, ns);
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// At the end of a window: changes the share. Returns whether it did. One caller at a time.
    pub fn judge(&self) -> bool {
        let now = self.now();
        if now.wrapping_sub(self.began.load(Ordering::Relaxed)) < WINDOW {
            return false;
        }
        let of = |counter: &AtomicU32| i64::from(counter.load(Ordering::Relaxed));
        let (saved, vain, packed) = (of(&self.saved), of(&self.vain), of(&self.packed));
        let returned = saved + vain + of(&self.missed);
        self.began.store(now, Ordering::Relaxed);
        let refused = of(&self.without_room);
        for counter in [
            &self.saved,
            &self.vain,
            &self.packed,
            &self.missed,
            &self.without_room,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
        if returned < TELLING {
            return false;
        }
        // While one of several threads waits, the others go on.
        let threads = self.threads.swap(0, Ordering::Relaxed).count_ones();
        let wait = of(&self.read_ns) / i64::from(threads.max(1)) - HIT_NS;
        let gain = saved * wait - vain * HIT_NS - packed * of(&self.pack_ns);
        let share = self.share();
        let score = self.score_ns.load(Ordering::Relaxed) / 8 * 7 + gain;
        self.score_ns.store(score, Ordering::Relaxed);
        let next = if score < 0 {
            (share / 16 * 15).max(LEAST)
        } else if score > 0 && refused > FEW {
            (share / 4 * 5).min(WHOLE)
        } else {
            share
        };
        self.share.store(next, Ordering::Relaxed);
        next != share
    }

    /// How many pages are to move down because others found no room. Asked once for each.
    pub fn due(&self) -> u32 {
        let each = match self.pays() {
            true => REFUSED_FOR_ONE,
            false => REFUSED_FOR_A_TRIAL,
        };
        if self.refused.load(Ordering::Relaxed) < TOGETHER * each {
            return 0;
        }
        self.refused.store(0, Ordering::Relaxed);
        TOGETHER
    }

    /// Whether a page that left at `stamp` has been away for longer than one of a pool of `pages`
    /// should.
    pub fn is_old(&self, stamp: u32, pages: u64) -> bool {
        u64::from(self.now().wrapping_sub(stamp)) > 2 * pages
    }
}

impl Default for Worth {
    fn default() -> Self {
        Self::new()
    }
}

/// Moves a mean towards `ns`. Concurrent updates may be lost.
fn follow(mean: &AtomicU32, ns: u64) {
    let before = u64::from(mean.load(Ordering::Relaxed));
    // One that was interrupted says little.
    let now = (before * 31 + ns.min(before * 8)) / 32;
    mean.store(u32::try_from(now).unwrap_or(u32::MAX), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of a pool of 100 pages' memory in which returning pages were away for so long.
    fn after(windows: u32, away: u32, is_full: bool) -> u32 {
        let worth = Worth::new();
        for _ in 0..windows {
            for _ in 0..WINDOW {
                worth.leaves();
                match is_full {
                    true => worth.refuse(),
                    false => worth.put(),
                }
                worth.returns(worth.now().wrapping_sub(away), 100 << 12);
            }
            worth.judge();
        }
        worth.share()
    }

    #[test]
    fn a_pool_that_saves_waits_grows_as_far_as_it_is_used() {
        assert_eq!(after(40, 101, true), WHOLE);
        assert_eq!(after(40, 101, false), FIRST);
    }

    #[test]
    fn a_pool_whose_pages_would_not_have_left_without_it_shrinks() {
        assert_eq!(after(40, 100, true), LEAST);
    }

    #[test]
    fn nothing_is_judged_while_nothing_returns() {
        let worth = Worth::new();
        for _ in 0..10 * WINDOW {
            worth.leaves();
            worth.put();
        }
        assert!(!worth.judge());
        assert_eq!(worth.share(), FIRST);
    }

    #[test]
    fn packing_alone_is_a_loss() {
        let worth = Worth::new();
        for _ in 0..40 * WINDOW {
            worth.leaves();
            worth.put();
            worth.read(80_000);
            worth.judge();
        }
        assert_eq!(worth.share(), LEAST);
    }

    #[test]
    fn what_does_not_pack_is_tried_rarely() {
        let worth = Worth::new();
        let mut tried = 0;
        for _ in 0..10_000 {
            if worth.tries() {
                tried += 1;
                worth.tried(false, 1_000);
            }
        }
        assert!((200..600).contains(&tried), "{tried}");
        assert!(!worth.packs());
        while !worth.tries() {}
        worth.tried(true, 1_000);
        assert!(worth.packs() && worth.tries() && worth.tries());
    }
}
