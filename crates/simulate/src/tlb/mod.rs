//! A simulator of address translation: which accesses miss the TLB, at which page size and at what
//! cost, with page sizes that change during the run.
//!
//! ```text
//!            levels of TLBs            beyond them
//!  address ─▶ L1 ─▶ L2 ─▶ … ─▶ refill: fixed cost by page size, or a page walk with its caches
//!             │
//!             └ each level: arrays that store small pages, huge pages or both
//! ```
//!
//! Processors are described as data ([`Machine`], `machines/*.toml`). Address spaces are native or
//! guests ([`Space`]). A guest's second stage has separate entries as in MIPS VZ, with the product
//! in the first levels, or the TLBs have only the product, with a nested walk as on x86 and Arm.
//! [`Engine::remap`] splits and collapses huge pages, with the invalidation that a kernel would do.
//!
//! [`Exact`] simulates every entry; [`Reuse`] estimates all sizes of fully associative LRU TLBs in
//! one pass over a sample of pages. Tests compare both with a plain engine.
//!
//! Not modelled: caches (a walk's reference costs the same wherever it hits), prefetch into the
//! TLB, coalescing of neighbouring pages, instruction fetches, global pages.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "page numbers are cut to the widths of TLB tags on purpose; counts are below 2^53"
)]

mod array;
mod chunks;
mod counts;
mod engine;
mod exact;
mod machine;
#[cfg(test)]
mod naive;
mod order;
mod ordered;
mod recency;
mod recent;
mod replacement;
mod reuse;
mod simulation;
pub mod steps;
#[cfg(test)]
mod tests;
mod visit;
mod walk;
pub mod workload;

pub use counts::Counts;
pub use engine::{Engine, Space, SpaceId};
pub use exact::Exact;
pub use machine::{
    Array, Level, Machine, MachineError, PageSize, Stage, Stages, Walk, WalkCache, shipped,
};
pub use replacement::Replacement;
pub use reuse::Reuse;
pub use simulation::{Point, Program, Run, Settings, Simulation};
pub use visit::Visit;
