//! What is worth telling: changes that matter, and that the correction for the tracer's cost could
//! not have made.

use super::super::super::probe::Calibration;
use super::{Assembly, over};
use pagewise_model::fault_diff::{Finding, Pair, Pairs, Subject, Unit};

/// Least changes of answers, as parts of the figure: of the median and the mean, and of time within
/// a path; of quantiles above the median, which vary more from run to run; of the rate.
const OF_TIME: f64 = 0.02;
const OF_TAIL: f64 = 0.05;
const OF_RATE: f64 = 0.1;
/// Of time, besides, ns: less is within a few cycles of how calls are timed.
const LEAST_NS: f64 = 20.0;
/// Least change of the share of a kind or path among all faults. One that takes [`OF_TIME`] of the
/// mean fault matters even if it is rarer.
const OF_FAULTS: f64 = 0.01;
/// Least change of the share of faults that are slow.
const OF_SLOW: f64 = 0.005;
/// What explains a difference makes up at least this part of the mean fault.
const OF_MEAN: f64 = 0.005;
/// A function that takes so much longer, by more than [`LEAST_NS`] a fault, matters all the same.
const OF_FUNCTION: f64 = 0.5;
/// Slow calls that are no such part of the mean take, each, this part of it longer.
const SLOW_BY: f64 = 0.1;
/// Least change of calls a fault: of their number, and for each fault.
const OF_CALLS: f64 = 0.1;
const CALLS: f64 = 0.05;
/// The part of a fault that its outer layers make up.
const NEARLY_ALL: f64 = 0.8;

impl Assembly<'_> {
    /// Whether a change is large enough to be told.
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
    pub(super) fn correction_error(&self, finding: &Finding) -> f64 {
        match (finding.unit, finding.subject) {
            (Unit::Ns, _) => self.error_of(&finding.figures),
            // Within a path both have the same calls: one cost for both cancels out.
            (Unit::Ratio, _) if !self.frame.is_cost_shared => self.error_of_mean(),
            (_, Subject::SamePathTail)
                if !self.frame.is_cost_shared && self.error_of_mean() > OF_TIME =>
            {
                f64::INFINITY
            }
            _ => 0.0,
        }
    }

    /// The error of the correction as a part of the mean fault.
    fn error_of_mean(&self) -> f64 {
        let mean = self.mean(None, |_, row| (row.raw, row.corrected));
        let Pair { a, b } = mean.corrected;
        over(self.error_of(&mean), f64::midpoint(a, b))
    }

    fn error_of(&self, Pairs { raw, corrected }: &Pairs) -> f64 {
        let part = |cost: Calibration| over(cost.error_ns, cost.per_call_ns);
        let [in_a, in_b] = [0, 1].map(|place: usize| part(self.frame.inputs[place].calibration));
        let (taken_a, taken_b) = (raw.a - corrected.a, raw.b - corrected.b);
        match self.frame.is_cost_shared {
            true => (taken_b - taken_a).abs() * in_a.max(in_b),
            false => (taken_a * in_a).hypot(taken_b * in_b),
        }
    }
}
