//! Which amounts of two profiles can be compared, depending on what was recorded.

use pagewise_model::profile::{Observed, Profile, WeightUnit};
use pagewise_model::profile_diff::Measure;
use pagewise_profile::is_cpu;
use pagewise_profile::weigh::Idle;

/// Whole runs are compared per run, stretches of time per second; if the amounts of one depend on
/// how much CPU it got, or on how much of it is left, the shares of its samples are compared.
pub(super) fn measure(profiles: [&Profile; 2], event: &str) -> Measure {
    let [a, b] = profiles.map(|profile| unit(profile, event));
    let (Some(unit), true) = (a, a == b) else {
        return Measure::ShareOfBusy;
    };
    let runs = profiles.map(|profile| match profile.observed {
        Observed::Run(cpu) if profile.cut.is_none() => Some(cpu.is_some()),
        _ => None,
    });
    if let [Some(a), Some(b)] = runs {
        return match (unit, is_cpu(event), a && b) {
            (WeightUnit::Nanoseconds, true, _) | (WeightUnit::Events, true, true) => {
                Measure::CpuSecondsPerRun
            }
            (WeightUnit::Events, ..) => Measure::EventsPerRun,
            // Waits depend on when others ran.
            _ => rate(profiles, unit),
        };
    }
    match profiles.iter().all(|profile| has_rates(profile)) {
        true => rate(profiles, unit),
        false => Measure::ShareOfBusy,
    }
}

fn unit(profile: &Profile, event: &str) -> Option<WeightUnit> {
    let found = profile.events.iter().find(|known| known.name == event);
    found.map(|event| event.unit)
}

fn rate(profiles: [&Profile; 2], unit: WeightUnit) -> Measure {
    match (profiles.iter().all(|profile| profile.has_times), unit) {
        (true, WeightUnit::Nanoseconds) => Measure::CpusInUse,
        (true, _) => Measure::PerSecond,
        (false, _) => Measure::ShareOfBusy,
    }
}

/// Whether amounts per second are meaningful: those of a machine with visible idle time, and of
/// stretches of one recording.
fn has_rates(profile: &Profile) -> bool {
    match profile.observed {
        Observed::Machine | Observed::Stretch => true,
        Observed::Run(_) | Observed::Processes => false,
        Observed::Unknown => {
            let idle = Idle::new(profile);
            let is_idle_task = |comm: &str| comm == "swapper" || comm.starts_with("swapper/");
            profile
                .threads
                .iter()
                .any(|thread| is_idle_task(&thread.comm))
                || profile.samples.stacks.iter().any(|stack| idle.is(stack))
        }
    }
}
