//! The regions, for statistics.

use crate::core::Pager;
use crate::core::regions::Region;
use crate::core::word::State;
use crate::page::PAGE_BYTES;
use crate::sys::signals::Blocked;
use core::sync::atomic::Ordering;
use pagewise_wire::shared::{self, REGIONS};

/// Writes the largest regions and their pages to the run's shared memory.
pub fn publish(pager: &Pager) {
    let Some(place) = pager.counters.place() else {
        return;
    };
    let _quiet = Blocked::new();
    // A survey is not worth waiting for.
    if !pager.regions.lock.attempt() {
        return;
    }
    let mut count = 0;
    let mut total = 0;
    for index in 0..pager.regions.len() {
        let region = pager.regions.get(index);
        if !region.kind.managed {
            continue;
        }
        total += 1;
        if count < REGIONS {
            describe(pager, &region, &place.regions[count]);
            count += 1;
        }
    }
    place.region_count.store(count as u32, Ordering::Relaxed);
    place.region_total.store(total, Ordering::Relaxed);
    pager.regions.lock.release();
}

fn describe(pager: &Pager, region: &Region, place: &shared::Region) {
    let (mut resident, mut dirty, mut evicted) = (0, 0, 0);
    let mut address = region.start;
    while address < region.end {
        if let Some(page) = pager.table.page_at(address) {
            match pager.table.word(page).state() {
                State::Dirty | State::Parked => dirty += 1,
                State::Clean => resident += 1,
                State::Evicted => evicted += 1,
                State::Empty => {}
            }
        }
        address += PAGE_BYTES as u64;
    }
    let kind = region.kind;
    let delivery = kind.delivery as u64 | (kind.why as u64) << 8 | u64::from(kind.role) << 16;
    place.start.store(region.start, Ordering::Relaxed);
    place.end.store(region.end, Ordering::Relaxed);
    place.delivery.store(delivery, Ordering::Relaxed);
    place.resident.store(resident + dirty, Ordering::Relaxed);
    place.dirty.store(dirty, Ordering::Relaxed);
    place.evicted.store(evicted, Ordering::Relaxed);
}
