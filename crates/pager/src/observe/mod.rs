//! What the pager tells of itself: counters in shared memory, the regions, and recorded traces.

pub mod counters;
pub mod histogram;
pub mod places;
pub mod recorder;
pub mod survey;
