//! The least changes that matter: of each figure, what is not reported even where it is sure.

/// Least changes of answers, as parts of the figure: of the median and the mean, and of time within
/// a path; of quantiles above the median, which vary more from run to run; of the rate.
pub(super) const OF_TIME: f64 = 0.02;
pub(super) const OF_TAIL: f64 = 0.05;
pub(super) const OF_RATE: f64 = 0.1;
/// Of time, besides, ns: less is within a few cycles of how calls are timed.
pub(super) const LEAST_NS: f64 = 20.0;
/// Least change of the share of a kind or path among all faults. One that takes [`OF_TIME`] of the
/// mean fault matters even if it is rarer.
pub(super) const OF_FAULTS: f64 = 0.01;
/// Least change of the share of faults that are slow.
pub(super) const OF_SLOW: f64 = 0.005;
/// What explains a difference makes up at least this part of the mean fault.
pub(super) const OF_MEAN: f64 = 0.005;
/// A function that takes so much longer, by more than [`LEAST_NS`] a fault, matters all the same.
pub(super) const OF_FUNCTION: f64 = 0.5;
/// Slow calls that are no such part of the mean take, each, this part of it longer.
pub(super) const SLOW_BY: f64 = 0.1;
/// Least change of calls per fault: of their number, and for each fault.
pub(super) const OF_CALLS: f64 = 0.1;
pub(super) const CALLS: f64 = 0.05;
/// The part of a fault that its outer layers make up.
pub(super) const NEARLY_ALL: f64 = 0.8;
