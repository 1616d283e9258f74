//! Hand-made profiles for tests.

use pagewise_model::profile::{
    Frame, FrameKind, FrameTable, NodeId, Profile, ProfileEvent, ProfileSample, ProfileThread,
    Samples, StackTree, WeightUnit,
};
use pagewise_model::symbol::Unnamed;
use pagewise_model::units::Nanos;

/// Builds a profile from stacks as text: frames outermost first, separated by `;`. Names that end
/// in `_k` are the kernel's (the ending is dropped), `?` is a frame outside any mapping, `?FILE`
/// one without symbols.
#[derive(Default)]
pub(crate) struct Maker {
    frames: FrameTable,
    tree: StackTree,
    samples: Samples,
    threads: Vec<ProfileThread>,
    pub(crate) events: Vec<&'static str>,
    next: u64,
}

impl Maker {
    /// `count` samples of one stack, each of weight 1, a microsecond apart.
    pub(crate) fn samples(&mut self, stack: &str, count: u64) {
        for _ in 0..count {
            self.next += 1_000;
            self.sample_at(self.next, stack, 1);
        }
    }

    /// One sample.
    pub(crate) fn sample_at(&mut self, time: u64, stack: &str, weight: u64) {
        self.sample_of(0, 0, time, stack, weight);
    }

    /// One sample of an event on a CPU.
    pub(crate) fn sample_of(&mut self, event: u16, cpu: u16, time: u64, stack: &str, weight: u64) {
        let stack = self.stack(stack);
        self.samples.push(ProfileSample {
            time,
            thread: 0,
            cpu,
            event,
            weight,
            stack,
        });
    }

    fn stack(&mut self, stack: &str) -> NodeId {
        let mut node = NodeId::ROOT;
        for name in stack.split(';') {
            let frame = self.frames.intern(frame(name));
            node = self.tree.child(node, frame);
        }
        node
    }

    pub(crate) fn finish(mut self) -> Profile {
        self.samples.sort_by_time();
        self.threads.push(ProfileThread {
            pid: 1,
            tid: 1,
            comm: "program".into(),
            cgroup: Box::default(),
        });
        if self.events.is_empty() {
            self.events.push("cpu-clock");
        }
        let span = self.samples.times.last().unwrap_or(0);
        let event = |name: &&str| ProfileEvent {
            name: (*name).to_owned(),
            unit: WeightUnit::Nanoseconds,
            frequency: Some(99),
        };
        Profile {
            frames: self.frames.into_frames(),
            stacks: self.tree,
            threads: self.threads,
            events: self.events.iter().map(event).collect(),
            samples: self.samples,
            span: Nanos(span),
            has_times: true,
            ..Profile::default()
        }
    }
}

fn frame(text: &str) -> Frame {
    let (name, module, kind, unnamed) = match text.strip_prefix('?') {
        Some("") => ("[unknown]", "", FrameKind::User, Some(Unnamed::NoMapping)),
        Some(file) => ("[unknown]", file, FrameKind::User, Some(Unnamed::NoSymbol)),
        None => match text.strip_suffix("_k") {
            Some(name) => (name, "[kernel]", FrameKind::Kernel, None),
            None => (text, "program", FrameKind::User, None),
        },
    };
    Frame {
        name: name.into(),
        module: module.into(),
        kind,
        unnamed,
    }
}
