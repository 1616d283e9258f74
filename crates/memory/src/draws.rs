//! Blocks drawn by bytes: of all bytes, every so many-th draws the block that contains it.
//!
//! A block of a kilobyte is drawn as often as a thousand of a byte, so that the draws divide the bytes
//! as all blocks do, however many there are. The distance between draws triples when there are too
//! many; two thirds of them then go. It is odd and starts at a prime, so that no pattern of sizes, which
//! are multiples of 8, keeps step with it.

/// A block that was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Where the block starts.
    pub block: u64,
    /// Its size.
    pub size: u64,
    /// The byte that drew it.
    pub at: u64,
    /// Bytes of which each would have drawn it: its own, or those of the free space that it pins.
    pub of: u64,
}

/// The first distance, and the most draws that are kept.
const FIRST: u64 = 251;
const MOST: usize = 12_288;

/// Draws over bytes that are counted one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    distance: u64,
    /// Number of the byte that draws next. Kept, because a division for each block costs more than all else.
    next: u64,
    /// Bytes so far, and at the last mark.
    counted: u64,
    mark: u64,
    /// Draws, with the number of the byte.
    drawn: Vec<(u64, Draw)>,
}

impl Default for Draws {
    fn default() -> Self {
        Self {
            distance: FIRST,
            next: 0,
            counted: 0,
            mark: 0,
            drawn: Vec::new(),
        }
    }
}

impl Draws {
    /// Marks the place to which [`Self::undo`] returns.
    pub fn mark(&mut self) {
        self.mark = self.counted;
    }

    /// Forgets what was counted since the mark.
    pub fn undo(&mut self) {
        self.counted = self.mark;
        let mark = self.mark;
        self.drawn.retain(|(number, _)| *number < mark);
        self.next = self.counted.next_multiple_of(self.distance);
    }

    /// Counts `bytes`; `draw` says which block the byte of this number is in.
    pub fn count(&mut self, bytes: u64, draw: impl Fn(u64) -> Draw) {
        let end = self.counted.saturating_add(bytes);
        while self.next < end {
            let number = self.next;
            self.drawn.push((number, draw(number - self.counted)));
            if self.drawn.len() > MOST {
                self.thin();
            }
            self.next = (number + 1).next_multiple_of(self.distance);
        }
        self.counted = end;
    }

    fn thin(&mut self) {
        self.distance *= 3;
        let distance = self.distance;
        self.drawn
            .retain(|(number, _)| number.is_multiple_of(distance));
    }

    /// The draws.
    pub fn into_draws(self) -> Vec<Draw> {
        self.drawn.into_iter().map(|(_, draw)| draw).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts blocks of these sizes again and again, one call each.
    fn drawn(sizes: &[u64], times: usize) -> (Draws, u64) {
        let mut draws = Draws::default();
        let mut block = 0;
        for &size in sizes.iter().cycle().take(sizes.len() * times) {
            draws.count(size, |offset| Draw {
                block,
                size,
                at: block + offset,
                of: size,
            });
            block += size;
        }
        (draws, block)
    }

    #[test]
    fn draws_divide_bytes_as_blocks_do_even_in_a_pattern() {
        for sizes in [[48, 144, 192], [32, 32, 64], [4096, 16, 96]] {
            let (draws, _) = drawn(&sizes, 200_000);
            let drawn = draws.into_draws();
            assert!((MOST / 3..=MOST).contains(&drawn.len()));
            for size in sizes {
                let bytes: u64 = sizes.iter().filter(|one| **one == size).sum();
                let expected = bytes as f64 / sizes.iter().sum::<u64>() as f64;
                let found = drawn.iter().filter(|draw| draw.size == size).count();
                let share = found as f64 / drawn.len() as f64;
                assert!((share - expected).abs() < 0.01, "{sizes:?} {size} {share}");
            }
            assert!(drawn.iter().all(|draw| draw.at - draw.block < draw.size));
        }
    }

    #[test]
    fn what_is_undone_leaves_the_draws_as_they_were() {
        let (mut draws, end) = drawn(&[64, 256], 1000);
        let before = draws.clone().into_draws();
        draws.mark();
        let one = |at| Draw {
            block: end,
            size: 1 << 30,
            at,
            of: 1 << 30,
        };
        draws.count(50_000, one);
        draws.undo();
        assert_eq!(draws.into_draws(), before);
    }
}
