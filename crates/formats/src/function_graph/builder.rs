//! Call trees from lines: one stack per task, that follows the task from CPU to CPU.
//!
//! Only complete calls come out. Anything cut off, overwritten or contradictory is counted by its
//! cause in [`LossKind`] and left out, with everything around it up to the next call at the top
//! level.
//!
//! State is per task, and a task's state is empty where a call at the top level begins. So a text
//! can be cut into pieces that are read in parallel ([`super::parallel`]): a task's lines in a
//! piece that come before such a call wait for the piece before.

mod away;

use super::interrupts::is_interrupt;
use super::line::{Call, Content, Line, Span, Tail};
use super::names::Names;
use super::scheduling::{Gap, Leaving, Part, Parts};
use super::switch;
use super::task::{Away, Early, Frame, Task};
use super::tree::{CallTree, Detail, Node, OffCpu, Wait};
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::trace_note::TraceNote;
use rustc_hash::FxHashMap;

/// Largest number of nodes in a tree: 32 MiB.
pub const LARGEST_TREE: usize = 1 << 20;

/// Takes what the [`Builder`] finds.
pub trait Sink {
    /// A complete call at the top level.
    fn tree(&mut self, tree: &CallTree, names: &Names);
    /// The same, for a sink that keeps trees: it may leave another tree in its place, whose memory
    /// is then reused.
    fn keep(&mut self, tree: &mut CallTree, names: &Names) {
        self.tree(tree, names);
    }
    /// The end of a call that is not part of a tree: the only content with `tracing_thresh`.
    fn bare_close(&mut self, _tail: Tail, _depth: u32, _span: Option<Span>) {}
    /// An event of another tracer.
    fn event(&mut self, _line: &Line<'_>, _text: &[u8]) {}
    /// A note of the capture.
    fn note(&mut self, _note: TraceNote) {}
}

impl<F: FnMut(&CallTree, &Names)> Sink for F {
    fn tree(&mut self, tree: &CallTree, names: &Names) {
        self(tree, names);
    }
}

/// Builds the call trees of one trace from its lines.
#[derive(Default)]
pub struct Builder {
    pub(super) tasks: Vec<Task>,
    pub(super) index: FxHashMap<u64, usize>,
    last: Option<(u64, usize)>,
    pub(super) parts: Parts,
    running: FxHashMap<u32, u32>,
    /// Whether the lines are a piece of a longer text, so that what came before them is unknown.
    is_piece: bool,
    /// Losses so far, and their number at the time of each CPU's latest loss.
    pub(super) losses: u32,
    lost_on: FxHashMap<u32, u32>,
    /// Tasks whose switch was announced but that are still running: the tracer shows what they call
    /// between the event sched_switch and the switch itself. By CPU.
    pub(super) leaving: FxHashMap<u32, usize>,
    pub(super) spare: Vec<CallTree>,
    pub(super) incomplete: Losses,
}

const IDLE: u64 = 1 << 40;
pub(super) const UNKNOWN: u64 = 2 << 40;

impl Builder {
    /// A builder without open calls.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder for a piece of a text.
    pub(super) fn of_piece() -> Self {
        Self {
            is_piece: true,
            ..Self::default()
        }
    }

    /// Clears everything but keeps the memory, for the next piece.
    pub(super) fn restart(&mut self) {
        self.tasks.clear();
        self.index.clear();
        self.last = None;
        self.running.clear();
        self.leaving.clear();
        self.incomplete = Losses::default();
        self.losses = 0;
        self.lost_on.clear();
    }

    /// What is missing so far.
    #[must_use]
    pub fn incomplete(&self) -> &Losses {
        &self.incomplete
    }

    /// Takes the next line; complete calls go to `sink`.
    #[inline]
    pub fn line(&mut self, line: &Line<'_>, names: &Names, sink: &mut impl Sink) {
        match line.content {
            Content::Leaf(call) => self.call(line, call, names, sink, Self::leaf),
            Content::Open(call) => self.call(line, call, names, sink, Self::open),
            Content::Close(tail) => self.close(line, tail, names, sink),
            Content::Decoration | Content::Unknown | Content::Overruns(_) => {}
            _ => self.between_calls(line, sink),
        }
    }

    /// Ends the trace: open calls stay incomplete.
    pub fn finish(&mut self) {
        for task in 0..self.tasks.len() {
            self.abandon(task, LossKind::OpenAtEnd);
        }
    }

    #[cold]
    pub(super) fn between_calls(&mut self, line: &Line<'_>, sink: &mut impl Sink) {
        match line.content {
            Content::Event(text) => {
                self.event(line, text);
                sink.event(line, text);
            }
            Content::Switch { cpu, from, to } => self.switched(cpu, from, to),
            Content::IrqEnter => {
                let task = self.task_of(line);
                self.tasks[task].interrupt_next = true;
            }
            Content::Lost { cpu, .. } => self.lost(cpu),
            Content::Note(text) => {
                if let Some(note) = TraceNote::of_line(text) {
                    if matches!(note, TraceNote::RootOnly { .. }) {
                        // A stretch is left out here, and with it the ends of the open calls.
                        self.finish();
                    }
                    sink.note(note);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn call<S: Sink>(
        &mut self,
        line: &Line<'_>,
        call: Call<'_>,
        names: &Names,
        sink: &mut S,
        add: impl FnOnce(&mut Self, usize, &Line<'_>, Call<'_>, &Names, &mut S),
    ) {
        let (task, since) = self.arrive(line);
        if let Some(top) = self.tasks[task].stack.last() {
            let is_idle = top.leaving.is_idle();
            if line.depth != top.depth + 1 {
                self.misplaced(task, line.depth, call, names);
            }
            let part = self.parts.part(call.name.0, names);
            if part != Part::None || !is_idle {
                self.told_of_switch(task, part, Gap::between(since, line.time));
            }
        }
        if self.tasks[task].stack.is_empty() && !self.begin(task, line) {
            self.tasks[task].interrupt_next = false;
            return;
        }
        add(self, task, line, call, names, sink);
    }

    /// A call that is not one level below the innermost open one: an interrupt or a loss.
    #[cold]
    fn misplaced(&mut self, task: usize, depth: u32, call: Call<'_>, names: &Names) {
        let state = &mut self.tasks[task];
        let here = u32::try_from(state.tree.nodes.len()).unwrap_or(u32::MAX);
        let Some(top) = state.stack.last_mut() else {
            return;
        };
        let at_exit = depth == top.depth && (depth > 0 || is_interrupt(names.base(call.name)));
        if at_exit {
            top.ended_at.get_or_insert(here);
        } else if depth > top.depth {
            top.early.get_or_insert(Early {
                first: here,
                ns: 0,
                off_cpu: state.tree.off_cpu.len(),
            });
        }
        if at_exit || depth > top.depth {
            state.interrupt_next = true;
        } else {
            self.abandon(task, LossKind::NeverClosed);
        }
    }

    /// Begins a tree with a call at the top level; for deeper calls the callers are missing.
    fn begin(&mut self, task: usize, line: &Line<'_>) -> bool {
        let state = &mut self.tasks[task];
        if line.depth > 0 {
            if !state.adrift {
                state.adrift = true;
                self.incomplete.add(LossKind::BeganEarlier, 1);
            }
            return false;
        }
        state.adrift = false;
        state.late.clear();
        state.tree = self.spare.pop().unwrap_or_default();
        state.tree.clear();
        state.tree.pid = line.pid;
        state.tree.cpu = line.cpu;
        state.tree.start = line.time;
        true
    }

    #[inline]
    fn leaf<S: Sink>(
        &mut self,
        task: usize,
        line: &Line<'_>,
        call: Call<'_>,
        names: &Names,
        sink: &mut S,
    ) {
        let node = self.push(task, line, call);
        let state = &mut self.tasks[task];
        state.tree.nodes[node].end = u32::try_from(state.tree.nodes.len()).unwrap_or(u32::MAX);
        let ns = line.span.unwrap_or_default().ns;
        // A leaf's line has the time at which it began.
        state.last_time = line.time.map(|time| time.saturating_add(ns));
        if state.stack.is_empty() {
            return self.complete(task, line, names, sink);
        }
        let node = u32::try_from(node).unwrap_or(u32::MAX);
        state.charge_caller(line.depth, ns, (node, line.time));
    }

    #[inline]
    fn open<S: Sink>(
        &mut self,
        task: usize,
        line: &Line<'_>,
        call: Call<'_>,
        _names: &Names,
        _sink: &mut S,
    ) {
        let node = self.push(task, line, call);
        if node >= LARGEST_TREE {
            return self.abandon(task, LossKind::TooLarge);
        }
        let state = &mut self.tasks[task];
        let adopted = state.tree.nodes.len() - 1 - node;
        let adopted = u32::try_from(adopted).unwrap_or(u32::MAX);
        let adopted = (adopted, state.tree.nodes[node].children_ns);
        state.stack.push(Frame {
            node: u32::try_from(node).unwrap_or(u32::MAX),
            depth: line.depth,
            time: line.time,
            ended_at: None,
            early: None,
            adopted,
            leaving: Leaving::default(),
        });
    }

    #[inline]
    fn push(&mut self, task: usize, line: &Line<'_>, call: Call<'_>) -> usize {
        let state = &mut self.tasks[task];
        let tree = &mut state.tree;
        let node = tree.nodes.len();
        let index = u32::try_from(node).unwrap_or(u32::MAX);
        tree.timed &= line.span.is_some() || matches!(line.content, Content::Open(_));
        tree.nodes.push(Node {
            name: call.name.0,
            end: index,
            depth: u16::try_from(line.depth).unwrap_or(u16::MAX),
            span: line.span.unwrap_or_default(),
            children_ns: 0,
        });
        if state.interrupt_next {
            state.interrupt_next = false;
            tree.interrupts.push(index);
        }
        if !call.args.is_empty() || call.returned.is_some() {
            tree.details.push(Detail {
                node: index,
                args: String::from_utf8_lossy(call.args).into(),
                returned: call.returned,
            });
        }
        match state.stack.last() {
            Some(top) if top.early.is_some() && line.depth == top.depth + 1 => {
                state.adopt(line.span)
            }
            _ => node,
        }
    }

    #[inline]
    fn close<S: Sink>(&mut self, line: &Line<'_>, tail: Tail, names: &Names, sink: &mut S) {
        let (task, since) = self.arrive(line);
        if line.depth == 0 && self.tasks[task].away.is_some() {
            // The switch was inside the outermost call, which could not end before the switch was
            // over.
            self.came_back(task, line.time);
        }
        let state = &mut self.tasks[task];
        let Some(&top) = state.stack.last() else {
            return self.bare_close(task, line, tail, sink);
        };
        let here = u32::try_from(state.tree.nodes.len()).unwrap_or(u32::MAX);
        let node = &mut state.tree.nodes[top.node as usize];
        if top.depth != line.depth || tail.name.is_some_and(|name| name.0 != node.name) {
            return self.contradiction(task, line, top);
        }
        if !top.leaving.is_idle() {
            self.closed_after_switch(task, Gap::between(since, line.time));
        }
        let state = &mut self.tasks[task];
        let node = &mut state.tree.nodes[top.node as usize];
        state.stack.pop();
        node.span = match line.span {
            Some(span) => span,
            None => measured(&mut state.tree.timed, top.time, line.time),
        };
        let ns = node.span.ns;
        node.end = top.ended_at.unwrap_or(here);
        if let Some(returned) = tail.returned {
            state.tree.details.push(Detail {
                node: top.node,
                args: Box::default(),
                returned: Some(returned),
            });
        }
        if top.adopted.0 > 0 || top.ended_at.is_some() {
            state.settle(top, here, line.time);
        }
        let node = &state.tree.nodes[top.node as usize];
        if node.children_ns > node.span.ns + u64::from(node.span.tick) {
            state.put_behind(top.node, |name| is_interrupt(names.base(name)));
        }
        if state.stack.is_empty() {
            return self.complete(task, line, names, sink);
        }
        state.charge_caller(line.depth, ns, (top.node, top.time));
    }

    #[cold]
    fn bare_close(&mut self, task: usize, line: &Line<'_>, tail: Tail, sink: &mut impl Sink) {
        let state = &mut self.tasks[task];
        if !state.adrift {
            self.incomplete.add(LossKind::UnmatchedClose, 1);
        }
        state.adrift = line.depth > 0;
        sink.bare_close(tail, line.depth, line.span);
    }

    #[cold]
    fn contradiction(&mut self, task: usize, line: &Line<'_>, top: Frame) {
        let cause = match line.depth.cmp(&top.depth) {
            std::cmp::Ordering::Less => LossKind::NeverClosed,
            std::cmp::Ordering::Equal => LossKind::NameMismatch,
            std::cmp::Ordering::Greater => LossKind::UnmatchedClose,
        };
        self.abandon(task, cause);
        self.tasks[task].adrift = line.depth > 0;
    }

    fn complete(&mut self, task: usize, line: &Line<'_>, names: &Names, sink: &mut impl Sink) {
        let state = &mut self.tasks[task];
        state.tree.end = line.time;
        let mut tree = std::mem::take(&mut state.tree);
        tree.cut_behind_root();
        sink.keep(&mut tree, names);
        self.spare.push(tree);
    }

    /// Gives up the open call of a task, if it has one.
    fn abandon(&mut self, task: usize, cause: LossKind) {
        let state = &mut self.tasks[task];
        state.away = None;
        state.interrupt_next = false;
        if state.stack.is_empty() {
            return;
        }
        state.adrift = true;
        state.stack.clear();
        self.spare.push(std::mem::take(&mut state.tree));
        self.incomplete.add(cause, 1);
    }

    /// The task of a line, back on a CPU if it was away, and the time since which it has made no
    /// call.
    #[inline]
    fn arrive(&mut self, line: &Line<'_>) -> (usize, Option<u64>) {
        let task = self.task_of(line);
        let leaving = !self.leaving.is_empty() && self.is_leaving(task, line.cpu);
        if self.losses > 0 {
            self.note_losses(task, line.cpu);
        }
        let state = &mut self.tasks[task];
        state.cpu = line.cpu;
        if let Some(away) = state.away {
            let still_here = leaving && away.cpu == line.cpu.unwrap_or(0);
            if !still_here {
                self.came_back(task, line.time);
            }
        }
        let state = &mut self.tasks[task];
        let since = std::mem::replace(&mut state.last_time, line.time);
        (task, since)
    }

    /// Ends the open call of a task whose next call at the top level has begun.
    pub(super) fn give_way(&mut self, line: &Line<'_>) {
        let (task, _) = self.arrive(line);
        self.abandon(task, LossKind::NeverClosed);
        self.tasks[task].adrift = false;
    }

    /// Whether a task that is about to leave its CPU has not left yet: no other task was seen
    /// there.
    #[cold]
    pub(super) fn is_leaving(&mut self, task: usize, cpu: Option<u32>) -> bool {
        let cpu = cpu.unwrap_or(0);
        match self.leaving.get(&cpu) {
            Some(&leaving) if leaving == task => true,
            _ => {
                self.leaving.remove(&cpu);
                false
            }
        }
    }

    #[inline]
    pub(super) fn key_of(&self, line: &Line<'_>) -> u64 {
        match (line.pid, line.cpu) {
            (Some(0), cpu) => IDLE | u64::from(cpu.unwrap_or(0)),
            (Some(pid), _) => u64::from(pid),
            (None, cpu) => self.running_on(cpu.unwrap_or(0)),
        }
    }

    #[inline]
    pub(super) fn task_of(&mut self, line: &Line<'_>) -> usize {
        let key = self.key_of(line);
        match self.last {
            Some((last, task)) if last == key => task,
            _ => self.task(key),
        }
    }
}

/// The innermost call that was running: a call that has ended except for its closing line does not
/// count.
fn running(stack: &mut [Frame]) -> Option<&mut Frame> {
    stack
        .iter_mut()
        .rev()
        .find(|frame| frame.ended_at.is_none())
}

/// The duration between two times, when the trace has no duration column.
fn measured(timed: &mut bool, open: Option<u64>, close: Option<u64>) -> Span {
    *timed = false;
    match (open, close) {
        (Some(open), Some(close)) => Span {
            ns: close.saturating_sub(open),
            tick: 1000,
        },
        _ => Span::default(),
    }
}
