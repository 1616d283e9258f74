//! Anomalies that no list of functions shows: a moment that stands out, one CPU that does all the
//! work, samples in step with a timer.

use super::weigh::{Idle, is_cpu};
use pagewise_model::findings::{Diagnosis, Severity};
use pagewise_model::profile::{NO_CPU, Profile, WeightUnit};
use pagewise_model::profile_findings::{Burst, EventProfile};
use pagewise_model::units::Estimate;

/// A CPU busier than this, ...
const HOT: f64 = 0.9;
/// ... while the others are less busy than this on average, is one that everything waits for.
const COOL: f64 = 0.5;
/// Fewest samples for reporting a CPU's busy share while most others idle.
const ENOUGH: u64 = 100;

/// Every anomaly of the profile.
pub(super) fn find(profile: &Profile, idle: &Idle, events: &[EventProfile]) -> Vec<Diagnosis> {
    let cpu = events.iter().find(|event| is_cpu(&event.name));
    let bursts = cpu.and_then(burst);
    let hot = cpu.and_then(|event| hot_cpu(profile, event));
    let step = cpu.and_then(|event| lockstep(profile, idle, event));
    bursts.into_iter().chain(hot).chain(step).collect()
}

/// The name of the finding that the CPUs did more than usual for a while.
pub(super) const BURST: &str = "profile.burst";

fn burst(event: &EventProfile) -> Option<Diagnosis> {
    let burst = event.burst.as_ref()?;
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let (from, to) = (seconds(burst.from.0), seconds(burst.to.0));
    let headline = format!(
        "From {from:.1} s to {to:.1} s the CPUs did {} as much as usual{}",
        times(burst),
        blame(burst)
    );
    Some(Diagnosis {
        id: BURST.to_owned(),
        severity: Severity::Costly,
        headline,
        explanation: "A stall or a background job shows as a few moments unlike the rest. Its \
                      stacks, against those of the rest of the time, show what it was."
            .to_owned(),
        evidence: vec![
            format!(
                "{:.1} % of the CPU time lies in these {:.1} s",
                100.0 * burst.weight as f64 / event.weight.max(1) as f64,
                to - from
            ),
            format!(
                "{} has {:.0} % of it, and {:.0} % at other times",
                burst.function,
                100.0 * burst.share,
                100.0 * burst.share_elsewhere
            ),
            format!(
                "Next: pagewise diff FILE FILE --range-a rest --range-b {from:.1}s..{to:.1}s shows \
                 that moment against the rest, and the page (-o report.html) its flame graph."
            ),
        ],
        share_of_cpu: None,
        share_of_elapsed: None,
    })
}

fn times(burst: &Burst) -> String {
    match burst.usual {
        0 => "many times".to_owned(),
        usual => format!("{:.1} times", burst.weight as f64 / usual as f64),
    }
}

fn blame(burst: &Burst) -> String {
    match burst.function.as_str() {
        "" => String::new(),
        function => format!(": {function} stands out"),
    }
}

/// One CPU that is busy all the time while the others have little to do.
fn hot_cpu(profile: &Profile, event: &EventProfile) -> Option<Diagnosis> {
    // Without samples of idle CPUs it is unknown how busy one was.
    if event.unit != WeightUnit::Nanoseconds || event.idle == 0 || event.samples < ENOUGH {
        return None;
    }
    let span = profile.span.0.max(1) as f64;
    let busy: Vec<(u16, f64)> = event
        .cpus
        .iter()
        .map(|share| (share.cpu, share.weight as f64 / span))
        .collect();
    let cpus = usize::try_from(profile.host.cpus)
        .unwrap_or(0)
        .max(busy.len());
    let &(cpu, hottest) = busy.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    if cpus < 2 || hottest < HOT {
        return None;
    }
    let all: f64 = busy.iter().map(|(_, share)| share).sum();
    let others = (all - hottest) / (cpus - 1) as f64;
    (others < COOL).then(|| Diagnosis {
        id: "profile.hot_cpu".to_owned(),
        severity: Severity::Costly,
        headline: format!(
            "CPU {cpu} is busy {:.0} % of the time, the other {} on average {:.0} %",
            100.0 * hottest.min(1.0),
            cpus - 1,
            100.0 * others
        ),
        explanation:
            "One thread, or interrupts bound to one CPU, set the pace; the other CPUs cannot help."
                .to_owned(),
        evidence: vec![
            "Next: look at the stacks of that CPU alone; spread the thread's work, or the \
             interrupts (/proc/irq/*/smp_affinity)."
                .to_owned(),
        ],
        share_of_cpu: Some(Estimate::exact(hottest.min(1.0) / cpus as f64)),
        share_of_elapsed: None,
    })
}

/// Samples in step with a timer: the times of busy samples, modulo the tick of 100 to 1000 Hz,
/// accumulate at one phase (a different one for each CPU), although sampling should spread them.
fn lockstep(profile: &Profile, idle: &Idle, event: &EventProfile) -> Option<Diagnosis> {
    const PHASES: usize = 16;
    let frequency = event.frequency?;
    let at = profile.events.iter().position(|e| e.name == event.name)?;
    // Only a frequency close to the tick, or a multiple, can stay in step for long.
    let tick = [100_u64, 250, 1_000]
        .into_iter()
        .find(|tick| frequency.is_multiple_of(*tick))?;
    let period = 1_000_000_000 / tick;
    let mut phases: Vec<[u64; PHASES]> = Vec::new();
    let mut count = 0_u64;
    for sample in profile.samples.iter() {
        if usize::from(sample.event) != at || sample.cpu == NO_CPU || idle.is(sample.stack) {
            continue;
        }
        let phase = (profile.start.0 + sample.time) % period * PHASES as u64 / period;
        let cpu = usize::from(sample.cpu);
        if cpu >= phases.len() {
            phases.resize(cpu + 1, [0; PHASES]);
        }
        phases[cpu][usize::try_from(phase).unwrap_or(0)] += 1;
        count += 1;
    }
    let most = phases.iter().filter_map(|of_cpu| of_cpu.iter().max());
    let share = most.sum::<u64>() as f64 / count.max(1) as f64;
    (count >= ENOUGH && share > 0.5).then(|| Diagnosis {
        id: "profile.lockstep".to_owned(),
        severity: Severity::Note,
        headline: format!("Samples run in lockstep with a timer of {tick} Hz"),
        explanation: "They hit the same moment of each period, so work that a timer starts is \
                      over- or under-counted."
            .to_owned(),
        evidence: vec![
            format!(
                "{:.0} % of the samples lie in one sixteenth of the timer's period",
                100.0 * share
            ),
            format!(
                "Next: record with an odd frequency, such as -F {}.",
                frequency - 1
            ),
        ],
        share_of_cpu: None,
        share_of_elapsed: None,
    })
}

#[cfg(test)]
mod tests {
    use crate::made::Maker;
    use crate::{ProfileRules, summarise};

    fn ids(maker: Maker) -> Vec<String> {
        let findings = summarise(&maker.finish(), &ProfileRules::shipped().unwrap());
        findings.diagnoses.into_iter().map(|d| d.id).collect()
    }

    #[test]
    fn one_busy_cpu_among_idle_ones_is_told() {
        let mut maker = Maker::default();
        for at in 0..990 {
            maker.sample_of(0, 3, at * 10_101_010, "main;work", 10_101_010);
            for cpu in 0..3 {
                maker.sample_of(
                    0,
                    cpu,
                    at * 10_101_010,
                    "start_k;default_idle_k",
                    10_101_010,
                );
            }
        }
        assert_eq!(ids(maker), ["profile.hot_cpu"]);
    }

    #[test]
    fn a_cpu_that_rests_now_and_then_or_has_company_is_not_told() {
        for (rests, others_work) in [(true, false), (false, true)] {
            let mut maker = Maker::default();
            for at in 0..990 {
                for cpu in 0..4 {
                    let works = match cpu {
                        3 => !rests || at % 2 == 0,
                        _ => others_work && at % 2 == 0,
                    };
                    let stack = if works {
                        "main;work"
                    } else {
                        "start_k;default_idle_k"
                    };
                    maker.sample_of(0, cpu, at * 10_101_010, stack, 10_101_010);
                }
            }
            assert!(!ids(maker).contains(&"profile.hot_cpu".to_owned()));
        }
    }

    #[test]
    fn samples_at_a_timers_pace_are_told_and_odd_ones_are_not() {
        let marching = |period: u64| {
            let mut maker = Maker::default();
            for at in 0..500 {
                maker.sample_at(at * period, "main;work", period);
            }
            let mut profile = maker.finish();
            profile.events[0].frequency = Some(1_000_000_000 / period);
            let findings = summarise(&profile, &ProfileRules::shipped().unwrap());
            findings
                .diagnoses
                .into_iter()
                .map(|d| d.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(marching(10_000_000), ["profile.lockstep"]);
        assert!(marching(10_101_010).is_empty());
    }
}
