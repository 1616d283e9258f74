//! A profile: weighted samples of named stacks over time, from any source.
//!
//! perf.data, `perf script` text and folded stacks are all converted to this. Stacks are a tree
//! with parent pointers, so a stack ten thousand deep costs only its new frames; samples are
//! columns, so a range of time is a slice and eight million samples are a few arrays.

use crate::column::{Column, Number};
use crate::contention::Contention;
use crate::host::HostSnapshot;
use crate::loss::Losses;
use crate::units::Nanos;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

pub use crate::frame::{Frame, FrameId, FrameKind, NodeId};
pub use crate::stack_tree::StackTree;

/// What one unit of an event's weight is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WeightUnit {
    /// Nanoseconds of CPU time (`cpu-clock`, `task-clock`) or of waiting.
    Nanoseconds,
    /// Events: cycles, faults, switches…
    Events,
    /// Bytes of memory: in exports alone, no document has it.
    #[serde(skip)]
    Bytes,
    /// Samples: the input had no periods.
    Samples,
}

/// One kind of event of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileEvent {
    /// perf's name for it.
    pub name: String,
    /// What its weights count.
    pub unit: WeightUnit,
    /// Samples per second that were requested, if they were chosen by frequency.
    pub frequency: Option<u64>,
}

impl ProfileEvent {
    /// The name of an event whatever kind of core counted it: `cpu_core/cycles/P` and
    /// `cpu_atom/cycles/P` are `cycles:P`.
    #[must_use]
    pub fn on_any_core(name: &str) -> Cow<'_, str> {
        let Some((pmu, rest)) = name.split_once('/') else {
            return name.into();
        };
        let is_core = ["cpu_core", "cpu_atom", "cpu_lowpower"].contains(&pmu)
            || pmu.starts_with("armv8_cortex_")
            || pmu.starts_with("armv9_cortex_");
        match rest.rsplit_once('/') {
            Some((event, modifiers)) if is_core && !event.contains(['/', ',', '=']) => {
                match modifiers.trim_start_matches(':') {
                    "" => event.into(),
                    modifiers => format!("{event}:{modifiers}").into(),
                }
            }
            _ => name.into(),
        }
    }
}

/// A thread that was sampled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProfileThread {
    /// Process id; -1 where not known.
    pub pid: i32,
    /// Thread id; -1 where not known.
    pub tid: i32,
    /// Its name when it was sampled: a thread that changes its name appears once per name.
    pub comm: Box<str>,
    /// Path of the control group that it ran in; empty where not recorded. A thread that moves
    /// appears once per group.
    pub cgroup: Box<str>,
}

/// The CPU of a sample where the input has none.
pub const NO_CPU: u16 = u16::MAX;

/// Samples as columns of equal length, in time order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Nanoseconds since [`Profile::start`]. All zero in a profile without times.
    pub times: Column<u64>,
    /// Index in [`Profile::threads`].
    pub threads: Column<u32>,
    /// CPU number, or [`NO_CPU`].
    pub cpus: Column<u16>,
    /// Index in [`Profile::events`].
    pub events: Column<u16>,
    /// How much the sample stands for, in the event's unit.
    pub weights: Column<u64>,
    /// Its stack.
    pub stacks: Column<NodeId>,
}

/// One row of [`Samples`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileSample {
    /// Nanoseconds since [`Profile::start`].
    pub time: u64,
    /// Index in [`Profile::threads`].
    pub thread: u32,
    /// CPU number, or [`NO_CPU`].
    pub cpu: u16,
    /// Index in [`Profile::events`].
    pub event: u16,
    /// How much it stands for.
    pub weight: u64,
    /// Its stack.
    pub stack: NodeId,
}

impl Samples {
    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Adds a sample at the end.
    pub fn push(&mut self, sample: ProfileSample) {
        self.times.push(sample.time);
        self.threads.push(sample.thread);
        self.cpus.push(sample.cpu);
        self.events.push(sample.event);
        self.weights.push(sample.weight);
        self.stacks.push(sample.stack);
    }

    /// The sample at this index.
    #[must_use]
    pub fn get(&self, at: usize) -> ProfileSample {
        ProfileSample {
            time: self.times.at(at),
            thread: self.threads.at(at),
            cpu: self.cpus.at(at),
            event: self.events.at(at),
            weight: self.weights.at(at),
            stack: self.stacks.at(at),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = ProfileSample> + '_ {
        let places = self
            .times
            .iter()
            .zip(self.threads.iter().zip(self.cpus.iter()));
        let amounts = self.events.iter().zip(self.weights.iter());
        let rows = places.zip(amounts.zip(self.stacks.iter()));
        rows.map(
            |((time, (thread, cpu)), ((event, weight), stack))| ProfileSample {
                time,
                thread,
                cpu,
                event,
                weight,
                stack,
            },
        )
    }

    /// Sorts them by time; samples with the same time keep their order.
    pub fn sort_by_time(&mut self) {
        if self.times.iter().is_sorted() {
            return;
        }
        let times: Vec<u64> = self.times.iter().collect();
        let mut order: Vec<u32> = (0..).take(self.len()).collect();
        order.sort_by_key(|&at| times[at as usize]);
        self.times = order.iter().map(|&at| times[at as usize]).collect();
        drop(times);
        self.threads = in_order(&self.threads, &order);
        self.cpus = in_order(&self.cpus, &order);
        self.events = in_order(&self.events, &order);
        self.weights = in_order(&self.weights, &order);
        self.stacks = in_order(&self.stacks, &order);
    }
}

/// The numbers at these indices.
fn in_order<T: Number>(column: &Column<T>, order: &[u32]) -> Column<T> {
    order.iter().map(|&at| column.at(at as usize)).collect()
}

/// A counter that was read while the profile was taken (as in `perf stat`).
#[derive(Clone, Debug, PartialEq)]
pub struct CounterSeries {
    /// perf's name for it: `cycles`, `page-faults`…
    pub name: String,
    /// Share of the time that it was counted (1 = all the time); values are already scaled by it.
    pub counted: f64,
    /// Time since [`Profile::start`] in nanoseconds, and the count since the point before.
    pub points: Vec<(u64, f64)>,
}

/// What the samples of a profile cover; this decides which amounts of two profiles can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Observed {
    /// The input does not show it.
    #[default]
    Unknown,
    /// A command from its start to its end, with all its CPU time where that was accounted.
    Run(Option<Nanos>),
    /// Processes for a while.
    Processes,
    /// A whole machine for a while.
    Machine,
    /// A part of a recording's time, or of what ran in it.
    Stretch,
}

/// Samples of where time, or any other event, was spent.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Functions.
    pub frames: Vec<Frame>,
    /// Stacks.
    pub stacks: StackTree,
    /// Threads.
    pub threads: Vec<ProfileThread>,
    /// Kinds of events, at most 65,535.
    pub events: Vec<ProfileEvent>,
    /// Samples.
    pub samples: Samples,
    /// Counters over time; empty if none were read.
    pub counters: Vec<CounterSeries>,
    /// The recorder's clock at time 0 of the samples: the fraction of a second in `start + time` is
    /// the row in a heat map.
    pub start: Nanos,
    /// Unix time at time 0 of the samples, where known.
    pub began_unix: Option<Nanos>,
    /// Time that was observed, which may extend beyond the first and the last sample.
    pub span: Nanos,
    /// Whether the input had times at all; folded stacks have none.
    pub has_times: bool,
    /// The command that was observed, where known.
    pub command: Vec<String>,
    /// What was observed.
    pub observed: Observed,
    /// How much the CPUs were shared with others meanwhile, where known.
    pub contention: Option<Contention>,
    /// The machine, where known: empty strings otherwise.
    pub host: HostSnapshot,
    /// What is missing.
    pub losses: Losses,
    /// What a reader should know: remedies, assumptions.
    pub notes: Vec<String>,
    /// What to say first of a recording without its end.
    pub cut: Option<String>,
}

impl Profile {
    /// The frame that a node adds; `None` for the root.
    #[must_use]
    pub fn frame_of(&self, node: NodeId) -> Option<&Frame> {
        let id = self.stacks.frame(node)?;
        self.frames.get(id.0 as usize)
    }

    /// The name of the observed program: the last part of its path.
    #[must_use]
    pub fn service_name(&self) -> Option<&str> {
        self.command.first()?.rsplit('/').next()
    }

    /// The same profile with only the samples of a stretch of time.
    #[must_use]
    pub fn within(&self, from: Nanos, to: Nanos) -> Self {
        let mut samples = Samples::default();
        for sample in self.samples.iter() {
            if (from.0..to.0).contains(&sample.time) {
                samples.push(ProfileSample {
                    time: sample.time - from.0,
                    ..sample
                });
            }
        }
        let counters = self.counted(|time| (time > from.0 && time <= to.0).then(|| time - from.0));
        Self {
            samples,
            counters,
            start: self.start + from,
            began_unix: self.began_unix.map(|began| began + from),
            span: self.length(from, to),
            observed: Observed::Stretch,
            ..self.clone()
        }
    }

    /// The same profile without a stretch of time, as if it had never existed: later samples move
    /// up.
    #[must_use]
    pub fn without(&self, from: Nanos, to: Nanos) -> Self {
        let length = self.length(from, to);
        let left = |time: u64| match time {
            time if time < from.0 => Some(time),
            time if time >= to.0 => Some(time - length.0),
            _ => None,
        };
        let mut samples = Samples::default();
        for sample in self.samples.iter() {
            if let Some(time) = left(sample.time) {
                samples.push(ProfileSample { time, ..sample });
            }
        }
        // A reading covers the time before it.
        let counters = self.counted(|time| match time {
            time if time <= from.0 => Some(time),
            time if time > to.0 => Some(time - length.0),
            _ => None,
        });
        Self {
            samples,
            counters,
            span: self.span - length,
            observed: Observed::Stretch,
            ..self.clone()
        }
    }

    /// The counters' readings that remain, at the times given by `moved`.
    fn counted(&self, moved: impl Fn(u64) -> Option<u64>) -> Vec<CounterSeries> {
        let series = self.counters.iter().map(|series| CounterSeries {
            points: series
                .points
                .iter()
                .filter_map(|&(time, count)| Some((moved(time)?, count)))
                .collect(),
            ..series.clone()
        });
        series.collect()
    }

    /// The length of the part of a stretch that is inside the profile.
    fn length(&self, from: Nanos, to: Nanos) -> Nanos {
        let last = self.samples.times.last().map_or(0, |time| time + 1);
        let end = self.span.0.max(last);
        Nanos(to.0.min(end).saturating_sub(from.0))
    }

    /// The same profile with only the samples of one control group and of those below it.
    #[must_use]
    pub fn of_cgroup(&self, path: &str) -> Self {
        let below = format!("{}/", path.trim_end_matches('/'));
        let is_in = |cgroup: &str| cgroup == path || cgroup.starts_with(&below);
        let threads: Vec<bool> = self.threads.iter().map(|at| is_in(&at.cgroup)).collect();
        let mut samples = Samples::default();
        for sample in self.samples.iter() {
            if threads[sample.thread as usize] {
                samples.push(sample);
            }
        }
        Self {
            samples,
            observed: Observed::Stretch,
            ..self.clone()
        }
    }

    /// Sum of the weights of one event's samples.
    #[must_use]
    pub fn weight_of(&self, event: u16) -> u64 {
        let pairs = self.samples.events.iter().zip(self.samples.weights.iter());
        pairs
            .filter(|&(of, _)| of == event)
            .map(|(_, weight)| weight)
            .sum()
    }
}

/// Frames, each kept once.
#[derive(Clone, Debug, Default)]
pub struct FrameTable {
    frames: Vec<Frame>,
    numbers: FxHashMap<Frame, FrameId>,
}

impl FrameTable {
    /// The number of this frame; equal frames get equal numbers.
    pub fn intern(&mut self, frame: Frame) -> FrameId {
        if let Some(&known) = self.numbers.get(&frame) {
            return known;
        }
        let new = FrameId(u32::try_from(self.frames.len()).unwrap_or(u32::MAX));
        self.frames.push(frame.clone());
        self.numbers.insert(frame, new);
        new
    }

    /// The number of the same frame as one of an inlined call.
    pub fn inlined(&mut self, frame: FrameId) -> FrameId {
        let frame = self.frames.get(frame.0 as usize).cloned();
        frame.map_or(FrameId(u32::MAX), |frame| {
            self.intern(Frame {
                kind: FrameKind::Inlined,
                ..frame
            })
        })
    }

    /// All of them by number.
    #[must_use]
    pub fn into_frames(self) -> Vec<Frame> {
        self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_and_the_rest_are_the_whole() {
        let mut profile = Profile {
            span: Nanos(100),
            ..Profile::default()
        };
        for time in [0, 10, 20, 30, 99] {
            profile.samples.push(ProfileSample {
                time,
                thread: 0,
                cpu: NO_CPU,
                event: 0,
                weight: 1 + time,
                stack: NodeId::ROOT,
            });
        }
        profile.counters.push(CounterSeries {
            name: "faults".to_owned(),
            counted: 1.0,
            points: vec![(10, 1.0), (20, 2.0), (30, 4.0), (100, 8.0)],
        });
        let (inside, rest) = (
            profile.within(Nanos(10), Nanos(30)),
            profile.without(Nanos(10), Nanos(30)),
        );
        assert_eq!(inside.counters[0].points, [(10, 2.0), (20, 4.0)]);
        assert_eq!(rest.counters[0].points, [(10, 1.0), (80, 8.0)]);
        assert_eq!(inside.samples.times, [0, 10]);
        assert_eq!(rest.samples.times, [0, 10, 79]);
        assert_eq!((inside.span, rest.span), (Nanos(20), Nanos(80)));
        assert_eq!(
            inside.weight_of(0) + rest.weight_of(0),
            profile.weight_of(0)
        );
    }

    #[test]
    fn sorting_keeps_rows_together() {
        let mut samples = Samples::default();
        for (time, weight) in [(3, 30), (1, 10), (2, 20)] {
            samples.push(ProfileSample {
                time,
                thread: 0,
                cpu: NO_CPU,
                event: 0,
                weight,
                stack: NodeId::ROOT,
            });
        }
        samples.sort_by_time();
        assert_eq!(samples.weights, [10, 20, 30]);
    }
}
