//! What two profiles' difference is in words: the headline, and notes on how far to trust it.

use super::super::burst;
use super::Samples;
use crate::profile::weigh::Idle;
use pagewise_model::profile::Profile;
use pagewise_model::profile_diff::{Change, Measure, ProfileDiff};
use pagewise_model::units::Nanos;

/// What to bear in mind when reading the differences.
pub(super) fn notes(sides: &[Samples<'_>; 2], names: [&String; 2]) -> Vec<String> {
    let [a, b] = [sides[0].profile, sides[1].profile];
    let mut notes: Vec<String> = sides
        .iter()
        .zip(["a", "b"])
        .zip(names)
        .filter_map(|((side, option), name)| note_of_burst(side, option, name))
        .collect();
    let who = |lacks: fn(&Profile) -> bool| match (lacks(a), lacks(b)) {
        (true, true) => Some("Both inputs lack".to_owned()),
        (true, false) => Some(format!("{} lacks", names[0])),
        (false, true) => Some(format!("{} lacks", names[1])),
        (false, false) => None,
    };
    if let Some(who) = who(|profile| !profile.has_times) {
        notes.push(format!(
            "{who} times, as folded stacks do: shares of the samples are compared, and how much \
             each varies over time is not known, so differences look surer than they are."
        ));
    }
    if let Some(who) = who(|profile| profile.host.settings.is_empty()) {
        notes.push(format!(
            "{who} a snapshot of the host, which only recordings of pagewise record have: \
             settings and counters of the two hosts are not compared."
        ));
    }
    let lost = |profile: &Profile| profile.losses.iter().map(|(_, count)| count).sum::<u64>();
    if lost(a) + lost(b) > 0 {
        notes.push(format!(
            "Records were lost: {} in A, {} in B.",
            lost(a),
            lost(b)
        ));
    }
    notes
}

/// A moment unlike the rest is lost in the means of a whole recording: says how to compare it alone.
fn note_of_burst(side: &Samples<'_>, option: &str, name: &str) -> Option<String> {
    let event = side.samples.first()?.event;
    let burst = burst::find(side.profile, event, &Idle::of(side.profile))?;
    let seconds = |time: Nanos| time.0 as f64 / 1e9;
    let (from, to) = (seconds(burst.from), seconds(burst.to));
    Some(format!(
        "{name} has a moment unlike its rest, from {from:.1} s to {to:.1} s ({}); compare it alone: \
         --range-{option} {from:.1}s..{to:.1}s",
        burst.function
    ))
}

/// The difference that says most, and the setting that may be behind it.
pub(super) fn headline(diff: &ProfileDiff) -> String {
    let mut significant: Vec<&Change> = diff.functions.iter().filter(|c| c.significant).collect();
    let name = &diff.b.name;
    if significant.is_empty() {
        return format!(
            "No significant difference between {} and {name} ({} functions compared).",
            diff.a.name,
            diff.functions.len()
        );
    }
    // What has no name is told only where nothing else changed.
    if significant.iter().any(|change| change.unnamed.is_none()) {
        significant.retain(|change| change.unnamed.is_none());
    }
    // What grew is what a reader looks for; what shrank for it comes second. Of a chain of callers
    // and callees, the one says most whose own amount makes at least half of the change.
    let most = significant
        .iter()
        .map(|c| c.change.value)
        .fold(0.0, f64::max);
    let most = match most > 0.0 {
        true => most,
        false => significant[0].change.value,
    };
    let telling = significant
        .iter()
        .filter(|c| {
            c.change.value.signum() == most.signum() && c.change.value.abs() >= 0.5 * most.abs()
        })
        .max_by(|x, y| {
            let own = |c: &Change| (c.own.1 - c.own.0) * most.signum();
            own(x).total_cmp(&own(y))
        })
        .unwrap_or(&significant[0]);
    let verb = if most > 0.0 { "grew" } else { "shrank" };
    let setting = diff
        .settings
        .iter()
        .find(|setting| !setting.touches.is_empty());
    let behind = setting.map_or(String::new(), |setting| {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
        format!(
            "; {} differs ({} against {}) and touches {}",
            setting.name,
            value(&setting.a),
            value(&setting.b),
            match setting.touches.contains(&telling.name) {
                true => "it",
                false => &setting.touches[0],
            }
        )
    });
    format!(
        "{} {verb} in {name}: {} against {}{behind}.",
        telling.name,
        amount(telling.b, diff.measure),
        amount(telling.a, diff.measure)
    )
}

/// An amount in words.
#[must_use]
pub fn amount(value: f64, measure: Measure) -> String {
    match measure {
        Measure::ShareOfBusy => format!("{:.1} % of the samples", 100.0 * value),
        Measure::CpusInUse => format!("{:.1} % of a CPU", 100.0 * value),
        Measure::PerSecond => format!("{value:.1} a second"),
    }
}
