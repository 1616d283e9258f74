//! Builds findings from tested figures.

mod findings;
mod judging;
mod tables;

use super::super::analyse::losses;
use super::super::figures::whole;
use super::super::probe::Source;
use super::super::ranked::{Chosen, Functions, Ranked};
use super::super::signature::Class;
use super::Input;
use super::blocked::Blocked;
use super::explain::explain;
use super::figures::{About, At, Figures, TESTED, thousandths};
use super::headline::headline;
use super::shifts::{Draws, Value, shift};
use super::words;
use pagewise_model::answer::{Document, Subject as Observed};
use pagewise_model::fault_diff::{
    self as model, Answer, Explanation, FaultDiff, Method, Pair, Pairs, Shift, Test,
};
use pagewise_model::side::Side;
use pagewise_model::units::Estimate;

/// Half the width of a 95 % interval in standard errors.
const Z95: f64 = 1.96;

/// What findings are based on, apart from the figures.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub inputs: [Input<'a>; 2],
    pub sides: &'a [Blocked<'a>; 2],
    pub draws: &'a Draws,
    /// The chance of any finding in equal traces.
    pub level: f64,
    /// If one tracer cost is used for both: the difference of their own costs, as a part of its
    /// error.
    pub costs_apart: Option<f64>,
}

impl<'a> Frame<'a> {
    pub(super) fn with(self, figures: &'a Figures<'a>) -> Assembly<'a> {
        Assembly {
            frame: self,
            figures,
        }
    }
}

pub(super) struct Assembly<'a> {
    frame: Frame<'a>,
    figures: &'a Figures<'a>,
}

impl Assembly<'_> {
    pub(super) fn diff(&self, method: Method) -> Document<FaultDiff> {
        let mut mean = self.explanation(Chosen::All);
        let fewest = self
            .frame
            .sides
            .iter()
            .map(|side| side.collector.checks.faults)
            .min();
        let mut tail = match fewest {
            Some(100..) => self.explanation(Chosen::Slowest(0.01)),
            _ => Explanation::default(),
        };
        let labels = [self.frame.inputs[0].label, self.frame.inputs[1].label];
        mean.sentences = words::explanation(&mean, "mean", labels);
        tail.sentences = words::explanation(&tail, "mean of the slowest hundredth", labels);
        let [a, b] = [0, 1].map(|place| self.side(place));
        let diff = FaultDiff {
            a,
            b,
            method,
            questions: self.questions(),
            findings: self.findings(),
            phases: self.answered(|answer| answer == Answer::DiffersInPhases),
            suspicions: self.suspicions(),
            whole: self.whole(None),
            classes: self.classes(),
            layers: self.layers(),
            paths: self.paths(),
            functions: self.functions(),
            extra: self.extra(),
            mean,
            tail,
        };
        let verdict = headline(&diff);
        Document::new(diff).with_verdict(verdict)
    }

    fn side(&self, place: usize) -> Side<model::Traced> {
        let (input, side) = (&self.frame.inputs[place], &self.frame.sides[place]);
        let raw: f64 = side.rows.iter().map(|row| whole(row.raw)).sum();
        let corrected: f64 = side.rows.iter().map(|row| whole(row.corrected)).sum();
        let collector = input.collector;
        let sums = model::Traced {
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
            losses: losses(input.summary),
        };
        Side {
            name: input.name.to_owned(),
            subject: Observed::default(),
            host: String::new(),
            sums,
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
            significant: outcome.p_adjusted <= self.frame.level,
        })
    }

    /// B minus A of a figure with its 95 % interval.
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

    /// Mean, over the logged faults of a class, of a function of a fault.
    fn mean(
        &self,
        class: Option<Class>,
        of: impl Fn(&Blocked<'_>, &super::blocked::Row) -> (u64, u64),
    ) -> Pairs {
        let each = [0, 1].map(|place: usize| {
            let side = &self.frame.sides[place];
            let (mut count, mut raw, mut corrected) = (0.0, 0.0, 0.0);
            for row in side.rows(class) {
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
            let rows = self.frame.sides[place].rows(class);
            rows.map(|row| (row.block, row.raw, row.corrected))
                .collect()
        });
        let mut found = shift(
            &values[0],
            &values[1],
            self.frame.draws,
            self.change(&About::Mean(class)),
        );
        found.mean_test = self.test(&About::Mean(class));
        for quantile in &mut found.quantiles {
            if TESTED.contains(&quantile.quantile) {
                let about = About::Quantile(class, thousandths(quantile.quantile));
                quantile.test = self.test(&about);
            }
        }
        if found.mean_test.is_none() {
            found.mean = Estimate::exact(found.b.mean_ns - found.a.mean_ns);
        }
        found
    }

    fn explanation(&self, part: Chosen) -> Explanation {
        let sums = [0, 1].map(|place: usize| {
            let side = &self.frame.sides[place];
            let ranked = Ranked::new(side.collector, side.calibration, None);
            ranked.sums(&Functions::new(side.names), part)
        });
        explain(&sums[0], &sums[1])
    }
}

fn pairs(a: (f64, f64), b: (f64, f64)) -> Pairs {
    Pairs {
        raw: Pair { a: a.0, b: b.0 },
        corrected: Pair { a: a.1, b: b.1 },
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
