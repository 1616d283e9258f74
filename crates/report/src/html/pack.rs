//! Profiles as columns, from which the page draws any time range and any subset of threads.
//!
//! The stacks of all profiles of a page form one tree, so that two profiles can be compared. Nodes
//! are in depth-first order, siblings by name; each is encoded by how many levels the walk went up
//! before it. The samples of each event have their own columns, in time order. A sample encodes
//! only differences from what is expected: that CPUs follow each other in the same order, that a
//! CPU keeps its thread, that a thread keeps its stack.

use super::bytes::{Column, Columns, zigzag};
use super::ranks::{by_frequency, inverse};
use super::track::{Numbers, Rows, Track};
use pagewise_model::profile::{
    CounterSeries, Frame, FrameId, FrameKind, FrameTable, NodeId, Profile, StackTree,
};
use serde::Serialize;
use std::collections::HashMap;
use std::io;

/// Nanoseconds per tick of the page's times: a hundredth of the lowest row of a heat map. Ticks are
/// aligned to the recording's clock, so no sample changes its row.
const TICK: u64 = 10_000;

/// The profiles of a page, without the content of their columns.
#[derive(Serialize)]
pub(super) struct Pack<'a> {
    modules: Vec<Box<str>>,
    /// Name, module and kind of each frame.
    frames: Vec<(Box<str>, u32, FrameKind)>,
    /// Frames in which a CPU is idle.
    idle: Vec<u32>,
    nodes: usize,
    /// For each node except the root, how many levels its caller is above the preceding node.
    ups: Column,
    node_frames: Column,
    sides: Vec<SidePack<'a>>,
}

/// One profile.
#[derive(Serialize)]
struct SidePack<'a> {
    name: &'a str,
    /// Time of the first sample, by the recording's clock: rows of the heat map are parts of its
    /// seconds.
    start_ns: u64,
    span_ns: u64,
    tick_ns: u64,
    has_times: bool,
    /// CPUs of the machine; 0 if not known.
    cpus: u32,
    comms: Vec<Box<str>>,
    threads: usize,
    pids: Column,
    tids: Column,
    thread_comms: Column,
    /// Paths of control groups; empty if none was recorded.
    cgroups: Vec<Box<str>>,
    thread_cgroups: Column,
    tracks: Vec<Track<'a>>,
    counters: Vec<Counter<'a>>,
}

#[derive(Serialize)]
struct Counter<'a> {
    name: &'a str,
    counted: f64,
    /// Milliseconds since the first sample, and the count since the previous point.
    points: Vec<(f64, f64)>,
}

/// Packs profiles under their names. Functions of two profiles are matched as if from two hosts.
pub(super) fn pack<'a>(
    profiles: &[(&'a Profile, &'a str)],
    columns: &mut Columns,
) -> io::Result<Pack<'a>> {
    let shared = Shared::new(profiles);
    let order = Order::new(&shared);
    let mut depths = vec![0_u32; shared.tree.len()];
    let mut before = 0;
    let ups: Vec<u64> = order
        .nodes
        .iter()
        .skip(1)
        .map(|&node| {
            let depth = depths[shared.tree.parent(node).0 as usize] + 1;
            depths[node.0 as usize] = depth;
            u64::from(std::mem::replace(&mut before, depth) + 1 - depth)
        })
        .collect();
    let frames = order
        .nodes
        .iter()
        .filter_map(|&node| shared.tree.frame(node));
    let frames = frames.map(|frame| u64::from(order.frame_places[frame.0 as usize]));
    let (ups, node_frames) = (columns.add(ups.into_iter())?, columns.add(frames)?);
    let mut modules = Texts::default();
    let in_order = order
        .frames
        .iter()
        .map(|&frame| &shared.frames[frame as usize]);
    let frames: Vec<_> = in_order
        .map(|frame| {
            (
                frame.name.clone(),
                modules.number(&frame.module),
                frame.kind,
            )
        })
        .collect();
    let idle = order
        .frames
        .iter()
        .zip(0..)
        .filter(|&(&frame, _)| shared.frames[frame as usize].is_idle());
    let idle = idle.map(|(_, place)| place).collect();
    let sides = profiles
        .iter()
        .zip(&shared.places)
        .map(|(&(profile, name), places)| {
            let place = |node: NodeId| order.places[places[node.0 as usize].0 as usize];
            side(profile, name, &place, shared.tree.len(), columns)
        })
        .collect::<io::Result<_>>()?;
    Ok(Pack {
        modules: modules.names,
        frames,
        idle,
        nodes: shared.tree.len(),
        ups,
        node_frames,
        sides,
    })
}

/// Frames and stacks of all profiles.
struct Shared {
    frames: Vec<Frame>,
    tree: StackTree,
    /// The position of each profile's nodes in `tree`.
    places: Vec<Vec<NodeId>>,
}

impl Shared {
    fn new(profiles: &[(&Profile, &str)]) -> Self {
        let is_one = profiles.len() == 1;
        let (mut table, mut tree) = (FrameTable::default(), StackTree::default());
        let places = profiles
            .iter()
            .map(|(profile, _)| {
                let known = profile.frames.iter().map(|frame| match is_one {
                    true => table.intern(frame.clone()),
                    false => table.intern(frame.comparable()),
                });
                let known: Vec<FrameId> = known.collect();
                let mut places = vec![NodeId::ROOT; profile.stacks.len()];
                for (node, parent, frame) in profile.stacks.nodes() {
                    let above = places[parent.0 as usize];
                    let (number, frame) =
                        (known[frame.0 as usize], &profile.frames[frame.0 as usize]);
                    places[node.0 as usize] = tree.child_in_chain(above, number, frame);
                }
                places
            })
            .collect();
        Self {
            frames: table.into_frames(),
            tree,
            places,
        }
    }
}

/// The order in which nodes and frames are written.
struct Order {
    nodes: Vec<NodeId>,
    /// The position of each node in `nodes`.
    places: Vec<u32>,
    /// Frames that occur in the tree, most frequent first.
    frames: Vec<u32>,
    frame_places: Vec<u32>,
}

impl Order {
    fn new(shared: &Shared) -> Self {
        let mut by_name: Vec<u32> = (0..).take(shared.frames.len()).collect();
        let name = |at: u32| {
            (
                &shared.frames[at as usize].name,
                &shared.frames[at as usize].module,
            )
        };
        by_name.sort_by(|&a, &b| name(a).cmp(&name(b)));
        let ranks = inverse(&by_name, shared.frames.len());
        let mut edges: Vec<(NodeId, u32, NodeId)> = Vec::with_capacity(shared.tree.len());
        for (node, parent, frame) in shared.tree.nodes() {
            edges.push((parent, ranks[frame.0 as usize], node));
        }
        edges.sort_unstable();
        let mut first = vec![0_usize; shared.tree.len() + 1];
        for &(parent, _, _) in &edges {
            first[parent.0 as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut nodes = Vec::with_capacity(shared.tree.len());
        let mut open = vec![NodeId::ROOT];
        while let Some(node) = open.pop() {
            nodes.push(node);
            let below = &edges[first[node.0 as usize]..first[node.0 as usize + 1]];
            open.extend(below.iter().rev().map(|&(_, _, child)| child));
        }
        let frames = shared.tree.nodes().map(|(_, _, frame)| frame.0);
        let frames = by_frequency(frames, shared.frames.len());
        let numbers: Vec<u32> = nodes.iter().map(|node| node.0).collect();
        Self {
            places: inverse(&numbers, shared.tree.len()),
            frame_places: inverse(&frames, shared.frames.len()),
            nodes,
            frames,
        }
    }
}

/// One profile's part; `place` maps its nodes to the common tree, which has this many.
fn side<'a>(
    profile: &'a Profile,
    name: &'a str,
    place: &impl Fn(NodeId) -> u32,
    nodes: usize,
    columns: &mut Columns,
) -> io::Result<SidePack<'a>> {
    let samples = &profile.samples;
    let last = samples.times.last().unwrap_or(0);
    let mut tick_ns = TICK;
    while last.max(profile.span.0) / tick_ns >= u64::from(u32::MAX) {
        tick_ns *= 10;
    }
    // Frequent threads get small numbers.
    let threads = by_frequency(samples.threads.iter(), profile.threads.len());
    let known = || threads.iter().map(|&at| &profile.threads[at as usize]);
    let mut comms = Texts::default();
    let thread_comms: Vec<u32> = known().map(|thread| comms.number(&thread.comm)).collect();
    let thread_comms = thread_comms.into_iter().map(u64::from);
    let mut cgroups = Texts::default();
    let thread_cgroups: Vec<u32> = known()
        .map(|thread| cgroups.number(&thread.cgroup))
        .collect();
    let thread_cgroups = thread_cgroups.into_iter().map(u64::from);
    if cgroups.names.iter().all(|path| path.is_empty()) {
        cgroups.names.clear();
    }
    let of_events = Numbers::by_event(samples, profile.events.len());
    let places = inverse(&threads, profile.threads.len());
    let tracks = profile.events.iter().zip(&of_events);
    let tracks = tracks
        .filter(|(_, rows)| rows.len() > 0)
        .map(|(event, rows)| {
            let rows = Rows {
                samples,
                rows,
                start: profile.start.0,
                tick: tick_ns,
                threads: &places,
                nodes,
            };
            Track::new(event, &rows, place, columns)
        });
    Ok(SidePack {
        name,
        start_ns: profile.start.0,
        span_ns: profile.span.0,
        tick_ns,
        has_times: profile.has_times,
        cpus: profile.host.cpus,
        tracks: tracks.collect::<io::Result<_>>()?,
        threads: threads.len(),
        pids: columns.add(steps(known().map(|thread| thread.pid)))?,
        tids: columns.add(steps(known().map(|thread| thread.tid)))?,
        thread_comms: columns.add(thread_comms)?,
        comms: comms.names,
        thread_cgroups: columns.add(thread_cgroups)?,
        cgroups: cgroups.names,
        counters: profile.counters.iter().map(Counter::new).collect(),
    })
}

/// Each number as its difference from the previous one.
fn steps(numbers: impl Iterator<Item = i32>) -> impl Iterator<Item = u64> {
    let mut before = 0;
    numbers.map(move |number| {
        let step = i64::from(number) - std::mem::replace(&mut before, i64::from(number));
        zigzag(step)
    })
}

impl<'a> Counter<'a> {
    fn new(series: &'a CounterSeries) -> Self {
        let points = series.points.iter();
        Self {
            name: &series.name,
            counted: series.counted,
            points: points
                .map(|&(time, count)| ((time / 1000) as f64 / 1e3, count))
                .collect(),
        }
    }
}

/// Distinct texts.
#[derive(Default)]
struct Texts {
    names: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

impl Texts {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.numbers.get(name) {
            return known;
        }
        let new = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.into());
        self.numbers.insert(name.into(), new);
        new
    }
}
