//! The processes whose page sizes are balanced, and every change made to them.

use super::member::Member;
use super::selection::Selection;
use anyhow::{Result, bail};
use pagewise_linux::hugepages::actuator::{Act, Change, Outcome, Refusal, Target};
use pagewise_linux::hugepages::map::{self, PageSizes};
use pagewise_linux::proc::ProcRoot;
use pagewise_model::huge_pages::{HugeSummary, Obstacle, Slot};
use pagewise_model::units::Bytes;
use pagewise_simulate::balance::Victims;
use pagewise_stats::Random;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Changes made so far.
#[derive(Clone, Debug, Default)]
pub struct Deeds {
    /// Durations of the calls that built a huge page, in nanoseconds.
    pub collapses: Vec<u64>,
    /// Durations of the calls that split one.
    pub splits: Vec<u64>,
    /// Attempts that changed nothing, by reason.
    pub refusals: BTreeMap<Refusal, u64>,
}

/// All processes.
pub struct Population {
    proc: ProcRoot,
    sizes: PageSizes,
    selection: Selection,
    journals: PathBuf,
    boot_id: String,
    most_rss: Option<Bytes>,
    random: Random,
    pub members: Vec<Member>,
    pub deeds: Deeds,
    /// Processes that could not be opened, by reason.
    pub unreachable: BTreeMap<i32, String>,
}

/// The kernel counts resident memory in batches per CPU: it may be off by this much.
const RSS_SLACK: Bytes = Bytes(2 << 20);

impl Population {
    /// The processes selected now. A program of ours that has ended already is nobody.
    ///
    /// # Errors
    /// If no process can be balanced.
    pub fn find(selection: Selection, sizes: PageSizes, most_rss: Option<Bytes>) -> Result<Self> {
        let proc = ProcRoot::default();
        let boot_id = boot_id(&proc);
        let mut all = Self {
            proc,
            sizes,
            selection,
            journals: pagewise_linux::hugepages::journal::folder(),
            boot_id,
            most_rss,
            random: Random::seeded(0x6875_6765),
            members: Vec::new(),
            deeds: Deeds::default(),
            unreachable: BTreeMap::new(),
        };
        all.refresh()?;
        let may_have_ended = matches!(all.selection, Selection::Tree(_));
        if all.members.is_empty() && !(may_have_ended && all.unreachable.is_empty()) {
            bail!("{}", all.nobody());
        }
        Ok(all)
    }

    fn nobody(&self) -> &str {
        let first = self.unreachable.values().next();
        first.map_or("there is no such process, or it has ended", String::as_str)
    }

    /// Updates the set of processes, and reads their maps afresh.
    ///
    /// # Errors
    /// If the cgroup cannot be read.
    pub fn refresh(&mut self) -> Result<()> {
        let wanted = self.selection.processes(&self.proc)?;
        self.members
            .retain(|member| wanted.contains(&member.target.pid()) && member.target.is_alive());
        for pid in wanted {
            if !self.members.iter().any(|member| member.target.pid() == pid) {
                self.admit(pid);
            }
        }
        for member in &mut self.members {
            // A process that has ended meanwhile is removed at the next look.
            if let Ok(map) = member.target.map() {
                let before = std::mem::replace(&mut member.map, map);
                member.note_filled(&before);
            }
            member.note_fights();
        }
        Ok(())
    }

    /// Reads again which slots are huge, in known mappings.
    pub fn rescan(&mut self) {
        for member in &mut self.members {
            let before = member.map.clone();
            let Member { target, map, .. } = member;
            if target.refresh(map).is_ok() {
                member.note_filled(&before);
                member.note_fights();
            }
        }
    }

    /// Keeps the present page sizes, for the picture of them over time.
    pub fn remember(&mut self, at: Duration) {
        for member in &mut self.members {
            member.history.add(at, &member.map);
        }
    }

    fn admit(&mut self, pid: i32) {
        let opened = Target::open(&self.proc, pid, self.sizes)
            .and_then(|target| target.map().map(|map| (target, map)));
        match opened {
            Ok((target, map)) => {
                let comm = self.proc.stat(pid).ok().flatten();
                let comm = comm.map_or_else(String::new, |stat| stat.comm);
                self.members.push(Member::new(target, map, comm));
            }
            Err(map::Error::Gone(_)) => {}
            Err(error) => {
                self.unreachable.insert(pid, error.to_string());
            }
        }
    }

    /// Whether one of them still runs.
    pub fn is_alive(&self) -> bool {
        self.members.iter().any(|member| member.target.is_alive())
    }

    /// Ids of the members.
    pub fn pids(&self) -> Vec<i32> {
        self.members
            .iter()
            .map(|member| member.target.pid())
            .collect()
    }

    /// Sums over all members.
    pub fn summary(&self) -> HugeSummary {
        let mut all = HugeSummary::default();
        for member in &self.members {
            let one = member.map.summary();
            all.huge += one.huge;
            all.small += one.small;
            all.small_bytes += one.small_bytes;
            all.growth += one.growth;
            all.empty += one.empty;
            all.blocked += one.blocked;
        }
        all
    }

    /// Resident memory of all members.
    pub fn rss(&self) -> Bytes {
        let sizes = self.members.iter().filter_map(|member| {
            let statm = self.proc.statm(member.target.pid()).ok().flatten()?;
            Some(statm.resident)
        });
        sizes.sum()
    }

    /// Slots that we gave up because khugepaged or the program changed them back.
    pub fn fights(&self) -> u64 {
        self.members
            .iter()
            .map(|member| member.fights.len() as u64)
            .sum()
    }

    /// Slots that others made huge while pages of them were missing, and the memory that this added.
    pub fn filled_by_others(&self) -> (u64, Bytes) {
        let missing = self
            .members
            .iter()
            .flat_map(|member| member.filled.values());
        let (count, pages) = missing.fold((0, 0), |(count, all), &pages| {
            (count + 1, all + u64::from(pages))
        });
        (count, Bytes(pages * self.sizes.base.0))
    }

    /// Possible number of huge pages: existing ones, and those that can be built within the memory
    /// limit.
    pub fn possible(&self) -> u64 {
        let huge = self.summary().huge;
        let mut growths: Vec<u64> = self
            .candidates(Change::Collapse)
            .map(|(_, _, slot)| self.growth(slot))
            .collect();
        growths.sort_unstable();
        let mut room = self.headroom();
        let fitting = growths.into_iter().take_while(|&growth| {
            let fits = growth <= room;
            room = room.saturating_sub(growth);
            fits
        });
        huge + fitting.count() as u64
    }

    /// Bytes that a huge page in place of this slot adds.
    fn growth(&self, slot: Slot) -> u64 {
        let pages = u32::try_from(self.sizes.huge.0 / self.sizes.base.0).unwrap_or(u32::MAX);
        u64::from(slot.growth(pages)) * self.sizes.base.0
    }

    /// Bytes by which resident memory may grow.
    fn headroom(&self) -> u64 {
        self.most_rss
            .map_or(u64::MAX, |most| (most - self.rss() - RSS_SLACK).0)
    }

    /// Slots that `change` could change and that were not refused.
    fn candidates(&self, change: Change) -> impl Iterator<Item = (usize, u64, Slot)> + '_ {
        let wants_huge = change == Change::Collapse;
        self.members
            .iter()
            .enumerate()
            .flat_map(move |(at, member)| {
                member
                    .map
                    .changeable()
                    .filter(move |(address, slot)| {
                        slot.huge != wants_huge && member.may_change(*address)
                    })
                    .map(move |(address, slot)| (at, address, slot))
            })
    }

    /// Slots in the order in which `change` should take them: for building, the densest first,
    /// which add least memory; for splitting, those that grew most when we built them, then (or
    /// always, with [`Victims::Random`]) any.
    pub fn queue(&mut self, change: Change, victims: Victims) -> Vec<(usize, u64)> {
        let mut found: Vec<(usize, u64, Slot)> = self.candidates(change).collect();
        self.random.shuffle(&mut found);
        found.sort_by_cached_key(|&(at, address, slot)| match (change, victims) {
            (Change::Collapse, _) => self.growth(slot),
            (Change::Split, Victims::Random) => 0,
            (Change::Split, Victims::Sparsest) => {
                let touched = self.members[at].touched.get(&address);
                u64::MAX - touched.map_or(0, |touched| self.growth(touched.before))
            }
        });
        let places = found.into_iter().map(|(at, address, _)| (at, address));
        places.collect()
    }

    /// Whether building this slot would keep to the memory limit.
    pub fn fits(&self, at: usize, address: u64) -> bool {
        self.most_rss.is_none() || {
            let slot = self.members[at].target.slot(address).unwrap_or_default();
            self.growth(slot) <= self.headroom()
        }
    }

    /// Changes one slot: noted in the journal first, verified afterwards.
    ///
    /// # Errors
    /// If the journal cannot be written: then nothing was changed.
    pub fn apply(&mut self, at: usize, address: u64, change: Change) -> Result<Option<Act>> {
        let member = &mut self.members[at];
        let Ok(before) = member.target.slot(address) else {
            return Ok(None);
        };
        member.note(&self.journals, &self.boot_id, address, change, before)?;
        // A process that has ended meanwhile is removed at the next look.
        let Ok(act) = member.target.apply(change, address) else {
            return Ok(None);
        };
        member.take(&act);
        match act.outcome {
            Outcome::Done if change == Change::Collapse => self.deeds.collapses.push(act.call.0),
            Outcome::Done => self.deeds.splits.push(act.call.0),
            Outcome::Already => {}
            Outcome::Refused(why) => *self.deeds.refusals.entry(why).or_default() += 1,
        }
        Ok(Some(act))
    }

    /// Slots that differ from their state before our first change, and the change that restores
    /// them.
    pub fn to_restore(&self) -> Vec<(usize, u64, Change)> {
        let members = self.members.iter().enumerate();
        members
            .flat_map(|(at, member)| {
                member
                    .touched
                    .iter()
                    .filter_map(move |(&address, touched)| {
                        let change = match (touched.before.huge, touched.is_huge) {
                            (true, false) => Change::Collapse,
                            (false, true) => Change::Split,
                            _ => return None,
                        };
                        Some((at, address, change))
                    })
            })
            .collect()
    }

    /// Memory in huge pages that was not in base pages before we built them.
    pub fn growth_by_us(&self) -> Bytes {
        let touched = self
            .members
            .iter()
            .flat_map(|member| member.touched.values());
        let grown = touched.filter(|touched| touched.is_huge && !touched.before.huge);
        Bytes(grown.map(|touched| self.growth(touched.before)).sum())
    }

    /// Huge pages with which we added memory, largest growth first.
    pub fn filled_up(&self) -> Vec<(usize, u64)> {
        let mut found = Vec::new();
        for (at, member) in self.members.iter().enumerate() {
            for (&address, touched) in &member.touched {
                let growth = self.growth(touched.before);
                if touched.is_huge && growth > 0 {
                    found.push((growth, at, address));
                }
            }
        }
        found.sort_unstable();
        found
            .into_iter()
            .rev()
            .map(|(_, at, address)| (at, address))
            .collect()
    }

    /// Why populated slots are left alone, one sentence for each reason.
    pub fn obstacles(&self) -> Vec<String> {
        let mut counts: BTreeMap<Obstacle, u64> = BTreeMap::new();
        for area in self.members.iter().flat_map(|member| &member.map.areas) {
            let populated = area.slots.iter().filter(|slot| !slot.is_empty()).count();
            // Files are never changed, so this is not worth a sentence.
            if let Some(obstacle) = area.obstacle.filter(|&why| why != Obstacle::File) {
                *counts.entry(obstacle).or_default() += populated as u64;
            }
        }
        counts.retain(|_, &mut count| count > 0);
        let sentences = counts.into_iter();
        sentences
            .map(|(why, count)| format!("{count} slots are left alone: {}.", why.label()))
            .collect()
    }

    /// Paths of the journals of members with changes.
    pub fn journals(&self) -> Vec<PathBuf> {
        let journals = self
            .members
            .iter()
            .filter_map(|member| member.journal.as_ref());
        journals
            .map(|journal| journal.path().to_path_buf())
            .collect()
    }

    /// Removes the journals: everything was reverted.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn forget(&mut self) -> Result<()> {
        for member in &mut self.members {
            if let Some(journal) = member.journal.take() {
                journal.remove()?;
            }
        }
        Ok(())
    }
}

/// `/proc/sys/kernel/random/boot_id`: page sizes do not outlive a boot.
pub fn boot_id(proc: &ProcRoot) -> String {
    let path = proc.path("sys/kernel/random/boot_id");
    pagewise_linux::pseudo_file::setting(&path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A program may end before we look for the first time, and its status is still to be passed on.
    #[test]
    fn a_program_that_has_ended_is_nobody_and_no_error() {
        let sizes = PageSizes {
            base: Bytes(4096),
            huge: Bytes(2 << 20),
        };
        let mut child = Command::new("true").spawn().expect("it runs");
        let pid = i32::try_from(child.id()).expect("a process id");
        let proc = ProcRoot::default();
        while proc
            .stat(pid)
            .expect("/proc is there")
            .is_some_and(|stat| stat.state != 'Z')
        {
            std::thread::yield_now();
        }
        let found = Population::find(Selection::Tree(pid), sizes, None).expect("no error");
        assert!(found.members.is_empty());
        let processes = Selection::Processes(vec![pid]);
        assert!(Population::find(processes, sizes, None).is_err());
        child.wait().expect("it ends");
    }
}
