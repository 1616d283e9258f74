//! A run inside a memory budget, process by process.

use super::Style;
use crate::visible::visible;
use pagewise_model::paged_run::{MIN_REGION, OtherProcesses, PagedProcess, PagedRun, Quantiles};
use pagewise_model::paging::Heat;
use pagewise_model::quantity::count as grouped;
use pagewise_model::units::Estimate;
use std::fmt::Write;

/// Bytes as `1.5 GiB`.
fn human(bytes: u64) -> String {
    pagewise_model::units::Bytes(bytes).to_string()
}

/// Processes that are described; of more, a sum is told.
const MOST: usize = 8;

/// The table.
#[must_use]
pub fn render(run: &PagedRun, _width: usize, _style: Style) -> String {
    let mut text = format!(
        "The program {} after {:.1} s\n\
         \x20 largest   process: {}\n\
         \x20 policy    {}, store {}\n",
        run.ending.words(),
        run.cost.wall.as_secs_f64(),
        run.cost.max_rss,
        run.policy,
        run.store
    );
    if run.processes_total == 0 {
        text += "  no process managed memory\n";
    }
    // Shells and wrappers on the way to the program have nothing to tell.
    let (idle, mut managed): (Vec<_>, Vec<_>) = run.processes.iter().partition(|one| is_idle(one));
    managed.sort_by_key(|one| std::cmp::Reverse(one.pages.evicted));
    for process in managed.iter().take(MOST) {
        text += &describe(process, run.memory_is_each);
    }
    let rest = managed.get(MOST..).unwrap_or_default();
    text += &describe_others(rest, &run.others);
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
fn describe_others(rest: &[&PagedProcess], others: &OtherProcesses) -> String {
    let count = rest.len() + others.ended as usize + others.unplaced as usize;
    if count == 0 {
        return String::new();
    }
    let sum = |of: fn(&PagedProcess) -> u64| rest.iter().map(|one| of(one)).sum::<u64>();
    let mut text = format!(
        "  others    {count} more processes: {} first touches, {} refaults;\n",
        others.faults.first_touches + sum(|one| one.faults.first_touches),
        others.faults.refaults + sum(|one| one.faults.refaults),
    );
    let _ = writeln!(
        text,
        "            {} pages read, {} evicted, {} written",
        others.pages.read + sum(|one| one.pages.read),
        others.pages.evicted + sum(|one| one.pages.evicted),
        others.pages.written + sum(|one| one.pages.written),
    );
    if others.unplaced > 0 {
        let _ = writeln!(
            text,
            "            {} of them lived while all places for figures were taken",
            others.unplaced
        );
    }
    text
}

/// Whether nothing of a process was managed.
fn is_idle(one: &PagedProcess) -> bool {
    one.managed_bytes == 0 && one.faults.first_touches == 0
}

fn describe(one: &PagedProcess, is_each: bool) -> String {
    let mut text = String::new();
    let (faults, pages, latency) = (&one.faults, &one.pages, &one.latency);
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<9} {value}");
    };
    let end = match (one.living, one.ended_in_order) {
        (true, _) => ", still running",
        (false, true) => "",
        (false, false) => ", killed, or another program since (exec)",
    };
    row(
        "process",
        format!("{} ({}){end}", one.pid, visible(&one.name)),
    );
    row(
        "memory",
        match is_each {
            true => format!(
                "at most {} of {} resident, and {} not managed",
                human(one.peak_managed_bytes),
                human(one.budget_bytes),
                human(one.unmanaged_bytes)
            ),
            false => format!(
                "at most {} resident, and {} not managed; its last share {}",
                human(one.peak_managed_bytes),
                human(one.unmanaged_bytes),
                human(one.budget_bytes)
            ),
        },
    );
    if (1..MIN_REGION.1).contains(&one.min_region_bytes) {
        row(
            "",
            format!(
                "managed in pieces of {} and more",
                human(one.min_region_bytes)
            ),
        );
    }
    row(
        "faults",
        format!(
            "{} on new pages, {} on pages in the store",
            grouped(faults.first_touches),
            grouped(faults.refaults)
        ),
    );
    row(
        "",
        format!(
            "{} first writes to pages that came back",
            grouped(faults.first_writes)
        ),
    );
    row(
        "served",
        format!(
            "{} by handler threads, {} by SIGBUS",
            grouped(faults.by_handler),
            grouped(faults.by_signal)
        ),
    );
    row(
        "each took",
        format!("{} without the store", quantiles(&latency.without_io)),
    );
    row("", format!("{} with it", quantiles(&latency.with_io)));
    row(
        "went",
        format!(
            "{} pages in {} batches",
            grouped(pages.evicted),
            grouped(pages.eviction_batches)
        ),
    );
    row(
        "written",
        format!(
            "{} pages, {} of them before they had to go",
            grouped(pages.written),
            grouped(pages.written_early)
        ),
    );
    row(
        "came back",
        format!(
            "{} pages{}, {} of them before their use",
            grouped(pages.read),
            percent(pages.read, pages.evicted),
            grouped(pages.prefetched)
        ),
    );
    if let Some(words) = one.refault_distances.words() {
        row("away for", words);
    }
    if let Some(larger) = one.refault_distances.larger_budget {
        row("more room", larger.words());
    }
    if let Some(heat) = &one.heat {
        row("heat", shares(heat));
        row(
            "",
            format!(
                "at least {} written in 1 s; {} pages seen",
                range(&heat.written),
                grouped(heat.watched)
            ),
        );
    }
    if pages.watched > 0 {
        row(
            "watched",
            format!(
                "{} pages before they went; {} in use{}",
                grouped(pages.watched),
                grouped(pages.seen_used),
                percent(pages.seen_used, pages.watched)
            ),
        );
    }
    if faults.throttled > 0 {
        let waited = pagewise_model::units::Nanos(faults.throttled_ns);
        row(
            "waits",
            format!(
                "{} faults waited {waited} in all for room",
                grouped(faults.throttled)
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
    text + &describe_regions(one)
}

/// How much is hot, warm and cold, in words.
fn shares(heat: &Heat) -> String {
    let mut text = format!("{} used within 1 s", range(&heat.hot));
    if let Some(cold) = &heat.cold {
        let _ = write!(text, ", {} not in 8 s", range(cold));
    }
    text
}

/// `25 % (20 to 31)`.
fn range(share: &Estimate) -> String {
    let [value, low, high] = [share.value, share.low, share.high].map(|part| part * 100.0);
    format!("{value:.0} % ({low:.0} to {high:.0})")
}

/// How long faults took, in words.
fn quantiles(of: &Quantiles) -> String {
    let nanos = pagewise_model::units::Nanos;
    match of.count {
        0 => "none".to_owned(),
        count => format!(
            "p50 {}, p99 {} ({})",
            nanos(of.p50_ns),
            nanos(of.p99_ns),
            grouped(count)
        ),
    }
}

/// ` (12 %)`, or nothing where there is no whole.
fn percent(part: u64, whole: u64) -> String {
    match (part * 100).checked_div(whole) {
        Some(share) => format!(" ({share} %)"),
        None => String::new(),
    }
}

/// The regions, with the reason of their delivery where that changes from one to the next.
fn describe_regions(one: &PagedProcess) -> String {
    let mut text = String::new();
    let mut former = ("", "");
    let mut left = one.regions_total as usize;
    for region in one.regions.iter().take(MOST) {
        left = left.saturating_sub(region.parts as usize);
        // Not in groups of digits, as with the others: the line would not fit a narrow terminal.
        let _ = writeln!(
            text,
            "  region    {} {}: {} here ({} dirty), {} stored",
            region.start,
            human(region.bytes),
            region.resident_pages,
            region.dirty_pages,
            region.evicted_pages
        );
        if region.parts > 1 {
            let _ = writeln!(
                text,
                "            in {} parts that do not adjoin",
                region.parts
            );
        }
        let _ = writeln!(
            text,
            "            {} faults, {} on stored pages{}",
            grouped(region.faults),
            grouped(region.refaults),
            region.heat.map_or_else(String::new, |heat| format!(
                "; {:.0} % hot",
                heat.hot.value * 100.0
            ))
        );
        let now = (region.delivery.as_str(), region.why.as_str());
        if now != former {
            let _ = writeln!(text, "            {}: {}", now.0, now.1);
            former = now;
        }
    }
    if left > 0 {
        let _ = writeln!(text, "            and {left} more regions");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::document::Kind;
    use pagewise_model::paged_run::{PAGED_RUN_VERSION, PagedRegion};
    use pagewise_model::paging::{DistanceBucket, LargerBudget, RefaultDistances};
    use pagewise_model::run::{Ending, RunCost};
    use pagewise_model::units::{Bytes, Nanos};

    /// Figures as large as they get, in the columns of a small terminal.
    #[test]
    fn the_table_fits_eighty_columns() {
        let mut one = PagedProcess::default();
        let many = 1_234_567_890;
        one.pid = 4_000_000;
        one.name = "fifteen letters".to_owned();
        one.regions_total = 40;
        one.min_region_bytes = 1 << 20;
        for size in [
            &mut one.budget_bytes,
            &mut one.peak_managed_bytes,
            &mut one.unmanaged_bytes,
            &mut one.managed_bytes,
        ] {
            // "62.3 GiB": a character more than "123 GiB".
            *size = 63_800 << 20;
        }
        let (faults, pages) = (&mut one.faults, &mut one.pages);
        faults.throttled_ns = many * 1000;
        for count in [
            &mut faults.first_touches,
            &mut faults.refaults,
            &mut faults.by_handler,
            &mut faults.throttled,
            &mut pages.read,
            &mut pages.prefetched,
            &mut pages.written,
            &mut pages.written_early,
            &mut pages.evicted,
            &mut pages.watched,
            &mut pages.seen_used,
            &mut one.latency.without_io.count,
            &mut one.latency.with_io.count,
        ] {
            *count = many;
        }
        (faults.first_writes, faults.by_signal) = (many / 100, many / 1000);
        (pages.eviction_batches, one.latency.with_io.p99_ns) = (many / 128, many);
        one.refault_distances = RefaultDistances {
            samples: 1000,
            sampled_pages: 1000,
            buckets: vec![DistanceBucket {
                from_pages: many,
                to_pages: many * 2,
                refaults: many,
                ahead: 0,
            }],
            larger_budget: Some(LargerBudget {
                more_bytes: 63_800 << 20,
                spared: Estimate {
                    value: 1.0,
                    low: 0.99,
                    high: 1.0,
                },
            }),
        };
        let whole = Estimate {
            value: 1.0,
            low: 0.995,
            high: 1.0,
        };
        let heat = Some(Heat {
            watched: many,
            hot: whole,
            warm: Some(whole),
            cold: Some(whole),
            written: whole,
        });
        one.heat = heat;
        let region = PagedRegion {
            start: "0x7fffdeadb000".to_owned(),
            bytes: 246 << 30,
            parts: 2,
            delivery: "sigbus".to_owned(),
            why: "kernel faults need privilege (vm.unprivileged_userfaultfd)".to_owned(),
            role: 0,
            number: 65_000,
            faults: many,
            refaults: many,
            resident_pages: many / 400,
            dirty_pages: many / 400,
            evicted_pages: many / 400,
            heat,
        };
        one.regions = vec![region];
        let run = PagedRun {
            schema_version: PAGED_RUN_VERSION,
            kind: Kind::PagedRun,
            command: Vec::new(),
            ending: Ending::Killed(11),
            cost: RunCost {
                wall: Nanos::from_secs_f64(12_345.6),
                max_rss: Bytes(123 << 30),
                ..RunCost::default()
            },
            memory_bytes: 1 << 30,
            memory_is_each: true,
            together_peak_bytes: None,
            policy: "prefetch+s3fifo".to_owned(),
            store: "compressed".to_owned(),
            processes_total: 20,
            processes: vec![one; 10],
            others: OtherProcesses {
                unplaced: 3,
                ..OtherProcesses::default()
            },
            refault_distances: RefaultDistances::default(),
        };
        let text = render(&run, 80, Style::PLAIN);
        assert!(text.contains("5 more processes") && text.contains("38 more regions"));
        assert!(
            text.contains("246 GiB") && text.contains("in 2 parts"),
            "{text}"
        );
        assert!(text.contains("(100 %)"), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
