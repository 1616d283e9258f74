//! What the tracer itself costs, how certain that is, and when figures are not corrected for it.

use serde::{Deserialize, Serialize};

/// Where a calibration comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A second trace of the same workload with the root alone.
    RootOnly,
    /// The cheapest calls of the trace itself.
    OwnTrace,
    /// Several traces, each with a cost of its own: the mean, weighted by calls.
    Several,
    /// Nothing to correct by: the trace shows no calls inside faults.
    Nothing,
    /// A cost was found, but one cost for every call does not fit this trace: nothing is corrected.
    Withdrawn,
}

/// The tracer's cost for one call.
///
/// A figure from which the cost of `calls` was subtracted is off by up to [`Calibration::error`] of
/// that many calls. The errors of all figures of one trace have the same sign, so a comparison of
/// figures from two traces must allow for both traces' errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// Nanoseconds that a call adds to everything around it.
    pub per_call_ns: f64,
    /// The part of that which falls inside the call itself.
    pub inside_ns: f64,
    /// Half the width of the 95 % confidence interval of `per_call_ns`, and at least the sum of the
    /// errors of the two parts.
    pub error_ns: f64,
    /// Where it comes from.
    pub source: Source,
    /// Why nothing is corrected, where a cost was found that does not fit.
    #[serde(default)]
    pub withdrawn: Option<Withdrawal>,
}

impl Calibration {
    /// No correction.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            per_call_ns: 0.0,
            inside_ns: 0.0,
            error_ns: 0.0,
            source: Source::Nothing,
            withdrawn: None,
        }
    }

    /// No correction, since the cost found does not fit.
    #[must_use]
    pub fn withdrawn(withdrawal: Withdrawal) -> Self {
        Self {
            source: Source::Withdrawn,
            withdrawn: Some(withdrawal),
            ..Self::nothing()
        }
    }

    /// Whether figures are corrected at all.
    #[must_use]
    pub fn corrects(&self) -> bool {
        !matches!(self.source, Source::Nothing | Source::Withdrawn)
    }

    /// What the tracer added to a call that made this many others.
    #[must_use]
    pub fn cost(&self, calls_inside: usize) -> f64 {
        self.per_call_ns * calls_inside as f64
    }

    /// How far [`Calibration::cost`] of this many calls may be off, either way.
    #[must_use]
    pub fn error(&self, calls_inside: f64) -> f64 {
        self.error_ns * calls_inside
    }

    /// How far own times may be off after the cost of `inner` calls themselves, and the cost around
    /// the `direct` calls that they made, was subtracted.
    #[must_use]
    pub fn own_error(&self, inner: f64, direct: f64) -> f64 {
        self.error_ns * inner.max(direct)
    }
}

/// A cost that was found, and why it was not used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Withdrawal {
    /// What does not fit.
    pub misfit: Misfit,
    /// The cost that was found, ns per call.
    pub per_call_ns: f64,
}

/// Signs that one cost for every call does not fit a trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Misfit {
    /// This share of the faults would have taken no time at all.
    Clamped(f64),
    /// The corrected own times of all calls add up to this many times the corrected time of the
    /// faults that they make up; it should be 1.
    Unbalanced(f64),
    /// The cost of a call changes during the trace: a tenth of the cheapest calls takes at least
    /// this many times what their median does.
    Uneven(f64),
}

/// The interval of a corrected figure, from the error of the tracer's cost. It need not include the
/// figure as traced, which has no error of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bounds {
    /// Of the mean, ns: lowest and highest.
    pub mean_ns: (f64, f64),
    /// Of the median, ns.
    pub p50_ns: (u64, u64),
    /// Of the 90th percentile, ns.
    pub p90_ns: (u64, u64),
    /// Of the 99th percentile, ns.
    pub p99_ns: (u64, u64),
}
