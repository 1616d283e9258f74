//! Options and events of a capture.

/// Options with the value that the text needs, whatever their current value. Options that a kernel
/// lacks are skipped; those with the right value are not written.
pub(super) const OPTIONS: &[(&str, bool)] = &[
    // Columns of the text: time, CPU, task, duration and its mark; names at the ends of calls.
    ("funcgraph-abstime", true),
    ("funcgraph-proc", true),
    ("funcgraph-cpu", true),
    ("funcgraph-duration", true),
    ("funcgraph-overhead", true),
    ("funcgraph-tail", true),
    ("funcgraph-overrun", false),
    ("funcgraph-args", false),
    ("funcgraph-retval", false),
    ("funcgraph-retaddr", false),
    ("latency-format", false),
    ("context-info", true),
    ("raw", false),
    ("hex", false),
    ("bin", false),
    ("verbose", false),
    ("fields", false),
    // Interrupts inside a fault are identified and subtracted from its time.
    ("funcgraph-irqs", true),
    // Durations include time asleep and time in called functions: events separate them.
    ("sleep-time", true),
    ("graph-time", true),
    // Children are traced, too.
    ("function-fork", true),
    ("event-fork", true),
    ("record-cmd", true),
    ("overwrite", true),
    ("stacktrace", false),
    ("userstacktrace", false),
    ("pause-on-trace", false),
];

/// Options that all instances share with the top of tracefs (`tracer_flags` of
/// kernel/trace/trace_functions_graph.c).
pub(super) fn is_shared(option: &str) -> bool {
    option.starts_with("funcgraph-") || matches!(option, "sleep-time" | "graph-time")
}

/// Events in the same stream: why a task waited, for which lock, and the address and kind of the
/// fault. Wake-ups end a wait; without them, time ready to run and time blocked cannot be
/// separated.
pub(super) const EVENTS: &[&str] = &[
    "sched/sched_switch",
    "sched/sched_wakeup",
    "mmap_lock/mmap_lock_start_locking",
    "mmap_lock/mmap_lock_acquire_returned",
    "mmap_lock/mmap_lock_released",
    "exceptions/page_fault_user",
    "exceptions/page_fault_kernel",
];
