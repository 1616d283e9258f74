//! Who touched the memory that was resident at a look: the call stacks of the faults that made its pages.
//!
//! A look says which pages are there, the faults who made them. Of sampled faults each stands for many,
//! and a page that was given back and touched again has several. So a stretch of memory is divided among
//! the newest of its faults, as many as it has pages for.

mod named;
mod shares;

pub(crate) use named::all_named;
pub(crate) use shares::{Owned, Shared};

use pagewise_model::findings::Cause;
use pagewise_model::memory::{PresentPages, PresentRun};
use pagewise_model::recording::Sidecar;
use pagewise_model::stack::StackId;
use pagewise_model::units::{Bytes, Nanos};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A fault that made a page.
#[derive(Clone, Copy, Debug)]
struct Touch {
    /// Its number: later ones have larger ones.
    order: u64,
    stack: Option<StackId>,
    /// Faults that it stands for.
    weight: f64,
}

/// The faults of one process on pages that were in memory at a look.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    pid: i32,
    name: String,
    is_peak: bool,
    clock: Nanos,
    /// All private memory, and the part in `runs`.
    resident: Bytes,
    kept: u64,
    runs: Vec<PresentRun>,
    touches: BTreeMap<u64, Touch>,
    /// Whether faults are missing: those before the recording, or of the process that forked this one.
    is_late: bool,
}

impl Touched {
    fn new(present: &PresentPages, is_late: bool) -> Self {
        let runs: Vec<PresentRun> = present.kept().collect();
        Self {
            pid: present.pid,
            name: present.name.clone(),
            is_peak: present.is_peak,
            clock: present.clock,
            resident: present.resident,
            kept: runs.iter().map(|run| run.end - run.start).sum(),
            runs,
            touches: BTreeMap::new(),
            is_late,
        }
    }

    fn run_at(&self, address: u64) -> Option<PresentRun> {
        let at = self.runs.partition_point(|run| run.end <= address);
        let run = self.runs.get(at)?;
        (run.start <= address).then_some(*run)
    }
}

/// The looks of a recording by process, which take its faults in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touches {
    looks: FxHashMap<i32, Vec<Touched>>,
    order: u64,
}

impl Touches {
    pub(crate) fn new(sidecar: &Sidecar) -> Self {
        let is_late = sidecar.collection.attached;
        let mut looks: FxHashMap<i32, Vec<Touched>> = FxHashMap::default();
        for present in &sidecar.present {
            let of_process = looks.entry(present.pid).or_default();
            of_process.push(Touched::new(present, is_late));
        }
        Self { looks, order: 0 }
    }

    /// The looks at a process that are still to come.
    fn after(&mut self, pid: i32, time: Nanos) -> impl Iterator<Item = &mut Touched> {
        let looks = self.looks.get_mut(&pid).into_iter().flatten();
        looks.filter(move |look| time <= look.clock)
    }

    /// A fault that stands for `weight`. Those on pages that are there already make none.
    pub(crate) fn fault(
        &mut self,
        (pid, time): (i32, Nanos),
        address: u64,
        cause: Cause,
        (stack, weight): (Option<StackId>, f64),
    ) {
        if cause == Cause::WriteProtect {
            return;
        }
        self.order += 1;
        let touch = Touch {
            order: self.order,
            stack,
            weight,
        };
        for look in self.after(pid, time) {
            if let Some(run) = look.run_at(address) {
                look.touches.insert(shares::page_of(address, run), touch);
            }
        }
    }

    /// Memory was given back, or mapped anew: whoever touched it before made none of its pages.
    pub(crate) fn returned(&mut self, pid: i32, (start, end): (u64, u64), time: Nanos) {
        for look in self.after(pid, time).filter(|_| start < end) {
            let pages: Vec<u64> = look.touches.range(start..end).map(|one| *one.0).collect();
            for page in pages {
                look.touches.remove(&page);
            }
        }
    }

    /// A process was forked: its pages are those of its parent.
    pub(crate) fn forked(&mut self, parent: i32, child: i32, time: Nanos) {
        if !self.looks.contains_key(&child) {
            return;
        }
        let looks = self.looks.get(&parent).into_iter().flatten();
        let most = looks.max_by_key(|look| look.touches.len());
        let inherited = most.map(|look| look.touches.clone()).unwrap_or_default();
        for look in self.after(child, time) {
            look.is_late = true;
            look.touches.clone_from(&inherited);
        }
    }

    /// A process executes another program: its memory begins anew.
    pub(crate) fn executed(&mut self, pid: i32, time: Nanos) {
        for look in self.after(pid, time) {
            look.touches.clear();
            look.is_late = false;
        }
    }

    /// The memory of each process at each look by stack; only stacks that `shows` are used. First are those
    /// at the peak, the largest first.
    pub(crate) fn shared(self, shows: impl Fn(StackId) -> bool) -> Vec<Shared> {
        let looks = self.looks.into_values().flatten();
        let mut all: Vec<Shared> = looks.map(|look| look.shared(&shows)).collect();
        all.sort_by_key(|one| (!one.is_peak, std::cmp::Reverse(one.resident), one.pid));
        all
    }
}

#[cfg(test)]
mod tests;
