//! What memory gained and lost while it was read.

use super::{MappingFacts, MappingKind, ProcessFacts, UnreadRange};
use pagewise_model::memory::Unread;
use pagewise_model::units::Bytes;

/// Memory of no heap changed, not only grew a little, if it differs by more than this part (1 in so many).
const MUCH: u64 = 8;

impl ProcessFacts {
    /// Resident memory in which no heap was found, and for which there is no reason.
    #[must_use]
    pub fn unexplained(&self) -> Bytes {
        let found = self.mappings.iter().filter(|one| self.is_unexplained(one));
        Bytes(found.map(|one| one.resident.0).sum())
    }

    /// Memory of no heap that is another by what smaps says `after` heaps were read: it was returned, or
    /// requested anew, and what a reader found there was not what smaps had counted.
    pub fn note_changed(&mut self, after: &[MappingFacts]) {
        let later = |before: &MappingFacts| {
            let same = |one: &&MappingFacts| (one.start, one.end) == (before.start, before.end);
            after.iter().find(same).map_or(0, |one| one.resident.0)
        };
        let has_changed =
            |one: &&MappingFacts| later(one).abs_diff(one.resident.0) > one.resident.0 / MUCH;
        let unexplained = self.mappings.iter().filter(|one| self.is_unexplained(one));
        let changed = unexplained.filter(has_changed).map(|one| UnreadRange {
            start: one.start,
            end: one.end,
            why: Unread::Changed,
            resident: one.resident.0,
            swapped: one.swapped.0,
        });
        let changed: Vec<UnreadRange> = changed.collect();
        self.unread.extend(changed);
    }

    fn is_unexplained(&self, mapping: &MappingFacts) -> bool {
        let overlaps = |range: &UnreadRange| range.start < mapping.end && mapping.start < range.end;
        mapping.kind == MappingKind::Anonymous
            && self.in_heaps(mapping) == 0
            && !self.unread.iter().any(overlaps)
    }

    /// Bytes of heaps beyond what smaps, which was read before them, counted in their mappings.
    #[must_use]
    pub fn grown(&self) -> Bytes {
        let beyond = |one: &MappingFacts| self.in_heaps(one).saturating_sub(one.resident.0);
        Bytes(self.mappings.iter().map(beyond).sum())
    }

    /// Counts in each mapping what its heaps hold, up to what smaps says `after` they were read: the
    /// kernel's figure at that moment lies between both.
    pub fn settle(&mut self, after: &[MappingFacts]) {
        for at in 0..self.mappings.len() {
            let before = self.mappings[at];
            let Some(later) = after.iter().find(|one| one.start == before.start) else {
                continue;
            };
            let held = self.in_heaps(&before).min(later.resident.0);
            let grown = held.saturating_sub(before.resident.0);
            self.mappings[at].resident += Bytes(grown);
            self.mappings[at].proportional += Bytes(grown);
        }
    }

    fn in_heaps(&self, mapping: &MappingFacts) -> u64 {
        let within = |at: u64| self.extents.partition_point(|one| one.start < at);
        let extents = self.extents.get(within(mapping.start)..within(mapping.end));
        let extents = extents.unwrap_or_default().iter();
        extents.map(|one| one.sums.total().resident).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{account, tests::facts};
    use super::*;

    #[test]
    fn a_heap_that_grows_while_it_is_read_adds_up_with_smaps_after_it() {
        let mut facts = facts();
        // As much as the heap holds was there only when it was read, and more when smaps was read again.
        let mut after = facts.mappings.clone();
        facts.mappings[0].resident = Bytes(41_536);
        after[0].resident = Bytes(90_000);
        assert_eq!(facts.grown(), Bytes(20_000));
        facts.settle(&after);
        assert_eq!(facts.grown(), Bytes(0));
        let found = account(facts);
        assert_eq!(found.residue, 0);
        assert_eq!(found.resident, Bytes(61_536 + 20_480 + 8_192));
    }

    #[test]
    fn memory_of_no_heap_that_went_away_meanwhile_has_changed() {
        let mut facts = facts();
        facts.unread.clear();
        assert_eq!(facts.unexplained(), Bytes(20_480));
        let same = facts.mappings.clone();
        let not_readable = |after: &[MappingFacts]| {
            let mut facts = facts.clone();
            facts.note_changed(after);
            let mut rows = account(facts).rows.into_iter();
            rows.find_map(|row| row.unread)
        };
        assert_eq!(not_readable(&same), Some(Unread::NoKnownAllocator));
        let mut returned = same.clone();
        returned[1].resident = Bytes(4_096);
        assert_eq!(not_readable(&returned), Some(Unread::Changed));
        // Another mapping starts there.
        let mut replaced = same.clone();
        replaced[1].end += 4_096;
        assert_eq!(not_readable(&replaced), Some(Unread::Changed));
        assert_eq!(not_readable(&[]), Some(Unread::Changed));
    }

    #[test]
    fn what_smaps_never_counted_stays_a_difference() {
        let mut facts = facts();
        facts.mappings[0].resident = Bytes(41_536);
        let after = facts.mappings.clone();
        facts.settle(&after);
        assert_eq!(account(facts).residue, -20_000);
    }
}
