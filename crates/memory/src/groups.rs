//! Who holds memory: blocks that were drawn, by what they are.

use crate::draws::Draw;
use crate::extents::Extent;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{BlockGroup, ByteRange, HeapFacts, size_class};
use pagewise_model::units::{Bytes, Estimate};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A block that was drawn, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnBlock {
    /// The block.
    pub draw: Draw,
    /// Its class or type, if that could be seen.
    pub object: Option<Arc<str>>,
}

/// Smallest part of the draws that makes a group (1 in so many).
const SMALLEST: usize = 1000;
/// Standard deviations on either side of an interval of 95 %.
const DEVIATIONS: f64 = 1.96;

/// Finds the allocator of a block.
pub struct Owners<'a> {
    extents: &'a [Extent],
    /// Starts of extents, with the allocator of the heap that they belong to.
    starts: BTreeMap<u64, AllocatorKind>,
}

impl<'a> Owners<'a> {
    /// The owners of these extents, which are in order of address.
    #[must_use]
    pub fn new(heaps: &[HeapFacts], extents: &'a [Extent]) -> Self {
        let starts = heaps.iter().flat_map(|facts| {
            let starts = facts.extents.iter();
            starts.map(|start| (*start, facts.heap.allocator))
        });
        Self {
            extents,
            starts: starts.collect(),
        }
    }

    /// The allocator that has the block at `address`.
    #[must_use]
    pub fn owner(&self, address: u64) -> Option<AllocatorKind> {
        let behind = self
            .extents
            .partition_point(|extent| extent.start <= address);
        let extent = self.extents.get(behind.checked_sub(1)?)?;
        let allocator = self.starts.get(&extent.start)?;
        (address < extent.end).then_some(*allocator)
    }
}

#[derive(Default)]
struct Group {
    draws: usize,
    low: u64,
    high: u64,
    /// Sum over the draws of the inverse of the bytes that would have drawn the same block.
    inverse: f64,
}

/// Groups of these blocks, of which all together stand for `total` bytes; the largest first.
#[must_use]
pub fn groups(
    drawn: &[DrawnBlock],
    owner: impl Fn(u64) -> Option<AllocatorKind>,
    total: u64,
) -> Vec<BlockGroup> {
    let mut sums: BTreeMap<(AllocatorKind, Option<Arc<str>>, u64), Group> = BTreeMap::new();
    let mut draws = 0;
    for one in drawn {
        let Some(allocator) = owner(one.draw.block) else {
            continue;
        };
        let class = match one.object {
            Some(_) => 0,
            None => size_class(one.draw.size),
        };
        draws += 1;
        let group = sums.entry((allocator, one.object.clone(), class));
        group.or_default().add(&one.draw);
    }
    let all = Sample {
        draws,
        total: total as f64,
    };
    let mut found: Vec<BlockGroup> = sums
        .into_iter()
        .filter(|(_, group)| group.draws * SMALLEST >= draws)
        .map(|((allocator, object, _), group)| BlockGroup {
            allocator,
            object: object.map(|name| name.to_string()),
            size: ByteRange {
                low: Bytes(group.low),
                high: Bytes(group.high),
            },
            bytes: all.bytes(group.draws),
            count: all.per_draw() * group.inverse,
        })
        .collect();
    found.sort_by(|one, other| other.bytes.value.total_cmp(&one.bytes.value));
    found
}

impl Group {
    fn add(&mut self, draw: &Draw) {
        self.low = match self.draws {
            0 => draw.size,
            _ => self.low.min(draw.size),
        };
        self.high = self.high.max(draw.size);
        self.draws += 1;
        self.inverse += 1.0 / draw.of.max(1) as f64;
    }
}

/// Draws, and the bytes that they stand for.
struct Sample {
    draws: usize,
    total: f64,
}

impl Sample {
    fn per_draw(&self) -> f64 {
        self.total / self.draws.max(1) as f64
    }

    /// The bytes behind so many draws (Wilson's interval).
    fn bytes(&self, draws: usize) -> Estimate {
        let all = self.draws.max(1) as f64;
        let (share, square) = (draws as f64 / all, DEVIATIONS * DEVIATIONS);
        let centre = share + square / (2.0 * all);
        let spread = DEVIATIONS * (share * (1.0 - share) / all + square / (4.0 * all * all)).sqrt();
        let scale = self.total / (1.0 + square / all);
        Estimate {
            value: share * self.total,
            low: ((centre - spread) * scale).max(0.0),
            high: ((centre + spread) * scale).min(self.total),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extents::ExtentSums;
    use pagewise_model::memory::{Heap, HeapCheck, HeapPart, Returns};

    fn heap(allocator: AllocatorKind, start: u64) -> HeapFacts {
        HeapFacts {
            heap: Heap {
                count: 1,
                ..Heap::new(allocator, HeapPart::Arenas, HeapCheck::Filled)
            },
            extents: vec![start],
            returns: Returns::Nothing,
        }
    }

    #[test]
    fn blocks_are_grouped_by_type_and_without_one_by_size() {
        let extent = |start| Extent {
            start,
            end: start + 0x1000,
            sums: ExtentSums::default(),
        };
        let heaps = [
            heap(AllocatorKind::Glibc, 0x1000),
            heap(AllocatorKind::Cpython, 0x3000),
        ];
        let extents = [extent(0x1000), extent(0x3000)];
        let owners = Owners::new(&heaps, &extents);
        let block = |block, size, object: Option<&str>| DrawnBlock {
            draw: Draw {
                block,
                size,
                at: block,
                of: size,
            },
            object: object.map(Arc::from),
        };
        let drawn: Vec<DrawnBlock> = [
            block(0x1000, 140, None),
            block(0x1100, 160, None),
            block(0x3000, 64, Some("dict")),
            block(0x3100, 512, Some("dict")),
            // Of a heap that was dropped.
            block(0x2800, 64, None),
        ]
        .into_iter()
        .cycle()
        .take(500)
        .collect();
        let found = groups(&drawn, |block| owners.owner(block), 4000);
        assert_eq!(found.len(), 2);
        let dict = found.iter().find(|group| group.object.is_some()).unwrap();
        assert_eq!(dict.allocator, AllocatorKind::Cpython);
        assert_eq!(
            (dict.size.low, dict.size.high, dict.bytes.value),
            (Bytes(64), Bytes(512), 2000.0)
        );
        // A thousand bytes in blocks of 64, and as many in blocks of 512.
        assert!((dict.count - (1000.0 / 64.0 + 1000.0 / 512.0)).abs() < 1e-9);
        assert!(dict.bytes.low > 1700.0 && dict.bytes.low < 2000.0);
        assert!(dict.bytes.high > 2000.0 && dict.bytes.high < 2300.0);
    }
}
