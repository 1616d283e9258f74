//! Profiles: from events to weighted stacks, what stands out in them, and how two of them differ.

mod anomalies;
mod beside;
mod burst;
mod collect;
mod counters;
pub mod diff;
mod functions;
mod rules;
mod summary;
#[cfg(test)]
pub(crate) mod tests;
mod unknown;
mod weigh;

pub use beside::add_samples;
pub use collect::ProfileCollector;
pub use rules::ProfileRules;
pub use summary::summarise;
