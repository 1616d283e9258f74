//! How much of the budget is left for managed pages: the whole, less everything else that is
//! resident. The budget covers the process, not only its regions.

use super::{Pager, hold, scan};
use crate::figures::places;
use crate::page::PAGE_BYTES;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A quarter of the budget always goes to managed pages; otherwise a program with much other memory
/// would only thrash.
const LEAST_SHARE: u64 = 4;

/// What the limit was computed from. Two threads may measure at a time: each number is one that held a
/// moment ago, and the next measurement sets all of them.
#[derive(Debug)]
pub struct Measured {
    /// Bytes that the whole process may keep resident.
    pub total_bytes: AtomicU64,
    /// The share of the run's budget from which the limit was set.
    share_seen: AtomicU64,
    /// Pages that have freed no memory since then when they were evicted, as other processes still have
    /// them, or that took more when they were copied.
    shared_gone: AtomicU64,
    /// Bytes that were left out when the limit was set.
    pub(super) left_out_seen: AtomicU64,
    /// Pages of memory that the store had when the limit was set.
    store_pages: AtomicU64,
    /// Whether nothing is evicted.
    pub(super) holding: AtomicBool,
    /// Whether that is for an external reader, who has all pages in memory.
    pub(super) is_read: AtomicBool,
}

impl Measured {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            total_bytes: AtomicU64::new(0),
            share_seen: AtomicU64::new(0),
            shared_gone: AtomicU64::new(0),
            left_out_seen: AtomicU64::new(0),
            store_pages: AtomicU64::new(0),
            holding: AtomicBool::new(false),
            is_read: AtomicBool::new(false),
        }
    }
}

impl Default for Measured {
    fn default() -> Self {
        Self::new()
    }
}

impl Pager {
    /// Measures other resident memory again, and sets the limit.
    pub fn refresh_limit(&self) {
        if let Some(share) = places::share() {
            self.take_share(share);
        }
        self.measured
            .left_out_seen
            .store(self.regions.left_out(), Ordering::Relaxed);
        let total = self.measured.total_bytes.load(Ordering::Relaxed) / PAGE_BYTES as u64;
        let managed = self.budget.resident();
        let [resident, of_files] = scan::resident_pages().unwrap_or([0, 0]);
        let other = resident.saturating_sub(managed) + page_table_pages(managed);
        let left = total.saturating_sub(other);
        let limit = left.max(least_of(total));
        // Below its least share, managed memory makes room no more.
        let excess = match limit > left {
            true => (other + managed).saturating_sub(total),
            false => 0,
        };
        self.file_pages.measured(of_files, excess, total);
        self.measured
            .store_pages
            .store(self.pages_of_store(), Ordering::Relaxed);
        self.budget.set_limit(match self.holds_all() {
            true => hold::ALL,
            false => limit.max(64),
        });
        let counters = &self.counters;
        counters.set(|all| &all.limit_pages, limit);
        counters.set(|all| &all.unmanaged_bytes, other * PAGE_BYTES as u64);
        counters.set(|all| &all.resident_pages, managed);
        counters.set(|all| &all.peak_pages, self.budget.peak());
        let smallest = self.taking.smallest.load(Ordering::Relaxed);
        counters.set(|all| &all.smallest_bytes, smallest);
        let usage = self.store().usage();
        counters.set(|all| &all.store_memory_bytes, usage.memory_bytes);
        places::tell_store(usage.disk_bytes);
    }

    /// Whether the share of the run's budget has changed since the limit was set.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        places::share()
            .is_some_and(|share| share != self.measured.share_seen.load(Ordering::Relaxed))
    }

    /// The budget is this share plus the pages shared with other processes, except those of them
    /// that have been evicted since the share was assigned.
    fn take_share(&self, share: u64) {
        if self.measured.share_seen.swap(share, Ordering::Relaxed) != share {
            self.measured.shared_gone.store(0, Ordering::Relaxed);
        }
        let gone = self.measured.shared_gone.load(Ordering::Relaxed) * PAGE_BYTES as u64;
        let total = share.saturating_sub(gone);
        self.measured.total_bytes.store(total, Ordering::Relaxed);
        self.store().hold_to(total, places::tree());
        self.counters.set(|all| &all.budget_bytes, share);
    }

    /// This many pages were evicted that another process still has: they freed no memory, and any
    /// page in their place would belong to this process alone.
    pub(super) fn shared_left(&self, pages: u64) {
        if pages == 0 || places::share().is_none() || self.holds_all() {
            return;
        }
        self.measured
            .shared_gone
            .fetch_add(pages, Ordering::Relaxed);
        let least = least_of(self.measured.total_bytes.load(Ordering::Relaxed) / PAGE_BYTES as u64);
        let limit = self.budget.limit().saturating_sub(pages);
        self.budget.set_limit(limit.max(least).max(64));
    }

    /// Corrects the limit by what the store has grown or shrunk since, between measurements: a
    /// store in memory uses part of the room that it frees.
    pub fn follow_store(&self) {
        let now = self.pages_of_store();
        let before = self.measured.store_pages.swap(now, Ordering::Relaxed);
        if now != before && !self.holds_all() {
            let least =
                least_of(self.measured.total_bytes.load(Ordering::Relaxed) / PAGE_BYTES as u64);
            let limit = (self.budget.limit() + before).saturating_sub(now);
            self.budget.set_limit(limit.max(least).max(64));
        }
    }

    fn pages_of_store(&self) -> u64 {
        self.store().usage().memory_bytes / PAGE_BYTES as u64
    }
}

/// Of a process that may keep `total` pages, those that managed memory keeps whatever else there is. A
/// share includes all that cannot be managed, and may be larger than the run's budget.
fn least_of(total: u64) -> u64 {
    total.min(of_run(total * PAGE_BYTES as u64) / PAGE_BYTES as u64) / LEAST_SHARE
}

/// The run's budget in bytes, or `own` where each process has its own.
pub(super) fn of_run(own: u64) -> u64 {
    match places::tree() {
        0 => own,
        tree => tree,
    }
}

/// Pages of page tables for this many resident pages: 8 bytes each, and the same again for evicted
/// pages.
fn page_table_pages(resident: u64) -> u64 {
    resident / 256
}

/// Resident bytes of this process; 0 if the kernel does not report it.
#[must_use]
pub fn resident_bytes() -> u64 {
    scan::resident_pages().map_or(0, |[all, _]| all) * PAGE_BYTES as u64
}
