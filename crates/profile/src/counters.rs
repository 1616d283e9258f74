//! Counters of a profile as rates, and the most informative ratios.

use pagewise_model::profile::{CounterSeries, Profile};
use pagewise_model::profile_findings::CounterRate;

/// Ratios: name, numerator, denominator.
const RATIOS: [(&str, &str, &str); 2] = [
    ("instructions per cycle", "instructions", "cycles"),
    (
        "cache misses per reference",
        "cache-misses",
        "cache-references",
    ),
];

/// Every counter as a rate, then the ratios whose counters are present.
pub fn rates(profile: &Profile) -> Vec<CounterRate> {
    let seconds = seconds(profile);
    let of = |series: &CounterSeries| {
        let total = total(series);
        CounterRate {
            name: series.name.clone(),
            total: Some(total),
            rate: total / seconds,
            counted: series.counted,
        }
    };
    let mut rates: Vec<CounterRate> = profile.counters.iter().map(of).collect();
    for (name, part, whole) in RATIOS {
        let find = |name: &str| profile.counters.iter().find(|series| series.name == name);
        if let (Some(part), Some(whole)) = (find(part), find(whole))
            && total(whole) > 0.0
        {
            rates.push(CounterRate {
                name: name.to_owned(),
                total: None,
                rate: total(part) / total(whole),
                counted: part.counted.min(whole.counted),
            });
        }
    }
    rates
}

fn total(series: &CounterSeries) -> f64 {
    series.points.iter().map(|(_, count)| count).sum()
}

/// The counted time: up to the last reading, or the profile's span.
fn seconds(profile: &Profile) -> f64 {
    let last = profile
        .counters
        .iter()
        .filter_map(|series| series.points.last())
        .map(|(time, _)| *time)
        .max();
    (last.unwrap_or(profile.span.0).max(1)) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_come_from_totals_and_only_where_both_are_there() {
        let series = |name: &str, values: [f64; 2]| CounterSeries {
            name: name.to_owned(),
            counted: 1.0,
            points: vec![(500_000_000, values[0]), (1_000_000_000, values[1])],
        };
        let profile = Profile {
            counters: vec![
                series("cycles", [100.0, 300.0]),
                series("instructions", [100.0, 100.0]),
                series("cache-misses", [1.0, 1.0]),
            ],
            ..Profile::default()
        };
        let rates = rates(&profile);
        let message: Vec<(&str, f64)> = rates.iter().map(|r| (r.name.as_str(), r.rate)).collect();
        assert_eq!(
            message,
            [
                ("cycles", 400.0),
                ("instructions", 200.0),
                ("cache-misses", 2.0),
                ("instructions per cycle", 0.5)
            ]
        );
    }
}
