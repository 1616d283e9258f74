//! What samples of the kernel show apart from faults: forks, spinning for locks, TLB flushes, and
//! repeatedly mapped files.

use super::*;
use pagewise_model::findings::MmCallCost;

/// A run with 4 s in the kernel, all in one entry, divided into these kinds of work.
pub(super) fn working(entry: &str, work: &[(&str, f64)]) -> Findings {
    let mut findings = run(40, 3_960, 2_000);
    let near = |share: f64| Estimate {
        value: share * 4e9,
        low: share * 3.8e9,
        high: (share * 4.2e9).min(4e9),
    };
    findings.account.kernel = near(0.99);
    findings.account.samples = 4_000;
    findings.account.entries = vec![KernelEntry {
        id: entry.to_owned(),
        label: format!("the calls of {entry}"),
        time: near(0.95),
        functions: Vec::new(),
    }];
    let work = work.iter().map(|&(id, share)| KernelWork {
        id: id.to_owned(),
        time: near(share),
        in_faults: Estimate::exact(0.0),
    });
    findings.account.work = work.collect();
    findings
}

pub(super) fn ids(answer: &Findings) -> Vec<&str> {
    answer.diagnoses.iter().map(|one| &*one.id).collect()
}

#[test]
fn forks_of_large_processes_include_their_teardown() {
    let answer = concluded(working("call.process", &[("fork", 0.4), ("exit", 0.45)]));
    assert_eq!(ids(&answer)[0], "fork.tables");
    assert!(!ids(&answer).contains(&"kernel.work"), "{:?}", ids(&answer));
    let cost = answer.diagnoses[0].share_of_cpu.unwrap();
    assert!((cost.value - 0.8).abs() < 1e-9, "no more than was copied");
    assert_eq!(answer.advice[0].rule, "fork.smaller");
    assert!(
        answer.verdict.contains("manual fixes"),
        "{}",
        answer.verdict
    );
    // A large process takes long to exit, whether or not it was forked.
    let ends = concluded(working("call.process", &[("fork", 0.01), ("exit", 0.9)]));
    assert_eq!(ids(&ends)[0], "kernel.work");
}

#[test]
fn forks_for_programs_are_told_as_starting_programs() {
    let of = |spawned: f64| {
        let work = [("fork", 0.4), ("exit", 0.45), ("spawned", spawned)];
        concluded(working("call.process", &work))
    };
    let starts = of(0.39);
    assert_eq!(ids(&starts)[0], "fork.spawn");
    assert!(!ids(&starts).contains(&"kernel.work"), "{:?}", ids(&starts));
    assert_eq!(starts.advice[0].rule, "fork.spawn");
    // Workers beside some programs.
    assert_eq!(ids(&of(0.1))[0], "fork.tables");
}

#[test]
fn few_faults_leave_the_teardown_to_the_copies() {
    let cost = |faults: u64| {
        let mut findings = working("call.process", &[("fork", 0.4), ("exit", 0.45)]);
        findings.cost.minor_faults = faults;
        let answer = concluded(findings);
        let mut found = answer.diagnoses.into_iter();
        let tables = found.find(|one| one.id == "fork.tables").unwrap();
        tables.share_of_cpu.unwrap()
    };
    // 0.38 of 4 s copied, and as much freed: 2,000 faults are 1 ms of it.
    assert!(cost(2_000).low > 0.75, "{:?}", cost(2_000));
    assert!(cost(2_000_000).low > 0.5, "{:?}", cost(2_000_000));
    assert!(cost(8_000_000).low < 0.4, "{:?}", cost(8_000_000));
}

#[test]
fn memory_that_is_kept_makes_each_fork_dearer() {
    let gain = |forked: f64| {
        let mut findings = zlib_churn();
        let at = |at: u64, mib: u64| TimelinePoint {
            time: Nanos(at),
            rss: Bytes(mib << 20),
            ..TimelinePoint::default()
        };
        findings.timeline.points = vec![at(0, 4), at(1, 4), at(2, 4), at(3, 16)];
        let time = Estimate::exact(forked * findings.cost.cpu().as_secs_f64() * 1e9);
        findings.account.work = vec![KernelWork {
            id: "fork".to_owned(),
            time,
            in_faults: Estimate::exact(0.0),
        }];
        let advice = concluded(findings).advice;
        let found = advice
            .iter()
            .find(|one| one.rule == "glibc.keep-freed-memory");
        found.map(|one| one.predicted_speedup.low)
    };
    assert!(gain(0.0) > Some(1.3), "{:?}", gain(0.0));
    assert_eq!(gain(0.3), None, "three times as much is held at each fork");
}

/// pg-connections of bench/programs: according to perf 8 % in dup_mmap and 50 % in faults of the
/// new processes.
#[test]
fn what_each_of_many_forks_costs_is_added_up() {
    let with = |forks: u64, cause: Cause| {
        let mut findings = working(
            "call.process",
            &[("fork", 0.1), ("exit", 0.06), ("forked", 0.4)],
        );
        findings.by_cause = vec![Share {
            time: Some(Nanos(1_600_000_000)),
            ..share(cause, 1_200.0)
        }];
        let entry = &mut findings.account.entries[0];
        entry.time = Estimate::exact(0.2 * 4e9);
        findings.time.share_of_cpu = Some(Estimate::exact(0.45));
        findings.time.forks = forks;
        concluded(findings)
    };
    let answer = with(320, Cause::FileMinor);
    let message = &answer.diagnoses[0];
    assert_eq!(message.id, "fork.each", "{:?}", ids(&answer));
    assert!((message.share_of_cpu.unwrap().value - 0.56).abs() < 1e-9);
    let each = "320 processes were forked; each costs 7.00 ms of CPU time in the kernel on average";
    assert!(
        message.evidence.iter().any(|line| line == each),
        "{:?}",
        message.evidence
    );
    assert_eq!(answer.advice[0].rule, "fork.pool");
    for other in ["fork.tables", "file"] {
        assert!(!ids(&answer).contains(&other), "{:?}", ids(&answer));
    }
    // A few workers are not a problem of that kind.
    assert!(!ids(&with(8, Cause::FileMinor)).contains(&"fork.each"));
    // Children that write to everything they share copy it, however many they are.
    assert_eq!(ids(&with(320, Cause::CopyOnWrite))[0], "cow.fork");
}

#[test]
fn spinning_and_flushing_are_told_in_place_of_the_calls_that_do() {
    let spins = concluded(working("call.map", &[("lock", 0.7), ("flush", 0.1)]));
    assert_eq!(&ids(&spins)[..2], ["lock.spin", "tlb.flush"]);
    assert!(!ids(&spins).contains(&"kernel.work"), "{:?}", ids(&spins));
    let rules: Vec<&str> = spins.advice.iter().map(|one| &*one.rule).collect();
    assert_eq!(rules, ["lock.fault-less", "tlb.fewer-calls"]);
    // A small part leaves most of the calls' time unexplained.
    let little = concluded(working("call.map", &[("flush", 0.1)]));
    assert_eq!(ids(&little)[0], "kernel.work");
    assert!(ids(&little).contains(&"tlb.flush"));
}

#[test]
fn sleeping_and_spinning_for_one_lock_are_one_trouble() {
    let waiting = |milliseconds: u64| {
        let mut findings = working("call.map", &[("lock", 0.3)]);
        findings.cost.wall = Nanos(4_000_000_000);
        findings.time.lock_wait = Some(Nanos(milliseconds * 1_000_000));
        findings.time.lock_waits = 1_376;
        findings.host.cpus = 4;
        concluded(findings)
    };
    let of = |answer: &Findings| -> Vec<String> {
        let locks = answer
            .diagnoses
            .iter()
            .filter(|one| one.id.starts_with("lock"));
        locks.map(|one| one.id.clone()).collect()
    };
    let (spins, sleeps) = (waiting(100), waiting(3_900));
    assert_eq!(
        (of(&spins), of(&sleeps)),
        (vec!["lock.spin".into()], vec!["lock".into()])
    );
    for answer in [spins, sleeps] {
        let found = answer
            .diagnoses
            .iter()
            .find(|one| one.id.starts_with("lock"));
        let evidence = found.unwrap().evidence.join("\n");
        assert!(evidence.contains("1,376 waits"), "{evidence}");
        assert!(evidence.contains("spinning for the lock"), "{evidence}");
    }
}

#[test]
fn files_mapped_repeatedly_name_the_unmapping_calls() {
    let mut findings = run(100, 1_400, 120_000);
    findings.cost.max_rss = Bytes(3 << 20);
    findings.by_cause = vec![share(Cause::FileMinor, 119_000.0)];
    findings.by_thread[0].faults = 120_000.0;
    let unmapping = |calls| MmCallCost {
        call: "munmap".to_owned(),
        calls,
        bytes: Bytes(calls << 16),
        time: None,
    };
    findings.time.mm_calls = vec![unmapping(120_000)];
    let answer = concluded(findings.clone());
    assert_eq!(ids(&answer)[0], "file.remap");
    assert_eq!(answer.advice[0].rule, "file.map-once");
    let message = "120,000 calls unmapped 7.32 GiB, and never more than 3.00 MiB was resident";
    assert!(
        answer.diagnoses[0]
            .evidence
            .iter()
            .any(|line| line == message)
    );
    findings.time.mm_calls = vec![unmapping(20)];
    assert_eq!(ids(&concluded(findings))[0], "file");
}

/// stress-ng --fault: 6 % in faults of files, 19 % in the calls that map and unmap them.
#[test]
fn files_mapped_repeatedly_cost_their_calls_too() {
    let mut findings = working("call.map", &[]);
    let mapping = findings.account.entries[0].clone();
    findings.account.entries = vec![KernelEntry {
        time: mapping.time.scaled(0.2),
        ..mapping
    }];
    findings.cost.max_rss = Bytes(3 << 20);
    findings.cost.minor_faults = 200_000;
    findings.by_thread[0].faults = 200_000.0;
    findings.by_cause = vec![Share {
        time: Some(Nanos(400_000_000)),
        ..share(Cause::FileMinor, 200_000.0)
    }];
    findings.time.total_ns = Some(Estimate::exact(4e8));
    findings.time.mm_calls = vec![MmCallCost {
        call: "munmap".to_owned(),
        calls: 200_000,
        bytes: Bytes(200_000 << 16),
        time: None,
    }];
    let answer = concluded(findings);
    assert_eq!(ids(&answer), ["file.remap"]);
    let cost = answer.diagnoses[0].share_of_cpu.unwrap().value;
    assert!((cost - 0.29).abs() < 0.01, "{cost}");
}

/// Entries of the kernel as rows of the account, of 4 s of CPU time; the rest is the program's own code.
fn in_rows(rows: &[(&str, &str, f64)]) -> Findings {
    let mut findings = working("call.read", &[]);
    let near = |share: f64| Estimate {
        value: share * 4e9,
        low: share * 3.8e9,
        high: share * 4.2e9,
    };
    let entry = |&(id, label, share): &(&str, &str, f64)| KernelEntry {
        id: id.to_owned(),
        label: label.to_owned(),
        time: near(share),
        functions: Vec::new(),
    };
    findings.account.entries = rows.iter().map(entry).collect();
    let of = |one: &KernelEntry| TimePart::plain(&one.id, &one.label, one.time);
    findings.account.cpu = findings.account.entries.iter().map(of).collect();
    let rest = 1.0 - rows.iter().map(|(_, _, share)| share).sum::<f64>();
    let own = TimePart::plain("own", "the program's own code", near(rest));
    findings.account.cpu.push(own);
    findings
}

#[test]
fn a_finding_stands_beside_work_on_files_that_takes_more() {
    for (cause, headline) in [
        (Cause::Shared, "Pages of shared memory fault"),
        (Cause::FirstTouch, "First use of new memory"),
        (Cause::CopyOnWrite, "Pages are copied"),
    ] {
        let with = |reading: f64| {
            let rows = [
                ("call.read", "reading (read)", reading),
                ("call.map", "mapping and unmapping memory (mmap)", 0.09),
                ("fault", "page faults", 0.2),
            ];
            let mut findings = in_rows(&rows);
            findings.cost.minor_faults = 400_000;
            findings.by_cause = vec![Share {
                time: Some(Nanos(800_000_000)),
                ..share(cause, 400_000.0)
            }];
            findings.time.total_ns = Some(Estimate::exact(8e8));
            concluded(findings)
        };
        let verdict = with(0.5).verdict;
        let start =
            "Its CPU time is mostly the kernel's, which works for it: 50 % reading (read) and";
        assert!(verdict.starts_with(start), "{verdict}");
        assert!(verdict.contains(headline), "{verdict}");
        assert!(
            verdict.contains("fixes that"),
            "what can be done: {verdict}"
        );
        let verdict = with(0.1).verdict;
        assert!(verdict.starts_with(headline), "{verdict}");
    }
}

/// stress-ng --link: 57 % in changing files, 20 % in statfs, which was told alone.
#[test]
fn the_kernels_work_is_told_by_the_rows_of_the_account() {
    let answer = concluded(in_rows(&[
        ("call.files", "changing files and folders (link)", 0.57),
        ("call.statfs", "the system call statfs", 0.2),
    ]));
    let verdict = &answer.verdict;
    assert!(
        verdict
            .contains(": 57 % changing files and folders (link) and 20 % the system call statfs"),
        "{verdict}"
    );
    let headline = "Beside input and output, the kernel works for the program most of all on the system call statfs";
    assert_eq!(answer.diagnoses[0].headline, headline);
    let waits = concluded(in_rows(&[(
        "call.futex",
        "locks between threads (futex)",
        0.4,
    )]));
    let start = "Its own code takes 60 % of the CPU time; also 40 % locks between threads (futex).";
    assert!(waits.verdict.starts_with(start), "{}", waits.verdict);
}

#[test]
fn entering_the_kernel_is_the_most_only_of_many_tiny_calls() {
    let first = |gate: f64| {
        let rows = [
            ("gate", "entering and leaving the kernel", gate),
            ("call.map", "mapping and unmapping memory (mprotect)", 0.25),
        ];
        let answer = concluded(in_rows(&rows));
        (answer.diagnoses[0].headline.clone(), answer.verdict)
    };
    let (headline, verdict) = first(0.3);
    assert!(headline.ends_with("memory (mprotect)"), "{headline}");
    assert!(!verdict.contains("entering"), "{verdict}");
    let (headline, verdict) = first(0.5);
    assert!(headline.ends_with("leaving the kernel"), "{headline}");
    assert!(verdict.contains("entering"), "{verdict}");
}

/// `for 30 times: mmap 200 MiB of a file, read each page, munmap`, Linux 6.18.
#[test]
fn a_large_file_mapped_thirty_times_is_mapped_repeatedly() {
    let mut findings = run(499, 932, 96_102);
    findings.cost.max_rss = Bytes(201 << 20);
    findings.by_cause = vec![share(Cause::FileMinor, 96_070.0)];
    findings.by_thread[0].faults = 96_102.0;
    findings.time.mm_calls = vec![MmCallCost {
        call: "munmap".to_owned(),
        calls: 31,
        bytes: Bytes(30 * (200 << 20)),
        time: None,
    }];
    let first = |findings: &Findings| ids(&concluded(findings.clone()))[0].to_owned();
    assert_eq!(first(&findings), "file.remap");
    let mut once = findings.clone();
    once.time.mm_calls[0].bytes = Bytes(200 << 20);
    assert_eq!(first(&once), "file");
    // A file larger than memory, read by touching it.
    findings.by_cause.push(share(Cause::FileMajor, 48_000.0));
    assert_eq!(first(&findings), "file");
}

#[test]
fn what_a_short_program_waited_for_is_told_where_it_was_seen() {
    let mut findings = run(8, 2, 90);
    findings.cost.wall = Nanos(980_000_000);
    let answer = concluded(findings.clone());
    assert!(
        answer.verdict.contains("too briefly to tell"),
        "{}",
        answer.verdict
    );
    let part = |id: &str, label: &str, share: f64| {
        TimePart::plain(id, label, Estimate::exact(share * 9.8e8))
    };
    findings.account.elapsed = vec![
        part("sleep", "sleeping on a timer", 0.9),
        part("cpu", "on a CPU", 0.1),
    ];
    let message = "It used 10.0 ms of CPU time in 980 ms, 882 ms (90 %) sleeping on a timer.";
    assert_eq!(concluded(findings).verdict, message);
}

#[test]
fn the_gate_of_calls_that_are_told_elsewhere_is_told_with_them() {
    let entry = |id: &str, share: f64| KernelEntry {
        id: id.to_owned(),
        label: id.to_owned(),
        time: Estimate::exact(share * 4e9),
        functions: Vec::new(),
    };
    let beside = |reading: f64| {
        // Two thirds of the calls' time is spinning for the lock, which is a finding of its own.
        let mut findings = working("call.map", &[("lock", 0.35)]);
        findings.account.entries = vec![
            entry("call.map", 0.4),
            entry("gate", 0.24),
            entry("call.futex", reading),
        ];
        let message = concluded(findings);
        let found = message.diagnoses.into_iter();
        found
            .filter(|one| one.id == "kernel.work")
            .filter_map(|one| one.share_of_cpu)
            .map(|share| (share.value * 1000.0).round())
            .next()
    };
    assert_eq!(beside(0.01), None);
    // The gate is a row of its own.
    assert_eq!(beside(0.2), Some(200.0));
}

#[test]
fn the_kernels_headline_has_the_figure_of_the_row_it_names() {
    let entry = |id: &str, share: f64| KernelEntry {
        id: id.to_owned(),
        label: format!("the calls of {id}"),
        time: Estimate::exact(share * 4e9),
        functions: Vec::new(),
    };
    let message = |rows: &[(&str, f64)]| {
        let mut findings = working("call.futex", &[]);
        findings.account.entries = rows.iter().map(|&(id, share)| entry(id, share)).collect();
        let mut found = concluded(findings).diagnoses.into_iter();
        found.find(|one| one.id == "kernel.work").unwrap()
    };
    // "Takes 85 %" was said above rows of which the largest has 39 %.
    let several = [
        ("call.read", 0.3),
        ("call.futex", 0.39),
        ("call.sleep", 0.16),
    ];
    let one = message(&several);
    assert!(
        one.headline
            .ends_with("most of all on the calls of call.futex")
    );
    assert!((one.share_of_cpu.unwrap().value - 0.39).abs() < 1e-9);
    let in_all = |line: &String| line.contains("85 % of the CPU time in all");
    assert!(one.evidence.iter().any(in_all), "{:?}", one.evidence);
    // Many small rows: none of them is costly, whatever they add up to.
    let ids = ["call.sleep", "call.futex", "call.wait", "call.socket"];
    assert_eq!(message(&ids.map(|id| (id, 0.04))).severity, Severity::Note);
}

#[test]
fn faults_that_the_program_serves_are_told_as_such() {
    let mut findings = working("call.device", &[("served", 0.9)]);
    findings.account.work[0].in_faults = Estimate::exact(0.1 * 4e9);
    findings.cost.minor_faults = 500_000;
    findings.time.share_of_cpu = Some(Estimate::exact(0.35));
    findings.time.total_ns = Some(Estimate::exact(0.35 * 4e9));
    findings.by_cause = vec![share(Cause::RefaultAfterMunmap, 490_000.0)];
    let answer = concluded(findings);
    assert_eq!(ids(&answer)[0], "faults.served");
    assert_eq!(answer.advice[0].rule, "served.more-pages");
    let mut of_go = working("call.device", &[("served", 0.9)]);
    of_go.allocators.push(allocator(AllocatorKind::Go, "1.26"));
    let verdict = concluded(of_go).verdict;
    assert!(!verdict.contains("--prove tries"), "{verdict}");
    assert!(!ids(&answer).contains(&"churn.mmap"), "{:?}", ids(&answer));
    // Some of the faults alone.
    let mut some = working("call.device", &[("served", 0.02)]);
    some.cost.minor_faults = 500_000;
    some.by_cause = vec![share(Cause::FirstTouch, 490_000.0)];
    assert_ne!(ids(&concluded(some))[0], "faults.served");
}

#[test]
fn buffers_that_are_registered_each_time_are_told_with_their_fix() {
    for entry in ["call.rings", "populate"] {
        let answer = concluded(working(entry, &[("registered", 0.9)]));
        assert_eq!(ids(&answer)[0], "pin.each", "{entry}");
        assert!(!ids(&answer).contains(&"kernel.work"), "{:?}", ids(&answer));
        assert_eq!(answer.advice[0].rule, "pin.once");
    }
}
