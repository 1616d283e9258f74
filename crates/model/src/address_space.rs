//! The mappings of one process, as recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A file as the kernel numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Major and minor number of the device that holds it.
    pub device: (u32, u32),
    /// Its number there.
    pub inode: u64,
}

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address past it.
    pub end: u64,
    /// File offset of the first byte.
    pub file_offset: u64,
    /// `PROT_*` bits, 0 where unknown.
    pub protection: u32,
    /// `MAP_*` bits, 0 where unknown.
    pub flags: u32,
    /// Path or pseudo path as the kernel names it (`//anon`, `[heap]`, `/usr/lib/…`).
    pub path: Box<str>,
    /// Build id of the file, where known.
    pub build_id: Option<Box<[u8]>>,
    /// Device and inode of the file, where known.
    pub file: Option<FileId>,
}

impl Mapping {
    /// Whether it may be executed.
    #[must_use]
    pub fn is_code(&self) -> bool {
        const PROT_EXEC: u32 = 4;
        self.protection & PROT_EXEC != 0
    }
}

/// Mappings that never overlap: a new one cuts away what it covers, as `mmap(2)` does. Copies share
/// them until one changes, since most forked processes end before they map anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSpace {
    by_start: Arc<BTreeMap<u64, Mapping>>,
}

impl AddressSpace {
    /// Adds a mapping over whatever was there. An empty one is ignored.
    pub fn map(&mut self, mapping: Mapping) {
        if mapping.start < mapping.end {
            self.unmap(mapping.start, mapping.end);
            Arc::make_mut(&mut self.by_start).insert(mapping.start, mapping);
        }
    }

    /// Removes `start..end`, splitting mappings at its edges. Returns what was removed.
    pub fn unmap(&mut self, start: u64, end: u64) -> Vec<Mapping> {
        let touched: Vec<u64> = self
            .by_start
            .range(..end)
            .rev()
            .take_while(|(_, mapping)| mapping.end > start)
            .map(|(&key, _)| key)
            .collect();
        let mut removed = Vec::new();
        if touched.is_empty() {
            return removed;
        }
        let by_start = Arc::make_mut(&mut self.by_start);
        for key in touched {
            let Some(whole) = by_start.remove(&key) else {
                continue;
            };
            if whole.start < start {
                by_start.insert(whole.start, whole.part(whole.start, start));
            }
            if whole.end > end {
                by_start.insert(end, whole.part(end, whole.end));
            }
            removed.push(whole.part(whole.start.max(start), whole.end.min(end)));
        }
        removed.reverse();
        removed
    }

    /// The mapping that contains `address`.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let (_, mapping) = self.by_start.range(..=address).next_back()?;
        (address < mapping.end).then_some(mapping)
    }

    /// All mappings by address.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.by_start.values()
    }
}

impl Mapping {
    /// The part of this mapping from `start` to `end`, its file offset moved along.
    fn part(&self, start: u64, end: u64) -> Self {
        Self {
            start,
            end,
            file_offset: self.file_offset + (start - self.start),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64) -> Mapping {
        Mapping {
            start,
            end,
            file_offset: 0x100,
            protection: 3,
            flags: 2,
            path: "/lib/x.so".into(),
            build_id: None,
            file: None,
        }
    }

    #[test]
    fn a_mapping_cuts_a_hole_into_an_older_one() {
        let mut space = AddressSpace::default();
        space.map(mapping(0x1000, 0x9000));
        space.map(mapping(0x3000, 0x5000));
        let parts: Vec<_> = space
            .iter()
            .map(|m| (m.start, m.end, m.file_offset))
            .collect();
        assert_eq!(
            parts,
            [
                (0x1000, 0x3000, 0x100),
                (0x3000, 0x5000, 0x100),
                (0x5000, 0x9000, 0x4100)
            ]
        );
    }

    #[test]
    fn unmapping_returns_exactly_what_was_there() {
        let mut space = AddressSpace::default();
        space.map(mapping(0x1000, 0x2000));
        space.map(mapping(0x4000, 0x6000));
        let removed: Vec<_> = space
            .unmap(0x1800, 0x5000)
            .iter()
            .map(|m| (m.start, m.end))
            .collect();
        assert_eq!(removed, [(0x1800, 0x2000), (0x4000, 0x5000)]);
        assert!(space.find(0x1800).is_none());
        assert_eq!(space.find(0x5000).map(|m| m.start), Some(0x5000));
    }
}
