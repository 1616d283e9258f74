//! Summary of a finished capture of the kernel's paths through page faults.

use crate::run::Ending;
use crate::units::{Bytes, Nanos};
use std::path::PathBuf;

/// A capture that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureSummary {
    /// The trace.
    pub path: PathBuf,
    /// Its size.
    pub size: Bytes,
    /// Faults with their paths.
    pub faults: u64,
    /// Calls in them.
    pub calls: u64,
    /// What the first phase chose, where there was one.
    pub choice: Option<ChosenFunctions>,
    /// Functions that may matter.
    pub candidates: usize,
    /// Functions that the kernel can trace at all.
    pub available: usize,
    /// What tracing cost the program.
    pub cost: TracingCost,
    /// CPU time of reading and writing the trace.
    pub own_cpu: Nanos,
    /// Seconds of CPU time that the program and its children used, where they were started here.
    pub program_cpu_s: Option<f64>,
    /// Functions that the kernel refused.
    pub rejected: Vec<String>,
    /// Events lost because the buffer was full, by CPU.
    pub lost: Vec<(u32, u64)>,
    /// The buffer of each CPU.
    pub buffer: Bytes,
    /// What in tracefs differs from before, in words.
    pub differences: Vec<String>,
    /// How the program ended, where it was started here.
    pub ending: Option<Ending>,
}

/// Functions that were traced after the first phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenFunctions {
    /// How many.
    pub traced: usize,
    /// Why others were left out.
    pub reason: String,
}

/// What tracing cost the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracingCost {
    /// Per call; `None` where that cannot be determined.
    pub of_call: Option<CallCost>,
    /// Faults traced without their paths, to measure it.
    pub root_only_faults: u64,
    /// Faults with and without paths side by side, if both exist.
    pub beside: Option<[FaultPace; 2]>,
}

/// What one traced call cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallCost {
    /// In nanoseconds.
    pub ns: f64,
    /// How far that may be off.
    pub error_ns: f64,
    /// All calls together, in seconds.
    pub total_s: f64,
    /// Whether it was measured, not estimated from the trace itself.
    pub is_measured: bool,
}

/// How faults came in stretches of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultPace {
    /// Mean time of a fault, in nanoseconds.
    pub mean_ns: f64,
    /// Faults per second.
    pub per_s: f64,
    /// Length of the stretches, in seconds.
    pub during_s: f64,
}
