//! Perfetto traces (protos/perfetto/trace/trace.proto of perfetto v50): a track for each task,
//! calls as nested slices. `ui.perfetto.dev` opens them.
//!
//! The encoder is our own, since five messages are enough:
//!
//! ```text
//! Trace { packet = 1: TracePacket* }
//! TracePacket { timestamp = 8, trusted_packet_sequence_id = 10, track_event = 11,
//!               interned_data = 12, sequence_flags = 13, track_descriptor = 60 }
//! TrackDescriptor { uuid = 1, name = 2, thread = 4 { pid = 1, tid = 2, thread_name = 5 } }
//! TrackEvent { type = 9 (1 begin, 2 end), name_iid = 10, track_uuid = 11, category_iids = 3 }
//! InternedData { event_categories = 1 { iid = 1, name = 2 }, event_names = 2 { iid = 1, name = 2 } }
//! ```
//!
//! A trace's text shows when a fault began and how long each call took, but not with nanosecond
//! resolution when each call began. Calls are therefore laid out in their order, with the caller's
//! self time in equal parts before, between and after them.

use super::protobuf::Message;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

/// A call with its duration. Its callees follow it, each before its own callees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice<'a> {
    /// The function, or why the task did not run.
    pub name: &'a str,
    /// Its class: calls of the fault, interrupts, waits.
    pub category: Category,
    /// Index of the first slice after this one and all its callees.
    pub end: usize,
    /// Including all callees, in nanoseconds.
    pub duration_ns: u64,
}

/// What a slice shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// A call.
    Call,
    /// An interrupt's call.
    Interrupt,
    /// Time off the CPU.
    Wait,
}

impl Category {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Call, "call"),
        (Self::Interrupt, "interrupt"),
        (Self::Wait, "off-cpu"),
    ];

    fn id(self) -> u64 {
        self as u64 + 1
    }
}

/// A Perfetto trace being written.
pub struct PerfettoWriter<W> {
    out: W,
    names: HashMap<String, u64>,
    tasks: BTreeSet<u32>,
    is_begun: bool,
}

/// All our packets belong to one sequence, whose names are interned.
const SEQUENCE: u64 = 1;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
const BEGIN: u64 = 1;
const END: u64 = 2;

impl<W: Write> PerfettoWriter<W> {
    /// Starts a trace.
    pub fn new(out: W) -> Self {
        Self {
            out,
            names: HashMap::new(),
            tasks: BTreeSet::new(),
            is_begun: false,
        }
    }

    /// Adds a call of a task and all its callees: the first of `slices`, which contains the others.
    /// Calls of one task must not overlap.
    ///
    /// # Errors
    /// When the trace can't be written.
    pub fn write(&mut self, task: u32, start_ns: u64, slices: &[Slice<'_>]) -> io::Result<()> {
        self.begin()?;
        if self.tasks.insert(task) {
            self.packet(&track(task))?;
        }
        let starts = starts(slices, start_ns);
        let mut open: Vec<usize> = Vec::new();
        for (at, slice) in slices.iter().enumerate() {
            while let Some(done) = open.pop_if(|outer| slices[*outer].end <= at) {
                self.end_slice(task, starts[done] + slices[done].duration_ns)?;
            }
            self.begin_slice(task, starts[at], slice)?;
            open.push(at);
        }
        while let Some(done) = open.pop() {
            self.end_slice(task, starts[done] + slices[done].duration_ns)?;
        }
        Ok(())
    }

    /// Completes the trace.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.begin()?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// The packet that starts the interning of names.
    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let mut interned = Message::default();
        for (category, name) in Category::ALL {
            interned.message(1, &entry(category.id(), name));
        }
        let mut packet = Message::default();
        packet.number(10, SEQUENCE);
        packet.message(12, &interned);
        packet.number(13, STATE_CLEARED | NEEDS_STATE);
        self.packet(&packet)
    }

    fn begin_slice(&mut self, task: u32, time: u64, slice: &Slice<'_>) -> io::Result<()> {
        let mut packet = Message::default();
        packet.number(8, time);
        packet.number(10, SEQUENCE);
        let (id, is_new) = self.name(slice.name);
        let mut event = Message::default();
        event.number(3, slice.category.id());
        event.number(9, BEGIN);
        event.number(10, id);
        event.number(11, u64::from(task) + 1);
        packet.message(11, &event);
        if is_new {
            let mut interned = Message::default();
            interned.message(2, &entry(id, slice.name));
            packet.message(12, &interned);
        }
        packet.number(13, NEEDS_STATE);
        self.packet(&packet)
    }

    fn end_slice(&mut self, task: u32, time: u64) -> io::Result<()> {
        let mut event = Message::default();
        event.number(9, END);
        event.number(11, u64::from(task) + 1);
        let mut packet = Message::default();
        packet.number(8, time);
        packet.number(10, SEQUENCE);
        packet.message(11, &event);
        packet.number(13, NEEDS_STATE);
        self.packet(&packet)
    }

    fn name(&mut self, name: &str) -> (u64, bool) {
        if let Some(&id) = self.names.get(name) {
            return (id, false);
        }
        let id = self.names.len() as u64 + 1;
        self.names.insert(name.to_owned(), id);
        (id, true)
    }

    fn packet(&mut self, packet: &Message) -> io::Result<()> {
        let mut framed = Message::default();
        framed.message(1, packet);
        self.out.write_all(framed.bytes_so_far())
    }
}

/// A name or category with its number.
fn entry(id: u64, name: &str) -> Message {
    let mut entry = Message::default();
    entry.number(1, id);
    entry.text(2, name);
    entry
}

/// The track of a task. Its number is one more than the task's, since 0 means the default track.
fn track(task: u32) -> Message {
    let mut thread = Message::default();
    thread.number(1, u64::from(task));
    thread.number(2, u64::from(task));
    thread.text(5, &format!("task {task}"));
    let mut descriptor = Message::default();
    descriptor.number(1, u64::from(task) + 1);
    descriptor.message(4, &thread);
    let mut packet = Message::default();
    packet.number(10, SEQUENCE);
    packet.message(60, &descriptor);
    packet
}

/// When each slice begins.
fn starts(slices: &[Slice<'_>], first: u64) -> Vec<u64> {
    let mut starts = vec![first; slices.len()];
    for (at, outer) in slices.iter().enumerate() {
        let children = || children(slices, at);
        let inside: u64 = children().map(|child| slices[child].duration_ns).sum();
        let gaps = children().count() as u64 + 1;
        let gap = outer.duration_ns.saturating_sub(inside) / gaps;
        let mut time = starts[at];
        for child in children() {
            time += gap;
            starts[child] = time;
            time += slices[child].duration_ns;
        }
    }
    starts
}

/// The slices directly inside another.
fn children<'a>(slices: &'a [Slice<'a>], at: usize) -> impl Iterator<Item = usize> + 'a {
    let end = slices[at].end;
    let first = (at + 1 < end).then_some(at + 1);
    std::iter::successors(first, move |&child| {
        let next = slices[child].end;
        (next < end).then_some(next)
    })
}
