//! The block at an address, found in a table of places instead of a search through all blocks.

/// Bytes of a place: few blocks start in one, and the table takes a part of 1 in 256 of the heap.
const PLACE: u64 = 1 << 10;
/// Largest gap between blocks that the table covers.
const GAP: u64 = 64 << 10;

/// Ranges that follow each other closely.
#[derive(Clone, Copy, Debug)]
struct Area {
    /// Start of its first place, and end of its last range.
    start: u64,
    end: u64,
    /// Its first place in the table.
    first: usize,
}

/// A table over ranges that are sorted and do not overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    areas: Vec<Area>,
    /// For each place, the number of the first range that ends behind its start; one more at the end of
    /// each area.
    table: Vec<u32>,
}

impl Places {
    /// The table of these ranges.
    pub fn new(ranges: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut places = Self::default();
        let mut number = 0;
        for (start, end) in ranges {
            let last = places.areas.last();
            if last.is_none_or(|area| start.saturating_sub(area.end) > GAP) {
                places.close(number);
                places.areas.push(Area {
                    start: start / PLACE * PLACE,
                    end: start,
                    first: places.table.len(),
                });
            }
            places.extend(end, number);
            number += 1;
        }
        places.close(number);
        places
    }

    /// The last area goes on to `end` with range `number`.
    fn extend(&mut self, end: u64, number: u32) {
        let Some(area) = self.areas.last_mut() else {
            return;
        };
        area.end = area.end.max(end);
        let until = area.end.div_ceil(PLACE) - area.start / PLACE;
        let length = area.first + usize::try_from(until).unwrap_or(usize::MAX);
        if self.table.len() < length {
            self.table.resize(length, number);
        }
    }

    /// The last area is complete before range `number`.
    fn close(&mut self, number: u32) {
        if !self.areas.is_empty() {
            self.table.push(number);
        }
    }

    /// The numbers of the ranges, one or more, that may contain `address`.
    pub fn at(&self, address: u64) -> Option<std::ops::RangeInclusive<usize>> {
        let behind = self.areas.partition_point(|area| area.start <= address);
        let area = self.areas.get(behind.checked_sub(1)?)?;
        if address >= area.end {
            return None;
        }
        let place = area.first + usize::try_from((address - area.start) / PLACE).ok()?;
        let number = |place| Some(*self.table.get(place)? as usize);
        Some(number(place)?..=number(place + 1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ranges: &[(u64, u64)], places: &Places, address: u64) -> Option<usize> {
        places.at(address)?.find(|number| {
            let range = ranges.get(*number);
            range.is_some_and(|range| (range.0..range.1).contains(&address))
        })
    }

    #[test]
    fn every_address_leads_to_its_range_and_others_to_none() {
        let small =
            (0..3000).map(|one| (0x5555_0008 + one * 0x30, 0x5555_0008 + one * 0x30 + 0x20));
        let large = [
            (0x5558_0400, 0x5568_0400),
            (0x5568_0400, 0x5568_0401),
            (0x7000_0000_0000, 0x7000_0000_1000),
            (0x7000_0000_5000, 0x7000_0010_0000),
            (0x7ff0_0000_0000, 0x7ff0_0000_0010),
        ];
        let ranges: Vec<(u64, u64)> = small.chain(large).collect();
        let places = Places::new(ranges.iter().copied());
        for (number, range) in ranges.iter().enumerate() {
            let middle = range.0.midpoint(range.1);
            for address in [range.0, middle, range.1 - 1] {
                assert_eq!(
                    found(&ranges, &places, address),
                    Some(number),
                    "{address:x}"
                );
            }
        }
        for address in [
            0,
            0x5555_0000,
            0x5555_0028,
            0x6000_0000,
            0x7000_0000_3000,
            u64::MAX,
        ] {
            assert_eq!(found(&ranges, &places, address), None, "{address:x}");
        }
        assert!(places.table.len() < 4000);
    }

    #[test]
    fn no_ranges_contain_nothing() {
        assert_eq!(Places::new(std::iter::empty()).at(0x1000), None);
    }
}
