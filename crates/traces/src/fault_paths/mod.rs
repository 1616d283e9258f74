//! Page faults as call trees: which kinds occur, how long they take, and where the time goes.
//!
//! [`Collector`] takes the complete calls of a trace as they arrive and keeps sums per shape of
//! tree and per call path; [`analyse()`] turns the sums into a [`FaultPaths`], corrected for the
//! tracer's own cost by a [`Calibration`].

mod analyse;
mod call_map;
#[cfg(test)]
mod call_map_tests;
mod call_times;
mod cells;
mod charges;
mod collector;
mod contexts;
mod contrast;
mod contributors;
mod corrected;
mod descent;
mod diff;
mod figures;
mod layer;
mod locks;
mod modes;
mod outline;
mod probe;
mod ranked;
mod reading;
mod roles;
mod rows;
mod sequences;
mod shapes;
mod signature;
mod stretches;
mod sums;
mod tally;
mod timeline;
mod trees;

pub use analyse::{analyse, losses};
pub use collector::Collector;
pub use descent::{Goal, Step};
pub use diff::{Criteria, Input, compare, compare_results};
pub use layer::{Layer, layer_of};
pub use modes::{Mode, modes};
pub use pagewise_model::fault_paths::{
    ClassFindings, Conservation, Contributor, FaultPaths, Latencies, Latency, LayerFindings,
    OtherCalls, Path, TimeSplit,
};
pub use probe::{
    Calibration, Misfit, Refusal, Source, Withdrawal, calibrate, calibrate_by_histogram,
    calibrate_by_notes, estimate,
};
pub use rows::Rows;
pub use signature::{Class, Signs, classify, signs_of};
pub use sums::{Sums, SumsError, Total};
pub use trees::{FrequentTrees, TreeQuery, frequent_trees};
