//! From a recording's events to causes and names: the one path used by `doctor`, `report` and all
//! other readers of recordings.

use crate::plan::{self, Rules};
use crate::withheld::{withhold_judgement, withhold_without_end};
use pagewise_faults::{Attribution, Attributor};
use pagewise_formats::perf_data::{Cut, PerfData, command_line};
use pagewise_model::contention::Contention;
use pagewise_model::event::{Event, EventKind, EventSource};
use pagewise_model::findings::Findings;
use pagewise_model::host::HostSnapshot;
use pagewise_model::loss::Losses;
use pagewise_model::memory::TouchedMemory;
use pagewise_model::profile::{CounterSeries, Observed, Profile};
use pagewise_model::profile_findings::ProfileFindings;
use pagewise_model::recording::{Collection, Counter, Sidecar};
use pagewise_model::run::Ending;
use pagewise_model::secrets;
use pagewise_model::stack::FrameKey;
use pagewise_model::symbol::{NamedList, SymbolTable};
use pagewise_model::units::Nanos;
use pagewise_profile::{ProfileCollector, ProfileRules, add_samples, summarise};
use pagewise_rules::RuleError;
use std::path::Path;

/// The code that ran: call chains and names.
pub trait Code {
    /// Takes the next event. For a sample with a stack copy, returns the user frames, innermost
    /// first; `None` for all others and if unwinding got no further than the sample itself.
    fn follow(&mut self, event: &Event<'_>) -> Option<Vec<u64>>;

    /// The name of each address, or why it has none.
    fn names(&mut self, keys: &[FrameKey]) -> NamedList;

    /// The reason for missing names, if the user can fix it.
    fn note(&self) -> Option<String>;
}

/// A recording, read once from beginning to end.
#[derive(Debug)]
pub struct Analysis {
    attribution: Attribution,
    names: SymbolTable,
    sidecar: Sidecar,
    /// Whether CPU times and exact counts are known: only our own recordings contain them.
    knows_cost: bool,
    /// What to say first of a recording without its end.
    cut: Option<String>,
    profile: Option<Profile>,
}

impl Analysis {
    /// Where CPU time and other events were spent, if the recording has samples of them.
    #[must_use]
    pub fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref()
    }

    /// The same, consuming the analysis.
    #[must_use]
    pub fn into_profile(self) -> Option<Profile> {
        self.profile
    }

    /// The profile, if it has samples.
    #[must_use]
    pub fn sampled(&self) -> Option<&Profile> {
        self.profile().filter(|profile| !profile.samples.is_empty())
    }

    /// What the samples show by themselves.
    ///
    /// # Errors
    /// When a built-in rule has a mistake.
    pub fn of_samples(&self, profile: &Profile) -> Result<ProfileFindings, RuleError> {
        Ok(self.summary(profile, &ProfileRules::shipped()?))
    }

    fn summary(&self, profile: &Profile, rules: &ProfileRules) -> ProfileFindings {
        let mut summary = summarise(profile, rules);
        summary.own_cost = self.own_cost();
        summary
    }

    /// Estimated nanoseconds that recording cost, if the recorder measured it.
    #[must_use]
    pub fn own_cost(&self) -> Option<Nanos> {
        self.knows_cost.then_some(self.sidecar.collection.own_cost)
    }

    /// Who touched the private memory first that was there at each look.
    #[must_use]
    pub fn touched(&self) -> Vec<TouchedMemory> {
        pagewise_faults::touched(&self.attribution, &self.names, &self.sidecar)
    }

    /// Number of fault records.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.attribution.tally.samples
    }

    /// Share of the faults whose address was not recorded.
    fn without_address(&self) -> f64 {
        let tally = &self.attribution.tally;
        tally.without_address / tally.all.sum.max(1.0)
    }

    /// Files with reads at random positions that threads waited for, if the time of a read would
    /// show whether reading fewer pages is better.
    pub fn read_at_random(&self) -> impl Iterator<Item = &Path> {
        let files = self.attribution.file_reads.iter();
        let message = files.filter(|file| plan::is_read_at_random(file));
        message.map(|file| Path::new(&file.path))
    }

    /// Stores the time of reading single pages of those files (`page_reads` of the surroundings).
    pub fn learn(&mut self, page_reads: Vec<(String, Nanos)>) {
        self.sidecar.surroundings.page_reads = page_reads;
    }

    /// The complete findings, those of its samples included, with advice for the recorded machine.
    ///
    /// # Errors
    /// When a built-in rule has a mistake.
    pub fn findings(&self) -> Result<Findings, RuleError> {
        let rules = Rules::shipped()?;
        let mut findings = crate::findings(
            &self.attribution,
            &self.names,
            &self.sidecar,
            self.profile.as_ref(),
            &rules,
            &self.sidecar.surroundings,
        );
        if !self.knows_cost {
            withhold_judgement(&mut findings, self.without_address());
        }
        if let Some(cut) = &self.cut {
            withhold_without_end(&mut findings, cut, self.samples());
        }
        if let Some(profile) = self.sampled() {
            let rules = ProfileRules::shipped()?;
            let rules = match self.knows_cost {
                true => rules.beside_faults(),
                false => rules,
            };
            add_samples(&mut findings, self.summary(profile, &rules));
        }
        if let Some(concluded) = self.sidecar.concluded.clone() {
            findings.verdict = concluded.verdict;
            findings.diagnoses = concluded.diagnoses;
            findings.advice = concluded.advice;
            findings.proof = Some(concluded.proof);
        }
        Ok(findings)
    }
}

/// Reads a recording: attributes its faults, unwinds its stack copies, names its code. `done` is
/// called with the byte up to which the file is no longer needed.
#[must_use]
pub fn analyse(data: &PerfData<'_>, code: &mut impl Code, done: impl FnMut(usize)) -> Analysis {
    let own = data.sidecar().cloned();
    let knows_cost = own.is_some();
    let is_own = data.is_own();
    let mut sidecar = own.unwrap_or_else(|| without_sidecar(data));
    let cut = data.cut().map(Cut::sentence);
    let mut attributor = Attributor::new(data.sources(), &sidecar);
    let mut collector = profiled(data.sources(), is_own);
    let reading = data.read(
        |event| {
            let unwound = code.follow(&event);
            attributor.event_with_chain(&event, unwound.as_deref());
            if let Some(collector) = &mut collector {
                collector.event_with_chain(&event, unwound.as_deref());
            }
        },
        done,
    );
    let attribution = attributor.finish();
    if let Some(collector) = &mut collector {
        collector.close();
    }
    let (names, of_profile) = named(code, &attribution.frame_keys(), collector.as_ref());
    if !knows_cost {
        complete(&mut sidecar, &attribution);
    }
    // Losses found on reading were already counted on writing.
    let recorded = sidecar.losses.clone();
    sidecar.losses.take_in(&reading.losses);
    let message: Vec<String> = reading.notes().into_iter().chain(code.note()).collect();
    sidecar.collection.notes.extend(message.iter().cloned());
    let counters = std::mem::take(&mut sidecar.counters);
    let profile = collector.map(|collector| {
        let profile = collector.finish(&of_profile);
        Profile {
            counters: series(&counters, profile.start),
            began_unix: began_unix(&sidecar, profile.start),
            command: sidecar.command.clone(),
            observed: match knows_cost {
                true => observed(&sidecar),
                false => command_line::observed(&data.origin().cmdline),
            },
            contention: contention(&sidecar),
            host: sidecar.host.clone(),
            losses: both(&sidecar.losses, &profile.losses),
            notes: match is_own {
                true => sidecar.collection.notes.iter(),
                false => message.iter(),
            }
            .chain(&profile.notes)
            .cloned()
            .collect(),
            cut: cut.clone(),
            ..profile
        }
    });
    let mut read = reading.losses;
    read.merge(&attribution.losses);
    sidecar.losses = recorded;
    sidecar.losses.take_in(&read);
    Analysis {
        attribution,
        names,
        sidecar,
        knows_cost,
        cut,
        profile,
    }
}

/// The names of these addresses and of a profile's, asked for together, so that each file is read once.
fn named(
    code: &mut impl Code,
    of_faults: &[FrameKey],
    collector: Option<&ProfileCollector>,
) -> (SymbolTable, NamedList) {
    let of_profile = collector.map_or(&[][..], ProfileCollector::frame_keys);
    let mut names = code.names(&[of_faults, of_profile].concat());
    let of_profile = names.split_off(of_faults.len());
    (SymbolTable::new(of_faults, names), of_profile)
}

/// The profile of a recording, whatever was sampled, without an analysis of its faults.
#[must_use]
pub fn profile(data: &PerfData<'_>, code: &mut impl Code, done: impl FnMut(usize)) -> Profile {
    let own = data.sidecar().cloned();
    let sidecar = own.unwrap_or_else(|| without_sidecar(data));
    let mut collector = profiled(data.sources(), data.is_own())
        .unwrap_or_else(|| ProfileCollector::new(data.sources(), |_| true));
    let reading = data.read(
        |event| {
            let unwound = code.follow(&event);
            collector.event_with_chain(&event, unwound.as_deref());
        },
        done,
    );
    collector.close();
    let named = code.names(collector.frame_keys());
    let profile = collector.finish(&named);
    let mut losses = sidecar.losses.clone();
    losses.take_in(&reading.losses);
    Profile {
        began_unix: began_unix(&sidecar, profile.start),
        command: sidecar.command,
        host: sidecar.host,
        losses: both(&losses, &profile.losses),
        notes: reading
            .notes()
            .into_iter()
            .chain(code.note())
            .chain(profile.notes)
            .collect(),
        cut: data.cut().map(Cut::sentence),
        ..profile
    }
}

/// Unix time at this value of the recorder's clock; other tools' recordings do not tell it.
fn began_unix(sidecar: &Sidecar, clock: Nanos) -> Option<Nanos> {
    if sidecar.started_unix_ms == 0 {
        return None;
    }
    let started = sidecar.started_unix_ms.checked_mul(1_000_000)?;
    let since = i128::from(clock.0) - i128::from(sidecar.started_clock.0);
    let began = u64::try_from(i128::from(started) + since);
    began.ok().map(Nanos)
}

fn both(some: &Losses, others: &Losses) -> Losses {
    let mut all = some.clone();
    all.merge(others);
    all
}

/// The subject of our own recording.
fn observed(sidecar: &Sidecar) -> Observed {
    match (sidecar.collection.whole_machine, sidecar.ending) {
        (true, _) => Observed::Machine,
        (false, Ending::Running) => Observed::Processes,
        (false, _) => Observed::Run(Some(sidecar.cost.cpu()).filter(|time| time.0 > 0)),
    }
}

/// How much the CPUs were shared, including the program's own context switches.
fn contention(sidecar: &Sidecar) -> Option<Contention> {
    let (cost, cpu) = (&sidecar.cost, sidecar.cost.cpu().as_secs_f64());
    let counted = cost.voluntary_switches + cost.involuntary_switches > 0;
    let found = Contention {
        preemptions: (counted && cpu > 0.0).then(|| cost.involuntary_switches as f64 / cpu),
        ..sidecar.contention.unwrap_or_default()
    };
    (found != Contention::default()).then_some(found)
}

/// The counters on the profile's clock. Counts before its first sample are left out: of a reading
/// that spans it, the part before.
fn series(counters: &[Counter], start: Nanos) -> Vec<CounterSeries> {
    let one = |counter: &Counter| {
        let points = &counter.points;
        // Readings are at equal distances, so the first one covers as much time as the second.
        let first_step = points.windows(2).next().map(|two| two[1].0 - two[0].0);
        let first_begin = points.first().zip(first_step).map(|(p, step)| p.0 - step);
        let mut begin = first_begin.unwrap_or(start);
        let mut kept = Vec::with_capacity(points.len());
        for &(time, count) in points {
            let whole = (time - begin).0.max(1);
            let within = (time - begin.max(start)).0;
            if within > 0 {
                kept.push(((time - start).0, count * (within as f64 / whole as f64)));
            }
            begin = time;
        }
        CounterSeries {
            name: counter.name.clone(),
            counted: counter.counted,
            points: kept,
        }
    };
    counters.iter().map(one).collect()
}

/// A collector for the part to show as a profile: everything, if no faults were recorded; next to
/// faults, CPU time or waits if they were recorded. Memory calls and locks of our own recordings
/// are evidence for faults, and sampled too unevenly for a profile.
fn profiled(sources: &[EventSource], is_own: bool) -> Option<ProfileCollector> {
    let is_evidence = |source: &EventSource| match &source.kind {
        EventKind::Tracepoint(name) if is_own => {
            name.starts_with("syscalls:") || name.starts_with("lock:")
        }
        _ => false,
    };
    let is_profile = |source: &EventSource| {
        !is_about_faults(&source.kind) && source.kind != EventKind::Dummy && !is_evidence(source)
    };
    if sources.iter().any(is_profile) {
        return Some(ProfileCollector::new(sources, |source| {
            !is_evidence(source)
        }));
    }
    let has_faults = sources.iter().any(|source| is_about_faults(&source.kind));
    (!has_faults).then(|| ProfileCollector::new(sources, |_| true))
}

/// Whether an event is about faults.
#[must_use]
pub fn is_about_faults(kind: &EventKind) -> bool {
    match kind {
        EventKind::PageFault | EventKind::MinorFault | EventKind::MajorFault => true,
        EventKind::Tracepoint(name) => name.starts_with("exceptions:page_fault"),
        EventKind::Cpu | EventKind::Dummy | EventKind::Other(_) => false,
    }
}

/// Metadata of a recording by perf and other tools, or of one of ours without its end: the machine,
/// and the command after `--`.
fn without_sidecar(data: &PerfData<'_>) -> Sidecar {
    let origin = data.origin();
    let note = match data.is_own() {
        true => {
            "CPU time, memory use and exact numbers of faults are unknown: the recorder writes them at the end of the file, which is missing."
        }
        false => {
            "Recorded by another tool: CPU time, memory use and exact numbers of faults are unknown. pagewise record gives them."
        }
    };
    let own = origin.cmdline.iter().skip_while(|word| *word != "--");
    Sidecar {
        command: secrets::masked(&own.skip(1).cloned().collect::<Vec<_>>()),
        host: HostSnapshot {
            hostname: origin.hostname.clone(),
            kernel: origin.os_release.clone(),
            architecture: origin.arch.clone(),
            cpu: origin.cpu_desc.clone(),
            cpus: origin.cpus_online,
            memory_bytes: origin.total_mem_kib << 10,
            ..HostSnapshot::default()
        },
        collection: Collection {
            mode: "sampled".to_owned(),
            notes: vec![note.to_owned()],
            ..Collection::default()
        },
        ..Sidecar::default()
    }
}

/// Adds data that files of other tools contain only in their events: the process that faulted most,
/// the time span of the events, and the number of faults that the samples stand for.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of faults, far below 2^53 and never negative"
)]
fn complete(sidecar: &mut Sidecar, attribution: &Attribution) {
    let threads = attribution.threads.iter();
    let busiest = threads.max_by(|a, b| a.faults.total_cmp(&b.faults));
    sidecar.pid = busiest.map_or(0, |thread| thread.pid);
    sidecar.cost.wall = attribution.span;
    let all = attribution.tally.all.sum;
    let major = attribution.tally.major.sum.min(all);
    sidecar.cost.minor_faults = (all - major).round() as u64;
    sidecar.cost.major_faults = major.round() as u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_begin_with_the_first_sample() {
        let counter = Counter {
            name: "task-clock".to_owned(),
            counted: 1.0,
            points: vec![
                (Nanos(1_000), 50.0),
                (Nanos(1_100), 60.0),
                (Nanos(1_200), 80.0),
                (Nanos(1_300), 90.0),
            ],
        };
        let at = |start| {
            series(std::slice::from_ref(&counter), Nanos(start))[0]
                .points
                .clone()
        };
        assert_eq!(at(1_175), [(25, 20.0), (125, 90.0)]);
        assert_eq!(at(950), [(50, 25.0), (150, 60.0), (250, 80.0), (350, 90.0)]);
        assert_eq!(at(2_000), []);
        let single = Counter {
            points: vec![(Nanos(500), 7.0)],
            ..counter
        };
        assert_eq!(series(&[single], Nanos(400))[0].points, [(100, 7.0)]);
    }
}
