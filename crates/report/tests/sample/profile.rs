//! A small profile: two threads, a few stacks, ten seconds.

use pagewise_model::answer::Document;
use pagewise_model::profile::{
    Frame, FrameId, FrameKind, NodeId, Profile, ProfileEvent, ProfileSample, ProfileThread,
    WeightUnit,
};
use pagewise_model::profile_findings::{EventProfile, ProfileFindings, ProfileSummary};
use pagewise_model::units::Nanos;

const PERIOD: u64 = 10_101_010;

/// The profile and its findings.
pub fn profile() -> (Profile, ProfileFindings) {
    let frame = |name: &str, kind| Frame {
        name: name.into(),
        module: "python3".into(),
        kind,
        unnamed: None,
    };
    let thread = |tid| ProfileThread {
        pid: 4711,
        tid,
        comm: "python3".into(),
        cgroup: Box::default(),
    };
    let mut profile = Profile {
        frames: vec![
            frame("main", FrameKind::User),
            frame("compress", FrameKind::User),
            frame("asm_exc_page_fault", FrameKind::Kernel),
        ],
        threads: vec![thread(4711), thread(4712)],
        events: vec![ProfileEvent {
            name: "cpu-clock".to_owned(),
            unit: WeightUnit::Nanoseconds,
            frequency: Some(99),
        }],
        start: Nanos(5_000_000_000_123),
        span: Nanos(990 * PERIOD),
        has_times: true,
        ..Profile::default()
    };
    let stacks: [&[u32]; 3] = [&[0], &[0, 1], &[0, 1, 2]];
    let nodes = stacks.map(|stack| profile.stacks.intern(stack.iter().map(|&id| FrameId(id))));
    for at in 0..990_u64 {
        profile.samples.push(ProfileSample {
            time: at * PERIOD,
            thread: u32::from(at % 4 == 3),
            cpu: (at % 2) as u16,
            event: 0,
            weight: if at % 10 == 0 { PERIOD / 2 } else { PERIOD },
            stack: nodes[(at % 3) as usize],
        });
    }
    let weight = profile.weight_of(0);
    let summary = ProfileSummary {
        span: profile.span,
        events: vec![EventProfile {
            name: "cpu-clock".to_owned(),
            unit: WeightUnit::Nanoseconds,
            frequency: Some(99),
            samples: 990,
            weight,
            idle: 0,
            functions: Vec::new(),
            stacks: Vec::new(),
            processes: Vec::new(),
            cgroups: vec![],
            cpus: Vec::new(),
            burst: None,
        }],
        counters: Vec::new(),
        unknown: Vec::new(),
        own_cost: None,
    };
    let verdict = "33 % of the CPU time is spent in asm_exc_page_fault itself.";
    (profile, Document::new(summary).with_verdict(verdict))
}

/// The frames of a stack by name, innermost first.
pub fn names(profile: &Profile, node: NodeId) -> Vec<&str> {
    let frames = profile.stacks.frames(node);
    frames
        .map(|frame| &*profile.frames[frame.0 as usize].name)
        .collect()
}
