//! Symptoms in plain words, with the figures that show them.

use super::symptoms::{COLLECTOR, FRESH, HOT, Owner, Symptom, caller, faults_of, moved};
use super::waits::{FILE_READS, LIMIT, LOCK, RECLAIM, THRASHING, seen_reclaim};
use super::{kernel, works};
use crate::runtimes::Runtimes;
use pagewise_model::delays::Delay;
use pagewise_model::findings::{Cause, Diagnosis, FileReads, Findings, Severity};
use pagewise_model::quantity::{count, percent, percent_interval, percent_seen, rounded};
use pagewise_model::units::{Bytes, Estimate, Nanos};

/// Shares of CPU time (of wall time for waits) from which a symptom is worth a word, costly, severe.
const WORTH_A_WORD: f64 = 0.02;
const COSTLY: f64 = 0.05;
const SEVERE: f64 = 0.30;

/// What takes less CPU time (waits less) is no trouble worth a change, whatever its share: starting
/// a program takes tens of milliseconds.
const LEAST_COSTLY: Nanos = Nanos(50_000_000);

/// How grave a symptom is; `None` where it is not worth a word.
pub(super) fn severity(findings: &Findings, symptom: &Symptom) -> Option<Severity> {
    severity_of(symptom.cost.value, symptom.of(findings))
}

/// How grave it is that something takes a share of so much time.
pub(super) fn severity_of(share: f64, all: Nanos) -> Option<Severity> {
    let most = match share * all.as_secs_f64() < LEAST_COSTLY.as_secs_f64() {
        true => Severity::Note,
        false => Severity::Severe,
    };
    Some(graded(share)?.min(most))
}

fn graded(cost: f64) -> Option<Severity> {
    match cost {
        cost if cost >= SEVERE => Some(Severity::Severe),
        cost if cost >= COSTLY => Some(Severity::Costly),
        cost if cost >= WORTH_A_WORD => Some(Severity::Note),
        _ => None,
    }
}

/// All that is worth a word, gravest first; "healthy" where nothing is costly.
pub(super) fn diagnoses(findings: &Findings, symptoms: &[Symptom]) -> Vec<Diagnosis> {
    let mut found: Vec<Diagnosis> = symptoms
        .iter()
        .filter_map(|symptom| Some(diagnosis(findings, symptom, severity(findings, symptom)?)))
        .collect();
    found.extend(kernel::diagnosis(findings, symptoms));
    found.extend(huge_page_fallback(findings));
    found.sort_by(|a, b| {
        let lost = |one| seconds(findings, one);
        (b.severity.cmp(&a.severity)).then(lost(b).total_cmp(&lost(a)))
    });
    if found.iter().all(|one| one.severity < Severity::Costly) {
        found.insert(0, healthy(findings));
    }
    found
}

/// Seconds that a finding costs.
pub(super) fn seconds(findings: &Findings, one: &Diagnosis) -> f64 {
    let cost = &findings.cost;
    let of =
        |share: Option<Estimate>, all: Nanos| share.map(|share| share.value * all.as_secs_f64());
    of(one.share_of_cpu, cost.cpu())
        .or_else(|| of(one.share_of_elapsed, cost.cpu().max(cost.wall)))
        .unwrap_or(0.0)
}

fn diagnosis(findings: &Findings, symptom: &Symptom, severity: Severity) -> Diagnosis {
    let (headline, explanation) = words(symptom);
    Diagnosis {
        id: symptom.id.to_string(),
        severity,
        headline: headline.to_string(),
        explanation: explanation.to_string(),
        evidence: evidence(findings, symptom),
        share_of_cpu: symptom.is_of_cpu().then_some(symptom.cost),
        share_of_elapsed: (!symptom.is_of_cpu()).then_some(symptom.cost),
    }
}

/// One sentence, and what happens in two or three, for a reader without background.
fn words(symptom: &Symptom) -> (&'static str, &'static str) {
    match symptom.id {
        "churn.brk" => (
            "The top of the heap is returned to the kernel, then requested again, over and over",
            "When memory at the top of the heap is freed, the allocator shrinks the heap (brk). The next allocation grows it again, and the kernel must allocate and zero every page anew: one page fault per page.",
        ),
        "churn.mmap" | "churn.madvise" if matches!(symptom.owner, Owner::Runtime(_)) => (
            "The runtime returns memory of its heap to the kernel and requests it again, over and over",
            "The language runtime maps and unmaps memory for its own heap, or releases pages of it. When memory comes back, the kernel must allocate and zero each page anew: one page fault per page. Settings of malloc do not reach it; the runtime's own do.",
        ),
        COLLECTOR => (
            "Much time goes into the garbage collector",
            "The runtime looks for objects that are no longer used each time that its heap has grown by some amount, and looks through all that live. A larger heap is collected less often.",
        ),
        "churn.mmap" if symptom.owner == Owner::Unknown => (
            "Memory is mapped, used once and unmapped, over and over",
            "Each new mapping starts without pages: the kernel allocates and zeroes each one at its first touch, and frees it at munmap. Whether the allocator or the program itself makes these calls could not be seen.",
        ),
        "churn.madvise" if symptom.owner == Owner::Presumed => (
            "Memory is released to the kernel and soon touched again",
            "The kernel is told that pages are no longer needed (madvise). When they are used again, it must allocate and zero each page anew: one page fault per page. Whether the allocator, the runtime or the program itself makes these calls could not be seen.",
        ),
        "churn.madvise" if symptom.owner == Owner::Program => (
            "The program releases memory to the kernel and soon touches it again",
            "The program itself tells the kernel that it no longer needs pages (madvise). When they are used again, the kernel must allocate and zero each page anew: one page fault per page.",
        ),
        "churn.mmap" if symptom.owner == Owner::Program => (
            "The program maps memory, uses it once and unmaps it, over and over",
            "Each new mapping starts without pages: the kernel allocates and zeroes each one at its first touch, and frees it at munmap. The program makes these calls itself, not its allocator.",
        ),
        "churn.mmap" => (
            "Large blocks are returned to the kernel at each free, then requested again",
            "The allocator maps large blocks one by one and unmaps them when they are freed. The next block starts without pages, and the kernel must allocate and zero every page anew: one page fault per page.",
        ),
        "churn.madvise" => (
            "Freed memory is released to the kernel and soon touched again",
            "The allocator or runtime tells the kernel that it no longer needs freed pages (madvise). When they are used again, the kernel must allocate and zero each page anew: one page fault per page.",
        ),
        "churn.thread_arena" => (
            "Thread heaps shrink and grow again, over and over",
            "Each thread has a heap of its own (an arena). When its top is freed, the allocator returns it to the kernel; the next allocation requests it again, and every page faults anew.",
        ),
        "churn.probable" => (
            "Memory is probably returned to the kernel and requested again, over and over",
            "The process had far more page faults than its peak size has pages, and spent much of its time in the kernel. Individual faults could not be seen here, so this is inferred from totals.",
        ),
        "first_touch" => (
            "Memory is touched for the first time",
            "The kernel allocates memory page by page at the first touch, and zeroes each page. Memory that is really used pays this once.",
        ),
        FRESH => (
            "Fresh memory is touched: for the first time, or again after it was returned",
            "Each such fault makes the kernel allocate and zero a page. Memory calls were not on record, and too few samples hit the same page twice to tell which of the two it is: what is touched once is paid for once, what comes and goes need not be paid for again.",
        ),
        "huge.sparse" => (
            "Whole huge pages are zeroed for a few bytes in each",
            "The program's memory is backed by huge pages, and the first touch of each makes the kernel zero all 2 MiB. Most of that is never used.",
        ),
        "huge.zeroing" => (
            "The kernel zeroes huge pages",
            "The first touch of memory backed by huge pages makes the kernel zero a whole huge page. That is cheaper than one fault per small page where all of it is used, and more expensive where it is not.",
        ),
        works::FORK => (
            "Each fork copies the page tables of a large process",
            "fork copies the page tables of all memory that the process holds, and the child's exit takes the copy down again, even where neither writes to that memory. The time grows with the memory, not with what the child does.",
        ),
        works::SPIN => (
            "Threads hold each other up at the lock of the address space, and spin meanwhile",
            "Page faults and calls such as mmap, munmap, mprotect and madvise share one lock per process (mmap_lock). Who finds it taken spins on the CPU for a while before it sleeps, so that waiting takes CPU time.",
        ),
        works::FLUSH => (
            "Calls on memory interrupt other CPUs to flush their TLBs",
            "A page that is unmapped or protected may still be cached in the TLB of each CPU that runs a thread of the program. The kernel interrupts those CPUs and waits until all have flushed.",
        ),
        works::REMAP => (
            "Files are mapped, used and unmapped, over and over",
            "The files are in memory (the page cache), but each new mapping starts without pages: every touch is a page fault, and every unmapping undoes it.",
        ),
        "cow.fork" => (
            "Pages are copied after fork",
            "After fork, parent and child share their pages. The first write to a page on either side makes the kernel copy it: one page fault and one copy per page.",
        ),
        "file" => (
            "Pages of mapped files fault at their first touch",
            "Mapped files and program code are mapped page by page as they are touched: quickly from the page cache, slowly from disk.",
        ),
        "swap" => (
            "Memory was swapped out and is read back",
            "There was not enough memory, so the kernel wrote pages out to swap. Each touch of such a page waits until it has been read back.",
        ),
        "write_protect" => (
            "Present pages fault because they are write-protected",
            "Something write-protects pages to notice the next write: a garbage collector, a checkpoint tool, NUMA balancing. The first write to each page then faults.",
        ),
        HOT => (
            "Much time goes into the memory allocator itself",
            "The program allocates and frees so often that the allocator's own code takes a good part of the CPU time. Few of these calls reach the kernel, so page faults do not show them. Threads that use one arena also wait for its lock.",
        ),
        LIMIT => (
            "The memory limit leaves the program too little",
            "The program's cgroup has reached its memory limit. The kernel evicts pages to stay below it, the program soon touches them again, and each touch makes room anew, and reads the page back where it was evicted.",
        ),
        FILE_READS => (
            "Threads wait for pages of mapped files to be read from the disk",
            "A page of a mapped file that is not in memory stops the thread that touches it (a major fault) until the disk has delivered it, and some pages beside it that the kernel reads along.",
        ),
        THRASHING => (
            "Threads wait for pages that were evicted while the program needs them",
            "The program uses more memory than it may have at a time. The kernel evicts pages that are soon touched again, and each touch waits until the page has been read back from its file or from swap.",
        ),
        LOCK => (
            "Threads wait for each other in memory management",
            "Page faults and calls such as mmap and munmap share one lock per process (mmap_lock). Threads queue for it.",
        ),
        _ => (
            "The kernel ran short of memory while the program ran",
            "The kernel had to reclaim pages before it could allocate new ones, which delays allocations and faults.",
        ),
    }
}

fn evidence(findings: &Findings, symptom: &Symptom) -> Vec<String> {
    let mut lines = Vec::new();
    if symptom.faults > 0.0 {
        lines.push(format!(
            "{} of {} page faults ({}) are of this kind",
            rounded(symptom.faults),
            count(findings.cost.faults()),
            share_of_faults(symptom.share)
        ));
        lines.push(format!(
            "They take about {} of the CPU time",
            range(symptom.cost)
        ));
    }
    if symptom.id.starts_with("churn.") {
        lines.extend(churn_evidence(findings, symptom));
    }
    match symptom.id {
        HOT => lines.extend(allocator_evidence(findings, symptom)),
        COLLECTOR => lines.extend(collector_evidence(findings, symptom)),
        RECLAIM => lines.extend(reclaim_evidence(findings)),
        LIMIT => lines.extend(reclaim_evidence(findings)),
        FILE_READS => lines.extend(read_evidence(findings, symptom)),
        "huge.sparse" | "huge.zeroing" => lines.extend(huge_evidence(findings)),
        LOCK | works::SPIN => {
            lines.extend(works::evidence(findings, symptom));
            lines.extend(lock_evidence(findings));
        }
        works::FORK | works::FLUSH | works::REMAP => {
            lines.extend(works::evidence(findings, symptom));
        }
        FRESH => lines.push(
            "Next: the same as root, which records memory calls, or pagewise tune, which tries \
             settings of the allocator"
                .to_owned(),
        ),
        _ => {}
    }
    lines.extend(delay_evidence(findings, symptom));
    lines
}

/// What the kernel counted of the waits behind a symptom.
fn delay_evidence(findings: &Findings, symptom: &Symptom) -> Vec<String> {
    let Some(delays) = findings.account.delays else {
        return Vec::new();
    };
    let kinds: Vec<(Option<Delay>, &str)> = match symptom.id {
        RECLAIM | THRASHING | LIMIT | "swap" => vec![
            (delays.reclaim, "in reclaiming memory before it was given"),
            (delays.thrashing, "for pages that had just been evicted"),
            (delays.swap, "for pages from swap"),
            (delays.disk, "for a disk"),
        ],
        "file" | FILE_READS => vec![(delays.disk, "for a disk")],
        "cow.fork" => vec![(delays.copying, "in copying pages")],
        _ => Vec::new(),
    };
    let told = kinds
        .into_iter()
        .filter_map(|(delay, what)| Some((delay?, what)));
    let told = told.filter(|(delay, _)| delay.count > 0);
    told.map(|(delay, what)| {
        format!(
            "Counted by the kernel over all threads: {} {what}, {} times",
            delay.time,
            count(delay.count)
        )
    })
    .collect()
}

/// The interval is told where it matters.
fn share_of_faults(share: Estimate) -> String {
    match share.high - share.low > 0.2 * share.value {
        true => percent_interval(&share),
        false => percent(share.value),
    }
}

fn allocator_evidence(findings: &Findings, symptom: &Symptom) -> Option<String> {
    let functions = &findings.account.allocator()?.places;
    Some(format!(
        "Functions of the allocator take {} of the CPU time, most of it in {}",
        range(symptom.cost),
        functions.join(", ")
    ))
}

fn collector_evidence(findings: &Findings, symptom: &Symptom) -> Option<String> {
    let places = &findings.account.collector()?.places;
    Some(format!(
        "Functions of the collector take {} of the CPU time, beneath {}",
        range(symptom.cost),
        places.join(", ")
    ))
}

/// Which runtime makes the calls, and where.
fn runtime_evidence(findings: &Findings, symptom: &Symptom) -> Option<String> {
    let Owner::Runtime(kind) = symptom.owner else {
        return None;
    };
    let runtimes = Runtimes::shipped();
    let name = runtimes.name(kind)?;
    let churn = &findings.churn;
    let mut sites = churn.release_sites.iter().chain(&churn.regrow_sites);
    let place = sites.find(|site| caller(&site.stack, runtimes) == Some(symptom.owner))?;
    Some(format!("{name} makes the calls, in {}", place.culprit))
}

/// Says why faults that the table calls first touches are told as churn.
fn moved_evidence(findings: &Findings, symptom: &Symptom) -> Option<String> {
    let moved = moved(findings);
    (moved > 0.0 && symptom.id == "churn.mmap").then(|| {
        format!(
            "{} of them are the first touch of an address, but of memory that replaces other: the process never held more than {}",
            rounded(moved),
            findings.cost.max_rss
        )
    })
}

fn churn_evidence(findings: &Findings, symptom: &Symptom) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(ratio) = findings
        .churn
        .refault_ratio
        .filter(|ratio| ratio.value < 1.0)
    {
        let times = 1.0 / (1.0 - ratio.value);
        if times >= 1.5 {
            lines.push(format!(
                "Each page was allocated about {} times on average",
                rounded(times)
            ));
        }
    }
    let sizes = &symptom.sizes;
    if sizes.count() > 0 {
        lines.push(format!(
            "Memory was returned {} times, {} on average (up to {})",
            count(sizes.count()),
            Bytes::rounded(sizes.mean()),
            Bytes(sizes.max())
        ));
    }
    lines.extend(moved_evidence(findings, symptom));
    lines.extend(runtime_evidence(findings, symptom));
    let system = findings.cost.system;
    let cpu = findings.cost.cpu().as_secs_f64().max(1e-9);
    lines.push(format!(
        "The kernel used {} of {} CPU time ({})",
        system,
        findings.cost.cpu(),
        percent(system.as_secs_f64() / cpu)
    ));
    let places = findings.churn.refault_sites.first();
    if let Some(site) = places.filter(|site| !site.culprit.is_empty()) {
        lines.push(format!("Most of it is touched again in {}", site.culprit));
    }
    lines
}

fn lock_evidence(findings: &Findings) -> Option<String> {
    let wait = findings.time.lock_wait?;
    let waits = findings.time.lock_waits;
    (waits > 0).then(|| format!("{} waits, {wait} in all", count(waits)))
}

fn read_evidence(findings: &Findings, symptom: &Symptom) -> Vec<String> {
    let of = |cause| faults_of(findings, &[cause]);
    let mut lines = vec![
        format!(
            "These waits take {} of the elapsed time",
            range(symptom.cost)
        ),
        format!(
            "{} major faults; {} faults on files found their page in memory",
            count(findings.cost.major_faults),
            rounded(of(Cause::FileMinor)),
        ),
    ];
    let part = findings
        .account
        .elapsed
        .iter()
        .find(|one| one.id == "pages");
    lines.extend(
        part.filter(|part| !part.who.is_empty())
            .map(|part| format!("It is {} that waits", part.who.join(", "))),
    );
    lines.extend(findings.file_reads.iter().take(MOST_FILES).map(of_file));
    lines
}

/// Files that the evidence names.
const MOST_FILES: usize = 3;
/// Reads from which on their order is told, and shares of them that make it one.
const TELLING_READS: u64 = 16;
const MOSTLY: f64 = 0.7;
const HARDLY: f64 = 0.3;

/// "/data/x.bin (200 MiB): 1,600 reads, at random places".
fn of_file(file: &FileReads) -> String {
    let order = match file.in_order {
        Some(share) if file.reads < TELLING_READS || share.is_nan() => "",
        Some(share) if share >= MOSTLY => ", mostly in order",
        Some(share) if share <= HARDLY => ", at random places",
        Some(_) => ", partly in order",
        None => "",
    };
    let reads = if file.reads == 1 { "read" } else { "reads" };
    let read = count(file.reads);
    format!("{} ({}): {read} {reads}{order}", file.path, file.mapped)
}

fn reclaim_evidence(findings: &Findings) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(work) = findings.account.work("reclaim") {
        let time = Nanos::from_secs_f64(work.time.value / 1e9);
        lines.push(format!(
            "The kernel spent {time} of CPU time reclaiming memory"
        ));
    }
    if seen_reclaim(findings).is_some_and(|(_, contradict)| contradict) {
        lines.push(
            "Samples of CPU time and the kernel's count, which holds sleep as well, disagree: the \
             interval spans both"
                .to_owned(),
        );
    }
    let points = &findings.timeline.pressure;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return lines;
    };
    let mut say = |before: u64, after: u64, what: &str| {
        let grown = after.saturating_sub(before);
        if grown > 0 {
            lines.push(format!("{} {what}", count(grown)));
        }
    };
    let hits = (
        first.cgroup_limit_hits.unwrap_or(0),
        last.cgroup_limit_hits.unwrap_or(0),
    );
    say(
        hits.0,
        hits.1,
        "times the memory limit of the cgroup was hit",
    );
    say(
        first.refaults_file + first.refaults_anon,
        last.refaults_file + last.refaults_anon,
        "pages came back soon after they had been evicted on this machine",
    );
    say(
        first.direct_scanned,
        last.direct_scanned,
        "pages scanned by direct reclaim on this machine",
    );
    say(
        first.swap_out,
        last.swap_out,
        "pages swapped out on this machine",
    );
    let stalled = last.stall_some.unwrap_or_default() - first.stall_some.unwrap_or_default();
    if stalled > Nanos(0) {
        lines.push(format!(
            "Tasks on this machine stalled for memory during {stalled}"
        ));
    }
    lines
}

fn huge_evidence(findings: &Findings) -> Vec<String> {
    let Some(pages) = findings.huge_pages else {
        return Vec::new();
    };
    let held = format!("It held up to {} in huge pages", pages.held);
    vec![match pages.zeros {
        Some(zeros) => format!("{held}; {} of the bytes examined are zeros", percent(zeros)),
        None => held,
    }]
}

/// Huge pages that were wanted but not to be had. The counters are the machine's, so it is a note.
fn huge_page_fallback(findings: &Findings) -> Option<Diagnosis> {
    let (first, last) = (
        findings.timeline.pressure.first()?,
        findings.timeline.pressure.last()?,
    );
    let fallback = last
        .thp_fault_fallback
        .saturating_sub(first.thp_fault_fallback);
    let given = last.thp_fault_alloc.saturating_sub(first.thp_fault_alloc);
    (fallback >= 16 && fallback * 4 > given).then(|| Diagnosis {
        id: "thp_fallback".to_string(),
        severity: Severity::Note,
        headline: "Huge pages were requested but unavailable".to_string(),
        explanation: "The kernel found no free contiguous memory for huge pages and used small pages instead, each with a fault of its own. Memory is fragmented or nearly full.".to_string(),
        evidence: vec![format!(
            "{} huge-page allocations failed and {} succeeded on this machine meanwhile",
            count(fallback),
            count(given)
        )],
        share_of_cpu: None,
        share_of_elapsed: None,
    })
}

fn healthy(findings: &Findings) -> Diagnosis {
    let cost = &findings.cost;
    let mut evidence = vec![format!(
        "{} page faults in {} of CPU time",
        count(cost.faults()),
        cost.cpu()
    )];
    if let Some(share) = findings.time.share_of_cpu {
        evidence.push(format!(
            "Page faults take {} of the CPU time",
            percent_seen(&share)
        ));
    }
    let (what, rest) = match findings.account.samples {
        0 => ("Page faults are", format!(" {}", super::NOT_SAMPLED)),
        _ => ("Memory management is", String::new()),
    };
    Diagnosis {
        id: "healthy".to_string(),
        severity: Severity::Healthy,
        headline: format!("{what} not what slows this program down"),
        explanation: format!(
            "It faults about as often as a program must that uses this much memory, and little of its time goes there.{rest}"
        ),
        evidence,
        share_of_cpu: findings.time.share_of_cpu,
        share_of_elapsed: None,
    }
}

/// `52 % (48 % to 56 %)`.
pub(super) fn range(share: Estimate) -> String {
    let (low, high) = (percent(share.low), percent(share.high));
    match low == high {
        true => percent(share.value),
        false => format!("{} ({low} to {high})", percent(share.value)),
    }
}
