//! What is seen of a process tree only while it lives: its allocators, its page sizes.

use super::page_sizes::pages_of;
use pagewise_linux::proc::{ProcRoot, allocators, family};
use pagewise_model::allocator::{Allocator, ProcessAllocators};
use pagewise_model::recording::{HugePageUse, ProcessPages};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The tree is looked at this early first, then each time that the program has run by this share
/// longer.
pub const FIRST_LOOK: Duration = Duration::from_millis(50);
pub const STEP: f64 = 0.15;
/// A process below the first is looked at from so many faults on: what has fewer has no trouble.
const LEAST_FAULTS: u64 = 1_000;
/// Most processes whose allocators are kept.
const MOST: usize = 64;

/// What was seen so far.
#[derive(Default)]
pub struct Seen {
    /// Allocators of the first process, as it was last seen.
    pub allocators: Vec<Allocator>,
    /// Page sizes of the process that held most, at that moment.
    pub pages: Option<ProcessPages>,
    /// Most that was held in huge pages.
    pub huge: Option<HugePageUse>,
    others: BTreeMap<i32, (PathBuf, Vec<Allocator>)>,
}

impl Seen {
    /// Looks at the allocators of the first process again: it may have loaded more, or be another
    /// program by now.
    pub fn look_at_allocators(&mut self, pid: i32) {
        let now = allocators(pid);
        if !now.is_empty() {
            self.allocators = now;
        }
    }

    /// Looks at all processes that descend from the first and fault, those that are new among them.
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

    /// Looks at page sizes of the first process and of a few below it.
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

    /// The allocators by process, the first one's first.
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

/// Processes below the first whose page sizes are looked at: each look costs half a millisecond a GiB.
const MOST_PAGE_MAPS: usize = 4;
