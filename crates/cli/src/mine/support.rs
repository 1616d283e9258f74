//! The option `--min-support`: a number of sequences or a share of them.

use std::str::FromStr;

/// The least support of a pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MinSupport {
    /// This number of sequences.
    Sequences(u64),
    /// This share of all sequences, in percent.
    Percent(f64),
}

impl MinSupport {
    /// The number of sequences, rounded up, at least one.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count, at most the count"
    )]
    pub fn sequences(self, sequences: u64) -> u64 {
        match self {
            Self::Sequences(count) => count,
            Self::Percent(percent) => ((sequences as f64 * percent / 100.0).ceil() as u64).max(1),
        }
    }
}

impl FromStr for MinSupport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{text}\": expected a whole number, at least 1, or a share such as 1% or 0.5%"
            )
        };
        let Some(share) = text.strip_suffix('%') else {
            let count = text.parse().ok().filter(|&count| count >= 1);
            return count.map(Self::Sequences).ok_or_else(wrong);
        };
        let percent = share.trim().parse::<f64>().ok();
        let percent = percent.filter(|&percent| percent > 0.0 && percent <= 100.0);
        percent.map(Self::Percent).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::MinSupport;

    #[test]
    fn counts_and_shares() {
        let of = |text: &str| {
            text.parse()
                .map(|support: MinSupport| support.sequences(4880))
        };
        assert_eq!(of("2"), Ok(2));
        assert_eq!(of("1%"), Ok(49));
        assert_eq!(of("0.001%"), Ok(1));
        for wrong in ["0", "-1", "x", "0%", "101%", "NaN%", ""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
