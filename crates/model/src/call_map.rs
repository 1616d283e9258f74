//! The calls of all faults as a tree: how often each path is taken, and what it costs.
//!
//! A node is a call path that ends in a function; repeated calls of one caller are one node.
//! Times are without interrupts and without time off the CPU, and add up: a node's total is its
//! own time plus the totals of its children (corrected ones up to clamping at zero).

use crate::fault_paths::{Class, Layer};
use serde::{Deserialize, Serialize};

/// The call paths of the faults of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallMap {
    /// Names that nodes refer to.
    pub functions: Vec<String>,
    /// Callers before what they call. Those without a caller are the outermost functions, one
    /// for each kind of fault and entry.
    pub nodes: Vec<CallNode>,
    /// Faults whose single calls are in [`CallNode::times`]; sums are over all faults.
    pub timed_faults: u64,
    /// Nodes left out because they are small, with everything below them.
    pub nodes_left_out: u64,
    /// Their own time, as traced, ns.
    pub self_ns_left_out: u64,
}

/// A call path that ends in a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallNode {
    /// Index in [`CallMap::functions`].
    pub function: u32,
    /// Index of the caller in [`CallMap::nodes`].
    pub parent: Option<u32>,
    /// The kind of the faults.
    pub class: Class,
    /// The part of a fault's work that the function's name stands for, if any.
    pub layer: Option<Layer>,
    /// Faults that take this path.
    pub faults: u64,
    /// Calls on this path.
    pub calls: u64,
    /// Traced calls below it, in all.
    pub calls_inside: u64,
    /// Time of the calls with all that they called, as traced, ns.
    pub total_ns: u64,
    /// The same without the tracer's cost, ns.
    pub corrected_total_ns: u64,
    /// How far that may be off, either way: the error of a call's cost, counted once for each call
    /// whose cost was taken off, ns.
    pub error_ns: u64,
    /// Own time of the calls, as traced, ns.
    pub self_ns: u64,
    /// The same without the tracer's cost, ns.
    pub corrected_self_ns: u64,
    /// Sum over the calls of total time times the latency of their fault, both as traced, ns²: with
    /// the sums of each it gives their covariance over any set of faults.
    pub total_by_latency: f64,
    /// Durations of single calls, as traced, in coarse buckets (eight per doubling): first
    /// value, first value past the bucket, count. A sample where there are many faults.
    pub times: Vec<(u64, u64, u64)>,
    /// The same without the tracer's cost.
    pub corrected_times: Vec<(u64, u64, u64)>,
}
