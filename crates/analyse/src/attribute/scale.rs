//! From the faults that events show to the faults that the kernel counted.

use crate::faults::Attribution;
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::recording::Sidecar;

/// Below this share of the exact count, scaling would invent causes for faults that nobody saw.
const TRUSTED_SHARE: f64 = 0.7;

/// How recorded faults relate to counted ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// Factor from weights to faults.
    pub(crate) factor: f64,
    /// Faults that were counted but are in no figure.
    pub(crate) missing: u64,
    user_only: bool,
}

impl Scale {
    /// Samples are scaled to the exact count of the kernel; faults that could not be seen at all
    /// (inside the kernel without privileges) and faults missing from a full recording are not:
    /// they are reported as missing.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of faults are far below 2^53 and the difference is clamped"
    )]
    pub(crate) fn of(attribution: &Attribution, sidecar: &Sidecar) -> Self {
        let seen = attribution.tally.all.sum;
        let exact = sidecar.cost.faults() as f64;
        let user_only = attribution.user_only;
        if seen <= 0.0 || exact <= 0.0 {
            return Self {
                factor: 1.0,
                missing: 0,
                user_only,
            };
        }
        let sampled = !attribution.sees_every_fault;
        let trusted = sampled && !user_only && seen >= TRUSTED_SHARE * exact;
        let factor = if trusted || (sampled && seen > exact) {
            exact / seen
        } else {
            1.0
        };
        Self {
            factor,
            missing: (exact - seen * factor).max(0.0).round() as u64,
            user_only,
        }
    }

    /// Counts the missing faults as the loss that they are.
    pub(crate) fn note(&self, losses: &mut Losses) {
        let kind = if self.user_only {
            LossKind::KernelFaultsInvisible
        } else {
            LossKind::FaultsWithoutEvent
        };
        losses.add(kind, self.missing);
    }
}
