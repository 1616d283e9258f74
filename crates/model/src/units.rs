//! Units as types, so that nanoseconds and microseconds are never mixed by accident.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

macro_rules! counted_unit {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;
            /// Saturates at zero: clocks of two CPUs may disagree by a few nanoseconds.
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self(0), Add::add)
            }
        }
    };
}

counted_unit! {
    /// A duration or a point on the recording's clock, in nanoseconds.
    Nanos
}
counted_unit! {
    /// A size in bytes.
    Bytes
}

impl Nanos {
    /// One microsecond.
    pub const MICRO: Self = Self(1_000);
    /// One millisecond.
    pub const MILLI: Self = Self(1_000_000);
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);

    /// The duration in seconds, for ratios and axes.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// From seconds; negative and non-finite values become zero.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of u64 first"
    )]
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9).clamp(0.0, 1.8e19) as u64)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(duration: std::time::Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Nanos {
    /// Three significant digits with a suitable unit: `890 ns`, `1.47 µs`, `27.4 ms`, `3.20 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(
            f,
            self.0,
            &[
                (1_000_000_000, "s"),
                (1_000_000, "ms"),
                (1_000, "µs"),
                (1, "ns"),
            ],
        )
    }
}

impl Bytes {
    /// One kibibyte.
    pub const KIB: Self = Self(1 << 10);
    /// One mebibyte.
    pub const MIB: Self = Self(1 << 20);
    /// One gibibyte.
    pub const GIB: Self = Self(1 << 30);

    /// The nearest whole number of bytes; negative and non-finite values become zero.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of u64 first"
    )]
    pub fn rounded(bytes: f64) -> Self {
        Self(bytes.round().clamp(0.0, 1.8e19) as u64)
    }
}

/// A text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a size; examples: 512M, 2G")]
pub struct NoSize(pub String);

impl FromStr for Bytes {
    type Err = NoSize;

    /// A whole number and a binary unit, as people write them: `512K`, `2G`, `64 MiB`, `4096`.
    fn from_str(text: &str) -> Result<Self, NoSize> {
        size(text).ok_or_else(|| NoSize(text.to_owned()))
    }
}

fn size(text: &str) -> Option<Bytes> {
    let text = text
        .trim()
        .trim_end_matches("iB")
        .trim_end_matches('B')
        .trim_end();
    let (digits, unit) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        (at, 't' | 'T') => (&text[..at], 40),
        _ => (text, 0),
    };
    let number: u64 = digits.trim_end().parse().ok()?;
    number.checked_mul(1 << unit).map(Bytes)
}

impl fmt::Display for Bytes {
    /// Three significant digits with a binary unit: `512 B`, `126 KiB`, `64.0 MiB`, `1.63 GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(
            f,
            self.0,
            &[
                (1 << 40, "TiB"),
                (1 << 30, "GiB"),
                (1 << 20, "MiB"),
                (1 << 10, "KiB"),
                (1, "B"),
            ],
        )
    }
}

fn scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let &(size, name) = units
        .iter()
        .find(|(size, _)| value >= *size)
        .or(units.last())
        .unwrap_or(&(1, ""));
    if size == 1 {
        return f.pad(&format!("{value} {name}"));
    }
    let quotient = value as f64 / size as f64;
    let digits = if quotient < 10.0 {
        2
    } else {
        usize::from(quotient < 100.0)
    };
    f.pad(&format!("{quotient:.digits$} {name}"))
}

/// A value with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The best single figure.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

impl Estimate {
    /// A figure that was counted, not estimated.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self {
            value,
            low: value,
            high: value,
        }
    }

    /// Whether the interval contains `other`.
    #[must_use]
    pub fn covers(&self, other: f64) -> bool {
        self.low <= other && other <= self.high
    }

    /// The same estimate in another unit.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let (a, b) = (self.low * factor, self.high * factor);
        Self {
            value: self.value * factor,
            low: a.min(b),
            high: a.max(b),
        }
    }

    /// The sum of two that were estimated apart: their errors add up as squares.
    #[must_use]
    pub fn plus(&self, other: Self) -> Self {
        let value = self.value + other.value;
        Self {
            value,
            low: value - (self.value - self.low).hypot(other.value - other.low),
            high: value + (self.high - self.value).hypot(other.high - other.value),
        }
    }

    /// The difference of two that were estimated apart.
    #[must_use]
    pub fn minus(&self, other: Self) -> Self {
        self.plus(other.scaled(-1.0))
    }

    /// The product of two quantities that are not negative and whose errors may have the same sign.
    #[must_use]
    pub fn times(&self, other: Self) -> Self {
        Self {
            value: self.value * other.value,
            low: self.low * other.low,
            high: self.high * other.high,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_binary_units_and_nonsense_is_refused() {
        let size = |text: &str| text.parse::<Bytes>();
        assert_eq!(size("512K"), Ok(Bytes(512 << 10)));
        assert_eq!(size(" 64 MiB"), Ok(Bytes(64 << 20)));
        assert_eq!(size("1 GiB"), Ok(Bytes::GIB));
        assert_eq!(size("4096"), Ok(Bytes(4096)));
        assert_eq!(size("3T"), Ok(Bytes(3 << 40)));
        for wrong in [
            "",
            "M",
            "-1",
            "1.5G",
            "12Q",
            "64X",
            "-1M",
            "é",
            "99999999999T",
        ] {
            assert_eq!(size(wrong), Err(NoSize(wrong.to_owned())));
        }
    }

    #[test]
    fn shows_three_significant_digits() {
        assert_eq!(Nanos(890).to_string(), "890 ns");
        assert_eq!(Nanos(1_470).to_string(), "1.47 µs");
        assert_eq!(Nanos(27_400_000).to_string(), "27.4 ms");
        assert_eq!(Bytes(126 << 10).to_string(), "126 KiB");
        assert_eq!(Bytes(64 << 20).to_string(), "64.0 MiB");
        assert_eq!(Bytes(0).to_string(), "0 B");
    }

    #[test]
    fn subtraction_saturates() {
        assert_eq!(Nanos(3) - Nanos(5), Nanos(0));
    }

    #[test]
    fn scaling_by_a_negative_factor_keeps_the_interval_ordered() {
        let flipped = Estimate {
            value: 2.0,
            low: 1.0,
            high: 3.0,
        }
        .scaled(-1.0);
        assert_eq!((flipped.low, flipped.high), (-3.0, -1.0));
    }
}
