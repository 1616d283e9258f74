//! Compares two whole runs: first what matters to a user (time, faults, memory), then the causes of
//! faults, then the differing settings.
//!
//! Each run was observed once, so there is no test: a figure differs if it does by more than two
//! runs of one program on one machine were observed to. Faults are counted and hardly vary; CPU
//! time varies with the machine's other load.

mod paged;
mod recorded;

pub use paged::compare as compare_paged;

use crate::profile_diff::{SettingRules, words};
use pagewise_model::answer::Document;
use pagewise_model::findings::{Cause, Findings, Share};
use pagewise_model::profile_diff::ProfileDiff;
use pagewise_model::quantity::rounded;
use pagewise_model::run::{Ending, RunCost};
use pagewise_model::run_diff::{CauseChange, FigureChange, Quantity, RunDiff};
use pagewise_model::side::SettingChange;
use pagewise_model::side::Side;
use pagewise_model::units::{Bytes, Estimate, Nanos};
use std::collections::BTreeSet;

/// Least changes that are reported, as natural logarithms of the ratio: of CPU and elapsed time on
/// dedicated CPUs, and of CPU time on constantly shared ones, where elapsed time is meaningless; of
/// counted faults and of memory.
const OF_TIME: f64 = 0.2;
/// What is added to their squares, divided by the seconds of the shorter run: on idle virtual CPUs,
/// runs of half a second took up to 1.4 times as long as others because of the hypervisor's other
/// guests; next to other work, runs of 0.7 s took 1.5 times as long.
const OF_EPISODES: f64 = 0.1;
/// No run is taken to be shorter, s.
const LEAST_SECONDS: f64 = 0.05;
const OF_TIME_CONTENDED: f64 = 0.6;
const OF_COUNTS: f64 = 0.1;
/// Least absolute changes: ns, faults, bytes.
const LEAST_NS: f64 = 20e6;
const LEAST_FAULTS: f64 = 1_000.0;
const LEAST_MAJOR_FAULTS: f64 = 50.0;
const LEAST_BYTES: f64 = (4 << 20) as f64;
/// Fraction of the change of all faults from which a cause is named.
const OF_CHANGE: f64 = 0.5;
/// Prefixes of a program's own settings in a snapshot.
const OWN: [&str; 3] = ["environment.", "limit.", "run."];

/// A run, its name, and how much its CPUs were shared (0 to 1).
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Its findings.
    pub findings: &'a Findings,
    /// Its name in sentences.
    pub name: &'a str,
    /// 1 if not known.
    pub contended: f64,
}

/// The differences of B from A; `None` if one is not a whole run of a command.
#[must_use]
pub fn compare(a: Run<'_>, b: Run<'_>, rules: &SettingRules) -> Option<Document<RunDiff>> {
    if ![a, b].iter().all(|run| is_whole(run.findings)) {
        return None;
    }
    let most = a.findings.cost.faults().max(b.findings.cost.faults()) as f64;
    let missing = recorded::not_compared(a, b);
    let causes = match &missing {
        Some(_) => Vec::new(),
        None => causes(&a.findings.by_cause, &b.findings.by_cause, most),
    };
    let found = RunDiff {
        a: side(a),
        b: side(b),
        figures: figures(a, b),
        causes,
        settings: settings(a.findings, b.findings, rules),
    };
    let mut answer = document(found);
    answer.notes.extend(missing);
    Some(answer)
}

/// The document about this difference.
fn document(diff: RunDiff) -> Document<RunDiff> {
    let verdict = headline(&diff);
    Document::new(diff).with_verdict(verdict)
}

/// The differences between the samples of two runs, and between the whole runs: what changed for
/// the user comes first.
#[must_use]
pub fn with_runs(
    mut samples: Document<ProfileDiff>,
    runs: Document<RunDiff>,
) -> Document<ProfileDiff> {
    if runs.differs() {
        let is_said = words::setting_behind(&samples)
            .is_some_and(|behind| runs.settings.iter().any(|one| one.name == behind.name));
        let change = match is_said {
            true => words::headline_without_setting(&samples),
            false => samples.verdict.clone(),
        };
        samples.verdict = format!("{} {change}", runs.verdict);
    }
    samples.run = Some(runs.evidence);
    samples.notes.extend(runs.notes);
    samples
}

fn is_whole(findings: &Findings) -> bool {
    !findings.subject.command.is_empty()
        && findings.ending != Ending::Running
        && !findings.collection.whole_machine
}

fn side(run: Run<'_>) -> Side<RunCost> {
    Side {
        name: run.name.to_owned(),
        subject: run.findings.subject.clone(),
        host: run.findings.host.hostname.clone(),
        sums: run.findings.cost,
    }
}

fn figures(a: Run<'_>, b: Run<'_>) -> Vec<FigureChange> {
    let contended = a.contended.max(b.contended);
    let seconds = a.findings.cost.wall.min(b.findings.cost.wall).as_secs_f64();
    let episodes = (OF_EPISODES / seconds.max(LEAST_SECONDS)).sqrt();
    let (of_time, of_elapsed) = (
        of_time(contended).hypot(episodes),
        of_elapsed(contended).hypot(episodes),
    );
    let (a, b) = (a.findings.cost, b.findings.cost);
    let figure = |quantity, a: f64, b: f64, least: f64, ratio: f64| FigureChange {
        quantity,
        a,
        b,
        differs: (b - a).abs() >= least && logarithm(a, b).abs() >= ratio,
    };
    let ns = |time: Nanos| time.0 as f64;
    vec![
        figure(
            Quantity::CpuTime,
            ns(a.cpu()),
            ns(b.cpu()),
            LEAST_NS,
            of_time,
        ),
        figure(
            Quantity::ElapsedTime,
            ns(a.wall),
            ns(b.wall),
            LEAST_NS,
            of_elapsed,
        ),
        figure(
            Quantity::Faults,
            a.faults() as f64,
            b.faults() as f64,
            LEAST_FAULTS,
            OF_COUNTS,
        ),
        figure(
            Quantity::MajorFaults,
            a.major_faults as f64,
            b.major_faults as f64,
            LEAST_MAJOR_FAULTS,
            OF_TIME_CONTENDED,
        ),
        figure(
            Quantity::PeakMemory,
            a.max_rss.0 as f64,
            b.max_rss.0 as f64,
            LEAST_BYTES,
            OF_COUNTS,
        ),
    ]
}

/// The change of elapsed time that is reported: that of CPU time, and what waiting for a CPU may add
/// where others take so much of the CPUs.
fn of_elapsed(contended: f64) -> f64 {
    of_time(contended) - (1.0 - contended).max(0.0).ln()
}

fn of_time(contended: f64) -> f64 {
    OF_TIME + contended * (OF_TIME_CONTENDED - OF_TIME)
}

/// The logarithm of B over A; infinite if one of them is zero.
fn logarithm(a: f64, b: f64) -> f64 {
    match a == b {
        true => 0.0,
        false => (b / a).ln(),
    }
}

/// How faults of each cause changed, the largest change first; `most` is the larger total of the
/// two runs.
pub(crate) fn causes(of_a: &[Share<Cause>], of_b: &[Share<Cause>], most: f64) -> Vec<CauseChange> {
    let all: BTreeSet<Cause> = of_a.iter().chain(of_b).map(|share| share.key).collect();
    let one = |cause| {
        let of = |shares: &[Share<Cause>]| {
            let share = shares.iter().find(|share| share.key == cause);
            share.map_or(Estimate::exact(0.0), |share| share.faults)
        };
        let (a, b) = (of(of_a), of(of_b));
        let apart = a.high < b.low || b.high < a.low;
        CauseChange {
            cause,
            label: cause.label().to_owned(),
            a,
            b,
            differs: apart && (b.value - a.value).abs() >= (most * 0.1).max(LEAST_FAULTS),
        }
    };
    let mut causes: Vec<CauseChange> = all.into_iter().map(one).collect();
    causes.sort_by(|x, y| change(y).abs().total_cmp(&change(x).abs()));
    causes
}

fn change(cause: &CauseChange) -> f64 {
    cause.b.value - cause.a.value
}

/// Settings that differ, the program's own first.
fn settings(a: &Findings, b: &Findings, rules: &SettingRules) -> Vec<SettingChange> {
    let mut all = rules.changes(&a.host, &b.host, &[]);
    all.sort_by_key(|setting| !is_own(setting));
    all
}

fn is_own(setting: &SettingChange) -> bool {
    OWN.iter().any(|start| setting.name.starts_with(start))
}

fn headline(diff: &RunDiff) -> String {
    let changed = |quantity| {
        let mut figures = diff.figures.iter();
        figures.find(|figure| figure.quantity == quantity && figure.differs)
    };
    let mut parts = Vec::new();
    let elapsed = || Some((changed(Quantity::ElapsedTime)?, "Elapsed time"));
    let time = changed(Quantity::CpuTime).map(|cpu| (cpu, "CPU time"));
    if let Some((time, of)) = time.or_else(elapsed) {
        parts.push(times(time, of));
    }
    if let Some(faults) = changed(Quantity::Faults) {
        let because = cause(diff, faults).map_or(String::new(), |cause| format!(", {cause}"));
        parts.push(format!(
            "{} page faults became {}{because}",
            rounded(faults.a),
            rounded(faults.b)
        ));
    }
    if let Some(major) = changed(Quantity::MajorFaults) {
        parts.push(format!(
            "{} page faults that needed I/O became {}",
            rounded(major.a),
            rounded(major.b)
        ));
    }
    for (quantity, of) in [
        (Quantity::Refaults, "refaults"),
        (Quantity::PagesWritten, "pages written"),
    ] {
        if let Some(figure) = changed(quantity) {
            let [a, b] = [figure.a, figure.b].map(rounded);
            parts.push(format!("{a} {of} became {b}"));
        }
    }
    if let Some(memory) = changed(Quantity::PeakMemory) {
        let [a, b] = [memory.a, memory.b].map(Bytes::rounded);
        parts.push(format!("peak memory went from {a} to {b}"));
    }
    if parts.is_empty() {
        return format!(
            "{} and {} differ by no more than two runs of one program do.",
            diff.a.name, diff.b.name
        );
    }
    let mut headline = format!("{}.", parts.join("; "));
    headline[..1].make_ascii_uppercase();
    match set_differently(diff) {
        Some(words) if words.starts_with("the ") => format!("{headline} T{}", &words[1..]),
        Some(words) => format!("{headline} {words}"),
        None => headline,
    }
}

/// `CPU time fell from 2.18 s to 83.3 ms (−96 %)`.
fn times(figure: &FigureChange, of: &str) -> String {
    let [a, b] = [figure.a, figure.b].map(|ns| Nanos::from_secs_f64(ns / 1e9));
    let ratio = figure.b / figure.a.max(1.0);
    let (verb, much) = match ratio {
        ratio if ratio >= 1.95 => ("rose", format!("{ratio:.1} times as much")),
        ratio if ratio >= 1.0 => ("rose", format!("+{:.0} %", 100.0 * (ratio - 1.0))),
        ratio => ("fell", format!("−{:.0} %", 100.0 * (1.0 - ratio))),
    };
    format!("{of} {verb} from {a} to {b} ({much})")
}

/// The cause that explains most of the change of all faults.
fn cause(diff: &RunDiff, faults: &FigureChange) -> Option<String> {
    let all = faults.b - faults.a;
    let most = diff.causes.iter().find(|cause| {
        let part = change(cause);
        cause.differs && part.signum() == all.signum() && part.abs() >= OF_CHANGE * all.abs()
    })?;
    let label = &most.label;
    let (a, b) = (rounded(most.a.value), rounded(most.b.value));
    Some(match (most.a.value, most.b.value) {
        (_, 0.0) => format!("since the {a} of the kind \"{label}\" are gone"),
        (0.0, _) => format!("since {b} of the kind \"{label}\" appeared"),
        _ => format!("mainly of the kind \"{label}\" ({a} → {b})"),
    })
}

/// The programs' own settings that differ, and how many others.
fn set_differently(diff: &RunDiff) -> Option<String> {
    let own: Vec<String> = diff
        .settings
        .iter()
        .filter(|s| is_own(s))
        .map(plain)
        .collect();
    let others = diff.settings.len() - own.len();
    let more = match others {
        0 => String::new(),
        1 => ", along with one setting of the host".to_owned(),
        many => format!(", along with {many} settings of the host"),
    };
    let same = diff.a.subject.command == diff.b.subject.command;
    match own.as_slice() {
        [] if !same => Some("The commands differ.".to_owned()),
        [] if others > 0 => Some(format!("{others} settings of the host differ.")),
        [] => None,
        [one] if same => Some(format!("{one} is what differs{more}.")),
        all if same => Some(format!("What differs: {}{more}.", listed(all))),
        all => Some(format!("The commands differ, and {}.", listed(all))),
    }
}

/// `one, two and three`.
fn listed(all: &[String]) -> String {
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Its name without the snapshot's prefix; for a budget, policy or store, also both values.
fn plain(setting: &SettingChange) -> String {
    if let (Some(name), Some(a), Some(b)) =
        (setting.name.strip_prefix(OWN[2]), &setting.a, &setting.b)
    {
        return format!("the {name} ({a} → {b})");
    }
    let name = setting.name.strip_prefix(OWN[0]);
    name.unwrap_or(&setting.name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::profile::FrameKind;
    use pagewise_model::profile_diff::{Change, Measure, Weighed};

    fn figure(quantity: Quantity, a: f64, b: f64) -> FigureChange {
        FigureChange {
            quantity,
            a,
            b,
            differs: true,
        }
    }

    fn run(name: &str) -> Side<RunCost> {
        Side {
            name: name.to_owned(),
            subject: pagewise_model::answer::Subject::of_command(vec!["churn".to_owned()]),
            host: String::new(),
            sums: RunCost::default(),
        }
    }

    fn setting(name: &str) -> SettingChange {
        SettingChange {
            name: name.to_owned(),
            a: None,
            b: Some("1".to_owned()),
            touches: Vec::new(),
            reason: String::new(),
        }
    }

    fn two_runs() -> RunDiff {
        let exact = Estimate::exact;
        RunDiff {
            a: run("a"),
            b: run("b"),
            figures: vec![
                figure(Quantity::CpuTime, 2.18e9, 83.3e6),
                figure(Quantity::Faults, 614_470.0, 10_307.0),
            ],
            causes: vec![CauseChange {
                cause: Cause::RefaultAfterMunmap,
                label: Cause::RefaultAfterMunmap.label().to_owned(),
                a: exact(603_356.0),
                b: exact(0.0),
                differs: true,
            }],
            settings: vec![setting("environment.GLIBC_TUNABLES")],
        }
    }

    #[test]
    fn the_first_sentence_names_time_cause_and_setting() {
        let message = headline(&two_runs());
        assert_eq!(
            message,
            "CPU time fell from 2.18 s to 83.3 ms (−96 %); 614,470 page faults became 10,307, \
             since the 603,356 of the kind \"touched again after munmap\" are gone. \
             GLIBC_TUNABLES is what differs."
        );
    }

    /// Samples in which a function shrank that this setting is known to affect.
    fn samples(setting: SettingChange) -> Document<ProfileDiff> {
        let side = |name: &str| Side {
            name: name.to_owned(),
            subject: pagewise_model::answer::Subject::default(),
            host: String::new(),
            sums: Weighed::default(),
        };
        let diff = ProfileDiff {
            a: side("a"),
            b: side("b"),
            event: "cpu-clock".to_owned(),
            measure: Measure::CpuSecondsPerRun,
            slowdown: None,
            block: Nanos(0),
            blocks: (1, 1),
            run: None,
            functions: vec![Change {
                name: "exc_page_fault".to_owned(),
                module: "[kernel]".to_owned(),
                kind: FrameKind::Kernel,
                unnamed: None,
                own: (1.0, 0.0),
                a: 1.0,
                b: 0.5,
                change: Estimate::exact(-0.5),
                p_adjusted: 0.0,
                significant: true,
            }],
            stacks: Vec::new(),
            detectable: 0.1,
            tree: Vec::new(),
            unknown: Vec::new(),
            settings: vec![SettingChange {
                touches: vec!["exc_page_fault".to_owned()],
                ..setting
            }],
            counters: Vec::new(),
        };
        let verdict = words::headline(&diff);
        Document::new(diff).with_verdict(verdict)
    }

    #[test]
    fn a_setting_that_runs_and_samples_share_is_named_once() {
        let verdict = |name| with_runs(samples(setting(name)), document(two_runs())).verdict;
        let shared = verdict("environment.GLIBC_TUNABLES");
        assert_eq!(shared.matches("GLIBC_TUNABLES").count(), 1, "{shared}");
        assert!(shared.contains("exc_page_fault shrank in b"), "{shared}");
        let another = verdict("vm.swappiness");
        assert!(another.ends_with("vm.swappiness differs (absent against 1) and touches it."));
    }

    #[test]
    fn elapsed_time_on_cpus_that_others_use_tells_nothing() {
        let bounds = [0.0, 0.5, 1.0].map(of_elapsed);
        assert_eq!(bounds, [OF_TIME, 0.4 + 2_f64.ln(), f64::INFINITY]);
    }

    #[test]
    fn runs_that_are_alike_are_not_told_apart() {
        let mut diff = two_runs();
        diff.figures.iter_mut().for_each(|f| f.differs = false);
        let alike = "a and b differ by no more than two runs of one program do.";
        assert_eq!(headline(&diff), alike);
    }

    #[test]
    fn settings_of_the_host_are_counted_beside_the_programs_own() {
        let mut diff = two_runs();
        diff.settings.push(setting("vm.swappiness"));
        let message = headline(&diff);
        let end = "GLIBC_TUNABLES is what differs, along with one setting of the host.";
        assert!(message.ends_with(end), "{message}");
        diff.b.subject.command = vec!["other".to_owned()];
        let message = headline(&diff);
        assert!(
            message.ends_with("The commands differ, and GLIBC_TUNABLES."),
            "{message}"
        );
    }
}
