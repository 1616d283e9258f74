//! What the pager tells of itself: counters in shared memory, the regions, and recorded traces.

pub mod counters;
pub mod distances;
pub mod heat;
pub mod histogram;
pub mod places;
pub mod recorder;
pub mod region_counts;
pub mod strangers;
pub mod survey;

use crate::core::Pager;
use crate::page::Page;
use crate::sys;
use pagewise_policy::{Fault, FaultKind};
use pagewise_wire::trace::Event;

/// Something happened to a page other than a fault.
#[inline]
pub fn happened(pager: &Pager, page: Page, event: Event) {
    match event {
        Event::Evicted | Event::Dropped => {
            distances::evicted(pager, page);
            pager.heat.left(page);
        }
        Event::Dirtied => pager.heat.used(page, true, sys::now_ns),
        Event::Prefetched => distances::came_back(pager, page, false),
        _ => {}
    }
    recorder::record(page, event);
}

/// A page that was out of the program's reach, but in memory, is used.
#[inline]
pub fn used(pager: &Pager, page: Page, write: bool) {
    pager.heat.used(page, write, sys::now_ns);
    recorder::record(page, Event::Sampled);
}

/// A page is missing, and someone waits for it.
#[inline]
pub fn faulted(pager: &Pager, fault: &Fault) {
    pager.heat.used(fault.page, fault.write, sys::now_ns);
    match fault.kind {
        FaultKind::Refault => distances::came_back(pager, fault.page, true),
        FaultKind::FirstTouch => pager.distances.forget(fault.page),
    }
    recorder::fault(fault);
}
