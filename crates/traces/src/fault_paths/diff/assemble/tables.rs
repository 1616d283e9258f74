//! The comparison tables: kinds, layers, paths and functions of both traces.

use super::super::super::layer::Layer;
use super::super::super::signature::Class;
use super::super::blocked::FunctionSums;
use super::super::figures::{About, At, bound};
use super::super::shifts::{Value, shift};
use super::findings::{at_least_nothing, own_times};
use super::{Assembly, over, pairs, rounded};
use crate::fault_paths::figures::whole;
use pagewise_formats::function_graph::NameId;
use pagewise_model::fault_diff::{
    ClassChange, ExtraFunction, FunctionChange, LayerChange, Pair, Pairs, PathChange, SlowCalls,
};
use pagewise_model::units::Estimate;
use std::collections::{BTreeMap, BTreeSet};

/// Functions and paths in a report; all significant ones are also findings.
const MOST_FUNCTIONS: usize = 200;
const MOST_PATHS: usize = 60;
const MOST_EXTRA: usize = 100;

impl Assembly<'_> {
    fn all_classes(&self) -> Vec<Class> {
        let mut faults: BTreeMap<Class, f64> = BTreeMap::new();
        for side in self.frame.sides {
            let all = side.rows.len().max(1) as f64;
            for row in &side.rows {
                *faults.entry(row.class).or_default() += 1.0 / all;
            }
        }
        let mut order: Vec<Class> = faults.keys().copied().collect();
        order.sort_by(|x, y| faults[y].total_cmp(&faults[x]));
        order
    }

    pub(super) fn classes(&self) -> Vec<ClassChange> {
        let classes = self.all_classes().into_iter();
        classes.map(|class| self.class(class)).collect()
    }

    fn class(&self, class: Class) -> ClassChange {
        let faults = [0, 1].map(|place: usize| -> f64 {
            self.frame.sides[place].faults(Some(class)).iter().sum()
        });
        let all = [0, 1].map(|place: usize| whole(self.frame.sides[place].collector.checks.faults));
        let share = Pair {
            a: over(faults[0], all[0]),
            b: over(faults[1], all[1]),
        };
        let about = About::ClassShare(class);
        let change = match self.figures.find(&about) {
            Some(at) => self.change_of(at),
            None => Estimate::exact(share.b - share.a),
        };
        let of = self.mean(Some(class), |_, row| (row.raw, row.corrected));
        let time = self.mean(None, |_, row| (row.raw, row.corrected));
        ClassChange {
            class,
            faults: (rounded(faults[0]), rounded(faults[1])),
            share,
            time_share: Pairs {
                raw: Pair {
                    a: over(of.raw.a * share.a, time.raw.a),
                    b: over(of.raw.b * share.b, time.raw.b),
                },
                corrected: Pair {
                    a: over(of.corrected.a * share.a, time.corrected.a),
                    b: over(of.corrected.b * share.b, time.corrected.b),
                },
            },
            change,
            test: self.test(&about),
            whole: self.whole(Some(class)),
        }
    }

    pub(super) fn layers(&self) -> Vec<LayerChange> {
        let classes = self.all_classes().into_iter().map(Some);
        let scopes: Vec<Option<Class>> = std::iter::once(None).chain(classes).collect();
        let mut found = Vec::new();
        for class in scopes {
            let time = self.mean(class, |_, row| (row.raw, row.corrected));
            for layer in Layer::ALL
                .into_iter()
                .filter(|layer| *layer != Layer::Fault)
            {
                let values = [0, 1].map(|place: usize| -> Vec<Value> {
                    let side = &self.frame.sides[place];
                    let rows = side.rows(class);
                    rows.filter_map(|row| {
                        side.layer(row, layer).map(|(raw, ns)| (row.block, raw, ns))
                    })
                    .collect()
                });
                if values.iter().all(Vec::is_empty) {
                    continue;
                }
                let about = About::Layer(layer, class);
                let mut shift = shift(
                    &values[0],
                    &values[1],
                    self.frame.draws,
                    self.change(&about),
                );
                shift.mean_test = self.test(&about);
                found.push(LayerChange {
                    layer,
                    class,
                    time_share: self.layer_share(layer, class, &time),
                    shift,
                });
            }
        }
        found
    }

    fn layer_share(&self, layer: Layer, class: Option<Class>, time: &Pairs) -> Pairs {
        let of = self.mean(class, |side, row| {
            side.layer(row, layer).unwrap_or_default()
        });
        shares(&of, time)
    }

    pub(super) fn paths(&self) -> Vec<PathChange> {
        let mut sums: BTreeMap<(Class, &str), [PathSums; 2]> = BTreeMap::new();
        let mut of_class: BTreeMap<Class, [f64; 2]> = BTreeMap::new();
        for (place, side) in self.frame.sides.iter().enumerate() {
            for row in &side.rows {
                let path = &side.paths[row.shape];
                let sum = &mut sums.entry((row.class, path)).or_default()[place];
                *sum = (
                    sum.0 + 1.0,
                    sum.1 + whole(row.raw),
                    sum.2 + whole(row.corrected),
                );
                of_class.entry(row.class).or_default()[place] += 1.0;
            }
        }
        let mut found: Vec<PathChange> = sums
            .into_iter()
            .map(|((class, path), [a, b])| {
                let all = of_class[&class];
                let about = About::Path(class, path);
                let share = Pair {
                    a: over(a.0, all[0]),
                    b: over(b.0, all[1]),
                };
                let change = match self.figures.find(&about) {
                    Some(at) => self.change_of(at),
                    None => Estimate::exact(share.b - share.a),
                };
                let every = [0, 1].map(|place: usize| self.frame.sides[place].collector.log.every);
                PathChange {
                    class,
                    outline: path.to_owned(),
                    faults: (rounded(a.0) * every[0], rounded(b.0) * every[1]),
                    share,
                    change,
                    test: self.test(&about),
                    mean_ns: pairs(
                        (over(a.1, a.0), over(a.2, a.0)),
                        (over(b.1, b.0), over(b.2, b.0)),
                    ),
                }
            })
            .collect();
        let weight = |path: &PathChange| {
            let significant = path.test.is_some_and(|test| test.significant);
            (significant, path.change.value.abs())
        };
        found.sort_by(|x, y| {
            let (x, y) = (weight(x), weight(y));
            y.0.cmp(&x.0).then(y.1.total_cmp(&x.1))
        });
        found.truncate(MOST_PATHS);
        found
    }

    pub(super) fn functions(&self) -> Vec<FunctionChange> {
        let mut found: Vec<(f64, FunctionChange)> = Vec::new();
        for (&(class, function), both) in self.figures.functions() {
            let faults = [0, 1].map(|place: usize| -> f64 {
                self.frame.sides[place].faults(Some(class)).iter().sum()
            });
            let all =
                [0, 1].map(|place: usize| whole(self.frame.sides[place].collector.checks.faults));
            if faults.contains(&0.0) {
                continue;
            }
            let per_fault = |of: fn(&FunctionSums) -> f64| Pair {
                a: over(of(&both[0]), faults[0]),
                b: over(of(&both[1]), faults[1]),
            };
            let (calls, raw, corrected) = (
                per_fault(|sums| sums.calls.iter().sum()),
                per_fault(|sums| sums.own),
                per_fault(|sums| sums.corrected.iter().sum()),
            );
            let about = About::FunctionTime(Some(class), function);
            let change = match self.figures.find(&about) {
                Some(at) => self.change_of(at),
                None => Estimate::exact(corrected.b - corrected.a),
            };
            let share = f64::midpoint(over(faults[0], all[0]), over(faults[1], all[1]));
            let slow = self.slow(Some(class), function);
            let sure = slow.is_some_and(|slow| slow.test.significant);
            let weight = share * change.value.abs() + if sure { 1e12 } else { 0.0 };
            found.push((
                weight,
                FunctionChange {
                    function: function.to_owned(),
                    class,
                    calls,
                    own_ns: Pairs { raw, corrected },
                    change,
                    time_test: self.test(&about),
                    calls_test: self.test(&About::FunctionCalls(Some(class), function)),
                    slow,
                },
            ));
        }
        found.sort_by(|x, y| y.0.total_cmp(&x.0));
        found.truncate(MOST_FUNCTIONS);
        found.into_iter().map(|(_, change)| change).collect()
    }

    /// The bound beyond which a function's calls differ most significantly.
    pub(super) fn slow(&self, class: Option<Class>, function: &str) -> Option<SlowCalls> {
        let bounds = self.figures.all().filter_map(|(at, about)| match about {
            About::SlowCalls(c, f, bin) if *c == class && *f == function => Some((at, *bin)),
            _ => None,
        });
        let score = |at: At| {
            self.figures
                .outcome(at)
                .map_or(0.0, |outcome| outcome.score.abs())
        };
        let (at, bin) = bounds.max_by(|(x, _), (y, _)| score(*x).total_cmp(&score(*y)))?;
        let own = |place: usize| {
            let functions = self.figures.functions().iter();
            let of = functions
                .filter(|((c, f), _)| class.is_none_or(|class| class == *c) && *f == function);
            let mut bins: BTreeMap<u32, f64> = BTreeMap::new();
            for (_, both) in of {
                for (bin, calls) in &both[place].bins {
                    *bins.entry(*bin).or_default() += calls.iter().sum::<f64>();
                }
            }
            own_times(&bins, bin)
        };
        let ((usual_a, slow_a), (usual_b, slow_b)) = (own(0), own(1));
        Some(SlowCalls {
            above_ns: bound(bin),
            per_fault: at_least_nothing(self.figures.pair(at)),
            usual_ns: Pair {
                a: usual_a,
                b: usual_b,
            },
            slow_ns: Pair {
                a: slow_a,
                b: slow_b,
            },
            test: self.test_at(at)?,
        })
    }

    pub(super) fn extra(&self) -> Vec<ExtraFunction> {
        let sets = [0, 1].map(|place: usize| self.met(place));
        let mut found = Vec::new();
        for (place, in_b) in [(0, false), (1, true)] {
            let all = whole(self.frame.sides[place].collector.checks.faults);
            let time: f64 = sets[place].values().map(|met| met.2).sum();
            for (function, (calls, faults, own)) in &sets[place] {
                if !sets[1 - place].contains_key(function) {
                    found.push(ExtraFunction {
                        function: (*function).to_owned(),
                        in_b,
                        calls: *calls,
                        faults: *faults,
                        share: over(whole(*faults), all),
                        time_share: over(*own, time),
                    });
                }
            }
        }
        found.sort_by(|x, y| y.time_share.total_cmp(&x.time_share));
        found.truncate(MOST_EXTRA);
        found
    }

    /// Functions with their calls, the faults that call them, and their corrected self time.
    fn met(&self, place: usize) -> BTreeMap<&str, (u64, u64, f64)> {
        let side = &self.frame.sides[place];
        let mut found: BTreeMap<&str, (u64, u64, f64)> = BTreeMap::new();
        for shape in &side.collector.shapes.all {
            let faults = shape.latency[Layer::Fault as usize].count;
            let names: BTreeSet<&str> = shape
                .tokens
                .iter()
                .map(|token| side.names.base(NameId(token.name())))
                .collect();
            for name in names {
                found.entry(name).or_default().1 += faults;
            }
        }
        let functions = self.figures.functions().iter();
        for ((_, function), both) in functions {
            if let Some(met) = found.get_mut(function) {
                met.0 += rounded(both[place].calls.iter().sum());
                met.2 += both[place].corrected.iter().sum::<f64>();
            }
        }
        found
    }
}

/// Faults of a path, their whole time as traced and corrected.
type PathSums = (f64, f64, f64);

fn shares(of: &Pairs, time: &Pairs) -> Pairs {
    let share = |of: &Pair, time: &Pair| Pair {
        a: over(of.a, time.a),
        b: over(of.b, time.b),
    };
    Pairs {
        raw: share(&of.raw, &time.raw),
        corrected: share(&of.corrected, &time.corrected),
    }
}
