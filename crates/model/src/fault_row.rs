//! One fault as a row of a table, for exports.

use crate::fault_paths::Class;

/// A fault of a trace. Times are nanoseconds; corrected ones are without the tracer's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRow {
    /// When it began, by the trace's clock; `None` without a time column.
    pub start_ns: Option<u64>,
    /// The CPU on which it began.
    pub cpu: Option<u32>,
    /// The task.
    pub pid: Option<u32>,
    /// The kind.
    pub class: Class,
    /// Its call tree: equal trees have equal numbers, in every trace; see [`PathRow`].
    pub path_id: u64,
    /// Traced calls inside.
    pub calls: u64,
    /// From begin to end, everything included.
    pub total_ns: u64,
    /// On the CPU: without interrupts and waits.
    pub on_cpu_ns: u64,
    /// The same, corrected.
    pub corrected_on_cpu_ns: u64,
    /// How far that may be off, either way: the error of the tracer's cost, times the calls.
    pub error_ns: u64,
    /// In the outermost function itself.
    pub self_ns: u64,
    /// The same, corrected.
    pub corrected_self_ns: u64,
    /// In interrupts.
    pub interrupts_ns: u64,
    /// Runnable, while another task ran.
    pub runnable_ns: u64,
    /// Asleep.
    pub blocked_ns: u64,
    /// Off the CPU for an unknown reason.
    pub off_cpu_ns: u64,
    /// Getting the mmap or VMA lock before the fault, as traced.
    pub lock_before_ns: u64,
    /// Getting it inside the fault, waits included.
    pub lock_ns: u64,
    /// The same, corrected.
    pub corrected_lock_ns: u64,
}

/// A call tree that faults share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRow {
    /// A hash of the functions and their depths.
    pub path_id: u64,
    /// The kind of its faults.
    pub class: Class,
    /// Faults that have it.
    pub faults: u64,
    /// Calls inside.
    pub calls: u64,
    /// The functions down to the third level, repeats merged.
    pub outline: String,
}
