//! Numbers for people: few digits, a unit, the interval next to the figure.

use crate::ratio::Ratio;
use crate::units::{Estimate, Nanos};

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

/// No count exceeds 64 bits.
const MOST_COUNTED: f64 = 1.8e19;

/// A scaled count, rounded: `760,841`, or `–` if it is not a number.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates; counts are never negative"
)]
pub fn rounded(value: f64) -> String {
    if value.is_finite() && value < MOST_COUNTED {
        count(value.round() as u64)
    } else {
        "–".to_owned()
    }
}

/// `16,384`, `2.1` for small figures, `0` for values that round to it.
#[must_use]
pub fn few(value: f64) -> String {
    match (0.05..10.0).contains(&value) {
        true => format!("{value:.1}"),
        false => rounded(value),
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

/// Values beyond this many per cent are not valid shares.
const MOST_PERCENT: f64 = 1e9;

fn percent_digits(share: f64) -> String {
    let per_cent = share * 100.0;
    if !per_cent.is_finite() || per_cent.abs() > MOST_PERCENT {
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

/// A share without its interval: `67 %`, `at most 0.6 %` where nothing was seen and only little is
/// possible.
#[must_use]
pub fn percent_seen(share: &Estimate) -> String {
    let message = percent(share.high);
    match share.value == 0.0 && share.high > 0.0 {
        // `<0.1 %` already contains it.
        true if message.starts_with('<') => message,
        true => format!("at most {message}"),
        false => percent(share.value),
    }
}

/// A part of a whole, 0 if the whole is zero.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

/// A figure with its interval, `67 % [62, 72]`: the one notation of intervals. The unit appears
/// once; the interval is left out if it has no finite ends, or if both ends are printed like the
/// figure.
#[must_use]
pub fn with_interval(found: &Estimate, unit: &str, digits: impl Fn(f64) -> String) -> String {
    let [value, low, high] = [found.value, found.low, found.high].map(digits);
    let has_ends = found.low.is_finite() && found.high.is_finite();
    match has_ends && (low != value || high != value) && found.low != found.high {
        true => format!("{value}{unit} [{low}, {high}]"),
        false => format!("{value}{unit}"),
    }
}

/// A share with its interval: `67 % [62, 72]`, `at most 0.6 %`.
#[must_use]
pub fn percent_interval(share: &Estimate) -> String {
    if share.value == 0.0 {
        return percent_seen(share);
    }
    let ends = [share.low, share.high].map(|end| (end * 100.0).abs() <= MOST_PERCENT);
    if ends != [true; 2] {
        return percent(share.value);
    }
    with_interval(share, " %", percent_digits)
}

/// A share of a larger whole or a change of one, to the hundredth: `12.34 %`.
#[must_use]
pub fn percent_fine(share: f64) -> String {
    format!("{} %", fine_digits(share))
}

/// The change of a share in per cent of the whole: `+0.42 %`, `−1.30 %`.
#[must_use]
pub fn points(change: f64) -> String {
    format!("{} %", signed(change, fine_digits))
}

/// The same with its interval: `+0.42 % [+0.10, +0.74]`.
#[must_use]
pub fn points_interval(change: &Estimate) -> String {
    with_interval(change, " %", |end| signed(end, fine_digits))
}

/// A change with its interval, with this many decimals: `+0.42 s [+0.10, +0.74]`.
#[must_use]
pub fn change_interval(change: &Estimate, unit: &str, decimals: usize) -> String {
    with_interval(change, unit, |end| {
        signed(end, |size| format!("{size:.decimals$}"))
    })
}

/// A relative change with its interval: `−12 % [−22, −2.3]` of a share added to 1.
#[must_use]
pub fn change_by_interval(change: &Estimate) -> String {
    with_interval(change, " %", |end| signed(end, change_digits))
}

fn change_digits(size: f64) -> String {
    let percent = size * 100.0;
    match percent {
        _ if percent > MOST_PERCENT || percent.is_nan() => "–".to_owned(),
        _ if percent < 9.95 => format!("{percent:.1}"),
        // Nearly all of it is gone.
        _ if (99.0..100.0).contains(&percent) => format!("{percent:.2}"),
        _ => format!("{percent:.0}"),
    }
}

fn fine_digits(share: f64) -> String {
    match (share * 100.0).abs() <= MOST_PERCENT {
        true => format!("{:.2}", share * 100.0),
        false => "–".to_owned(),
    }
}

/// A change with its sign; without a sign if its digits are all zero.
fn signed(change: f64, digits: impl Fn(f64) -> String) -> String {
    let size = digits(change.abs());
    let sign = match size.contains(|c: char| ('1'..='9').contains(&c)) {
        false => "",
        true if change < 0.0 => "−",
        true => "+",
    };
    format!("{sign}{size}")
}

/// Nanoseconds as a duration: `1.40 µs`, `−480 ns`.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates; the sign was taken off first"
)]
pub fn duration(ns: f64) -> String {
    let sign = if ns <= -0.5 { "−" } else { "" };
    format!("{sign}{}", Nanos(ns.abs().round() as u64))
}

/// A duration with its interval in the figure's unit, `6.61 µs [6.13, 7.09]`; `at most 7.09 µs` if
/// it may be zero.
#[must_use]
pub fn duration_interval(ns: &Estimate) -> String {
    if ns.low <= 0.0 && ns.high > ns.low {
        return format!("at most {}", duration(ns.high));
    }
    in_its_unit(ns, |end, decimals| format!("{end:.decimals$}"))
}

/// The same for whole nanoseconds.
#[must_use]
pub fn duration_within(ns: u64, (low, high): (u64, u64)) -> String {
    duration_interval(&Estimate {
        value: ns as f64,
        low: low as f64,
        high: high as f64,
    })
}

/// A change of a duration with its interval: `+2.10 µs [+1.80, +2.40]`.
#[must_use]
pub fn duration_change(ns: &Estimate) -> String {
    in_its_unit(ns, |end, decimals| {
        signed(end, |size| format!("{size:.decimals$}"))
    })
}

/// Nanoseconds in the unit and with the decimals that suit the figure.
fn in_its_unit(ns: &Estimate, digits: impl Fn(f64, usize) -> String) -> String {
    let size = duration(ns.value.abs());
    let (figure, unit) = size.split_once(' ').unwrap_or((&size, "ns"));
    let decimals = figure.split_once('.').map_or(0, |(_, part)| part.len());
    let scale = match unit {
        "s" => 1e-9,
        "ms" => 1e-6,
        "µs" => 1e-3,
        _ => 1.0,
    };
    with_interval(&ns.scaled(scale), &format!(" {unit}"), |end| {
        digits(end, decimals)
    })
}

/// A factor in at most three digits: `1.04`, `3.2`, `31`.
#[must_use]
pub fn factor_digits(factor: f64) -> String {
    if factor < 2.0 {
        format!("{factor:.2}")
    } else if factor < 19.95 {
        format!("{factor:.1}")
    } else {
        format!("{factor:.0}")
    }
}

/// What a ratio's interval supports: `×7.9 [7.2, 8.6]`, `more than ×1.5`; `None` if it supports
/// nothing.
#[must_use]
pub fn shown_factor(ratio: &Estimate) -> Option<String> {
    match Ratio::from_estimate(ratio) {
        Ratio::Measured(found) => Some(format!("×{}", with_interval(&found, "", factor_digits))),
        Ratio::AtLeast(least) => Some(format!("more than ×{}", factor_digits(least))),
        Ratio::AtMost(most) => Some(format!("less than ×{}", factor_digits(most))),
        Ratio::Unknown => None,
    }
}

/// How much larger a ratio is than one: `+12.5 %`, `−93.0 %`, `×31`; empty if it is not a number.
#[must_use]
pub fn relative_change(ratio: f64) -> String {
    match ratio {
        ratio if !ratio.is_finite() || ratio < 0.0 => String::new(),
        ratio if ratio >= 1e6 => "×1,000,000 or more".to_owned(),
        ratio if ratio >= 10.0 => format!("×{}", rounded(ratio)),
        ratio => format!("{:+.1} %", 100.0 * (ratio - 1.0)).replace('-', "−"),
    }
}

/// A change in bytes with its sign: `+272 KiB`, `−1.50 MiB`, `±0`.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates; the sign was taken off first"
)]
pub fn byte_change(bytes: f64) -> String {
    let size = crate::units::Bytes(bytes.abs().round() as u64);
    match bytes {
        bytes if !bytes.is_finite() || bytes.abs() > MOST_COUNTED => "–".to_owned(),
        bytes if bytes >= 0.5 => format!("+{size}"),
        bytes if bytes <= -0.5 => format!("−{size}"),
        _ => "±0".to_owned(),
    }
}

/// `−93 %`, `+4 %`, `−99.98 %` where rounding would give −100.
#[must_use]
pub fn percent_change(ratio: f64) -> String {
    if !ratio.is_finite() || ratio < 0.0 {
        return "not known".to_owned();
    }
    if ratio >= 10.0 {
        return match ratio < 1e6 {
            true => format!("×{ratio:.0}"),
            false => "×1,000,000 or more".to_owned(),
        };
    }
    let percent = (ratio - 1.0) * 100.0;
    let sign = if percent < 0.0 { "−" } else { "+" };
    let size = percent.abs();
    let digits = if ratio < 0.01 {
        2
    } else {
        usize::from(size < 10.0)
    };
    if size < 0.05 {
        "±0 %".to_owned()
    } else {
        format!("{sign}{size:.digits$} %")
    }
}

/// The same for an amount added to 1: −0.31 is `−31 %`.
#[must_use]
pub fn change_by(share: f64) -> String {
    percent_change(1.0 + share)
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
        assert_eq!(percent_interval(&estimate(0.5, 0.499, 0.501)), "50 %");
        assert_eq!(percent_interval(&Estimate::exact(0.0)), "0 %");
        assert_eq!(
            percent_interval(&estimate(0.0, 0.0, 0.006)),
            "at most 0.6 %"
        );
        assert_eq!(percent_seen(&estimate(0.0, 0.0, 0.0006)), "<0.1 %");
        assert_eq!(percent_seen(&estimate(0.672, 0.621, 0.718)), "67 %");
        assert_eq!(
            shown_factor(&estimate(7.94, 7.2, 8.6)).as_deref(),
            Some("×7.9 [7.2, 8.6]")
        );
        assert_eq!(
            shown_factor(&estimate(1.07, 0.99, 1.15)).as_deref(),
            Some("×1.07 [0.99, 1.15]")
        );
    }

    #[test]
    fn durations_share_their_unit_with_their_interval() {
        let estimate = |value, low, high| Estimate { value, low, high };
        assert_eq!(
            duration_interval(&estimate(6610.0, 6130.0, 7090.0)),
            "6.61 µs [6.13, 7.09]"
        );
        assert_eq!(
            duration_interval(&estimate(300.0, 0.0, 900.0)),
            "at most 900 ns"
        );
        assert_eq!(duration_interval(&Estimate::exact(300.0)), "300 ns");
        assert_eq!(
            duration_change(&estimate(-2100.0, -2400.0, -1800.0)),
            "−2.10 µs [−2.40, −1.80]"
        );
        assert_eq!([-480.0, 0.0].map(duration), ["−480 ns", "0 ns"]);
    }

    #[test]
    fn changes_of_shares_carry_their_sign() {
        let change = Estimate {
            value: -0.013,
            low: -0.02,
            high: 0.000_01,
        };
        assert_eq!(points_interval(&change), "−1.30 % [−2.00, 0.00]");
        assert_eq!(points(0.0042), "+0.42 %");
        assert_eq!(percent(share(1, 3)), "33 %");
        assert_eq!(percent(share(1, 0)), "0 %");
    }

    #[test]
    fn what_an_interval_does_not_bear_out_is_not_told() {
        let of = |value, low, high| shown_factor(&Estimate { value, low, high });
        assert_eq!(of(1.2, 0.0, f64::MAX), None);
        assert_eq!(of(0.8, 0.04, 15.8), None);
        assert_eq!(of(8.0, 1.5, 40.0).as_deref(), Some("more than ×1.50"));
    }

    /// Zero, the extremes of a float, and values that are not numbers.
    const EXTREMES: [f64; 14] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.04,
        15.8,
        1e-300,
        1e300,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];

    #[test]
    fn nothing_unmeasured_is_ever_printed() {
        let wrong = [
            "inf", "NaN", "nan", "∞", "[0.00", "−0.0 %", "-0.0", "179769",
        ];
        for value in EXTREMES {
            for low in EXTREMES {
                for high in EXTREMES {
                    let found = Estimate { value, low, high };
                    for text in [
                        shown_factor(&found).unwrap_or_default(),
                        points(value),
                        duration(value),
                        percent_interval(&found),
                        relative_change(value),
                        percent(value),
                        signed_percent(value),
                        byte_change(value),
                        rounded(value),
                    ] {
                        assert!(text.len() < 60, "{text}");
                        let is_wrong = wrong.iter().any(|wrong| text.contains(wrong));
                        assert!(!is_wrong, "{text} of {found:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn byte_changes_carry_their_sign() {
        assert_eq!(
            [278_528.0, -1_572_864.0, 0.0].map(byte_change),
            ["+272 KiB", "−1.50 MiB", "±0"]
        );
    }
}
