//! The state of one task: its open calls, and which call the interrupts among them belong to.
//!
//! An interrupt can strike while the tracer itself records a call. If it strikes at the entry, its
//! frames come before the call that they delay, one level too deep; if it strikes at the exit, they
//! come after the call's own duration was taken but before its close, at the level of the call:
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
//! Occasionally it is the other way round, since the call's clock is read a little before or after
//! its level changes (`ftrace_return_to_handler` lowers the level first), or one interrupt comes
//! before the reading and one after it; the times of opening lines and of late interrupts decide.
//! Where the clock is stopped first (6.12), interrupts appear inside a call too short to contain
//! them. In a tree, an interrupt is placed below the call whose duration includes it. Both
//! positions reveal interrupts even if their names are not known.

use super::line::Span;
use super::names::NameId;
use super::scheduling::Leaving;
use super::tree::{CallTree, Wait};

#[derive(Default)]
pub(super) struct Task {
    pub stack: Vec<Frame>,
    pub tree: CallTree,
    /// Something is missing; lines are ignored until the next call at the top level.
    pub adrift: bool,
    pub cpu: Option<u32>,
    /// Losses of the trace when the task was last seen.
    pub losses: u32,
    pub last_time: Option<u64>,
    /// Set only while a call is open.
    pub away: Option<Away>,
    /// Interrupts at the exits of calls that are still to be closed, in order.
    pub late: Vec<Late>,
    /// The next call belongs to an interrupt.
    pub interrupt_next: bool,
    /// In a piece of a text: whether the task's lines no longer depend on what came before.
    pub known: bool,
    /// In a piece of a text: whether the task has made a call.
    pub called: bool,
}

/// A task was reported to leave its CPU.
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
    /// Set once the call has ended except for its closing line: the first node of an interrupt
    /// after it.
    pub ended_at: Option<u32>,
    /// Interrupts before the next call that are inside it.
    pub early: Option<Early>,
    /// Interrupts moved inside this call because of their position: how many nodes and their time.
    pub adopted: (u32, u64),
    /// A switch of tasks inside this call.
    pub leaving: Leaving,
}

/// Interrupts at the entry of a call that is still to come.
#[derive(Clone, Copy)]
pub(super) struct Early {
    /// The first node.
    pub first: u32,
    pub ns: u64,
    /// How many times off the CPU were recorded before.
    pub off_cpu: usize,
}

/// An interrupt's call at the exit of another one.
#[derive(Clone, Copy)]
pub(super) struct Late {
    node: u32,
    begin: Option<u64>,
    ns: u64,
}

impl Task {
    /// Decides which call the interrupts at the entry and the exit of a closed call belong to.
    #[cold]
    pub(super) fn settle(&mut self, frame: Frame, here: u32, closed: Option<u64>) {
        let span = self.tree.nodes[frame.node as usize].span.ns;
        let between = frame
            .time
            .zip(closed)
            .map(|(open, close)| close.saturating_sub(open));
        if let Some(ended) = frame.ended_at {
            self.settle_exit(frame, ended, here);
        }
        let (count, ns) = frame.adopted;
        let node = &self.tree.nodes[frame.node as usize];
        let too_short = node.children_ns > span + u64::from(node.span.tick);
        if count > 0 && between.map_or(too_short, |between| span < between + ns / 2) {
            self.disown(frame);
        }
    }

    /// Moves into a call what ran at its exit before its clock was stopped.
    fn settle_exit(&mut self, frame: Frame, ended: u32, here: u32) {
        let first = self.late.partition_point(|late| late.node < ended);
        let late = self.late.split_off(first);
        let node = &mut self.tree.nodes[frame.node as usize];
        let Some(stop) = frame.time.map(|open| open.saturating_add(node.span.ns)) else {
            return;
        };
        // Both times are rounded, and the second may be a little off, so the middle of a call
        // decides.
        let is_inside = |late: &Late| {
            let middle = late.begin.map(|begin| begin.saturating_add(late.ns / 2));
            middle.is_some_and(|middle| middle < stop)
        };
        let count = late.iter().take_while(|late| is_inside(late)).count();
        if count == 0 {
            return;
        }
        let ns = late[..count].iter().map(|late| late.ns).sum();
        node.end = late.get(count).map_or(here, |late| late.node);
        node.children_ns = node.children_ns.saturating_add(ns);
        let interrupts = ended as usize..node.end as usize;
        if let Some(caller) = self.stack.last() {
            let node = &mut self.tree.nodes[caller.node as usize];
            node.children_ns = node.children_ns.saturating_sub(ns);
            let begun = late[0].begin.unwrap_or(stop);
            let meanwhile = self.tree.off_cpu.iter_mut().rev();
            meanwhile
                .take_while(|off| off.from >= begun)
                .filter(|off| off.node == caller.node && off.from < stop)
                .for_each(|off| off.node = frame.node);
        }
        let interrupts = self.tree.nodes.get_mut(interrupts).unwrap_or_default();
        interrupts
            .iter_mut()
            .for_each(|node| node.depth = node.depth.saturating_add(1));
    }

    /// Moves the interrupts at the end of a call behind it if its duration cannot include them: its
    /// clock was stopped before they came, and its level lowered only afterwards (6.12).
    #[cold]
    pub(super) fn put_behind(&mut self, call: u32, is_interrupt: impl Fn(NameId) -> bool) {
        let nodes = &mut self.tree.nodes;
        let end = nodes[call as usize].end;
        let (mut first, mut ns) = (end, 0_u64);
        let mut at = call + 1;
        while at < end {
            let node = &nodes[at as usize];
            match is_interrupt(node.name()) {
                true if first == end => (first, ns) = (at, node.span.ns),
                true => ns = ns.saturating_add(node.span.ns),
                false => (first, ns) = (end, 0),
            }
            at = node.end;
        }
        for node in &mut nodes[first as usize..end as usize] {
            node.depth = node.depth.saturating_sub(1);
        }
        let node = &mut nodes[call as usize];
        node.end = first;
        node.children_ns = node.children_ns.saturating_sub(ns);
        if let Some(caller) = self.stack.last() {
            let node = &mut nodes[caller.node as usize];
            node.children_ns = node.children_ns.saturating_add(ns);
        }
    }

    /// Moves interrupts back before a call whose clock was started after them: they belong to its
    /// caller.
    #[cold]
    fn disown(&mut self, frame: Frame) {
        let (count, ns) = frame.adopted;
        let (first, last) = (frame.node, frame.node + count);
        let nodes = &mut self.tree.nodes[first as usize..=last as usize];
        nodes[0].children_ns = nodes[0].children_ns.saturating_sub(ns);
        nodes.rotate_left(1);
        let interrupts = nodes.iter_mut().take(count as usize);
        interrupts.for_each(|node| {
            node.end -= 1;
            // Next to the call now, not inside it.
            node.depth = node.depth.saturating_sub(1);
        });
        let moved = |node: &mut u32| match *node {
            at if at == first => *node = last,
            at if at > first && at <= last => *node -= 1,
            _ => {}
        };
        self.tree.interrupts.iter_mut().for_each(moved);
        let caller = self.stack.last().map(|caller| caller.node);
        for off in &mut self.tree.off_cpu {
            let is_before = frame.time.is_some_and(|open| off.from < open);
            match (off.node == first && is_before, caller) {
                (true, Some(caller)) => off.node = caller,
                _ => moved(&mut off.node),
            }
        }
        self.tree
            .details
            .iter_mut()
            .for_each(|detail| moved(&mut detail.node));
        if let Some(caller) = self.stack.last() {
            let node = &mut self.tree.nodes[caller.node as usize];
            node.children_ns = node.children_ns.saturating_add(ns);
        }
    }

    /// Moves the interrupts before the newest call into it, where they ran, unless the call is a
    /// leaf too short for them: then its clock was started after them, and they stay with its
    /// caller. Returns where the call is afterwards.
    #[cold]
    pub(super) fn adopt(&mut self, span: Option<Span>) -> usize {
        let last = self.tree.nodes.len() - 1;
        let Some((frame, Early { first, ns, off_cpu })) = self
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
        for (place, off) in self.tree.off_cpu.iter_mut().enumerate() {
            // A task preempted by an interrupt leaves the CPU where the interrupt struck.
            match off.node as usize == frame && place >= off_cpu {
                true => off.node = first,
                false => moved(&mut off.node),
            }
        }
        let details = self.tree.details.iter_mut();
        details.for_each(|detail| match detail.node as usize == last {
            true => detail.node = first,
            false => moved(&mut detail.node),
        });
        first as usize
    }

    /// Adds a finished call's time to its caller: the innermost open call above it.
    #[inline]
    pub(super) fn charge_caller(&mut self, depth: u32, ns: u64, call: (u32, Option<u64>)) {
        if self.stack.last().is_some_and(|frame| frame.depth == depth) {
            let (node, begin) = call;
            self.late.push(Late { node, begin, ns });
        }
        let callers = self.stack.iter_mut().rev();
        if let Some(caller) = callers.into_iter().find(|frame| frame.depth < depth) {
            if let (Some(early), true) = (&mut caller.early, depth > caller.depth + 1) {
                early.ns += ns;
            }
            let node = &mut self.tree.nodes[caller.node as usize];
            node.children_ns = node.children_ns.saturating_add(ns);
        }
    }
}
