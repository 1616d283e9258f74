//! Counts the records that pass through the rings, by source.

use super::chains::Chains;
use super::kin::Kin;
use super::plan::{Plan, Reach};
use super::record_bytes::{MISC_MMAP_DATA, kind, misc, next_record, word32, word64};
use super::role::{RingClass, Role};
use super::side_band;
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::units::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Number of records written by a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCount {
    /// perf's name of the source.
    pub name: String,
    /// Records.
    pub count: u64,
}

/// A number of records and their cost to the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub records: u64,
    pub cost: Nanos,
}

/// The event without samples (`PERF_COUNT_SW_DUMMY`).
const DUMMY: &str = "dummy";

/// A source's running figures.
#[derive(Clone, Debug)]
struct Tally {
    name: String,
    role: Role,
    unit_cost: u64,
    time_offset: usize,
    thread_offset: usize,
    /// Where samples of CPU time have their call chain.
    chain_offset: Option<usize>,
    /// Whether it records all processes, so that records of others have to be dropped.
    sees_all: bool,
    count: u64,
    /// Its records that are not samples: mappings, starts and ends.
    others: u64,
    /// The id that its samples carry in the file.
    stable_id: Option<u64>,
}

/// Everything counted so far.
#[derive(Debug, Default)]
pub(super) struct Account {
    tallies: Vec<Tally>,
    by_id: FxHashMap<u64, usize>,
    /// Ids of instances opened for a turn, and the ids that replace them.
    replaced: FxHashMap<u64, u64>,
    /// Ids among them from before the last turn of their role.
    previous: FxHashSet<u64>,
    kin: Kin,
    /// Births since the last [`Account::take_births`].
    born: u64,
    /// Records of lifetimes and mappings that nobody known wrote, from the last round: the birth of
    /// their thread may be in a ring that was emptied before it was written.
    undecided: Vec<u8>,
    lifetimes: Option<usize>,
    mappings: Option<usize>,
    chains: Chains,
    first: Option<u64>,
    last: u64,
    /// Records and their cost by role since the last [`Account::take`].
    fresh: Vec<(Role, Spent)>,
    total_cost: u64,
    lost: u64,
    /// See [`Account::take_lost`].
    lost_before: u64,
    throttled: u64,
    unknown: u64,
}

impl Account {
    /// An account for a plan whose sources have these ids, in the plan's order.
    pub fn new(plan: &Plan, ids: &[Vec<u64>]) -> Self {
        let mut account = Self::default();
        let sources = plan
            .units
            .iter()
            .flat_map(|unit| unit.sources.iter().map(move |source| (unit, source)));
        for (at, ((unit, source), ids)) in sources.zip(ids).enumerate() {
            account.by_id.extend(ids.iter().map(|&id| (id, at)));
            account.tallies.push(Tally {
                name: source.name.clone(),
                role: unit.role,
                unit_cost: source.unit_cost,
                time_offset: source.time_offset(),
                thread_offset: source.thread_offset(),
                chain_offset: match unit.role {
                    Role::Cpu | Role::DenseCpu => source.chain_offset(),
                    _ => None,
                },
                sees_all: unit.reach == Reach::Machine,
                count: 0,
                others: 0,
                stable_id: ids.first().copied(),
            });
        }
        account.lifetimes = account.position(Role::Lifetimes);
        account.mappings = account.position(Role::Mappings);
        account
    }

    fn position(&self, role: Role) -> Option<usize> {
        self.tallies.iter().position(|tally| tally.role == role)
    }

    /// Registers an instance that was opened for a turn: its records are then counted for source
    /// number `at` of `role`.
    pub fn adopt(&mut self, role: Role, at: usize, id: u64) {
        let Some(tally) = self.position(role).map(|first| first + at) else {
            return;
        };
        self.by_id.insert(id, tally);
        if let Some(stable) = self.tallies.get(tally).and_then(|tally| tally.stable_id) {
            self.replaced.insert(id, stable);
        }
    }

    /// A new turn of `role` starts: forgets the instances of the turn before the last. Those of the
    /// last stay known, because a CPU that was interrupted while it wrote a record finishes it
    /// later, and a role may have two turns before the rings are emptied.
    pub fn forget(&mut self, role: Role) {
        let (tallies, by_id, previous) = (&self.tallies, &mut self.by_id, &mut self.previous);
        self.replaced.retain(|id, _| {
            let of_role = by_id.get(id).is_none_or(|&at| tallies[at].role == role);
            let stays = !of_role || previous.insert(*id);
            if !stays {
                by_id.remove(id);
                previous.remove(id);
            }
            stays
        });
    }

    /// Whether records need [`Account::replace_ids`].
    pub fn replaces_ids(&self) -> bool {
        !self.replaced.is_empty()
    }

    /// Replaces the ids that the kernel gave to instances opened for a turn with their source's id,
    /// so that a file's header can list all ids in advance. A sample starts with its id, any other
    /// record ends with it (`sample_id_all`).
    pub fn replace_ids(&self, mut records: &mut [u8]) {
        while let Some((record, _)) = next_record(records) {
            let size = record.len();
            let at = if word32(record, 0) == kind::SAMPLE {
                8
            } else {
                size - 8
            };
            if at >= 8
                && let Some(stable) = self.replaced.get(&word64(record, at))
                && let Some(place) = records.get_mut(at..at + 8)
            {
                place.copy_from_slice(&stable.to_le_bytes());
            }
            records = &mut records[size..];
        }
    }

    /// A turn of `role` records all processes.
    pub fn watch_all(&mut self, role: Role) {
        let of_role = self.tallies.iter_mut().filter(|tally| tally.role == role);
        of_role.for_each(|tally| tally.sees_all = true);
    }

    /// Whether records were lost since the last call.
    pub fn take_lost(&mut self) -> bool {
        let lost = self.lost != self.lost_before;
        self.lost_before = self.lost;
        lost
    }

    /// The number of threads born since the last call.
    pub fn take_births(&mut self) -> u64 {
        std::mem::take(&mut self.born)
    }

    /// Threads that are alive according to births and deaths seen so far.
    pub fn threads(&self) -> &BTreeSet<i32> {
        &self.kin.alive
    }

    /// Adds threads that are already alive.
    pub fn add_threads(&mut self, threads: &[i32]) {
        self.kin.alive.extend(threads);
    }

    /// Learns where code was mapped before the recording.
    pub fn learn_code(&mut self, records: &[u8]) {
        self.chains.learn(records);
    }

    /// Whether too few call chains of CPU time were seen to tell whether they break.
    pub fn chains_are_undecided(&self) -> bool {
        self.chains.is_undecided()
    }

    /// Whether call chains of CPU time by frame pointers break too often to be of use.
    pub fn chains_break(&self) -> bool {
        self.chains.break_often()
    }

    /// Removes threads that have ended.
    pub fn remove_threads(&mut self, threads: &[i32]) {
        self.kin.alive.retain(|tid| !threads.contains(tid));
    }

    /// Whether a source that writes to rings of this class records all processes, so that its
    /// records need [`Account::keep_ours`].
    pub fn sees_all(&self, class: RingClass) -> bool {
        let mut tallies = self.tallies.iter();
        tallies.any(|tally| tally.sees_all && tally.role.ring() == class)
    }

    /// The records of `span` without those of other processes, from sources that record all
    /// processes; the cost of the dropped ones is counted. Where lifetimes are recorded of the
    /// program's threads only, count births first: they were written before the new thread's own
    /// records.
    pub fn keep_ours(&mut self, mut span: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(span.len());
        let mut samples = Vec::new();
        let sifts = self.sees_all(RingClass::Side);
        let old = std::mem::take(&mut self.undecided);
        let mut side = side_band::timed(&old, false);
        while let Some((record, after)) = next_record(span) {
            match sifts && side_band::is_of(record) {
                true => side.push((side_band::time(record), true, record)),
                false => samples.push(record),
            }
            span = after;
        }
        side.sort_by_key(|&(time, ..)| time);
        self.keep_side(&side, &mut kept);
        for record in samples {
            match self.of_others(record) {
                Some(source) => self.spend(source),
                None => kept.extend_from_slice(record),
            }
        }
        kept
    }

    /// Of records of lifetimes and mappings in the order of their times: those of our threads and
    /// of the threads that these start. Others wait for one more round.
    fn keep_side(&mut self, side: &[(u64, bool, &[u8])], kept: &mut Vec<u8>) {
        for &(_, is_new, record) in side {
            let [pid, tid] = side_band::writer(record);
            if self.kin.knows(tid) || self.kin.knows(pid) {
                self.kin.follow(record);
                kept.extend_from_slice(record);
            } else if is_new {
                self.undecided.extend_from_slice(record);
            } else if let Some(source) = self.source_of_side(record) {
                self.spend(source);
            }
        }
    }

    /// The source of a sample, if the sample's thread is not observed.
    fn of_others(&self, record: &[u8]) -> Option<usize> {
        if word32(record, 0) != kind::SAMPLE {
            return None;
        }
        let source = *self.by_id.get(&word64(record, 8))?;
        let tally = self.tallies.get(source).filter(|tally| tally.sees_all)?;
        let at = tally.thread_offset;
        let ids = [word32(record, at), word32(record, at + 4)];
        let is_ours = ids.iter().any(|id| self.kin.knows(id.cast_signed()));
        (!is_ours).then_some(source)
    }

    /// A round of emptying the rings is over.
    pub fn end_round(&mut self) {
        self.kin.end_round();
    }

    /// Counts the whole records of `span`.
    pub fn count(&mut self, span: &[u8]) {
        let mut rest = span;
        while let Some((record, after)) = next_record(rest) {
            self.count_record(record);
            rest = after;
        }
    }

    /// The records of `span` without samples of nobody's: where another recorder watches the same event,
    /// the kernel fills a sample's id and time once for both ([`super`]), so that ours carries theirs. They
    /// are counted ([`LossKind::UnknownRecord`]), and would be read by another source's layout.
    pub fn without_strangers<'a>(&self, span: &'a [u8]) -> Cow<'a, [u8]> {
        let mut rest = span;
        let mut kept: Option<Vec<u8>> = None;
        while let Some((record, after)) = next_record(rest) {
            let at = span.len() - rest.len();
            match (self.is_strangers(record), &mut kept) {
                (true, None) => kept = Some(span[..at].to_vec()),
                (false, Some(kept)) => kept.extend_from_slice(record),
                _ => {}
            }
            rest = after;
        }
        kept.map_or(Cow::Borrowed(span), |mut kept| {
            kept.extend_from_slice(rest);
            Cow::Owned(kept)
        })
    }

    fn is_strangers(&self, record: &[u8]) -> bool {
        word32(record, 0) == kind::SAMPLE && !self.by_id.contains_key(&word64(record, 8))
    }

    fn count_record(&mut self, record: &[u8]) {
        match word32(record, 0) {
            kind::SAMPLE => self.count_sample(record),
            kind::MMAP2 | kind::MMAP | kind::COMM | kind::FORK | kind::EXIT => {
                self.kin.follow(record);
                self.chains.learn_record(record);
                let source = self.source_of_side(record);
                // Another source with mappings reports each birth, too.
                let is_first = source == self.lifetimes;
                self.born += u64::from(is_first && word32(record, 0) == kind::FORK);
                self.add(source, false);
            }
            kind::LOST => self.lost += word64(record, 16),
            kind::THROTTLE => self.throttled += 1,
            _ => {}
        }
    }

    /// The source that wrote a record: the kernel gives births and ends to each source that has mappings.
    fn source_of_side(&self, record: &[u8]) -> Option<usize> {
        let known = self.by_id.get(&side_band::id(record)).copied();
        known.or(match word32(record, 0) {
            kind::MMAP2 | kind::MMAP if misc(record) & MISC_MMAP_DATA != 0 => self.mappings,
            _ => self.lifetimes,
        })
    }

    fn count_sample(&mut self, record: &[u8]) {
        let Some(&at) = self.by_id.get(&word64(record, 8)) else {
            self.unknown += 1;
            return;
        };
        let time = word64(record, self.tallies[at].time_offset);
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = self.last.max(time);
        if let Some(offset) = self.tallies[at].chain_offset {
            self.chains.look_at(record, offset);
        }
        self.add(Some(at), true);
    }

    fn add(&mut self, source: Option<usize>, is_sample: bool) {
        let Some((at, tally)) = source.and_then(|at| Some((at, self.tallies.get_mut(at)?))) else {
            return;
        };
        match is_sample {
            true => tally.count += 1,
            false => tally.others += 1,
        }
        self.total_cost += tally.unit_cost;
        self.spend(at);
    }

    /// Counts a record's cost, whichever process caused it.
    fn spend(&mut self, source: usize) {
        let (role, cost) = (self.tallies[source].role, self.tallies[source].unit_cost);
        let at = self.fresh.iter().position(|(known, _)| *known == role);
        let at = at.unwrap_or_else(|| {
            self.fresh.push((role, Spent::default()));
            self.fresh.len() - 1
        });
        let spent = &mut self.fresh[at].1;
        spent.records += 1;
        spent.cost += Nanos(cost);
    }

    /// Samples of `role` so far, of the observed threads.
    pub fn samples_of(&self, role: Role) -> u64 {
        let of_role = self.tallies.iter().filter(|tally| tally.role == role);
        of_role.map(|tally| tally.count).sum()
    }

    /// The records of `role` since the last call.
    pub fn take(&mut self, role: Role) -> Spent {
        let fresh = self.fresh.iter_mut().find(|(known, _)| *known == role);
        fresh.map_or(Spent::default(), |(_, spent)| std::mem::take(spent))
    }

    /// What all records cost the program.
    pub fn total_cost(&self) -> Nanos {
        Nanos(self.total_cost)
    }

    /// Times of the first and last sample.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.first.map(|first| (first, self.last))
    }

    /// Losses reported in the stream itself. `kernel_count` is the kernel's own total, if it keeps
    /// one: it also includes losses after the last record.
    pub fn losses(&self, kernel_count: Option<u64>) -> Losses {
        let mut losses = Losses::default();
        let lost = kernel_count.map_or(self.lost, |count| count.max(self.lost));
        losses.add(LossKind::RingOverrun, lost);
        losses.add(LossKind::Throttled, self.throttled);
        losses.add(LossKind::UnknownRecord, self.unknown);
        losses
    }

    /// Samples by source, followed by the number of all other records under the name of the dummy
    /// event, which has nothing else.
    pub fn counts(&self) -> Vec<EventCount> {
        let samples = self.tallies.iter().map(|tally| EventCount {
            name: tally.name.clone(),
            count: tally.count,
        });
        let others = EventCount {
            name: DUMMY.to_owned(),
            count: self.tallies.iter().map(|tally| tally.others).sum(),
        };
        let has_others = others.count > 0;
        samples.chain(has_others.then_some(others)).collect()
    }
}

#[cfg(test)]
mod tests;
