//! How pages are evicted: in batches, chosen by the policy, written from the tray.
//!
//! ```text
//!   dirty ──move──▶ tray ──write──▶ store         clean ──drop
//!     ▲              │ touched meanwhile              (its slot has it)
//!     └──────────────┘
//! ```
//!
//! Pages that cannot be moved (memory that may not be written, pages shared with the child of a
//! fork, old kernels) are written in place: [`super::in_place`].

use super::batch::{BATCH, List, keep};
use super::discard::discard;
use super::move_out::move_out;
use super::{Pager, fatal, in_place, move_down, probation, scan};
use crate::page::{PAGE_BYTES, Page};
use crate::store::{IN_MEMORY, Slot, StoreError};
use crate::sync::{Attempt, State, Word};
use crate::sys;
use core::sync::atomic::{AtomicU32, Ordering};
use pagewise_wire::settings::WhenFull;
use pagewise_wire::shared::capability;
use pagewise_wire::trace::Event;

/// The result of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch {
    /// Pages that the policy chose.
    pub chosen: usize,
    /// Pages that were evicted.
    pub evicted: usize,
    /// Why the store took none.
    pub error: Option<StoreError>,
}

/// Evicts up to a batch of pages. The caller holds the eviction lock and blocks signals.
pub fn evict(pager: &Pager) -> Batch {
    let mut chosen = [0; BATCH];
    let most = pager.budget.batch() as usize;
    let count = pager.policy().victims(&mut chosen[..most]);
    evict_these(pager, &mut chosen[..count])
}

/// Evicts `victims`, which have left the policy. Those that cannot be evicted are returned to it.
pub fn evict_these(pager: &Pager, victims: &mut [Page]) -> Batch {
    victims.sort_unstable();
    let count = victims.len();
    let mut clean = List::new();
    let mut dirty = List::new();
    let mut written = List::new();
    for &page in victims.iter() {
        classify(pager, page, [&mut clean, &mut dirty, &mut written]);
    }
    probation::drop_written(pager, written.all());
    for &(page, _) in written.all() {
        pager.happened(page, Event::Evicted);
    }
    let mut shared = in_place::count_shared(pager, &clean);
    let mut batch = Batch {
        chosen: count,
        evicted: drop_clean(pager, &clean) + written.all().len(),
        error: None,
    };
    let mut unmoved = List::new();
    match pager.can(capability::MOVE) {
        true => batch.evicted += move_out(pager, &dirty, 0, &mut unmoved, &mut batch.error),
        false => dirty.all().iter().for_each(|&(p, w)| unmoved.push(p, w)),
    }
    batch.evicted += in_place::evict(pager, &unmoved, &mut shared, &mut batch.error);
    let counters = &pager.counters;
    counters.add(|all| &all.evictions, 1);
    counters.add(|all| &all.pages_evicted, batch.evicted as u64);
    if batch.evicted > 0 {
        pager.shared_left(shared.min(batch.evicted) as u64);
        pager.budget.release(batch.evicted as u64);
    }
    batch
}

fn classify(pager: &Pager, page: Page, [clean, dirty, written]: [&mut List; 3]) {
    if !pager.table.is_page(page) {
        return;
    }
    let word = pager.table.word(page);
    if !word.is_resident() {
        return;
    }
    let locked = !word.is_busy() && pager.table.attempt(page, word) == Attempt::Locked(word);
    if !locked {
        pager.policy().kept(page);
        return;
    }
    let address = pager.table.address_of(page);
    let region = pager.regions.find(address);
    let pinned = pager.pins.holds(address);
    if pinned || region.is_none_or(|region| region.kind.locked) {
        keep(pager, page, word);
        return;
    }
    match word.state() {
        State::Clean | State::File => clean.push(page, word),
        State::Parked if probation::slot_of(pager, word) != 0 => written.push(page, word),
        _ => dirty.push(page, word),
    }
}

/// Drops pages that are unchanged in the store, or in the file that is mapped there.
fn drop_clean(pager: &Pager, clean: &List) -> usize {
    let all = clean.all();
    let mut dropped = 0;
    let mut lifted: [Slot; BATCH] = [0; BATCH];
    lift(pager, all, &mut lifted);
    let refused = discard(pager, all);
    for (place, &(page, word)) in all.iter().enumerate() {
        let is_refused = refused >> place & 1 == 1;
        if lifted[place] != 0 {
            let unused = if is_refused {
                lifted[place]
            } else {
                word.slot()
            };
            pager.store().release(unused);
        }
        if is_refused {
            keep(pager, page, word);
            continue;
        }
        let next = match (word.state(), lifted[place]) {
            (State::File, _) => Word::new(State::Left, 0),
            (_, 0) => Word::new(State::Evicted, word.slot()),
            (_, lifted) => Word::new(State::Evicted, lifted),
        };
        pager.table.unlock(page, next);
        pager.happened(page, Event::Dropped);
        dropped += 1;
    }
    pager
        .counters
        .add(|counters| &counters.pages_dropped, dropped as u64);
    dropped
}

/// Takes clean pages, which cannot change, to where they return from sooner, as far as there is room.
fn lift(pager: &Pager, all: &[(Page, Word)], lifted: &mut [Slot; BATCH]) {
    let mut buffer = None;
    for (&(page, word), place) in all.iter().zip(lifted) {
        let is_below = word.state() == State::Clean && word.slot() & IN_MEMORY == 0;
        if !is_below || pager.policy().is_swept(page) || !pager.store().lifts() {
            continue;
        }
        let buffer = buffer.get_or_insert_with(|| pager.scratch.take());
        let bytes = buffer.bytes(1).first_chunk_mut::<PAGE_BYTES>();
        if let Some(bytes) = bytes
            && scan::copy(pager.table.address_of(page), bytes)
        {
            *place = pager.store().lift(bytes).unwrap_or(0);
        }
    }
}

/// The store accepts no page, and faults wait for room: applies the user's choice for that case.
/// Returns whether to try again.
fn full(pager: &Pager, error: StoreError) -> bool {
    /// Nanoseconds between two attempts to write.
    const PAUSE_NS: u64 = 100_000_000;
    static NEVER: AtomicU32 = AtomicU32::new(0);
    let choice = pager.choices.when_full.load(Ordering::Relaxed);
    let exceeds = choice == WhenFull::Exceed as u32;
    if !fatal::is_full(error) || choice == WhenFull::End as u32 {
        fatal::store_failed(error);
    }
    fatal::store_full(
        error,
        match exceeds {
            true => "the program continues beyond its memory budget",
            false => "the program waits until there is room",
        },
    );
    if exceeds {
        pager.budget.set_overdraft(true);
    }
    sys::futex_wait(&NEVER, 0, Some(PAUSE_NS));
    let _evictions = pager.evictions.hold();
    pager.store().reclaim();
    !exceeds
}

/// Evicts until there is slack again. Returns whether that succeeded. The work of the evictor each
/// time it is woken.
pub fn make_room(pager: &Pager) -> bool {
    let mut fruitless = 0;
    while pager.budget.excess() > 0 && fruitless < 3 {
        pager.evictions.acquire();
        let batch = evict(pager);
        if batch.evicted > 0 && !pager.budget.is_short() {
            probation::look_ahead(pager);
        }
        move_down::surplus(pager);
        pager.evictions.release();
        pager.follow_store();
        pager.follow_copies();
        if pager.is_outdated() {
            pager.refresh_limit();
        }
        if batch.evicted > 0 {
            fruitless = 0;
            pager.budget.set_overdraft(false);
            continue;
        }
        fruitless += 1;
        if let Some(error) = batch.error
            && fruitless == 3
            && pager.budget.is_short()
            && full(pager, error)
        {
            return true;
        }
    }
    if fruitless == 3 && pager.budget.resident() >= pager.budget.limit() {
        pager.budget.set_overdraft(true);
    }
    fruitless < 3
}
