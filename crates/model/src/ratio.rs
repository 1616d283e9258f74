//! What a measured ratio supports: checked before any ratio is printed.

use crate::units::Estimate;

/// What a ratio's interval supports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ratio {
    /// The figure with its interval.
    Measured(Estimate),
    /// More than one, and at least this much; how much more is unknown.
    AtLeast(f64),
    /// Less than one, and at most this much.
    AtMost(f64),
    /// Not even known to be above or below one.
    Unknown,
}

/// An interval whose ends are this many times apart gives no information about the size.
const TOO_WIDE: f64 = 4.0;
/// Ratios beyond this, or below its inverse, are not measurements.
const UNBOUNDED: f64 = 1e6;

impl Ratio {
    /// What `found` supports. Ends that are zero, infinite or not a number support nothing.
    #[must_use]
    pub fn from_estimate(found: &Estimate) -> Self {
        let usual =
            |ratio: f64| ratio.is_finite() && (1.0 / UNBOUNDED..=UNBOUNDED).contains(&ratio);
        let ordered = found.low <= found.value && found.value <= found.high;
        if !usual(found.value) || !ordered {
            return Self::Unknown;
        }
        if usual(found.low) && usual(found.high) && found.high / found.low <= TOO_WIDE {
            return Self::Measured(*found);
        }
        if usual(found.low) && found.low > 1.0 {
            return Self::AtLeast(found.low);
        }
        if usual(found.high) && found.high < 1.0 {
            return Self::AtMost(found.high);
        }
        Self::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_interval_bears_out_is_told() {
        let of = |value, low, high| Ratio::from_estimate(&Estimate { value, low, high });
        assert!(matches!(of(8.0, 7.0, 9.0), Ratio::Measured(_)));
        assert_eq!(of(8.0, 1.5, 40.0), Ratio::AtLeast(1.5));
        assert_eq!(of(0.1, 0.01, 0.5), Ratio::AtMost(0.5));
        for (value, low, high) in [
            (0.8, 0.04, 15.8),
            (1.2, 0.0, f64::MAX),
            (1.0, f64::NAN, 2.0),
            (f64::INFINITY, 1.0, f64::INFINITY),
            (0.0, 0.0, 0.0),
            (-1.0, -2.0, 3.0),
        ] {
            assert_eq!(of(value, low, high), Ratio::Unknown, "{value} {low} {high}");
        }
    }
}
