//! Texts read on several cores, with exactly the profile that one core produces.
//!
//! Each thread takes the next block and reads it independently; frames, stacks, threads and events
//! get numbers of that thread. At the end the blocks are joined in order, and the references of
//! each sample are renumbered as they come. Memory use is twice the samples, plus the tables of
//! each thread.

use super::times::in_time_order;
use super::{MOST_EVENTS, Reader, Threads};
use crate::text::{Shared, Source, on_threads};
use pagewise_model::host::HostSnapshot;
use pagewise_model::loss::LossKind;
use pagewise_model::profile::{FrameId, FrameTable, NodeId, Profile, ProfileEvent, ProfileSample};
use std::io;
use std::ops::Range;

/// Reads all blocks on this many threads.
pub(super) fn read(threads: usize, blocks: impl Source + Send) -> io::Result<Profile> {
    let blocks = Shared::new(blocks);
    let parts = on_threads(threads, || Part::read(&blocks))?;
    Ok(joined(parts))
}

/// What one thread read.
struct Part {
    profile: Profile,
    /// Each block's number and the range of its samples.
    blocks: Vec<(u64, Range<usize>)>,
}

impl Part {
    fn read(blocks: &Shared<impl Source>) -> io::Result<Self> {
        let mut reader = Reader::default();
        let (mut buffer, mut read, mut start) = (Vec::new(), Vec::new(), 0);
        while let Some((block, text)) = blocks.next(&mut buffer)? {
            reader.block(text, block);
            let end = reader.samples.len();
            read.push((block.number, start..end));
            start = end;
        }
        Ok(Self {
            profile: reader.into_profile(),
            blocks: read,
        })
    }
}

/// The samples of all parts in the order of the text.
fn joined(parts: Vec<Part>) -> Profile {
    let mut whole = Whole::default();
    let mut order = Vec::new();
    let mut renumbered = Vec::new();
    for (at, part) in parts.into_iter().enumerate() {
        order.extend(part.blocks.into_iter().map(|(number, of)| (number, at, of)));
        renumbered.push(Renumbered::new(part.profile));
    }
    order.sort_unstable_by_key(|&(number, ..)| number);
    for (_, part, samples) in order {
        for at in samples {
            renumbered[part].pass(at, &mut whole);
        }
    }
    for part in renumbered {
        whole.profile.losses.merge(&part.profile.losses);
        whole.profile.has_times |= part.profile.has_times;
        // The comments are in the first block, which one of the threads read.
        if part.profile.host != HostSnapshot::default() {
            (whole.profile.host, whole.profile.command) = (part.profile.host, part.profile.command);
        }
    }
    whole.profile.frames = whole.frames.into_frames();
    whole.profile.threads = whole.threads.values;
    in_time_order(whole.profile)
}

/// What is joined: a profile whose tables of frames and threads can still be searched.
#[derive(Default)]
struct Whole {
    profile: Profile,
    frames: FrameTable,
    threads: Threads,
}

impl Whole {
    fn event(&mut self, event: &ProfileEvent) -> Option<u16> {
        let events = &mut self.profile.events;
        let known = events.iter().position(|known| known.name == event.name);
        let at = known.unwrap_or(events.len());
        if at == events.len() {
            if at == MOST_EVENTS {
                return None;
            }
            events.push(event.clone());
        }
        u16::try_from(at).ok()
    }
}

/// A part, and the numbers in the whole for its own numbers.
struct Renumbered {
    profile: Profile,
    events: Vec<Option<Option<u16>>>,
    threads: Vec<Option<u32>>,
    frames: Vec<Option<FrameId>>,
    nodes: Vec<Option<NodeId>>,
    chain: Vec<FrameId>,
}

impl Renumbered {
    fn new(profile: Profile) -> Self {
        Self {
            events: vec![None; profile.events.len()],
            threads: vec![None; profile.threads.len()],
            frames: vec![None; profile.frames.len()],
            nodes: vec![None; profile.stacks.len()],
            chain: Vec::new(),
            profile,
        }
    }

    fn pass(&mut self, at: usize, whole: &mut Whole) {
        let sample = self.profile.samples.get(at);
        let event = usize::from(sample.event);
        let event =
            *self.events[event].get_or_insert_with(|| whole.event(&self.profile.events[event]));
        let Some(event) = event else {
            return whole.profile.losses.add(LossKind::UnknownRecord, 1);
        };
        let thread = sample.thread as usize;
        let thread = *self.threads[thread]
            .get_or_insert_with(|| whole.threads.intern(self.profile.threads[thread].clone()));
        let stack = match self.nodes[sample.stack.0 as usize] {
            Some(node) => node,
            None => self.stack(sample.stack, whole),
        };
        whole.profile.samples.push(ProfileSample {
            event,
            thread,
            stack,
            ..sample
        });
    }

    /// Numbers a new stack; its frames come innermost first, as in the text.
    fn stack(&mut self, there: NodeId, whole: &mut Whole) -> NodeId {
        self.chain.clear();
        for frame in self.profile.stacks.frames(there) {
            let at = frame.0 as usize;
            let here = *self.frames[at]
                .get_or_insert_with(|| whole.frames.intern(self.profile.frames[at].clone()));
            self.chain.push(here);
        }
        let node = whole
            .profile
            .stacks
            .intern(self.chain.iter().rev().copied());
        self.nodes[there.0 as usize] = Some(node);
        node
    }
}
