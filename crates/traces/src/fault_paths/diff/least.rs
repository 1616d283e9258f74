//! The least changes that matter: smaller changes of a figure are not reported even if significant.

/// Least changes of answers, relative to the figure: of the median and the mean, and of time within
/// a path; of quantiles above the median, which vary more from run to run; of the rate.
pub(super) const OF_TIME: f64 = 0.02;
pub(super) const OF_TAIL: f64 = 0.05;
pub(super) const OF_RATE: f64 = 0.1;
/// In addition, least change of time, ns: less is within a few cycles of how calls are timed.
pub(super) const LEAST_NS: f64 = 20.0;
/// Least change of the share of a kind or path among all faults. One that takes [`OF_TIME`] of the
/// mean fault matters even if it is rarer.
pub(super) const OF_FAULTS: f64 = 0.01;
/// Least change of the share of faults that are slow.
pub(super) const OF_SLOW: f64 = 0.005;
/// An explanation of a difference makes up at least this fraction of the mean fault.
pub(super) const OF_MEAN: f64 = 0.005;
/// A function whose time changes by at least this factor, and by [`LEAST_NS`] per fault, matters
/// even if it is less.
pub(super) const OF_FUNCTION: f64 = 0.5;
/// Slow calls below that fraction matter if each takes longer by this fraction of the mean fault.
pub(super) const SLOW_BY: f64 = 0.1;
/// Least change of calls: relative to their number, and per fault.
pub(super) const OF_CALLS: f64 = 0.1;
pub(super) const CALLS: f64 = 0.05;
/// Fraction of a fault from which a layer counts as nearly all of it.
pub(super) const NEARLY_ALL: f64 = 0.8;
