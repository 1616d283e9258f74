//! How pages are read before they are missed.

use super::Pager;
use super::cluster::{Cluster, Reach};
use super::resolve::Work;
use super::scratch::BUFFER_PAGES;
use crate::page::{PAGE_BYTES, Page};
use crate::store::Slot;
use crate::sync::State;
use pagewise_policy::Span;

/// Brings in the evicted pages of `span` that are cheap to read, without a thread waiting for them.
pub fn read_ahead(pager: &Pager, span: Span) {
    let mut page = span.first;
    while page < span.end() {
        page += read_run(pager, page, span).max(1);
    }
}

/// Brings in the run that starts at `page`. Returns its length. Waits for room: pages that are
/// wanted soon are worth more than those chosen for eviction.
fn read_run(pager: &Pager, page: Page, span: Span) -> u32 {
    let word = pager.table.word(page);
    let address = pager.table.address_of(page);
    let in_file = !word.is_busy() && pager.is_in_file(word, address);
    if word.is_busy() || (word.state() != State::Evicted && !in_file) {
        return 1;
    }
    let region = pager.regions.find(address);
    let Some(region) = region.filter(|region| region.kind.managed) else {
        return 1;
    };
    let rest = Span {
        first: page,
        count: span.end() - page,
    };
    // First room, then the page: a thread that waits for room must not hold what the evictor needs.
    let room = u64::from(rest.count).min(BUFFER_PAGES as u64);
    pager.budget.reserve(room);
    let work = Work::unasked(pager, region, page);
    let entered = pager.table.enter(page, word, &pager.gate);
    if !entered || !work.is_current() {
        if entered {
            pager.table.unlock(page, word);
        }
        pager.budget.release(room);
        return 1;
    }
    if in_file {
        return work.read_file_ahead(word, rest, room - 1);
    }
    let mut cluster = work.gather(page, word, rest, room - 1, Reach::Any);
    let count = cluster.count as u32;
    let mut buffer = pager.scratch.take();
    let bytes = buffer.bytes(cluster.count);
    work.fill_ahead(&mut cluster, bytes);
    count
}

impl Work<'_> {
    /// As `Work::read`, but without a waiting thread or a demanded page: an error leaves the pages
    /// as they are.
    fn fill_ahead(&self, cluster: &mut Cluster, bytes: &mut [u8]) {
        let mut slots: [Slot; BUFFER_PAGES] = [0; BUFFER_PAGES];
        for (slot, (_, word)) in slots.iter_mut().zip(cluster.pages()) {
            *slot = word.slot();
        }
        let wanted = &mut bytes[..cluster.count * PAGE_BYTES];
        if self
            .pager
            .store()
            .read(&slots[..cluster.count], wanted)
            .is_err()
        {
            (0..cluster.count).for_each(|place| self.give_up(cluster, place));
            return;
        }
        let counters = &self.pager.counters;
        counters.add(|all| &all.pages_read, cluster.count as u64);
        counters.add(|all| &all.pages_prefetched, cluster.count as u64);
        // No page is the demanded one.
        let nobody = Work {
            page: Page::MAX,
            ..*self
        };
        nobody.map_all(cluster, bytes);
    }
}
