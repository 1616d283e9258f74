//! Sums over a profile's samples: by stack, by function, by task, by CPU.

use pagewise_model::profile::{
    Frame, FrameId, FrameKind, NodeId, Profile, ProfileSample, WeightUnit,
};
use rustc_hash::FxHashMap;

/// Recognises stacks of idle CPUs.
pub struct Idle(Vec<bool>);

impl Idle {
    /// Those of this profile.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let is_idle = |frame: FrameId| {
            let frame = profile.frames.get(frame.0 as usize);
            frame.is_some_and(Frame::is_idle)
        };
        let mut idle = vec![false; profile.stacks.len()];
        for (node, _, frame) in profile.stacks.nodes() {
            idle[node.0 as usize] = is_idle(frame);
        }
        Self(idle)
    }

    /// Whether a stack is that of an idle CPU.
    #[must_use]
    pub fn is(&self, stack: NodeId) -> bool {
        self.0[stack.0 as usize]
    }
}

/// Kernel entries for a device, a timer or another CPU, independent of the running code: x86-64
/// (arch/x86/include/asm/idtentry.h) and AArch64 (arch/arm64/kernel/entry-common.c), Linux 5.10 to
/// 6.18. A softirq run by the program's own system call (loopback) is not included.
const INTERRUPTED: [&str; 8] = [
    "asm_sysvec_",
    "sysvec_",
    "asm_common_interrupt",
    "common_interrupt",
    "el0t_64_irq",
    "el1h_64_irq",
    "el0_irq",
    "el1_irq",
];

/// Marks each node whose stack passes through an interrupt.
pub fn interrupted(profile: &Profile) -> Vec<bool> {
    let enters = |frame: &Frame| {
        frame.kind == FrameKind::Kernel
            && INTERRUPTED.iter().any(|name| frame.name.starts_with(name))
    };
    let wanted: Vec<bool> = profile.frames.iter().map(enters).collect();
    passing(profile, &wanted)
}

/// Self and total weight of each frame. A recursive function counts once per stack.
pub fn by_frame(profile: &Profile, own: &[u64]) -> Vec<(u64, u64)> {
    by_group(profile, own, profile.frames.len(), |frame| frame.0)
}

/// Self and total weight of each of `count` groups of frames. A stack counts once, however many of its
/// frames are of one group.
pub fn by_group(
    profile: &Profile,
    own: &[u64],
    count: usize,
    group: impl Fn(FrameId) -> u32,
) -> Vec<(u64, u64)> {
    let mut sums = vec![(0_u64, 0_u64); count];
    let mut total = own.to_vec();
    profile.stacks.accumulate(&mut total);
    let outermost = outermost_of(profile, &group);
    for (node, _, frame) in profile.stacks.nodes() {
        let (at, sum) = (node.0 as usize, &mut sums[group(frame) as usize]);
        sum.0 += own[at];
        if outermost[at] {
            sum.1 += total[at];
        }
    }
    sums
}

/// For each node whether its frame does not occur above it: one depth-first walk that counts the
/// frames on the path, so that deep recursion costs no more than its nodes.
pub fn outermost(profile: &Profile) -> Vec<bool> {
    outermost_of(profile, |frame| frame.0)
}

fn outermost_of(profile: &Profile, group: impl Fn(FrameId) -> u32) -> Vec<bool> {
    let tree = &profile.stacks;
    let mut outermost = vec![true; tree.len()];
    // Depth-first, so that the frames on the path are one multiset. Lists of the children of each
    // node, 0 at the end: the root is nobody's child.
    let mut first_child = vec![0_u32; tree.len()];
    let mut sibling = vec![0_u32; tree.len()];
    for (node, parent, _) in tree.nodes() {
        let first = &mut first_child[parent.0 as usize];
        sibling[node.0 as usize] = std::mem::replace(first, node.0);
    }
    let mut on_way: FxHashMap<u32, u32> = FxHashMap::default();
    let mut at = NodeId::ROOT;
    loop {
        let mut next = NodeId(first_child[at.0 as usize]);
        // Back to the nearest caller with children that were not visited.
        while next == NodeId::ROOT {
            let Some(frame) = tree.frame(at) else {
                return outermost;
            };
            if let Some(count) = on_way.get_mut(&group(frame)) {
                *count -= 1;
            }
            next = NodeId(sibling[at.0 as usize]);
            at = tree.parent(at);
        }
        if let Some(frame) = tree.frame(next) {
            let count = on_way.entry(group(frame)).or_default();
            outermost[next.0 as usize] = *count == 0;
            *count += 1;
        }
        at = next;
    }
}

/// Marks each node whose stack passes through a frame of `wanted`, itself included.
pub fn passing(profile: &Profile, wanted: &[bool]) -> Vec<bool> {
    let mut passes = vec![false; profile.stacks.len()];
    for (node, parent, frame) in profile.stacks.nodes() {
        passes[node.0 as usize] = passes[parent.0 as usize] || wanted[frame.0 as usize];
    }
    passes
}

/// A stack's functions, outermost first.
pub fn frame_names(profile: &Profile, stack: NodeId) -> Vec<String> {
    let frames = profile.stacks.frames(stack);
    let mut names: Vec<String> = frames
        .filter_map(|frame| profile.frames.get(frame.0 as usize))
        .map(|frame| frame.name.to_string())
        .collect();
    names.reverse();
    names
}

/// How many samples of the recorder a row stands for: many where the input has only their number.
pub(super) fn samples_in(profile: &Profile, sample: &ProfileSample) -> u64 {
    let event = profile.events.get(usize::from(sample.event));
    match event.is_some_and(|event| event.unit == WeightUnit::Samples) {
        true => sample.weight,
        false => 1,
    }
}

/// Whether an event measures CPU time.
#[must_use]
pub fn is_cpu(name: &str) -> bool {
    let name = name.split([':', '/']).next().unwrap_or(name);
    ["cpu-clock", "task-clock", "cycles", "cpu-cycles", "cpu"].contains(&name)
        || name.ends_with("cycles")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Maker;

    #[test]
    fn a_recursive_function_counts_once_a_stack() {
        let mut maker = Maker::default();
        maker.samples("main;walk;walk;walk", 3);
        maker.samples("main;walk;leaf", 2);
        maker.samples("main;leaf;walk", 1);
        let profile = maker.finish();
        let mut own = vec![0; profile.stacks.len()];
        for sample in profile.samples.iter() {
            own[sample.stack.0 as usize] += sample.weight;
        }
        let sums = by_frame(&profile, &own);
        let of = |name: &str| {
            let at = profile.frames.iter().position(|frame| &*frame.name == name);
            sums[at.unwrap()]
        };
        assert_eq!(of("main"), (0, 6));
        assert_eq!(of("walk"), (4, 6));
        assert_eq!(of("leaf"), (2, 3));
    }

    #[test]
    fn idle_is_told_by_the_innermost_kernel_function() {
        let mut maker = Maker::default();
        maker.samples("cpu_startup_entry_k;default_idle_k", 3);
        maker.samples("default_idle_k;asm_sysvec_irq_k", 2);
        let profile = maker.finish();
        let idle = Idle::new(&profile);
        let found = profile.samples.iter().filter(|s| idle.is(s.stack)).count();
        assert_eq!(found, 3);
    }
}
