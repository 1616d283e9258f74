//! How much growth is allowed, in the notation of the command line: `5%`, `faults=2%,elapsed=off`.

use super::rule::Allowance;
use pagewise_model::gate::Metric;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Growth of faults and memory that is allowed by default: two runs of one program differ by less
/// for reasons other than chance (paths of another length, another order on disk).
const COUNTS: f64 = 0.02;
/// The same for times: the position of code in memory changes them by as much.
const TIMES: f64 = 0.05;

/// The growth allowed for each metric; no entry if any growth is allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowances(BTreeMap<Metric, f64>);

impl Default for Allowances {
    fn default() -> Self {
        let of = |metric: Metric| match metric.is_time() {
            true => TIMES,
            false => COUNTS,
        };
        Self(
            Metric::ALL
                .into_iter()
                .map(|metric| (metric, of(metric)))
                .collect(),
        )
    }
}

impl Allowances {
    /// For this metric; `None` if any growth is allowed.
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<Allowance> {
        self.0.get(&metric).map(|&share| Allowance {
            share,
            least: least(metric),
        })
    }

    fn set(&mut self, metric: Metric, share: Option<f64>) {
        match share {
            Some(share) => self.0.insert(metric, share),
            None => self.0.remove(&metric),
        };
    }
}

/// Growth that does not matter even in a small program: pages that depend on the lengths of paths
/// and names, one tick of the kernel's clock.
fn least(metric: Metric) -> f64 {
    match metric {
        Metric::Faults => 8.0,
        Metric::MajorFaults => 50.0,
        Metric::PeakMemory => (64 << 10) as f64,
        Metric::SystemTime | Metric::CpuTime | Metric::ElapsedTime => 4e6,
    }
}

impl FromStr for Allowances {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut allowances = Self::default();
        let mut for_all = None;
        let mut for_some = Vec::new();
        let text = text.trim();
        if text.is_empty() {
            return Err("the allowance is empty; examples: 5%, faults=2%, elapsed=off".to_owned());
        }
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                Some((word, share)) => {
                    for_some.push((metric(word.trim())?, share_of(share.trim())?))
                }
                None if for_all.is_none() => for_all = Some(share_of(part)?),
                None => {
                    return Err(format!(
                        "'{text}' gives the allowance for all figures twice"
                    ));
                }
            }
        }
        if let Some(share) = for_all {
            Metric::ALL
                .into_iter()
                .for_each(|metric| allowances.set(metric, share));
        }
        for (metric, share) in for_some {
            allowances.set(metric, share);
        }
        match allowances.0.is_empty() {
            true => Err("all figures are off: nothing is left to compare".to_owned()),
            false => Ok(allowances),
        }
    }
}

fn metric(word: &str) -> Result<Metric, String> {
    let known = || Metric::ALL.map(Metric::word).join(", ");
    let found = Metric::ALL.into_iter().find(|metric| metric.word() == word);
    found.ok_or_else(|| format!("there is no figure '{word}'; there are {}", known()))
}

/// `5%` or `off`.
fn share_of(text: &str) -> Result<Option<f64>, String> {
    if text == "off" {
        return Ok(None);
    }
    let wrong = || format!("'{text}' is not an allowance; examples: 5%, faults=2%, elapsed=off");
    let percent = text.strip_suffix('%').ok_or_else(wrong)?;
    let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
    match (0.0..=1e6).contains(&percent) {
        true => Ok(Some(percent / 100.0)),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str, metric: Metric) -> Option<f64> {
        let allowances: Allowances = text.parse().unwrap();
        allowances.get(metric).map(|allowance| allowance.share)
    }

    #[test]
    fn one_share_goes_for_all_and_named_ones_before_it() {
        assert_eq!(share("5%", Metric::Faults), Some(0.05));
        assert_eq!(share("5%", Metric::ElapsedTime), Some(0.05));
        assert_eq!(share("faults=1.5%, 7%", Metric::Faults), Some(0.015));
        assert_eq!(share("faults=1.5%, 7%", Metric::CpuTime), Some(0.07));
        assert_eq!(share("faults=0%", Metric::PeakMemory), Some(COUNTS));
        assert_eq!(share("elapsed=off", Metric::ElapsedTime), None);
        assert_eq!(share("off,peak=3%", Metric::Faults), None);
        assert_eq!(share("off,peak=3%", Metric::PeakMemory), Some(0.03));
    }

    #[test]
    fn what_is_no_allowance_says_what_would_be() {
        for wrong in [
            "", "5", "x%", "-1%", "nan%", "inf%", "faults", "5%,6%", "off", "rss=5%",
        ] {
            let error = wrong.parse::<Allowances>().unwrap_err();
            assert!(error.len() > 20, "{wrong}: {error}");
        }
        assert!("rss=5%".parse::<Allowances>().unwrap_err().contains("peak"));
    }
}
