//! The text about huge pages for an observed program, and about a proof that compared page sizes.

use crate::gain::predicted_speedup;
use pagewise_compare::{Criteria, promise};
use pagewise_model::advice::Setting;
use pagewise_model::allocator::{Allocator, AllocatorKind};
use pagewise_model::findings::{Cause, Diagnosis, Findings, RegionKind, Severity};
use pagewise_model::proof::{Comparison, Proof, Verdict};
use pagewise_model::quantity::{change_by, change_by_interval};
use pagewise_model::ratio::Ratio;
use pagewise_model::recording::{PageSizesSeen, ProcessPages};
use pagewise_model::units::{Bytes, Estimate};
use pagewise_stats::centre;

/// Programs whose resident memory never exceeds this are covered, or nearly, by any TLB's second
/// level (1536 entries of 4 KiB are 6 MiB). 32 MiB of a tree with scattered nodes are not: huge
/// pages gain ×1.29 (cpp-tree of bench/programs).
pub const SMALL: Bytes = Bytes(24 << 20);

/// The finding that huge pages would avoid a relevant number of faults.
pub(crate) const HELP: &str = "huge_pages.help";
/// The finding that faults do not show the effect.
const UNMEASURED: &str = "huge_pages.unmeasured";

/// Whether a finding comes from [`note`].
pub(crate) fn is_note(one: &Diagnosis) -> bool {
    [HELP, UNMEASURED].contains(&one.id.as_str())
}

/// A note on huge pages for a program with enough memory, or whose faults they would avoid; `None`
/// for others.
#[must_use]
pub fn note(findings: &Findings, seen: &PageSizesSeen) -> Option<Diagnosis> {
    // More huge pages are no advice if zeroing them is the problem.
    if zeroing(findings) >= NOT_MORE {
        return None;
    }
    let (pid, pages) = (seen.attached, seen.process.as_ref());
    let saved = FewerFaults::new(findings, seen);
    let is_small = match (pid, pages) {
        (Some(_), Some(pages)) => pages.memory < SMALL,
        _ => findings.cost.max_rss < SMALL,
    };
    let saves = saved.as_ref().filter(|saved| saved.share.high >= LEAST);
    let is_none = pages.is_some_and(|pages| pages.memory == Bytes(0));
    if (is_small || is_none) && saves.is_none() {
        return None;
    }
    let mut evidence = vec![format!(
        "transparent_hugepage/enabled is '{}'{}",
        seen.enabled,
        between(&seen.between)
    )];
    if let Some(pages) = pages {
        evidence.push(format!(
            "huge pages mapped {} of the {} that they could; all of it would add {}",
            pages.huge, pages.memory, pages.growth
        ));
    }
    evidence.extend(saved.as_ref().map(FewerFaults::evidence));
    if saved.is_some() && gives_memory_back(findings) {
        evidence.push(FROM_THE_HOST.to_owned());
    }
    evidence.extend(seen.watched.clone());
    let whom = pid.map_or_else(|| "-- CMD".to_owned(), |pid| format!("-p {pid}"));
    let growth = pages.map_or_else(
        || "memory not seen".to_owned(),
        |pages| match pages.growth {
            Bytes(0) => "no more memory".to_owned(),
            growth => format!("+{growth}"),
        },
    );
    let (id, headline) = match (saves, pages) {
        (Some(saved), _) if saved.share.low >= LEAST => (
            HELP,
            format!(
                "Huge pages would help this process: {} CPU time by fewer page faults, {growth}",
                change_by_interval(&saved.share.scaled(-1.0)),
            ),
        ),
        (Some(saved), _) => (
            UNMEASURED,
            format!(
                "Huge pages might help: up to {} CPU time by fewer page faults, {growth}",
                change_by(-saved.share.high),
            ),
        ),
        (None, Some(pages)) => (
            UNMEASURED,
            format!(
                "Huge pages would save hardly any faults; what they do for its {} through address translation is not measured here",
                pages.memory
            ),
        ),
        (None, None) => (
            UNMEASURED,
            format!(
                "It held up to {}: page size may matter",
                findings.cost.max_rss
            ),
        ),
    };
    Some(Diagnosis {
        id: id.to_owned(),
        severity: Severity::Note,
        headline,
        explanation: format!(
            "Faults do not show what TLB misses cost: 'pagewise huge balance {whom}' measures that in the running program{}.",
            match pid.is_none() && other_size(findings, &seen.enabled).is_some() {
                true => "; --prove alternates runs with both page sizes and compares them",
                false => "",
            }
        ),
        evidence,
        share_of_cpu: saves.map(|saved| saved.share),
        share_of_elapsed: None,
    })
}

/// Share of the CPU time spent zeroing huge pages from which no more are advised.
const NOT_MORE: f64 = 0.05;

fn zeroing(findings: &Findings) -> f64 {
    let lines = findings.by_cause.iter();
    let huge = lines.filter(|line| line.key == Cause::HugePage);
    let time: f64 = huge.filter_map(|line| Some(line.time?.as_secs_f64())).sum();
    time / findings.cost.cpu().as_secs_f64().max(1e-9)
}

/// A saving of CPU time below this share counts as none: runs differ by as much.
const LEAST: f64 = 0.01;
/// Sizes between a base page and the largest, and the memory that gets them.
fn between(sizes: &[(Bytes, String)]) -> String {
    let (given, kept): (Vec<_>, Vec<_>) = sizes.iter().partition(|(_, enabled)| enabled != "never");
    let named = given
        .iter()
        .map(|(size, enabled)| format!("{size}: {enabled}"))
        .collect::<Vec<_>>()
        .join(", ");
    match (given.is_empty(), kept.is_empty()) {
        (true, true) => String::new(),
        (false, _) => format!("; sizes in between: {named}"),
        (true, false) => format!(
            "; faults allocate none of the {} sizes in between ('huge balance --system 64K=always' tries one)",
            kept.len()
        ),
    }
}

/// The saving of huge pages in a run through fewer page faults.
struct FewerFaults {
    /// Faults on memory that huge pages can map.
    faults: Estimate,
    /// Share of the CPU time.
    share: Estimate,
    /// Cost of the first touch of a base page on this machine, by size of page.
    base_ns: f64,
    huge_ns: f64,
}

/// Share of a process's memory in whole huge pages if it was not examined.
const UNSEEN: Estimate = Estimate {
    value: 0.8,
    low: 0.4,
    high: 1.0,
};

impl FewerFaults {
    /// `None` if faults cost next to nothing, or no huge pages are available.
    fn new(findings: &Findings, seen: &PageSizesSeen) -> Option<Self> {
        let cpu = findings.cost.cpu().0 as f64;
        let all = findings.cost.faults() as f64;
        let faults = avoidable(findings);
        let kernel = without_room(findings)?;
        // Even all of them together would be irrelevant.
        if all == 0.0 || kernel.high * faults.high / all < LEAST * cpu {
            return None;
        }
        let touched = seen.first_touch.as_ref()?;
        let pages = seen.process.as_ref();
        let pairs = touched.huge.iter().zip(&touched.base);
        let ratio = centre(&pairs.map(|(huge, base)| huge / base).collect::<Vec<_>>())?;
        let covered = pages.map_or(UNSEEN, |pages| covered(pages, findings.cost.max_rss));
        // A huge page is zeroed as a whole, whether used or not.
        let density = pages.map_or(1.0, density);
        let saves = |ratio: f64| 1.0 - (ratio / density).clamp(0.0, 1.0);
        let saved = Estimate {
            value: covered.value * saves(ratio.median),
            low: covered.low * saves(ratio.high),
            high: covered.high * saves(ratio.low),
        };
        let avoided = faults.times(saved);
        let each = Estimate {
            value: kernel.value / all,
            low: kernel.low / all,
            high: kernel.high / all,
        };
        let faster = predicted_speedup(&findings.cost, avoided, Some(each));
        let share = |speedup: f64| 1.0 - 1.0 / speedup;
        Some(Self {
            faults,
            share: Estimate {
                value: share(faster.value),
                low: share(faster.low),
                high: share(faster.high),
            },
            base_ns: centre(&touched.base)?.median,
            huge_ns: centre(&touched.huge)?.median,
        })
    }

    fn evidence(&self) -> String {
        format!(
            "{:.0} faults on memory that huge pages can map; here a first touch costs {:.0} ns of CPU time per 4 KiB with base pages, {:.0} ns with huge pages",
            self.faults.value, self.base_ns, self.huge_ns
        )
    }
}

/// Time of page faults without that of making room for their pages and of reading them back, which
/// huge pages do not spare.
fn without_room(findings: &Findings) -> Option<Estimate> {
    let all = findings.time.total_ns?;
    let works = ["reclaim", "swap", "compaction"].into_iter();
    let works = works.filter_map(|id| findings.account.work(id));
    Some(works.fold(all, |left, work| Estimate {
        value: (left.value - work.in_faults.value).max(0.0),
        low: (left.low - work.in_faults.high).max(0.0),
        high: (left.high - work.in_faults.low).max(0.0),
    }))
}

/// Whether free memory of this virtual machine is returned to its host after a while, in blocks as
/// large as a huge page (free page reporting). Base pages come from smaller blocks first.
fn gives_memory_back(findings: &Findings) -> bool {
    let order = findings.host.settings.get(REPORTING);
    order.is_some_and(|order| order.parse().is_ok_and(|order: i32| order >= 0))
}

const REPORTING: &str = "page_reporting.page_reporting_order";
const FROM_THE_HOST: &str = "this virtual machine returns free memory to its host (free page reporting): the first touch of memory that must come from there takes many times as long as measured, and huge pages come from there more often";

/// Faults that allocated a fresh base page of anonymous memory. The cost of a first touch was
/// measured on memory that had just been in use; that applies to the memory of churn, but not to
/// other first touches if free memory is returned to the host.
fn avoidable(findings: &Findings) -> Estimate {
    let sure = match gives_memory_back(findings) {
        true => fresh(findings, Cause::is_churn).low,
        false => f64::INFINITY,
    };
    let all = fresh(findings, |cause| {
        cause == Cause::FirstTouch || cause.is_churn()
    });
    Estimate {
        low: all.low.min(sure),
        ..all
    }
}

/// Faults on anonymous memory with these causes.
fn fresh(findings: &Findings, is_meant: impl Fn(Cause) -> bool) -> Estimate {
    let anonymous = |region: RegionKind| {
        matches!(
            region,
            RegionKind::Heap
                | RegionKind::MmappedChunk
                | RegionKind::ThreadArena
                | RegionKind::Anonymous
        )
    };
    let by_cause = findings.by_cause.iter().filter(|share| is_meant(share.key));
    let by_region = findings.by_region.iter().filter(|one| anonymous(one.key));
    let sum = |found: &mut dyn Iterator<Item = Estimate>| {
        found.fold(Estimate::exact(0.0), |sum, one| Estimate {
            value: sum.value + one.value,
            low: sum.low + one.low,
            high: sum.high + one.high,
        })
    };
    let causes = sum(&mut by_cause.map(|share| share.faults));
    let regions = sum(&mut by_region.map(|share| share.faults));
    match causes.value < regions.value {
        true => causes,
        false => regions,
    }
}

/// Share of `resident` memory that huge pages could map.
fn covered(pages: &ProcessPages, resident: Bytes) -> Estimate {
    let share = (pages.memory.0 as f64 / resident.0.max(1) as f64).min(1.0);
    Estimate {
        value: share,
        low: share * 0.8,
        high: (share * 1.2).min(1.0),
    }
}

/// Share of its slots in use.
fn density(pages: &ProcessPages) -> f64 {
    let all = pages.memory + pages.growth;
    (pages.memory.0 as f64 / all.0.max(1) as f64).max(0.01)
}

/// Name of the arm with huge pages.
const WITH: &str = "huge pages";
/// Name of the arm without them.
const WITHOUT: &str = "no huge pages";

/// The other page size as an arm of a proof, for a program with enough memory, given that
/// `transparent_hugepage/enabled` is `enabled`: its name and setting.
#[must_use]
pub fn other_size(findings: &Findings, enabled: &str) -> Option<(&'static str, Setting)> {
    if findings.cost.max_rss < SMALL {
        return None;
    }
    let off = |setting: &Setting| matches!(setting, Setting::Thp { .. });
    if findings
        .advice
        .iter()
        .any(|one| one.settings.0.iter().any(off))
    {
        return None;
    }
    match enabled {
        "always" | "madvise" if enabled == "always" || zeroing(findings) >= NOT_MORE => Some((
            WITHOUT,
            Setting::Thp {
                mode: "never".into(),
            },
        )),
        "madvise" => Some((WITH, asking(&findings.allocators)?)),
        _ => None,
    }
}

/// The setting by which the owner of the program's memory requests huge pages; `None` if only the
/// program itself can.
fn asking(allocators: &[Allocator]) -> Option<Setting> {
    let of = |kind: AllocatorKind| allocators.iter().find(|one| one.kind == kind);
    if let Some(jvm) = of(AllocatorKind::Jvm) {
        // `java` reports the options it picked up; the flag is HotSpot's, and OpenJ9 ignores it.
        let flag = "-XX:+UseTransparentHugePages";
        let is_set = ["-XX:+UseLargePages", flag].map(|set| jvm.settings.contains_key(set));
        return (!is_set.contains(&true)).then(|| added(jvm, "JAVA_TOOL_OPTIONS", " ", flag));
    }
    if let Some(jemalloc) = of(AllocatorKind::Jemalloc) {
        return Some(added(jemalloc, "MALLOC_CONF", ",", "thp:always"));
    }
    // Go's heap and musl's have no such setting; glibc uses madvise(2) for the memory of malloc
    // (2.35).
    of(AllocatorKind::Glibc).map(|_| Setting::GlibcTunable {
        name: "glibc.malloc.hugetlb".into(),
        value: "1".into(),
    })
}

/// The environment variable `name` with `word` appended to its previous value.
fn added(allocator: &Allocator, name: &str, between: &str, word: &str) -> Setting {
    let before = allocator.settings.get(name);
    Setting::Env {
        name: name.to_owned(),
        value: before.map_or_else(|| word.to_owned(), |set| format!("{set}{between}{word}")),
    }
}

/// Ratio of the page faults from which they count as unchanged: a huge page saves 511.
const UNCHANGED: f64 = 0.95;

/// "Huge pages would help: −31 % … −28 % CPU, +12 MiB", if a proof compared page sizes.
#[must_use]
pub fn verdict(proof: &Proof) -> Option<String> {
    let found = proof
        .comparisons
        .iter()
        .find(|one| (one.arm == WITH || one.arm == WITHOUT) && one.pairs > 1)?;
    // The arm's gain, relative to huge pages.
    let is_with = found.arm == WITH;
    let is_untouched = found.verdict == Verdict::NotReached;
    if is_with && (is_untouched || found.fault_ratio.low > UNCHANGED) {
        return Some(
            "The setting that requests huge pages did not change the page faults, so what huge pages would do for this program was not measured."
                .to_owned(),
        );
    }
    let change = |speedup: f64| match is_with {
        true => 1.0 / speedup - 1.0,
        false => speedup - 1.0,
    };
    let [value, one, other] = [
        found.cpu_speedup.value,
        found.cpu_speedup.low,
        found.cpu_speedup.high,
    ]
    .map(change);
    let changed = Estimate {
        value,
        low: one.min(other),
        high: one.max(other),
    };
    let effect = match (found.verdict, is_with) {
        (Verdict::Faster | Verdict::TooMuchMemory, true) | (Verdict::Slower, false) => "help",
        (Verdict::Slower, true) | (Verdict::Faster | Verdict::TooMuchMemory, false) => "hurt",
        (Verdict::NoDifference, _) => "make no measurable difference to",
        (Verdict::Undecided | Verdict::NotReached | Verdict::TriedOnce, _) => "",
    };
    let is_told = matches!(Ratio::from_estimate(&found.cpu_speedup), Ratio::Measured(_));
    let is_likely = || promise(found, proof.comparisons.len(), &Criteria::default()).is_some();
    let judged = match (is_with, effect) {
        (_, "") if is_likely() => {
            let effect = if is_with { "help" } else { "hurt" };
            format!("Inconclusive: huge pages probably {effect} this program")
        }
        (_, "") => "Inconclusive: huge pages may or may not help this program".to_owned(),
        (true, effect) => format!("Huge pages would {effect} this program"),
        (false, effect) => format!("Huge pages {effect} this program"),
    };
    if !is_told {
        return Some(format!("{judged}: too few runs to say by how much."));
    }
    Some(format!(
        "{judged}: {} CPU time, {} of resident memory.",
        change_by_interval(&changed),
        memory(found, is_with)
    ))
}

fn memory(found: &Comparison, is_with: bool) -> String {
    let added = match is_with {
        true => found.rss_change_bytes,
        false => -found.rss_change_bytes,
    };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates; the sign is shown apart"
    )]
    let size = Bytes(added.abs() as u64);
    match added {
        added if !added.is_finite() || size == Bytes(0) => "no change".to_owned(),
        added if added < 0.0 => format!("−{size}"),
        _ => format!("+{size}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::run;
    use pagewise_model::account::KernelWork;
    use pagewise_model::findings::Share;
    use pagewise_model::recording::FirstTouch;
    use pagewise_model::units::Nanos;

    fn proof(arm: &str, low: f64, high: f64, verdict: Verdict) -> Proof {
        proof_with(arm, low, high, verdict, 0.1)
    }

    fn proof_with(arm: &str, low: f64, high: f64, verdict: Verdict, faults: f64) -> Proof {
        let speedup = Estimate {
            value: f64::midpoint(low, high),
            low,
            high,
        };
        Proof {
            arms: Vec::new(),
            comparisons: vec![Comparison {
                arm: arm.into(),
                wall_speedup: speedup,
                cpu_speedup: speedup,
                fault_ratio: Estimate::exact(faults),
                rss_change_bytes: f64::from(12 << 20),
                p_adjusted: 0.01,
                pairs: 8,
                verdict,
            }],
            winner: None,
            confirmation: None,
            summary: String::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_verdict_is_about_huge_pages_whichever_arm_ran() {
        let with = verdict(&proof(WITH, 1.25, 1.6, Verdict::Faster)).unwrap();
        assert!(
            with.starts_with("Huge pages would help this program: −30 % [−38, −20] CPU time, +12"),
            "{with}"
        );
        let without = verdict(&proof(WITHOUT, 1.25, 1.6, Verdict::Faster)).unwrap();
        assert!(
            without.starts_with("Huge pages hurt this program: +43 % [+25, +60] CPU time, −12"),
            "{without}"
        );
        let none = verdict(&proof(WITH, 0.99, 1.01, Verdict::NoDifference)).unwrap();
        assert!(
            none.starts_with("Huge pages would make no measurable difference to this program"),
            "{none}"
        );
        let open = verdict(&proof(WITH, 0.8, 1.3, Verdict::Undecided)).unwrap();
        assert!(
            open.starts_with(
                "Inconclusive: huge pages may or may not help this program: −4.8 % [−23, +25] CPU time"
            ),
            "{open}"
        );
        // What the proof's sentence calls probable.
        let likely = verdict(&proof(WITH, 0.95, 1.8, Verdict::Undecided)).unwrap();
        assert!(
            likely.starts_with("Inconclusive: huge pages probably help this program"),
            "{likely}"
        );
        assert_eq!(verdict(&proof("jemalloc", 1.0, 1.0, Verdict::Faster)), None);
    }

    #[test]
    fn a_setting_that_reached_nothing_says_nothing_of_huge_pages() {
        let proof = proof_with(WITH, 0.99, 1.01, Verdict::NoDifference, 1.0);
        let sentence = verdict(&proof).unwrap();
        assert!(sentence.contains("was not measured"), "{sentence}");
    }

    fn asked(kinds: &[(AllocatorKind, &[(&str, &str)])]) -> Option<Setting> {
        let allocator = |&(kind, settings): &(AllocatorKind, &[(&str, &str)])| Allocator {
            kind,
            version: None,
            evidence: String::new(),
            settings: settings
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            is_static: false,
            ..Default::default()
        };
        asking(&kinds.iter().map(allocator).collect::<Vec<_>>())
    }

    #[test]
    fn huge_pages_are_asked_for_where_the_memory_is() {
        use AllocatorKind::{Glibc, Go, Jemalloc, Jvm};
        let env = |name: &str, value: &str| {
            Some(Setting::Env {
                name: name.into(),
                value: value.into(),
            })
        };
        let options = [("JAVA_TOOL_OPTIONS", "-Xmx1g")];
        assert_eq!(
            asked(&[(Glibc, &[]), (Jvm, &options)]),
            env(options[0].0, "-Xmx1g -XX:+UseTransparentHugePages")
        );
        let already = [("-XX:+UseTransparentHugePages", "")];
        assert_eq!(asked(&[(Glibc, &[]), (Jvm, &already)]), None);
        assert_eq!(
            asked(&[(Glibc, &[]), (Jemalloc, &[])]),
            env("MALLOC_CONF", "thp:always")
        );
        assert_eq!(asked(&[(Go, &[])]), None);
        assert!(asked(&[(Glibc, &[])]).is_some());
    }

    #[test]
    fn huge_pages_save_faults_less_the_cost_of_zeroing() {
        // 100,000 faults of 1 µs in a second of CPU time.
        let mut findings = run(800, 200, 100_000);
        findings.cost.max_rss = Bytes(100 << 20);
        findings.time.total_ns = Some(Estimate::exact(1e8));
        let all = Estimate::exact(100_000.0);
        findings.by_cause = vec![Share {
            key: Cause::FirstTouch,
            faults: all,
            time: Some(Nanos(100_000_000)),
        }];
        findings.by_region = vec![Share {
            key: RegionKind::Heap,
            faults: all,
            time: None,
        }];
        // Half of the memory is in whole slots of huge pages, half of which is in use.
        let seen = PageSizesSeen {
            enabled: "madvise".to_owned(),
            between: Vec::new(),
            process: Some(ProcessPages {
                huge: Bytes(0),
                memory: Bytes(50 << 20),
                growth: Bytes(50 << 20),
            }),
            first_touch: Some(FirstTouch {
                base: vec![1_000.0; 5],
                huge: vec![200.0; 5],
            }),
            attached: None,
            watched: None,
        };
        let saved = FewerFaults::new(&findings, &seen).expect("they cost something");
        // 0.5 [0.4, 0.6] of 0.1 s, of which 1 − 0.2 / 0.5 is saved; a prediction adds a third.
        let share = saved.share;
        for (message, true_share) in [(share.value, 0.03), (share.low, 0.024), (share.high, 0.036)]
        {
            assert!((message - true_share).abs() < 0.013, "{share:?}");
        }
        assert_eq!(note(&findings, &seen).unwrap().id, HELP);
        // numpy-gather and java-gather of bench/programs: ×0.70 and ×0.57 with huge pages, which
        // this machine's host has to provide first.
        let settings = &mut findings.host.settings;
        settings.insert(REPORTING.to_owned(), "9".to_owned());
        let message = note(&findings, &seen).unwrap();
        assert_eq!(message.id, UNMEASURED);
        assert!(
            message.headline.contains("might help"),
            "{}",
            message.headline
        );
        assert!(message.evidence.iter().any(|line| line == FROM_THE_HOST));
        // Memory that had just been in use belongs to the program.
        findings.by_cause[0].key = Cause::RefaultAfterMunmap;
        assert_eq!(note(&findings, &seen).unwrap().id, HELP);
        // Under a memory limit faults take long because room has to be made first.
        let all = findings.time.total_ns.unwrap();
        findings.account.work = vec![KernelWork {
            id: "reclaim".to_owned(),
            time: all,
            in_faults: all.scaled(0.99),
        }];
        assert!(FewerFaults::new(&findings, &seen).is_none_or(|saved| saved.share.high < 0.02));
    }
}
