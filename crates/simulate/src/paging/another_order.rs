//! The same pages in another order, as a server's next run uses them.

use pagewise_policy::trace::{ReferenceKind, Trace};
use pagewise_stats::Random;

/// Any fixed number, so that the answer is the same each time.
const SEED: u64 = 1;

/// What another run might record that uses the same pages, as many at a time as fit `pages` pages of memory,
/// each time without order.
#[must_use]
pub fn in_another_order(trace: &Trace, pages: u32) -> Trace {
    let mut other = trace.clone();
    other
        .references
        .retain(|one| one.kind != ReferenceKind::Remove);
    let mut random = Random::seeded(SEED);
    for stretch in other.references.chunks_mut(pages.max(1) as usize) {
        random.shuffle(stretch);
    }
    other
}
