//! Records of all CPUs in the order of their times, as the lines that the text has for them.

use super::clock::Clock;
use super::format::{Field, Format};
use super::kallsyms::Naming;
use super::meta::Meta;
use super::stream::Stream;
use crate::formats::function_graph::{
    Builder, Call, Content, Counts, Line, Names, Sink, Span, Summary, Tail,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No call takes longer, in nanoseconds: 104 days. An exit that says so is no exit.
const LONGEST_CALL: u64 = 1 << 53;

/// What a kind of event is to a trace of calls.
enum Kind<'a> {
    Entry(Graph<'a>),
    Exit(Graph<'a>),
    Other(&'a Format, Option<&'a Field>),
}

/// The fields of an entry or exit that are read.
struct Graph<'a> {
    pid: &'a Field,
    func: &'a Field,
    depth: &'a Field,
    times: Option<(&'a Field, &'a Field)>,
    returned: Option<&'a Field>,
}

/// A call's begin or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    is_entry: bool,
    pid: Option<u32>,
    func: u64,
    depth: u32,
    span: Option<Span>,
    returned: Option<i64>,
}

/// A record, decoded.
enum Record {
    Step(Step),
    /// The text is in [`Reader::text`].
    Event(Option<u32>),
    Unknown,
}

/// Reads the records of one buffer.
pub(super) struct Reader<'m> {
    kinds: Vec<Option<Kind<'m>>>,
    clock: &'m Clock,
    naming: Naming<'m>,
    streams: Vec<Stream<'m>>,
    /// The next record's time of each stream that has one, earliest first, then lowest CPU.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    text: String,
    counts: Counts,
}

impl<'m> Reader<'m> {
    pub fn new(meta: &'m Meta<'_>) -> Self {
        let kinds = meta
            .formats
            .iter()
            .map(|format| Some(kind(format.as_ref()?)));
        let streams: Vec<Stream<'m>> = meta
            .buffers
            .iter()
            .flat_map(|buffer| buffer.cpus.iter().map(move |cpu| (buffer, cpu)))
            .map(|(buffer, cpu)| Stream::new(cpu, buffer.page_size, meta.page))
            .collect();
        let heads = streams.iter().enumerate();
        let heads = heads.filter_map(|(at, s)| Some(Reverse((s.head()?.time, at))));
        Self {
            kinds: kinds.collect(),
            clock: &meta.clock,
            naming: Naming::new(&meta.symbols),
            order: heads.collect(),
            streams,
            text: String::new(),
            counts: Counts {
                other_buffers: meta.other_buffers,
                ..Counts::default()
            },
        }
    }

    /// Hands complete calls and events to `sink`; what else there was comes back.
    pub fn read(mut self, sink: &mut impl Sink) -> Summary {
        let mut builder = Builder::new();
        while let Some(Reverse((_, at))) = self.order.pop() {
            self.record(at, |line, names| builder.line(line, names, sink));
            if let Some(head) = self.streams[at].head() {
                self.order.push(Reverse((head.time, at)));
            }
        }
        builder.finish();
        for damage in self.streams.iter().map(Stream::damage) {
            self.counts.malformed_records += damage.malformed;
            let missing = self.counts.missing_bytes;
            self.counts.missing_bytes = missing.saturating_add(damage.missing_bytes);
        }
        self.counts.unnamed_functions = self.naming.unnamed;
        Summary {
            names: self.naming.names,
            counts: self.counts,
            incomplete: builder.incomplete().clone(),
        }
    }

    /// Takes the next record of a stream: with the next one, if they are a leaf's.
    #[inline]
    fn record(&mut self, at: usize, mut visit: impl FnMut(&Line<'_>, &Names)) {
        let stream = &self.streams[at];
        let Some(head) = stream.head().cloned() else {
            return;
        };
        let cpu = stream.cpu;
        if let Some(missed) = head.missed {
            self.counts.losses += 1;
            let known = missed.unwrap_or(0);
            self.counts.lost_events = self.counts.lost_events.saturating_add(known);
            let content = Content::Lost {
                cpu: Some(cpu),
                events: missed,
            };
            visit(&line(content, (None, cpu), None), &self.naming.names);
        }
        let record = self.decode(at);
        let time = self.clock.ns(head.time);
        self.streams[at].advance();
        self.counts.lines += 1;
        match record {
            Record::Step(step) => {
                let line = self.step(at, step, time);
                visit(&line, &self.naming.names);
            }
            Record::Event(pid) => {
                let content = Content::Event(self.text.as_bytes());
                visit(&line(content, (Some(time), cpu), pid), &self.naming.names);
            }
            Record::Unknown => self.counts.unknown_lines += 1,
        }
    }

    #[inline]
    fn step(&mut self, at: usize, step: Step, time: u64) -> Line<'static> {
        let name = self.naming.of(step.func);
        let (content, span) = if step.is_entry {
            self.counts.calls += 1;
            let leaf = self.end_of_leaf(at, &step);
            let call = Call {
                name,
                args: &[],
                returned: leaf.and_then(|end| end.returned),
            };
            match leaf {
                Some(end) => (Content::Leaf(call), end.span),
                None => (Content::Open(call), None),
            }
        } else {
            let tail = Tail {
                name: Some(name),
                returned: step.returned,
            };
            (Content::Close(tail), step.span)
        };
        let cpu = self.streams[at].cpu;
        Line {
            depth: step.depth,
            span,
            ..line(content, (Some(time), cpu), step.pid)
        }
    }

    /// Takes the stream's next record if it is the end of the call that just began: what the
    /// text has as one line.
    #[inline]
    fn end_of_leaf(&mut self, at: usize, entry: &Step) -> Option<Step> {
        let stream = &self.streams[at];
        let head = stream.head().filter(|head| head.missed.is_none())?;
        let end = self.step_in(stream.bytes(&head.place))?;
        let ends =
            !end.is_entry && (end.func, end.depth, end.pid) == (entry.func, entry.depth, entry.pid);
        if !ends {
            return None;
        }
        self.streams[at].advance();
        self.counts.lines += 1;
        Some(end)
    }

    #[inline]
    fn kind_of(&self, bytes: &[u8]) -> Option<&Kind<'m>> {
        let id = u16::from_le_bytes(*bytes.first_chunk()?);
        self.kinds.get(usize::from(id))?.as_ref()
    }

    #[inline]
    fn step_in(&self, bytes: &[u8]) -> Option<Step> {
        match self.kind_of(bytes)? {
            Kind::Entry(graph) => graph.step(bytes, true, self.clock),
            Kind::Exit(graph) => graph.step(bytes, false, self.clock),
            Kind::Other(..) => None,
        }
    }

    #[inline]
    fn decode(&mut self, at: usize) -> Record {
        let mut text = std::mem::take(&mut self.text);
        let record = self.decoded(at, &mut text);
        self.text = text;
        record
    }

    #[inline]
    fn decoded(&self, at: usize, text: &mut String) -> Record {
        let stream = &self.streams[at];
        let Some(head) = stream.head() else {
            return Record::Unknown;
        };
        let bytes = stream.bytes(&head.place);
        if let Some(step) = self.step_in(bytes) {
            return Record::Step(step);
        }
        let Some(Kind::Other(format, pid)) = self.kind_of(bytes) else {
            return Record::Unknown;
        };
        let pid = pid.and_then(|pid| pid.number(bytes));
        let pid = pid.and_then(|pid| u32::try_from(pid).ok());
        text.clear();
        format.print(bytes, text);
        Record::Event(pid)
    }
}

impl<'a> Graph<'a> {
    fn of(format: &'a Format) -> Option<Self> {
        Some(Self {
            pid: format.field("common_pid")?,
            func: format.field("func")?,
            depth: format.field("depth")?,
            times: format.field("calltime").zip(format.field("rettime")),
            returned: format.field("retval"),
        })
    }

    #[inline]
    fn step(&self, record: &[u8], is_entry: bool, clock: &Clock) -> Option<Step> {
        let depth = self.depth.number(record)?;
        Some(Step {
            is_entry,
            pid: u32::try_from(self.pid.number(record)?).ok(),
            func: self.func.number(record)?,
            depth: u32::try_from(depth).ok()?,
            span: match self.times {
                Some((from, to)) => {
                    let ticks = to.number(record)?.saturating_sub(from.number(record)?);
                    let ns = clock.ns(ticks);
                    Some((ns <= LONGEST_CALL).then_some(Span { ns, tick: 1 })?)
                }
                None => None,
            },
            returned: self
                .returned
                .and_then(|field| field.number(record))
                .map(u64::cast_signed),
        })
    }
}

/// What an event's format makes of it. An entry or exit without the fields that are needed is
/// an event like others.
fn kind(format: &Format) -> Kind<'_> {
    let graph = || Graph::of(format);
    let kind = match &*format.name {
        "funcgraph_entry" | "fgraph_retaddr_entry" => graph().map(Kind::Entry),
        "funcgraph_exit" => graph().map(Kind::Exit),
        _ => None,
    };
    kind.unwrap_or_else(|| Kind::Other(format, format.field("common_pid")))
}

fn line(content: Content<'_>, (time, cpu): (Option<u64>, u32), pid: Option<u32>) -> Line<'_> {
    Line {
        time,
        cpu: Some(cpu),
        pid,
        depth: 0,
        span: None,
        content,
    }
}
