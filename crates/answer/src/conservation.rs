//! What the figures of a document must satisfy whatever the program did: parts are at most the
//! whole, no page is touched for the first time twice, no more is copied than the kernel counted.
//! A finding that rests on figures that contradict each other is taken out.

use pagewise_model::account::TimePart;
use pagewise_model::findings::{Cause, Findings};
use pagewise_model::quantity::{count, rounded};
use pagewise_model::units::{Estimate, Nanos};

/// Figures that cannot all be right.
#[derive(Clone, Debug, PartialEq)]
pub struct Contradiction {
    /// The findings that rest on them.
    pub findings: Vec<String>,
    /// The figures, in words.
    pub text: String,
}

/// Sampled figures may exceed an exact bound by this factor by chance.
const BY_CHANCE: f64 = 1.25;
/// Sums of times may exceed a whole by rounding and by clock ticks.
const ROUNDING: f64 = 1.02;
/// Share of the time of faults that zeroing takes at least where most of them allocate a page.
const ZEROED: f64 = 0.05;
/// Clock ticks of 10 ms, twice.
const TICKS: f64 = 20e6;

/// All contradictions among the figures.
#[must_use]
pub fn contradictions(findings: &Findings) -> Vec<Contradiction> {
    let account = &findings.account;
    let cost = &findings.cost;
    [
        sum_within("CPU time", &account.cpu, cost.cpu()),
        sum_within("elapsed time", &account.elapsed, cost.wall),
        faults_within_total(findings),
        first_touches(findings),
        copies(findings),
    ]
    .into_iter()
    .flatten()
    .chain(findings_within_faults(findings))
    .chain(shares(findings))
    .collect()
}

/// Takes out findings that contradict the figures, and says so in the notes.
pub(crate) fn enforce(findings: &mut Findings) {
    let found = contradictions(findings);
    let is_out = |id: &String| found.iter().any(|one| one.findings.contains(id));
    findings
        .advice
        .retain(|advice| advice.cures.is_empty() || !advice.cures.iter().all(is_out));
    for one in &found {
        findings
            .diagnoses
            .retain(|held| !one.findings.contains(&held.id));
    }
    let texts = found.into_iter().map(|one| one.text);
    let notes = texts.map(|text| format!("{text} What rests on these figures is left out."));
    findings.collection.notes.extend(notes);
}

fn contradiction(findings: &[&str], text: String) -> Contradiction {
    Contradiction {
        findings: findings.iter().map(|id| (*id).to_owned()).collect(),
        text,
    }
}

fn sum_within(name: &str, parts: &[TimePart], whole: Nanos) -> Option<Contradiction> {
    let sum: f64 = parts.iter().map(|part| part.time.value).sum();
    (sum > ROUNDING * whole.0 as f64 + TICKS).then(|| {
        let sum = Nanos::from_secs_f64(sum * 1e-9);
        contradiction(
            &[],
            format!("The parts of the {name} add up to {sum}, the whole is {whole}."),
        )
    })
}

fn faults_within_total(findings: &Findings) -> Option<Contradiction> {
    let all = findings.cost.faults();
    let sum: f64 = findings.by_cause.iter().map(|one| one.faults.value).sum();
    (all > 0 && sum > ROUNDING * all as f64 + 10.0).then(|| {
        let (sum, all) = (rounded(sum), count(all));
        contradiction(
            &[],
            format!("The page faults by cause add up to {sum}, the kernel counted {all}."),
        )
    })
}

fn faults_of(findings: &Findings, cause: Cause) -> f64 {
    let lines = findings.by_cause.iter().filter(|line| line.key == cause);
    lines.map(|line| line.faults.low).sum()
}

/// No page is touched for the first time twice: there are as many first touches as pages at the
/// peak, in each process, and pages that were released before it.
fn first_touches(findings: &Findings) -> Option<Contradiction> {
    let calls = &findings.time.mm_calls;
    let zeroing = findings.account.faults.iter();
    let zeroing = zeroing.filter(|part| part.id == "zeroing");
    let in_faults = findings
        .account
        .entry("fault")
        .map_or(0.0, |time| time.value);
    let zeroed: f64 = zeroing.map(|part| part.time.value).sum();
    // Memory that is only read is a page of zeros, which counts for no process.
    if zeroed < ZEROED * in_faults || in_faults <= 0.0 {
        return None;
    }
    let page = findings.host.page_size.max(1) as f64;
    let peak = findings.cost.max_rss.0 as f64 / page;
    if calls.is_empty() || peak <= 0.0 {
        return None;
    }
    let mut processes: Vec<i32> = findings.by_thread.iter().map(|thread| thread.pid).collect();
    processes.sort_unstable();
    processes.dedup();
    let releases = calls
        .iter()
        .filter(|one| ["munmap", "brk", "madvise", "mremap"].contains(&one.call.as_str()));
    let released: f64 = releases.map(|one| one.bytes.0 as f64 / page).sum();
    let most = peak * (processes.len() as f64 + findings.time.forks as f64) + released;
    let touched = faults_of(findings, Cause::FirstTouch);
    (touched > BY_CHANCE * most).then(|| {
        let (touched, most) = (rounded(touched), rounded(most));
        contradiction(
            &["first_touch", "read_first"],
            format!("{touched} first touches are more than the {most} pages that there were."),
        )
    })
}

fn copies(findings: &Findings) -> Option<Contradiction> {
    let delays = findings.account.delays;
    let counted = delays
        .filter(|_| !findings.collection.attached)?
        .copying?
        .count;
    let copied = faults_of(findings, Cause::CopyOnWrite);
    (copied > BY_CHANCE * counted as f64 + 100.0).then(|| {
        let (copied, counted) = (rounded(copied), count(counted));
        contradiction(
            &["cow.fork"],
            format!("{copied} copies after fork are more than the {counted} that the kernel made."),
        )
    })
}

/// Findings whose cost is that of faults alone: each costs at most what all faults do.
const OF_FAULTS: [&str; 6] = [
    "first_touch",
    "read_first",
    "fresh_memory",
    "cow.fork",
    "file.copy",
    "write_protect",
];

fn findings_within_faults(findings: &Findings) -> Vec<Contradiction> {
    let Some(all) = findings.time.share_of_cpu else {
        return Vec::new();
    };
    let is_more = |share: Estimate| share.low > ROUNDING * all.high + 0.01;
    let found = findings.diagnoses.iter().filter(|one| {
        OF_FAULTS.contains(&one.id.as_str()) && one.share_of_cpu.is_some_and(is_more)
    });
    let text = |id: &str| format!("{id} costs more than all page faults together.");
    found
        .map(|one| contradiction(&[&one.id], text(&one.id)))
        .collect()
}

fn shares(findings: &Findings) -> Vec<Contradiction> {
    let is_share = |share: Estimate| {
        let ordered = share.low <= share.value + 1e-9 && share.value <= share.high + 1e-9;
        ordered && share.low >= 0.0 && share.high <= 1.0 + 1e-9
    };
    let wrong = |share: Option<Estimate>| share.is_some_and(|share| !is_share(share));
    let diagnoses = findings.diagnoses.iter();
    let found = diagnoses.filter(|one| wrong(one.share_of_cpu) || wrong(one.share_of_elapsed));
    let text = |id: &str| format!("The share of {id} is none between 0 and 1 inside its interval.");
    found
        .map(|one| contradiction(&[&one.id], text(&one.id)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::account::KernelEntry;
    use pagewise_model::delays::{Delay, Delays};
    use pagewise_model::findings::{Diagnosis, MmCallCost, Run, Severity, Share, ThreadShare};
    use pagewise_model::units::Bytes;

    fn share(key: Cause, faults: f64) -> Share<Cause> {
        Share {
            key,
            faults: Estimate::exact(faults),
            time: None,
        }
    }

    /// 100 MiB at the peak of one process that released 10 MiB.
    fn run(by_cause: Vec<Share<Cause>>) -> Findings {
        let mut findings = Findings::new(Run::default());
        findings.host.page_size = 4096;
        findings.cost.max_rss = Bytes(100 << 20);
        findings.cost.minor_faults = 1_000_000;
        findings.cost.wall = Nanos(1_000_000_000);
        findings.cost.user = Nanos(1_000_000_000);
        findings.by_thread = vec![ThreadShare {
            pid: 1,
            tid: 1,
            comm: String::new(),
            faults: 1.0,
        }];
        findings.time.mm_calls = vec![MmCallCost {
            call: "munmap".to_owned(),
            calls: 1,
            bytes: Bytes(10 << 20),
            time: None,
        }];
        findings.by_cause = by_cause;
        findings
    }

    fn texts(findings: &Findings) -> Vec<String> {
        let found = contradictions(findings).into_iter();
        found.map(|one| one.text).collect()
    }

    #[test]
    fn first_touches_fit_into_the_peak_and_what_was_released() {
        assert_eq!(
            texts(&run(vec![share(Cause::FirstTouch, 28_000.0)])),
            [""; 0]
        );
        let more = run(vec![share(Cause::FirstTouch, 56_000.0)]);
        let part = |id: &str, value| TimePart::plain(id, "", Estimate::exact(value));
        let mut more = more;
        assert_eq!(texts(&more), [""; 0], "they may be reads");
        more.account.faults = vec![part("zeroing", 2e8), part("handling", 5e8)];
        more.account.entries = vec![KernelEntry {
            id: "fault".to_owned(),
            label: String::new(),
            time: Estimate::exact(7e8),
            functions: Vec::new(),
        }];
        let text = "56,000 first touches are more than the 28,160 pages that there were.";
        assert_eq!(texts(&more), [text]);
        let mut forked = more.clone();
        forked.time.forks = 1;
        assert_eq!(texts(&forked), [""; 0]);
    }

    #[test]
    fn a_finding_on_contradicting_figures_is_taken_out_with_a_note() {
        let mut findings = run(vec![share(Cause::CopyOnWrite, 60_000.0)]);
        findings.account.delays = Some(Delays {
            copying: Some(Delay {
                count: 20_000,
                time: Nanos(1),
            }),
            ..Delays::default()
        });
        let kept = Diagnosis::named("file", Severity::Note);
        findings.diagnoses = vec![Diagnosis::named("cow.fork", Severity::Costly), kept.clone()];
        enforce(&mut findings);
        assert_eq!(findings.diagnoses, [kept]);
        let notes = &findings.collection.notes;
        assert!(notes[0].contains("60,000 copies after fork"), "{notes:?}");
    }

    #[test]
    fn parts_are_at_most_the_whole() {
        let mut findings = run(vec![share(Cause::FileMinor, 1_100_000.0)]);
        let part = |value| TimePart::plain("own", "", Estimate::exact(value));
        findings.account.cpu = vec![part(0.7e9), part(0.5e9)];
        findings.account.elapsed = vec![part(0.7e9), part(0.3e9)];
        let found = texts(&findings);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("parts of the CPU time"), "{found:?}");
        assert!(found[1].contains("page faults by cause"), "{found:?}");
        findings.account.cpu = vec![part(0.5e9), part(0.5e9)];
        findings.by_cause.clear();
        findings.time.share_of_cpu = Some(Estimate::exact(0.2));
        findings.diagnoses = vec![Diagnosis {
            share_of_cpu: Some(Estimate::exact(0.4)),
            ..Diagnosis::named("first_touch", Severity::Costly)
        }];
        let text = "first_touch costs more than all page faults together.";
        assert_eq!(texts(&findings), [text]);
    }
}
