//! A run inside a memory budget, process by process.

use super::Style;
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::paged_run::{
    KernelPaging, MIN_REGION, OtherProcesses, PagedProcess, PagedRegion, PagedRun, Quantiles,
};
use pagewise_model::paging::Heat;
use pagewise_model::quantity::{count, counted, percent, percent_interval, share};
use pagewise_model::units::{Bytes, Nanos};

/// Bytes in a page of the pager, which runs on x86-64 only.
const PAGER_PAGE: u64 = 4096;
/// Processes and regions listed; the others are summed up.
const MOST: usize = 8;

/// The run as text of at most `width` columns, clamped to 60–200.
#[must_use]
pub fn render(document: &Document<PagedRun>, width: usize, style: Style) -> String {
    let run = &document.evidence;
    let mut page = Page::new(width, style);
    page.marked("● run", Ink::Strong, &visible(&document.verdict));
    page.gap();
    let largest = format!("{} in the largest process", run.cost.max_rss);
    page.paragraph("Peak", Ink::Plain, &largest);
    if let Some(kernel) = &run.kernel {
        by_kernel(&mut page, run, kernel);
        if kernel.took_over_ns.is_none() {
            return page.finish();
        }
        page.gap();
    }
    let policy = format!("{}, store {}", run.policy, run.store);
    page.paragraph("Policy", Ink::Plain, &policy);
    if run.processes_total == 0 {
        page.paragraph("Processes", Ink::Caution, "none managed memory");
    }
    // Shells and wrappers that start the program have nothing to report.
    let (idle, mut managed): (Vec<_>, Vec<_>) = run.processes.iter().partition(|one| is_idle(one));
    managed.sort_by_key(|one| std::cmp::Reverse(one.pages.evicted));
    for process in managed.iter().take(MOST) {
        page.gap();
        memory(&mut page, process, run.memory_is_each);
        faults(&mut page, process);
        pages(&mut page, process);
        files(&mut page, process);
        use_of_memory(&mut page, process);
        troubles(&mut page, process);
        regions(&mut page, process);
    }
    page.gap();
    others(
        &mut page,
        managed.get(MOST..).unwrap_or_default(),
        &run.others,
    );
    if !idle.is_empty() {
        let plural = if idle.len() == 1 { "" } else { "es" };
        let text = format!(
            "{} process{plural} had no memory large enough to manage (--min-region)",
            idle.len()
        );
        page.paragraph("Unmanaged", Ink::Faint, &text);
    }
    page.finish()
}

/// A run that the kernel paged.
fn by_kernel(page: &mut Page, run: &PagedRun, kernel: &KernelPaging) {
    let limit = Bytes(run.memory_bytes);
    let whose = match kernel.took_over_ns.map(Nanos) {
        Some(after) => format!("Pagewise's for {after}, then the kernel's"),
        None => "the kernel's".to_owned(),
    };
    let engine = format!(
        "{whose}: a memory cgroup (version {}) with a limit of {limit}, and a swap file",
        kernel.cgroup_version
    );
    page.paragraph("Engine", Ink::Plain, &engine);
    if let Some(peak) = kernel.peak_bytes.map(Bytes) {
        let text = format!("at most {peak} charged, page cache included");
        page.paragraph("Memory", Ink::Plain, &text);
    }
    if let Some(peak) = kernel.swap_peak_bytes.map(Bytes) {
        page.paragraph("Swap", Ink::Plain, &format!("at most {peak} seen"));
    }
    if let Some(faults) = kernel.major_faults {
        let text = format!("{} waited for a disk", counted(faults, "fault"));
        page.paragraph("Faults", Ink::Plain, &text);
    }
    let returns = [
        (kernel.refaults, "anonymous"),
        (kernel.file_refaults, "of files"),
    ];
    let returns = returns.into_iter().filter_map(|(number, whose)| {
        let number = number.filter(|number| *number > 0)?;
        Some(format!("{} {whose}", count(number)))
    });
    let returns: Vec<_> = returns.collect();
    if !returns.is_empty() {
        let text = format!("pages that came back soon: {}", returns.join(", "));
        page.paragraph("", Ink::Plain, &text);
    }
    if let Some(killed) = kernel.killed.filter(|killed| *killed > 0) {
        let plural = if killed == 1 { "" } else { "es" };
        let text = format!(
            "the kernel killed {killed} process{plural}: swap was full (--store-size), or the limit too small"
        );
        page.paragraph("Killed", Ink::Caution, &text);
    }
}

/// The processes that evicted less, and those without figures of their own.
fn others(page: &mut Page, rest: &[&PagedProcess], others: &OtherProcesses) {
    let processes = rest.len() + others.ended as usize + others.unplaced as usize;
    if processes == 0 {
        return;
    }
    let sum = |of: fn(&PagedProcess) -> u64| rest.iter().map(|one| of(one)).sum::<u64>();
    let text = format!(
        "{processes} more processes: {} first touches, {} refaults; {} pages read, {} evicted, {} \
         written",
        count(others.faults.first_touches + sum(|one| one.faults.first_touches)),
        count(others.faults.refaults + sum(|one| one.faults.refaults)),
        count(others.pages.read + sum(|one| one.pages.read)),
        count(others.pages.evicted + sum(|one| one.pages.evicted)),
        count(others.pages.written + sum(|one| one.pages.written)),
    );
    page.paragraph("Others", Ink::Plain, &text);
    if others.unplaced > 0 {
        let text = format!(
            "{} of them ran while all slots for statistics were taken",
            others.unplaced
        );
        page.paragraph("", Ink::Faint, &text);
    }
}

/// Whether no memory of a process was managed.
fn is_idle(one: &PagedProcess) -> bool {
    one.managed_bytes == 0 && one.faults.first_touches == 0
}

fn memory(page: &mut Page, one: &PagedProcess, is_each: bool) {
    let end = match (one.living, one.ended_in_order) {
        (true, _) => ", still running",
        (false, true) => "",
        (false, false) => ", killed, or replaced by another program (exec)",
    };
    let process = format!("{} ({}){end}", one.pid, visible(&one.name));
    page.paragraph("Process", Ink::Strong, &process);
    let [peak, budget, unmanaged] = [
        one.peak_managed_bytes,
        one.budget_bytes,
        one.unmanaged_bytes,
    ]
    .map(Bytes);
    let memory = match is_each {
        true => format!("at most {peak} of {budget} resident, and {unmanaged} not managed"),
        false => {
            format!("at most {peak} resident, and {unmanaged} not managed; its last share {budget}")
        }
    };
    page.paragraph("Memory", Ink::Plain, &memory);
    if (1..MIN_REGION.1).contains(&one.min_region_bytes) {
        let least = Bytes(one.min_region_bytes);
        page.paragraph(
            "",
            Ink::Plain,
            &format!("managed in pieces of {least} and more"),
        );
    }
}

fn faults(page: &mut Page, one: &PagedProcess) {
    let (faults, latency) = (&one.faults, &one.latency);
    let text = format!(
        "{} on new pages, {} on pages in the store, {} first writes to pages that were read back",
        count(faults.first_touches),
        count(faults.refaults),
        count(faults.first_writes)
    );
    page.paragraph("Faults", Ink::Plain, &text);
    let text = format!(
        "{} by handler threads, {} by SIGBUS",
        count(faults.by_handler),
        count(faults.by_signal)
    );
    page.paragraph("Served", Ink::Plain, &text);
    let without = format!("{} without the store", quantiles(&latency.without_io));
    page.paragraph("Latency", Ink::Plain, &without);
    let with = format!("{} with it", quantiles(&latency.with_io));
    page.paragraph("", Ink::Plain, &with);
}

/// How long faults took, in words.
fn quantiles(of: &Quantiles) -> String {
    match of.count {
        0 => "none".to_owned(),
        faults => format!(
            "p50 {}, p99 {} ({})",
            Nanos(of.p50_ns),
            Nanos(of.p99_ns),
            count(faults)
        ),
    }
}

fn pages(page: &mut Page, one: &PagedProcess) {
    let pages = &one.pages;
    let evicted = format!(
        "{} in {}",
        counted(pages.evicted, "page"),
        match pages.eviction_batches {
            1 => "1 batch".to_owned(),
            batches => format!("{} batches", count(batches)),
        }
    );
    page.paragraph("Evicted", Ink::Plain, &evicted);
    let written = format!(
        "{}, {} of them before they had to be evicted",
        counted(pages.written, "page"),
        count(pages.written_early)
    );
    page.paragraph("Written", Ink::Plain, &written);
    let read = format!(
        "{}{}, {} of them before they were used",
        counted(pages.read, "page"),
        part(pages.read, pages.evicted),
        count(pages.prefetched)
    );
    page.paragraph("Came back", Ink::Plain, &read);
    if let Some(words) = one.refault_distances.words() {
        page.paragraph("Away for", Ink::Plain, &words);
    }
    if let Some(larger) = one.refault_distances.larger_budget {
        page.paragraph("More room", Ink::Plain, &larger.words());
    }
}

/// The mapped files, where `--files` found any.
fn files(page: &mut Page, one: &PagedProcess) {
    let files = &one.files;
    if files.pages_read > 0 || files.managed_bytes > 0 {
        let text = format!(
            "{} managed now; {} read, {} on evicted pages",
            Bytes(files.managed_bytes),
            counted(files.pages_read, "page"),
            counted(files.refaults, "fault")
        );
        page.paragraph("Files", Ink::Plain, &text);
    }
    if files.paged_out > 0 {
        let page_bytes = |pages: u64| Bytes(pages.saturating_mul(PAGER_PAGE));
        let text = format!(
            "{} of files that are not managed taken out of memory; {} of it came back soon",
            page_bytes(files.paged_out),
            page_bytes(files.came_back)
        );
        page.paragraph("Mapped", Ink::Plain, &text);
    }
    if files.paged_out > 0 && files.kept > 0 {
        let text = format!(
            "{} stayed: in mappings that may be written, of files that other processes map or that belong to another user",
            Bytes(files.kept.saturating_mul(PAGER_PAGE))
        );
        page.paragraph("", Ink::Faint, &text);
    }
    if files.changed + files.left > 0 {
        let text = format!(
            "{} became ordinary while in use, {} stayed the kernel's",
            counted(files.changed, "mapping"),
            count(files.left)
        );
        page.paragraph("", Ink::Caution, &text);
    }
}

/// ` (12 %)`, or nothing if the whole is zero.
fn part(part: u64, whole: u64) -> String {
    match whole {
        0 => String::new(),
        whole => format!(" ({})", percent(share(part, whole))),
    }
}

fn use_of_memory(page: &mut Page, one: &PagedProcess) {
    if let Some(heat) = &one.heat {
        page.paragraph("Heat", Ink::Plain, &temperatures(heat));
    }
    let pages = &one.pages;
    if pages.watched > 0 {
        let text = format!(
            "{} before they went; {} in use{}",
            counted(pages.watched, "page"),
            count(pages.seen_used),
            part(pages.seen_used, pages.watched)
        );
        page.paragraph("Watched", Ink::Plain, &text);
    }
}

/// The amounts of hot, warm and cold memory, in words.
fn temperatures(heat: &Heat) -> String {
    let cold = heat.cold.as_ref().map_or(String::new(), |cold| {
        format!(", {} not in 8 s", percent_interval(cold))
    });
    format!(
        "{} used within 1 s{cold}; at least {} written in 1 s; {} seen",
        percent_interval(&heat.hot),
        percent_interval(&heat.written),
        counted(heat.watched, "page")
    )
}

fn troubles(page: &mut Page, one: &PagedProcess) {
    if one.faults.throttled > 0 {
        let text = format!(
            "{} waited {} in total for room",
            counted(one.faults.throttled, "fault"),
            Nanos(one.faults.throttled_ns)
        );
        page.paragraph("Waits", Ink::Caution, &text);
    }
    if one.pages.refused + one.pages.store_errors > 0 {
        let text = format!(
            "{} refused by the kernel (pinned or going), {}",
            counted(one.pages.refused, "page"),
            counted(one.pages.store_errors, "store error")
        );
        page.paragraph("Trouble", Ink::Bad, &text);
    }
}

/// The regions, with the reason for their delivery where it differs from the previous one.
fn regions(page: &mut Page, one: &PagedProcess) {
    let mut former = ("", "");
    let mut left = one.regions_total as usize;
    for region in one.regions.iter().take(MOST) {
        left = left.saturating_sub(region.parts as usize);
        page.paragraph("Region", Ink::Plain, &described(region));
        let now = (region.delivery.as_str(), region.why.as_str());
        if now != former {
            page.paragraph("", Ink::Faint, &format!("{}: {}", now.0, now.1));
            former = now;
        }
    }
    if left > 0 {
        page.paragraph("", Ink::Faint, &format!("… and {left} more regions"));
    }
}

fn described(region: &PagedRegion) -> String {
    let parts = match region.parts {
        0 | 1 => String::new(),
        parts => format!(" in {parts} separate parts"),
    };
    let heat = region.heat.map_or(String::new(), |heat| {
        format!("; {} hot", percent(heat.hot.value))
    });
    format!(
        "{} {}{parts}: {} here ({} dirty), {} stored; {}, {} on stored pages{heat}",
        region.start,
        Bytes(region.bytes),
        counted(region.resident_pages, "page"),
        count(region.dirty_pages),
        count(region.evicted_pages),
        counted(region.faults, "fault"),
        count(region.refaults)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::paging::{DistanceBucket, LargerBudget, RefaultDistances};
    use pagewise_model::run::{Ending, RunCost};
    use pagewise_model::units::{Bytes, Estimate, Nanos};

    /// The largest possible figures, in the columns of a small terminal.
    #[test]
    fn a_run_by_the_kernel_shows_what_the_kernel_counted() {
        let run = PagedRun {
            ending: Ending::Exited(0),
            cost: RunCost::default(),
            memory_bytes: 48 << 20,
            memory_is_each: false,
            together_peak_bytes: Some(48 << 20),
            policy: "kernel".to_owned(),
            store: "swap".to_owned(),
            processes_total: 0,
            processes: Vec::new(),
            others: OtherProcesses::default(),
            refault_distances: RefaultDistances::default(),
            kernel: Some(KernelPaging {
                cgroup_version: 1,
                peak_bytes: Some(48 << 20),
                major_faults: Some(35_216),
                refaults: Some(38_636),
                killed: Some(1),
                ..KernelPaging::default()
            }),
        };
        let text = render(&Document::new(run.clone()), 80, Style::PLAIN);
        for part in [
            "a memory cgroup (version 1)",
            "at most 48.0 MiB charged",
            "35,216 faults",
            "38,636 anonymous",
            "killed 1 process:",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // What was not counted is not shown, nor what the pager would count.
        for part in ["Swap ", "of files", "none managed", "Policy"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
        let kernel = run.kernel.map(|kernel| KernelPaging {
            took_over_ns: Some(4_000_000_000),
            ..kernel
        });
        let run = PagedRun { kernel, ..run };
        let text = render(&Document::new(run), 80, Style::PLAIN);
        for part in ["Pagewise's for 4.00 s, then the kernel's", "Policy"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

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
            &mut one.files.managed_bytes,
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
            &mut one.files.pages_read,
            &mut one.files.refaults,
            &mut one.files.changed,
            &mut one.files.left,
            &mut one.files.paged_out,
            &mut one.files.came_back,
            &mut one.files.kept,
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
            kernel: None,
        };
        let text = render(&Document::new(run), 80, Style::PLAIN);
        assert!(text.contains("5 more processes") && text.contains("38 more regions"));
        assert!(
            text.contains("246 GiB") && text.contains("in 2 separate parts"),
            "{text}"
        );
        assert!(text.contains("(100 %)"), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
