//! A call with everything it called, as nodes in the order of their beginnings.

use super::line::Span;
use super::names::NameId;

/// One call of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The function's id in the trace's names.
    pub name: u32,
    /// Index of the first node after this call and everything it called.
    pub end: u32,
    /// Nesting below the root, which has 0. Levels that the tracer left out stay as gaps.
    pub depth: u16,
    /// Total time of the call, nanoseconds; see [`CallTree::timed`].
    pub span: Span,
    /// Total time of the calls made directly by this one, nanoseconds.
    pub children_ns: u64,
}

impl Node {
    /// The function.
    #[must_use]
    pub fn name(&self) -> NameId {
        NameId(self.name)
    }
}

/// Why a task was not running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// It could run, but another task did (`prev_state=R`).
    Runnable,
    /// It slept (`prev_state=S`, `D`, …).
    Blocked,
    /// Inferred from the task switch in the text, without a sched_switch event; the time runs from
    /// the task's last line before the switch to its first line after it.
    Estimated,
}

/// Time within a call in which its task did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffCpu {
    /// The innermost open call.
    pub node: u32,
    /// When the task left, nanoseconds of the trace's clock.
    pub from: u64,
    /// For how long, nanoseconds.
    pub ns: u64,
    /// Why.
    pub wait: Wait,
}

/// A value that a call took or returned, where the trace prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// The call.
    pub node: u32,
    /// Its arguments as printed (`funcgraph-args`).
    pub args: Box<str>,
    /// What it returned (`funcgraph-retval`).
    pub returned: Option<i64>,
}

/// The memory of a tree apart from its calls, counted in calls.
pub(super) const EMPTY: usize = 8;

/// A complete call at the top level of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTree {
    /// The task, where the trace shows it.
    pub pid: Option<u32>,
    /// The CPU on which it began.
    pub cpu: Option<u32>,
    /// When it began; `None` without a time column.
    pub start: Option<u64>,
    /// When it ended (for a leaf, when it began).
    pub end: Option<u64>,
    /// The calls, each before those it makes; the root is the first.
    pub nodes: Vec<Node>,
    /// Times off the CPU.
    pub off_cpu: Vec<OffCpu>,
    /// Calls known to belong to interrupts, by arrows (`funcgraph-irqs`, up to 5.7) or by position,
    /// ascending; others are known by name ([`super::is_interrupt`]).
    pub interrupts: Vec<u32>,
    /// Arguments and returned values.
    pub details: Vec<Detail>,
    /// Whether every call has its duration. Without the duration column, durations come from
    /// the times of open and close; leaves then have none.
    pub timed: bool,
}

impl CallTree {
    /// The outermost call, if the tree has any.
    #[must_use]
    pub fn root(&self) -> Option<&Node> {
        self.nodes.first()
    }

    /// How long the task was off the CPU inside a call and everything it called, nanoseconds.
    #[must_use]
    pub fn off_cpu_inside(&self, call: usize) -> u64 {
        let end = self.nodes.get(call).map_or(0, |node| node.end as usize);
        let inside = self.off_cpu.iter();
        inside
            .filter(|off| (call..end).contains(&(off.node as usize)))
            .map(|off| off.ns)
            .fold(0, u64::saturating_add)
    }

    /// Drops what ran between the root's end and its closing line, which is an interrupt.
    pub(super) fn cut_behind_root(&mut self) {
        let Some(end) = self.nodes.first().map(|root| root.end) else {
            return;
        };
        if (end as usize) < self.nodes.len() {
            self.nodes.truncate(end as usize);
            self.interrupts.retain(|&node| node < end);
            self.off_cpu.retain(|off| off.node < end);
            self.details.retain(|detail| detail.node < end);
        }
    }

    /// Empties the tree but keeps its memory.
    pub(super) fn clear(&mut self) {
        let mut nodes = std::mem::take(&mut self.nodes);
        let mut off_cpu = std::mem::take(&mut self.off_cpu);
        let mut interrupts = std::mem::take(&mut self.interrupts);
        let mut details = std::mem::take(&mut self.details);
        nodes.clear();
        off_cpu.clear();
        interrupts.clear();
        details.clear();
        *self = Self {
            nodes,
            off_cpu,
            interrupts,
            details,
            timed: true,
            ..Self::default()
        };
    }
}

/// Drops trees until the memory of the rest is enough for no more than `calls` calls.
pub(super) fn keep_memory<T>(trees: &mut Vec<T>, calls: usize, tree: impl Fn(&T) -> &CallTree) {
    let mut room = calls;
    trees.retain(|each| {
        let left = room.checked_sub(tree(each).nodes.capacity() + EMPTY);
        room = left.unwrap_or(room);
        left.is_some()
    });
}
