//! A comparison in plain words.

use super::needed::{Promise, promise};
use super::{Criteria, FEWEST_PAIRS};
use pagewise_model::proof::{Clock, Comparison, Verdict};
use pagewise_model::quantity::percent_change;
use pagewise_model::ratio::Ratio;
use pagewise_model::run::RunCost;
use pagewise_model::units::{Bytes, Estimate};

/// The comparison in one sentence: "1.90× faster in CPU time (95 % interval [1.86, 1.95], 12 pairs), faults −93
/// %, peak memory +34.0 MiB".
#[must_use]
pub fn sentence(comparison: &Comparison) -> String {
    match comparison.verdict {
        Verdict::NotReached => return "it does not reach the program".to_owned(),
        Verdict::TriedOnce => {
            return "one run of it promised no gain, or less than others".to_owned();
        }
        _ => {}
    }
    if comparison.pairs < 2 {
        return "too few runs to compare".to_owned();
    }
    let (speed, clock) = headline(comparison);
    let beside = format!(
        "faults {}, peak memory {}",
        percent_change(comparison.fault_ratio.value),
        bytes_change(comparison.rss_change_bytes),
    );
    let pairs = comparison.pairs;
    if comparison.verdict == Verdict::Undecided {
        return match promise(comparison, 1, &Criteria::default()) {
            Some(found) => format!("{} ({}), {beside}", likely(&found), further(&found, pairs)),
            None if pairs < FEWEST_PAIRS => format!(
                "undecided after {pairs} pairs of runs: a 95 % interval needs {} more pairs; {beside}",
                FEWEST_PAIRS - pairs
            ),
            None => format!("undecided{}; {beside}", so_far(speed, clock, pairs)),
        };
    }
    let (words, message) = (
        speed_words(comparison.verdict, speed, clock),
        interval(speed),
    );
    match message {
        Some(message) => format!("{words} (95 % interval {message}, {pairs} pairs), {beside}"),
        None => format!("{words} ({pairs} pairs), {beside}"),
    }
}

/// "probably 8.00 times as fast, 4 more pairs of runs would prove it", if that is true of one of
/// `arms`.
#[must_use]
pub fn promised(comparison: &Comparison, arms: usize, criteria: &Criteria) -> Option<String> {
    let undecided = comparison.verdict == Verdict::Undecided;
    let found = promise(comparison, arms, criteria).filter(|_| undecided)?;
    Some(format!("{}, {}", likely(&found), more(found.more_pairs)))
}

/// From this gain on, one run says more than that nothing is decided.
const LARGE: f64 = 1.2;

/// The arm that was far faster in the only pair of runs for which there was time.
#[must_use]
pub fn tried_once<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> Option<&'a Comparison> {
    let gain = |one: &&Comparison| one.cpu_speedup.value;
    let is_large = |one: &&Comparison| {
        one.pairs == 1 && one.verdict == Verdict::Undecided && gain(one) >= LARGE
    };
    let large = comparisons.filter(is_large);
    large.max_by(|a, b| gain(a).total_cmp(&gain(b)))
}

fn likely(found: &Promise) -> String {
    let clock = if found.by_cpu { " in CPU time" } else { "" };
    format!("probably {:.2} times as fast{clock}", found.speed)
}

fn further(found: &Promise, pairs: u32) -> String {
    format!("{pairs} pairs of runs; {}", more(found.more_pairs))
}

fn more(pairs: u32) -> String {
    let noun = if pairs == 1 { "pair" } else { "pairs" };
    format!("{pairs} more {noun} would prove it")
}

fn so_far(speed: &Estimate, clock: &str, pairs: u32) -> String {
    match interval(speed) {
        Some(message) => format!(
            ": {:.2}× the speed{clock} (95 % interval {message}, {pairs} pairs)",
            speed.value
        ),
        None => format!(" after {pairs} pairs of runs, which differ too much"),
    }
}

/// The ratio to show: of a gain the one that leads everywhere, else elapsed time, or CPU time if only that differs
/// significantly from 1.
fn headline(comparison: &Comparison) -> (&Estimate, &'static str) {
    let (wall, cpu) = (&comparison.wall_speedup, &comparison.cpu_speedup);
    let gained = matches!(comparison.verdict, Verdict::Faster | Verdict::TooMuchMemory);
    let (speed, clock) = match gained {
        true => comparison.leading(),
        false if wall.covers(1.0) && !cpu.covers(1.0) => (cpu, Clock::Cpu),
        false => (wall, Clock::Wall),
    };
    match clock {
        Clock::Cpu => (speed, " in CPU time"),
        Clock::Wall => (speed, " in elapsed time"),
    }
}

fn speed_words(verdict: Verdict, speed: &Estimate, clock: &str) -> String {
    let times = |ratio: f64| match (1e-6..=1e6).contains(&ratio) {
        true => format!("{ratio:.2}× "),
        false => String::new(),
    };
    match verdict {
        Verdict::Faster => format!("{}faster{clock}", times(speed.value)),
        Verdict::TooMuchMemory => {
            format!(
                "{}faster{clock}, but over the memory limit",
                times(speed.value)
            )
        }
        Verdict::Slower => format!("{}slower{clock}", times(1.0 / speed.value)),
        Verdict::NoDifference => format!("no gain: {}the speed{clock}", times(speed.value)),
        Verdict::Undecided | Verdict::NotReached | Verdict::TriedOnce => {
            format!("undecided: {}the speed{clock}", times(speed.value))
        }
    }
}

/// `1.86–1.95`, `from 1.86`; `None` if the interval is unbounded.
fn interval(ratio: &Estimate) -> Option<String> {
    match Ratio::from_estimate(ratio) {
        Ratio::Measured(found) => Some(format!("[{:.2}, {:.2}]", found.low, found.high)),
        Ratio::AtLeast(least) => Some(format!("from {least:.2}")),
        Ratio::AtMost(most) => Some(format!("up to {most:.2}")),
        Ratio::Unknown => None,
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
    if !change.is_finite() {
        return "not known".to_owned();
    }
    let size = Bytes(change.abs() as u64);
    // The peak that the kernel reports is rounded to pages and per-CPU batches.
    if size < Bytes(256 << 10) {
        return "unchanged".to_owned();
    }
    format!("{}{size}", if change < 0.0 { "−" } else { "+" })
}

/// Plausible kernel time per avoided fault: below, the fault was hardly worth avoiding; above,
/// something else must have changed too. From 300 ns (zero page) to 10 µs (a contended or
/// cgroup-charged anonymous write).
const PER_FAULT_SECONDS: (f64, f64) = (0.1e-6, 10e-6);

/// Checks the gain against its supposed cause: CPU time saved by avoided faults. `None` if they
/// agree or nothing can be concluded.
#[must_use]
pub fn causal_doubt(baseline: &[RunCost], arm: &[RunCost]) -> Option<String> {
    let median = |runs: &[RunCost], of: fn(&RunCost) -> f64| {
        pagewise_stats::median(&mut runs.iter().map(of).collect::<Vec<_>>())
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
            "CPU time fell by {saved:.2} s, more than the {avoided:.0} avoided faults explain: something else changed too"
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
