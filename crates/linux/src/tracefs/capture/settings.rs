//! Options and events of a capture.

/// Options with the value that the text needs, whatever somebody has set them to. Options that
/// a kernel lacks are passed over; those that read so already are not written.
pub(super) const OPTIONS: &[(&str, bool)] = &[
    // Which columns the text has: time, CPU, task, duration and its mark; names at the ends.
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
    // Durations hold the time asleep, and that of the functions called: events separate them.
    ("sleep-time", true),
    ("graph-time", true),
    // Children belong to what is traced.
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

/// Events in the same stream: why a task waited, for which lock, and what the fault's address
/// and kind were. Wake-ups end a wait; without them time to run and time blocked are one.
pub(super) const EVENTS: &[&str] = &[
    "sched/sched_switch",
    "sched/sched_wakeup",
    "mmap_lock/mmap_lock_start_locking",
    "mmap_lock/mmap_lock_acquire_returned",
    "mmap_lock/mmap_lock_released",
    "exceptions/page_fault_user",
    "exceptions/page_fault_kernel",
];
