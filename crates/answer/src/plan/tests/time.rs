//! The answers about programs by their times: short ones, and those that wait.

use super::*;
use pagewise_model::findings::MmCallCost;

#[test]
fn a_program_of_milliseconds_is_never_costly() {
    let mut findings = run(12, 14, 12_000);
    findings.by_cause = vec![share(Cause::FirstTouch, 12_000.0)];
    let answer = concluded(findings);
    assert!(
        answer
            .diagnoses
            .iter()
            .all(|one| one.severity < Severity::Costly)
    );
    assert!(
        answer
            .verdict
            .contains("too soon to tell: the whole program used 26.0 ms"),
        "{}",
        answer.verdict
    );
}

#[test]
fn a_resting_run_waits_and_one_short_of_cpus_does_not() {
    let mut findings = run(100, 43, 200);
    findings.cost.wall = Nanos(4_020_000_000);
    let moments = |active: u32| {
        let point = TimelinePoint {
            active: Some(active),
            ..TimelinePoint::default()
        };
        vec![point; 40]
    };
    findings.timeline.points = moments(0);
    let rests = concluded(findings.clone()).verdict;
    assert!(rests.starts_with("It mostly waits"), "{rests}");
    findings.timeline.points = moments(1);
    let wants = concluded(findings).verdict;
    assert!(!wants.contains("waits"), "{wants}");
}

/// Time in which calls waited for a CPU is not saved by any setting.
#[test]
fn a_call_saves_at_most_the_cpu_time_sampled_in_it() {
    let mut churn = zlib_churn();
    churn.by_cause[0].time = Some(Nanos(400_000_000));
    churn.time.total_ns = Some(Estimate::exact(4e8));
    let timed = |millis: u64| MmCallCost {
        call: "brk".into(),
        calls: 2_000,
        bytes: Bytes(0),
        time: Some(Nanos(millis * 1_000_000)),
    };
    let gain = |findings: &Findings| concluded(findings.clone()).advice[0].predicted_speedup;
    churn.time.mm_calls = vec![timed(40)];
    let short = gain(&churn);
    churn.time.mm_calls = vec![timed(300)];
    let long = gain(&churn);
    assert!(long.low > short.low && long.value > short.value);
    let entry = |id: &str, millis: f64| KernelEntry {
        id: id.into(),
        label: id.into(),
        time: Estimate::exact(millis * 1e6),
        functions: Vec::new(),
    };
    churn.account.entries = vec![entry("fault", 400.0), entry("call.map", 40.0)];
    let sampled = gain(&churn);
    assert!(
        (sampled.value - short.value).abs() < 0.1,
        "{sampled:?} {short:?}"
    );
    // Calls that were not timed took what samples saw.
    churn.account.entries[1] = entry("call.map", 300.0);
    churn.time.mm_calls[0].time = None;
    let untimed = gain(&churn);
    assert!(
        (untimed.value - long.value).abs() < 0.1,
        "{untimed:?} {long:?}"
    );
}

#[test]
fn starting_a_tiny_program_is_no_trouble() {
    let mut findings = run(1, 1, 83);
    findings.by_cause = vec![
        share(Cause::FirstTouch, 60.0),
        share(Cause::FileMinor, 23.0),
    ];
    let answer = concluded(findings);
    assert_eq!(answer.diagnoses[0].id, "short");
    assert!(answer.advice.is_empty(), "{:?}", answer.advice);
}

#[test]
fn a_run_that_waits_is_told_for_what_and_what_tells_more() {
    let part = |id: &str, label: &str, seconds: f64| TimePart {
        id: id.into(),
        label: label.into(),
        time: Estimate::exact(seconds * 1e9),
        places: Vec::new(),
        shares: Vec::new(),
        who: match id {
            "cpu" | "ready" => Vec::new(),
            _ => vec!["program".to_owned()],
        },
        next: (id == "disk").then(|| "Look at {who}".to_owned()),
    };
    let mut findings = run(140, 3, 200);
    findings.cost.wall = Nanos(4_020_000_000);
    findings.account.elapsed = vec![
        part("network", "waiting for the network", 2.0),
        part("disk", "waiting for a disk", 1.8),
        part("cpu", "on a CPU", 0.2),
        part("sleep", "sleeping on a timer", 0.02),
    ];
    assert_eq!(
        concluded(findings.clone()).verdict,
        "It mostly waits: 4.02 s elapsed, 2.00 s (50 %) waiting for the network and 1.80 s (45 %) \
         waiting for a disk; 143 ms of CPU time, little of it for memory management. Look at \
         -- CMD."
    );
    // With more time in the kernel, memory management cannot be ruled out.
    let used = (findings.cost.user, findings.cost.system);
    (findings.cost.user, findings.cost.system) = (Nanos(100_000_000), Nanos(43_000_000));
    let open = concluded(findings.clone()).verdict;
    assert!(
        open.starts_with("It mostly waits") && !open.contains("memory"),
        "{open}"
    );
    (findings.cost.user, findings.cost.system) = used;
    // Being ready without a free CPU is not waiting.
    findings.account.elapsed = vec![part("ready", "ready to run", 3.9)];
    let ready = concluded(findings).verdict;
    assert!(
        !ready.contains("mostly waits") && ready.contains("97 % of the elapsed time it is ready"),
        "{ready}"
    );
}

/// A Haskell program of 42 ms beside four busy processes: its collector and its first touches took turns.
#[test]
fn a_short_program_is_short_on_a_busy_machine_too() {
    let verdict = |ready: f64, asleep: f64| {
        let mut findings = run(36, 6, 2_282);
        findings.cost.wall = Nanos(300_000_000);
        let part = |id: &str, share: f64| TimePart::plain(id, id, Estimate::exact(share * 3e8));
        findings.account.elapsed = vec![
            part("cpu", 0.14),
            part("ready", ready),
            part("sleep", asleep),
        ];
        findings.account.cpu = vec![TimePart::plain(
            "own",
            "its own code",
            Estimate::exact(2.5e7),
        )];
        concluded(findings).verdict
    };
    let busy = verdict(0.8, 0.06);
    assert!(busy.starts_with("It ended too soon"), "{busy}");
    let sleeps = verdict(0.06, 0.8);
    assert!(!sleeps.starts_with("It ended too soon"), "{sleeps}");
}
