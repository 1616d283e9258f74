//! The data types and units of Pagewise.
//!
//! Everything that crates exchange is defined here as plain data: what was recorded ([`event`],
//! [`recording`], [`timeline`], [`host`]), what it means ([`findings`]), what to do about it
//! ([`advice`]) and whether that helped ([`proof`]). Nothing here opens a file or calls
//! the kernel.
#![forbid(unsafe_code)]

pub mod account;
pub mod address_space;
pub mod advice;
pub mod allocator;
pub mod annotated;
pub mod answer;
pub mod balance;
pub mod bench;
pub mod busiest;
pub mod call_map;
pub mod capability;
pub mod capture_summary;
pub mod column;
pub mod contention;
pub mod delays;
pub mod diagnosis;
pub mod event;
pub mod fault_diff;
pub mod fault_paths;
pub mod fault_row;
pub mod findings;
mod frame;
pub mod gate;
pub mod histogram;
pub mod host;
pub mod huge_map;
pub mod huge_pages;
pub mod huge_simulation;
pub mod huge_undo;
pub mod implausible;
pub mod kernel_threads;
pub mod known;
pub mod looks;
pub mod loss;
pub mod memory;
pub mod memory_limit;
pub mod mined;
pub mod normal_name;
pub mod numa;
pub mod outliers;
pub mod paged_run;
pub mod paging;
pub mod paging_simulation;
mod pairs;
pub mod probe;
pub mod profile;
pub mod profile_diff;
pub mod profile_findings;
pub mod proof;
pub mod quantity;
pub mod ratio;
pub mod recording;
pub mod run;
pub mod run_diff;
#[cfg(feature = "schema")]
pub mod schema;
pub mod secrets;
pub mod side;
pub mod stack;
mod stack_tree;
pub mod symbol;
pub mod tasks;
pub mod timeline;
pub mod trace_note;
pub mod tuning;
pub mod units;
mod verdicts;
pub mod watch;
