//! The trees that are held back, with their calls stored one after another: no tree needs memory of
//! its own, and scanning all calls is scanning one array.

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

/// A tree's own fields, and where its parts begin.
struct Head {
    pid: Option<u32>,
    cpu: Option<u32>,
    start: Option<u64>,
    end: Option<u64>,
    timed: bool,
    parts: Parts,
}

/// A position in each of the arrays.
#[derive(Clone, Copy)]
struct Parts {
    nodes: usize,
    off_cpu: usize,
    interrupts: usize,
    details: usize,
}

/// The parts of a tree that are examined to learn from it.
#[derive(Clone, Copy)]
pub(super) struct Calls<'b> {
    pub nodes: &'b [Node],
    /// Calls known by their position to belong to an interrupt, ascending.
    pub interrupts: &'b [u32],
}

impl Batch {
    /// Takes the contents of a tree but leaves its memory.
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

    /// Moves the tree at a place into `tree`.
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
