//! The difference of two profiles in words: the headline, and notes on its reliability.

use super::Samples;
use pagewise_model::contention::Contention;
use pagewise_model::profile::{Observed, Profile};
use pagewise_model::profile_diff::{Change, Measure, ProfileDiff};
use pagewise_model::side::SettingChange;
use pagewise_model::units::Nanos;
use pagewise_profile::burst;
use pagewise_profile::weigh::Idle;

/// Caveats for reading the differences.
pub(super) fn notes(
    sides: &[Samples<'_>; 2],
    names: [&String; 2],
    diff: &ProfileDiff,
) -> Vec<String> {
    let [a, b] = [sides[0].profile, sides[1].profile];
    let mut notes: Vec<String> = sides
        .iter()
        .zip(["a", "b"])
        .zip(names)
        .filter_map(|((side, option), name)| note_of_burst(side, option, name))
        .collect();
    notes.extend(note_of_contention([a, b], names));
    notes.extend(note_of_slowdown(diff, sides));
    notes.extend(note_of_interrupts(diff, sides));
    notes.extend(note_of_processes(diff, sides));
    let who = |lacks: fn(&Profile) -> bool| match (lacks(a), lacks(b)) {
        (true, true) => Some("Both inputs lack".to_owned()),
        (true, false) => Some(format!("{} lacks", names[0])),
        (false, true) => Some(format!("{} lacks", names[1])),
        (false, false) => None,
    };
    if let Some(who) = who(|profile| !profile.has_times) {
        notes.push(format!(
            "{who} times, as folded stacks do: shares of the samples are compared, and how much each varies over time is not known, so differences look more certain than they are."
        ));
    }
    if let Some(who) = who(|profile| profile.host.settings.is_empty()) {
        notes.push(format!(
            "{who} a snapshot of the host, which only recordings of pagewise contain: settings and counters of the two hosts are not compared."
        ));
    }
    notes.extend([a, b].iter().zip(names).filter_map(|(profile, name)| {
        let losses: Vec<String> = profile.losses.descriptions().collect();
        (!losses.is_empty()).then(|| format!("Losses of {name}: {}.", losses.join(", ")))
    }));
    notes
}

/// Functions that seem to differ because stacks of one side end before them.
pub(super) fn note_of_callers(
    shares: [f64; 2],
    withdrawn: usize,
    names: [&String; 2],
) -> Option<String> {
    let at = usize::from(shares[1] > shares[0]);
    let (name, other, percent) = (names[at], names[1 - at], 100.0 * shares[at]);
    let what = match withdrawn {
        0 => return None,
        1 => "One difference".to_owned(),
        many => format!("{many} differences"),
    };
    Some(format!(
        "{percent:.0} % of {name} is in stacks that lack callers which those of {other} have (frame pointers \
         end early, copied stacks go on). {what} that this may explain, of functions with all that they \
         call or of stacks, are not counted as significant; own times are not affected."
    ))
}

/// Contention below this is normal.
const CONTENDED: f64 = 0.2;

fn note_of_contention(profiles: [&Profile; 2], names: [&String; 2]) -> Option<String> {
    let known = profiles.map(|profile| profile.contention);
    let most = known
        .iter()
        .flatten()
        .filter_map(Contention::degree)
        .fold(0.0, f64::max);
    if most < CONTENDED {
        return None;
    }
    let message: Vec<String> = known
        .iter()
        .zip(names)
        .map(|(known, name)| match known.as_ref().and_then(contention) {
            Some(words) => format!("{name}: {words}"),
            None => format!("{name}: not recorded"),
        })
        .collect();
    Some(format!(
        "The CPUs were shared with other work, which makes the same work take more CPU time ({}).",
        message.join("; ")
    ))
}

fn contention(known: &Contention) -> Option<String> {
    let share = |share: f64| 100.0 * share;
    let signs = [
        known.waiting.map(|waiting| {
            let waiting = share(waiting);
            format!("tasks waited for a CPU {waiting:.0} % of the time")
        }),
        known
            .stolen
            .filter(|&stolen| stolen >= 0.005)
            .map(|stolen| format!("the hypervisor took {:.1} %", share(stolen))),
        known
            .preemptions
            .map(|rate| format!("preempted {rate:.0} times per second of CPU time")),
    ];
    let signs: Vec<String> = signs.into_iter().flatten().collect();
    (!signs.is_empty()).then(|| signs.join(", "))
}

/// A slowdown or a total that differs less is not worth a sentence.
const WORTH_TELLING: f64 = 0.02;

fn note_of_interrupts(diff: &ProfileDiff, sides: &[Samples<'_>; 2]) -> Option<String> {
    let [a, b] = [0, 1].map(|at: usize| sides[at].interrupts as f64 * sides[at].scale);
    let most = (a / sides[0].total()).max(b / sides[1].total());
    (most >= WORTH_TELLING).then(|| {
        format!(
            "Interrupts took {} in A and {} in B; they are the machine's work and left out.",
            amount(a, diff.measure),
            amount(b, diff.measure)
        )
    })
}

fn note_of_slowdown(diff: &ProfileDiff, sides: &[Samples<'_>; 2]) -> Option<String> {
    diff.slowdown?;
    let [a, b] = [0, 1].map(|at: usize| {
        let side = &sides[at];
        side.total() + side.interrupts as f64 * side.scale
    });
    let whole = format!(
        "The whole run took {} in A and {} in B.",
        amount(a, diff.measure),
        amount(b, diff.measure)
    );
    let Some(factor) = diff.divisor() else {
        return Some(whole);
    };
    let (percent, more) = match factor > 1.0 {
        true => (100.0 * (factor - 1.0), "more"),
        false => (100.0 * (1.0 - factor), "less"),
    };
    Some(format!(
        "{whole} Most functions took {percent:.0} % {more} in B, by about the same factor, which a busier or less busy machine can explain: B's amounts are divided by {factor:.2}."
    ))
}

/// Why shares are compared although times are known.
fn note_of_processes(diff: &ProfileDiff, sides: &[Samples<'_>; 2]) -> Option<String> {
    let are = |wanted: fn(Observed) -> bool| {
        let observed = sides.iter().map(|side| side.profile.observed);
        observed.clone().any(wanted) && sides.iter().all(|side| side.profile.has_times)
    };
    let shares = diff.measure == Measure::ShareOfBusy;
    let processes = |observed| matches!(observed, Observed::Processes | Observed::Unknown);
    if shares && are(processes) {
        return Some(
            "Shares of the samples are compared, not amounts: how much CPU time processes use in a period depends on their load and on what else runs. Two recordings of one command from start to end are compared by the CPU time of a run."
                .to_owned(),
        );
    }
    None
}

/// An unusual moment is lost in the means of a whole recording: shows how to compare it alone.
fn note_of_burst(side: &Samples<'_>, option: &str, name: &str) -> Option<String> {
    let event = side.samples.first()?.event;
    let burst = burst::find(side.profile, event, &Idle::new(side.profile))?;
    let seconds = |time: Nanos| time.0 as f64 / 1e9;
    let (from, to) = (seconds(burst.from), seconds(burst.to));
    Some(format!(
        "{name} has a moment unlike the rest, from {from:.1} s to {to:.1} s ({}); compare it separately: \
         --range-{option} {from:.1}s..{to:.1}s",
        burst.function
    ))
}

/// The most important difference, and the setting that may be behind it.
pub(crate) fn headline(diff: &ProfileDiff) -> String {
    sentence(diff, |telling| {
        setting_behind(diff).map_or(String::new(), |setting| {
            let value =
                |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
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
        })
    })
}

/// The same after what is missing from either side, which makes all that follows doubtful.
pub(super) fn with_cuts(sides: &[Samples<'_>; 2], names: [&String; 2], headline: String) -> String {
    let cuts: Vec<String> = sides
        .iter()
        .zip(names)
        .filter_map(|(side, name)| {
            side.profile
                .cut
                .as_ref()
                .map(|cut| format!("{name}: {cut}"))
        })
        .collect();
    match cuts.is_empty() {
        true => headline,
        false => format!("{} In what is left: {headline}", cuts.join(" ")),
    }
}

/// The same without the setting, for callers that name it themselves.
pub(crate) fn headline_without_setting(diff: &ProfileDiff) -> String {
    sentence(diff, |_| String::new())
}

/// The first setting that is known to affect what changed.
pub(crate) fn setting_behind(diff: &ProfileDiff) -> Option<&SettingChange> {
    diff.settings.iter().find(|one| !one.touches.is_empty())
}

fn sentence(diff: &ProfileDiff, behind: impl Fn(&Change) -> String) -> String {
    let name = &diff.b.name;
    let Some((telling, verb)) = telling(diff) else {
        return format!(
            "No significant difference between {} and {name} ({} functions compared).",
            diff.a.name,
            diff.functions.len()
        );
    };
    format!(
        "{} {verb} in {name}: {}{} against {}{}.",
        telling.name,
        amount(telling.b, diff.measure),
        match diff.divisor() {
            Some(_) => format!(" at the speed of {}", diff.a.name),
            None => String::new(),
        },
        amount(telling.a, diff.measure),
        behind(telling)
    )
}

/// The most important change, and whether it grew.
fn telling(diff: &ProfileDiff) -> Option<(&Change, &'static str)> {
    let mut significant: Vec<&Change> = diff.functions.iter().filter(|c| c.significant).collect();
    // Unnamed code is mentioned only if nothing else changed.
    if significant.iter().any(|change| change.unnamed.is_none()) {
        significant.retain(|change| change.unnamed.is_none());
    }
    // A reader looks for growth; what shrank in turn is secondary. In a chain of callers and
    // callees, the most informative function is the one whose own amount makes up at least half of
    // the change.
    let most = significant
        .iter()
        .map(|c| c.change.value)
        .fold(0.0, f64::max);
    let most = match most > 0.0 {
        true => most,
        false => significant.first()?.change.value,
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
        .or(significant.first())
        .copied()?;
    let verb = if most > 0.0 { "grew" } else { "shrank" };
    Some((telling, verb))
}

/// An amount in words.
#[must_use]
pub fn amount(value: f64, measure: Measure) -> String {
    if value.is_nan() || value <= 0.0 {
        return "none".to_owned();
    }
    match measure {
        Measure::ShareOfBusy => format!("{:.1} % of the samples", 100.0 * value),
        Measure::CpusInUse => format!("{:.1} % of a CPU", 100.0 * value),
        Measure::PerSecond => format!("{value:.1} per second"),
        Measure::CpuSecondsPerRun => {
            format!("{} of CPU time", Nanos::from_secs_f64(value))
        }
        Measure::EventsPerRun => format!("{value:.0} per run"),
    }
}
