//! Stacks that hold memory as a profile, for all formats of profiles.

use super::TouchedMemory;
use super::holders::{Held, HeldStack, HolderFunction, Holders, ProcessHolders};
use crate::frame::{Frame, FrameId, FrameKind};
use crate::profile::{
    FrameTable, NO_CPU, Profile, ProfileEvent, ProfileSample, ProfileThread, WeightUnit,
};

/// What a kind of value of the profile is: its name, its unit, and the value of a stack.
struct Value {
    name: &'static str,
    unit: WeightUnit,
    of: fn(&HeldStack) -> f64,
}

/// The names are those of Go's heap profiles, which `go tool pprof` knows; the last is shown first. What is in
/// use is that at the peak.
const VALUES: [Value; 6] = [
    Value {
        name: "end_objects",
        unit: WeightUnit::Events,
        of: |stack| stack.end.blocks.value,
    },
    Value {
        name: "end_space",
        unit: WeightUnit::Bytes,
        of: |stack| stack.end.bytes.value,
    },
    Value {
        name: "alloc_objects",
        unit: WeightUnit::Events,
        of: |stack| stack.allocated.blocks.value,
    },
    Value {
        name: "alloc_space",
        unit: WeightUnit::Bytes,
        of: |stack| stack.allocated.bytes.value,
    },
    Value {
        name: "inuse_objects",
        unit: WeightUnit::Events,
        of: |stack| stack.peak.blocks.value,
    },
    Value {
        name: "inuse_space",
        unit: WeightUnit::Bytes,
        of: |stack| stack.peak.bytes.value,
    },
];

/// The value that a format with room for one shows.
pub const IN_USE: &str = "inuse_space";

impl Holders {
    /// The same as a profile of one sample for each stack and value that is not 0.
    #[must_use]
    pub fn profile(&self) -> Profile {
        let mut profile = Profile {
            events: VALUES
                .iter()
                .map(|value| ProfileEvent {
                    name: value.name.to_owned(),
                    unit: value.unit,
                    frequency: None,
                })
                .collect(),
            ..Profile::default()
        };
        let mut frames = FrameTable::default();
        for (thread, process) in (0..).zip(&self.processes) {
            profile.threads.push(ProfileThread {
                pid: process.pid,
                tid: process.pid,
                comm: short_name(&process.program).into(),
                cgroup: "".into(),
            });
            add(process, thread, &mut frames, &mut profile);
        }
        profile.frames = frames.into_frames();
        profile
    }
}

fn add(process: &ProcessHolders, thread: u32, frames: &mut FrameTable, profile: &mut Profile) {
    let functions = interned(&process.functions, frames);
    for stack in &process.stacks {
        let outermost_first = stack.frames.iter().rev();
        let known = outermost_first.filter_map(|&frame| functions.get(frame as usize).copied());
        let node = profile.stacks.intern(known);
        for (event, value) in (0..).zip(&VALUES) {
            let weight = Held::rounded((value.of)(stack));
            if weight > 0 {
                profile.samples.push(ProfileSample {
                    time: 0,
                    thread,
                    cpu: NO_CPU,
                    event,
                    weight,
                    stack: node,
                });
            }
        }
    }
}

/// These functions as frames.
fn interned(functions: &[HolderFunction], frames: &mut FrameTable) -> Vec<FrameId> {
    let frame = |function: &HolderFunction| Frame {
        name: function.name.as_str().into(),
        module: function.module.as_str().into(),
        kind: match function.inlined {
            true => FrameKind::Inlined,
            false => FrameKind::User,
        },
        unnamed: None,
    };
    let all = functions.iter();
    all.map(|function| frames.intern(frame(function))).collect()
}

/// Memory by the stacks that touched it first, as a profile with the value [`IN_USE`]: that of the largest
/// look.
#[must_use]
pub fn profile_of_touched(touched: &[TouchedMemory]) -> Profile {
    let mut profile = Profile {
        events: vec![ProfileEvent {
            name: IN_USE.to_owned(),
            unit: WeightUnit::Bytes,
            frequency: None,
        }],
        ..Profile::default()
    };
    let mut frames = FrameTable::default();
    let largest = touched.iter().filter(|look| look.is_peak);
    for (thread, look) in (0..).zip(largest) {
        profile.threads.push(ProfileThread {
            pid: look.pid,
            tid: look.pid,
            comm: look.name.as_str().into(),
            cgroup: "".into(),
        });
        let functions = interned(&look.functions, &mut frames);
        for stack in &look.stacks {
            let outermost_first = stack.frames.iter().rev();
            let known = outermost_first.filter_map(|&frame| functions.get(frame as usize).copied());
            let sample = ProfileSample {
                time: 0,
                thread,
                cpu: NO_CPU,
                event: 0,
                weight: Held::rounded(stack.bytes.value),
                stack: profile.stacks.intern(known),
            };
            profile.samples.push(sample);
        }
    }
    profile.frames = frames.into_frames();
    profile
}

impl Held {
    /// An estimate as a whole number.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast saturates, and estimates are not negative"
    )]
    pub fn rounded(value: f64) -> u64 {
        value.round() as u64
    }
}

/// The last part of a path.
fn short_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HolderFunction;
    use crate::units::{Bytes, Estimate};

    #[test]
    fn memory_that_was_touched_is_a_profile_of_bytes() {
        use crate::memory::TouchedStack;
        let function = |name: &str| HolderFunction {
            name: name.to_owned(),
            module: "a.out".to_owned(),
            inlined: false,
        };
        let look = |is_peak, bytes| TouchedMemory {
            pid: 7,
            is_peak,
            functions: vec![function("fill"), function("main")],
            stacks: vec![TouchedStack {
                frames: vec![0, 1],
                culprit: "fill".to_owned(),
                bytes: Estimate::exact(bytes),
            }],
            ..TouchedMemory::default()
        };
        let profile = profile_of_touched(&[look(true, 4096.4), look(false, 8192.0)]);
        assert_eq!(profile.events[0].name, IN_USE);
        let weights: Vec<_> = profile.samples.iter().map(|one| one.weight).collect();
        assert_eq!(weights, [4096]);
        let stack = profile.samples.get(0).stack;
        let names: Vec<&str> = profile
            .stacks
            .frames(stack)
            .map(|frame| &*profile.frames[frame.0 as usize].name)
            .collect();
        assert_eq!(names, ["fill", "main"]);
    }

    #[test]
    fn each_stack_has_its_values_and_absent_ones_are_left_out() {
        let held = |bytes: f64| Held {
            bytes: Estimate::exact(bytes),
            blocks: Estimate::exact(1.0),
        };
        let function = |name: &str| HolderFunction {
            name: name.to_owned(),
            module: "a.out".to_owned(),
            inlined: false,
        };
        let holders = Holders {
            period: Bytes(512),
            refused: 0,
            processes: vec![ProcessHolders {
                pid: 7,
                program: "/usr/bin/a.out".to_owned(),
                parent: None,
                bypassed: false,
                samples: 1,
                untracked: 0,
                crowded: 0,
                cut: 0,
                peak_ns: 0,
                peak: held(10.4),
                end: Held::default(),
                allocated: held(20.0),
                functions: vec![function("make"), function("main")],
                stacks: vec![HeldStack {
                    frames: vec![0, 1],
                    peak: held(10.4),
                    end: Held::default(),
                    allocated: held(20.0),
                }],
            }],
        };
        let profile = holders.profile();
        let weights: Vec<_> = profile
            .samples
            .iter()
            .map(|sample| {
                let event = &profile.events[usize::from(sample.event)];
                (event.name.as_str(), sample.weight)
            })
            .collect();
        assert_eq!(
            weights,
            [
                ("alloc_objects", 1),
                ("alloc_space", 20),
                ("inuse_objects", 1),
                ("inuse_space", 10)
            ]
        );
        let stack = profile.samples.get(0).stack;
        let names: Vec<&str> = profile
            .stacks
            .frames(stack)
            .map(|frame| &*profile.frames[frame.0 as usize].name)
            .collect();
        assert_eq!(names, ["make", "main"]);
        assert_eq!(&*profile.threads[0].comm, "a.out");
    }
}
