//! Whether huge pages pay, from the best available signal.

use pagewise_model::balance::{BalancePoint, Basis, Effect, HugeVerdict};
use pagewise_model::quantity::{change_by_interval, percent};
use pagewise_model::units::{Bytes, Estimate};
use pagewise_stats::centre;

/// A smaller change of CPU time (a share) counts as none: machines vary by as much from minute to
/// minute.
const LEAST: f64 = 0.01;
/// An interval of the change that reaches further than this on either side of zero decides nothing.
const NEGLIGIBLE: f64 = 0.05;
/// Share of possible slots up to which pages count as base pages, and from which as huge.
const FEW: f64 = 0.1;
const MOST: f64 = 0.9;
/// Fewer intervals than this on either side show nothing.
const FEWEST: usize = 4;
/// Share of cycles in page walks below which nothing can be gained.
const LITTLE_WALKING: f64 = 0.01;

/// CPU seconds for a unit of work with base pages, then with huge pages.
pub type Pair = (f64, f64);

/// What was seen.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// Pairs of an interleaved comparison.
    pub pairs: &'a [Pair],
    /// Whether such a comparison was requested (`--prove`).
    pub proves: bool,
    /// Intervals.
    pub points: &'a [BalancePoint],
    /// Memory that huge pages added, or would.
    pub growth: Bytes,
    /// Slots that could be huge.
    pub slots: u64,
    /// Slots that are huge.
    pub huge: u64,
    /// Result of a pointer chase on this machine: change of its time, base to huge.
    pub chase: Option<Estimate>,
}

/// Whether huge pages were faster (true) or slower (false) in all pairs but one.
#[must_use]
pub fn faster(pairs: &[Pair]) -> Option<bool> {
    let wins = pairs.iter().filter(|(base, huge)| huge < base).count();
    let most = pairs.len().saturating_sub(1).max(1);
    match () {
        () if pairs.is_empty() => None,
        () if wins >= most => Some(true),
        () if pairs.len() - wins >= most => Some(false),
        () => None,
    }
}

/// The verdict from the best evidence, and its sentence.
#[must_use]
pub fn verdict(evidence: &Evidence<'_>) -> (HugeVerdict, String) {
    if evidence.slots == 0 && evidence.points.is_empty() {
        return unknown(evidence, "It ended before its memory could be examined.");
    }
    if evidence.slots == 0 {
        return unknown(evidence, "It holds no memory that huge pages could map.");
    }
    if let Some(change) = paired(evidence.pairs) {
        return effect(evidence, change);
    }
    if let Some(change) = apart(evidence.points) {
        return at_different_times(evidence, change);
    }
    if let Some(share) = walk_share(evidence.points) {
        return bounded_by_walks(evidence, share);
    }
    match evidence.chase {
        Some(chase) => bounded_by_chase(evidence, chase),
        None => unknown(evidence, what_is_missing(evidence)),
    }
}

fn what_is_missing(evidence: &Evidence<'_>) -> &'static str {
    match evidence.points.iter().any(|point| point.cost_ns.is_some()) {
        true if evidence.proves => {
            "Inconclusive: too little work was done with each page size to compare them. A longer --duration, or a program that runs longer, gives more."
        }
        true => {
            "Inconclusive: work was not observed with base pages and with huge pages for long enough. --prove alternates between both and compares."
        }
        false => {
            "Inconclusive: no work was counted. Let it act (--apply), or name a counter of work (--progress)."
        }
    }
}

/// Change of CPU time for a unit of work, from logarithms of paired ratios.
fn paired(pairs: &[Pair]) -> Option<Estimate> {
    let ratios = pairs.iter().map(|(base, huge)| (huge / base).ln());
    interval(&ratios.collect::<Vec<f64>>())
}

/// The same from intervals at different times, matching those nearest in time.
fn apart(points: &[BalancePoint]) -> Option<Estimate> {
    let share = |point: &BalancePoint| point.huge as f64 / point.possible.max(1) as f64;
    // The first interval with work also contains the program's start.
    let first = points.iter().position(|point| point.cost_ns.is_some())? + 1;
    let calm = points[first..].iter().filter(|point| point.changes == 0);
    let costs = |keep: &dyn Fn(f64) -> bool| -> Vec<f64> {
        let kept = calm.clone().filter(|point| keep(share(point)));
        kept.filter_map(|point| point.cost_ns).collect()
    };
    let base = costs(&|share| share <= FEW);
    let huge = costs(&|share| share >= MOST);
    if base.len() < FEWEST || huge.len() < FEWEST {
        return None;
    }
    let pairs = base.len().min(huge.len());
    let last_base = &base[base.len() - pairs..];
    let ratios = last_base
        .iter()
        .zip(&huge)
        .map(|(base, huge)| (huge / base).ln());
    interval(&ratios.collect::<Vec<f64>>())
}

fn interval(logs: &[f64]) -> Option<Estimate> {
    let found = centre(logs)?;
    Some(Estimate {
        value: found.median.exp() - 1.0,
        low: found.low.exp() - 1.0,
        high: found.high.exp() - 1.0,
    })
}

fn walk_share(points: &[BalancePoint]) -> Option<f64> {
    let shares: Vec<f64> = points.iter().filter_map(|point| point.walk_share).collect();
    centre(&shares).map(|found| found.median)
}

/// Pages changed once: the machine may have changed as well, and the interval cannot know.
fn at_different_times(evidence: &Evidence<'_>, change: Estimate) -> (HugeVerdict, String) {
    let verdict = HugeVerdict {
        effect: Effect::Unknown,
        basis: Basis::Measured,
        cpu_change: Some(change),
        rss_growth: evidence.growth,
    };
    let tendency = match () {
        () if change.high < -LEAST => "Huge pages may help",
        () if change.low > LEAST => "Huge pages may hurt",
        () => "Huge pages may or may not help",
    };
    let sentence = format!(
        "{tendency}: {} CPU time for the same work after the change, {}. The machine's speed may have changed as well: --prove alternates and compares.",
        change_by_interval(&change),
        memory(evidence.growth),
    );
    (verdict, sentence)
}

fn memory(growth: Bytes) -> String {
    match growth {
        Bytes(0) => "no more memory".to_owned(),
        growth => format!("{growth} more memory"),
    }
}

fn effect(evidence: &Evidence<'_>, change: Estimate) -> (HugeVerdict, String) {
    let effect = match () {
        () if change.high < -LEAST => Effect::Help,
        () if change.low > LEAST => Effect::Hurt,
        () if change.low >= -NEGLIGIBLE && change.high <= NEGLIGIBLE => Effect::NoMeasurableEffect,
        () => Effect::Unknown,
    };
    let range = format!("{} CPU time", change_by_interval(&change));
    let memory = memory(evidence.growth);
    let sentence = match effect {
        Effect::Help => format!("Huge pages help: {range} for the same work, {memory}."),
        Effect::Hurt => format!("Huge pages hurt: {range} for the same work, {memory}."),
        Effect::NoMeasurableEffect => format!(
            "Huge pages make no measurable difference: {range} for the same work, {memory}."
        ),
        Effect::Unknown => format!(
            "Inconclusive: huge pages may or may not help: {range} for the same work, {memory}."
        ),
    };
    let verdict = HugeVerdict {
        effect,
        basis: Basis::Interleaved,
        cpu_change: Some(change),
        rss_growth: evidence.growth,
    };
    (verdict, sentence)
}

fn bounded_by_walks(evidence: &Evidence<'_>, share: f64) -> (HugeVerdict, String) {
    let (effect, sentence) = if share < LITTLE_WALKING {
        let sentence = format!(
            "Huge pages do not matter: page walks take {} of its cycles.",
            percent(share)
        );
        (Effect::NoMeasurableEffect, sentence)
    } else {
        let sentence = format!(
            "Page walks take {} of its cycles: no page size can save more. --apply tries it.",
            percent(share)
        );
        (Effect::Unknown, sentence)
    };
    let verdict = HugeVerdict {
        effect,
        basis: Basis::Walks,
        cpu_change: Some(Estimate {
            value: -share,
            low: -share,
            high: 0.0,
        }),
        rss_growth: evidence.growth,
    };
    (verdict, sentence)
}

fn bounded_by_chase(evidence: &Evidence<'_>, chase: Estimate) -> (HugeVerdict, String) {
    let most = chase.low.min(0.0);
    let verdict = HugeVerdict {
        effect: Effect::Unknown,
        basis: Basis::Probe,
        cpu_change: Some(Estimate {
            value: chase.value.min(0.0),
            low: most,
            high: 0.0,
        }),
        rss_growth: evidence.growth,
    };
    let chased = match chase.value < 0.0 {
        true => format!(
            "a program that only chases pointers through this much memory takes {} less CPU time with huge pages here, and this one saves between nothing and that",
            percent(-chase.value)
        ),
        false => "a program that only chases pointers through this much memory gains nothing here"
            .to_owned(),
    };
    let added = match evidence.huge == evidence.slots {
        true => "They add",
        false => "All of them would add",
    };
    let sentence = format!(
        "{} of {} slots are huge. {added} {}; {chased}. {}",
        evidence.huge,
        evidence.slots,
        evidence.growth,
        next(evidence),
    );
    (verdict, sentence)
}

/// Why it was not measured, or what would measure it.
fn next(evidence: &Evidence<'_>) -> &'static str {
    let has_changed = evidence.points.iter().any(|point| point.changes > 0);
    let was_counted = evidence.points.iter().any(|point| point.cost_ns.is_some());
    match (has_changed, was_counted) {
        (false, false) => "--apply measures it; --progress names what counts as work.",
        (false, true) => "--apply measures it.",
        (true, false) => "What they gain was not measured, as no work was counted.",
        (true, true) => what_is_missing(evidence),
    }
}

fn unknown(evidence: &Evidence<'_>, sentence: &str) -> (HugeVerdict, String) {
    let verdict = HugeVerdict {
        effect: Effect::Unknown,
        basis: Basis::None,
        cpu_change: None,
        rss_growth: evidence.growth,
    };
    (verdict, sentence.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Nanos;

    fn point(huge: u64, cost_ns: Option<f64>, walk_share: Option<f64>) -> BalancePoint {
        BalancePoint {
            time: Nanos(0),
            huge,
            possible: 100,
            changes: 0,
            rss: Bytes(0),
            cpu: Nanos(0),
            cost_ns,
            walk_share,
            huge_walks_per_s: None,
            small_walks_per_s: None,
            load: 0,
            imbalance: None,
            reason: String::new(),
        }
    }

    fn evidence<'a>(points: &'a [BalancePoint], pairs: &'a [Pair]) -> Evidence<'a> {
        Evidence {
            pairs,
            proves: !pairs.is_empty(),
            points,
            growth: Bytes(12 << 20),
            slots: 100,
            huge: 0,
            chase: None,
        }
    }

    #[test]
    fn pairs_count_before_anything_else() {
        let pairs = |ratio: f64| -> Vec<Pair> {
            let at = |i: i32| {
                let (base, huge) = (f64::from(i) / 50.0, f64::from(i) / 51.0);
                (1.0 + base, ratio * (1.0 + huge))
            };
            (0..8).map(at).collect()
        };
        assert_eq!(
            [0.7, 1.2, 1.0].map(|ratio| faster(&pairs(ratio))),
            [Some(true), Some(false), Some(true)]
        );
        let (help, sentence) = verdict(&evidence(&[], &pairs(0.7)));
        assert_eq!(
            (help.effect, help.basis),
            (Effect::Help, Basis::Interleaved)
        );
        assert!(sentence.starts_with("Huge pages help: −30 %"), "{sentence}");
        assert!(sentence.ends_with("12.0 MiB more memory."));
        assert_eq!(verdict(&evidence(&[], &pairs(1.2))).0.effect, Effect::Hurt);
        let (same, _) = verdict(&evidence(&[], &pairs(1.0)));
        assert_eq!(same.effect, Effect::NoMeasurableEffect);
        let wide: Vec<Pair> = (0..8).map(|i| (1.0, 0.8 + f64::from(i) / 15.0)).collect();
        let (open, sentence) = verdict(&evidence(&[], &wide));
        assert_eq!(open.effect, Effect::Unknown, "{sentence}");
        assert!(
            sentence.starts_with("Inconclusive: huge pages may"),
            "{sentence}"
        );
    }

    #[test]
    fn a_comparison_without_pairs_asks_for_more_time() {
        let points = [point(0, Some(100.0), None)];
        let with = |proves| {
            let evidence = Evidence {
                proves,
                ..evidence(&points, &[])
            };
            verdict(&evidence).1
        };
        assert!(with(false).contains("--prove"), "{}", with(false));
        assert!(!with(true).contains("--prove"), "{}", with(true));
        assert!(with(true).contains("--duration"), "{}", with(true));
    }

    #[test]
    fn intervals_at_both_ends_suggest_and_those_between_do_not() {
        let mut points: Vec<BalancePoint> = (0..10).map(|_| point(0, Some(100.0), None)).collect();
        points.extend((0..10).map(|_| point(50, Some(500.0), None)));
        assert_eq!(verdict(&evidence(&points, &[])).0.effect, Effect::Unknown);
        points.extend((0..10).map(|_| point(100, Some(80.0), None)));
        let (found, sentence) = verdict(&evidence(&points, &[]));
        assert_eq!(
            (found.effect, found.basis),
            (Effect::Unknown, Basis::Measured)
        );
        assert!(
            sentence.starts_with("Huge pages may help: −20 %"),
            "{sentence}"
        );
        assert!((found.cpu_change.unwrap().value + 0.2).abs() < 1e-9);
    }

    #[test]
    fn counters_and_chases_give_bounds_only() {
        let walking: Vec<BalancePoint> = (0..5).map(|_| point(0, None, Some(0.25))).collect();
        let (found, _) = verdict(&evidence(&walking, &[]));
        assert_eq!((found.effect, found.basis), (Effect::Unknown, Basis::Walks));
        assert!((found.cpu_change.unwrap().low + 0.25).abs() < 1e-9);
        let idle: Vec<BalancePoint> = (0..5).map(|_| point(0, None, Some(0.001))).collect();
        assert_eq!(
            verdict(&evidence(&idle, &[])).0.effect,
            Effect::NoMeasurableEffect
        );
        let mut chased = evidence(&[], &[]);
        chased.chase = Some(Estimate {
            value: -0.3,
            low: -0.32,
            high: -0.28,
        });
        let (found, sentence) = verdict(&chased);
        assert_eq!(found.basis, Basis::Probe);
        assert!(sentence.contains("takes 30 % less CPU time"), "{sentence}");
        chased.chase = Some(Estimate::exact(0.1));
        assert!(verdict(&chased).1.contains("gains nothing here"));
    }

    #[test]
    fn nobody_is_asked_for_what_was_given() {
        let said = |points: &[BalancePoint]| {
            let mut evidence = evidence(points, &[]);
            evidence.chase = Some(Estimate::exact(-0.3));
            verdict(&evidence).1
        };
        assert!(said(&[]).ends_with("--apply measures it; --progress names what counts as work."));
        assert!(said(&[point(0, Some(1.0), None)]).ends_with(" --apply measures it."));
        let changed = BalancePoint {
            changes: 3,
            ..point(100, None, None)
        };
        assert!(said(&[changed]).ends_with("as no work was counted."));
    }
}
