//! What heaps gained while they were read.

use super::{MappingFacts, ProcessFacts};
use pagewise_model::units::Bytes;

impl ProcessFacts {
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
    fn what_smaps_never_counted_stays_a_difference() {
        let mut facts = facts();
        facts.mappings[0].resident = Bytes(41_536);
        let after = facts.mappings.clone();
        facts.settle(&after);
        assert_eq!(account(facts).residue, -20_000);
    }
}
