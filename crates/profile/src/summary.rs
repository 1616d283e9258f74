//! The overview of a profile.

use super::weigh::{Idle, by_group, frame_names, is_cpu, samples_in};
use super::{burst, counters, rules, unknown};
use pagewise_model::answer::{Document, Subject};
use pagewise_model::findings::{Diagnosis, Severity};
use pagewise_model::normal_name::{normal, normal_module};
use pagewise_model::profile::{FrameId, FrameKind, NO_CPU, NodeId, Profile, WeightUnit};
use pagewise_model::profile_findings::{
    CgroupShare, CpuShare, EventProfile, FunctionShare, ProcessShare, ProfileFindings,
    ProfileSummary, StackShare,
};
use pagewise_model::quantity::counted;
use pagewise_model::units::Nanos;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Functions, stacks and processes listed.
const MOST: usize = 30;
/// With fewer samples a share may be off by 30 percentage points (binomial, 95 %): too uncertain
/// for the first line of a summary.
const FEWEST: u64 = 10;

/// The results of a profile, with these rules.
#[must_use]
pub fn summarise(profile: &Profile, rules: &rules::ProfileRules) -> ProfileFindings {
    let idle = Idle::new(profile);
    let mut events: Vec<EventProfile> = occurring(profile)
        .map(|event| summarise_event(profile, event, &idle))
        .collect();
    events.sort_by_key(rank);
    let mut diagnoses = rules.apply(profile, &idle);
    diagnoses.extend(super::anomalies::find(profile, &idle, &events));
    diagnoses.sort_by(|a, b| {
        let share = |d: &Diagnosis| d.share_of_cpu.map_or(0.0, |share| share.value);
        (b.severity.cmp(&a.severity)).then(share(b).total_cmp(&share(a)))
    });
    let verdict = match &profile.cut {
        Some(cut) => headline_without_end(cut, profile, &events, &mut diagnoses),
        None => headline(profile, &events, &diagnoses),
    };
    let summary = ProfileSummary {
        span: if profile.has_times {
            profile.span
        } else {
            Nanos(0)
        },
        counters: counters::rates(profile),
        unknown: unknown::causes(profile, &idle),
        events,
        own_cost: None,
    };
    Document {
        host: profile.host.clone(),
        diagnoses,
        losses: profile.losses.clone(),
        ..Document::new(summary)
            .about(Subject::of_command(profile.command.clone()))
            .with_verdict(verdict)
            .with_notes(profile.notes.clone())
    }
}

/// The events that have samples, of hundreds that may have been asked for.
fn occurring(profile: &Profile) -> impl Iterator<Item = u16> {
    let mut occurs = vec![false; profile.events.len()];
    for event in profile.samples.events.iter() {
        occurs[usize::from(event)] = true;
    }
    (0..)
        .zip(occurs)
        .filter_map(|(event, occurs)| occurs.then_some(event))
}

/// CPU time comes first, then the event with most samples.
fn rank(event: &EventProfile) -> (bool, u64) {
    (!is_cpu(&event.name), u64::MAX - event.samples)
}

fn summarise_event(profile: &Profile, event: u16, idle: &Idle) -> EventProfile {
    let sums = Sums::new(profile, event, idle);
    let own = &sums.own;
    let source = &profile.events[usize::from(event)];
    EventProfile {
        name: source.name.clone(),
        unit: source.unit,
        frequency: source.frequency,
        samples: sums.samples,
        weight: own.iter().sum(),
        idle: sums.idle,
        functions: functions(profile, own),
        stacks: stacks(profile, own),
        processes: processes(profile, &sums.threads),
        cgroups: cgroups(profile, &sums.threads),
        cpus: sums.cpus(),
        burst: burst::find(profile, event, idle),
    }
}

/// What one pass over the samples of an event adds up.
struct Sums {
    samples: u64,
    /// Weight of busy samples by stack.
    own: Vec<u64>,
    /// Weight of idle samples.
    idle: u64,
    /// Weight of busy samples by thread, in the order of their first ones.
    threads: Vec<(u32, u64)>,
    /// Weight of busy samples by CPU, of those that have samples.
    of_cpu: Vec<Option<u64>>,
}

impl Sums {
    fn new(profile: &Profile, event: u16, idle: &Idle) -> Self {
        let mut sums = Self {
            samples: 0,
            own: vec![0; profile.stacks.len()],
            idle: 0,
            threads: Vec::new(),
            of_cpu: Vec::new(),
        };
        let mut places: Vec<u32> = vec![u32::MAX; profile.threads.len()];
        for sample in profile.samples.iter().filter(|s| s.event == event) {
            sums.samples += samples_in(profile, &sample);
            let is_idle = idle.is(sample.stack);
            if sample.cpu != NO_CPU {
                let cpu = usize::from(sample.cpu);
                if cpu >= sums.of_cpu.len() {
                    sums.of_cpu.resize(cpu + 1, None);
                }
                let held = sums.of_cpu[cpu].get_or_insert(0);
                *held += if is_idle { 0 } else { sample.weight };
            }
            if is_idle {
                sums.idle += sample.weight;
                continue;
            }
            sums.own[sample.stack.0 as usize] += sample.weight;
            let Some(place) = places.get_mut(sample.thread as usize) else {
                continue;
            };
            if *place == u32::MAX {
                *place = u32::try_from(sums.threads.len()).unwrap_or(u32::MAX);
                sums.threads.push((sample.thread, 0));
            }
            sums.threads[*place as usize].1 += sample.weight;
        }
        sums
    }

    /// Each observed CPU, including idle ones.
    fn cpus(&self) -> Vec<CpuShare> {
        let known = (0..).zip(&self.of_cpu);
        known
            .filter_map(|(cpu, &weight)| weight.map(|weight| CpuShare { cpu, weight }))
            .collect()
    }
}

/// Functions under one name. Copies that a compiler or a runtime numbers (`work.llvm.294`, a lambda for
/// each call site) are one function: apart, hundreds of them would each be too small to be seen.
struct Functions {
    /// The function of each frame.
    of_frame: Vec<u32>,
    /// The first frame of each function, and how many frames it has.
    frames: Vec<(usize, u32)>,
}

impl Functions {
    fn in_profile(profile: &Profile) -> Self {
        let mut known: FxHashMap<(String, &str, FrameKind), u32> = FxHashMap::default();
        let mut functions = Self {
            of_frame: Vec::with_capacity(profile.frames.len()),
            frames: Vec::new(),
        };
        for (at, frame) in profile.frames.iter().enumerate() {
            let key = (
                normal(&frame.name),
                normal_module(&frame.module),
                frame.kind,
            );
            let next = u32::try_from(functions.frames.len()).unwrap_or(u32::MAX);
            let function = *known.entry(key).or_insert(next);
            functions.of_frame.push(function);
            match functions.frames.get_mut(function as usize) {
                Some((_, count)) => *count += 1,
                None => functions.frames.push((at, 1)),
            }
        }
        functions
    }
}

fn functions(profile: &Profile, own: &[u64]) -> Vec<FunctionShare> {
    let functions = Functions::in_profile(profile);
    let of = |frame: FrameId| functions.of_frame[frame.0 as usize];
    let sums = by_group(profile, own, functions.frames.len(), of);
    let mut order: Vec<usize> = (0..sums.len()).filter(|&at| sums[at].1 > 0).collect();
    order.sort_by_key(|&at| (u64::MAX - sums[at].0, u64::MAX - sums[at].1));
    order.truncate(MOST);
    let share = |at: usize| {
        let (first, copies) = functions.frames[at];
        let frame = &profile.frames[first];
        FunctionShare {
            name: match copies {
                1 => frame.name.to_string(),
                _ => normal(&frame.name),
            },
            module: frame.module.to_string(),
            kind: frame.kind,
            own: sums[at].0,
            total: sums[at].1,
        }
    };
    order.into_iter().map(share).collect()
}

fn stacks(profile: &Profile, own: &[u64]) -> Vec<StackShare> {
    let mut order: Vec<usize> = (0..own.len()).filter(|&at| own[at] > 0).collect();
    order.sort_by_key(|&at| u64::MAX - own[at]);
    order.truncate(MOST);
    let share = |at: usize| StackShare {
        frames: frame_names(profile, NodeId(u32::try_from(at).unwrap_or(u32::MAX))),
        weight: own[at],
    };
    order.into_iter().map(share).collect()
}

/// A process's weight, its threads, and the weight and index of the heaviest one.
type Held = (u64, BTreeSet<i32>, u64, u32);

fn processes(profile: &Profile, by_thread: &[(u32, u64)]) -> Vec<ProcessShare> {
    let mut together: FxHashMap<u32, u64> = FxHashMap::default();
    for &(thread, weight) in by_thread {
        *together.entry(thread).or_default() += weight;
    }
    let mut by_process: BTreeMap<(i32, &str), Held> = BTreeMap::new();
    for (thread, weight) in together {
        let Some(known) = profile.threads.get(thread as usize) else {
            continue;
        };
        // Where a text has only the id of the thread, threads of one name are taken for a process.
        let name = if known.pid == -1 { &*known.comm } else { "" };
        let held = by_process.entry((known.pid, name)).or_default();
        held.0 += weight;
        held.1.insert(known.tid);
        if weight > held.2 {
            (held.2, held.3) = (weight, thread);
        }
    }
    let mut shares: Vec<ProcessShare> = by_process
        .into_iter()
        .map(|((pid, _), (weight, threads, _, heaviest))| ProcessShare {
            pid,
            comm: profile.threads[heaviest as usize].comm.to_string(),
            threads: threads.len() as u64,
            weight,
        })
        .collect();
    shares.sort_by_key(|share| u64::MAX - share.weight);
    shares.truncate(MOST);
    shares
}

fn cgroups(profile: &Profile, by_thread: &[(u32, u64)]) -> Vec<CgroupShare> {
    let mut by_path: BTreeMap<&str, u64> = BTreeMap::new();
    for &(thread, weight) in by_thread {
        let path = &*profile.threads[thread as usize].cgroup;
        if !path.is_empty() {
            *by_path.entry(path).or_default() += weight;
        }
    }
    let share = |(path, weight): (&str, u64)| CgroupShare {
        path: path.to_owned(),
        weight,
    };
    let mut shares: Vec<CgroupShare> = by_path.into_iter().map(share).collect();
    shares.sort_by_key(|share| u64::MAX - share.weight);
    shares.truncate(MOST);
    shares
}

/// The most severe anomaly, otherwise where most of the time was spent.
fn headline(profile: &Profile, events: &[EventProfile], diagnoses: &[Diagnosis]) -> String {
    if let Some(gravest) = diagnoses.first().filter(|d| d.severity >= Severity::Costly) {
        return gravest.headline.clone();
    }
    let Some(event) = events.first() else {
        return "No samples: nothing was on a CPU while this was recorded.".to_owned();
    };
    if event.weight == 0 && event.idle > 0 || is_idle_task(profile, event) {
        return format!("All CPUs were idle in all {} samples.", event.samples);
    }
    let Some(top) = event.functions.first().filter(|_| event.weight > 0) else {
        return without_stacks(profile, event);
    };
    if event.samples < FEWEST {
        let plural = if event.samples == 1 { "" } else { "s" };
        return format!(
            "{} sample{plural} of {}: too few to tell where time goes. Record longer, or with more samples per second (-F).",
            event.samples, event.name
        );
    }
    let share = 100.0 * top.own as f64 / event.weight as f64;
    let place = place(top);
    let what = match (is_cpu(&event.name), event.unit) {
        (true, _) => "CPU time is spent".to_owned(),
        (false, WeightUnit::Nanoseconds) => format!("{} time is spent", event.name),
        (false, WeightUnit::Events) => format!("{} events are", event.name),
        (false, WeightUnit::Samples) => "samples are".to_owned(),
        (false, WeightUnit::Bytes) => "memory is".to_owned(),
    };
    let busy = busy_share(profile, event);
    format!("{share:.0} % of the {what} in {place}{busy}.")
}

/// Where a function is, for the first line.
fn place(function: &FunctionShare) -> String {
    let is_unnamed = function.name.starts_with("[unknown");
    match (is_unnamed, &*function.module) {
        (true, "") => "code that has no name here".to_owned(),
        (true, "[kernel]") => "the kernel itself, whose functions have no names here".to_owned(),
        (true, module) => format!("{module} itself, whose functions have no names here"),
        (false, "") => format!("{} itself", function.name),
        (false, module) => format!("{} ({module}) itself", function.name),
    }
}

/// Fewer samples than this say nothing about a recording of which an unknown part is missing: a
/// share may be off by 10 percentage points (binomial, 95 %).
const FEWEST_WITHOUT_END: u64 = 100;

/// What is missing, then what the rest shows, if that is enough to judge by.
fn headline_without_end(
    cut: &str,
    profile: &Profile,
    events: &[EventProfile],
    diagnoses: &mut Vec<Diagnosis>,
) -> String {
    let samples = events.first().map_or(0, |event| event.samples);
    if samples < FEWEST_WITHOUT_END {
        diagnoses.clear();
        let left = counted(samples, "sample");
        return format!("{cut} What is left has {left}: too few to tell where time goes.");
    }
    let rest = headline(profile, events, diagnoses);
    format!("{cut} In what is left: {rest}")
}

/// Whether CPU time without stacks was that of the idle task alone, which has the id 0 on each CPU.
fn is_idle_task(profile: &Profile, event: &EventProfile) -> bool {
    let mut threads = profile.samples.threads.iter();
    let is_idle = |thread: u32| {
        let thread = profile.threads.get(thread as usize);
        thread.is_some_and(|thread| thread.tid == 0 && &*thread.comm == "swapper")
    };
    is_cpu(&event.name) && event.functions.is_empty() && threads.all(is_idle)
}

/// What samples tell that have neither a call chain nor an address.
fn without_stacks(profile: &Profile, event: &EventProfile) -> String {
    let plural = if event.samples == 1 { "" } else { "s" };
    let most = event.processes.first().map_or(String::new(), |most| {
        let share = 100.0 * most.weight as f64 / event.weight.max(1) as f64;
        format!(": {share:.0} % are in {}", most.comm)
    });
    let others = match profile.samples.stacks.iter().any(|at| at != NodeId::ROOT) {
        true => " Other events have stacks.",
        false => " Record with -g to see where.",
    };
    format!(
        "{} sample{plural} of {}, without stacks{most}.{others}",
        event.samples, event.name
    )
}

/// How busy the CPUs were, if known.
fn busy_share(profile: &Profile, event: &EventProfile) -> String {
    let idle_known = event.idle > 0;
    if !idle_known || event.unit != WeightUnit::Nanoseconds || profile.span.0 == 0 {
        return String::new();
    }
    let all = (event.weight + event.idle) as f64;
    format!(
        "; the CPUs were busy {:.0} % of the time",
        100.0 * event.weight as f64 / all
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Maker;
    use pagewise_formats::perf_script;

    fn verdict(text: &str) -> String {
        let profile = perf_script::read(text.as_bytes()).expect("memory is readable");
        let rules = rules::ProfileRules::shipped().expect("no mistake");
        summarise(&profile, &rules).verdict
    }

    #[test]
    fn only_the_idle_task_makes_cpus_idle() {
        let event = "perf 11618 [000]  2320.674918: sched:sched_waking: comm=wl pid=18 prio=0\n\
            wl 18 [000]  2320.674928: sched:sched_waking: comm=perf pid=7 prio=0\n\
            wl 18 [000]  2320.674938: sched:sched_waking: comm=perf pid=7 prio=0\n";
        let verdict_of_events = verdict(event);
        assert!(
            verdict_of_events
                .contains("3 samples of sched:sched_waking, without stacks: 67 % are in wl"),
            "{verdict_of_events}"
        );
        let idle = "swapper 0 [000]  2320.674918:  10 cpu-clock:\n\nswapper 0 [001]  2320.684918:  10 cpu-clock:\n\n";
        assert_eq!(verdict(idle), "All CPUs were idle in all 2 samples.");
    }

    #[test]
    fn a_recording_without_its_end_says_so_first() {
        let rules = rules::ProfileRules::shipped().expect("no mistake");
        let with = |samples: u64| {
            let mut maker = Maker::default();
            (1..=samples).for_each(|at| maker.sample_at(at, "main;spin_lock_k", 1));
            let mut profile = maker.finish();
            profile.cut = Some("This recording is cut off: 33 MB of 34 MB are missing.".to_owned());
            summarise(&profile, &rules)
        };
        for (samples, rest) in [(1, "1 sample: too few"), (48, "48 samples: too few")] {
            let found = with(samples);
            let verdict = &found.verdict;
            assert!(
                verdict.starts_with("This recording is cut off") && verdict.contains(rest),
                "{verdict}"
            );
            assert_eq!(found.diagnoses, []);
        }
        let verdict = with(500).verdict;
        assert!(
            verdict.starts_with("This recording is cut off"),
            "{verdict}"
        );
        assert!(verdict.contains("In what is left: "), "{verdict}");
    }

    #[test]
    fn copies_of_a_function_are_one_row() {
        let mut maker = Maker::default();
        for copy in 0..20 {
            let (inner, outer) = (copy, copy + 100);
            let stack = format!("main;F$$Lambda${outer}/0x00007f3c1c0a.run;F$$Lambda${inner}.run");
            maker.sample_at(1, &stack, 3);
            maker.sample_at(1, "main;work", 2);
        }
        let rules = rules::ProfileRules::shipped().expect("no mistake");
        let found = summarise(&maker.finish(), &rules);
        let rows = &found.evidence.events[0].functions;
        let row = |row: &FunctionShare| (row.name.clone(), row.own, row.total);
        let rows: Vec<_> = rows.iter().map(row).collect();
        assert_eq!(rows[0], ("F$$Lambda.run".to_owned(), 60, 60));
        assert_eq!(rows[1], ("work".to_owned(), 40, 40));
    }

    #[test]
    fn code_without_names_is_called_by_its_file() {
        let function = |name: &str, module: &str| FunctionShare {
            name: name.to_owned(),
            module: module.to_owned(),
            kind: FrameKind::User,
            own: 1,
            total: 1,
        };
        let unnamed = "itself, whose functions have no names here";
        for (name, module, expected) in [
            ("[unknown in app]", "app", format!("app {unnamed}")),
            ("[unknown]", "libc.so.6", format!("libc.so.6 {unnamed}")),
            (
                "[unknown in [kernel]]",
                "[kernel]",
                format!("the kernel {unnamed}"),
            ),
            ("[unknown]", "", "code that has no name here".to_owned()),
            ("work", "app", "work (app) itself".to_owned()),
            ("work", "", "work itself".to_owned()),
        ] {
            assert_eq!(place(&function(name, module)), expected);
        }
    }

    #[test]
    fn folded_counts_are_samples() {
        let mut maker = Maker::default();
        maker.sample_at(1, "main;work", 30);
        let mut profile = maker.finish();
        profile.events[0].unit = WeightUnit::Samples;
        let rules = rules::ProfileRules::shipped().expect("no mistake");
        let found = summarise(&profile, &rules);
        assert_eq!(found.evidence.events[0].samples, 30);
        assert!(found.verdict.starts_with("100 %"), "{}", found.verdict);
    }
}
