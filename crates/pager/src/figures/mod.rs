//! What is counted and recorded while pages come and go: below the core, which counts as it works, and
//! knowing nothing of it. What looks at the core's pages to tell more is [`crate::observe`].

pub mod counters;
pub mod distances;
pub mod heat;
pub mod histogram;
pub mod places;
pub mod recorder;
pub mod region_counts;
pub mod strangers;
