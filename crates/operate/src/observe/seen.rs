//! Properties of a process tree that can be seen only while it lives: its allocators, its page
//! sizes, the nodes of its memory.

use super::page_sizes::pages_of;
use pagewise_linux::numa::NodeWatch;
use pagewise_linux::proc::{ProcRoot, allocators, family};
use pagewise_model::allocator::{Allocator, ProcessAllocators};
use pagewise_model::recording::{HugePageUse, ProcessPages};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Time of the first look at the tree; later looks follow each time the program's run time has
/// grown by this share.
pub const FIRST_LOOK: Duration = Duration::from_millis(50);
pub const STEP: f64 = 0.15;
/// Descendants are examined from this many faults on; with fewer, memory is not their problem.
const LEAST_FAULTS: u64 = 1_000;
/// Most processes whose allocators are kept.
const MOST: usize = 64;

/// What was seen so far.
#[derive(Default)]
pub struct Seen {
    /// Allocators of the first process, as it was last seen.
    pub allocators: Vec<Allocator>,
    /// Page sizes of the process with the most memory, at that moment.
    pub pages: Option<ProcessPages>,
    /// The largest amount seen in huge pages.
    pub huge: Option<HugePageUse>,
    /// Memory nodes; `None` where at most one has memory.
    pub nodes: Option<NodeWatch>,
    others: BTreeMap<i32, (PathBuf, Vec<Allocator>)>,
}

impl Seen {
    /// Nothing so far; counts begin now.
    pub fn begin() -> Self {
        Self {
            nodes: NodeWatch::begin(),
            ..Self::default()
        }
    }

    /// Looks at which nodes the memory of the tree is on, if the machine has several.
    pub fn look_at_nodes(&mut self, pid: i32) {
        if let Some(nodes) = &mut self.nodes {
            nodes.look(pid);
        }
    }

    /// Looks up the allocators of the first process again: it may have loaded more, or be another
    /// program by now.
    pub fn look_at_allocators(&mut self, pid: i32) {
        let now = allocators(pid);
        if !now.is_empty() {
            self.allocators = now;
        }
    }

    /// Examines new descendants of the first process that fault.
    pub fn look_at_family(&mut self, pid: i32) {
        let proc = ProcRoot::default();
        for member in family(&proc, pid).into_iter().skip(1) {
            if self.others.len() < MOST {
                self.look_at(&proc, member);
            }
        }
    }

    fn look_at(&mut self, proc: &ProcRoot, pid: i32) {
        let Ok(Some(stat)) = proc.stat(pid) else {
            return;
        };
        if stat.minor_faults + stat.major_faults < LEAST_FAULTS {
            return;
        }
        let Ok(Some(program)) = proc.exe(pid) else {
            return;
        };
        let is_known = self.others.get(&pid).is_some_and(|(of, _)| *of == program);
        if is_known {
            return;
        }
        let found = allocators(pid);
        if !found.is_empty() {
            self.others.insert(pid, (program, found));
        }
    }

    /// Reads page sizes of the first process and of a few descendants.
    pub fn look_at_pages(&mut self, pid: i32) {
        let others = self.others.keys().copied().take(MOST_PAGE_MAPS);
        let members: Vec<i32> = std::iter::once(pid).chain(others).collect();
        for member in members {
            let (now, huge) = pages_of(member).unzip();
            self.note_huge(huge.flatten());
            let memory = |pages: &Option<ProcessPages>| pages.as_ref().map(|pages| pages.memory);
            if memory(&now) > memory(&self.pages) {
                self.pages = now;
            }
        }
    }

    fn note_huge(&mut self, huge: Option<HugePageUse>) {
        if huge.map(|huge| huge.held) > self.huge.map(|huge| huge.held) {
            self.huge = huge;
        }
    }

    /// The allocators by process, beginning with the first process.
    pub fn by_process(&self, first: i32) -> Vec<ProcessAllocators> {
        let of = |pid: i32, allocators: &[Allocator]| ProcessAllocators {
            pid,
            allocators: allocators.to_vec(),
        };
        let others = self.others.iter().map(|(&pid, (_, found))| of(pid, found));
        std::iter::once(of(first, &self.allocators))
            .chain(others)
            .filter(|process| !process.allocators.is_empty())
            .collect()
    }
}

/// Descendants whose page sizes are read: each reading costs half a millisecond per GiB.
const MOST_PAGE_MAPS: usize = 4;
