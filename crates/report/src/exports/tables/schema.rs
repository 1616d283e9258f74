//! The columns of all tables that a recording has. Later versions add columns at the end and change
//! none, so that files of different versions make one table.

use crate::exports::parquet::Column;

/// Version of these tables, in each row of [`RUNS`].
pub const VERSION: u64 = 1;

/// One recording.
pub const RUNS: &[Column] = &[
    Column::bytes("run_id"),
    Column::integer("tables_version"),
    Column::text("kind"),
    Column::text("scope"),
    Column::optional("started_unix_ms"),
    Column::optional("elapsed_ns"),
    Column::optional("cpu_ns"),
    Column::optional("system_ns"),
    Column::optional("minor_faults"),
    Column::optional("major_faults"),
    Column::optional("peak_bytes"),
    Column::text("hostname"),
    Column::text("kernel"),
    Column::text("architecture"),
    Column::text("cpu"),
    Column::optional("cpus"),
    Column::optional("memory_bytes"),
    Column::optional("page_size"),
    Column::text("program"),
    Column::optional_text("command"),
    Column::optional_text("command_hash"),
    Column::text("verdict"),
    Column::integer("lost_events"),
];

/// Settings of the host and of the program, and versions of its allocators.
pub const SETTINGS: &[Column] = &[
    Column::bytes("run_id"),
    Column::text("name"),
    Column::text("value"),
];

/// What a recording is missing.
pub const LOSSES: &[Column] = &[
    Column::bytes("run_id"),
    Column::text("loss"),
    Column::integer("events"),
];

/// What time and memory went to.
pub const ACCOUNTS: &[Column] = &[
    Column::bytes("run_id"),
    Column::text("account"),
    Column::text("part"),
    Column::text("unit"),
    Column::real("value"),
    Column::real("low"),
    Column::real("high"),
];

/// What is wrong, and the advice that fixes it.
pub const FINDINGS: &[Column] = &[
    Column::bytes("run_id"),
    Column::text("finding"),
    Column::text("severity"),
    Column::text("headline"),
    Column::optional_real("share_of_cpu"),
    Column::optional_real("share_of_cpu_low"),
    Column::optional_real("share_of_cpu_high"),
    Column::optional_real("share_of_elapsed"),
    Column::optional_real("share_of_elapsed_low"),
    Column::optional_real("share_of_elapsed_high"),
    Column::optional_text("advice"),
    Column::optional_text("advice_headline"),
    Column::optional_text("risk"),
    Column::optional_real("speedup"),
    Column::optional_real("speedup_low"),
    Column::optional_real("speedup_high"),
    Column::optional_text("speedup_from"),
    Column::optional_real("faults_avoided"),
    Column::optional("price_bytes"),
    Column::optional_real("saved_bytes"),
];

/// Samples, summed by time, kind of thread and stack.
pub const SAMPLES: &[Column] = &[
    Column::bytes("run_id"),
    Column::text("event"),
    Column::text("unit"),
    Column::optional("bucket_ms"),
    Column::text("thread_kind"),
    Column::bytes("stack_id"),
    Column::integer("samples"),
    Column::integer("weight"),
];

/// The frames of a stack, outermost first.
pub const STACKS: &[Column] = &[Column::bytes("stack_id"), Column::identifiers("frames")];

/// One function in one build of a file.
pub const FRAMES: &[Column] = &[
    Column::bytes("frame_id"),
    Column::optional_text("build_id"),
    Column::optional("offset"),
    Column::text("function"),
    Column::text("module"),
    Column::text("kind"),
];

/// User-level paging: a process, or a moment of the whole run; counts since its start.
pub const PAGING: &[Column] = &[
    Column::bytes("run_id"),
    Column::optional_text("process"),
    Column::optional("time_ns"),
    Column::text("policy"),
    Column::integer("limit_bytes"),
    Column::integer("resident_bytes"),
    Column::integer("unmanaged_bytes"),
    Column::integer("store_bytes"),
    Column::integer("first_touches"),
    Column::integer("refaults"),
    Column::integer("pages_read"),
    Column::integer("pages_read_ahead"),
    Column::integer("pages_written"),
    Column::integer("pages_evicted"),
    Column::integer("throttled_ns"),
];

/// Page sizes of a run's memory.
pub const PAGE_SIZES: &[Column] = &[
    Column::bytes("run_id"),
    Column::text("moment"),
    Column::optional("huge_bytes"),
    Column::optional("small_bytes"),
    Column::optional("blocked_bytes"),
    Column::optional("rss_bytes"),
    Column::optional("growth_bytes"),
    Column::optional_text("effect"),
    Column::optional_real("cpu_change"),
    Column::optional_real("cpu_change_low"),
    Column::optional_real("cpu_change_high"),
];
