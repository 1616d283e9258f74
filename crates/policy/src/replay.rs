//! `replay`: reads ahead in the order in which an earlier run of the program faulted.
//!
//! Pages of two runs are matched by region (in order of registration) and offset. The position in
//! the recording is searched again whenever the run leaves it: first nearby, then through an index
//! of every 16th entry. While the position is unknown nothing is read ahead, so a run that diverges
//! from the recording loses only the time of the search.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::page::{Arrival, Fault, Page, Plan, Role, Span};
use crate::policy::{Policy, leave_all_to};
use crate::trace::{ReferenceKind, Trace};

/// How far before and after the position a fault is searched for (threads interleave differently).
const NEAR_BEHIND: usize = 512;
const NEAR_AHEAD: usize = 4096;
/// The index contains one entry out of this many.
const INDEX_STEP: usize = 16;
/// A match this near to the position confirms it.
const CONFIRMED: usize = 32;
const FIRST_WINDOW: u32 = 16;
const MAX_WINDOW: u32 = 512;
/// Regions whose start is known.
const REGIONS: usize = 4096;

/// One fault of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    region: u16,
    offset: u32,
}

/// A recorded fault order, on top of an eviction policy.
pub struct Replay {
    name: String,
    inner: Box<dyn Policy>,
    order: Box<[Entry]>,
    /// Every 16th entry with its position, sorted.
    index: Box<[(Entry, u32)]>,
    /// First page of each region in this run, plus one; 0 if not known yet.
    starts: Box<[AtomicU32]>,
    /// Sizes of the regions in this run, for clipping.
    counts: Box<[AtomicU32]>,
    /// Position behind the last match in the lower half, window in the upper half.
    position: AtomicU64,
    /// Entries before this one were already requested.
    asked: AtomicU32,
    budget: u32,
}

impl Replay {
    /// Replays the faults of `trace` over `inner`.
    #[must_use]
    pub fn new(trace: &Trace, inner: Box<dyn Policy>, budget: u32) -> Self {
        let name = format!("replay+{}", inner.name());
        let mut order: Vec<Entry> = trace
            .references
            .iter()
            .filter(|one| one.kind != ReferenceKind::Remove)
            .map(|one| {
                let start = trace.regions.get(&one.region).map_or(0, |span| span.first);
                Entry {
                    region: one.region,
                    offset: one.page.saturating_sub(start),
                }
            })
            .collect();
        order.dedup();
        order.truncate(u32::MAX as usize);
        let mut index: Vec<(Entry, u32)> =
            order.iter().copied().zip(0..).step_by(INDEX_STEP).collect();
        index.sort_unstable();
        Replay {
            name,
            inner,
            order: order.into(),
            index: index.into(),
            starts: (0..REGIONS).map(|_| AtomicU32::new(0)).collect(),
            counts: (0..REGIONS).map(|_| AtomicU32::new(0)).collect(),
            position: AtomicU64::new(0),
            asked: AtomicU32::new(0),
            budget,
        }
    }

    /// Position of `entry` in the recording, the nearest to `position` that a cheap search finds.
    fn find(&self, entry: Entry, position: usize) -> Option<usize> {
        let end = (position + NEAR_AHEAD).min(self.order.len());
        let start = position.saturating_sub(NEAR_BEHIND).min(end);
        let ahead = self
            .order
            .get(position.min(end)..end)?
            .iter()
            .position(|one| *one == entry);
        ahead.map(|found| position + found).or_else(|| {
            let behind = self.order.get(start..position.min(end))?;
            behind
                .iter()
                .rposition(|one| *one == entry)
                .map(|found| start + found)
        })
    }

    /// A position of `entry` anywhere, the next one after `position` first.
    fn find_far(&self, entry: Entry, position: usize) -> Option<usize> {
        let after = u32::try_from(position).ok()?;
        let place = self.index.partition_point(|one| *one < (entry, after));
        let candidates = [
            self.index.get(place),
            place.checked_sub(1).and_then(|i| self.index.get(i)),
        ];
        let found = candidates
            .into_iter()
            .flatten()
            .find(|one| one.0 == entry)?;
        Some(found.1 as usize)
    }

    fn note_region(&self, fault: &Fault) {
        if let Some(start) = self.starts.get(usize::from(fault.region_id)) {
            start.store(fault.region.first + 1, Ordering::Relaxed);
            self.counts[usize::from(fault.region_id)].store(fault.region.count, Ordering::Relaxed);
        }
    }

    /// The page of this run that corresponds to `entry`, once its region has been seen.
    fn page(&self, entry: Entry) -> Option<Page> {
        let region = usize::from(entry.region);
        let start = self
            .starts
            .get(region)?
            .load(Ordering::Relaxed)
            .checked_sub(1)?;
        let inside = entry.offset < self.counts[region].load(Ordering::Relaxed);
        inside.then_some(start + entry.offset)
    }

    fn plan(&self, from: usize, window: u32, plan: &mut Plan) {
        let until = (from + window as usize).min(self.order.len());
        let asked = self.asked.load(Ordering::Relaxed) as usize;
        // After a jump, what was requested elsewhere is irrelevant.
        let first = if (from..=until).contains(&asked) {
            asked
        } else {
            from
        };
        let mut next = first;
        for entry in self.order.get(first..until).unwrap_or(&[]) {
            if let Some(page) = self.page(*entry)
                && !plan.read_ahead(Span {
                    first: page,
                    count: 1,
                })
            {
                break;
            }
            next += 1;
        }
        self.asked
            .store(u32::try_from(next).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

impl Policy for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn faulted(&self, fault: &Fault, plan: &mut Plan) {
        self.note_region(fault);
        let offset = fault.page.saturating_sub(fault.region.first);
        let entry = Entry {
            region: fault.region_id,
            offset,
        };
        let old = self.position.load(Ordering::Relaxed);
        let (position, window) = unpack(old);
        let near = self.find(entry, position as usize);
        let Some(found) = near.or_else(|| self.find_far(entry, position as usize)) else {
            self.position
                .store(pack(position, window / 2), Ordering::Relaxed);
            self.inner.faulted(fault, plan);
            return;
        };
        // A page that faulted more than once in the recording can match by chance; only the next
        // fault, just behind, shows that this is the right place.
        let confirmed = found.abs_diff(position as usize) <= 2 * window as usize + CONFIRMED;
        let largest = MAX_WINDOW.min(self.budget / 16).max(FIRST_WINDOW);
        let window = if confirmed {
            (window * 2).clamp(FIRST_WINDOW, largest)
        } else {
            0
        };
        let next = u32::try_from(found + 1).unwrap_or(u32::MAX);
        self.position.store(pack(next, window), Ordering::Relaxed);
        self.plan(found + 1, window, plan);
    }

    fn mapped(&self, page: Page, how: Arrival) {
        self.inner.mapped(page, how);
    }

    leave_all_to!(inner);

    fn hint(&self, pages: Span, role: Role) {
        self.inner.hint(pages, role);
    }

    fn forked(&self) {
        self.inner.forked();
    }
}

fn pack(position: u32, window: u32) -> u64 {
    u64::from(window) << 32 | u64::from(position)
}

fn unpack(packed: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = packed.to_le_bytes();
    (
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    )
}
