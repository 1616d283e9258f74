//! What is worth reporting: changes that matter, and that the correction for the tracer's cost
//! cannot have caused.

use super::super::super::signature::Class;
use super::super::blocked::{Blocked, Row};
use super::super::figures::About;
use super::super::least::{
    CALLS, LEAST_NS, NEARLY_ALL, OF_CALLS, OF_FAULTS, OF_FUNCTION, OF_MEAN, OF_RATE, OF_SLOW,
    OF_TAIL, OF_TIME, SLOW_BY,
};
use super::{Assembly, over, rounded};
use crate::fault_paths::figures::whole;
use pagewise_model::fault_diff::{Finding, Pair, Pairs, Subject};

impl Assembly<'_> {
    /// Whether a change is large enough to be reported.
    pub(super) fn matters(&self, finding: &Finding) -> bool {
        let time = self.mean(None, |_, row| (row.raw, row.corrected)).corrected;
        let mean = f64::midpoint(time.a, time.b);
        let change = finding.change.value.abs();
        let Pair { a, b } = finding.figures.corrected;
        let relative = over(change, a.min(b).max(f64::MIN_POSITIVE));
        let among_all = change * self.mean_share(finding.class);
        let of_mean = finding.mean_ns.abs() >= OF_MEAN * mean;
        let is_median = finding.name.as_deref() == Some("0.5");
        match finding.subject {
            Subject::Rate => relative >= OF_RATE,
            Subject::ClassShare => change >= OF_FAULTS || finding.mean_ns.abs() >= OF_TIME * mean,
            Subject::Quantile if !is_median => relative >= OF_TAIL && change >= LEAST_NS,
            Subject::Mean | Subject::Quantile if finding.class.is_none() => {
                relative >= OF_TIME && change >= LEAST_NS
            }
            Subject::SamePath => change >= OF_TIME && change * mean >= LEAST_NS,
            Subject::SamePathTail => change >= OF_SLOW,
            Subject::PathShare => among_all >= OF_FAULTS,
            Subject::FunctionCalls => relative >= OF_CALLS && among_all >= CALLS,
            Subject::FunctionSlowCalls => {
                let each = over(finding.mean_ns.abs(), among_all);
                of_mean || (among_all >= OF_SLOW && each >= SLOW_BY * mean)
            }
            Subject::Quantile => relative >= OF_TIME && among_all >= OF_MEAN * mean,
            Subject::Layer => of_mean && !self.is_nearly_all(finding),
            Subject::FunctionTime => {
                of_mean || (relative >= OF_FUNCTION && finding.mean_ns.abs() >= LEAST_NS)
            }
            Subject::Mean | Subject::Wait => of_mean,
        }
    }

    /// Whether a layer makes up nearly all of the fault in both, and so explains nothing.
    fn is_nearly_all(&self, finding: &Finding) -> bool {
        let time = self.mean(finding.class, |_, row| (row.raw, row.corrected));
        let (of, all) = (finding.figures.corrected, time.corrected);
        over(of.a, all.a).min(over(of.b, all.b)) >= NEARLY_ALL
    }

    /// How much of a change could be the error of the correction for the tracer's cost, in the
    /// change's unit.
    pub(super) fn correction_error(&self, finding: &Finding, about: About<'_>) -> f64 {
        match about {
            About::Mean(class) => self.of_both(self.doubt(class, |_, row| row.doubt)),
            About::Quantile(class, rank) => self.of_both(self.doubt_at(class, rank)),
            About::Layer(layer, class) => {
                self.of_both(self.doubt(class, |side, row| side.layer_doubt(row, layer)))
            }
            About::FunctionTime(class, function) => {
                self.of_both(self.function_doubt(class, function))
            }
            About::SamePath => self.within_a_path(),
            // Times this close to the bound are not reliably slow.
            About::SamePathTail if self.within_a_path() > OF_TIME => f64::INFINITY,
            About::SlowCalls(..) if finding.correction_exceeds_signal => f64::INFINITY,
            About::Rate => self.of_rate(finding.figures.corrected),
            _ => 0.0,
        }
    }

    /// The error of a difference of corrected times with these errors. Errors of a common cost
    /// cancel; the difference between its two estimates does not.
    fn of_both(&self, [a, b]: [f64; 2]) -> f64 {
        match self.frame.costs_apart {
            Some(apart) => (b - a).abs() + apart * a.max(b),
            None => a.hypot(b),
        }
    }

    /// The same as a fraction of the mean fault, for faults of the same path: both traces have the
    /// same calls.
    fn within_a_path(&self) -> f64 {
        let [a, b] = self.doubt(None, |_, row| row.doubt);
        let error = match self.frame.costs_apart {
            Some(apart) => apart * a.max(b),
            None => a.hypot(b),
        };
        let time = self.mean(None, |_, row| (row.raw, row.corrected)).corrected;
        over(error, f64::midpoint(time.a, time.b))
    }

    /// For faults per second: tracing lengthens the time between faults, at most by its whole cost.
    fn of_rate(&self, rates: Pair) -> f64 {
        let Pairs { raw, corrected } = self.mean(None, |_, row| (row.raw, row.corrected));
        let (taken_a, taken_b) = (raw.a - corrected.a, raw.b - corrected.b);
        let error = self.of_both(self.doubt(None, |_, row| row.doubt));
        ((taken_b - taken_a).abs() + error) * rates.a * rates.b / 1e9
    }

    fn doubt(&self, class: Option<Class>, of: impl Fn(&Blocked<'_>, &Row) -> f64) -> [f64; 2] {
        [0, 1].map(|place: usize| {
            let side = &self.frame.sides[place];
            let doubts = side.rows(class).map(|row| of(side, row));
            over(doubts.sum(), whole(side.rows(class).count() as u64))
        })
    }

    /// The same for the faults around a quantile, in thousandths: half as many on either side as
    /// are beyond it.
    fn doubt_at(&self, class: Option<Class>, rank: u16) -> [f64; 2] {
        let quantile = f64::from(rank) / 1000.0;
        let beyond = quantile.min(1.0 - quantile) / 2.0;
        [0, 1].map(|place: usize| {
            let side = &self.frame.sides[place];
            let mut rows: Vec<&Row> = side.rows(class).collect();
            rows.sort_by_key(|row| row.corrected);
            let at = |share: f64| {
                usize::try_from(rounded(share * whole(rows.len() as u64))).unwrap_or(rows.len())
            };
            let about = &rows[at(quantile - beyond)..at(quantile + beyond).min(rows.len())];
            over(
                about.iter().map(|row| row.doubt).sum(),
                whole(about.len() as u64),
            )
        })
    }

    fn function_doubt(&self, class: Option<Class>, function: &str) -> [f64; 2] {
        let functions = self.figures.functions().iter();
        let of = functions.filter(|((c, f), _)| class.is_none_or(|k| k == *c) && *f == function);
        let (mut doubts, mut faults) = ([0.0; 2], [0.0; 2]);
        for ((class, _), both) in of {
            for place in [0, 1] {
                doubts[place] += both[place].doubt;
                faults[place] += self.frame.sides[place]
                    .faults(Some(*class))
                    .iter()
                    .sum::<f64>();
            }
        }
        [0, 1].map(|place| over(doubts[place], faults[place]))
    }
}
