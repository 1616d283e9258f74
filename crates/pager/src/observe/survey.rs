//! The regions, for statistics.

use crate::page::PAGE_BYTES;
use crate::paging::probation;
use crate::paging::regions::Region;
use crate::paging::{Pager, table::Table};
use crate::sync::{State, Word};
use crate::sys;
use core::sync::atomic::{AtomicU32, Ordering};
use pagewise_wire::shared::{self, REGIONS};

/// Nanoseconds between surveys.
const INTERVAL_NS: u64 = 500_000_000;
/// A survey reads each page's word. It takes at most one part in this many of a CPU: if memory is
/// so large that it would take more, surveys are less frequent.
const SHARE: u64 = 200;

/// Writes the largest regions and their pages to the run's shared memory. Returns the nanoseconds
/// until the next time.
pub fn publish(pager: &Pager) -> u64 {
    let Some(place) = pager.counters.place() else {
        return INTERVAL_NS;
    };
    let _quiet = pager.undisturbed();
    // A survey is not worth waiting for.
    if !pager.regions.lock.attempt() {
        return INTERVAL_NS / 10;
    }
    let began = sys::now_ns();
    let mut list = [None; REGIONS];
    let total = largest(pager, &mut list);
    // Words remain when their regions go, so changes of ranges need not wait for the rest.
    pager.regions.lock.release();
    let found = list.iter().flatten();
    let count = found.clone().count();
    for (region, place) in found.zip(&place.regions) {
        describe(pager, region, place);
    }
    place.region_count.store(count as u32, Ordering::Relaxed);
    place.region_total.store(total, Ordering::Relaxed);
    let returned = pager.distances.returned();
    place.distance_pages.store(returned, Ordering::Relaxed);
    let took = sys::now_ns() - began;
    place.survey_ns.fetch_add(took, Ordering::Relaxed);
    INTERVAL_NS.max(took * SHARE)
}

/// The largest managed regions, in the order of their addresses. Returns how many there are in all.
/// Under the regions' lock.
fn largest(pager: &Pager, list: &mut [Option<Region>; REGIONS]) -> u32 {
    let bytes = |region: &Option<Region>| region.map_or(0, |region| region.end - region.start);
    let mut total = 0;
    let mut least = 0;
    for index in 0..pager.regions.len() {
        let region = pager.regions.get(index);
        if !region.kind.managed {
            continue;
        }
        total += 1;
        if region.end - region.start <= least {
            continue;
        }
        if let Some(place) = list.iter_mut().min_by_key(|region| bytes(region)) {
            *place = Some(region);
        }
        least = list.iter().map(bytes).min().unwrap_or(0);
    }
    list.sort_unstable_by_key(|region| region.map_or(u64::MAX, |region| region.start));
    total
}

/// Pages of a region by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Census {
    clean: u64,
    dirty: u64,
    evicted: u64,
}

/// Counts the pages of `region`.
fn census(pager: &Pager, region: &Region) -> Census {
    let mut sum = Census::default();
    let mut parked = |word: Word| match probation::slot_of(pager, word) != 0 {
        true => sum.clean += 1,
        false => sum.dirty += 1,
    };
    let mut whole = [0; 3];
    each_part(&pager.table, region, |words| {
        count(words, &mut whole, &mut parked);
    });
    let [clean, dirty, evicted] = whole;
    Census {
        clean: sum.clean + clean,
        dirty: sum.dirty + dirty,
        evicted: sum.evicted + evicted,
    }
}

/// Adds up the clean, dirty and evicted pages of `words`, and calls `parked` for those that are
/// elsewhere. Without a branch in the common cases: neighbours often differ.
fn count(words: &[AtomicU32], whole: &mut [u64; 3], mut parked: impl FnMut(Word)) {
    let mut sums = [0_u32; 3];
    for cell in words {
        let word = Word(cell.load(Ordering::Relaxed));
        // Pages of files are clean here, and evicted once they have left.
        let state = match word.state() {
            State::File => State::Clean,
            State::Left => State::Evicted,
            other => other,
        };
        for (sum, one) in sums
            .iter_mut()
            .zip([State::Clean, State::Dirty, State::Evicted])
        {
            *sum += u32::from(state == one);
        }
        if state == State::Parked {
            parked(word.idle());
        }
    }
    for (whole, sum) in whole.iter_mut().zip(sums) {
        *whole += u64::from(sum);
    }
}

/// Calls `body` with the words of each part of `region` that is in one chunk.
fn each_part(table: &Table, region: &Region, mut body: impl FnMut(&[AtomicU32])) {
    let mut address = region.start;
    while address < region.end {
        let words = table.words(address, region.end);
        if words.is_empty() {
            return;
        }
        body(words);
        address += (words.len() * PAGE_BYTES) as u64;
    }
}

fn describe(pager: &Pager, region: &Region, place: &shared::Region) {
    let pages = census(pager, region);
    let kind = region.kind;
    let delivery = kind.delivery as u64
        | (kind.why as u64) << 8
        | u64::from(kind.role) << 16
        | u64::from(kind.id) << 32;
    let heat = pager
        .heat
        .verdicts(|page| (region.start..region.end).contains(&pager.table.address_of(page)));
    let [faults, refaults] = pager.region_counts.get(kind.id);
    place.start.store(region.start, Ordering::Relaxed);
    place.end.store(region.end, Ordering::Relaxed);
    place.delivery.store(delivery, Ordering::Relaxed);
    place.faults.store(faults, Ordering::Relaxed);
    place.refaults.store(refaults, Ordering::Relaxed);
    place
        .resident
        .store(pages.clean + pages.dirty, Ordering::Relaxed);
    place.dirty.store(pages.dirty, Ordering::Relaxed);
    place.evicted.store(pages.evicted, Ordering::Relaxed);
    let judged = [
        heat.soon_of,
        heat.soon,
        heat.written,
        heat.later_of,
        heat.later,
    ];
    for (place, count) in place.heat.iter().zip(judged) {
        place.store(count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_by_state() {
        let words = [
            Word::EMPTY,
            Word::new(State::Clean, 7),
            Word::new(State::Dirty, 0).busy(),
            Word::new(State::Evicted, 9),
            Word::new(State::Evicted, 3).busy(),
            Word::new(State::Parked, 300),
        ];
        let cells = words.map(|word| AtomicU32::new(word.0));
        let mut whole = [1; 3];
        let mut parked = Vec::new();
        count(&cells, &mut whole, |word| parked.push(word.slot()));
        assert_eq!((whole, parked), ([2, 2, 3], vec![300]));
    }
}
