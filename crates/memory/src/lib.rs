//! Pages and heaps become an account of memory: rows that add up to what the kernel counts.
//!
//! Pure: no I/O, no clock, and no sentences. [`Extents`] takes the tiles of heaps while they are
//! read and says how many bytes of each kind are on pages that are present; [`mod@account`] joins that
//! with the mappings; [`mod@finding`] says what the account shows, [`mod@run`] what a run shows.
#![forbid(unsafe_code)]

mod account;
mod draws;
mod extents;
mod finding;
mod groups;
mod limit;
mod places;
mod reach;
mod run;

pub use account::{MappingFacts, MappingKind, ProcessFacts, UnreadRange, account};
pub use draws::Draw;
pub use extents::{Extent, ExtentSums, Extents, HeapsSeen, PageBytes};
pub use finding::{finding, finding_of_growth};
pub use groups::{DrawnBlock, Owners, groups};
pub use limit::{next_limit, smallest_limit};
pub use reach::{Block, Graph, LiveBlocks, Unreached};
pub use run::{Judged, Largest, judge};
