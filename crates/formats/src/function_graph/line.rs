//! The contents of one line of a trace.

use super::names::NameId;

/// A duration as printed, with its printed precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Nanoseconds, rounded down to the printed precision.
    pub ns: u64,
    /// The printed precision in nanoseconds: 1 up to 9999 µs, then 10, 100 and 1000, because
    /// the kernel prints at most eight characters (`trace_print_graph_duration`).
    pub tick: u32,
}

/// One line, parsed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line<'a> {
    /// Absolute (or, for latency tracers, relative) time in nanoseconds.
    pub time: Option<u64>,
    /// The CPU that wrote the line.
    pub cpu: Option<u32>,
    /// The running task, by its thread id.
    pub pid: Option<u32>,
    /// Nesting depth of the call, from its indentation of two blanks per level.
    pub depth: u32,
    /// How long the call took: only on leaves and closes.
    pub span: Option<Span>,
    /// What happened.
    pub content: Content<'a>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content<'a> {
    /// `f();` A call without traced children.
    Leaf(Call<'a>),
    /// `f() {` A call begins.
    Open(Call<'a>),
    /// `}` or `} /* f */` A call ends.
    Close(Tail),
    /// `/* text */` An event of another tracer.
    Event(&'a [u8]),
    /// `a-1 => b-2` Another task runs on a CPU.
    Switch {
        /// The CPU.
        cpu: Option<u32>,
        /// The task that was running.
        from: u32,
        /// The task that runs next.
        to: u32,
    },
    /// `==========>` An interrupt handler begins with the next call.
    IrqEnter,
    /// `<==========` An interrupt handler has ended.
    IrqExit,
    /// `CPU:0 [LOST 2512 EVENTS]` or `CPU:0 [2512 EVENTS DROPPED]`; unknown count: `None`.
    Lost {
        /// The CPU whose buffer overflowed.
        cpu: Option<u32>,
        /// How many events.
        events: Option<u64>,
    },
    /// `##### CPU 1 buffer started ####`: earlier events of this CPU were overwritten.
    BufferStarted {
        /// The CPU.
        cpu: u32,
    },
    /// `(Overruns: 3)`: calls deeper than the kernel's shadow stack, since the task began.
    Overruns(u64),
    /// `# pagewise: {…}` What the capture noted; see [`pagewise_model::trace_note::TraceNote`].
    Note(&'a [u8]),
    /// Comment lines, rules, blank lines.
    Decoration,
    /// A line of no known form.
    Unknown,
}

/// A call as it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The function.
    pub name: NameId,
    /// The text between the parentheses (`funcgraph-args`, since 6.15); empty otherwise.
    pub args: &'a [u8],
    /// The returned value of a leaf (`funcgraph-retval`, since 6.5).
    pub returned: Option<i64>,
}

/// The comment after a closing brace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The function (`funcgraph-tail`).
    pub name: Option<NameId>,
    /// The returned value (`funcgraph-retval`, since 6.5).
    pub returned: Option<i64>,
}
