//! Whether a smaller value keeps the gain of the winning one.

use pagewise_model::proof::Comparison;

/// The winner's gain over the baseline.
#[derive(Clone, Copy, Debug)]
pub struct Gain {
    /// Baseline's CPU time over the winner's.
    cpu: f64,
    /// Winner's faults over the baseline's.
    faults: f64,
}

/// A smaller value may lose this share of the gain.
const MAY_LOSE: f64 = 0.03;

impl Gain {
    /// From the winner's comparison with the baseline.
    #[must_use]
    pub fn from_comparison(comparison: &Comparison) -> Self {
        Self {
            cpu: comparison.cpu_speedup.value,
            faults: comparison.fault_ratio.value,
        }
    }

    /// Whether a value with this comparison to the winner's keeps the gain. Faults decide first:
    /// they repeat within 1 %, time does not.
    #[must_use]
    pub fn is_kept(&self, smaller: &Comparison) -> bool {
        let faults_before = 1.0 / self.faults.max(1e-9);
        let may_fault = 1.0 + MAY_LOSE * (faults_before - 1.0).max(0.0);
        let may_slow = 1.0 - MAY_LOSE * (1.0 - 1.0 / self.cpu.max(1.0)).max(MAY_LOSE);
        let slower_beyond_doubt = (smaller.wall_speedup.high < 1.0
            || smaller.cpu_speedup.high < 1.0)
            && smaller.cpu_speedup.value < 1.0 - MAY_LOSE;
        smaller.fault_ratio.value <= may_fault.max(1.02)
            && !slower_beyond_doubt
            && smaller.cpu_speedup.high >= may_slow
    }
}
