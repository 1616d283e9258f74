//! Who holds memory: blocks in use, drawn by bytes and grouped by what they are.

use super::ByteRange;
use crate::allocator::AllocatorKind;
use crate::units::Estimate;
use serde::{Deserialize, Serialize};

/// Blocks in use of one type, or of about one size where no type can be seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockGroup {
    /// Their allocator.
    pub allocator: AllocatorKind,
    /// Class (C++) or type (Python) of the object at their start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The smallest and the largest block that was drawn, with their headers.
    pub size: ByteRange,
    /// Resident bytes of the blocks; of blocks that pin pages, the free bytes on these pages.
    pub bytes: Estimate,
    /// Number of blocks; of those that pin pages, the number of these pages. An estimate like the bytes.
    pub count: f64,
}

impl BlockGroup {
    /// Whether the other group holds the same, perhaps in another process or at another time.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let class = |group: &Self| match group.object {
            Some(_) => None,
            None => Some(size_class(group.size.high.0)),
        };
        (self.allocator, &self.object, class(self))
            == (other.allocator, &other.object, class(other))
    }

    /// The group in a few words: its type, or the size of its blocks.
    #[must_use]
    pub fn name(&self) -> String {
        let (low, high) = (self.size.low, self.size.high);
        let size = match low == high {
            true => low.to_string(),
            false => format!("{low} to {high}"),
        };
        match &self.object {
            Some(object) => object.clone(),
            None => format!("blocks of {size} ({})", self.allocator.name()),
        }
    }

    /// The same blocks, of which this part counts.
    #[must_use]
    pub fn scaled(&self, part: f64) -> Self {
        let Estimate { value, low, high } = self.bytes;
        Self {
            bytes: Estimate {
                value: value * part,
                low: low * part,
                high: high * part,
            },
            count: self.count * part,
            ..self.clone()
        }
    }

    /// Adds what another process holds of the same.
    pub fn add(&mut self, other: &Self) {
        self.size.low = self.size.low.min(other.size.low);
        self.size.high = self.size.high.max(other.size.high);
        self.bytes = self.bytes.plus(other.bytes);
        self.count += other.count;
    }
}

/// The largest size of the class to which a size belongs: multiples of 16 up to 128, then four steps
/// for each doubling.
#[must_use]
pub fn size_class(size: u64) -> u64 {
    match size {
        0..=128 => size.next_multiple_of(16),
        _ => {
            let step = (size - 1).ilog2() - 2;
            let steps = ((size - 1) >> step) + 1;
            steps.saturating_mul(1 << step)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::size_class;

    #[test]
    fn a_class_reaches_from_the_size_after_the_one_before() {
        let sizes = [1, 16, 17, 128, 129, 160, 161, 256, 257, 4096, 4097];
        let classes = sizes.map(size_class);
        let expected = [16, 16, 32, 128, 160, 160, 192, 256, 320, 4096, 5120];
        assert_eq!(classes, expected);
        assert_eq!(size_class(u64::MAX), u64::MAX);
    }
}
