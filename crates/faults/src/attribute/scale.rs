//! Scales the faults that events show to the faults that the kernel counted.

use super::Z95;
use crate::causes::{Attribution, Variation};
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::recording::Sidecar;
use pagewise_model::units::Estimate;

/// Below this share of the exact count, scaling would invent causes for faults that were not seen.
const TRUSTED_SHARE: f64 = 0.7;

/// How recorded faults relate to counted ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// Factor from weights to faults.
    pub(crate) factor: f64,
    /// Faults that were counted but are missing from all figures.
    pub(crate) missing: u64,
    /// Counted faults not represented by any sample, beyond what chance explains; their kind is not
    /// known.
    unseen: f64,
    /// The kernel's count.
    exact: f64,
    /// Whether weights are scaled to it.
    to_exact: bool,
    user_only: bool,
}

impl Scale {
    /// Samples are scaled to the kernel's exact count. Faults that could not be seen at all (inside
    /// the kernel without privileges) and faults missing from a full recording are not scaled: they
    /// are reported as missing.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of faults are far below 2^53 and the difference is clamped"
    )]
    pub(crate) fn new(attribution: &Attribution, sidecar: &Sidecar) -> Self {
        let seen = attribution.tally.all.sum;
        let exact = sidecar.cost.faults() as f64;
        let user_only = attribution.user_only;
        if seen <= 0.0 || exact <= 0.0 {
            return Self {
                factor: 1.0,
                missing: 0,
                unseen: 0.0,
                exact,
                to_exact: false,
                user_only,
            };
        }
        let sampled = !attribution.sees_every_fault;
        let trusted = sampled && !user_only && seen >= TRUSTED_SHARE * exact;
        let to_exact = trusted || (sampled && seen > exact);
        let factor = if to_exact { exact / seen } else { 1.0 };
        // Samples of period 1 do not vary, others by their period.
        let all = attribution.tally.all;
        let by_chance = Z95 * (all.squares - seen).max(0.0).sqrt();
        let unseen = match sampled && !user_only {
            true => (exact - seen - by_chance).max(0.0),
            false => 0.0,
        };
        Self {
            factor,
            missing: (exact - seen * factor).max(0.0).round() as u64,
            unseen,
            exact,
            to_exact,
            user_only,
        }
    }

    /// Variance of a kind's sum; if scaled to a known total, that of its share of the total.
    pub(crate) fn variance<K: Copy + Ord>(
        &self,
        of: &Variation<K>,
        kind: K,
        sum: f64,
        all: f64,
    ) -> Option<f64> {
        of.variance(&[kind], self.to_exact.then(|| sum / all.max(1.0)))
    }

    /// Converts an interval of recorded faults, which make up `part` of all recorded ones, to the
    /// program's faults; any part of the unseen ones may be of this kind.
    pub(crate) fn faults(&self, recorded: Estimate, part: f64) -> Estimate {
        let counted = recorded.scaled(self.factor);
        let included = if self.factor > 1.0 { part } else { 0.0 };
        Estimate {
            value: counted.value,
            low: (counted.low - self.unseen * included).max(0.0),
            high: counted.high + self.unseen * (1.0 - included),
        }
    }

    /// Converts a share of recorded faults to a share of the program's.
    pub(crate) fn share(&self, recorded: Estimate) -> Estimate {
        let unseen = self.unseen / self.exact.max(1.0);
        Estimate {
            value: recorded.value,
            low: recorded.low * (1.0 - unseen),
            high: recorded.high * (1.0 - unseen) + unseen,
        }
    }

    /// Records the missing faults as a loss. If records were lost as well, it is unknown how many
    /// of the missing faults were inside the kernel.
    pub(crate) fn note(&self, losses: &mut Losses) {
        let kind = match self.user_only && losses.count(LossKind::RingOverrun) == 0 {
            true => LossKind::KernelFaultsInvisible,
            false => LossKind::FaultsWithoutEvent,
        };
        losses.add(kind, self.missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::Attributor;

    /// Samples of the given weights, from a program that had `exact` faults.
    fn scale(samples: &[f64], exact: u64) -> Scale {
        let mut attribution = Attributor::new(&[], &Sidecar::default()).finish();
        attribution.sees_every_fault = false;
        for &weight in samples {
            attribution.tally.all.add(weight);
        }
        let mut sidecar = Sidecar::default();
        sidecar.cost.minor_faults = exact;
        Scale::new(&attribution, &sidecar)
    }

    /// 600 of 800 recorded faults are of one kind.
    const KIND: Estimate = Estimate {
        value: 600.0,
        low: 590.0,
        high: 610.0,
    };

    #[test]
    fn faults_that_no_sample_stands_for_may_be_of_any_kind() {
        let scale = scale(&[1.0; 800], 1_000);
        let faults = scale.faults(KIND, 0.75);
        assert!((faults.value - 750.0).abs() < 1e-9, "{faults:?}");
        assert!(faults.covers(600.0) && faults.covers(800.0), "{faults:?}");
        assert!(!faults.covers(550.0) && !faults.covers(830.0), "{faults:?}");
        let share = scale.share(KIND.scaled(1.0 / 800.0));
        assert!(share.covers(0.6) && share.covers(0.8), "{share:?}");
        assert!(!share.covers(0.55) && !share.covers(0.83), "{share:?}");
    }

    #[test]
    fn too_many_to_scale_are_told_apart_and_widen_the_upper_end() {
        let scale = scale(&[1.0; 800], 1_600);
        let faults = scale.faults(KIND, 0.75);
        assert_eq!(scale.missing, 800);
        assert!((faults.value - 600.0).abs() < 1e-9, "{faults:?}");
        assert!((faults.low - 590.0).abs() < 1e-9, "{faults:?}");
        assert!((faults.high - 1_410.0).abs() < 1e-9, "{faults:?}");
    }

    #[test]
    fn what_samples_miss_by_chance_is_not_counted_twice() {
        // 80 samples of 10 vary by 2 x sqrt(80 x 90).
        let scale = scale(&[10.0; 80], 900);
        assert_eq!(scale.faults(KIND, 0.75), KIND.scaled(900.0 / 800.0));
        assert_eq!(scale.share(KIND), KIND);
    }
}
