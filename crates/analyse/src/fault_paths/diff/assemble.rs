//! From tested figures to findings.

use super::super::analyse::missing;
use super::super::layer::Layer;
use super::super::probe::Source;
use super::super::signature::Class;
use super::Input;
use super::explain::{Chosen, explain, sums};
use super::figures::{About, At, Figures, TESTED, bound, thousandths};
use super::shifts::{Draws, Value, shift};
use super::side::{Side, whole};
use super::words;
use pagewise_model::fault_diff::{
    self as model, ClassChange, Explanation, ExtraFunction, FaultDiff, Finding, FunctionChange,
    LayerChange, Method, Pair, Pairs, PathChange, SCHEMA_VERSION, Shift, SlowCalls, Subject, Test,
    Unit,
};
use pagewise_model::formats::function_graph::NameId;
use pagewise_model::histogram::Histogram;
use pagewise_model::units::Estimate;
use std::collections::{BTreeMap, BTreeSet};

/// Half the width of a 95 % interval in standard errors.
const Z95: f64 = 1.96;
/// Standard errors beyond which a figure of the whole looks different.
const SUSPICIOUS: f64 = 3.0;
/// Functions and paths that a report holds; all significant ones are findings besides.
const MOST_FUNCTIONS: usize = 200;
const MOST_PATHS: usize = 60;
const MOST_EXTRA: usize = 100;
/// Changes below this part of the mean fault are no finding, however sure.
const NEGLIGIBLE: f64 = 0.0005;

pub(super) struct Assembly<'a> {
    inputs: [Input<'a>; 2],
    sides: &'a [Side<'a>; 2],
    figures: &'a Figures<'a>,
    draws: &'a Draws,
    method: Method,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(
        inputs: [Input<'a>; 2],
        sides: &'a [Side<'a>; 2],
        figures: &'a Figures<'a>,
        draws: &'a Draws,
        method: Method,
    ) -> Self {
        Self {
            inputs,
            sides,
            figures,
            draws,
            method,
        }
    }

    pub(super) fn diff(&self) -> FaultDiff {
        let mut mean = self.explanation(Chosen::All);
        let fewest = self
            .sides
            .iter()
            .map(|side| side.collector.checks.faults)
            .min();
        let mut tail = match fewest {
            Some(100..) => self.explanation(Chosen::Slowest(0.01)),
            _ => Explanation::default(),
        };
        let labels = [self.inputs[0].label, self.inputs[1].label];
        mean.sentences = words::explanation(&mean, "mean", labels);
        tail.sentences = words::explanation(&tail, "mean of the slowest hundredth", labels);
        let [a, b] = [0, 1].map(|place| self.side(place));
        FaultDiff {
            schema_version: SCHEMA_VERSION,
            kind: "fault_diff".to_owned(),
            a,
            b,
            method: self.method.clone(),
            findings: self.findings(),
            suspicions: self.suspicions(),
            whole: self.whole(None),
            classes: self.classes(),
            layers: self.layers(),
            paths: self.paths(),
            functions: self.functions(),
            extra: self.extra(),
            mean,
            tail,
        }
    }

    fn side(&self, place: usize) -> model::Side {
        let (input, side) = (&self.inputs[place], &self.sides[place]);
        let raw: f64 = side.rows.iter().map(|row| whole(row.raw)).sum();
        let corrected: f64 = side.rows.iter().map(|row| whole(row.corrected)).sum();
        let collector = input.collector;
        model::Side {
            name: input.name.to_owned(),
            label: input.label.to_owned(),
            faults: collector.checks.faults,
            duration_ns: collector
                .last_time
                .zip(collector.first_time)
                .map(|(last, first)| last.saturating_sub(first)),
            calibration: input.calibration,
            correction_exceeds_signal: input.calibration.source != Source::Nothing
                && corrected < raw / 2.0,
            distinct_paths: collector.shapes.all.len() as u64,
            blocks: u32::try_from(side.blocks.len()).unwrap_or(u32::MAX),
            block_correlation: side.correlation,
            missing: missing(input.summary),
        }
    }

    fn test(&self, about: &About<'_>) -> Option<Test> {
        self.test_at(self.figures.find(about)?)
    }

    fn test_at(&self, at: At) -> Option<Test> {
        let outcome = self.figures.outcome(at)?;
        Some(Test {
            score: outcome.score,
            p_adjusted: outcome.p_adjusted,
            significant: outcome.p_adjusted <= self.method.level,
        })
    }

    /// B less A of a figure with its 95 % interval.
    fn change(&self, about: &About<'_>) -> Estimate {
        let Some(at) = self.figures.find(about) else {
            return Estimate::default();
        };
        self.change_of(at)
    }

    fn change_of(&self, at: At) -> Estimate {
        let (value, error) = self.figures.difference(at);
        Estimate {
            value,
            low: value - Z95 * error,
            high: value + Z95 * error,
        }
    }

    /// Mean over the logged faults of a class that a function of a fault is known of.
    fn mean(
        &self,
        class: Option<Class>,
        of: impl Fn(&Side<'_>, &super::side::Row) -> (u64, u64),
    ) -> Pairs {
        let each = [0, 1].map(|place: usize| {
            let side = &self.sides[place];
            let (mut count, mut raw, mut corrected) = (0.0, 0.0, 0.0);
            for row in side.of(class) {
                let (r, c) = of(side, row);
                count += 1.0;
                raw += whole(r);
                corrected += whole(c);
            }
            let over = |sum: f64| if count > 0.0 { sum / count } else { 0.0 };
            (over(raw), over(corrected))
        });
        pairs(each[0], each[1])
    }

    fn whole(&self, class: Option<Class>) -> Shift {
        let values = [0, 1].map(|place: usize| -> Vec<Value> {
            let rows = self.sides[place].of(class);
            rows.map(|row| (row.block, row.raw, row.corrected))
                .collect()
        });
        let mut found = shift(
            &values[0],
            &values[1],
            self.draws,
            self.change(&About::Mean(class)),
        );
        found.mean_test = self.test(&About::Mean(class));
        self.test_quantiles(&mut found, |q| About::Quantile(class, thousandths(q)));
        if found.mean_test.is_none() {
            found.mean = Estimate::exact(found.b.mean_ns - found.a.mean_ns);
        }
        found
    }

    fn test_quantiles<'b>(&self, shift: &mut Shift, about: impl Fn(f64) -> About<'b>) {
        for quantile in &mut shift.quantiles {
            if TESTED.contains(&quantile.quantile) {
                quantile.test = self.test(&about(quantile.quantile));
            }
        }
    }

    fn all_classes(&self) -> Vec<Class> {
        let mut faults: BTreeMap<Class, f64> = BTreeMap::new();
        for side in self.sides {
            let all = side.rows.len().max(1) as f64;
            for row in &side.rows {
                *faults.entry(row.class).or_default() += 1.0 / all;
            }
        }
        let mut order: Vec<Class> = faults.keys().copied().collect();
        order.sort_by(|x, y| faults[y].total_cmp(&faults[x]));
        order
    }

    fn classes(&self) -> Vec<ClassChange> {
        let classes = self.all_classes().into_iter();
        classes.map(|class| self.class(class)).collect()
    }

    fn class(&self, class: Class) -> ClassChange {
        let faults = [0, 1]
            .map(|place: usize| -> f64 { self.sides[place].faults(Some(class)).iter().sum() });
        let all = [0, 1].map(|place: usize| whole(self.sides[place].collector.checks.faults));
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

    fn layers(&self) -> Vec<LayerChange> {
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
                    let side = &self.sides[place];
                    let rows = side.of(class);
                    rows.filter_map(|row| {
                        side.layer(row, layer).map(|(raw, ns)| (row.block, raw, ns))
                    })
                    .collect()
                });
                if values.iter().all(Vec::is_empty) {
                    continue;
                }
                let about = About::Layer(layer, class);
                let mut shift = shift(&values[0], &values[1], self.draws, self.change(&about));
                shift.mean_test = self.test(&about);
                self.test_quantiles(&mut shift, |q| {
                    About::LayerQuantile(layer, class, thousandths(q))
                });
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

    fn paths(&self) -> Vec<PathChange> {
        let mut sums: BTreeMap<(Class, &str), [PathSums; 2]> = BTreeMap::new();
        let mut of_class: BTreeMap<Class, [f64; 2]> = BTreeMap::new();
        for (place, side) in self.sides.iter().enumerate() {
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
                let every = [0, 1].map(|place: usize| self.sides[place].collector.log.every);
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

    fn functions(&self) -> Vec<FunctionChange> {
        let mut found: Vec<(f64, FunctionChange)> = Vec::new();
        for (&(class, function), both) in self.figures.functions() {
            let faults = [0, 1]
                .map(|place: usize| -> f64 { self.sides[place].faults(Some(class)).iter().sum() });
            let all = [0, 1].map(|place: usize| whole(self.sides[place].collector.checks.faults));
            if faults.contains(&0.0) {
                continue;
            }
            let per_fault = |of: fn(&super::side::FunctionSums) -> &Vec<f64>| Pair {
                a: over(of(&both[0]).iter().sum(), faults[0]),
                b: over(of(&both[1]).iter().sum(), faults[1]),
            };
            let (calls, raw, corrected) = (
                per_fault(|sums| &sums.calls),
                per_fault(|sums| &sums.own),
                per_fault(|sums| &sums.corrected),
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

    /// The bound beyond which a function's calls differ most surely.
    fn slow(&self, class: Option<Class>, function: &str) -> Option<SlowCalls> {
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
            per_fault: self.figures.pair(at),
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

    fn extra(&self) -> Vec<ExtraFunction> {
        let sets = [0, 1].map(|place: usize| self.met(place));
        let mut found = Vec::new();
        for (place, in_b) in [(0, false), (1, true)] {
            let all = whole(self.sides[place].collector.checks.faults);
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

    /// Functions with their calls, the faults that call them, and their own time, corrected.
    fn met(&self, place: usize) -> BTreeMap<&str, (u64, u64, f64)> {
        let side = &self.sides[place];
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

    fn explanation(&self, part: Chosen) -> Explanation {
        let sums = [0, 1].map(|place: usize| {
            let side = &self.sides[place];
            sums(side.collector, side.names, side.calibration, None, part).0
        });
        explain(&sums[0], &sums[1])
    }

    fn findings(&self) -> Vec<Finding> {
        let is_sure = |at: At| self.test_at(at).is_some_and(|test| test.significant);
        let sure = self.figures.all().filter(|(at, _)| is_sure(*at));
        let mut found: Vec<Finding> = sure
            .filter_map(|(at, about)| self.finding(at, *about))
            .collect();
        keep_surest_slow(&mut found);
        found.sort_by(by_weight);
        found
    }

    /// Figures of the whole that differ by more than their own errors, but not surely.
    fn suspicions(&self) -> Vec<Finding> {
        let looks_different = |at: At| {
            let (change, error) = self.figures.difference(at);
            change.abs() > SUSPICIOUS * error && error > 0.0
        };
        let is_sure = |at: At| self.test_at(at).is_some_and(|test| test.significant);
        let of_all = self.figures.all().filter(|(_, about)| about.is_whole());
        let chosen = of_all.filter(|(at, _)| !is_sure(*at) && looks_different(*at));
        let mut found: Vec<Finding> = chosen
            .filter_map(|(at, about)| self.finding(at, *about))
            .collect();
        found.sort_by(by_weight);
        found
    }

    fn finding(&self, at: At, about: About<'_>) -> Option<Finding> {
        let time = self.mean(None, |_, row| (row.raw, row.corrected));
        let mean = f64::midpoint(time.corrected.a, time.corrected.b);
        let change = self.change_of(at);
        let corrected = self.figures.pair(at);
        let same = Pairs {
            raw: corrected,
            corrected,
        };
        let share = |class: Option<Class>| self.mean_share(class);
        let mut finding = Finding {
            subject: Subject::Mean,
            class: None,
            layer: None,
            name: None,
            sentence: String::new(),
            unit: Unit::Ns,
            figures: same,
            change,
            mean_ns: 0.0,
            test: self.test_at(at)?,
            correction_exceeds_signal: false,
        };
        match about {
            About::ClassShare(class) => {
                let of = self.mean(Some(class), |_, row| (row.raw, row.corrected));
                let takes = match (of.corrected.a, of.corrected.b) {
                    (0.0, b) => b,
                    (a, 0.0) => a,
                    (a, b) => f64::midpoint(a, b),
                };
                finding.subject = Subject::ClassShare;
                finding.unit = Unit::Share;
                finding.class = Some(class);
                finding.mean_ns = change.value * (takes - mean);
            }
            About::Mean(class) => {
                finding.class = class;
                finding.figures = self.mean(class, |_, row| (row.raw, row.corrected));
                finding.mean_ns = change.value * share(class);
            }
            About::Quantile(class, quantile) => {
                finding.subject = Subject::Quantile;
                finding.class = class;
                let quantile = f64::from(quantile) / 1000.0;
                finding.name = Some(quantile.to_string());
                self.quantile(&mut finding, class, None, quantile);
            }
            About::Layer(layer, class) => {
                finding.subject = Subject::Layer;
                (finding.class, finding.layer) = (class, Some(layer));
                finding.figures = self.mean(class, |side, row| {
                    side.layer(row, layer).unwrap_or_default()
                });
                finding.mean_ns = change.value * share(class);
            }
            About::LayerQuantile(layer, class, quantile) => {
                finding.subject = Subject::LayerQuantile;
                (finding.class, finding.layer) = (class, Some(layer));
                let quantile = f64::from(quantile) / 1000.0;
                finding.name = Some(quantile.to_string());
                self.quantile(&mut finding, class, Some(layer), quantile);
            }
            About::Wait(wait, class) => {
                finding.subject = Subject::Wait;
                finding.class = class;
                finding.name = Some(words::wait(wait).to_owned());
                finding.mean_ns = change.value * share(class);
            }
            About::Path(class, path) => {
                finding.subject = Subject::PathShare;
                finding.unit = Unit::Share;
                (finding.class, finding.name) = (Some(class), Some(path.to_owned()));
            }
            About::FunctionTime(class, function) | About::FunctionCalls(class, function) => {
                (finding.class, finding.name) = (class, Some(function.to_owned()));
                if matches!(about, About::FunctionCalls(..)) {
                    finding.subject = Subject::FunctionCalls;
                    finding.unit = Unit::PerFault;
                } else {
                    finding.subject = Subject::FunctionTime;
                    finding.figures.raw = self.own_raw(class, function);
                    finding.mean_ns = change.value * share(class);
                }
            }
            About::SlowCalls(class, function, _) => {
                finding.subject = Subject::FunctionSlowCalls;
                finding.unit = Unit::PerFault;
                (finding.class, finding.name) = (class, Some(function.to_owned()));
                self.slow_finding(&mut finding, class, function);
            }
        }
        self.judge_correction(&mut finding);
        let context = words::Context {
            labels: [self.inputs[0].label, self.inputs[1].label],
            time: match finding.class {
                Some(_) => self.mean(finding.class, |_, row| (row.raw, row.corrected)),
                None => time,
            },
            slow: match about {
                About::SlowCalls(class, function, _) => self.slow(class, function),
                _ => None,
            },
        };
        finding.sentence = words::finding(&finding, &context);
        let worth_saying = match finding.unit {
            Unit::Ns => finding.change.value.abs() >= NEGLIGIBLE * mean || finding.mean_ns == 0.0,
            Unit::Share | Unit::PerFault => true,
        };
        worth_saying.then_some(finding)
    }

    /// Own time a fault as traced; over all kinds, as if both had the same kinds.
    fn own_raw(&self, class: Option<Class>, function: &str) -> Pair {
        let functions = self.figures.functions().iter();
        let of =
            functions.filter(|((c, f), _)| class.is_none_or(|class| class == *c) && *f == function);
        let (mut deviation, mut faults, mut total) = ([0.0; 2], [0.0; 2], 0.0);
        for ((class, _), both) in of {
            let own = [0, 1].map(|place: usize| both[place].own.iter().sum::<f64>());
            let of_kind = [0, 1]
                .map(|place: usize| -> f64 { self.sides[place].faults(Some(*class)).iter().sum() });
            if of_kind.contains(&0.0) {
                continue;
            }
            let usual = (own[0] + own[1]) / (of_kind[0] + of_kind[1]);
            for place in [0, 1] {
                deviation[place] += own[place] - usual * of_kind[place];
                faults[place] += of_kind[place];
            }
            total += own[0] + own[1];
        }
        let base = over(total, faults[0] + faults[1]);
        Pair {
            a: base + over(deviation[0], faults[0]),
            b: base + over(deviation[1], faults[1]),
        }
    }

    /// The mean share of a kind among the faults of both.
    fn mean_share(&self, class: Option<Class>) -> f64 {
        let Some(class) = class else { return 1.0 };
        let of = |place: usize| {
            let side: &Side<'_> = &self.sides[place];
            let faults: f64 = side.faults(Some(class)).iter().sum();
            over(faults, whole(side.collector.checks.faults))
        };
        f64::midpoint(of(0), of(1))
    }

    fn quantile(
        &self,
        finding: &mut Finding,
        class: Option<Class>,
        layer: Option<Layer>,
        quantile: f64,
    ) {
        let each = [0, 1].map(|place: usize| {
            let side = &self.sides[place];
            let (mut raw, mut corrected) = (Histogram::default(), Histogram::default());
            for row in side.of(class) {
                let value = match layer {
                    None => Some((row.raw, row.corrected)),
                    Some(layer) => side.layer(row, layer),
                };
                if let Some((r, c)) = value {
                    raw.record(r);
                    corrected.record(c);
                }
            }
            (
                whole(raw.quantile(quantile)),
                whole(corrected.quantile(quantile)),
            )
        });
        finding.figures = pairs(each[0], each[1]);
        // The interval is in the shifts; what was tested is the share beyond both's quantile.
        finding.change = Estimate::exact(finding.figures.corrected.b - finding.figures.corrected.a);
    }

    fn slow_finding(&self, finding: &mut Finding, class: Option<Class>, function: &str) {
        if let Some(slow) = self.slow(class, function) {
            let longer = |slow: f64, usual: f64| (slow - usual).max(0.0);
            let more = match slow.per_fault.b >= slow.per_fault.a {
                true => longer(slow.slow_ns.b, slow.usual_ns.b),
                false => longer(slow.slow_ns.a, slow.usual_ns.a),
            };
            finding.mean_ns = finding.change.value * more * self.mean_share(class);
            let inside = [0, 1].map(|place: usize| self.inputs[place].calibration.inside_ns);
            finding.correction_exceeds_signal = (inside[0] - inside[1]).abs() > more / 2.0;
        }
    }

    /// Whether the correction changes more than what is left, and how far its error widens the
    /// interval.
    fn judge_correction(&self, finding: &mut Finding) {
        if finding.unit != Unit::Ns {
            return;
        }
        let Pairs { raw, corrected } = finding.figures;
        let taken = (raw.b - raw.a) - (corrected.b - corrected.a);
        finding.correction_exceeds_signal |= taken.abs() > finding.change.value.abs();
        let doubts = self
            .inputs
            .iter()
            .map(|input| over(input.calibration.error_ns, input.calibration.per_call_ns));
        let doubt = doubts.fold(0.0, f64::max) * taken.abs();
        finding.change.low -= doubt;
        finding.change.high += doubt;
    }
}

/// Faults of a path, their whole time as traced and corrected.
type PathSums = (f64, f64, f64);

fn by_weight(x: &Finding, y: &Finding) -> std::cmp::Ordering {
    let weight = |finding: &Finding| (finding.mean_ns.abs(), finding.test.score.abs());
    let ((mean_x, score_x), (mean_y, score_y)) = (weight(x), weight(y));
    mean_y.total_cmp(&mean_x).then(score_y.total_cmp(&score_x))
}

/// Median of all own times and mean of those from an interval on, ns.
fn own_times(bins: &BTreeMap<u32, f64>, from: u32) -> (f64, f64) {
    let middle = |bin: u32| f64::midpoint(whole(bound(bin)), whole(bound(bin + 1)));
    let all: f64 = bins.values().sum();
    let (mut seen, mut usual) = (0.0, None);
    let (mut slow, mut count) = (0.0, 0.0);
    for (&bin, &calls) in bins {
        seen += calls;
        if seen * 2.0 >= all {
            usual.get_or_insert(middle(bin));
        }
        if bin >= from {
            slow += calls * middle(bin);
            count += calls;
        }
    }
    (usual.unwrap_or(0.0), over(slow, count))
}

/// Several bounds of one function tell the same: the surest is kept.
fn keep_surest_slow(findings: &mut Vec<Finding>) {
    let mut best: BTreeMap<(Option<Class>, Option<String>), f64> = BTreeMap::new();
    let is_slow = |finding: &Finding| finding.subject == Subject::FunctionSlowCalls;
    let key = |finding: &Finding| (finding.class, finding.name.clone());
    for finding in findings.iter().filter(|finding| is_slow(finding)) {
        let score = best.entry(key(finding)).or_default();
        *score = score.max(finding.test.score.abs());
    }
    findings.retain(|finding| {
        !is_slow(finding) || best.get(&key(finding)) == Some(&finding.test.score.abs())
    });
}

fn pairs(a: (f64, f64), b: (f64, f64)) -> Pairs {
    Pairs {
        raw: Pair { a: a.0, b: b.0 },
        corrected: Pair { a: a.1, b: b.1 },
    }
}

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

fn over(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sums of counts, not negative"
)]
fn rounded(count: f64) -> u64 {
    count.round() as u64
}
