//! Figures of a run, for a person.

use super::statistics::{Document, Process};
use std::fmt::Write;

/// Bytes as `1.5 GiB`.
fn human(bytes: u64) -> String {
    pagewise_model::units::Bytes(bytes).to_string()
}

/// One line while the program runs, for a terminal of so many columns.
pub fn line(processes: &[Process], columns: usize) -> String {
    let sum = |which: fn(&Process) -> u64| processes.iter().map(which).sum::<u64>();
    let text = format!(
        "resident {} of {} | store {} | refaults {} | read {} written {} pages",
        human(sum(|one| one.resident_bytes)),
        human(
            processes
                .iter()
                .map(|one| one.budget_bytes)
                .max()
                .unwrap_or(0)
        ),
        human(sum(|one| one.store_bytes)),
        sum(|one| one.faults.refaults),
        sum(|one| one.pages.read),
        sum(|one| one.pages.written),
    );
    text.chars().take(columns.saturating_sub(1)).collect()
}

/// The table at the end.
pub fn text(document: &Document) -> String {
    let mut text = format!(
        "pagewise run: {} after {:.1} s, policy {}, store {}, largest process {}\n",
        document.ending,
        document.elapsed_s,
        document.policy,
        document.store,
        human(document.max_rss_bytes)
    );
    if document.processes.is_empty() {
        text += "  no process managed memory\n";
    }
    // Shells and wrappers on the way to the program have nothing to tell.
    let (idle, managed): (Vec<_>, Vec<_>) = document.processes.iter().partition(|one| is_idle(one));
    for process in &managed {
        text += &describe(process);
    }
    if !idle.is_empty() {
        let plural = if idle.len() == 1 { "" } else { "es" };
        let _ = writeln!(
            text,
            "  {} process{plural} had no memory large enough to manage (--min-region)",
            idle.len()
        );
    }
    text
}

/// Whether nothing of a process was managed.
fn is_idle(one: &Process) -> bool {
    one.managed_bytes == 0 && one.faults.first_touches == 0
}

fn describe(one: &Process) -> String {
    let mut text = String::new();
    let faults = &one.faults;
    let pages = &one.pages;
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    row("process", format!("{} ({})", one.pid, one.name));
    row(
        "memory",
        format!(
            "{} managed, at most {} of {} resident beside {} that is not managed",
            human(one.managed_bytes),
            human(one.peak_managed_bytes),
            human(one.budget_bytes),
            human(one.unmanaged_bytes)
        ),
    );
    row(
        "faults",
        format!(
            "{} first touches, {} refaults, {} first writes, {} found resolved",
            faults.first_touches, faults.refaults, faults.first_writes, faults.spurious
        ),
    );
    row(
        "delivery",
        format!(
            "{} by handler threads, {} by SIGBUS",
            faults.by_handler, faults.by_signal
        ),
    );
    row(
        "latency",
        format!(
            "without I/O p50 {} p99 {} ns, with I/O p50 {} p99 {} ns",
            one.latency.without_io.p50_ns,
            one.latency.without_io.p99_ns,
            one.latency.with_io.p50_ns,
            one.latency.with_io.p99_ns
        ),
    );
    row(
        "pages",
        format!(
            "{} read ({} ahead), {} evicted in {} batches, {} written ({} early); {} watched, {} seen used",
            pages.read,
            pages.prefetched,
            pages.evicted,
            pages.eviction_batches,
            pages.written,
            pages.written_early,
            pages.watched,
            pages.seen_used
        ),
    );
    if faults.throttled > 0 {
        let milliseconds = faults.throttled_ns / 1_000_000;
        row(
            "waits",
            format!(
                "{} faults waited {milliseconds} ms in all for room",
                faults.throttled
            ),
        );
    }
    if pages.refused + pages.store_errors > 0 {
        row(
            "trouble",
            format!(
                "{} pages refused by the kernel (pinned or going), {} store errors",
                pages.refused, pages.store_errors
            ),
        );
    }
    for region in one.regions.iter().take(8) {
        row(
            "region",
            format!(
                "{} {}: {} resident ({} dirty), {} evicted pages; {} ({})",
                region.start,
                human(region.bytes),
                region.resident_pages,
                region.dirty_pages,
                region.evicted_pages,
                region.delivery,
                region.why
            ),
        );
    }
    text
}
