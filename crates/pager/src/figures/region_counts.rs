//! Faults by region, so that the figures can be attributed.

use crate::sys;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// All faults, and those on evicted pages.
type Counts = [AtomicU64; 2];

/// Counters for each possible region number; only address space until they are used.
#[derive(Debug)]
pub struct RegionCounts {
    counts: AtomicPtr<Counts>,
}

impl RegionCounts {
    const BYTES: usize = (u16::MAX as usize + 1) * size_of::<Counts>();

    /// Without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            counts: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Reserves its address space.
    pub fn prepare(&self) -> bool {
        match sys::map(Self::BYTES) {
            Some(place) => {
                self.counts.store(place.cast(), Ordering::Release);
                true
            }
            None => false,
        }
    }

    /// The child of a fork counts for itself.
    pub fn forked(&self) {
        let start = self.counts.load(Ordering::Relaxed) as u64;
        // SAFETY: own memory: the counters' pages, which are then zero.
        unsafe { sys::advise(start, start + Self::BYTES as u64, libc::MADV_DONTNEED) };
    }

    fn counts(&self, id: u16) -> &Counts {
        // SAFETY: reserved: `prepare` made counters, for which zero is valid, for each `u16`, before there
        // was any region.
        unsafe { &*self.counts.load(Ordering::Relaxed).add(usize::from(id)) }
    }

    /// Region `id` is a new one.
    pub fn reset(&self, id: u16) {
        let counts = self.counts(id);
        // Counters that were never used have no page yet.
        for count in counts
            .iter()
            .filter(|count| count.load(Ordering::Relaxed) != 0)
        {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// A fault in region `id`, which read the store or did not.
    pub fn add(&self, id: u16, read: bool) {
        let [faults, refaults] = self.counts(id);
        faults.fetch_add(1, Ordering::Relaxed);
        if read {
            refaults.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Faults in region `id`, and those of them on evicted pages.
    #[must_use]
    pub fn get(&self, id: u16) -> [u64; 2] {
        [0, 1].map(|which| self.counts(id)[which].load(Ordering::Relaxed))
    }
}

impl Default for RegionCounts {
    fn default() -> Self {
        Self::new()
    }
}
