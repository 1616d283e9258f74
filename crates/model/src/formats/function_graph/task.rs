//! The state of one task: its open calls, and whose the interrupts among them are.
//!
//! An interrupt can strike while the tracer itself notes a call. Striking at the entry, its
//! frames come before the call they delay, one level too deep; striking at the exit, they come
//! after the call's own duration was taken but before its close, at the level of the call:
//!
//! ```text
//!             |      irq_enter_rcu();      inside g, which is noted only now, though its
//! 170.368 us  |    g();                    duration has the interrupt in it
//!
//!             |    f() {                   had ended when the interrupt came, which is no
//!             |    irq_enter_rcu();        part of its duration
//!   3.368 us  |    } /* f */
//! ```
//!
//! Now and then it is the other way round, since the call's clock is read a little before or
//! after its level changes; the times of open and close tell. In a tree an interrupt stands
//! below the call whose duration has it in. Both places give interrupts away even when their names are not known.

use super::line::Span;
use super::tree::{CallTree, Wait};

#[derive(Default)]
pub(super) struct Task {
    pub stack: Vec<Frame>,
    pub tree: CallTree,
    /// Something is missing; nothing counts before the next call at the top level.
    pub adrift: bool,
    pub cpu: Option<u32>,
    pub last_time: Option<u64>,
    /// Set only while a call is open.
    pub away: Option<Away>,
    /// The next call is an interrupt's.
    pub interrupt_next: bool,
    /// In a piece of a text: whether the task's lines need nothing any more that came before.
    pub known: bool,
    /// In a piece of a text: whether the task has made a call.
    pub called: bool,
}

/// A task was said to leave its CPU.
#[derive(Clone, Copy)]
pub(super) struct Away {
    pub since: u64,
    pub wait: Wait,
    /// The CPU that it left.
    pub cpu: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub node: u32,
    pub depth: u32,
    pub time: Option<u64>,
    /// The call has ended, all but its closing line: the first node of an interrupt after it.
    pub ended_at: Option<u32>,
    /// The time of the interrupts after it.
    pub late_ns: u64,
    /// Interrupts before the next call that are inside it: the first node and their time.
    pub early: Option<(u32, u64)>,
    /// Interrupts taken inside this call by their place: how many nodes and their time.
    pub adopted: (u32, u64),
}

impl Task {
    /// Decides whose the interrupts at the entry and the exit of a closed call are.
    #[cold]
    pub(super) fn settle(&mut self, frame: Frame, here: u32, closed: Option<u64>) {
        let node = &mut self.tree.nodes[frame.node as usize];
        let span = node.span.ns;
        let between = frame
            .time
            .zip(closed)
            .map(|(open, close)| close.saturating_sub(open));
        if frame.ended_at.is_some() && between.is_some_and(|ns| span + frame.late_ns / 2 > ns) {
            let ended = node.end as usize;
            node.end = here;
            node.children_ns = node.children_ns.saturating_add(frame.late_ns);
            if let Some(caller) = self.stack.last() {
                let node = &mut self.tree.nodes[caller.node as usize];
                node.children_ns = node.children_ns.saturating_sub(frame.late_ns);
            }
            let interrupts = self.tree.nodes.get_mut(ended..).unwrap_or_default();
            interrupts
                .iter_mut()
                .for_each(|node| node.depth = node.depth.saturating_add(1));
        }
        let (count, ns) = frame.adopted;
        let node = &self.tree.nodes[frame.node as usize];
        let too_short = node.children_ns > span + u64::from(node.span.tick);
        if count > 0 && between.map_or(too_short, |between| span < between + ns / 2) {
            self.disown(frame);
        }
    }

    /// Puts interrupts back before a call whose clock was started behind them: they are its
    /// caller's.
    #[cold]
    fn disown(&mut self, frame: Frame) {
        let (count, ns) = frame.adopted;
        let (first, last) = (frame.node, frame.node + count);
        let nodes = &mut self.tree.nodes[first as usize..=last as usize];
        nodes[0].children_ns = nodes[0].children_ns.saturating_sub(ns);
        nodes.rotate_left(1);
        let interrupts = nodes.iter_mut().take(count as usize);
        interrupts.for_each(|node| node.end -= 1);
        let moved = |node: &mut u32| match *node {
            at if at == first => *node = last,
            at if at > first && at <= last => *node -= 1,
            _ => {}
        };
        self.tree.interrupts.iter_mut().for_each(moved);
        self.tree
            .off_cpu
            .iter_mut()
            .for_each(|off| moved(&mut off.node));
        self.tree
            .details
            .iter_mut()
            .for_each(|detail| moved(&mut detail.node));
        if let Some(caller) = self.stack.last() {
            let node = &mut self.tree.nodes[caller.node as usize];
            node.children_ns = node.children_ns.saturating_add(ns);
        }
    }

    /// Puts the interrupts before the newest call inside it, where they ran; unless the call is a
    /// leaf too short for them: then its clock was started behind them, and they stay its
    /// caller's. Where the call stands afterwards.
    #[cold]
    pub(super) fn adopt(&mut self, span: Option<Span>) -> usize {
        let last = self.tree.nodes.len() - 1;
        let Some((frame, (first, ns))) = self
            .stack
            .last_mut()
            .and_then(|frame| Some((frame.node as usize, frame.early.take()?)))
        else {
            return last;
        };
        if span.is_some_and(|span| span.ns < ns) {
            return last;
        }
        let nodes = &mut self.tree.nodes;
        nodes[frame].children_ns = nodes[frame].children_ns.saturating_sub(ns);
        nodes[first as usize..].rotate_right(1);
        nodes[first as usize].children_ns = ns;
        nodes[first as usize + 1..]
            .iter_mut()
            .for_each(|node| node.end += 1);
        let moved = |node: &mut u32| *node += u32::from(*node >= first);
        self.tree.interrupts.iter_mut().for_each(moved);
        self.tree
            .off_cpu
            .iter_mut()
            .for_each(|off| moved(&mut off.node));
        let details = self.tree.details.iter_mut();
        details.for_each(|detail| match detail.node as usize == last {
            true => detail.node = first,
            false => moved(&mut detail.node),
        });
        first as usize
    }

    /// Adds a finished call's time to the call that made it: the innermost open one above it.
    #[inline]
    pub(super) fn charge_caller(&mut self, depth: u32, ns: u64) {
        if let Some(ended) = self.stack.last_mut().filter(|frame| frame.depth == depth) {
            ended.late_ns += ns;
        }
        let callers = self.stack.iter_mut().rev();
        if let Some(caller) = callers.into_iter().find(|frame| frame.depth < depth) {
            if let (Some((_, early)), true) = (&mut caller.early, depth > caller.depth + 1) {
                *early += ns;
            }
            let node = &mut self.tree.nodes[caller.node as usize];
            node.children_ns = node.children_ns.saturating_add(ns);
        }
    }
}
