//! Compares two runs inside memory budgets (`pagewise run`): time, refaults, pages written, memory.

use super::{
    LEAST_BYTES, LEAST_FAULTS, LEAST_NS, OF_COUNTS, OF_TIME_CONTENDED, document, logarithm,
};
use pagewise_model::answer::Document;
use pagewise_model::paged_run::{PagedProcess, PagedRun};
use pagewise_model::run_diff::{FigureChange, Quantity, RunDiff};
use pagewise_model::side::SettingChange;
use pagewise_model::side::Side;
use pagewise_model::units::Bytes;

/// Least change of page counts that is reported, as the logarithm of the ratio: which pages are
/// evicted depends on the timing of threads.
const OF_PAGES: f64 = 0.2;

/// How run B differs from run A, each called by its name.
#[must_use]
pub fn compare(
    a: (&Document<PagedRun>, &str),
    b: (&Document<PagedRun>, &str),
) -> Document<RunDiff> {
    let side = |(run, name): (&Document<PagedRun>, &str)| Side {
        name: name.to_owned(),
        subject: run.subject.clone(),
        host: run.host.hostname.clone(),
        sums: run.evidence.cost,
    };
    document(RunDiff {
        a: side(a),
        b: side(b),
        figures: figures(&a.0.evidence, &b.0.evidence),
        causes: Vec::new(),
        settings: settings(&a.0.evidence, &b.0.evidence),
    })
}

fn figures(a: &PagedRun, b: &PagedRun) -> Vec<FigureChange> {
    let of = |quantity, read: fn(&PagedRun) -> u64, least: f64, ratio: f64| {
        let [a, b] = [a, b].map(|run| read(run) as f64);
        FigureChange {
            quantity,
            a,
            b,
            differs: (b - a).abs() >= least && logarithm(a, b).abs() >= ratio,
        }
    };
    let pages = |quantity, read| of(quantity, read, LEAST_FAULTS, OF_PAGES);
    let refaults = pages(Quantity::Refaults, |run| {
        sum(run, |one| one.faults.refaults, run.others.faults.refaults)
    });
    let written = pages(Quantity::PagesWritten, |run| {
        sum(run, |one| one.pages.written, run.others.pages.written)
    });
    let time = |quantity, read| of(quantity, read, LEAST_NS, OF_TIME_CONTENDED);
    let mut elapsed = time(Quantity::ElapsedTime, |run| run.cost.wall.0);
    // How busy the CPUs were is unknown: time differs only if waits for the store explain it.
    elapsed.differs &= refaults.differs && (refaults.b > refaults.a) == (elapsed.b > elapsed.a);
    let memory = of(
        Quantity::PeakMemory,
        |run| peak(run).0,
        LEAST_BYTES,
        OF_COUNTS,
    );
    let cpu = time(Quantity::CpuTime, |run| run.cost.cpu().0);
    // The kernel does not count a group's pages as the pager does.
    match a.kernel.is_some() || b.kernel.is_some() {
        true => vec![cpu, elapsed, memory],
        false => vec![cpu, elapsed, refaults, written, memory],
    }
}

fn sum(run: &PagedRun, of: fn(&PagedProcess) -> u64, others: u64) -> u64 {
    run.processes.iter().map(of).sum::<u64>() + others
}

fn peak(run: &PagedRun) -> Bytes {
    run.together_peak_bytes.map_or(run.cost.max_rss, Bytes)
}

fn settings(a: &PagedRun, b: &PagedRun) -> Vec<SettingChange> {
    let budget = |run: &PagedRun| {
        let whose = if run.memory_is_each { " each" } else { "" };
        format!("{}{whose}", Bytes(run.memory_bytes))
    };
    let engine = |run: &PagedRun| match run.kernel {
        Some(_) => "kernel".to_owned(),
        None => "ours".to_owned(),
    };
    let all = [
        ("engine", engine(a), engine(b)),
        ("memory", budget(a), budget(b)),
        ("policy", a.policy.clone(), b.policy.clone()),
        ("store", a.store.clone(), b.store.clone()),
    ];
    let change = |(name, a, b): (&str, String, String)| SettingChange {
        name: format!("run.{name}"),
        a: Some(a),
        b: Some(b),
        touches: Vec::new(),
        reason: String::new(),
    };
    all.into_iter()
        .filter(|(_, a, b)| a != b)
        .map(change)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::answer::Subject;
    use pagewise_model::paged_run::{KernelPaging, OtherProcesses};
    use pagewise_model::paging::RefaultDistances;
    use pagewise_model::run::{Ending, RunCost};
    use pagewise_model::units::Nanos;

    fn run(policy: &str, seconds: f64, refaults: u64) -> Document<PagedRun> {
        let mut one = PagedProcess::default();
        one.faults.refaults = refaults / 2;
        let mut others = OtherProcesses::default();
        others.faults.refaults = refaults - refaults / 2;
        let run = PagedRun {
            ending: Ending::Exited(0),
            cost: RunCost {
                wall: Nanos::from_secs_f64(seconds),
                user: Nanos::from_secs_f64(2.0),
                max_rss: Bytes(64 << 20),
                ..RunCost::default()
            },
            memory_bytes: 64 << 20,
            memory_is_each: false,
            together_peak_bytes: None,
            policy: policy.to_owned(),
            store: "disk".to_owned(),
            processes_total: 1,
            processes: vec![one],
            others,
            refault_distances: RefaultDistances::default(),
            kernel: None,
        };
        Document::new(run).about(Subject::of_command(vec!["sort".to_owned()]))
    }

    fn first_line(a: &Document<PagedRun>, b: &Document<PagedRun>) -> String {
        compare((a, "a"), (b, "b")).verdict
    }

    #[test]
    fn the_headline_names_time_refaults_and_what_was_set() {
        assert_eq!(
            first_line(&run("prefetch", 6.3, 9_000), &run("2q", 13.0, 20_000)),
            "Elapsed time rose from 6.30 s to 13.0 s (2.1 times as much); 9,000 refaults became \
             20,000. The policy (prefetch → 2q) is what differs."
        );
    }

    #[test]
    fn runs_that_are_alike_are_not_told_apart() {
        let alike = "a and b differ by no more than two runs of one program do.";
        assert_eq!(
            first_line(&run("2q", 6.3, 9_000), &run("2q", 7.0, 9_800)),
            alike
        );
        // Slower, without an explanation in paging: the CPUs may have been busy.
        assert_eq!(
            first_line(&run("2q", 6.3, 9_000), &run("2q", 20.0, 9_800)),
            alike
        );
        // Fewer refaults do not make a run longer.
        let slower = first_line(&run("2q", 6.3, 9_000), &run("2q", 20.0, 900));
        assert_eq!(slower, "9,000 refaults became 900.");
    }

    #[test]
    fn engines_are_compared_by_what_both_count() {
        let ours = run("prefetch", 6.3, 9_000);
        let mut kernel = run("kernel", 6.4, 0);
        kernel.evidence.kernel = Some(KernelPaging::default());
        let found = compare((&ours, "a"), (&kernel, "b")).evidence;
        let of_pages = [Quantity::Refaults, Quantity::PagesWritten];
        assert!(
            !found
                .figures
                .iter()
                .any(|one| of_pages.contains(&one.quantity))
        );
        assert_eq!(found.settings[0].name, "run.engine");
    }

    #[test]
    fn a_budget_of_each_process_is_another_one() {
        let mut each = run("2q", 6.3, 9_000);
        each.evidence.memory_is_each = true;
        let found = compare((&run("2q", 6.3, 9_000), "a"), (&each, "b"));
        assert_eq!(found.settings.len(), 1);
        assert_eq!(found.settings[0].b.as_deref(), Some("64.0 MiB each"));
    }
}
