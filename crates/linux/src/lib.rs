//! The only access to the host's kernel: perf events, tracefs, `/proc`, cgroups, huge pages,
//! symbols on disk, and the observed processes.
//!
//! Everything here turns kernel interfaces into `pagewise_model` values and leaves their
//! interpretation to others. All `unsafe` is in [`sys`].
#![deny(unsafe_code)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

pub mod allocation_cost;
pub mod capability;
pub mod delays;
pub mod host;
pub mod hugepages;
pub mod journal;
pub mod left_behind;
pub mod memcg;
pub mod numa;
pub mod own_folder;
pub mod page_cache;
pub mod perf;
pub mod proc;
pub mod process;
pub mod pseudo_file;
pub mod regular_file;
pub mod swap_area;
pub mod symbols;
pub mod sys;
pub mod tracefs;
