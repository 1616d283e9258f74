//! The Firefox Profiler's processed format, for profiler.firefox.com: a track for each thread.
//!
//! Threads sampled by several events have a track for each, since a track there has one kind of
//! weight. Frames are names; the kernel and JIT compilers have their own categories.

use crate::border::{Border, Content};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameHandle, FrameInfo,
    Profile as Processed, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle,
    Timestamp, WeightType,
};
use pagewise_model::profile::{
    FrameId, FrameKind, NodeId, Profile, ProfileSample, ProfileThread, WeightUnit,
};
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Writes a profile.
///
/// # Errors
/// When `out` can't be written.
pub fn write(profile: &Profile, name: &str, out: &mut impl Write) -> io::Result<()> {
    let mut tracks = Tracks::new(profile, name);
    for sample in profile.samples.iter() {
        tracks.add(sample);
    }
    let mut out = Border::new(out, Content::Json);
    serde_json::to_writer(&mut out, &tracks.processed)?;
    writeln!(out)?;
    out.flush()
}

struct Tracks<'a> {
    profile: &'a Profile,
    processed: Processed,
    kernel: CategoryHandle,
    user: CategoryHandle,
    jit: CategoryHandle,
    processes: FxHashMap<u32, fxprof_processed_profile::ProcessHandle>,
    tracks: FxHashMap<(u16, u32), Track>,
}

struct Track {
    thread: ThreadHandle,
    frames: FxHashMap<FrameId, FrameHandle>,
    stacks: FxHashMap<NodeId, StackHandle>,
}

impl<'a> Tracks<'a> {
    fn new(profile: &'a Profile, name: &str) -> Self {
        let hz = profile.events.iter().find_map(|event| event.frequency);
        let interval = 1_000_000_000 / hz.unwrap_or(1000).max(1);
        // The time of the recording is not known: times count from its start.
        let start = ReferenceTimestamp::from_millis_since_unix_epoch(0.0);
        let mut processed = Processed::new(name, start, SamplingInterval::from_nanos(interval));
        processed.set_os_name("Linux");
        let kernel = processed.add_category("Kernel", CategoryColor::Orange);
        let user = processed.add_category("User", CategoryColor::Yellow);
        let jit = processed.add_category("JIT", CategoryColor::Green);
        Self {
            profile,
            processed,
            kernel,
            user,
            jit,
            processes: FxHashMap::default(),
            tracks: FxHashMap::default(),
        }
    }

    fn add(&mut self, sample: ProfileSample) {
        let key = (sample.event, sample.thread);
        let mut track = match self.tracks.remove(&key) {
            Some(track) => track,
            None => self.track(sample),
        };
        let stack = self.stack(&mut track, sample.stack);
        let unit = self
            .profile
            .events
            .get(usize::from(sample.event))
            .map(|event| event.unit);
        let (weight, cpu) = match unit {
            Some(WeightUnit::Nanoseconds) => (1, CpuDelta::from_nanos(sample.weight)),
            _ => (
                i32::try_from(sample.weight).unwrap_or(i32::MAX),
                CpuDelta::ZERO,
            ),
        };
        let time = Timestamp::from_nanos_since_reference(sample.time);
        self.processed
            .add_sample(track.thread, time, stack, cpu, weight);
        self.tracks.insert(key, track);
    }

    /// The track of a thread's samples of one event.
    fn track(&mut self, sample: ProfileSample) -> Track {
        let of = self.profile.threads.get(sample.thread as usize);
        let (comm, pid, tid) = of.map_or(("", -1, -1), |of| (&*of.comm, of.pid, of.tid));
        let tid = u32::try_from(tid).unwrap_or(0);
        let pid = u32::try_from(pid).unwrap_or(tid);
        let start = Timestamp::from_nanos_since_reference(0);
        let (processed, threads) = (&mut self.processed, &self.profile.threads);
        let process = *self.processes.entry(pid).or_insert_with(|| {
            // A process has the name of its first thread, whichever was sampled first.
            let is_first =
                |of: &&ProfileThread| of.pid == of.tid && u32::try_from(of.pid) == Ok(pid);
            let first = threads.iter().find(is_first);
            processed.add_process(first.map_or(comm, |of| &*of.comm), pid, start)
        });
        let thread = processed.add_thread(process, tid, start, pid == tid);
        let event = self.profile.events.get(usize::from(sample.event));
        match event {
            Some(event) if self.profile.events.len() > 1 => {
                processed.set_thread_name(thread, &format!("{comm} ({})", event.name));
            }
            _ => processed.set_thread_name(thread, comm),
        }
        processed.set_thread_samples_weight_type(thread, WeightType::Samples);
        Track {
            thread,
            frames: FxHashMap::default(),
            stacks: FxHashMap::default(),
        }
    }

    /// A stack in Firefox's format, built from the nearest caller already known there downwards.
    fn stack(&mut self, track: &mut Track, node: NodeId) -> Option<StackHandle> {
        let mut missing = Vec::new();
        let mut at = node;
        while at != NodeId::ROOT && !track.stacks.contains_key(&at) {
            missing.push(at);
            at = self.profile.stacks.parent(at);
        }
        let mut stack = track.stacks.get(&at).copied();
        for node in missing.into_iter().rev() {
            let frame = self.profile.stacks.frame(node)?;
            let frame = self.frame(track, frame)?;
            let next = self.processed.intern_stack(track.thread, stack, frame);
            track.stacks.insert(node, next);
            stack = Some(next);
        }
        stack
    }

    fn frame(&mut self, track: &mut Track, id: FrameId) -> Option<FrameHandle> {
        if let Some(&known) = track.frames.get(&id) {
            return Some(known);
        }
        let frame = self.profile.frames.get(id.0 as usize)?;
        let category = match frame.kind {
            FrameKind::Kernel => self.kernel,
            FrameKind::Jit => self.jit,
            FrameKind::User | FrameKind::Inlined | FrameKind::Task => self.user,
        };
        let name = match &*frame.module {
            "" => self.processed.intern_string(&frame.name),
            module => self
                .processed
                .intern_string(&format!("{} ({module})", frame.name)),
        };
        let info = FrameInfo {
            frame: Frame::Label(name),
            category_pair: category.into(),
            flags: FrameFlags::empty(),
        };
        let handle = self.processed.intern_frame(track.thread, info);
        track.frames.insert(id, handle);
        Some(handle)
    }
}
