//! Belady's MIN (IBM Systems Journal 5(2), 1966): evict the page used farthest in the future. No
//! policy that reads pages only on demand reads fewer.

use std::collections::BinaryHeap;

use crate::paging::{Memory, Outcome};
use pagewise_policy::trace::{ReferenceKind, Trace};

const NEVER: u32 = u32::MAX;
const NOWHERE: u32 = 0;
const RESIDENT: u32 = 1;
const STORED: u32 = 2;

/// The outcome of the optimal policy, page by page, for a memory of this size.
#[must_use]
pub fn min(trace: &Trace, memory: Memory) -> Outcome {
    let next = next_uses(trace);
    let pages = trace.pages() as usize;
    let mut place = vec![NOWHERE; pages];
    let mut dirty = vec![false; pages];
    // The next use that counts; older entries of the heap are stale.
    let mut next_of = vec![NEVER; pages];
    let mut by_next: BinaryHeap<(u32, u32)> = BinaryHeap::new();
    let mut resident = 0;
    let mut outcome = Outcome::default();
    for (reference, next) in trace.references.iter().zip(next) {
        let page = reference.page as usize;
        if reference.kind == ReferenceKind::Remove {
            resident -= u32::from(place[page] == RESIDENT);
            place[page] = NOWHERE;
            continue;
        }
        outcome.uses += 1;
        if place[page] != RESIDENT {
            let stored = place[page] == STORED || trace.is_of_file(reference);
            outcome.refaults += u64::from(stored);
            outcome.pages_read += u64::from(stored);
            outcome.first_touches += u64::from(!stored);
            if resident == memory.pages {
                let victim = farthest(&mut by_next, &next_of, &place);
                outcome.evictions += 1;
                outcome.pages_written += u64::from(dirty[victim]);
                place[victim] = STORED;
                resident -= 1;
            }
            dirty[page] = !stored;
            place[page] = RESIDENT;
            resident += 1;
        }
        dirty[page] |= reference.kind == ReferenceKind::Write;
        next_of[page] = next;
        by_next.push((next, reference.page));
    }
    outcome
}

fn farthest(by_next: &mut BinaryHeap<(u32, u32)>, next_of: &[u32], place: &[u32]) -> usize {
    loop {
        let (next, page) = by_next.pop().expect("a full memory holds pages");
        let page = page as usize;
        if place[page] == RESIDENT && next_of[page] == next {
            return page;
        }
    }
}

/// For each reference the position of the page's next use; freed pages have none.
fn next_uses(trace: &Trace) -> Vec<u32> {
    let mut seen = vec![NEVER; trace.pages() as usize];
    let mut next = vec![NEVER; trace.references.len()];
    let positions = (0..NEVER).zip(&trace.references).collect::<Vec<_>>();
    for (position, reference) in positions.into_iter().rev() {
        let page = reference.page as usize;
        match reference.kind {
            ReferenceKind::Remove => seen[page] = NEVER,
            _ => {
                next[position as usize] = seen[page];
                seen[page] = position;
            }
        }
    }
    next
}
