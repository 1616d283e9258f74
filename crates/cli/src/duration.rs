//! Durations as users type them: `250ms`, `10s`, `2m`, `1h`, `1.5s`.

use std::time::Duration;

/// Parses a duration for clap.
///
/// # Errors
/// The problem, in words that name the accepted units.
pub fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
    if digits.trim().is_empty() {
        return Err(format!("'{text}' has no number; examples: 250ms, 10s, 2m"));
    }
    let seconds_in_unit = match &text[digits.len()..] {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "" => return Err(format!("'{text}' has no unit: write {text}s or {text}ms")),
        unit => return Err(format!("unknown unit '{unit}': use us, ms, s, m or h")),
    };
    let count: f64 = digits
        .trim()
        .parse()
        .map_err(|_| format!("'{digits}' is not a number; examples: 250ms, 10s, 2m"))?;
    Duration::try_from_secs_f64(count * seconds_in_unit)
        .map_err(|_| format!("'{text}' is not a possible duration"))
}

/// The same, but more than none.
///
/// # Errors
/// As [`parse`], and for no time at all.
pub fn positive(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err(format!("'{text}' is no time at all")),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_required_and_understood() {
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(positive("1us"), Ok(Duration::from_micros(1)));
        assert_eq!(positive("0s").unwrap_err(), "'0s' is no time at all");
        assert_eq!(parse("100us"), Ok(Duration::from_micros(100)));
        assert!(parse("10").unwrap_err().contains("write 10s"));
        assert!(parse("10d").unwrap_err().contains("unknown unit 'd'"));
        assert!(parse("xs").unwrap_err().contains("no number"));
        assert!(
            parse("-1s")
                .unwrap_err()
                .contains("not a possible duration")
        );
    }
}
