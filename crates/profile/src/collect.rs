//! From a recording's events to a profile.

use super::functions::StackBuilder;
use pagewise_model::event::{
    Callchain, Event, EventKind, EventSource, PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER, Sample,
    Sampling,
};
use pagewise_model::implausible;
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::outliers::WeightSum;
use pagewise_model::profile::{
    NO_CPU, NodeId, Profile, ProfileEvent, ProfileSample, ProfileThread, Samples, WeightUnit,
};
use pagewise_model::stack::{FrameKey, StackId, StackTable};
use pagewise_model::symbol::NamedList;
use pagewise_model::units::Nanos;
use rustc_hash::FxHashMap;

/// Takes a recording's events in time order, and gives a [`Profile`] once its addresses have names.
pub struct ProfileCollector {
    /// The target of each source; `None` for those not used in a profile.
    sources: Vec<Option<Target>>,
    events: Vec<ProfileEvent>,
    event_numbers: FxHashMap<String, usize>,
    stacks: StackTable,
    samples: Samples,
    threads: Vec<ProfileThread>,
    thread_numbers: FxHashMap<(i32, i32, Box<str>, u64), u32>,
    comms: FxHashMap<i32, Box<str>>,
    /// Control groups by id, and that of each of `threads`; 0 if not known.
    cgroups: FxHashMap<u64, Box<str>>,
    thread_cgroups: Vec<u64>,
    /// Threads by id and current name, with their current control group: a cache for
    /// `thread_numbers`.
    current: FxHashMap<i32, (u64, u32)>,
    /// Threads off the CPU: since when, where, how.
    away: FxHashMap<i32, Away>,
    first: Option<Nanos>,
    last: Nanos,
    chain: Vec<u8>,
    weights: WeightSum,
    losses: Losses,
}

/// How samples of a source are used.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// Samples of an event.
    Event(u16),
    /// Beginnings of times off the CPU: blocking and preemption are separate events.
    Switch { blocked: u16, preempted: u16 },
}

#[derive(Clone, Copy, Debug)]
struct Away {
    since: Nanos,
    stack: StackId,
    cpu: u16,
    events: (u16, u16),
    cgroup: u64,
    preempted: bool,
}

/// Most kinds of events: their numbers have two bytes.
const MOST_EVENTS: usize = u16::MAX as usize;
/// perf's names of events that count nanoseconds of CPU time.
const CLOCKS: [&str; 2] = ["cpu-clock", "task-clock"];
/// Waits are distinguished from other samples by the switch records.
const BLOCKED: &str = "off-cpu (blocked)";
const PREEMPTED: &str = "off-cpu (waiting for a CPU)";

impl ProfileCollector {
    /// A collector of samples of the sources that `wanted` accepts.
    #[must_use]
    pub fn new(sources: &[EventSource], wanted: impl Fn(&EventSource) -> bool) -> Self {
        let mut collector = Self {
            sources: Vec::with_capacity(sources.len()),
            events: Vec::new(),
            event_numbers: FxHashMap::default(),
            stacks: StackTable::default(),
            samples: Samples::default(),
            threads: Vec::new(),
            thread_numbers: FxHashMap::default(),
            comms: FxHashMap::default(),
            cgroups: FxHashMap::default(),
            thread_cgroups: Vec::new(),
            current: FxHashMap::default(),
            away: FxHashMap::default(),
            first: None,
            last: Nanos(0),
            chain: Vec::new(),
            weights: WeightSum::default(),
            losses: Losses::default(),
        };
        let has_switches = sources.iter().any(|source| source.has_switches);
        for source in sources {
            let useful = source.kind != EventKind::Dummy && wanted(source);
            let target = useful
                .then(|| collector.target(source, has_switches))
                .flatten();
            collector.sources.push(target);
        }
        collector
    }

    fn target(&mut self, source: &EventSource, has_switches: bool) -> Option<Target> {
        let each_switch =
            source.name.starts_with("context-switches") && source.sampling == Sampling::Every(1);
        if each_switch && has_switches {
            return Some(Target::Switch {
                blocked: self.event(BLOCKED, WeightUnit::Nanoseconds, source)?,
                preempted: self.event(PREEMPTED, WeightUnit::Nanoseconds, source)?,
            });
        }
        let clock = CLOCKS.iter().any(|name| source.name.starts_with(name));
        let unit = match clock {
            true => WeightUnit::Nanoseconds,
            false => WeightUnit::Events,
        };
        self.event(&source.name, unit, source).map(Target::Event)
    }

    fn event(&mut self, name: &str, unit: WeightUnit, source: &EventSource) -> Option<u16> {
        let name = &*ProfileEvent::on_any_core(name);
        let next = self.events.len();
        let at = *self.event_numbers.entry(name.to_owned()).or_insert(next);
        if at == next {
            self.events.push(ProfileEvent {
                name: name.to_owned(),
                unit,
                frequency: match source.sampling {
                    Sampling::Frequency(hz) => Some(hz),
                    Sampling::Every(period) if unit == WeightUnit::Nanoseconds && period > 1 => {
                        Some(1_000_000_000 / period)
                    }
                    Sampling::Every(_) | Sampling::WithLeader => None,
                },
            });
        }
        u16::try_from(at).ok().filter(|_| at < MOST_EVENTS)
    }

    /// Takes the next event. `user_chain` replaces the user part of a sample's call chain: the
    /// result of unwinding its stack copy, innermost first.
    pub fn event_with_chain(&mut self, event: &Event<'_>, user_chain: Option<&[u64]>) {
        match event {
            Event::Sample(sample) => self.sample(sample, user_chain),
            Event::Comm { tid, name, .. } => {
                self.comms
                    .insert(*tid, String::from_utf8_lossy(name).into());
                self.current.remove(tid);
            }
            Event::Fork {
                tid, parent_tid, ..
            } => {
                if let Some(name) = self.comms.get(parent_tid).cloned() {
                    self.comms.insert(*tid, name);
                }
                self.current.remove(tid);
            }
            Event::Exit { tid, .. } => {
                self.away.remove(tid);
            }
            Event::Cgroup { id, path, .. } => {
                self.cgroups
                    .insert(*id, String::from_utf8_lossy(path).into());
            }
            &Event::Switch {
                pid,
                tid,
                time,
                out,
                preempted,
            } => {
                if out {
                    if let Some(away) = self.away.get_mut(&tid) {
                        away.preempted = preempted;
                    }
                } else {
                    self.back(pid, tid, time);
                }
            }
            _ => {}
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, user_chain: Option<&[u64]>) {
        let target = self.sources.get(usize::from(sample.source.0));
        let Some(target) = target.copied().flatten() else {
            return;
        };
        let start = *self.first.get_or_insert(sample.time);
        self.last = self.last.max(sample.time);
        let stack = self.stack(sample, user_chain);
        let cpu = sample
            .cpu
            .and_then(|cpu| u16::try_from(cpu).ok())
            .unwrap_or(NO_CPU);
        match target {
            Target::Switch { blocked, preempted } => {
                let away = Away {
                    since: sample.time,
                    stack,
                    cpu,
                    events: (blocked, preempted),
                    cgroup: sample.cgroup,
                    preempted: false,
                };
                self.away.insert(sample.tid, away);
            }
            Target::Event(event) => {
                let thread = self.thread(sample.pid, sample.tid, sample.cgroup);
                self.push(ProfileSample {
                    time: (sample.time - start).0,
                    thread,
                    cpu,
                    event,
                    weight: sample.period,
                    stack: NodeId(stack.0),
                });
            }
        }
    }

    /// A thread is on the CPU again: the time it was away is the weight of the place where it left.
    fn back(&mut self, pid: i32, tid: i32, time: Nanos) {
        let Some(away) = self.away.remove(&tid) else {
            return;
        };
        let start = *self.first.get_or_insert(away.since);
        self.last = self.last.max(time);
        let thread = self.thread(pid, tid, away.cgroup);
        self.push(ProfileSample {
            time: (away.since - start).0,
            thread,
            cpu: away.cpu,
            event: if away.preempted {
                away.events.1
            } else {
                away.events.0
            },
            weight: (time - away.since).0,
            stack: NodeId(away.stack.0),
        });
    }

    fn push(&mut self, sample: ProfileSample) {
        match self.weights.admits(sample.weight) {
            true => self.samples.push(sample),
            false => self.losses.add(LossKind::ImpossibleWeight, 1),
        }
    }

    /// The number of a sample's stack. Without a chain, the sampled address is the stack.
    fn stack(&mut self, sample: &Sample<'_>, user_chain: Option<&[u64]>) -> StackId {
        if let Some(user) = user_chain {
            self.chain.clear();
            let mut words = sample.callchain.words().peekable();
            if words.peek() == Some(&PERF_CONTEXT_KERNEL) {
                for word in words.take_while(|&word| word != PERF_CONTEXT_USER) {
                    self.chain.extend_from_slice(&word.to_le_bytes());
                }
            }
            self.chain
                .extend_from_slice(&PERF_CONTEXT_USER.to_le_bytes());
            for word in user {
                self.chain.extend_from_slice(&word.to_le_bytes());
            }
            return self
                .stacks
                .intern(sample.pid, Callchain::from_le_bytes(&self.chain));
        }
        if sample.callchain.is_empty() {
            let words = [sample.mode.marker(), sample.ip].map(u64::to_le_bytes);
            return self
                .stacks
                .intern(sample.pid, Callchain::from_le_bytes(words.as_flattened()));
        }
        self.stacks.intern(sample.pid, sample.callchain)
    }

    fn thread(&mut self, pid: i32, tid: i32, cgroup: u64) -> u32 {
        if let Some(&(known_cgroup, known)) = self.current.get(&tid) {
            // An event without a group does not change it.
            if cgroup == 0 || cgroup == known_cgroup {
                return known;
            }
        }
        let comm = match (self.comms.get(&tid), tid) {
            (Some(name), _) => name.clone(),
            (None, 0) => "swapper".into(),
            (None, _) => self.comms.get(&pid).cloned().unwrap_or_default(),
        };
        let next = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        let number = *self
            .thread_numbers
            .entry((pid, tid, comm.clone(), cgroup))
            .or_insert(next);
        if number == next {
            self.threads.push(ProfileThread {
                pid,
                tid,
                comm,
                cgroup: Box::default(),
            });
            self.thread_cgroups.push(cgroup);
        }
        self.current.insert(tid, (cgroup, number));
        number
    }

    /// Number of samples so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// No event follows: frees what only they need, before names take memory.
    pub fn close(&mut self) {
        self.stacks.close();
        self.away = FxHashMap::default();
        self.thread_numbers = FxHashMap::default();
        self.current = FxHashMap::default();
    }

    /// Every address that needs a name, once each.
    #[must_use]
    pub fn frame_keys(&self) -> &[FrameKey] {
        self.stacks.keys()
    }

    /// The profile, with the names of [`Self::frame_keys`].
    #[must_use]
    pub fn finish(self, named: &NamedList) -> Profile {
        let mut builder = StackBuilder::new(named);
        let nodes = builder.stacks(&self.stacks);
        drop(self.stacks);
        let mut samples = self.samples;
        let node = |stack: NodeId| nodes.get(stack.0 as usize).copied();
        samples
            .stacks
            .map(|stack| node(stack).unwrap_or(NodeId::ROOT));
        samples.sort_by_time();
        let mut threads = self.threads;
        for (thread, id) in threads.iter_mut().zip(&self.thread_cgroups) {
            thread.cgroup = self.cgroups.get(id).cloned().unwrap_or_default();
        }
        let mut profile = Profile {
            frames: builder.frames.into_frames(),
            stacks: builder.tree,
            threads,
            events: self.events,
            samples,
            start: self.first.unwrap_or_default(),
            span: self.last - self.first.unwrap_or_default(),
            has_times: true,
            losses: self.losses,
            ..Profile::default()
        };
        implausible::set_apart(&mut profile);
        profile
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::event::{CpuMode, SourceIndex};
    use pagewise_model::symbol::{Name, Unnamed};

    fn source(name: &str, kind: EventKind, sampling: Sampling) -> EventSource {
        EventSource {
            name: name.to_owned(),
            kind,
            sampling,
            has_callchain: true,
            user_only: false,
            has_switches: false,
        }
    }

    fn words(addresses: &[u64]) -> Vec<u8> {
        addresses
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    fn sample(source: u16, tid: i32, time: u64, chain: &[u8]) -> Event<'_> {
        Event::Sample(Sample {
            source: SourceIndex(source),
            pid: 7,
            tid,
            time: Nanos(time),
            cpu: Some(1),
            cgroup: 0,
            ip: 5,
            mode: CpuMode::User,
            address: 0,
            period: 10,
            callchain: Callchain::from_le_bytes(chain),
            raw: &[],
            user_stack: None,
        })
    }

    fn named(address: u64, functions: &[&str]) -> (FrameKey, Name) {
        let key = FrameKey {
            pid: 7,
            mode: CpuMode::User,
            address,
        };
        let name = Name::Known {
            functions: functions.iter().map(|&name| name.to_owned()).collect(),
            module: "program".to_owned(),
        };
        (key, name)
    }

    fn with_names(mut collector: ProfileCollector, table: &[(FrameKey, Name)]) -> Profile {
        collector.close();
        let mut named = NamedList::default();
        for key in collector.frame_keys() {
            let name = table.iter().find(|(of, _)| of == key);
            let name = name.map_or(
                Name::Unknown {
                    reason: Unnamed::NoMapping,
                    module: String::new(),
                },
                |(_, name)| name.clone(),
            );
            named.of.push(named.names.intern(name));
        }
        collector.finish(&named)
    }

    #[test]
    fn stacks_get_names_and_inlined_calls_frames_of_their_own() {
        let sources = [source(
            "cpu-clock",
            EventKind::Cpu,
            Sampling::Every(10_000_000),
        )];
        let mut collector = ProfileCollector::new(&sources, |_| true);
        // The caller has the name `main` at the call, before the address that it returns to.
        let chain = words(&[1, 3]);
        let name = Event::Comm {
            pid: 7,
            tid: 7,
            time: Nanos(90),
            name: b"worker",
            exec: true,
        };
        collector.event_with_chain(&name, None);
        collector.event_with_chain(&sample(0, 7, 100, &chain), None);
        collector.event_with_chain(&sample(0, 7, 150, &chain), Some(&[2]));
        let table = [named(1, &["tiny", "leaf"]), named(2, &["main"])];
        let profile = with_names(collector, &table);
        let names = |node| -> Vec<&str> {
            let frames = profile.stacks.frames(node);
            frames
                .map(|frame| &*profile.frames[frame.0 as usize].name)
                .collect()
        };
        assert_eq!(
            names(profile.samples.stacks.at(0)),
            ["tiny", "leaf", "main"]
        );
        assert_eq!(names(profile.samples.stacks.at(1)), ["main"]);
        assert_eq!(profile.samples.times, [0, 50]);
        assert_eq!(&*profile.threads[0].comm, "worker");
        assert_eq!(profile.events[0].unit, WeightUnit::Nanoseconds);
        assert_eq!(profile.events[0].frequency, Some(100));
    }

    #[test]
    fn a_thread_is_listed_once_for_each_control_group() {
        let kind = EventKind::Other("cpu-clock".to_owned());
        let sources = [source("cpu-clock", kind, Sampling::Every(1))];
        let mut collector = ProfileCollector::new(&sources, |_| true);
        let chain = words(&[1]);
        let group = |id, path: &'static [u8]| Event::Cgroup {
            time: Nanos(0),
            id,
            path,
        };
        collector.event_with_chain(&group(1, b"/"), None);
        collector.event_with_chain(&group(40, b"/a/b"), None);
        for (time, cgroup) in [(10, 1), (20, 40), (30, 0), (40, 40), (50, 99)] {
            let Event::Sample(at) = sample(0, 8, time, &chain) else {
                panic!("it is a sample");
            };
            collector.event_with_chain(&Event::Sample(Sample { cgroup, ..at }), None);
        }
        let profile = with_names(collector, &[]);
        let groups: Vec<&str> = profile
            .samples
            .threads
            .iter()
            .map(|thread| &*profile.threads[thread as usize].cgroup)
            .collect();
        // Events without a group change nothing; an id without a name has no path.
        assert_eq!(groups, ["/", "/a/b", "/a/b", "/a/b", ""]);
        assert_eq!(profile.of_cgroup("/a").samples.len(), 3);
        assert_eq!(profile.of_cgroup("/a/b").samples.len(), 3);
        assert_eq!(profile.of_cgroup("/").samples.len(), 4);
        assert!(profile.of_cgroup("/a/bc").samples.is_empty());
    }

    #[test]
    fn times_off_the_cpu_weigh_as_long_as_they_last() {
        let kind = EventKind::Other("context-switches".to_owned());
        let mut sources = [source("context-switches", kind, Sampling::Every(1))];
        sources[0].has_switches = true;
        let mut collector = ProfileCollector::new(&sources, |_| true);
        let chain = words(&[1]);
        let switch = |tid, time, out, preempted| Event::Switch {
            pid: 7,
            tid,
            time: Nanos(time),
            out,
            preempted,
        };
        for event in [
            sample(0, 8, 1_000, &chain),
            switch(8, 1_001, true, false),
            sample(0, 9, 1_100, &chain),
            switch(9, 1_101, true, true),
            switch(9, 1_200, false, false),
            switch(8, 5_000, false, false),
            switch(10, 6_000, false, false),
        ] {
            collector.event_with_chain(&event, None);
        }
        let profile = with_names(collector, &[]);
        assert_eq!(profile.samples.weights, [4_000, 100]);
        let events: Vec<&str> = profile
            .samples
            .events
            .iter()
            .map(|event| profile.events[usize::from(event)].name.as_str())
            .collect();
        assert_eq!(events, [BLOCKED, PREEMPTED]);
    }

    #[test]
    fn switches_of_a_file_without_their_ends_are_counted() {
        let kind = EventKind::Other("context-switches".to_owned());
        let sources = [source("context-switches", kind, Sampling::Every(1))];
        let mut collector = ProfileCollector::new(&sources, |_| true);
        for time in [1_000, 2_000] {
            collector.event_with_chain(&sample(0, 8, time, &words(&[1])), None);
        }
        let profile = with_names(collector, &[]);
        assert_eq!(profile.events[0].name, "context-switches");
        assert_eq!(profile.samples.len(), 2);
    }

    #[test]
    fn an_event_without_call_chains_beside_one_with_stays() {
        let mut sources = [
            source("cpu-clock", EventKind::Cpu, Sampling::Every(10)),
            source("page-faults", EventKind::PageFault, Sampling::Every(10)),
        ];
        sources[1].has_callchain = false;
        let mut collector = ProfileCollector::new(&sources, |_| true);
        collector.event_with_chain(&sample(0, 7, 100, &words(&[1, 3])), None);
        collector.event_with_chain(&sample(1, 7, 150, &[]), None);
        let profile = with_names(collector, &[]);
        assert_eq!(profile.samples.events, [0, 1]);
        assert_eq!(profile.weight_of(1), 10);
    }

    #[test]
    fn an_address_without_a_chain_has_its_records_mode() {
        let sources = [source("cpu-clock", EventKind::Cpu, Sampling::Every(10))];
        let mut collector = ProfileCollector::new(&sources, |_| true);
        let modes = [CpuMode::Kernel, CpuMode::User, CpuMode::Other];
        for mode in modes {
            let Event::Sample(at) = sample(0, 7, 100, &[]) else {
                panic!("it is a sample");
            };
            collector.event_with_chain(&Event::Sample(Sample { mode, ..at }), None);
        }
        let found: Vec<CpuMode> = collector.frame_keys().iter().map(|key| key.mode).collect();
        assert_eq!(found, modes);
    }
}
