//! Chooses the pages that [`crate::figures::heat`] follows, has the core move them out of the program's
//! reach, and judges them.

use crate::figures::heat::{
    AFTER_LATER, JUDGED, LATER_NS, LEFT, SOON_NS, TAKEN, USED, WRITTEN, Watch,
};
use crate::page::Page;
use crate::paging::{Pager, fetch_back, probation};
use crate::sync::State;
use core::sync::atomic::{AtomicU64, Ordering};

/// Random positions of memory that are checked for pages in one turn.
const LOOKS: usize = 256;
/// Checks per wanted page: if less than one in this many pages of the memory is resident, fewer
/// pages are watched.
const LOOKS_EACH: usize = 16;

/// The work for each `interval_ns`: judges pages that were watched long enough, releases them, and
/// takes others.
pub fn tick(pager: &Pager, now: u64, interval_ns: u64) {
    let heat = &pager.heat;
    let rate = u64::from(heat.rate.load(Ordering::Relaxed));
    // The fractional part of a turn's share is decided at random.
    let share = rate * interval_ns + heat.random() % SOON_NS;
    let wanted = (share / SOON_NS) as usize;
    let mut pages = [None; LOOKS];
    let looks = (wanted * LOOKS_EACH).min(LOOKS);
    choose(pager, &mut pages[..looks]);
    let _evictions = pager.evictions.hold();
    for place in &heat.places {
        review(pager, place, now);
    }
    let mut taken = 0;
    for page in pages[..looks].iter().flatten() {
        if taken == wanted {
            return;
        }
        taken += usize::from(take(pager, *page, now));
    }
}

/// Pages at random positions of the managed memory; none if it is just changing.
fn choose(pager: &Pager, pages: &mut [Option<Page>]) {
    if !pager.regions.lock.attempt() {
        return;
    }
    let managed = || {
        let all = (0..pager.regions.len()).map(|index| pager.regions.get(index));
        all.filter(|region| region.kind.managed)
    };
    let whole: u64 = managed().map(|region| region.end - region.start).sum();
    let mut places = [(0, 0); LOOKS];
    let places = &mut places[..pages.len()];
    if whole > 0 {
        for (number, place) in places.iter_mut().enumerate() {
            *place = (pager.heat.random() % whole, number);
        }
        // In the order of addresses for one walk; found pages keep their random order.
        places.sort_unstable();
        let mut before = 0;
        let mut rest = &*places;
        for region in managed() {
            let end = before + (region.end - region.start);
            let here = rest.partition_point(|(offset, _)| *offset < end);
            for (offset, number) in &rest[..here] {
                let address = region.start + (offset - before);
                pages[*number] = pager.table.page_at(address);
            }
            (rest, before) = (&rest[here..], end);
        }
    }
    pager.regions.lock.release();
}

/// Watches `page` if it is resident. Returns whether it does. Under the eviction lock.
fn take(pager: &Pager, page: Page, now: u64) -> bool {
    let heat = &pager.heat;
    if heat.place(page).page.load(Ordering::Relaxed) != 0 {
        return false;
    }
    let word = pager.table.word(page);
    // Pages that the policy has moved out of reach are watched there.
    let flags = match probation::holds(word) {
        true => 0,
        false if matches!(word.state(), State::Clean | State::Dirty) => TAKEN,
        false => return false,
    };
    // Before it is out of reach, since its use may follow at once.
    heat.watch(page, flags, now);
    let watched = flags == 0 || probation::watch(pager, page);
    if !watched {
        heat.place(page).page.store(0, Ordering::Relaxed);
    }
    watched
}

/// Judges the page at `place` if it is time, and releases it after the last time. Under the
/// eviction lock.
fn review(pager: &Pager, place: &Watch, now: u64) {
    let Some(page) = place.page.load(Ordering::Relaxed).checked_sub(1) else {
        return;
    };
    let age = now.saturating_sub(place.since.load(Ordering::Relaxed));
    let flags = place.flags.load(Ordering::Relaxed);
    if age >= SOON_NS && flags & JUDGED == 0 {
        place.flags.fetch_or(JUDGED, Ordering::Relaxed);
        if !judge(pager, place, page, false) {
            place.page.store(0, Ordering::Relaxed);
            return;
        }
    }
    if age >= LATER_NS {
        judge(pager, place, page, true);
        if flags & TAKEN != 0 {
            fetch_back::give_back(pager, page);
        }
        place.page.store(0, Ordering::Relaxed);
    }
}

/// Counts whether `page` was used and written in time; `false` if that is unknown.
fn judge(pager: &Pager, place: &Watch, page: Page, later: bool) -> bool {
    let since = place.since.load(Ordering::Relaxed);
    let limit = if later { LATER_NS } else { SOON_NS };
    let within = |moment: &AtomicU64| match moment.load(Ordering::Relaxed) {
        0 => false,
        moment => moment.saturating_sub(since) <= limit,
    };
    let was_used = place.used.load(Ordering::Relaxed) != 0;
    let has_left = place.flags.load(Ordering::Relaxed) & LEFT != 0;
    if !was_used && !has_left && !probation::holds(pager.table.word(page)) {
        // Given back by the program, or put back for a call on its range.
        return false;
    }
    let (used, written) = (within(&place.used), within(&place.written));
    let bits = |set: bool, bit| if set { bit } else { 0 };
    let what = bits(later, AFTER_LATER) | bits(used, USED) | bits(written, WRITTEN);
    pager.heat.remember(page, what);
    let counters = &pager.counters;
    if later {
        counters.add(|all| &all.heat_later_of, 1);
        counters.add(|all| &all.heat_later, u64::from(used));
    } else {
        counters.add(|all| &all.heat_soon_of, 1);
        counters.add(|all| &all.heat_soon, u64::from(used));
        counters.add(|all| &all.heat_written, u64::from(written));
    }
    true
}
