//! Waits: for pages of files, for the lock of the address space, and together with costs in CPU
//! time.

use super::*;
use pagewise_model::findings::FileReads;
use pagewise_model::ratio::Ratio;
use pagewise_model::timeline::PressurePoint;

fn part(id: &str, milliseconds: f64, who: &str) -> TimePart {
    let time = Estimate {
        value: milliseconds * 1e6,
        low: milliseconds * 0.8e6,
        high: milliseconds * 1.2e6,
    };
    let who = (!who.is_empty()).then(|| who.to_owned());
    TimePart {
        who: who.into_iter().collect(),
        ..TimePart::plain(id, &format!("waiting ({id})"), time)
    }
}

fn concluded(findings: Findings) -> Findings {
    conclude(
        findings,
        &Rules::shipped().unwrap(),
        &Surroundings::default(),
    )
}

/// 200 ms of CPU time in 1.2 s, nearly all the rest waiting for pages at 276 major faults.
fn reads_a_mapped_file() -> Findings {
    let mut findings = run(20, 180, 13_394);
    findings.cost.wall = Nanos(1_200_000_000);
    findings.cost.major_faults = 276;
    findings.by_cause = vec![
        share(Cause::FileMinor, 13_000.0),
        share(Cause::FileMajor, 276.0),
    ];
    findings.account.elapsed = vec![part("pages", 900.0, "reader"), part("cpu", 250.0, "")];
    findings
}

#[test]
fn waits_for_file_pages_precede_their_cpu_time() {
    let found = concluded(reads_a_mapped_file());
    assert_eq!(found.diagnoses[0].id, "file.read");
    assert_eq!(found.diagnoses[0].severity, Severity::Severe);
    let message = "read from the disk: this takes about 75 % of the elapsed time.";
    assert!(found.verdict.contains(message), "{}", found.verdict);
    assert_eq!(found.advice[0].rule, "file.read-ahead");
}

/// Advice to the kernel about mapped files helps or harms: runs decide, and nothing is promised.
#[test]
fn mapped_file_advice_is_tried_where_we_can_preload() {
    let mut found = concluded(reads_a_mapped_file());
    found.file_reads = vec![FileReads {
        path: "/data/index.bin".to_owned(),
        is_code: false,
        mapped: Bytes(600 << 20),
        reads: 276,
        in_order: Some(0.1),
    }];
    let rules = Rules::shipped().unwrap();
    let tried = |own_library: Option<&str>| -> Vec<String> {
        let around = Surroundings {
            own_library: own_library.map(str::to_owned),
            ..Surroundings::default()
        };
        let trials = trials(&found, &rules, &around);
        let ours = trials.iter().filter(|one| one.rule.starts_with("file."));
        let wishes = ours.map(|one| {
            assert_eq!(Ratio::from_estimate(&one.predicted_speedup), Ratio::Unknown);
            match &one.settings.0[..] {
                [Setting::Preload { path }, Setting::Env { name, value }] => {
                    assert_eq!(
                        (path.as_str(), name.as_str()),
                        ("/lib/ours.so", "PAGEWISE_FILES")
                    );
                    value.clone()
                }
                others => panic!("{others:?}"),
            }
        });
        wishes.collect()
    };
    let mut all = tried(Some("/lib/ours.so"));
    all.sort();
    // Advice for sweeps is not tried on reads at random positions.
    assert_eq!(all, ["populate", "random", "will-need"]);
    assert_eq!(tried(None), [""; 0]);
    let again = concluded(found);
    let message = "/data/index.bin (600 MiB): 276 reads, at random positions";
    let evidence = &again.diagnoses[0].evidence;
    assert!(evidence.iter().any(|line| line == message), "{evidence:?}");
}

/// `faults` on a file of 600 MiB, 105 of them reads at random positions, in 0.67 s, four fifths of
/// it waiting, where reading a page takes 60 µs.
fn cold_reads(faults: f64, in_order: f64) -> (Findings, Surroundings) {
    let mut findings = reads_a_mapped_file();
    findings.cost.wall = Nanos(670_000_000);
    findings.account.elapsed = vec![part("pages", 540.0, "reader"), part("cpu", 130.0, "")];
    findings.by_cause = vec![
        share(Cause::FileMinor, faults - 105.0),
        share(Cause::FileMajor, 105.0),
    ];
    let path = "/data/numbers".to_owned();
    let around = Surroundings {
        page_reads: vec![(path.clone(), Nanos(60_000))],
        own_library: Some("/lib/ours.so".to_owned()),
        ..Surroundings::default()
    };
    findings.file_reads = vec![FileReads {
        path,
        is_code: false,
        mapped: Bytes(600 << 20),
        reads: 105,
        in_order: Some(in_order),
    }];
    (findings, around)
}

fn first_advice((findings, around): (Findings, Surroundings)) -> Advice {
    let found = conclude(findings, &Rules::shipped().unwrap(), &around);
    found.advice.into_iter().next().unwrap()
}

/// random-file-cold of bench/programs, where MADV_RANDOM gains ×3.7 of the elapsed time, and
/// numpy-cold, where it costs ×0.18: just as random, but nearly all of the read-ahead is used.
#[test]
fn unused_read_ahead_gets_advice_for_single_pages() {
    let advice = first_advice(cold_reads(2_091.0, 0.1));
    assert_eq!(advice.rule, "file.single-pages");
    assert!(advice.reason.contains("reading a page alone takes 60.0 µs"));
    for other in [cold_reads(14_592.0, 0.1), cold_reads(2_091.0, 0.9)] {
        assert_eq!(first_advice(other).rule, "file.read-ahead");
    }
    let (findings, mut slow) = cold_reads(2_091.0, 0.1);
    slow.page_reads[0].1 = Nanos(250_000);
    assert_eq!(
        first_advice((findings.clone(), slow)).rule,
        "file.read-ahead"
    );
    assert_eq!(
        first_advice((findings, Surroundings::default())).rule,
        "file.read-ahead"
    );
}

#[test]
fn reads_in_order_are_not_tried_page_by_page() {
    let (findings, around) = cold_reads(2_091.0, 0.9);
    let found = concluded(findings);
    let tried = trials(&found, &Rules::shipped().unwrap(), &around);
    let rules: Vec<&str> = tried.iter().map(|one| &*one.rule).collect();
    assert!(rules.contains(&"file.read-far-ahead"), "{rules:?}");
    assert!(!rules.contains(&"file.read-single-pages"), "{rules:?}");
}

#[test]
fn few_major_faults_do_not_explain_long_reads() {
    let ids = |findings| -> Vec<String> {
        let found = concluded(findings);
        found.diagnoses.into_iter().map(|one| one.id).collect()
    };
    let mut by_calls = reads_a_mapped_file();
    by_calls.cost.major_faults = 3;
    assert!(!ids(by_calls).contains(&"file.read".to_owned()));
    let mut swapped = reads_a_mapped_file();
    swapped.by_cause.push(share(Cause::SwapIn, 5_000.0));
    assert!(!ids(swapped).contains(&"file.read".to_owned()));
}

#[test]
fn counted_major_faults_are_of_files_without_swap() {
    let counted = || {
        let mut findings = reads_a_mapped_file();
        findings.samples = 0;
        findings.by_cause.clear();
        findings.timeline.points = vec![TimelinePoint {
            processes: 1,
            ..TimelinePoint::default()
        }];
        findings
    };
    assert_eq!(concluded(counted()).diagnoses[0].id, "file.read");
    let mut swapped = counted();
    swapped.timeline.points[0].swap = Bytes(1 << 20);
    assert_ne!(concluded(swapped).diagnoses[0].id, "file.read");
}

#[test]
fn waits_for_the_lock_count_where_a_cpu_would_have_been_free() {
    let with = |cpus: u32, ready: f64| {
        let mut findings = run(400, 600, 100_000);
        findings.host.cpus = cpus;
        findings.by_thread = vec![findings.by_thread[0].clone(); 8];
        findings.time.lock_wait = Some(Nanos(6_000_000_000));
        findings.time.lock_waits = 2_000;
        findings.account.elapsed = vec![part("ready", ready, ""), part("cpu", 1_000.0 - ready, "")];
        let found = concluded(findings);
        let lock = found.diagnoses.into_iter().find(|one| one.id == "lock");
        lock.map(|lock| (lock.severity, lock.share_of_elapsed.unwrap().value))
    };
    let (severity, share) = with(32, 0.0).unwrap();
    assert!(severity == Severity::Severe && (share - 0.75 * 31.0 / 32.0).abs() < 1e-9);
    assert_eq!(with(1, 0.0), None, "its own threads take the CPU");
    assert_eq!(with(32, 990.0), None, "others take the CPUs");
}

/// For a program that sleeps nine tenths of the time, that comes first, then how its CPU time is
/// spent.
#[test]
fn little_elapsed_time_comes_after_the_waiting() {
    let mut findings = zlib_churn();
    findings.cost.wall = Nanos(60_000_000_000);
    findings.account.elapsed = vec![
        part("network", 57_000.0, "server"),
        part("cpu", 2_000.0, ""),
    ];
    let found = concluded(findings);
    let verdict = &found.verdict;
    assert!(
        verdict.starts_with("It mostly waits: 60.0 s elapsed, 57.0 s (95 %)"),
        "{verdict}"
    );
    assert!(
        verdict.contains(" Of the CPU time: The top of the heap"),
        "{verdict}"
    );
    assert!(!verdict.contains("little of it for"), "{verdict}");
}

#[test]
fn a_short_waiting_program_gets_no_all_clear() {
    let mut findings = run(4, 58, 4_058);
    findings.cost.wall = Nanos(307_000_000);
    let message = concluded(findings.clone()).verdict;
    assert!(
        message.contains("62.0 ms of CPU time in 307 ms and waited"),
        "{message}"
    );
    findings.cost.wall = Nanos(70_000_000);
    assert!(
        concluded(findings)
            .verdict
            .starts_with("It ended too soon to tell")
    );
}

/// What holds up a single thread reads its memory map under /proc, as Pagewise itself does.
#[test]
fn one_thread_never_contends_for_the_lock_of_its_address_space() {
    let is_told = |threads: u32| {
        let mut findings = run(400, 600, 1_000);
        findings.host.cpus = 4;
        findings.time.lock_wait = Some(Nanos(300_000_000));
        findings.timeline.points = vec![TimelinePoint {
            processes: 1,
            threads,
            ..TimelinePoint::default()
        }];
        let found = concluded(findings).diagnoses;
        found.iter().any(|one| one.id == "lock")
    };
    assert!(is_told(2));
    assert!(!is_told(1));
}

/// The row of the elapsed time and the finding are one figure, also where a CPU was waited for.
#[test]
fn waits_for_pages_have_the_share_of_the_row_of_elapsed_time() {
    let mut findings = reads_a_mapped_file();
    findings.cost.wall = Nanos(4_000_000_000);
    findings.account.elapsed.push(part("ready", 2_800.0, ""));
    let found = concluded(findings);
    let waits = found.diagnoses.iter().find(|one| one.id == "file.read");
    let share = waits.and_then(|one| one.share_of_elapsed).unwrap();
    assert!((share.value - 900.0 / 4_000.0).abs() < 1e-9, "{share:?}");
}

/// The first run of R and of a C++ program after a boot: the next has 0 of 27 reads.
#[test]
fn a_first_run_that_reads_its_libraries_is_no_trouble_of_the_program() {
    let with = |data: u64, hits: u64| {
        let mut findings = reads_a_mapped_file();
        let file = |path: &str, is_code: bool, reads: u64| FileReads {
            path: path.to_owned(),
            is_code,
            mapped: Bytes(1 << 20),
            reads,
            in_order: None,
        };
        findings.file_reads = vec![
            file("/usr/lib/libicudata.so.72.1", false, 60),
            file("/usr/bin/program", true, 30),
            file("/var/lib/data", false, data),
        ];
        let point = |hits: u64| PressurePoint {
            cgroup_limit_hits: Some(hits),
            ..PressurePoint::default()
        };
        findings.timeline.pressure = vec![point(0), point(hits)];
        concluded(findings)
    };
    let first = with(2, 0);
    let found = first
        .diagnoses
        .iter()
        .find(|one| one.id == "file.first_run");
    assert_eq!(found.unwrap().severity, Severity::Note);
    assert!(first.advice.is_empty(), "{:?}", first.advice);
    assert!(!first.verdict.contains("mapped files"), "{}", first.verdict);
    for answer in [with(60, 0), with(2, 500)] {
        let ids: Vec<&str> = answer.diagnoses.iter().map(|one| &*one.id).collect();
        assert_eq!(ids[0], "file.read", "{ids:?}");
    }
}

/// 12 to 54 % of the elapsed time may be less than 15 % of it.
#[test]
fn what_certainly_costs_most_comes_first() {
    let mut findings = reads_a_mapped_file();
    findings.cost.wall = Nanos(1_000_000_000);
    findings.cost.user = Nanos(100_000_000);
    findings.cost.system = Nanos(700_000_000);
    findings.account.elapsed = vec![part("cpu", 700.0, "")];
    findings.account.elapsed[0].time = Estimate::exact(7e8);
    let mut pages = part("pages", 260.0, "reader");
    pages.time = Estimate {
        value: 2.6e8,
        low: 1.2e8,
        high: 4.7e8,
    };
    findings.account.elapsed.push(pages);
    findings.time.total_ns = Some(Estimate::exact(4e8));
    findings.by_cause = vec![
        share(Cause::FirstTouch, 10_000.0),
        share(Cause::FileMajor, 276.0),
    ];
    let found = concluded(findings);
    let order: Vec<&str> = found.diagnoses.iter().map(|one| &*one.id).collect();
    let place = |id| order.iter().position(|one| *one == id);
    assert!(place("first_touch") < place("file.read"), "{order:?}");
}

#[test]
fn a_wide_interval_may_be_costly_and_says_what_would_settle_it() {
    let mut findings = reads_a_mapped_file();
    let mut pages = part("pages", 200.0, "reader");
    pages.time = Estimate {
        value: 2e8,
        low: 0.2e8,
        high: 7.6e8,
    };
    findings.account.elapsed = vec![pages, part("cpu", 900.0, "")];
    findings.time.total_ns = Some(Estimate::exact(1e6));
    let found = concluded(findings);
    let waits = found.diagnoses.iter().find(|one| one.id == "file.read");
    assert_eq!(waits.map(|one| one.severity), Some(Severity::Note));
    let message =
        "this may take between 1.7 % and 63 % of the elapsed time. A longer run narrows that.";
    assert!(found.verdict.contains(message), "{}", found.verdict);
}

/// A second, a tenth of it on a CPU, where nearly all goes into populating; six tenths wait for reads.
fn populates(major_faults: u64) -> Findings {
    let mut findings = run(10, 90, 20);
    findings.cost.wall = Nanos(1_000_000_000);
    findings.cost.major_faults = major_faults;
    let label = "populating memory before it is touched";
    findings.account.samples = 300;
    findings.account.kernel = Estimate::exact(8.8e7);
    findings.account.entries = vec![KernelEntry {
        id: "populate".into(),
        label: label.into(),
        time: Estimate::exact(8.5e7),
        functions: Vec::new(),
    }];
    findings.account.elapsed = vec![TimePart {
        who: vec!["reader".into()],
        ..TimePart::plain("pages", "waiting for pages", Estimate::exact(6e8))
    }];
    findings
}

#[test]
fn what_populating_waits_for_is_told_as_a_share_of_elapsed_time() {
    let told = |major_faults| {
        let answer = concluded(populates(major_faults));
        let about = answer.diagnoses.iter().find(|one| one.id == "kernel.work");
        let evidence = &about.expect("the kernel works").evidence;
        evidence
            .iter()
            .any(|line| line.starts_with("60 %") && line.contains("of the elapsed time"))
    };
    assert!(told(3));
    assert!(!told(100), "faults may have waited");
}
