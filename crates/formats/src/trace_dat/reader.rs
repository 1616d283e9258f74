//! Records of all CPUs in the order of their times, as the lines of the text form.

use super::clock::Ticks;
use super::format::{Field, Format};
use super::kallsyms::Naming;
use super::meta::Meta;
use super::stream::Stream;
use crate::function_graph::{
    Builder, Call, Content, Counts, Line, Names, Settling, Sink, Span, Summary, Tail,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No call takes longer, in nanoseconds: 104 days. An exit with a longer time is invalid.
const LONGEST_CALL: u64 = 1 << 53;

/// The role of a kind of event in a trace of calls.
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
    usual: Option<Usual>,
}

/// The offsets of the fields if they have the sizes that all kernels so far have given them, except
/// for the depth: they are read without checking sizes.
#[derive(Clone, Copy, Debug)]
struct Usual {
    pid: usize,
    func: usize,
    depth: usize,
    depth_size: usize,
    times: Option<(usize, usize)>,
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

/// Reads the records of one buffer.
pub(super) struct Reader<'m> {
    kinds: Vec<Option<Kind<'m>>>,
    clock: Ticks,
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
            clock: meta.clock.ticks(),
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

    /// Hands complete calls and events to `sink`; returns everything else.
    pub fn read(mut self, sink: &mut impl Sink) -> Summary {
        let mut builder = Builder::new();
        let mut sink = Settling::new(sink);
        while let Some(Reverse((_, at))) = self.order.pop() {
            // As long as no other CPU has an earlier record.
            let next = self.order.peek().map(|Reverse(next)| *next);
            loop {
                self.record(at, |line, names| builder.line(line, names, &mut sink));
                let Some(head) = self.streams[at].head() else {
                    break;
                };
                let head = (head.time, at);
                if next.is_some_and(|next| next < head) {
                    self.order.push(Reverse(head));
                    break;
                }
            }
        }
        builder.finish();
        sink.finish(&self.naming.names);
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

    /// Takes the next record of a stream: together with the next one, if both belong to a leaf.
    #[inline]
    fn record(&mut self, at: usize, mut visit: impl FnMut(&Line<'_>, &Names)) {
        let stream = &self.streams[at];
        let Some(head) = stream.head() else {
            return;
        };
        let (cpu, missed) = (stream.cpu, head.missed);
        let time = self.clock.ns(head.time);
        let step = self.step_in(stream.bytes(&head.place));
        if let Some(missed) = missed {
            visit(&self.lost(cpu, missed), &self.naming.names);
        }
        self.counts.lines += 1;
        let Some(step) = step else {
            return match self.event(at) {
                Some(pid) => {
                    let content = Content::Event(self.text.as_bytes());
                    visit(&line(content, (Some(time), cpu), pid), &self.naming.names);
                }
                None => self.counts.unknown_lines += 1,
            };
        };
        self.streams[at].advance();
        let line = self.step(at, step, time);
        visit(&line, &self.naming.names);
    }

    #[cold]
    fn lost(&mut self, cpu: u32, missed: Option<u64>) -> Line<'static> {
        self.counts.losses += 1;
        let known = missed.unwrap_or(0);
        self.counts.lost_events = self.counts.lost_events.saturating_add(known);
        let content = Content::Lost {
            cpu: Some(cpu),
            events: missed,
        };
        line(content, (None, cpu), None)
    }

    #[inline]
    fn step(&mut self, at: usize, step: Step, time: u64) -> Line<'static> {
        let name = self.naming.name(step.func);
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

    /// Takes the stream's next record if it is the end of the call that just began: a pair that is
    /// one line in the text.
    #[inline]
    fn end_of_leaf(&mut self, at: usize, entry: &Step) -> Option<Step> {
        let stream = &self.streams[at];
        let head = stream.head().filter(|head| head.missed.is_none())?;
        let bytes = stream.bytes(&head.place);
        let Kind::Exit(graph) = self.kind_of(bytes)? else {
            return None;
        };
        let end = graph.step(bytes, false, self.clock)?;
        let ends = (end.func, end.depth, end.pid) == (entry.func, entry.depth, entry.pid);
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

    /// Takes a record that does not belong to a call: its task, if any, with the text in
    /// [`Self::text`]; `None` where it has no known form.
    #[cold]
    fn event(&mut self, at: usize) -> Option<Option<u32>> {
        let mut text = std::mem::take(&mut self.text);
        let pid = self.printed(at, &mut text);
        self.text = text;
        self.streams[at].advance();
        pid
    }

    fn printed(&self, at: usize, text: &mut String) -> Option<Option<u32>> {
        let stream = &self.streams[at];
        let bytes = stream.bytes(&stream.head()?.place);
        let Kind::Other(format, pid) = self.kind_of(bytes)? else {
            return None;
        };
        text.clear();
        format.print(bytes, text);
        let pid = pid.and_then(|pid| pid.number(bytes));
        Some(pid.and_then(|pid| u32::try_from(pid).ok()))
    }
}

impl<'a> Graph<'a> {
    fn from_format(format: &'a Format) -> Option<Self> {
        let mut graph = Self {
            pid: format.field("common_pid")?,
            func: format.field("func")?,
            depth: format.field("depth")?,
            times: format.field("calltime").zip(format.field("rettime")),
            returned: format.field("retval"),
            usual: None,
        };
        graph.usual = graph.usual();
        Some(graph)
    }

    fn usual(&self) -> Option<Usual> {
        let of_size = |field: &Field, size: usize| (field.size == size).then_some(field.offset);
        let depth_size = self.depth.size;
        Some(Usual {
            pid: of_size(self.pid, 4)?,
            func: of_size(self.func, 8)?,
            depth: matches!(depth_size, 4 | 8).then_some(self.depth.offset)?,
            depth_size,
            times: match self.times {
                Some((from, to)) => Some((of_size(from, 8)?, of_size(to, 8)?)),
                None => None,
            },
        })
    }

    #[inline]
    fn step(&self, record: &[u8], is_entry: bool, clock: Ticks) -> Option<Step> {
        let (pid, func, depth, times) = match &self.usual {
            Some(usual) => usual.numbers(record)?,
            None => self.numbers(record)?,
        };
        Some(Step {
            is_entry,
            pid: u32::try_from(pid).ok(),
            func,
            depth: u32::try_from(depth).ok()?,
            span: match times {
                Some((from, to)) => {
                    let ns = clock.ns(to.saturating_sub(from));
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

    /// Task, function, depth and times of a record.
    fn numbers(&self, record: &[u8]) -> Option<Numbers> {
        let times = match self.times {
            Some((from, to)) => Some((from.number(record)?, to.number(record)?)),
            None => None,
        };
        let (pid, func) = (self.pid.number(record)?, self.func.number(record)?);
        Some((pid, func, self.depth.number(record)?, times))
    }
}

/// Task, function, depth, and for the end of a call its begin and end.
type Numbers = (u64, u64, u64, Option<(u64, u64)>);

impl Usual {
    /// As [`Graph::numbers`]; tasks and depths are never negative.
    #[inline]
    fn numbers(&self, record: &[u8]) -> Option<Numbers> {
        let four = |at: usize| Some(u32::from_le_bytes(*record.get(at..)?.first_chunk()?).into());
        let eight = |at: usize| Some(u64::from_le_bytes(*record.get(at..)?.first_chunk()?));
        let depth = match self.depth_size {
            4 => four(self.depth)?,
            _ => eight(self.depth)?,
        };
        let times = match self.times {
            Some((from, to)) => Some((eight(from)?, eight(to)?)),
            None => None,
        };
        Some((four(self.pid)?, eight(self.func)?, depth, times))
    }
}

/// The role of an event, from its format. An entry or exit without the required fields is treated
/// like any other event.
fn kind(format: &Format) -> Kind<'_> {
    let graph = || Graph::from_format(format);
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
