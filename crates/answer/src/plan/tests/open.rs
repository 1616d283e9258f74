//! "Nothing to gain" is reported only if less than 5 % of each clock is unresolved; otherwise the
//! answer describes how the time is spent.

use super::*;

/// A run with 10 s of CPU time of which the program's own code takes this share, in two functions;
/// `beside` describes the rest.
pub(super) fn computing(own: Estimate, beside: &[(&str, &str, f64)]) -> Findings {
    let mut findings = run(9_900, 100, 2_000);
    findings.account.samples = 10_000;
    findings.account.cpu = vec![TimePart {
        places: vec!["solve".into(), "next_row".into()],
        shares: vec![0.52, 0.2],
        ..TimePart::plain("own", "the program's own code", own.scaled(1e10))
    }];
    let others = beside
        .iter()
        .map(|&(id, label, share)| TimePart::plain(id, label, Estimate::exact(share * 1e10)));
    findings.account.cpu.extend(others);
    findings
}

fn from(low: f64) -> Estimate {
    Estimate {
        value: 0.97,
        low,
        high: 0.99,
    }
}

/// Elapsed time by shares; time not on a CPU is waiting.
fn elapsed(mut findings: Findings, parts: &[(&str, &str, f64)]) -> Findings {
    let wall = findings.cost.wall.0 as f64;
    let part = |&(id, label, share): &(&str, &str, f64)| TimePart {
        who: match ["cpu", "ready", "unseen"].contains(&id) {
            true => Vec::new(),
            false => vec!["program".into()],
        },
        ..TimePart::plain(id, label, Estimate::exact(share * wall))
    };
    findings.account.elapsed = parts.iter().map(part).collect();
    findings
}

fn says_nothing(findings: Findings) -> bool {
    let answer = concluded(findings);
    let is_healthy = answer.diagnoses.iter().any(|one| one.id == "healthy");
    let says = answer.verdict.contains("othing to gain");
    assert!(
        is_healthy || !says,
        "{}: {:?}",
        answer.verdict,
        answer.diagnoses
    );
    says
}

#[test]
fn a_healthy_program_is_told_what_it_computes() {
    let answer = concluded(computing(from(0.96), &[]));
    assert_eq!(
        answer.verdict,
        "Compute-bound: 97 % of the CPU time in its own code, most of it in solve (52 %), next_row \
         (20 %); nothing to gain from memory management."
    );
    let ids: Vec<&str> = answer.diagnoses.iter().map(|one| &*one.id).collect();
    assert_eq!(ids, ["healthy", "computing"]);
    let message = &answer.diagnoses[1];
    assert_eq!(message.headline, "Its own code takes 97 % of the CPU time");
    assert_eq!(message.evidence[0], "52 % of the CPU time: solve");
    assert!(
        message.evidence[2].contains("pagewise record -- CMD"),
        "{message:?}"
    );
}

#[test]
fn cpu_time_that_is_open_is_a_twentieth_at_most() {
    // The uncertainty of the intervals.
    assert!(says_nothing(computing(from(0.951), &[])));
    assert!(!says_nothing(computing(from(0.949), &[])));
    // Unexplained time.
    let unexplained = |share: f64| {
        let own = Estimate::exact(1.0 - share);
        computing(own, &[("unexplained", "the kernel, unexplained", share)])
    };
    assert!(says_nothing(unexplained(0.049)));
    let message = concluded(unexplained(0.051));
    assert_eq!(message.diagnoses[0].id, "open");
    assert!(
        message
            .verdict
            .ends_with("5.1 % of the CPU time remains unexplained."),
        "{}",
        message.verdict
    );
    // Known time outside the program's own code.
    let reads = |share: f64| {
        computing(
            Estimate::exact(1.0 - share),
            &[("call.read", "reading (pread64)", share)],
        )
    };
    assert!(says_nothing(reads(0.049)));
    let message = concluded(reads(0.051)).verdict;
    assert!(
        message.ends_with("; also 5.1 % reading (pread64)."),
        "{message}"
    );
    // The uncertainty of the windows of single faults.
    let faults = |high: f64| {
        let mut findings = computing(from(0.97), &[]);
        findings.time.share_of_cpu = Some(Estimate {
            value: 0.01,
            low: 0.0,
            high,
        });
        findings
    };
    assert!(says_nothing(faults(0.049)));
    assert!(!says_nothing(faults(0.051)));
}

/// A part without any sample is missing from the account, which does not mean that there were no
/// samples.
#[test]
fn a_program_all_in_the_kernel_sees_what_it_does() {
    let mut findings = run(0, 400, 200);
    findings.account.samples = 40;
    let part = |id, label, share| TimePart::plain(id, label, Estimate::exact(share * 4e8));
    findings.account.cpu = vec![
        part("call.write", "writing (pwrite64)", 0.68),
        part("call.files", "changing files (ftruncate)", 0.31),
        part("unexplained", "the kernel, unexplained", 0.01),
    ];
    let message = concluded(findings).verdict;
    assert_eq!(
        message,
        "Its CPU time is the kernel's, which works for it: 68 % writing (pwrite64) and 31 % changing \
         files (ftruncate)."
    );
}

#[test]
fn the_kernels_time_is_open_where_its_stacks_were_not_seen() {
    let blind = |system: u64| run(10_000 - system, system, 2_000);
    let healthy = concluded(blind(490));
    assert_eq!(healthy.diagnoses[0].id, "healthy");
    assert!(
        healthy
            .verdict
            .starts_with("Page faults are not what slows this program down."),
        "{}",
        healthy.verdict
    );
    let message = concluded(blind(510));
    assert_eq!(message.diagnoses[0].id, "open");
    assert!(
        message
            .verdict
            .contains("510 ms of 10.0 s CPU time (5.1 %) is the kernel's"),
        "{}",
        message.verdict
    );
}

#[test]
fn elapsed_time_that_is_open_is_a_twentieth_at_most() {
    let computes = || {
        let mut findings = computing(from(0.97), &[]);
        // With several threads no total shows whether all of them rested at once.
        let other = ThreadShare {
            tid: 101,
            ..findings.by_thread[0].clone()
        };
        findings.by_thread.push(other);
        findings
    };
    let unseen = |share| {
        let parts = [
            ("cpu", "on a CPU", 1.0 - share),
            ("unseen", "not told apart", share),
        ];
        elapsed(computes(), &parts)
    };
    assert!(says_nothing(unseen(0.049)));
    let message = concluded(unseen(0.051));
    assert_eq!(message.diagnoses[0].id, "open");
    assert!(
        message
            .verdict
            .contains("What it did for 5.1 % of the elapsed time was not seen."),
        "{}",
        message.verdict
    );
    let sleeps = |share| {
        let parts = [
            ("cpu", "on a CPU", 1.0 - share),
            ("sleep", "sleeping on a timer", share),
        ];
        elapsed(computes(), &parts)
    };
    assert!(says_nothing(sleeps(0.049)));
    let message = concluded(sleeps(0.051)).verdict;
    assert!(
        message.contains("It waits for 5.1 % of the elapsed time."),
        "{message}"
    );
    // Without looks, the totals of a single thread limit it.
    let untold = |millis: u64| {
        let mut findings = computing(from(0.97), &[]);
        findings.cost.wall = Nanos(millis * 1_000_000);
        findings
    };
    assert!(says_nothing(untold(10_510)));
    assert!(!says_nothing(untold(10_540)));
}

/// Faults do not show the cost of address translation: if memory is large, they do not rule it out.
#[test]
fn faults_give_no_all_clear_for_the_page_size() {
    let mut computes = computing(from(0.96), &[]);
    computes.diagnoses.push(note("huge_pages.unmeasured"));
    let answer = concluded(computes);
    assert!(
        answer.verdict.ends_with(
            "page faults cost it little. What huge pages would do for its memory accesses was not \
             measured: pagewise huge balance does that."
        ),
        "{}",
        answer.verdict
    );
    let headline = "Page faults are not what slows this program down";
    assert_eq!(answer.diagnoses[0].headline, headline);
    // cpp-tree of bench/programs: ×1.29 with huge pages. If a setting enables them, runs can
    // decide.
    let mut large = computing(from(0.96), &[]);
    large.diagnoses.push(note("huge_pages.unmeasured"));
    large.cost.max_rss = Bytes(256 << 20);
    let thp = ("thp.enabled".to_owned(), "madvise".to_owned());
    large.host.settings.extend([thp]);
    let verdict = concluded(large).verdict;
    let trial = "pagewise doctor --prove tries 'huge pages'";
    assert!(verdict.contains(trial), "{verdict}");
}

/// A possible wait prevents "nothing to gain", and is not reported as a wait.
#[test]
fn waits_only_inside_an_interval_are_not_reported() {
    let may_wait = Diagnosis {
        share_of_elapsed: Some(Estimate {
            value: 0.01,
            low: 0.003,
            high: 0.13,
        }),
        ..note("file.read")
    };
    let computes = computing(from(0.97), &[]);
    let open = crate::plan::open::Open::new(&computes, &[may_wait]);
    assert!(!open.is_little());
    assert_eq!(open.of_waits(), None);
}

/// The finding in the headline comes first, even if it costs little.
#[test]
fn a_small_trouble_with_a_cure_leads_the_findings() {
    let mut findings = churning(
        run(300, 100, 22_000),
        Cause::RefaultAfterBrk,
        RegionKind::Heap,
        15_000.0,
        270_000,
    );
    findings.by_cause[0].time = Some(Nanos(30_000_000));
    findings.time.total_ns = Some(Estimate::exact(45e6));
    findings.account.elapsed = vec![TimePart::plain(
        "cpu",
        "on a CPU",
        Estimate::exact(0.9 * findings.cost.wall.0 as f64),
    )];
    let answer = concluded(findings);
    let message = &answer.diagnoses[0];
    assert_eq!(
        (&*message.id, message.severity),
        ("churn.brk", Severity::Note)
    );
    assert!(
        answer.verdict.starts_with(&message.headline),
        "{}",
        answer.verdict
    );
}

#[test]
fn a_program_that_waits_for_half_of_its_time_is_told_what_for() {
    let mut findings = computing(from(0.97), &[]);
    findings.cost.wall = Nanos(20_000_000_000);
    let parts = [
        ("cpu", "on a CPU", 0.5),
        ("network", "waiting for the network", 0.5),
    ];
    let message = concluded(elapsed(findings, &parts)).verdict;
    assert!(
        message.ends_with(
            "It waits for 50 % of the elapsed time, 10.0 s (50 %) waiting for the network."
        ),
        "{message}"
    );
    assert!(
        message.starts_with("Compute-bound: 97 %") && !message.contains("othing to gain"),
        "{message}"
    );
}

#[test]
fn one_busy_thread_among_idle_cpus_is_told() {
    let mut findings = computing(from(0.97), &[]);
    findings.host.cpus = 8;
    let message = concluded(findings.clone()).verdict;
    assert!(
        message.ends_with("It uses one of 8 CPUs at a time."),
        "{message}"
    );
    findings.cost.wall = Nanos(2_500_000_000);
    assert!(!concluded(findings).verdict.contains("at a time"));
}

#[test]
fn work_on_files_is_what_a_program_that_asks_for_it_is_for() {
    let entry = |id: &str, label: &str, share: f64| KernelEntry {
        id: id.into(),
        label: label.into(),
        time: Estimate::exact(share * 1e10),
        functions: Vec::new(),
    };
    let works = |entries: Vec<KernelEntry>| {
        let parts: Vec<(&str, &str, f64)> = entries
            .iter()
            .map(|one| (&*one.id, &*one.label, one.time.value / 1e10))
            .collect();
        let mut findings = computing(Estimate::exact(0.3), &parts);
        (findings.cost.user, findings.cost.system) = (Nanos(3_000_000_000), Nanos(7_000_000_000));
        findings.account.entries = entries;
        concluded(findings)
    };
    let tar = works(vec![
        entry("call.read", "reading (read)", 0.4),
        entry(
            "call.names",
            "looking up and opening files (newfstatat)",
            0.15,
        ),
        entry("gate", "entering and leaving the kernel", 0.12),
        entry("interrupt", "interrupts", 0.03),
    ]);
    let message = tar
        .diagnoses
        .iter()
        .find(|one| one.id == "kernel.work")
        .unwrap();
    assert_eq!(message.severity, Severity::Note);
    assert!(
        message.headline.contains("does input and output"),
        "{}",
        message.headline
    );
    assert!(
        tar.verdict.starts_with(
            "Its CPU time is mostly the kernel's, which works for it: 40 % reading (read) and 15 %"
        ),
        "{}",
        tar.verdict
    );
    assert!(!tar.verdict.contains("othing to gain"), "{}", tar.verdict);
    // What runs in user mode is not the kernel's.
    let parts = [
        ("collector", "the runtime's garbage collector", 0.4),
        ("call.read", "reading (read)", 0.2),
    ];
    let collects = concluded(computing(Estimate::exact(0.3), &parts)).verdict;
    assert!(
        collects.starts_with("Its own code takes 30 %")
            && collects.contains("also 40 % the runtime's garbage collector"),
        "{collects}"
    );
    let locks = works(vec![
        entry("call.futex", "locks between threads (futex)", 0.5),
        entry("call.read", "reading (read)", 0.2),
    ]);
    assert_eq!(locks.diagnoses[0].severity, Severity::Severe);
}

#[test]
fn kernel_threads_of_memory_belong_to_the_machine() {
    let mut findings = computing(from(0.96), &[]);
    let wall = findings.cost.wall;
    let thread = |name: &str, part: u64| KernelThread {
        name: name.into(),
        cpu: Nanos(wall.0 / part),
    };
    let message = |findings: &Findings| {
        let answer = concluded(findings.clone());
        let mut found = answer.diagnoses.into_iter();
        found.find(|one| one.id == "kernel.threads")
    };
    findings.kernel_threads = vec![thread("ksmd", 10), thread("khugepaged", 500)];
    let one = message(&findings).expect("a tenth of a CPU is much");
    assert_eq!(one.severity, Severity::Note);
    assert_eq!(one.evidence.len(), 1, "{:?}", one.evidence);
    assert!(one.evidence[0].starts_with("ksmd used") && one.evidence[0].contains("10 % of a CPU"));
    findings.kernel_threads = vec![thread("ksmd", 25)];
    assert_eq!(message(&findings), None);
}
