//! Events reported as pages come and go.

use super::Pager;
use crate::figures::recorder;
use crate::page::Page;
use crate::sync::State;
use crate::sys;
use core::sync::atomic::{AtomicU64, Ordering};
use pagewise_policy::{Fault, FaultKind};
use pagewise_wire::histogram;
use pagewise_wire::trace::Event;

impl Pager {
    /// Something happened to a page other than a fault. Evictions are reported by the holder of the
    /// eviction lock.
    #[inline]
    pub(super) fn happened(&self, page: Page, event: Event) {
        match event {
            Event::Evicted | Event::Dropped => {
                // A page of zeros has nothing to come back from the store.
                let state = self.table.word(page).state();
                let stored = matches!(state, State::Evicted | State::Left);
                self.distances.leave(stored.then_some(page));
                self.heat.left(page);
            }
            Event::Dirtied => self.heat.used(page, true, sys::now_ns),
            Event::Prefetched => self.came_back(page, false),
            _ => {}
        }
        recorder::record(page, event);
    }

    /// A page that was in memory but out of the program's reach is used.
    #[inline]
    pub(super) fn used(&self, page: Page, write: bool) {
        self.heat.used(page, write, sys::now_ns);
        recorder::record(page, Event::Sampled);
    }

    /// A page is missing, and a thread waits for it.
    #[inline]
    pub(super) fn faulted(&self, fault: &Fault) {
        self.heat.used(fault.page, fault.write, sys::now_ns);
        match fault.kind {
            FaultKind::Refault => self.came_back(fault.page, true),
            FaultKind::FirstTouch => self.distances.forget(fault.page),
        }
        recorder::fault(fault);
    }

    /// `page` came back from the store because a thread `waited` for it, or by read-ahead.
    fn came_back(&self, page: Page, waited: bool) {
        let Some(back) = self.distances.come_back(page) else {
            return;
        };
        let Some(all) = self.counters.place() else {
            return;
        };
        let add = |counter: &AtomicU64, amount| counter.fetch_add(amount, Ordering::Relaxed);
        let bucket = histogram::bucket(back.distance);
        if !waited {
            add(&all.distance_ahead[bucket], back.weight);
            return;
        }
        add(&all.distance_waited[bucket], back.weight);
        add(&all.distance_samples, 1);
        add(&all.distance_squares, back.weight * back.weight);
    }
}
