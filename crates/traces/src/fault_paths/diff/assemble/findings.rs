//! The differences in sentences: from a figure and its test to a finding.

use super::super::super::signature::Class;
use super::super::blocked::Blocked;
use super::super::figures::{About, At, bound};
use super::super::words;
use super::{Assembly, over, pairs};
use crate::fault_paths::figures::whole;
use pagewise_model::fault_diff::{Answer, Finding, Pair, Pairs, Question, Subject, Unit};
use pagewise_model::histogram::Histogram;
use pagewise_model::units::Estimate;
use std::collections::BTreeMap;

/// Standard errors beyond which the answer to a question looks different.
const SUSPICIOUS: f64 = 3.0;

impl Assembly<'_> {
    /// The differences: the answers to the questions, then their explanations.
    pub(in super::super) fn findings(&self) -> Vec<Finding> {
        let judged = self.figures.all().filter_map(|(at, about)| {
            let is_sure = self.test_at(at).is_some_and(|test| test.significant);
            let (finding, answer) = is_sure.then(|| self.judged(at, *about))??;
            (answer == Answer::Differs).then_some(finding)
        });
        let mut found: Vec<Finding> = judged.collect();
        keep_surest_slow(&mut found);
        found.sort_by(|x, y| place(x).cmp(&place(y)).then(by_weight(x, y)));
        found
    }

    /// The questions with their answers.
    pub(super) fn questions(&self) -> Vec<Question> {
        let question = |(finding, answer): (Finding, Answer)| Question {
            subject: finding.subject,
            class: finding.class,
            name: finding.name,
            unit: finding.unit,
            figures: finding.figures,
            change: finding.change,
            test: finding.test,
            answer,
        };
        self.asked().into_iter().map(question).collect()
    }

    /// The questions with such an answer.
    pub(super) fn answered(&self, is_chosen: impl Fn(Answer) -> bool) -> Vec<Finding> {
        let asked = self.asked().into_iter();
        let chosen = asked.filter(|(_, answer)| is_chosen(*answer));
        chosen.map(|(finding, _)| finding).collect()
    }

    fn asked(&self) -> Vec<(Finding, Answer)> {
        let asked = self.figures.questions();
        let mut all: Vec<(Finding, Answer)> = asked
            .filter_map(|(at, about)| self.judged(at, *about))
            .collect();
        all.sort_by_key(|(finding, _)| place(finding));
        all
    }

    /// Answers that differ by more than their own errors, but not significantly.
    pub(super) fn suspicions(&self) -> Vec<Finding> {
        let looks_different = |at: At| {
            let (change, error) = self.figures.difference(at);
            change.abs() > SUSPICIOUS * error && error > 0.0
        };
        let asked = self.figures.questions();
        let chosen = asked.filter_map(|(at, about)| {
            let (finding, answer) = self.judged(at, *about)?;
            let message = match answer {
                Answer::WithinCorrection => true,
                Answer::NotFound => looks_different(at) && self.matters(&finding),
                Answer::Differs | Answer::DiffersInPhases | Answer::Negligible => false,
            };
            message.then_some(finding)
        });
        let mut found: Vec<Finding> = chosen.collect();
        found.sort_by_key(place);
        found
    }

    /// A figure in words, and its answer.
    fn judged(&self, at: At, about: About<'_>) -> Option<(Finding, Answer)> {
        let mut finding = self.finding(at, about)?;
        let error = self.correction_error(&finding, about);
        if error.is_finite() {
            finding.change.low -= error;
            finding.change.high += error;
        }
        let within = finding.change.value.abs() <= error;
        let of_recordings = self.figures.p_of_recordings(&about);
        let in_phases = of_recordings.is_some_and(|p| p <= self.frame.level);
        let answer = match finding.test.significant {
            false if in_phases && !within && self.matters(&finding) => Answer::DiffersInPhases,
            false => Answer::NotFound,
            true if within => Answer::WithinCorrection,
            true if !self.matters(&finding) => Answer::Negligible,
            true => Answer::Differs,
        };
        finding.correction_exceeds_signal |= answer == Answer::WithinCorrection;
        finding.sentence = words::finding(&finding, &self.context(&finding, about, error));
        Some((finding, answer))
    }

    fn context(&self, finding: &Finding, about: About<'_>, error: f64) -> words::Context<'_> {
        words::Context {
            labels: [self.frame.inputs[0].label, self.frame.inputs[1].label],
            time: self.mean(finding.class, |_, row| (row.raw, row.corrected)),
            slow: match about {
                About::SlowCalls(class, function, _) => self.slow(class, function),
                _ => None,
            },
            error,
        }
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
            About::Rate => {
                finding.subject = Subject::Rate;
                finding.unit = Unit::PerSecond;
                let rates = per_second(corrected);
                finding.figures = Pairs {
                    raw: rates,
                    corrected: rates,
                };
                // Relates to the time between faults, by the slope of the rate over it.
                let error = change.high - change.value;
                let between = f64::midpoint(corrected.a, corrected.b).max(1.0);
                let error = error * 1e9 / between.powi(2);
                let value = rates.b - rates.a;
                finding.change = Estimate {
                    value,
                    low: value - error,
                    high: value + error,
                };
                finding.test.score = -finding.test.score;
            }
            About::SamePath => {
                finding.subject = Subject::SamePath;
                finding.unit = Unit::Ratio;
                finding.mean_ns = change.value * mean;
                let ratio = Pair {
                    a: 1.0,
                    b: change.value.exp(),
                };
                finding.figures = Pairs {
                    raw: ratio,
                    corrected: ratio,
                };
                finding.change = Estimate {
                    value: change.value.exp_m1(),
                    low: change.low.exp_m1(),
                    high: change.high.exp_m1(),
                };
            }
            About::SamePathTail => {
                finding.subject = Subject::SamePathTail;
                finding.unit = Unit::Share;
            }
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
                self.quantile(&mut finding, class, quantile);
            }
            About::Layer(layer, class) => {
                finding.subject = Subject::Layer;
                (finding.class, finding.layer) = (class, Some(layer));
                finding.figures = self.mean(class, |side, row| {
                    side.layer(row, layer).unwrap_or_default()
                });
                finding.mean_ns = change.value * share(class);
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
        if finding.unit == Unit::Ns {
            let Pairs { raw, corrected } = finding.figures;
            let taken = (raw.b - raw.a) - (corrected.b - corrected.a);
            finding.correction_exceeds_signal |= taken.abs() > finding.change.value.abs();
        }
        Some(finding)
    }

    /// Self time per fault as traced; over all kinds, as if both traces had the same mix of kinds.
    fn own_raw(&self, class: Option<Class>, function: &str) -> Pair {
        let functions = self.figures.functions().iter();
        let of =
            functions.filter(|((c, f), _)| class.is_none_or(|class| class == *c) && *f == function);
        let (mut deviation, mut faults, mut total) = ([0.0; 2], [0.0; 2], 0.0);
        for ((class, _), both) in of {
            let own = [0, 1].map(|place: usize| both[place].own);
            let of_kind = [0, 1].map(|place: usize| -> f64 {
                self.frame.sides[place].faults(Some(*class)).iter().sum()
            });
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
    pub(super) fn mean_share(&self, class: Option<Class>) -> f64 {
        let Some(class) = class else { return 1.0 };
        let of = |place: usize| {
            let side: &Blocked<'_> = &self.frame.sides[place];
            let faults: f64 = side.faults(Some(class)).iter().sum();
            over(faults, whole(side.collector.checks.faults))
        };
        f64::midpoint(of(0), of(1))
    }

    fn quantile(&self, finding: &mut Finding, class: Option<Class>, quantile: f64) {
        let each = [0, 1].map(|place: usize| {
            let (mut raw, mut corrected) = (Histogram::default(), Histogram::default());
            for row in self.frame.sides[place].rows(class) {
                raw.record(row.raw);
                corrected.record(row.corrected);
            }
            (
                whole(raw.quantile(quantile)),
                whole(corrected.quantile(quantile)),
            )
        });
        finding.figures = pairs(each[0], each[1]);
        // The interval is in the shifts; the test is about the share beyond the common quantile.
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
            let inside = [0, 1].map(|place: usize| self.frame.inputs[place].calibration.inside_ns);
            finding.correction_exceeds_signal = (inside[0] - inside[1]).abs() > more / 2.0;
        }
    }
}

/// The rank of a finding: the answers to the questions first, in their order.
fn place(finding: &Finding) -> usize {
    let of_all = finding.class.is_none();
    match finding.subject {
        Subject::Quantile if of_all && finding.name.as_deref() == Some("0.5") => 0,
        Subject::Mean if of_all => 1,
        Subject::Quantile if of_all => 2,
        Subject::SamePath => 3,
        Subject::SamePathTail => 4,
        Subject::ClassShare => 5,
        Subject::Rate => 6,
        _ => 7,
    }
}

/// Faults per second, from nanoseconds between them.
fn per_second(between: Pair) -> Pair {
    Pair {
        a: over(1e9, between.a),
        b: over(1e9, between.b),
    }
}

/// Weighting kinds equally gives slightly negative times if a trace lacks the function.
pub(super) fn at_least_nothing(own: Pair) -> Pair {
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

/// Median of all self times and mean of those from an interval on, ns.
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

/// Several bounds of one function give the same finding: the most significant is kept.
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
