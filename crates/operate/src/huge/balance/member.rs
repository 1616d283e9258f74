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
    /// Slots that others made huge though pages of them were missing, and how many.
    pub filled: BTreeMap<u64, u32>,
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
            filled: BTreeMap::new(),
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
        place(&self.map, address)
    }

    /// `before` is the map of the last look. A fault fills an empty slot; one that had a few pages becomes huge by
    /// khugepaged alone, which puts zeros where the program has released memory or never touched it.
    pub fn note_filled(&mut self, before: &HugeMap) {
        for (address, missing) in filled_up(before, &self.map) {
            self.filled.insert(address, missing);
        }
        let map = &self.map;
        let is_huge = |address| {
            let found = place(map, address);
            found.is_some_and(|(area, at)| map.areas[area].slots[at].huge)
        };
        self.filled.retain(|&address, _| is_huge(address));
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

/// Index of the area and slot at `address`.
fn place(map: &HugeMap, address: u64) -> Option<(usize, usize)> {
    let after = map.areas.partition_point(|area| area.start <= address);
    let at = after.checked_sub(1)?;
    let area = &map.areas[at];
    let slot = address.checked_sub(area.first_slot)? / map.huge_page.0;
    let slot = usize::try_from(slot).ok()?;
    (slot < area.slots.len()).then_some((at, slot))
}

/// Slots that are huge in `now` and had some pages in `before`, but not all: each with the pages that were missing.
fn filled_up(before: &HugeMap, now: &HugeMap) -> Vec<(u64, u32)> {
    let was = |address| place(before, address).map(|(area, at)| before.areas[area].slots[at]);
    let huge = now.changeable().filter(|(_, slot)| slot.huge);
    let with_missing = huge.filter_map(|(address, _)| {
        let was = was(address).filter(|was| !was.is_empty())?;
        Some((address, was.growth(now.pages_per_slot())))
    });
    with_missing.filter(|(_, missing)| *missing > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::findings::RegionKind;
    use pagewise_model::huge_pages::Area;
    use pagewise_model::units::Bytes;

    const HUGE: Bytes = Bytes(2 << 20);

    fn map(slots: [Slot; 4]) -> HugeMap {
        let start = 5 * HUGE.0;
        HugeMap {
            huge_page: HUGE,
            base_page: Bytes(4096),
            areas: vec![Area {
                start,
                end: start + 4 * HUGE.0,
                region: RegionKind::Anonymous,
                path: String::new(),
                advised: true,
                obstacle: None,
                first_slot: start,
                slots: slots.to_vec(),
            }],
        }
    }

    #[test]
    fn what_khugepaged_fills_up_is_told_from_faults() {
        let small = |present| Slot {
            present,
            ..Slot::default()
        };
        let huge = Slot {
            huge: true,
            ..small(512)
        };
        // One page of 512, all of them, none, and one that stays small.
        let before = map([small(1), small(512), small(0), small(100)]);
        let now = map([huge, huge, huge, small(100)]);
        assert_eq!(filled_up(&before, &now), [(5 * HUGE.0, 511)]);
        assert_eq!(filled_up(&now, &now), []);
    }
}
