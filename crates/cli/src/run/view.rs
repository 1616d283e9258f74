//! Figures of a run, for a person.

use super::statistics::{Document, Figures, Others, Process};
use std::fmt::Write;

/// Bytes as `1.5 GiB`.
fn human(bytes: u64) -> String {
    pagewise_model::units::Bytes(bytes).to_string()
}

/// One line while the program runs, for a terminal of so many columns.
pub fn line(figures: &Figures, columns: usize) -> String {
    let living = |of: fn(&Process) -> u64| figures.living().map(of).sum::<u64>();
    let of_several = match figures.living().count() {
        0 | 1 => String::new(),
        many => format!(" in {many} processes"),
    };
    let text = format!(
        "resident {} of {}{of_several} | store {} | refaults {} | read {} written {} pages",
        human(living(|one| one.resident_bytes)),
        human(living(|one| one.budget_bytes)),
        human(figures.store_bytes()),
        figures.sum_faults(|all| all.refaults),
        figures.sum_pages(|all| all.read),
        figures.sum_pages(|all| all.written),
    );
    text.chars().take(columns.saturating_sub(1)).collect()
}

/// Processes that are described; of more, a sum is told.
const MOST: usize = 8;

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
    let figures = &document.figures;
    if figures.processes_total == 0 {
        text += "  no process managed memory\n";
    }
    // Shells and wrappers on the way to the program have nothing to tell.
    let (idle, mut managed): (Vec<_>, Vec<_>) =
        figures.processes.iter().partition(|one| is_idle(one));
    managed.sort_by_key(|one| std::cmp::Reverse(one.pages.evicted));
    for process in managed.iter().take(MOST) {
        text += &describe(process);
    }
    let rest = managed.get(MOST..).unwrap_or_default();
    text += &describe_others(rest, &figures.others);
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

/// The processes that evicted less, and those that have no figures of their own.
fn describe_others(rest: &[&Process], others: &Others) -> String {
    let count = rest.len() + others.ended as usize + others.unplaced as usize;
    if count == 0 {
        return String::new();
    }
    let sum = |of: fn(&Process) -> u64| rest.iter().map(|one| of(one)).sum::<u64>();
    let mut text = format!(
        "  others       {count} more processes: {} first touches, {} refaults;\n",
        others.faults.first_touches + sum(|one| one.faults.first_touches),
        others.faults.refaults + sum(|one| one.faults.refaults),
    );
    let _ = writeln!(
        text,
        "               {} pages read, {} evicted, {} written",
        others.pages.read + sum(|one| one.pages.read),
        others.pages.evicted + sum(|one| one.pages.evicted),
        others.pages.written + sum(|one| one.pages.written),
    );
    if others.unplaced > 0 {
        let _ = writeln!(
            text,
            "               {} of them lived while all places for figures were taken",
            others.unplaced
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
    let end = match (one.living, one.ended_in_order) {
        (true, _) => ", still running",
        (false, true) => "",
        (false, false) => ", killed, or another program since (exec)",
    };
    row("process", format!("{} ({}){end}", one.pid, one.name));
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
