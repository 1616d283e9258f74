//! A comparison in plain words.

use super::FEWEST_PAIRS;
use pagewise_model::proof::{Comparison, Verdict};
use pagewise_model::run::RunCost;
use pagewise_model::units::{Bytes, Estimate};

/// The comparison in one sentence: "1.90× faster (95 % interval 1.86–1.95, 12 pairs), faults
/// −93 %, peak memory +34.0 MiB". Tells CPU time when wall time shows nothing.
#[must_use]
pub fn sentence(comparison: &Comparison) -> String {
    if comparison.pairs < 2 {
        return "too few runs to compare".to_owned();
    }
    let (speed, clock) = headline(comparison);
    if comparison.pairs < FEWEST_PAIRS {
        return format!(
            "undecided: {:.2}× the speed{clock} in {} pairs, and a 95 % interval needs {} more; \
             faults {}, peak memory {}",
            speed.value,
            comparison.pairs,
            FEWEST_PAIRS - comparison.pairs,
            percent_change(comparison.fault_ratio.value),
            bytes_change(comparison.rss_change_bytes),
        );
    }
    format!(
        "{} (95 % interval {}, {} pairs), faults {}, peak memory {}",
        speed_words(comparison.verdict, speed, clock),
        interval(speed),
        comparison.pairs,
        percent_change(comparison.fault_ratio.value),
        bytes_change(comparison.rss_change_bytes),
    )
}

/// The ratio to show: wall time, or CPU time when only that can be told from 1.
fn headline(comparison: &Comparison) -> (&Estimate, &'static str) {
    let (wall, cpu) = (&comparison.wall_speedup, &comparison.cpu_speedup);
    if wall.covers(1.0) && !cpu.covers(1.0) {
        (cpu, " in CPU time")
    } else {
        (wall, "")
    }
}

fn speed_words(verdict: Verdict, speed: &Estimate, clock: &str) -> String {
    match verdict {
        Verdict::Faster => format!("{:.2}× faster{clock}", speed.value),
        Verdict::TooMuchMemory => {
            format!(
                "{:.2}× faster{clock}, but over the memory limit",
                speed.value
            )
        }
        Verdict::Slower => format!("{:.2}× slower{clock}", 1.0 / speed.value),
        Verdict::NoDifference => format!("no gain: {:.2}× the speed{clock}", speed.value),
        Verdict::Undecided => format!("undecided: {:.2}× the speed{clock}", speed.value),
    }
}

/// `1.86–1.95`.
fn interval(ratio: &Estimate) -> String {
    if ratio.high > 1e3 {
        return format!("from {:.2}", ratio.low);
    }
    format!("{:.2}–{:.2}", ratio.low, ratio.high)
}

/// `−93 %`, `+4 %`, `−99.98 %` where rounding would say −100.
#[must_use]
pub fn percent_change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let sign = if percent < 0.0 { "−" } else { "+" };
    let size = percent.abs();
    let digits = if ratio < 0.01 {
        2
    } else {
        usize::from(size < 10.0)
    };
    if size < 0.05 {
        "±0 %".to_owned()
    } else {
        format!("{sign}{size:.digits$} %")
    }
}

/// `+34.0 MiB`, `−2.00 KiB`, `unchanged`.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "absolute value of a size in bytes, clamped by the cast"
)]
pub fn bytes_change(change: f64) -> String {
    let size = Bytes(change.abs() as u64);
    // The peak that the kernel reports is rounded to pages and batches per CPU.
    if size < Bytes(256 << 10) {
        return "unchanged".to_owned();
    }
    format!("{}{size}", if change < 0.0 { "−" } else { "+" })
}

/// Kernel time per fault that a gain can be explained with: below, the fault was hardly worth
/// avoiding; above, something else must have changed too. From 300 ns (zero page) to 10 µs
/// (a contended or cgroup-charged anonymous write).
const PER_FAULT_SECONDS: (f64, f64) = (0.1e-6, 10e-6);

/// Checks the gain against its supposed cause: CPU time saved by avoided faults. `None` when they
/// agree or nothing can be said.
#[must_use]
#[allow(
    clippy::cast_precision_loss,
    reason = "fault counts stay far below 2^53"
)]
pub fn causal_doubt(baseline: &[RunCost], arm: &[RunCost]) -> Option<String> {
    let median = |runs: &[RunCost], of: fn(&RunCost) -> f64| {
        super::interval::median(&mut runs.iter().map(of).collect::<Vec<_>>())
    };
    let avoided = median(baseline, |r| r.faults() as f64) - median(arm, |r| r.faults() as f64);
    let saved =
        median(baseline, |r| r.cpu().as_secs_f64()) - median(arm, |r| r.cpu().as_secs_f64());
    if avoided < 1_000.0 {
        return None;
    }
    let each = saved / avoided;
    if each > PER_FAULT_SECONDS.1 {
        Some(format!(
            "CPU time fell by {saved:.2} s, more than {avoided:.0} avoided faults explain: \
             something else changed too"
        ))
    } else if each < PER_FAULT_SECONDS.0 {
        Some(format!(
            "{avoided:.0} faults were avoided, but CPU time changed by only {:.3} s: the \
             avoided work came back elsewhere",
            -saved
        ))
    } else {
        None
    }
}
