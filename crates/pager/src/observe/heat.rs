//! Heat: how soon resident pages are used again, told by a few of them.
//!
//! User space has no accessed bits. So some resident pages, chosen at random, are moved to the lot
//! ([`crate::core::lot`]), where a touch costs a fault without I/O: those that come back within a
//! second are hot, within [`LATER_NS`] warm, the others cold. All of a sample are judged when the same
//! time has passed, touched or not, or the quick would count for too much.

use super::distances::hash;
use crate::core::regions::Region;
use crate::core::{Pager, lot};
use crate::page::Page;
use crate::sync::State;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Used within this time is hot, and written within it is in use for writing.
pub const SOON_NS: u64 = 1_000_000_000;
/// Used within this time is warm.
pub const LATER_NS: u64 = 8_000_000_000;
/// Most pages per second.
pub const MOST: u32 = 250;

/// Pages that are watched at a time: most are, or fewer are taken.
const PLACES: usize = 4096;
/// Judgements that are remembered, to tell regions apart.
const RECENT: usize = 2048;
/// Random places of memory that are looked at for pages in one turn.
const LOOKS: usize = 256;
/// Looks for each page that is wanted: where less of the memory than one in so many is resident, fewer
/// pages are watched.
const LOOKS_EACH: usize = 16;

/// A page that is watched, or a free place for one.
#[derive(Debug)]
struct Watch {
    /// The page plus one; 0 for none.
    page: AtomicU32,
    /// Bits below.
    flags: AtomicU32,
    since: AtomicU64,
    /// When it was used and written first, 0 before that.
    used: AtomicU64,
    written: AtomicU64,
}

/// It was moved for this, not for the policy.
const TAKEN: u32 = 1;
/// It was evicted.
const LEFT: u32 = 1 << 1;
/// It was judged after the shorter time.
const JUDGED: u32 = 1 << 2;

/// What became of pages of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Watched for [`SOON_NS`].
    pub soon_of: u32,
    /// Of these, used meanwhile.
    pub soon: u32,
    /// Of these, written.
    pub written: u32,
    /// Watched for [`LATER_NS`].
    pub later_of: u32,
    /// Of these, used meanwhile.
    pub later: u32,
}

/// In a judgement remembered: the page plus one from bit 8 on, and these.
const AFTER_LATER: u64 = 1;
const USED: u64 = 2;
const WRITTEN: u64 = 4;

/// The sample.
#[derive(Debug)]
pub struct Heat {
    /// Pages to take a second; 0 for none.
    rate: AtomicU32,
    places: [Watch; PLACES],
    recent: [AtomicU64; RECENT],
    judged: AtomicU64,
    noise: AtomicU64,
}

impl Heat {
    /// Nothing is watched.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rate: AtomicU32::new(0),
            places: [const {
                Watch {
                    page: AtomicU32::new(0),
                    flags: AtomicU32::new(0),
                    since: AtomicU64::new(0),
                    used: AtomicU64::new(0),
                    written: AtomicU64::new(0),
                }
            }; PLACES],
            recent: [const { AtomicU64::new(0) }; RECENT],
            judged: AtomicU64::new(0),
            noise: AtomicU64::new(0),
        }
    }

    /// Watches `rate` pages per second from now on.
    pub fn prepare(&self, rate: u32) {
        self.rate.store(rate.min(MOST), Ordering::Relaxed);
    }

    /// Whether any pages are watched.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.rate.load(Ordering::Relaxed) != 0
    }

    fn place(&self, page: Page) -> &Watch {
        &self.places[hash(page) as usize % PLACES]
    }

    fn find(&self, page: Page) -> Option<&Watch> {
        let place = self.place(page);
        let is_it = self.is_on() && place.page.load(Ordering::Relaxed) == page + 1;
        is_it.then_some(place)
    }

    /// `page` leaves the lot; whether it was moved there for this, and the policy knows nothing of it.
    pub fn returns(&self, page: Page) -> bool {
        let take = |place: &Watch| place.flags.fetch_and(!TAKEN, Ordering::Relaxed) & TAKEN != 0;
        self.find(page).is_some_and(take)
    }

    /// `page` is used, and perhaps written, at `now`.
    pub fn used(&self, page: Page, write: bool, now: impl Fn() -> u64) {
        let Some(place) = self.find(page) else {
            return;
        };
        let set = |moment: &AtomicU64| {
            let _ = moment.compare_exchange(0, now(), Ordering::Relaxed, Ordering::Relaxed);
        };
        set(&place.used);
        if write {
            set(&place.written);
        }
    }

    /// `page` was evicted: whoever wants it has to wait, and that is a use.
    pub fn left(&self, page: Page) {
        if let Some(place) = self.find(page) {
            place.flags.store(
                place.flags.load(Ordering::Relaxed) & !TAKEN | LEFT,
                Ordering::Relaxed,
            );
        }
    }

    fn watch(&self, page: Page, flags: u32, now: u64) {
        let place = self.place(page);
        place.flags.store(flags, Ordering::Relaxed);
        place.since.store(now, Ordering::Relaxed);
        place.used.store(0, Ordering::Relaxed);
        place.written.store(0, Ordering::Relaxed);
        place.page.store(page + 1, Ordering::Relaxed);
    }

    fn remember(&self, page: Page, what: u64) {
        let at = self.judged.fetch_add(1, Ordering::Relaxed) as usize % RECENT;
        let entry = (u64::from(page) + 1) << 8 | what;
        self.recent[at].store(entry, Ordering::Relaxed);
    }

    /// What the last judgements say of the pages between two addresses.
    #[must_use]
    pub fn of_region(&self, pager: &Pager, region: &Region) -> Verdicts {
        let mut sums = Verdicts::default();
        if !self.is_on() {
            return sums;
        }
        for entry in &self.recent {
            let entry = entry.load(Ordering::Relaxed);
            let Some(page) = (entry >> 8).checked_sub(1) else {
                continue;
            };
            let address = pager.table.address_of(page as Page);
            if (region.start..region.end).contains(&address) {
                sums.add(entry);
            }
        }
        sums
    }

    fn random(&self) -> u64 {
        let next = self.noise.load(Ordering::Relaxed).wrapping_add(1);
        self.noise.store(next, Ordering::Relaxed);
        hash(next as Page) ^ hash((next >> 32) as Page).rotate_left(32)
    }

    /// In the child of a fork nothing is watched: all pages stand where they belong.
    pub fn forked(&self) {
        for place in &self.places {
            place.page.store(0, Ordering::Relaxed);
        }
        for entry in &self.recent {
            entry.store(0, Ordering::Relaxed);
        }
    }
}

impl Default for Heat {
    fn default() -> Self {
        Self::new()
    }
}

impl Verdicts {
    fn add(&mut self, judgement: u64) {
        let is = |bit: u64| u32::from(judgement & bit != 0);
        if judgement & AFTER_LATER != 0 {
            self.later_of += 1;
            self.later += is(USED);
            return;
        }
        self.soon_of += 1;
        self.soon += is(USED);
        self.written += is(WRITTEN);
    }
}

/// What is to be done each `interval_ns`: judges pages that were watched long enough, lets them go, and
/// takes others.
pub fn tick(pager: &Pager, now: u64, interval_ns: u64) {
    let heat = &pager.heat;
    let rate = u64::from(heat.rate.load(Ordering::Relaxed));
    // What one turn's part leaves over is settled by chance.
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

/// Pages at random places of the managed memory; none where that is just changing.
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
        // In the order of addresses for one walk; found pages keep their chance order.
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

/// Watches `page` if it is resident; whether it does. Under the eviction lock.
fn take(pager: &Pager, page: Page, now: u64) -> bool {
    let heat = &pager.heat;
    if heat.place(page).page.load(Ordering::Relaxed) != 0 {
        return false;
    }
    let word = pager.table.word(page);
    // What the policy has out of reach is watched there.
    let flags = match lot::holds(word) {
        true => 0,
        false if matches!(word.state(), State::Clean | State::Dirty) => TAKEN,
        false => return false,
    };
    // Before it is out of reach: its use may follow at once.
    heat.watch(page, flags, now);
    let watched = flags == 0 || lot::watch(pager, page);
    if !watched {
        heat.place(page).page.store(0, Ordering::Relaxed);
    }
    watched
}

/// Judges the page at `place` if it is time, and lets it go after the last time. Under the eviction
/// lock.
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
            lot::give_back(pager, page);
        }
        place.page.store(0, Ordering::Relaxed);
    }
}

/// Counts whether `page` was used and written in time; `false` if nobody can tell.
fn judge(pager: &Pager, place: &Watch, page: Page, later: bool) -> bool {
    let since = place.since.load(Ordering::Relaxed);
    let limit = if later { LATER_NS } else { SOON_NS };
    let within = |moment: &AtomicU64| match moment.load(Ordering::Relaxed) {
        0 => false,
        moment => moment.saturating_sub(since) <= limit,
    };
    let was_used = place.used.load(Ordering::Relaxed) != 0;
    let has_left = place.flags.load(Ordering::Relaxed) & LEFT != 0;
    if !was_used && !has_left && !lot::holds(pager.table.word(page)) {
        // Given up by the program, or put back for a call on its range.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_use_counts_and_others_pages_do_not() {
        let heat = Box::leak(Box::new(Heat::new()));
        heat.used(7, true, || 5);
        heat.prepare(40);
        heat.watch(7, TAKEN, 100);
        heat.used(7, false, || 110);
        heat.used(7, true, || 120);
        heat.used(7, true, || 130);
        heat.used(8, true, || 140);
        let place = heat.find(7).expect("it is watched");
        let moments = [&place.used, &place.written].map(|one| one.load(Ordering::Relaxed));
        assert_eq!(moments, [110, 120]);
        assert!(heat.returns(7) && !heat.returns(7) && !heat.returns(8));
        heat.forked();
        assert!(heat.find(7).is_none());
    }

    #[test]
    fn judgements_add_up_by_their_time() {
        let mut sums = Verdicts::default();
        for judgement in [USED, USED | WRITTEN, 0, AFTER_LATER | USED, AFTER_LATER] {
            sums.add(judgement);
        }
        let wanted = Verdicts {
            soon_of: 3,
            soon: 2,
            written: 1,
            later_of: 2,
            later: 1,
        };
        assert_eq!(sums, wanted);
    }
}
