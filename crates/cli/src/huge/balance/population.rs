//! The processes whose page sizes are balanced, and every change that is made to them.

use super::history::History;
use anyhow::{Context, Result, bail};
use pagewise_analyse::compare::Random;
use pagewise_linux::hugepages::actuator::{Act, Change, Outcome, Refusal, Target};
use pagewise_linux::hugepages::journal::{Entry, Journal, Subject};
use pagewise_linux::hugepages::map::{self, PageSizes};
use pagewise_linux::proc::ProcRoot;
use pagewise_model::huge_pages::{HugeMap, HugeSummary, Obstacle, Slot};
use pagewise_model::units::Bytes;
use pagewise_simulate::balance::Victims;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Who is balanced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// These processes.
    Processes(Vec<i32>),
    /// This process and whatever it starts.
    Tree(i32),
    /// All processes of a cgroup and those below it.
    Cgroup(PathBuf),
}

/// One process.
pub struct Member {
    pub target: Target,
    pub map: HugeMap,
    pub comm: String,
    /// Its page sizes so far.
    pub history: History,
    journal: Option<Journal>,
    /// Slots that we changed: what they held before our first change, and how we left them.
    touched: BTreeMap<u64, Touched>,
    /// Slots that could not be changed, and when that was tried.
    refused: BTreeMap<u64, (Refusal, Instant)>,
    /// Slots that changed back without us.
    fights: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Touched {
    before: Slot,
    is_huge: bool,
}

/// What was done so far.
#[derive(Clone, Debug, Default)]
pub struct Deeds {
    /// Times of the calls that built a huge page, in nanoseconds.
    pub collapses: Vec<u64>,
    /// Times of the calls that split one.
    pub splits: Vec<u64>,
    /// Tries that changed nothing, by reason.
    pub refusals: BTreeMap<Refusal, u64>,
}

/// All of them.
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

/// A slot that was busy is tried again after this time; other refusals last.
const BUSY_AGAIN: Duration = Duration::from_secs(10);
/// The kernel counts a resident set in batches per CPU: this much it may be off.
const RSS_SLACK: Bytes = Bytes(2 << 20);

impl Population {
    /// Nobody yet.
    pub fn new(selection: Selection, sizes: PageSizes, most_rss: Option<Bytes>) -> Self {
        let proc = ProcRoot::default();
        let boot_id = boot_id(&proc);
        Self {
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
        }
    }

    /// Looks who belongs to it now, and reads their maps afresh.
    ///
    /// # Errors
    /// When the cgroup cannot be read.
    pub fn refresh(&mut self) -> Result<()> {
        let wanted = self.wanted()?;
        self.members
            .retain(|member| wanted.contains(&member.target.pid()) && member.target.is_alive());
        for pid in wanted {
            if !self.members.iter().any(|member| member.target.pid() == pid) {
                self.admit(pid);
            }
        }
        for member in &mut self.members {
            // A process that ended meanwhile leaves at the next look.
            if let Ok(map) = member.target.map() {
                member.map = map;
            }
            member.note_fights();
        }
        Ok(())
    }

    /// Reads again which slots are huge, in mappings that are known.
    pub fn rescan(&mut self) {
        for member in &mut self.members {
            let Member { target, map, .. } = member;
            if target.refresh(map).is_ok() {
                member.note_fights();
            }
        }
    }

    /// Keeps the page sizes of this moment, for the picture of them over time.
    pub fn remember(&mut self, at: Duration) {
        for member in &mut self.members {
            member.history.add(at, &member.map);
        }
    }

    fn wanted(&self) -> Result<Vec<i32>> {
        match &self.selection {
            Selection::Processes(pids) => Ok(pids.clone()),
            Selection::Tree(root) => {
                let mut found = vec![*root];
                let mut at = 0;
                while let Some(&pid) = found.get(at) {
                    found.extend(self.proc.children(pid).unwrap_or_default());
                    at += 1;
                }
                Ok(found)
            }
            Selection::Cgroup(folder) => processes_of(folder),
        }
    }

    fn admit(&mut self, pid: i32) {
        let opened = Target::open(&self.proc, pid, self.sizes)
            .and_then(|target| target.map().map(|map| (target, map)));
        match opened {
            Ok((target, map)) => {
                let comm = self.proc.stat(pid).ok().flatten();
                self.members.push(Member {
                    comm: comm.map_or_else(String::new, |stat| stat.comm),
                    target,
                    map,
                    history: History::default(),
                    journal: None,
                    touched: BTreeMap::new(),
                    refused: BTreeMap::new(),
                    fights: BTreeSet::new(),
                });
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

    /// Slots that fights with khugepaged or the program made us give up.
    pub fn fights(&self) -> u64 {
        self.members
            .iter()
            .map(|member| member.fights.len() as u64)
            .sum()
    }

    /// Huge pages that there could be: those that are, and what can be built within the memory
    /// that may be used.
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

    /// Bytes by which the resident set may grow.
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
    /// which cost least memory; for splitting, what we filled up most when we built it, then (or
    /// always, by [`Victims::Random`]) any.
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

    /// Whether building this slot would break the promise about memory.
    pub fn fits(&self, at: usize, address: u64) -> bool {
        self.most_rss.is_none() || {
            let slot = self.members[at].target.slot(address).unwrap_or_default();
            self.growth(slot) <= self.headroom()
        }
    }

    /// Changes one slot: noted in the journal first, verified afterwards.
    ///
    /// # Errors
    /// When the journal cannot be written: then nothing was changed.
    pub fn apply(&mut self, at: usize, address: u64, change: Change) -> Result<Option<Act>> {
        let member = &mut self.members[at];
        let Ok(before) = member.target.slot(address) else {
            return Ok(None);
        };
        member.note(&self.journals, &self.boot_id, address, change, before)?;
        // A process that ended meanwhile leaves at the next look.
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

    /// Slots that are not as they were before our first change, and the change that helps.
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

    /// Memory that huge pages hold now which base pages did not before we built them.
    pub fn growth_by_us(&self) -> Bytes {
        let touched = self
            .members
            .iter()
            .flat_map(|member| member.touched.values());
        let grown = touched.filter(|touched| touched.is_huge && !touched.before.huge);
        Bytes(grown.map(|touched| self.growth(touched.before)).sum())
    }

    /// Huge pages by which we added memory, those that added most first.
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
            // Files are never changed; that is no news.
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

    /// Where the journals of members with changes lie.
    pub fn journals(&self) -> Vec<PathBuf> {
        let journals = self
            .members
            .iter()
            .filter_map(|member| member.journal.as_ref());
        journals
            .map(|journal| journal.path().to_path_buf())
            .collect()
    }

    /// Removes the journals: everything was taken back.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn forget(&mut self) -> Result<()> {
        for member in &mut self.members {
            if let Some(journal) = member.journal.take() {
                journal.remove()?;
            }
        }
        Ok(())
    }
}

impl Member {
    fn may_change(&self, address: u64) -> bool {
        if self.fights.contains(&address) {
            return false;
        }
        match self.refused.get(&address) {
            Some((Refusal::Busy | Refusal::NoMemory, when)) => when.elapsed() >= BUSY_AGAIN,
            Some(_) => false,
            None => true,
        }
    }

    fn note(
        &mut self,
        folder: &Path,
        boot_id: &str,
        address: u64,
        change: Change,
        before: Slot,
    ) -> Result<()> {
        if self.journal.is_none() {
            let subject = Subject {
                pid: self.target.pid(),
                start_ticks: self.target.start_ticks(),
                boot_id: boot_id.to_owned(),
                comm: self.comm.clone(),
            };
            let journal = Journal::open(folder, &subject);
            self.journal = Some(journal.context("nothing was changed")?);
        }
        if let Some(journal) = &mut self.journal {
            journal.note(Entry {
                address,
                change,
                before,
            })?;
        }
        Ok(())
    }

    fn take(&mut self, act: &Act) {
        if let Some((area, at)) = self.place(act.address) {
            self.map.areas[area].slots[at] = act.after;
        }
        match act.outcome {
            Outcome::Done => {
                let touched = self.touched.entry(act.address).or_insert(Touched {
                    before: act.before,
                    is_huge: act.after.huge,
                });
                touched.is_huge = act.after.huge;
                self.refused.remove(&act.address);
            }
            Outcome::Already => {}
            Outcome::Refused(why) => {
                self.refused.insert(act.address, (why, Instant::now()));
            }
        }
    }

    /// Index of the area and slot at `address`.
    fn place(&self, address: u64) -> Option<(usize, usize)> {
        let after = self.map.areas.partition_point(|area| area.start <= address);
        let at = after.checked_sub(1)?;
        let area = &self.map.areas[at];
        let slot = address.checked_sub(area.first_slot)? / self.map.huge_page.0;
        let slot = usize::try_from(slot).ok()?;
        (slot < area.slots.len()).then_some((at, slot))
    }

    /// A slot that is no longer as we left it was changed by khugepaged, reclaim or the program:
    /// it is left to them. One that is empty was given back by the program.
    fn note_fights(&mut self) {
        let mut lost = Vec::new();
        for (&address, touched) in &self.touched {
            let slot = self
                .place(address)
                .map(|(area, at)| self.map.areas[area].slots[at]);
            match slot {
                Some(slot) if slot.is_empty() => lost.push((address, false)),
                Some(slot) if slot.huge != touched.is_huge => lost.push((address, true)),
                Some(_) => {}
                None => lost.push((address, false)),
            }
        }
        for (address, is_fight) in lost {
            self.touched.remove(&address);
            if is_fight {
                self.fights.insert(address);
            }
        }
    }
}

/// `/proc/sys/kernel/random/boot_id`: page sizes do not outlive a boot.
pub fn boot_id(proc: &ProcRoot) -> String {
    let path = proc.path("sys/kernel/random/boot_id");
    pagewise_linux::pseudo_file::setting(&path).unwrap_or_default()
}

fn processes_of(folder: &Path) -> Result<Vec<i32>> {
    let file = folder.join("cgroup.procs");
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}: give a cgroup's folder", file.display()))?;
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        match word.parse() {
            Ok(pid) => found.push(pid),
            Err(_) => bail!("{} has '{word}' for a process id", file.display()),
        }
    }
    let children = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for child in children.filter(|entry| entry.path().is_dir()) {
        found.extend(processes_of(&child.path())?);
    }
    Ok(found)
}
