//! Profiles: from samples to weighted stacks, and what stands out in them. Pure: no I/O, no clock.
#![forbid(unsafe_code)]

mod anomalies;
mod beside;
pub mod burst;
mod collect;
pub mod counters;
mod functions;
#[cfg(test)]
mod made;
mod rules;
mod summary;
pub mod unknown;
pub mod weigh;

pub use beside::add_samples;
pub use collect::ProfileCollector;
pub use rules::{ProfileRules, matches};
pub use summary::summarise;
pub use weigh::is_cpu;
