//! The trees that are held back, their calls one after another: no memory of a tree's own is asked
//! for, and looking through all calls is looking through a row.

use super::super::tree::{CallTree, Detail, Node, OffCpu};
use std::ops::Range;

/// Trees held back.
#[derive(Default)]
pub(super) struct Batch {
    heads: Vec<Head>,
    nodes: Vec<Node>,
    off_cpu: Vec<OffCpu>,
    interrupts: Vec<u32>,
    details: Vec<Detail>,
}

/// What a tree is apart from its parts, and where those begin.
struct Head {
    pid: Option<u32>,
    cpu: Option<u32>,
    start: Option<u64>,
    end: Option<u64>,
    timed: bool,
    parts: Parts,
}

/// A place in each of the rows.
#[derive(Clone, Copy)]
struct Parts {
    nodes: usize,
    off_cpu: usize,
    interrupts: usize,
    details: usize,
}

/// What is looked at of a tree to learn from it.
#[derive(Clone, Copy)]
pub(super) struct Calls<'b> {
    pub nodes: &'b [Node],
    /// Those known to be an interrupt's by their place, ascending.
    pub interrupts: &'b [u32],
}

impl Batch {
    /// Takes a tree, all but its memory.
    pub fn push(&mut self, tree: &mut CallTree) {
        self.heads.push(Head {
            pid: tree.pid,
            cpu: tree.cpu,
            start: tree.start,
            end: tree.end,
            timed: tree.timed,
            parts: self.parts(),
        });
        self.nodes.extend_from_slice(&tree.nodes);
        self.off_cpu.extend_from_slice(&tree.off_cpu);
        self.interrupts.extend_from_slice(&tree.interrupts);
        self.details.append(&mut tree.details);
    }

    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// The calls of each tree.
    pub fn iter(&self) -> impl Iterator<Item = Calls<'_>> {
        (0..self.len()).map(|place| self.calls(place))
    }

    pub fn calls(&self, place: usize) -> Calls<'_> {
        Calls {
            nodes: &self.nodes[self.range(place, |parts| parts.nodes)],
            interrupts: &self.interrupts[self.range(place, |parts| parts.interrupts)],
        }
    }

    /// Makes `tree` the one at a place, which loses its details.
    pub fn take(&mut self, place: usize, tree: &mut CallTree) {
        tree.clear();
        let Head {
            pid,
            cpu,
            start,
            end,
            timed,
            ..
        } = self.heads[place];
        (tree.pid, tree.cpu) = (pid, cpu);
        (tree.start, tree.end, tree.timed) = (start, end, timed);
        let calls = self.calls(place);
        tree.nodes.extend_from_slice(calls.nodes);
        tree.interrupts.extend_from_slice(calls.interrupts);
        let off_cpu = self.range(place, |parts| parts.off_cpu);
        tree.off_cpu.extend_from_slice(&self.off_cpu[off_cpu]);
        let details = self.range(place, |parts| parts.details);
        let details = self.details[details].iter_mut();
        tree.details.extend(details.map(std::mem::take));
    }

    /// Empties the batch but keeps its memory.
    pub fn clear(&mut self) {
        self.heads.clear();
        self.nodes.clear();
        self.off_cpu.clear();
        self.interrupts.clear();
        self.details.clear();
    }

    /// Where the next tree's parts begin.
    fn parts(&self) -> Parts {
        Parts {
            nodes: self.nodes.len(),
            off_cpu: self.off_cpu.len(),
            interrupts: self.interrupts.len(),
            details: self.details.len(),
        }
    }

    fn range(&self, place: usize, part: impl Fn(&Parts) -> usize) -> Range<usize> {
        let next = self.heads.get(place + 1).map(|head| head.parts);
        part(&self.heads[place].parts)..part(&next.unwrap_or_else(|| self.parts()))
    }
}
