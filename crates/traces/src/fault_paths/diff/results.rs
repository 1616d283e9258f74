//! Compares two finished results: effects without tests, since sums do not show how much they vary
//! from block to block.

use super::headline::headline;
use pagewise_model::answer::Document;
use pagewise_model::fault_diff::{
    ClassChange, Explanation, FaultDiff, FunctionChange, LayerChange, Method, Pair, Pairs,
    PathChange, QuantileShift, Shift, Traced,
};
use pagewise_model::fault_paths::{
    Class, ClassFindings, Contributor, FaultPaths, Latencies, Latency, LayerFindings,
};
use pagewise_model::side::Side;
use pagewise_model::units::Estimate;
use std::collections::{BTreeMap, BTreeSet};

const QUANTILES: [f64; 5] = [0.1, 0.5, 0.9, 0.99, 0.999];

/// The differences between two results of `pagewise report --json`, each with its file and label.
#[must_use]
pub fn compare_results(
    a: (&FaultPaths, &str, &str),
    b: (&FaultPaths, &str, &str),
) -> Document<FaultDiff> {
    let (fa, fb) = (a.0, b.0);
    let diff = FaultDiff {
        a: side(a),
        b: side(b),
        method: Method {
            level: 0.0,
            tests: 0,
            questions: 0,
            permutations: 0,
            resamples: 0,
            seed: 0,
            not_tested: Some(
                "results contain only sums: compare the traces themselves for tests and intervals"
                    .to_owned(),
            ),
        },
        questions: Vec::new(),
        findings: Vec::new(),
        phases: Vec::new(),
        suspicions: Vec::new(),
        whole: shift(Some(&fa.latency), Some(&fb.latency)),
        classes: classes(fa, fb),
        layers: layers(None, &fa.layers, &fb.layers, (&fa.latency, &fb.latency))
            .into_iter()
            .chain(class_layers(fa, fb))
            .collect(),
        paths: paths(fa, fb),
        functions: functions(fa, fb),
        extra: Vec::new(),
        mean: Explanation::default(),
        tail: Explanation::default(),
    };
    let verdict = headline(&diff);
    Document::new(diff).with_verdict(verdict)
}

fn side((found, name, label): (&FaultPaths, &str, &str)) -> Side<Traced> {
    let sums = Traced {
        label: label.to_owned(),
        faults: found.faults,
        duration_ns: found.duration_ns,
        calibration: found.calibration,
        correction_exceeds_signal: found.correction_exceeds_signal,
        distinct_paths: found.distinct_paths,
        blocks: 0,
        block_correlation: 0.0,
        losses: found.losses.clone(),
    };
    Side {
        name: name.to_owned(),
        subject: found.subject.clone(),
        host: found.host.hostname.clone(),
        sums,
    }
}

fn shift(a: Option<&Latencies>, b: Option<&Latencies>) -> Shift {
    let none = Latencies::default();
    let (a, b) = (a.unwrap_or(&none), b.unwrap_or(&none));
    let fewest = a.raw.count.min(b.raw.count);
    let wanted = QUANTILES
        .into_iter()
        .filter(|q| whole(fewest) * (1.0 - q) >= 1.0);
    let quantiles = wanted.map(|quantile| {
        let pair = |a: &Latency, b: &Latency| Pair {
            a: at(a, quantile),
            b: at(b, quantile),
        };
        let ns = Pairs {
            raw: pair(&a.raw, &b.raw),
            corrected: pair(&a.corrected, &b.corrected),
        };
        QuantileShift {
            quantile,
            ns,
            change: Estimate::exact(ns.corrected.b - ns.corrected.a),
            test: None,
        }
    });
    Shift {
        quantiles: quantiles.collect(),
        mean: Estimate::exact(b.corrected.mean_ns - a.corrected.mean_ns),
        mean_test: None,
        a: a.corrected.clone(),
        b: b.corrected.clone(),
        a_raw: a.raw.clone(),
        b_raw: b.raw.clone(),
    }
}

/// A quantile: one that the result has, or one from the buckets that a stored result has, whose
/// values lie evenly.
fn at(latency: &Latency, quantile: f64) -> f64 {
    let known = [
        (0.5, latency.p50_ns),
        (0.9, latency.p90_ns),
        (0.99, latency.p99_ns),
    ];
    if let Some((_, ns)) = known.into_iter().find(|(known, _)| *known == quantile) {
        return whole(ns);
    }
    let rank = quantile * whole(latency.count);
    let mut before = 0.0;
    for (low, high, count) in latency.wide_buckets() {
        let part = (rank - before) / whole(count);
        if part <= 1.0 {
            let value = whole(low) + part * whole(high - low);
            return value.clamp(whole(latency.min_ns), whole(latency.max_ns));
        }
        before += whole(count);
    }
    whole(latency.max_ns)
}

/// The findings of a class in both.
fn by_class<'a>(
    a: &'a FaultPaths,
    b: &'a FaultPaths,
) -> Vec<(Class, Option<&'a ClassFindings>, Option<&'a ClassFindings>)> {
    let all: BTreeSet<Class> = a
        .classes
        .iter()
        .chain(&b.classes)
        .map(|c| c.class)
        .collect();
    let find = |found: &'a FaultPaths, class| found.classes.iter().find(move |c| c.class == class);
    let mut both: Vec<_> = all
        .into_iter()
        .map(|class| (class, find(a, class), find(b, class)))
        .collect();
    both.sort_by_key(|(_, a, b)| {
        let faults = |found: &Option<&ClassFindings>| found.map_or(0, |found| found.faults);
        std::cmp::Reverse(faults(a) + faults(b))
    });
    both
}

fn classes(a: &FaultPaths, b: &FaultPaths) -> Vec<ClassChange> {
    let change = |(class, in_a, in_b): (Class, Option<&ClassFindings>, Option<&ClassFindings>)| {
        let of = |get: fn(&ClassFindings) -> f64| Pair {
            a: in_a.map_or(0.0, get),
            b: in_b.map_or(0.0, get),
        };
        let share = of(|found| found.share);
        let raw = |found: Option<&ClassFindings>, all: &FaultPaths| {
            found.map_or(0.0, |f| ratio(f.latency.raw.sum_ns, all.latency.raw.sum_ns))
        };
        ClassChange {
            class,
            faults: (in_a.map_or(0, |f| f.faults), in_b.map_or(0, |f| f.faults)),
            share,
            time_share: Pairs {
                raw: Pair {
                    a: raw(in_a, a),
                    b: raw(in_b, b),
                },
                corrected: of(|found| found.time_share),
            },
            change: Estimate::exact(share.b - share.a),
            test: None,
            whole: shift(in_a.map(|f| &f.latency), in_b.map(|f| &f.latency)),
        }
    };
    by_class(a, b).into_iter().map(change).collect()
}

fn class_layers(a: &FaultPaths, b: &FaultPaths) -> Vec<LayerChange> {
    let none = Latencies::default();
    let of = |(class, in_a, in_b): (Class, Option<&ClassFindings>, Option<&ClassFindings>)| {
        let list = |found: Option<&ClassFindings>| found.map_or(Vec::new(), |f| f.layers.clone());
        let all = |found: Option<&ClassFindings>| found.map_or(none.clone(), |f| f.latency.clone());
        layers(
            Some(class),
            &list(in_a),
            &list(in_b),
            (&all(in_a), &all(in_b)),
        )
    };
    by_class(a, b).into_iter().flat_map(of).collect()
}

fn layers(
    class: Option<Class>,
    a: &[LayerFindings],
    b: &[LayerFindings],
    all: (&Latencies, &Latencies),
) -> Vec<LayerChange> {
    let both: BTreeSet<_> = a.iter().chain(b).map(|found| found.layer).collect();
    let both = both
        .into_iter()
        .filter(|layer| *layer != super::super::layer::Layer::Fault);
    let change = |layer| {
        let find = |list: &'_ [LayerFindings]| list.iter().position(|found| found.layer == layer);
        let in_a = find(a).map(|at| &a[at].latency);
        let in_b = find(b).map(|at| &b[at].latency);
        let share = |get: fn(&Latencies) -> u64| Pair {
            a: ratio(in_a.map_or(0, get), get(all.0)),
            b: ratio(in_b.map_or(0, get), get(all.1)),
        };
        LayerChange {
            layer,
            class,
            time_share: Pairs {
                raw: share(|found| found.raw.sum_ns),
                corrected: share(|found| found.corrected.sum_ns),
            },
            shift: shift(in_a, in_b),
        }
    };
    both.map(change).collect()
}

/// Faults of a path, their mean latency as traced and corrected.
type PathMeans = (u64, f64, f64);

fn paths(a: &FaultPaths, b: &FaultPaths) -> Vec<PathChange> {
    let mut both: BTreeMap<(Class, &str), [PathMeans; 2]> = BTreeMap::new();
    for (place, found) in [a, b].into_iter().enumerate() {
        for path in &found.paths {
            both.entry((path.class, &path.outline)).or_default()[place] = (
                path.faults,
                path.latency.raw.mean_ns,
                path.latency.corrected.mean_ns,
            );
        }
    }
    let faults = |found: &FaultPaths, class: Class| {
        found
            .classes
            .iter()
            .find(|c| c.class == class)
            .map_or(0, |c| c.faults)
    };
    let change = |((class, outline), [in_a, in_b]): ((Class, &str), [PathMeans; 2])| {
        let share = Pair {
            a: ratio(in_a.0, faults(a, class)),
            b: ratio(in_b.0, faults(b, class)),
        };
        PathChange {
            class,
            outline: outline.to_owned(),
            faults: (in_a.0, in_b.0),
            share,
            change: Estimate::exact(share.b - share.a),
            test: None,
            mean_ns: Pairs {
                raw: Pair {
                    a: in_a.1,
                    b: in_b.1,
                },
                corrected: Pair {
                    a: in_a.2,
                    b: in_b.2,
                },
            },
        }
    };
    let mut found: Vec<PathChange> = both.into_iter().map(change).collect();
    found.sort_by(|x, y| y.change.value.abs().total_cmp(&x.change.value.abs()));
    found
}

/// Functions among the contributors of a class in both; a function that one result omits as too
/// small is not compared.
fn functions(a: &FaultPaths, b: &FaultPaths) -> Vec<FunctionChange> {
    let mut found: Vec<(f64, FunctionChange)> = Vec::new();
    for (class, in_a, in_b) in by_class(a, b) {
        let (Some(in_a), Some(in_b)) = (in_a, in_b) else {
            continue;
        };
        for x in &in_a.contributors {
            let same = |y: &&Contributor| y.function == x.function;
            let Some(y) = in_b.contributors.iter().find(same) else {
                continue;
            };
            let pair = |of: fn(&Contributor) -> u64| Pair {
                a: ratio(of(x), in_a.faults),
                b: ratio(of(y), in_b.faults),
            };
            let corrected = pair(|c| c.corrected_self_ns);
            let change = corrected.b - corrected.a;
            let weight = change.abs() * f64::midpoint(in_a.share, in_b.share);
            found.push((
                weight,
                FunctionChange {
                    function: x.function.clone(),
                    class,
                    calls: pair(|c| c.calls),
                    own_ns: Pairs {
                        raw: pair(|c| c.self_ns),
                        corrected,
                    },
                    change: Estimate::exact(change),
                    time_test: None,
                    calls_test: None,
                    slow: None,
                },
            ));
        }
    }
    found.sort_by(|x, y| y.0.total_cmp(&x.0));
    found.into_iter().map(|(_, change)| change).collect()
}

fn ratio(part: u64, all: u64) -> f64 {
    if all == 0 {
        0.0
    } else {
        whole(part) / whole(all)
    }
}

fn whole(value: u64) -> f64 {
    super::super::figures::whole(value)
}
