//! Answers to given findings: what must be advised, and what must not.

mod delays;
mod families;
mod fresh_memory;
mod hot_allocator;
mod known;
mod leads;
mod locks;
mod named_trials;
mod numa;
mod open;
mod overridden;
mod runtimes;
mod sparse;
mod starts;
mod time;
mod waits;
mod works;

use super::*;
use pagewise_model::account::{Account, KernelEntry, KernelWork, TimePart};
use pagewise_model::advice::Setting;
use pagewise_model::allocator::{Allocator, AllocatorKind};
use pagewise_model::answer::{Document, Subject};
use pagewise_model::findings::{
    Cause, ChurnRoute, Diagnosis, RegionKind, Run, Severity, Share, Site, ThreadShare,
};
use pagewise_model::histogram::Histogram;
use pagewise_model::kernel_threads::KernelThread;
use pagewise_model::proof::{Comparison, Proof, Verdict};
use pagewise_model::recording::HugePageUse;
use pagewise_model::run::{Ending, RunCost};
use pagewise_model::timeline::TimelinePoint;
use pagewise_model::units::{Bytes, Estimate, Nanos};

/// A run of `user` and `system` milliseconds with `faults` faults and a peak of 16 MiB.
pub(crate) fn run(user: u64, system: u64, faults: u64) -> Findings {
    let run = Run {
        cost: RunCost {
            wall: Nanos((user + system) * 1_000_000),
            user: Nanos(user * 1_000_000),
            system: Nanos(system * 1_000_000),
            minor_faults: faults,
            max_rss: Bytes(16 << 20),
            ..RunCost::default()
        },
        ending: Ending::Exited(0),
        allocators: vec![allocator(AllocatorKind::Glibc, "2.36")],
        by_thread: vec![ThreadShare {
            pid: 100,
            tid: 100,
            comm: "program".into(),
            faults: 1.0,
        }],
        samples: faults / 100,
        ..Run::default()
    };
    let mut found = Document::new(run).about(Subject::of_command(vec!["program".into()]));
    found.host.page_size = 4096;
    found
}

fn allocator(kind: AllocatorKind, version: &str) -> Allocator {
    Allocator {
        kind,
        version: Some(version.into()),
        evidence: "test".into(),
        settings: Default::default(),
        is_static: false,
        ..Default::default()
    }
}

/// `faults` of them are refaults by this route in stretches of `size` bytes.
fn churning(
    mut findings: Findings,
    cause: Cause,
    region: RegionKind,
    faults: f64,
    size: u64,
) -> Findings {
    let mut released_sizes = Histogram::default();
    released_sizes.record_many(size, 1000);
    findings.by_cause.push(share(cause, faults));
    findings.churn.routes.push(ChurnRoute {
        cause,
        region,
        faults,
        released_sizes,
    });
    findings
}

/// python-zlib of bench/programs, for which 4.05 times the speed was measured [3.95, 4.11].
fn zlib_churn() -> Findings {
    churning(
        run(350, 909, 540_458),
        Cause::RefaultAfterBrk,
        RegionKind::Heap,
        537_000.0,
        270_000,
    )
}

fn share(key: Cause, faults: f64) -> Share<Cause> {
    Share {
        key,
        faults: Estimate::exact(faults),
        time: None,
    }
}

/// A finding without text, with severity "note".
fn note(id: &str) -> Diagnosis {
    Diagnosis::named(id, Severity::Note)
}

fn concluded(findings: Findings) -> Findings {
    conclude(
        findings,
        &Rules::shipped().expect("shipped rules"),
        &Surroundings::default(),
    )
}

fn tunables(findings: &Findings) -> Vec<&str> {
    let settings = findings.advice.iter().flat_map(|advice| &advice.settings.0);
    settings
        .filter_map(|setting| match setting {
            Setting::GlibcTunable { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn glibc_heap_churn_gets_both_thresholds_and_their_gain() {
    let churn = zlib_churn();
    let answer = concluded(churn);
    assert_eq!(answer.diagnoses[0].id, "churn.brk");
    assert_eq!(answer.diagnoses[0].severity, Severity::Severe);
    assert_eq!(
        tunables(&answer),
        ["glibc.malloc.trim_threshold", "glibc.malloc.mmap_threshold"]
    );
    assert!(
        answer.advice[0].predicted_speedup.covers(4.05),
        "{:?}",
        answer.advice[0]
    );
    assert!(
        answer.verdict.contains("Two settings"),
        "{}",
        answer.verdict
    );
}

#[test]
fn thresholds_are_at_least_the_peak() {
    let churn = zlib_churn();
    let Setting::GlibcTunable { value, .. } = &concluded(churn).advice[0].settings.0[0] else {
        panic!("no tunable");
    };
    assert_eq!(value, &(16_u64 << 20).to_string());
}

#[test]
fn a_glibc_that_refuses_large_thresholds_gets_no_mmap_at_all() {
    let mut churn = churning(
        run(350, 909, 540_458),
        Cause::RefaultAfterMunmap,
        RegionKind::MmappedChunk,
        537_000.0,
        40 << 20,
    );
    churn.churn.allocator_blocks = Some(1.0);
    churn.allocators = vec![allocator(AllocatorKind::Glibc, "2.31")];
    assert_eq!(
        tunables(&concluded(churn)),
        ["glibc.malloc.trim_threshold", "glibc.malloc.mmap_max"]
    );
}

#[test]
fn a_program_that_maps_by_hand_gets_no_allocator_setting() {
    let mut churn = churning(
        run(240, 1370, 1_024_059),
        Cause::RefaultAfterMunmap,
        RegionKind::MmappedChunk,
        1_020_000.0,
        1 << 20,
    );
    churn.churn.allocator_blocks = Some(0.0);
    let answer = concluded(churn);
    assert!(
        answer
            .advice
            .iter()
            .all(|advice| advice.settings.0.is_empty()),
        "{:?}",
        answer.advice
    );
    assert_eq!(answer.advice[0].rule, "own.mapping");
    assert!(answer.verdict.contains("No setting"), "{}", answer.verdict);
}

#[test]
fn large_blocks_of_threads_need_another_allocator() {
    let mut churn = churning(
        run(270, 1160, 819_373),
        Cause::RefaultAfterMunmap,
        RegionKind::MmappedChunk,
        790_000.0,
        64 << 20,
    );
    churn.churn.allocator_blocks = Some(1.0);
    churn.by_thread = vec![ThreadShare {
        pid: 100,
        tid: 101,
        comm: "worker".into(),
        faults: 1.0,
    }];
    let around = Surroundings {
        libraries: vec![(AllocatorKind::Jemalloc, "/usr/lib/libjemalloc.so.2".into())],
        ..Surroundings::default()
    };
    let rules = Rules::shipped().expect("shipped rules");
    let with = conclude(churn.clone(), &rules, &around);
    assert_eq!(with.advice[0].rule, "preload.jemalloc");
    assert_eq!(
        with.advice[0].settings.0[0],
        Setting::Preload {
            path: "/usr/lib/libjemalloc.so.2".into()
        }
    );
    // jemalloc returns the pages of blocks that calloc zeroes.
    let tcmalloc = (AllocatorKind::Tcmalloc, "/usr/lib/libtcmalloc.so.4".into());
    let both = Surroundings {
        libraries: [around.libraries, vec![tcmalloc]].concat(),
        ..Surroundings::default()
    };
    let first = conclude(churn.clone(), &rules, &both).advice;
    assert_eq!(first[0].rule, "preload.tcmalloc");
    let without = conclude(churn, &rules, &Surroundings::default());
    assert_eq!(without.advice[0].rule, "install.allocator");
}

#[test]
fn a_java_heap_is_not_cured_by_settings_of_malloc() {
    let mut churn = churning(
        run(500, 900, 540_000),
        Cause::RefaultAfterDontneed,
        RegionKind::Anonymous,
        500_000.0,
        1 << 20,
    );
    churn.allocators.push(allocator(AllocatorKind::Jvm, "17"));
    let answer = concluded(churn);
    assert!(tunables(&answer).is_empty(), "{:?}", answer.advice);
    assert_eq!(answer.advice[0].rule, "jvm.fixed-heap");
}

#[test]
fn first_touch_gets_no_setting() {
    let mut findings = run(530, 280, 183_165);
    findings.by_cause = vec![share(Cause::FirstTouch, 183_000.0)];
    let answer = concluded(findings);
    assert_eq!(answer.diagnoses[0].id, "first_touch");
    assert!(
        answer
            .advice
            .iter()
            .all(|advice| advice.settings.0.is_empty())
    );
}

#[test]
fn a_healthy_program_is_told_so_and_left_alone() {
    let mut findings = run(800, 30, 8_702);
    findings.by_cause = vec![
        share(Cause::FirstTouch, 8_000.0),
        share(Cause::FileMinor, 700.0),
    ];
    findings.account.samples = 800;
    let answer = concluded(findings.clone());
    assert_eq!(answer.diagnoses[0].id, "healthy");
    assert!(answer.advice.is_empty(), "{:?}", answer.advice);
    assert!(
        answer.verdict.starts_with("Nothing to gain here"),
        "{}",
        answer.verdict
    );
    // An allocator that takes all of that time would not have been seen.
    findings.account.samples = 0;
    let answer = concluded(findings);
    assert!(
        answer.verdict.contains("was not sampled"),
        "{}",
        answer.verdict
    );
    assert!(!answer.verdict.contains("Nothing to gain here"));
}

#[test]
fn churn_too_small_to_matter_is_left_alone() {
    let churn = churning(
        run(5_000, 50, 9_000),
        Cause::RefaultAfterBrk,
        RegionKind::Heap,
        6_000.0,
        200_000,
    );
    let answer = concluded(churn);
    assert!(answer.advice.is_empty(), "{:?}", answer.advice);
}

#[test]
fn totals_alone_suffice_for_a_probable_churn() {
    let mut findings = run(350, 909, 540_458);
    findings.samples = 0;
    findings.timeline.points = vec![TimelinePoint {
        processes: 1,
        rss: Bytes(15 << 20),
        ..TimelinePoint::default()
    }];
    let answer = concluded(findings);
    assert_eq!(answer.diagnoses[0].id, "churn.probable");
    assert!(answer.diagnoses[0].explanation.contains("totals"));
    // Whoever releases it was not seen: only runs tell whether a setting reaches it.
    assert!(answer.advice.iter().all(|one| one.settings.0.is_empty()));
    let message = |id: &str| answer.diagnoses.iter().any(|one| one.id == id);
    assert!(!message("kernel.unexplained"));
    let tries = "which was not seen: the program, its runtime or its allocator. pagewise doctor \
                 --prove tries 'keep freed memory'";
    assert!(answer.verdict.contains(tries), "{}", answer.verdict);
}

#[test]
fn totals_of_many_processes_conclude_nothing() {
    let mut findings = run(350, 909, 540_458);
    findings.samples = 0;
    findings.timeline.points = vec![TimelinePoint {
        processes: 9,
        ..TimelinePoint::default()
    }];
    let answer = concluded(findings);
    assert_eq!(answer.diagnoses[0].id, "open");
    assert!(
        !answer.verdict.contains("othing to gain"),
        "{}",
        answer.verdict
    );
}

#[test]
fn a_proof_takes_the_place_of_the_prediction_in_the_verdict() {
    let churn = zlib_churn();
    let findings = concluded(churn);
    let shown = |verdict| Comparison {
        arm: findings.advice[0].name(),
        wall_speedup: Estimate::exact(3.9),
        cpu_speedup: Estimate {
            value: 4.0,
            low: 3.8,
            high: 4.2,
        },
        fault_ratio: Estimate::exact(0.02),
        rss_change_bytes: 0.0,
        p_adjusted: 0.001,
        pairs: 9,
        verdict,
    };
    let proof = |winner: Option<&str>, verdict| Proof {
        arms: Vec::new(),
        comparisons: vec![shown(verdict)],
        winner: winner.map(str::to_string),
        confirmation: None,
        summary: String::new(),
        notes: Vec::new(),
    };
    let name = findings.advice[0].name();
    let faster = proved(findings.clone(), proof(Some(&name), Verdict::Faster));
    assert!(
        faster
            .verdict
            .contains("Two settings, no rebuild: proved 4.0 times"),
        "{}",
        faster.verdict
    );
    let mut once = proof(None, Verdict::Undecided);
    once.comparisons[0].pairs = 1;
    once.comparisons[0].cpu_speedup = Estimate {
        value: 4.0,
        low: 0.0,
        high: f64::MAX,
    };
    let message = proved(findings.clone(), once.clone()).verdict;
    let expected = format!("one run with '{name}' was 4.0 times as fast in CPU time");
    assert!(message.contains(&expected), "{message}");
    once.comparisons[0].cpu_speedup.value = 1.1;
    let message = proved(findings.clone(), once).verdict;
    assert!(message.contains("Inconclusive"), "{message}");
    let same = proved(findings.clone(), proof(None, Verdict::NoDifference));
    assert!(
        same.verdict.contains("did not make it faster"),
        "{}",
        same.verdict
    );
}

/// Huge pages are a setting: the headline must not deny them above a finding that they would help.
#[test]
fn where_huge_pages_would_help_the_headline_says_so() {
    let mut churn = churning(
        run(240, 1370, 1_024_059),
        Cause::RefaultAfterMunmap,
        RegionKind::MmappedChunk,
        1_020_000.0,
        1 << 20,
    );
    churn.churn.allocator_blocks = Some(0.0);
    let without = concluded(churn.clone());
    churn.diagnoses.push(note(page_sizes::HELP));
    let with = concluded(churn);
    assert!(!without.verdict.contains("huge pages"));
    assert!(with.verdict.contains("but huge pages would"));
    // Applied again, the note still appears only once.
    let again = concluded(with.clone());
    assert_eq!(again.diagnoses, with.diagnoses);
    assert_eq!(with.diagnoses.len(), without.diagnoses.len() + 1);
}

#[test]
fn where_the_mapper_could_not_be_seen_no_setting_is_promised() {
    let mut churn = churning(
        run(480, 909, 540_458),
        Cause::RefaultAfterMunmap,
        RegionKind::MmappedChunk,
        537_000.0,
        40 << 20,
    );
    let unseen = concluded(churn.clone());
    assert_eq!(unseen.advice[0].rule, "own.unseen");
    assert!(unseen.advice.iter().all(|one| one.settings.0.is_empty()));
    let holds_for_both = "Whether a setting fixes that depends on who releases the memory, which \
                          was not seen: the program, its runtime or its allocator. pagewise doctor \
                          --prove tries ";
    assert!(
        unseen.verdict.contains(holds_for_both),
        "{}",
        unseen.verdict
    );
    let called_by = |stack: &[&str]| Site {
        stack: stack.iter().map(|name| (*name).to_owned()).collect(),
        culprit: String::new(),
        faults: 10.0,
        main_cause: Cause::RefaultAfterMunmap,
    };
    churn.churn.release_sites = vec![called_by(&["main", "work", "free", "munmap"])];
    assert_eq!(tunables(&concluded(churn.clone())).len(), 2);
    churn.churn.release_sites = vec![called_by(&["main", "work", "munmap"])];
    assert_eq!(concluded(churn.clone()).advice[0].rule, "own.mapping");
    churn.churn.release_sites = vec![called_by(&["start_thread", "work", "munmap"])];
    assert_eq!(concluded(churn.clone()).advice[0].rule, "own.mapping");
    for stack in [
        &["clone3", "start_thread", "__madvise"][..],
        &["main", "work", "pthread_join", "__nptl_free_tcb", "munmap"],
    ] {
        churn.churn.release_sites = vec![called_by(stack)];
        let answer = concluded(churn.clone());
        assert_eq!(answer.advice[0].rule, "threads.keep", "{stack:?}");
        assert!(
            answer.verdict.starts_with("Stacks of threads"),
            "{}",
            answer.verdict
        );
    }
}

/// A run of one second, nine tenths of it in the kernel.
fn in_the_kernel() -> Findings {
    let mut findings = run(100, 900, 200);
    findings.by_cause = vec![share(Cause::FirstTouch, 200.0)];
    findings
}

fn work(id: &str, nanos: f64) -> KernelWork {
    KernelWork {
        id: id.into(),
        time: Estimate::exact(nanos),
        in_faults: Estimate::exact(nanos),
    }
}

#[test]
fn what_the_kernel_does_is_told_and_never_called_nothing() {
    let mut findings = in_the_kernel();
    findings.account = Account {
        samples: 300,
        kernel: Estimate::exact(9e8),
        entries: vec![KernelEntry {
            id: "call.read".into(),
            label: "reading (pread64)".into(),
            time: Estimate::exact(8.8e8),
            functions: vec!["filemap_read".into()],
        }],
        cpu: vec![
            TimePart::plain("call.read", "reading (pread64)", Estimate::exact(8.8e8)),
            TimePart::plain("own", "the program's own code", Estimate::exact(1e8)),
        ],
        ..Account::default()
    };
    let answer = concluded(findings);
    assert_eq!(answer.diagnoses[0].id, "kernel.work");
    assert!(
        answer.verdict.contains("reading (pread64)"),
        "{}",
        answer.verdict
    );
    assert!(!answer.verdict.contains("Nothing to gain"));
}

#[test]
fn a_verdict_predicts_no_more_than_its_interval_bears_out() {
    let mut findings = concluded(zlib_churn());
    let mut message = |low, value, high| {
        findings.advice[0].predicted_speedup = Estimate { value, low, high };
        verdict::verdict(&findings, &[])
    };
    assert!(message(2.0, 2.5, 3.0).contains("about 2.5 times as fast in CPU time (predicted 2.0"));
    let at_least = message(5.0, 17.6, 75.0);
    assert!(
        at_least.contains("more than 5.0 times as fast"),
        "{at_least}"
    );
    let open = message(1.0, 1.1, 133.0);
    assert!(
        open.contains("cannot be predicted") && !open.contains("133"),
        "{open}"
    );
}

#[test]
fn recording_is_no_work_of_the_program() {
    let mut findings = in_the_kernel();
    findings.account = Account {
        samples: 300,
        kernel: Estimate::exact(9e8),
        entries: vec![
            KernelEntry {
                id: "observer".into(),
                label: "recording overhead".into(),
                time: Estimate::exact(5e8),
                functions: vec!["perf_trace_init".into()],
            },
            KernelEntry {
                id: "call.process".into(),
                label: "starting and ending processes (clone3)".into(),
                time: Estimate::exact(3e8),
                functions: vec!["copy_process".into()],
            },
        ],
        ..Account::default()
    };
    let answer = concluded(findings);
    let message = &answer.diagnoses[0];
    assert!(
        answer.verdict.contains("starting and ending"),
        "{}",
        answer.verdict
    );
    assert!(message.share_of_cpu.unwrap().value < 0.5, "{message:?}");
}

#[test]
fn a_share_that_is_hardly_known_is_told_by_its_ends() {
    let mut findings = in_the_kernel();
    findings.account.unexplained = Estimate {
        value: 4e8,
        low: 2e7,
        high: 9e8,
    };
    let answer = concluded(findings);
    assert!(
        answer.verdict.contains("may take between 2.0 % and 90 %"),
        "{}",
        answer.verdict
    );
}

#[test]
fn kernel_time_that_nobody_saw_is_never_called_nothing() {
    let mut findings = in_the_kernel();
    findings.account.unexplained = Estimate::exact(8e8);
    let answer = concluded(findings);
    assert_eq!(answer.diagnoses[0].id, "kernel.unexplained");
    assert!(
        !answer.verdict.contains("Nothing to gain"),
        "{}",
        answer.verdict
    );
}

#[test]
fn huge_pages_used_for_a_few_bytes_are_switched_off() {
    let mut findings = run(10, 1_500, 2_048);
    findings.by_cause = vec![Share {
        time: Some(Nanos(1_480_000_000)),
        ..share(Cause::HugePage, 2_000.0)
    }];
    findings.account.entries.push(KernelEntry {
        id: "fault".into(),
        label: "page faults".into(),
        time: Estimate::exact(1.48e9),
        functions: Vec::new(),
    });
    findings.account.work.push(work("huge", 1.48e9));
    findings.huge_pages = Some(HugePageUse {
        held: Bytes(1 << 30),
        zeros: Some(0.99),
    });
    let answer = concluded(findings.clone());
    assert_eq!(answer.diagnoses[0].id, "huge.sparse");
    let best = &answer.advice[0];
    assert_eq!(
        best.settings.0,
        [Setting::Thp {
            mode: "never".into()
        }]
    );
    // Of 1,510 ms, 1,480 are saved, and 10,240 small pages of 1.4 µs are added: 44 ms remain.
    let gain = best.predicted_speedup;
    assert!((gain.value - 34.0).abs() < 0.5, "{gain:?}");
    assert!(gain.low > 5.0 && gain.covers(gain.value), "{gain:?}");
    findings.huge_pages = Some(HugePageUse {
        held: Bytes(1 << 30),
        zeros: Some(0.0),
    });
    let dense = concluded(findings);
    assert!(dense.advice.iter().all(|one| one.settings.0.is_empty()));
}

#[test]
fn advice_follows_the_largest_finding() {
    let mut findings = run(50, 950, 200_000);
    findings.by_cause = vec![
        share(Cause::CopyOnWrite, 180_000.0),
        share(Cause::FirstTouch, 20_000.0),
    ];
    let answer = concluded(findings);
    assert_eq!(answer.diagnoses[0].id, "cow.fork");
    assert_eq!(answer.advice[0].cures, ["cow.fork"]);
}

/// Thresholds are advised; allocators that keep memory otherwise are only tried.
#[test]
fn churn_is_tried_on_each_installed_allocator() {
    let installed = |libraries: &[AllocatorKind]| Surroundings {
        libraries: libraries
            .iter()
            .map(|&one| (one, format!("/lib/{one:?}.so")))
            .collect(),
        ..Surroundings::default()
    };
    let rules = Rules::shipped().expect("shipped rules");
    let tried = |churn: Findings, libraries: &[AllocatorKind]| -> Vec<String> {
        let around = installed(libraries);
        let found = conclude(churn, &rules, &around);
        assert_eq!(found.advice[0].rule, "glibc.keep-freed-memory");
        trials(&found, &rules, &around)
            .into_iter()
            .map(|one| one.rule)
            .collect()
    };
    let both = [AllocatorKind::Jemalloc, AllocatorKind::Tcmalloc];
    let of_both = ["glibc.tcmalloc-instead", "glibc.jemalloc-instead"];
    assert_eq!(tried(zlib_churn(), &both), of_both);
    assert_eq!(tried(zlib_churn(), &both[..1]), ["glibc.jemalloc-instead"]);
    assert!(tried(zlib_churn(), &[]).is_empty());
    // An allocator that is slow as well is tried for that reason.
    let mut slow = zlib_churn();
    let time = Estimate::exact(0.3 * 1.3e9);
    slow.account.cpu = vec![TimePart {
        places: vec!["_int_malloc".into()],
        ..TimePart::plain(pagewise_model::account::ALLOCATOR, "", time)
    }];
    let found = conclude(slow.clone(), &rules, &installed(&both));
    let advised: Vec<&str> = found.advice.iter().map(|one| one.rule.as_str()).collect();
    assert!(advised.contains(&"speed.tcmalloc"), "{advised:?}");
    let again = trials(&found, &rules, &installed(&both));
    assert!(
        again.iter().all(|one| !one.rule.ends_with("-instead")),
        "{again:?}"
    );
}

#[test]
fn a_version_newer_than_the_last_one_tried_is_named() {
    let advised = |version: &str| {
        let mut findings = zlib_churn();
        findings.allocators = vec![allocator(AllocatorKind::Glibc, version)];
        concluded(findings).advice[0]
            .caveat
            .clone()
            .unwrap_or_default()
    };
    assert!(!advised("2.36").contains("newer than"));
    let newer = "GNU libc 2.99 is newer than 2.43, the last version on which this was tried.";
    assert!(advised("2.99").ends_with(newer), "{}", advised("2.99"));
}

#[test]
fn unnamed_functions_in_an_allocators_file_are_its_own() {
    let mut findings = zlib_churn();
    findings.allocators = vec![allocator(AllocatorKind::Jemalloc, "5.3.0")];
    findings.churn.routes[0].cause = Cause::RefaultAfterDontneed;
    findings.churn.routes[0].region = RegionKind::Anonymous;
    let stack = [
        "main",
        "[libjemalloc.so.2]",
        "[libjemalloc.so.2]",
        "madvise",
    ];
    findings.churn.release_sites = vec![Site {
        stack: stack.map(str::to_owned).to_vec(),
        culprit: "main".to_owned(),
        faults: 100_000.0,
        main_cause: Cause::RefaultAfterDontneed,
    }];
    let answer = concluded(findings);
    assert_eq!(
        answer.advice[0].rule, "jemalloc.no-decay",
        "{:?}",
        answer.advice
    );
}

#[test]
fn what_no_symptom_asks_for_is_tried_all_the_same() {
    let mut findings = run(900, 100, 2_000);
    findings.allocators = vec![allocator(AllocatorKind::Glibc, "2.36")];
    let thp = (
        "thp.enabled".to_owned(),
        "always [madvise] never".to_owned(),
    );
    findings.host.settings.extend([thp]);
    let own = [
        ("MALLOC_TRIM_THRESHOLD_", "65536"),
        ("glibc.malloc.perturb", "85"),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    findings.allocators[0].settings.extend(own);
    let rules = Rules::shipped().expect("shipped rules");
    let around = Surroundings {
        libraries: vec![(AllocatorKind::Mimalloc, "/lib/libmimalloc.so.3".to_owned())],
        ..Surroundings::default()
    };
    let names = |findings: &Findings| -> Vec<String> {
        let tried = trials(findings, &rules, &around);
        tried.iter().map(Advice::name).collect()
    };
    assert_eq!(
        names(&findings),
        [
            "without glibc settings",
            "keep freed memory",
            "mimalloc",
            "huge pages"
        ]
    );
    // A static program reads its tunables; nothing can be preloaded into it.
    findings.allocators[0].is_static = true;
    findings.allocators[0].settings.clear();
    assert_eq!(names(&findings), ["keep freed memory", "huge pages"]);
    findings.cost = run(90, 10, 2_000).cost;
    assert!(names(&findings).is_empty());
}
