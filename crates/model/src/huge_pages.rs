//! Which stretches of an address space huge pages map, and what was done about them.
//!
//! A *slot* is an aligned stretch of the size of one huge page (PMD level) inside one mapping: the
//! only unit in which page sizes can be changed.

use crate::findings::RegionKind;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// The contents of one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slot {
    /// One huge page maps all of it.
    pub huge: bool,
    /// Base pages in memory, without the shared zero page; all pages of the slot if it is huge.
    pub present: u32,
    /// Base pages mapped to the shared zero page: read, never written.
    pub zero: u32,
    /// Base pages in swap.
    pub swapped: u32,
}

impl Slot {
    /// Whether no part of it was ever touched (or everything was given back).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.huge && self.present == 0 && self.zero == 0 && self.swapped == 0
    }

    /// Base pages that a huge page would add to resident memory, of `all` in a slot. The kernel
    /// reads swapped pages back for this, so they count as added.
    #[must_use]
    pub fn growth(&self, all: u32) -> u32 {
        match self.huge {
            true => 0,
            false => all.saturating_sub(self.present),
        }
    }
}

/// Why page sizes of an area are left unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// `mlock(2)`: splitting and rebuilding would cause faults in a program that locked its memory
    /// to avoid them.
    Locked,
    /// `MADV_NOHUGEPAGE`: the program wants base pages; the kernel refuses to collapse.
    NoHugePages,
    /// Registered with userfaultfd: page contents are up to the program.
    UserFault,
    /// hugetlb: the size is fixed.
    Hugetlb,
    /// A device or a raw frame mapping.
    Device,
    /// A file: its page cache is shared with others.
    File,
}

impl Obstacle {
    /// Display text.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Locked => "locked by mlock",
            Self::NoHugePages => "MADV_NOHUGEPAGE",
            Self::UserFault => "registered with userfaultfd",
            Self::Hugetlb => "hugetlb",
            Self::Device => "device memory",
            Self::File => "mapped file",
        }
    }
}

/// One mapping, cut into slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Area {
    /// First address of the mapping.
    pub start: u64,
    /// First address past it.
    pub end: u64,
    /// Kind of memory.
    pub region: RegionKind,
    /// Path or pseudo path as in `/proc/PID/maps`.
    pub path: String,
    /// Whether the program asked for huge pages here (`MADV_HUGEPAGE`), where khugepaged works,
    /// too.
    pub advised: bool,
    /// Why its page sizes are left unchanged, if they are.
    pub obstacle: Option<Obstacle>,
    /// Address of the first slot; slots follow each other without gaps.
    pub first_slot: u64,
    /// The slots, by address.
    pub slots: Vec<Slot>,
}

impl Area {
    /// Address of slot `at`.
    #[must_use]
    pub fn address(&self, at: usize, slot_size: Bytes) -> u64 {
        self.first_slot + at as u64 * slot_size.0
    }

    /// Bytes at both ends outside all slots, because the mapping's edges are not aligned.
    #[must_use]
    pub fn outside_slots(&self, slot_size: Bytes) -> Bytes {
        Bytes(self.end - self.start) - Bytes(self.slots.len() as u64 * slot_size.0)
    }
}

/// Page sizes of an address space at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugeMap {
    /// Bytes in a huge page.
    pub huge_page: Bytes,
    /// Bytes in a base page.
    pub base_page: Bytes,
    /// Mappings with at least one slot, by address.
    pub areas: Vec<Area>,
}

/// Sums over the slots whose page size can be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugeSummary {
    /// Slots mapped by one huge page.
    pub huge: u64,
    /// Slots with base pages in memory.
    pub small: u64,
    /// Memory in slots of base pages.
    pub small_bytes: Bytes,
    /// Memory that making all slots huge would add.
    pub growth: Bytes,
    /// Slots without any populated page.
    pub empty: u64,
    /// Populated slots in areas with an [`Obstacle`].
    pub blocked: u64,
}

impl HugeSummary {
    /// Share of populated slots that is huge, 0 to 1; `None` without any.
    #[must_use]
    pub fn huge_share(&self) -> Option<f64> {
        let all = self.huge + self.small;
        (all > 0).then(|| self.huge as f64 / all as f64)
    }
}

impl HugeMap {
    /// Base pages in a huge page.
    #[must_use]
    pub fn pages_per_slot(&self) -> u32 {
        u32::try_from(self.huge_page.0 / self.base_page.0.max(1)).unwrap_or(u32::MAX)
    }

    /// Sums over the slots that can be changed.
    #[must_use]
    pub fn summary(&self) -> HugeSummary {
        let mut sum = HugeSummary::default();
        for area in &self.areas {
            for slot in &area.slots {
                self.add(slot, area.obstacle.is_some(), &mut sum);
            }
        }
        sum
    }

    fn add(&self, slot: &Slot, blocked: bool, sum: &mut HugeSummary) {
        match () {
            () if slot.is_empty() => sum.empty += 1,
            () if blocked => sum.blocked += 1,
            () if slot.huge => sum.huge += 1,
            () => {
                sum.small += 1;
                sum.small_bytes += Bytes(u64::from(slot.present) * self.base_page.0);
                let added = u64::from(slot.growth(self.pages_per_slot()));
                sum.growth += Bytes(added * self.base_page.0);
            }
        }
    }

    /// Populated slots whose size can be changed: address and content.
    pub fn changeable(&self) -> impl Iterator<Item = (u64, Slot)> + '_ {
        let free = self.areas.iter().filter(|area| area.obstacle.is_none());
        free.flat_map(|area| {
            let slots = area.slots.iter().enumerate();
            slots.map(|(at, slot)| (area.address(at, self.huge_page), *slot))
        })
        .filter(|(_, slot)| !slot.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_tell_what_huge_pages_would_add() {
        let slot = |huge, present, zero| Slot {
            huge,
            present,
            zero,
            swapped: 0,
        };
        let area = |obstacle, slots: Vec<Slot>| Area {
            start: 0x20_1000,
            end: 0x20_1000 + (slots.len() as u64 + 1) * 0x20_0000,
            region: RegionKind::Anonymous,
            path: "//anon".into(),
            advised: false,
            obstacle,
            first_slot: 0x40_0000,
            slots,
        };
        let map = HugeMap {
            huge_page: Bytes(2 << 20),
            base_page: Bytes(4096),
            areas: vec![
                area(
                    None,
                    vec![slot(true, 512, 0), slot(false, 500, 12), slot(false, 0, 0)],
                ),
                area(Some(Obstacle::Locked), vec![slot(false, 512, 0)]),
            ],
        };
        let sum = map.summary();
        assert_eq!((sum.huge, sum.small, sum.empty, sum.blocked), (1, 1, 1, 1));
        assert_eq!(sum.growth, Bytes(12 * 4096));
        assert_eq!(sum.huge_share(), Some(0.5));
        assert_eq!(map.areas[0].outside_slots(map.huge_page), Bytes(2 << 20));
        let addresses: Vec<u64> = map.changeable().map(|(address, _)| address).collect();
        assert_eq!(addresses, [0x40_0000, 0x60_0000]);
    }
}
