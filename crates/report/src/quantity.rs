//! Numbers for people: few digits, a unit, the interval beside the figure.

use pagewise_model::units::Estimate;

/// Digits in groups of three: `760,841`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A scaled count, rounded: `760,841`, or `–` where it is no number.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates; counts are never negative"
)]
pub fn rounded(value: f64) -> String {
    if value.is_finite() {
        count(value.round() as u64)
    } else {
        "–".to_owned()
    }
}

/// A count and what is counted: `1 fault`, `1,234 faults`.
#[must_use]
pub fn counted(value: u64, one: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {one}{plural}", count(value))
}

/// A share as per cent: `67 %`, `2.3 %`, `99.5 %`, `<0.1 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{} %", percent_digits(share))
}

/// The same with a sign where it is negative and not rounded away: `−2.3 %`.
#[must_use]
pub fn signed_percent(share: f64) -> String {
    if share <= -0.001 {
        format!("−{}", percent(-share))
    } else {
        percent(share.abs())
    }
}

fn percent_digits(share: f64) -> String {
    let per_cent = share * 100.0;
    if !per_cent.is_finite() {
        "–".to_owned()
    } else if per_cent == 0.0 {
        "0".to_owned()
    } else if per_cent.abs() < 0.1 {
        "<0.1".to_owned()
    } else if (99.95..100.0).contains(&per_cent) {
        ">99.9".to_owned()
    } else if per_cent.abs() < 9.95 || (per_cent > 99.0 && per_cent < 100.0) {
        format!("{per_cent:.1}")
    } else {
        format!("{per_cent:.0}")
    }
}

/// A share with its interval: `67 % [62, 72]`; the interval is left out where it is a point.
#[must_use]
pub fn percent_interval(share: &Estimate) -> String {
    if share.low == share.high {
        return percent(share.value);
    }
    let (low, high) = (percent_digits(share.low), percent_digits(share.high));
    format!("{} [{low}, {high}]", percent(share.value))
}

/// Ratios above this are no measurement: an interval without an upper end.
const UNBOUNDED: f64 = 1e6;

fn factor_digits(factor: f64) -> String {
    if factor.is_nan() {
        "–".to_owned()
    } else if factor > UNBOUNDED {
        "∞".to_owned()
    } else if factor < 2.0 {
        format!("{factor:.2}")
    } else if factor < 19.95 {
        format!("{factor:.1}")
    } else {
        format!("{factor:.0}")
    }
}

/// A ratio with its interval: `×7.9 [7.2, 8.6]`.
#[must_use]
pub fn factor_interval(ratio: &Estimate) -> String {
    let (low, high) = (factor_digits(ratio.low), factor_digits(ratio.high));
    format!("×{} [{low}, {high}]", factor_digits(ratio.value))
}

/// A change in bytes with its sign: `+272 KiB`, `−1.50 MiB`, `±0`.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates; the sign was taken off first"
)]
pub fn byte_change(bytes: f64) -> String {
    let size = pagewise_model::units::Bytes(bytes.abs().round() as u64);
    match bytes {
        bytes if !bytes.is_finite() => "–".to_owned(),
        bytes if bytes >= 0.5 => format!("+{size}"),
        bytes if bytes <= -0.5 => format!("−{size}"),
        _ => "±0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural_and_tiny_shares_have_no_sign() {
        assert_eq!(
            [0, 1, 2].map(|n| counted(n, "call")),
            ["0 calls", "1 call", "2 calls"]
        );
        assert_eq!(
            [-0.02, -0.0004, 0.0, 0.02].map(signed_percent),
            ["−2.0 %", "<0.1 %", "0 %", "2.0 %"]
        );
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(
            [0, 999, 1_000, 760_841, 10_000_000].map(count),
            ["0", "999", "1,000", "760,841", "10,000,000"]
        );
        assert_eq!(rounded(f64::NAN), "–");
    }

    #[test]
    fn shares_never_round_to_a_false_whole() {
        assert_eq!(
            [0.0, 0.0004, 0.023, 0.672, 0.995, 0.999_8, 1.0].map(percent),
            [
                "0 %", "<0.1 %", "2.3 %", "67 %", "99.5 %", ">99.9 %", "100 %"
            ]
        );
    }

    #[test]
    fn intervals_stand_beside_the_figure() {
        let estimate = |value, low, high| Estimate { value, low, high };
        assert_eq!(
            percent_interval(&estimate(0.672, 0.621, 0.718)),
            "67 % [62, 72]"
        );
        assert_eq!(percent_interval(&Estimate::exact(0.5)), "50 %");
        assert_eq!(
            factor_interval(&estimate(7.94, 7.2, 8.6)),
            "×7.9 [7.2, 8.6]"
        );
        assert_eq!(
            factor_interval(&estimate(1.07, 0.99, 1.15)),
            "×1.07 [0.99, 1.15]"
        );
    }

    #[test]
    fn an_interval_without_an_end_says_so() {
        let open = Estimate {
            value: 1.2,
            low: 0.0,
            high: f64::MAX,
        };
        assert_eq!(factor_interval(&open), "×1.20 [0.00, ∞]");
    }

    #[test]
    fn byte_changes_carry_their_sign() {
        assert_eq!(
            [278_528.0, -1_572_864.0, 0.0].map(byte_change),
            ["+272 KiB", "−1.50 MiB", "±0"]
        );
    }
}
