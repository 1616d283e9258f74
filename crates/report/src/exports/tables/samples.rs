//! Samples summed by time, kind of thread and stack; stacks and frames once each.

use super::identity::{self, Identifier};
use super::{Builds, Tables, schema};
use crate::exports::parquet::Value;
use pagewise_model::profile::{FrameKind, NodeId, Profile, WeightUnit};
use pagewise_model::units::Nanos;
use rustc_hash::FxHashMap;
use std::io;

/// Length of a bucket of time in milliseconds: that of a recording which a timer takes.
pub const BUCKET_MS: u64 = 10_000;

/// A row of the table of samples, by numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    event: u16,
    bucket: u64,
    thread_kind: u32,
    stack: NodeId,
}

pub(super) fn write(profile: &Profile, builds: &Builds, tables: &mut Tables) -> io::Result<()> {
    let frames = frame_ids(profile, builds);
    let (kind_of_thread, kinds) = thread_kinds(profile);
    let mut sums: FxHashMap<Key, (u64, u64)> = FxHashMap::default();
    for sample in profile.samples.iter() {
        let key = Key {
            event: sample.event,
            bucket: sample.time / 1_000_000 / BUCKET_MS * BUCKET_MS,
            thread_kind: kind_of_thread
                .get(sample.thread as usize)
                .copied()
                .unwrap_or(0),
            stack: sample.stack,
        };
        let (samples, weight) = sums.entry(key).or_default();
        *samples += 1;
        *weight += sample.weight;
    }
    let mut sums: Vec<(Key, (u64, u64))> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(key, _)| *key);
    let stacks = stack_ids(profile, &frames, sums.iter().map(|(key, _)| key.stack));
    tables.table("samples", schema::SAMPLES, |rows| {
        for (key, (samples, weight)) in &sums {
            let Some(event) = profile.events.get(usize::from(key.event)) else {
                continue;
            };
            let kind = kinds.get(key.thread_kind as usize);
            rows.of_run(&[
                Value::Text(&event.name),
                Value::Text(unit(event.unit)),
                Value::Optional(profile.has_times.then_some(key.bucket)),
                Value::Text(kind.map_or("", String::as_str)),
                Value::Bytes(&stacks[&key.stack].0),
                Value::Integer(*samples),
                Value::Integer(*weight),
            ])?;
        }
        Ok(())
    })?;
    write_stacks(&stacks, tables)?;
    write_frames(profile, builds, &frames, &stacks, tables)
}

/// CPU time by samples of a clock that ran on a CPU.
pub(super) fn cpu_time(profile: &Profile) -> Option<Nanos> {
    let is_clock = |name: &str| name.starts_with("cpu-clock") || name.starts_with("task-clock");
    let clock = profile
        .events
        .iter()
        .position(|event| event.unit == WeightUnit::Nanoseconds && is_clock(&event.name))?;
    let clock = u16::try_from(clock).ok()?;
    let busy = profile.samples.iter().filter(|sample| {
        let frame = profile.frame_of(sample.stack);
        sample.event == clock && !frame.is_some_and(|frame| frame.is_idle())
    });
    Some(Nanos(busy.map(|sample| sample.weight).sum()))
}

/// Threads of one kind differ by numbers in their names: `worker-12` is `worker-#`.
#[must_use]
pub fn thread_kind(comm: &str) -> String {
    let mut kind = String::with_capacity(comm.len());
    for c in comm.chars() {
        match c.is_ascii_digit() {
            true if kind.ends_with('#') => {}
            true => kind.push('#'),
            false => kind.push(c),
        }
    }
    kind
}

/// The kind of each thread, and the kinds.
fn thread_kinds(profile: &Profile) -> (Vec<u32>, Vec<String>) {
    let mut kinds: Vec<String> = profile
        .threads
        .iter()
        .map(|thread| thread_kind(&thread.comm))
        .collect();
    let of_threads = kinds.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let number = |kind: &String| kinds.binary_search(kind).unwrap_or(0);
    let numbers = of_threads
        .iter()
        .map(|kind| u32::try_from(number(kind)).unwrap_or(0));
    (numbers.collect(), kinds)
}

fn frame_ids(profile: &Profile, builds: &Builds) -> Vec<Identifier> {
    let frames = profile.frames.iter();
    frames
        .map(|frame| identity::of_frame(frame, builds.build_id(&frame.module), None))
        .collect()
}

/// The identifier of each stack, and its frames, outermost first.
type Stacks = FxHashMap<NodeId, (Identifier, Vec<Identifier>)>;

fn stack_ids(
    profile: &Profile,
    frames: &[Identifier],
    nodes: impl Iterator<Item = NodeId>,
) -> Stacks {
    let mut stacks = Stacks::default();
    for node in nodes {
        stacks.entry(node).or_insert_with(|| {
            let ids = profile.stacks.frames(node);
            let mut list: Vec<Identifier> = ids
                .filter_map(|id| frames.get(id.0 as usize).copied())
                .collect();
            list.reverse();
            (identity::of_stack(&list), list)
        });
    }
    stacks
}

fn write_stacks(stacks: &Stacks, tables: &mut Tables) -> io::Result<()> {
    let mut sorted: Vec<&(Identifier, Vec<Identifier>)> = stacks.values().collect();
    sorted.sort_unstable();
    sorted.dedup();
    tables.table("stacks", schema::STACKS, |rows| {
        for (id, frames) in sorted {
            rows.of_all(&[Value::Bytes(id), Value::Identifiers(frames)])?;
        }
        Ok(())
    })
}

fn write_frames(
    profile: &Profile,
    builds: &Builds,
    ids: &[Identifier],
    stacks: &Stacks,
    tables: &mut Tables,
) -> io::Result<()> {
    let mut used: Vec<Identifier> = stacks
        .values()
        .flat_map(|(_, frames)| frames.iter().copied())
        .collect();
    used.sort_unstable();
    used.dedup();
    let mut frames: Vec<_> = ids.iter().zip(&profile.frames).collect();
    frames.retain(|(id, _)| used.binary_search(id).is_ok());
    frames.sort_unstable_by_key(|(id, _)| **id);
    frames.dedup_by_key(|(id, _)| **id);
    tables.table("frames", schema::FRAMES, |rows| {
        for (id, frame) in frames {
            rows.of_all(&[
                Value::Bytes(id),
                Value::OptionalText(builds.build_id(&frame.module)),
                Value::Optional(None),
                Value::Text(&frame.name),
                Value::Text(&frame.module),
                Value::Text(kind(frame.kind)),
            ])?;
        }
        Ok(())
    })
}

fn kind(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Kernel => "kernel",
        FrameKind::User => "user",
        FrameKind::Inlined => "inlined",
        FrameKind::Jit => "jit",
        FrameKind::Task => "task",
    }
}

fn unit(unit: WeightUnit) -> &'static str {
    match unit {
        WeightUnit::Nanoseconds => "ns",
        WeightUnit::Events => "events",
        WeightUnit::Samples => "samples",
        WeightUnit::Bytes => "bytes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_formats::perf_script;

    #[test]
    fn threads_of_one_kind_differ_by_their_numbers() {
        assert_eq!(thread_kind("worker-12"), "worker-#");
        assert_eq!(thread_kind("kworker/3:1"), "kworker/#:#");
        assert_eq!(thread_kind("python3"), "python#");
    }

    #[test]
    fn a_stack_has_one_identifier_in_every_recording() {
        let read = |text: &str| perf_script::read(text.as_bytes()).expect("memory is readable");
        let one = read("a 1 [000] 1.0: 5 cpu-clock:\n\tff f (/b/x)\n\tff main (/b/x)\n\n");
        let two = read(
            "b 2 [001] 9.0: 7 cpu-clock:\n\tff g (/b/x)\n\n\
             b 2 [001] 9.5: 7 cpu-clock:\n\tff f (/b/x)\n\tff main (/b/x)\n\n",
        );
        let ids = |profile: &Profile| {
            let frames = frame_ids(profile, &Builds::default());
            let nodes = profile.samples.iter().map(|sample| sample.stack);
            let stacks = stack_ids(profile, &frames, nodes);
            let mut ids: Vec<Identifier> = stacks.values().map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids
        };
        let (of_one, of_two) = (ids(&one), ids(&two));
        assert_eq!((of_one.len(), of_two.len()), (1, 2));
        assert!(of_two.contains(&of_one[0]));
        let mut builds = Builds::default();
        builds.add("x", &[1, 2]);
        let built = frame_ids(&one, &builds);
        assert_ne!(built, frame_ids(&one, &Builds::default()));
    }
}
