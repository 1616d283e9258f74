//! Huge pages: the machine's settings and counters ([`settings`]), which parts of a process they
//! map ([`map`]), changing that from outside ([`actuator`]), and undoing it ([`journal`]).
//!
//! Collapsing is ABI: `MADV_COLLAPSE` through `process_madvise(2)`, Linux 6.1. Splitting is not: it
//! is a side effect of `MADV_COLD` on a part of a huge page (`madvise_cold_or_pageout_pte_range`,
//! mm/madvise.c), so [`trial`] checks whether this kernel does it before anything relies on it.
//! Every change is verified by `PAGEMAP_SCAN`, because both calls report success for pages that
//! they left unchanged.

pub mod actuator;
pub mod chase;
pub mod first_touch;
pub mod journal;
pub(crate) mod left;
pub mod map;
pub mod progress;
pub mod settings;
pub mod system;
pub mod trial;
pub mod vmm;
pub mod walks;
pub mod zeros;

pub use settings::{Pool, Size, Transparent, pools, transparent};
