//! What the pager tells of itself: counters in shared memory, the regions, and recorded traces.

pub mod counters;
pub mod distances;
pub mod histogram;
pub mod places;
pub mod recorder;
pub mod region_counts;
pub mod survey;

use crate::core::Pager;
use crate::page::Page;
use pagewise_policy::{Fault, FaultKind};
use pagewise_wire::trace::Event;

/// Something happened to a page other than a fault.
#[inline]
pub fn happened(pager: &Pager, page: Page, event: Event) {
    match event {
        Event::Evicted | Event::Dropped => distances::evicted(pager, page),
        Event::Prefetched => distances::came_back(pager, page, false),
        _ => {}
    }
    recorder::record(page, event);
}

/// A page is missing, and someone waits for it.
#[inline]
pub fn faulted(pager: &Pager, fault: &Fault) {
    match fault.kind {
        FaultKind::Refault => distances::came_back(pager, fault.page, true),
        FaultKind::FirstTouch => pager.distances.forget(fault.page),
    }
    recorder::fault(fault);
}
