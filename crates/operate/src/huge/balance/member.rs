//! One process whose page sizes are balanced, and the changes made to it.

use super::history::History;
use anyhow::{Context, Result};
use pagewise_linux::hugepages::actuator::{Act, Change, Outcome, Refusal, Target};
use pagewise_linux::hugepages::journal::{Entry, Journal, Subject};
use pagewise_model::huge_pages::{HugeMap, Slot};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// One process.
pub struct Member {
    pub target: Target,
    pub map: HugeMap,
    pub comm: String,
    /// Its page sizes so far.
    pub history: History,
    pub journal: Option<Journal>,
    /// Slots that we changed: their state before our first change, and how we left them.
    pub touched: BTreeMap<u64, Touched>,
    /// Slots that could not be changed, and when this was tried.
    refused: BTreeMap<u64, (Refusal, Instant)>,
    /// Slots that changed back without our doing.
    pub fights: BTreeSet<u64>,
}

/// A slot that we changed.
#[derive(Clone, Copy, Debug)]
pub struct Touched {
    pub before: Slot,
    pub is_huge: bool,
}

/// A slot that was busy is tried again after this time; other refusals last.
const BUSY_AGAIN: Duration = Duration::from_secs(10);

impl Member {
    /// A process without changes so far.
    pub fn new(target: Target, map: HugeMap, comm: String) -> Self {
        Self {
            target,
            map,
            comm,
            history: History::default(),
            journal: None,
            touched: BTreeMap::new(),
            refused: BTreeMap::new(),
            fights: BTreeSet::new(),
        }
    }

    pub fn may_change(&self, address: u64) -> bool {
        if self.fights.contains(&address) {
            return false;
        }
        match self.refused.get(&address) {
            Some((Refusal::Busy | Refusal::NoMemory, when)) => when.elapsed() >= BUSY_AGAIN,
            Some(_) => false,
            None => true,
        }
    }

    pub fn note(
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

    pub fn take(&mut self, act: &Act) {
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

    /// A slot that is no longer as we left it was changed by khugepaged, reclaim or the program,
    /// and is left to them. An empty one was freed by the program.
    pub fn note_fights(&mut self) {
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
