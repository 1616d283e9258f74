//! Which parts of the address space are managed, and how.
//!
//! A sorted list of non-overlapping ranges. Faults read it without a lock (a sequence counter shows
//! when to read again); changes take the lock. Mappings too small to manage are listed as well,
//! because the kernel places mappings side by side and many small ones form a large one.

pub use super::kind::{Kind, Region};
use crate::sync::Lock;
use crate::sys;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// Largest number of ranges: the default limit on mappings of a process in Linux
/// (`vm.max_map_count`).
const CAPACITY: usize = 65_530;
/// Numbers that are tried until an unused one is found.
const MOST_LOOKS: usize = 64;

#[derive(Debug)]
struct Entry {
    start: AtomicU64,
    end: AtomicU64,
    kind: AtomicU64,
}

/// The list.
#[derive(Debug)]
pub struct Regions {
    entries: AtomicPtr<Entry>,
    count: AtomicU32,
    sequence: AtomicU32,
    /// Bytes of listed ranges that are not managed, but could be.
    left_out: AtomicU64,
    /// Numbers assigned so far.
    numbered: AtomicU32,
    /// Held during each change, including the system calls that belong to it.
    pub lock: Lock,
}

impl Regions {
    /// An empty list without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: AtomicPtr::new(core::ptr::null_mut()),
            count: AtomicU32::new(0),
            sequence: AtomicU32::new(0),
            left_out: AtomicU64::new(0),
            numbered: AtomicU32::new(0),
            lock: Lock::new(),
        }
    }

    /// Reserves its address space.
    pub fn prepare(&self) -> bool {
        match sys::map(CAPACITY * size_of::<Entry>()) {
            Some(place) => {
                self.entries.store(place.cast(), Ordering::Release);
                true
            }
            None => false,
        }
    }

    fn entry(&self, index: usize) -> &Entry {
        // SAFETY: reserved: `prepare` made CAPACITY entries of atomics, for which zero is valid; indices
        // are below `count`, which never exceeds that.
        unsafe { &*self.entries.load(Ordering::Relaxed).add(index) }
    }

    /// Number of ranges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire) as usize
    }

    /// Whether one of `[start, end)` has guards.
    #[must_use]
    pub fn has_guards(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        while let Some(region) = self.at_or_behind(at).filter(|it| it.start < end) {
            if region.kind.guarded {
                return true;
            }
            at = region.end;
        }
        false
    }

    /// Whether there is room for ranges that are cut from others.
    #[must_use]
    pub fn may_be_cut(&self) -> bool {
        self.len() < CAPACITY / 4 * 3
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of listed ranges that are not managed.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// The range with this index. Valid only under the lock.
    #[must_use]
    pub fn get(&self, index: usize) -> Region {
        let entry = self.entry(index);
        Region {
            start: entry.start.load(Ordering::Relaxed),
            end: entry.end.load(Ordering::Relaxed),
            kind: Kind::from_bits(entry.kind.load(Ordering::Relaxed)),
        }
    }

    fn put(&self, index: usize, region: Region) {
        let entry = self.entry(index);
        entry.start.store(region.start, Ordering::Relaxed);
        entry.end.store(region.end, Ordering::Relaxed);
        entry.kind.store(region.kind.bits(), Ordering::Relaxed);
    }

    /// The range that contains `address`. Takes no lock.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<Region> {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            if before & 1 == 1 {
                sys::give_way();
                continue;
            }
            let index = self.first_behind(address);
            let found = (index < self.len()).then(|| self.get(index));
            fence(Ordering::Acquire);
            if self.sequence.load(Ordering::Relaxed) == before {
                return found.filter(|region| region.start <= address);
            }
        }
    }

    /// Index of the first range that ends after `address`.
    #[must_use]
    pub fn first_behind(&self, address: u64) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.entry(middle).end.load(Ordering::Relaxed) > address {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    /// Whether a range overlaps `[start, end)`; with `managed`, only managed ranges count.
    #[must_use]
    pub fn touches(&self, start: u64, end: u64, managed: bool) -> bool {
        if self.entries.load(Ordering::Relaxed).is_null() {
            return false;
        }
        let mut address = start;
        while address < end {
            match self.at_or_behind(address) {
                Some(region) if region.start < end => {
                    if region.kind.managed || !managed {
                        return true;
                    }
                    address = region.end;
                }
                _ => return false,
            }
        }
        false
    }

    /// The first range that ends after `address`. Takes no lock.
    pub fn at_or_behind(&self, address: u64) -> Option<Region> {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let index = self.first_behind(address);
            let found = (index < self.len()).then(|| self.get(index));
            fence(Ordering::Acquire);
            if before & 1 == 0 && self.sequence.load(Ordering::Relaxed) == before {
                return found;
            }
        }
    }

    /// The managed parts of `[start, end)`, in order, as they currently are. Takes no lock.
    pub fn managed(&self, start: u64, end: u64) -> impl Iterator<Item = Region> {
        let mut address = start;
        let known = !self.entries.load(Ordering::Relaxed).is_null();
        core::iter::from_fn(move || {
            while known && address < end {
                let found = self
                    .at_or_behind(address)
                    .filter(|region| region.start < end)?;
                let from = found.start.max(address);
                address = found.end;
                if found.kind.managed {
                    return Some(Region {
                        start: from,
                        end: found.end.min(end),
                        kind: found.kind,
                    });
                }
            }
            None
        })
    }

    /// Runs `body` while the sequence is odd. Inside [`Regions::replace`] it is odd already.
    fn change(&self, body: impl FnOnce()) {
        let nested = self.sequence.load(Ordering::Relaxed) & 1 == 1;
        if !nested {
            self.sequence.fetch_add(1, Ordering::AcqRel);
        }
        fence(Ordering::Release);
        body();
        if !nested {
            self.sequence.fetch_add(1, Ordering::Release);
        }
    }

    fn shift(&self, from: usize, to: usize) {
        let count = self.len();
        let base = self.entries.load(Ordering::Relaxed);
        // SAFETY: both ranges are in the reserved array (callers check the capacity); readers that
        // see a half-finished move read again, because the sequence is odd meanwhile.
        unsafe { core::ptr::copy(base.add(from), base.add(to), count - from) };
        self.count
            .store((count + to - from) as u32, Ordering::Release);
    }

    /// An unused number: from 1 up, and then those that have become free. Under the lock.
    pub fn free_number(&self) -> u16 {
        let next = || {
            let given = self.numbered.fetch_add(1, Ordering::Relaxed);
            let number = (given % u32::from(u16::MAX)) as u16 + 1;
            (number, given < u32::from(u16::MAX))
        };
        let taken = |number| (0..self.len()).any(|index| self.get(index).kind.id == number);
        // Each check scans the whole list: a duplicate number is better than an endless search.
        for _ in 0..MOST_LOOKS {
            let (number, fresh) = next();
            if fresh || !taken(number) {
                return number;
            }
        }
        next().0
    }

    /// Adds `region`, which overlaps no other; `false` if the list is full. Under the lock.
    pub fn add(&self, region: Region) -> bool {
        if self.len() >= CAPACITY {
            return false;
        }
        if region.kind.is_left_out() {
            self.left_out
                .fetch_add(region.end - region.start, Ordering::Relaxed);
        }
        let index = self.first_behind(region.start);
        self.change(|| {
            self.shift(index, index + 1);
            self.put(index, region);
        });
        true
    }

    /// Removes `[start, end)`, cutting ranges that extend beyond it. `false` if the list is too
    /// full to split one. Under the lock.
    pub fn remove(&self, start: u64, end: u64) -> bool {
        loop {
            let index = self.first_behind(start);
            if index >= self.len() {
                return true;
            }
            let region = self.get(index);
            if region.start >= end {
                return true;
            }
            let (left, right) = (region.start < start, region.end > end);
            if left && right && self.len() >= CAPACITY {
                return false;
            }
            if region.kind.is_left_out() {
                let gone = region.end.min(end) - region.start.max(start);
                self.left_out.fetch_sub(gone, Ordering::Relaxed);
            }
            self.change(|| match (left, right) {
                (true, true) => {
                    self.shift(index, index + 1);
                    self.put(
                        index,
                        Region {
                            end: start,
                            ..region
                        },
                    );
                    self.put(
                        index + 1,
                        Region {
                            start: end,
                            ..region
                        },
                    );
                }
                (true, false) => self.put(
                    index,
                    Region {
                        end: start,
                        ..region
                    },
                ),
                (false, true) => self.put(
                    index,
                    Region {
                        start: end,
                        ..region
                    },
                ),
                (false, false) => self.shift(index + 1, index),
            });
        }
    }

    /// Replaces everything that `region` covers by `region`. No reader sees the gap in between.
    /// Under the lock.
    pub fn replace(&self, region: Region) -> bool {
        self.sequence.fetch_add(1, Ordering::AcqRel);
        let done = self.remove(region.start, region.end) && self.add(region);
        self.sequence.fetch_add(1, Ordering::Release);
        done
    }

    /// In the child of a fork no thread holds the lock.
    pub fn forked(&self) {
        self.lock.reset();
    }
}

impl Default for Regions {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::KIND;
    use super::*;

    fn list(ranges: &[(u64, u64)]) -> Regions {
        let regions = Regions::new();
        assert!(regions.prepare());
        for &(start, end) in ranges {
            let kind = KIND;
            assert!(regions.add(Region { start, end, kind }));
        }
        regions
    }

    fn ranges(regions: &Regions) -> Vec<(u64, u64)> {
        let all = (0..regions.len()).map(|index| regions.get(index));
        all.map(|region| (region.start, region.end)).collect()
    }

    #[test]
    fn ranges_stay_sorted_and_are_found() {
        let regions = list(&[(50, 60), (10, 20), (30, 40)]);
        assert_eq!(ranges(&regions), [(10, 20), (30, 40), (50, 60)]);
        assert_eq!(regions.find(35).map(|region| region.start), Some(30));
        assert_eq!(regions.find(20), None);
        assert_eq!(regions.find(60), None);
        assert!(regions.touches(20, 31, true) && !regions.touches(20, 30, true));
    }

    #[test]
    fn removing_cuts_what_reaches_beyond() {
        let regions = list(&[(10, 100), (200, 300)]);
        assert!(regions.remove(40, 50));
        assert_eq!(ranges(&regions), [(10, 40), (50, 100), (200, 300)]);
        assert!(regions.remove(30, 250));
        assert_eq!(ranges(&regions), [(10, 30), (250, 300)]);
        assert!(regions.remove(0, 1000));
        assert!(regions.is_empty());
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let regions = list(&[(10, 100)]);
        assert_eq!(regions.left_out(), 0);
        let kind = Kind {
            managed: false,
            ..KIND
        };
        let (start, end) = (40, 60);
        assert!(regions.replace(Region { start, end, kind }));
        assert_eq!(regions.left_out(), 20);
        assert!(regions.remove(50, 55));
        assert_eq!(regions.left_out(), 15);
        assert!(regions.replace(Region {
            start: 30,
            end: 52,
            kind: KIND
        }));
        assert_eq!(regions.left_out(), 5);
        assert!(regions.remove(0, 1000));
        assert_eq!(regions.left_out(), 0);
    }

    #[test]
    fn numbers_in_use_are_not_given_again() {
        let regions = list(&[(10, 20)]);
        let given: Vec<u16> = (0..=u16::MAX).map(|_| regions.free_number()).collect();
        assert_eq!(given[..3], [1, 2, 3]);
        // The numbers wrap around: 7 belongs to the listed region.
        let again: Vec<u16> = (0..8).map(|_| regions.free_number()).collect();
        assert_eq!(
            (given[65_535], &again[..]),
            (1, &[2, 3, 4, 5, 6, 8, 9, 10][..])
        );
    }
}
