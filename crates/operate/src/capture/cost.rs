//! Cost of tracing to the program.

use super::reading::Reading;
use super::schedule::Stretch;
use pagewise_model::histogram::Histogram;
use pagewise_traces::fault_paths::{Calibration, calibrate_by_histogram, estimate};
use std::time::Duration;

/// Time spent in stretches of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tracing paths.
    pub paths: Duration,
    /// Tracing only the roots.
    pub root_only: Duration,
    /// How long the last change of filters took.
    pub last_change: Duration,
}

impl Spent {
    /// Adds a stretch.
    pub fn add(&mut self, stretch: Stretch, time: Duration) {
        match stretch {
            Stretch::RootOnly => self.root_only += time,
            Stretch::Survey | Stretch::Paths => self.paths += time,
        }
    }
}

/// Cost of tracing, as far as the trace shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The tracer's cost for one call.
    pub calibration: Calibration,
    /// Faults with paths.
    pub faults: u64,
    /// Calls inside them, including their roots.
    pub calls: u64,
    /// Mean time of a fault with paths, in nanoseconds.
    pub traced_ns: f64,
    /// Faults with only their roots traced.
    pub root_only_faults: u64,
    /// Their mean time, in nanoseconds.
    pub root_only_ns: f64,
    /// Faults per second, with paths and with only the roots traced.
    pub rates: Option<(f64, f64)>,
    /// Time in stretches of each kind.
    pub spent: Spent,
}

impl Cost {
    /// The cost, from comparing faults with paths and faults with only the roots.
    pub fn new(paths: &Reading, root_only: &Histogram, spent: &Spent) -> Self {
        let traced = paths.faults().fault_latencies();
        let measured = calibrate_by_histogram(paths.faults(), root_only);
        let rate = |faults: u64, time: Duration| faults as f64 / time.as_secs_f64();
        let both = traced.count() > 0 && root_only.count() > 0;
        Self {
            calibration: measured.unwrap_or_else(|| estimate(paths.faults())),
            faults: traced.count(),
            calls: paths.counts().calls,
            traced_ns: traced.mean(),
            root_only_faults: root_only.count(),
            root_only_ns: root_only.mean(),
            rates: both.then(|| {
                (
                    rate(traced.count(), spent.paths),
                    rate(root_only.count(), spent.root_only),
                )
            }),
            spent: *spent,
        }
    }

    /// Time that tracing added, in seconds.
    pub fn added_s(&self) -> f64 {
        self.calibration.per_call_ns * (self.calls + self.root_only_faults) as f64 / 1e9
    }
}
