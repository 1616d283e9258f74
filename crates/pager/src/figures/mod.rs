//! Figures that are counted and recorded while pages come and go. This module is below the core,
//! which counts as it works, and does not depend on the core. Code that examines the core's pages
//! is in [`crate::observe`].

pub mod counters;
pub mod distances;
pub mod heat;
pub mod places;
pub mod recorder;
pub mod region_counts;
pub mod unmanaged;
