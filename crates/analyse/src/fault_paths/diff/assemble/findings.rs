//! What differs, in sentences: from a figure and its test to a finding.

use super::super::super::layer::Layer;
use super::super::super::signature::Class;
use super::super::figures::{About, At, bound};
use super::super::side::{Side, whole};
use super::super::words;
use super::{Assembly, over, pairs};
use pagewise_model::fault_diff::{Finding, Pair, Pairs, Subject, Unit};
use pagewise_model::histogram::Histogram;
use pagewise_model::units::Estimate;
use std::collections::BTreeMap;

/// Changes below this part of the mean fault are no finding, however sure.
const NEGLIGIBLE: f64 = 0.0005;

/// Standard errors beyond which a figure of the whole looks different.
const SUSPICIOUS: f64 = 3.0;

impl Assembly<'_> {
    pub(super) fn findings(&self) -> Vec<Finding> {
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
    pub(super) fn suspicions(&self) -> Vec<Finding> {
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
                    finding.figures = Pairs {
                        raw: at_least_nothing(self.own_raw(class, function)),
                        corrected: at_least_nothing(corrected),
                    };
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

/// Weighing kinds alike leaves a little less than no time where a trace lacks the function.
fn at_least_nothing(own: Pair) -> Pair {
    Pair {
        a: own.a.max(0.0),
        b: own.b.max(0.0),
    }
}

fn by_weight(x: &Finding, y: &Finding) -> std::cmp::Ordering {
    let weight = |finding: &Finding| (finding.mean_ns.abs(), finding.test.score.abs());
    let ((mean_x, score_x), (mean_y, score_y)) = (weight(x), weight(y));
    mean_y.total_cmp(&mean_x).then(score_y.total_cmp(&score_x))
}

/// Median of all own times and mean of those from an interval on, ns.
pub(super) fn own_times(bins: &BTreeMap<u32, f64>, from: u32) -> (f64, f64) {
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
