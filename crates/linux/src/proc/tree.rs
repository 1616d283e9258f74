//! A process and all its descendants, read again and again, with counters that never go back.
//!
//! When a process ends its counters are lost, unless its parent waits for it: then they are added
//! to the parent's `cminflt` and the like. So the total of a tree is
//!
//! ```text
//! Σ living (own + waited-for children's) + Σ ended and not accounted by a parent − before we came
//! ```
//!
//! and the difficulty is to determine which ended processes a parent has accounted. Parents are
//! read before their children, so a child that was still seen is not yet in its parent's figure of
//! the same round. Once it is gone, its nearest living ancestor's figure must have grown by at
//! least the child's last figures, in this round or the next; otherwise no process waited for it
//! (`SIGCHLD` ignored, parent gone) and its last figures are kept for good.
//!
//! A child that was forked and orphaned between two readings is adopted by init (or a subreaper)
//! and is never seen. A known process stays known when it is adopted.

use super::{ProcRoot, Result, Stat};
use crate::sys::machine;
use pagewise_model::timeline::TimelinePoint;
use pagewise_model::units::{Bytes, Nanos};
use rustc_hash::{FxHashMap, FxHashSet};
use std::time::{Duration, Instant};

/// A process tree under observation.
#[derive(Debug)]
pub struct Tree {
    proc: ProcRoot,
    members: Vec<Member>,
    /// Ended in the previous round, not yet found in an ancestor's figures.
    pending: Vec<Ended>,
    /// Ended, and accounted by no parent.
    kept: Counts,
    /// Counts of members before observation started.
    before: Counts,
    reported: Counts,
    search: Search,
    /// Clock ticks since boot when observation started.
    began_ticks: u64,
    /// Whether swap is read, which costs another file for each process.
    read_swap: bool,
}

/// One process of a [`TreeReading`]. Counters are the process's own since observation started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessReading {
    /// Process id.
    pub pid: i32,
    /// Current parent.
    pub parent: i32,
    /// Name.
    pub comm: String,
    /// State letter, as in [`Stat::state`].
    pub state: char,
    /// Threads.
    pub threads: u32,
    /// Virtual size.
    pub vsize: Bytes,
    /// Resident set.
    pub rss: Bytes,
    /// Minor faults.
    pub minor_faults: u64,
    /// Major faults.
    pub major_faults: u64,
    /// User CPU time.
    pub user: Nanos,
    /// System CPU time.
    pub system: Nanos,
}

/// One reading of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeReading {
    /// The sums; `time` and `pss` are the caller's to set.
    pub point: TimelinePoint,
    /// Processes, parents first; zombies included.
    pub processes: Vec<ProcessReading>,
    /// Files of processes that exist but could not be read.
    pub unreadable: u64,
}

#[derive(Debug)]
struct Member {
    last: Stat,
    /// Its own counters when observation started; zero for a later process.
    before: Counts,
}

#[derive(Debug)]
struct Ended {
    total: Counts,
    /// Ancestors when last seen, nearest first.
    ancestors: Vec<i32>,
}

/// Cumulative counters of a process or a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    minor: u64,
    major: u64,
    user: Nanos,
    system: Nanos,
}

/// When to look for new processes.
#[derive(Debug)]
struct Search {
    newest: Option<i32>,
    not_before: Instant,
    lists_children: bool,
}

/// A search for new processes may take one part in this many of the time: 1 %.
const SEARCH_SHARE: u32 = 100;

impl Tree {
    /// Starts to observe `pid` and its descendants; `None` if there is no such process. Their
    /// counts up to now are left out.
    ///
    /// # Errors
    /// [`Error`](super::Error) when the root process's figures are unreadable or malformed.
    pub fn new(proc: ProcRoot, pid: i32) -> Result<Option<Self>> {
        Self::of_several(proc, &[pid])
    }

    /// The same for several processes and their descendants; missing ones are left out.
    ///
    /// # Errors
    /// As [`Tree::new`].
    pub fn of_several(proc: ProcRoot, pids: &[i32]) -> Result<Option<Self>> {
        let Some(mut tree) = Self::counting_since(proc, pids, u64::MAX)? else {
            return Ok(None);
        };
        tree.began_ticks = tree.proc.uptime_ticks()?.unwrap_or(0);
        Ok(Some(tree))
    }

    /// Like [`Tree::new`], but includes everything that `pid` and its descendants have done since
    /// they started.
    ///
    /// # Errors
    /// As [`Tree::new`].
    pub fn from_birth(proc: ProcRoot, pid: i32) -> Result<Option<Self>> {
        Self::counting_since(proc, &[pid], 0)
    }

    /// A tree that leaves out earlier counts of processes that started before `began_ticks`.
    fn counting_since(proc: ProcRoot, pids: &[i32], began_ticks: u64) -> Result<Option<Self>> {
        let roots = pids.iter().map(|&pid| proc.stat(pid));
        let mut roots: Vec<Stat> = roots.flat_map(Result::transpose).collect::<Result<_>>()?;
        // Parents are read before their children, and start before them.
        roots.sort_by_key(|root| (root.start_ticks, root.pid));
        roots.dedup_by_key(|root| root.pid);
        let Some(pid) = roots.first().map(|root| root.pid) else {
            return Ok(None);
        };
        let list = proc.process_path(pid, &format!("task/{pid}/children"));
        let mut tree = Self {
            members: Vec::new(),
            pending: Vec::new(),
            kept: Counts::default(),
            before: Counts::default(),
            reported: Counts::default(),
            search: Search {
                newest: None,
                not_before: Instant::now(),
                lists_children: list.exists(),
            },
            began_ticks,
            read_swap: false,
            proc,
        };
        roots.into_iter().for_each(|root| tree.admit(root));
        tree.find_new_processes();
        Ok(Some(tree))
    }

    /// Whether swapped-out memory is read too. Worth its cost only once anything was swapped out.
    pub fn set_read_swap(&mut self, on: bool) {
        self.read_swap = on;
    }

    /// Living processes, for readers of costlier files.
    pub fn living(&self) -> impl Iterator<Item = i32> + '_ {
        let living = self.members.iter().filter(|member| member.last.is_alive());
        living.map(|member| member.last.pid)
    }

    /// Reads every member once.
    pub fn read(&mut self) -> TreeReading {
        let mut unreadable = self.find_new_processes();
        let mut growth = FxHashMap::default();
        let mut gone = FxHashSet::default();
        for member in &mut self.members {
            match self.proc.stat(member.last.pid) {
                Ok(Some(stat)) if stat.start_ticks == member.last.start_ticks => {
                    let grown = Counts::of_children(&stat) - Counts::of_children(&member.last);
                    growth.insert(stat.pid, grown);
                    member.last = stat;
                }
                Ok(_) => {
                    gone.insert(member.last.pid);
                }
                Err(_) => unreadable += 1,
            }
        }
        self.settle(&gone, &mut growth);
        let mut reading = self.sum();
        reading.unreadable = unreadable;
        reading
    }

    /// Removes members that have ended, and keeps their counters if no ancestor accounts for them.
    fn settle(&mut self, gone: &FxHashSet<i32>, growth: &mut FxHashMap<i32, Counts>) {
        let ended: Vec<Ended> = self
            .members
            .iter()
            .filter(|member| gone.contains(&member.last.pid))
            .map(|member| Ended {
                total: Counts::of_all(&member.last),
                ancestors: self.ancestors(member.last.parent),
            })
            .collect();
        self.members
            .retain(|member| !gone.contains(&member.last.pid));
        for late in std::mem::take(&mut self.pending) {
            if !late.is_accounted(growth) {
                self.kept = self.kept + late.total;
            }
        }
        let unaccounted = ended
            .into_iter()
            .filter(|ended| !ended.is_accounted(growth));
        self.pending = unaccounted.collect();
    }

    /// The known part of the chain of parents that starts at `parent`.
    fn ancestors(&self, mut parent: i32) -> Vec<i32> {
        let mut chain = Vec::new();
        while let Some(member) = self.members.iter().find(|m| m.last.pid == parent) {
            if chain.contains(&parent) {
                break;
            }
            chain.push(parent);
            parent = member.last.parent;
        }
        chain
    }

    fn sum(&mut self) -> TreeReading {
        let mut reading = TreeReading::default();
        let mut total = self.kept;
        for ended in &self.pending {
            total = total + ended.total;
        }
        for member in &self.members {
            total = total + Counts::of_all(&member.last);
            reading.processes.push(member.reading());
            if member.last.is_alive() {
                reading.point.processes += 1;
                let is_active = matches!(member.last.state, 'R' | 'D');
                *reading.point.active.get_or_insert(0) += u32::from(is_active);
                reading.point.threads += member.last.threads;
                reading.point.vsize += member.last.vsize;
                reading.point.rss += member.last.rss;
            }
        }
        if self.read_swap {
            reading.point.swap = self.swap();
        }
        self.reported = (total - self.before).at_least(self.reported);
        reading.point.minor_faults = self.reported.minor;
        reading.point.major_faults = self.reported.major;
        reading.point.user = self.reported.user;
        reading.point.system = self.reported.system;
        reading
    }

    fn swap(&self) -> Bytes {
        let statuses = self
            .living()
            .filter_map(|pid| self.proc.status(pid).ok().flatten());
        statuses.map(|status| status.swap).sum()
    }

    fn admit(&mut self, stat: Stat) {
        let mut before = Counts::default();
        if stat.start_ticks < self.began_ticks {
            self.before = self.before + Counts::of_all(&stat);
            before = Counts::of_self(&stat);
        }
        self.members.push(Member { last: stat, before });
    }

    /// Adds children of members that are not members yet. Returns how many lists were unreadable.
    fn find_new_processes(&mut self) -> u64 {
        let newest = self.proc.newest_task().ok().flatten();
        let nothing_forked = newest.is_some() && newest == self.search.newest;
        if nothing_forked || Instant::now() < self.search.not_before {
            return 0;
        }
        let begin = machine::thread_cpu_time();
        let unreadable = match self.search.lists_children {
            true => self.search_lists(),
            false => self.search_all_processes(),
        };
        let cost = Duration::from_nanos((machine::thread_cpu_time() - begin).0);
        self.search.newest = newest;
        self.search.not_before = Instant::now() + cost * SEARCH_SHARE;
        unreadable
    }

    fn search_lists(&mut self) -> u64 {
        let mut known: FxHashSet<i32> = self.members.iter().map(|m| m.last.pid).collect();
        let mut unreadable = 0;
        let mut at = 0;
        while let Some(member) = self.members.get(at) {
            let children = self.proc.children(member.last.pid).unwrap_or_else(|_| {
                unreadable += 1;
                Vec::new()
            });
            for child in children {
                if let (true, Ok(Some(stat))) = (known.insert(child), self.proc.stat(child)) {
                    self.admit(stat);
                }
            }
            at += 1;
        }
        unreadable
    }

    /// For kernels without `task/TID/children` (`CONFIG_PROC_CHILDREN`): by each process's parent.
    fn search_all_processes(&mut self) -> u64 {
        let mut strangers: Vec<Stat> = self
            .proc
            .processes()
            .into_iter()
            .filter(|pid| self.members.iter().all(|member| member.last.pid != *pid))
            .filter_map(|pid| self.proc.stat(pid).ok().flatten())
            .collect();
        let mut at = 0;
        while let Some(member) = self.members.get(at) {
            let parent = member.last.pid;
            let (children, others) = strangers.into_iter().partition(|s| s.parent == parent);
            strangers = others;
            let children: Vec<Stat> = children;
            children.into_iter().for_each(|child| self.admit(child));
            at += 1;
        }
        0
    }
}

impl Member {
    fn reading(&self) -> ProcessReading {
        let own = Counts::of_self(&self.last) - self.before;
        ProcessReading {
            pid: self.last.pid,
            parent: self.last.parent,
            comm: self.last.comm.clone(),
            state: self.last.state,
            threads: self.last.threads,
            vsize: self.last.vsize,
            rss: self.last.rss,
            minor_faults: own.minor,
            major_faults: own.major,
            user: own.user,
            system: own.system,
        }
    }
}

impl Ended {
    /// Whether the nearest living ancestor's figures grew by at least this process's; if so, that
    /// growth is used up.
    fn is_accounted(&self, growth: &mut FxHashMap<i32, Counts>) -> bool {
        let nearest = self.ancestors.iter().find(|pid| growth.contains_key(pid));
        let Some(grown) = nearest.and_then(|pid| growth.get_mut(pid)) else {
            return false;
        };
        let fits = grown.at_least(self.total) == *grown;
        if fits {
            *grown = *grown - self.total;
        }
        fits
    }
}

impl Counts {
    fn of_self(stat: &Stat) -> Self {
        Self {
            minor: stat.minor_faults,
            major: stat.major_faults,
            user: stat.user,
            system: stat.system,
        }
    }

    fn of_children(stat: &Stat) -> Self {
        Self {
            minor: stat.children_minor_faults,
            major: stat.children_major_faults,
            user: stat.children_user,
            system: stat.children_system,
        }
    }

    fn of_all(stat: &Stat) -> Self {
        Self::of_self(stat) + Self::of_children(stat)
    }

    /// The larger value of each counter.
    fn at_least(self, other: Self) -> Self {
        Self {
            minor: self.minor.max(other.minor),
            major: self.major.max(other.major),
            user: self.user.max(other.user),
            system: self.system.max(other.system),
        }
    }
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            minor: self.minor.saturating_add(other.minor),
            major: self.major.saturating_add(other.major),
            user: self.user + other.user,
            system: self.system + other.system,
        }
    }
}

impl std::ops::Sub for Counts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            minor: self.minor.saturating_sub(other.minor),
            major: self.major.saturating_sub(other.major),
            user: self.user - other.user,
            system: self.system - other.system,
        }
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
