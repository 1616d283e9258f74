//! A column of numbers in little memory: those of millions of samples.
//!
//! Numbers are kept in blocks, each as its least number and the differences from it, with as many
//! bits as the largest of them needs: equal numbers need none, and times of samples a few
//! microseconds apart three bytes in place of eight.

use std::marker::PhantomData;

/// Numbers in a block; a multiple of 64, so that a block has whole words.
const BLOCK: usize = 512;

/// A number in a [`Column`].
pub trait Number: Copy + PartialEq {
    /// As 64 bits.
    fn wide(self) -> u64;

    /// The number that [`Number::wide`] gave.
    fn narrow(wide: u64) -> Self;
}

impl Number for u64 {
    fn wide(self) -> u64 {
        self
    }

    fn narrow(wide: u64) -> Self {
        wide
    }
}

macro_rules! narrow_number {
    ($($kind:ty),*) => {$(
        impl Number for $kind {
            #[inline]
            fn wide(self) -> u64 {
                self.into()
            }

            #[allow(clippy::cast_possible_truncation, reason = "a column gives what it was given")]
            #[inline]
            fn narrow(wide: u64) -> Self {
                wide as $kind
            }
        }
    )*};
}

narrow_number!(u8, u16, u32);

/// Numbers by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column<T> {
    blocks: Vec<Block>,
    /// The numbers behind the last block.
    open: Vec<u64>,
    of: PhantomData<T>,
}

/// [`BLOCK`] numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    least: u64,
    /// Differences from the least number, `bits` bits each, lowest first.
    words: Box<[u64]>,
    bits: u8,
}

impl Block {
    fn new(numbers: &[u64]) -> Self {
        let least = numbers.iter().copied().min().unwrap_or(0);
        let most = numbers.iter().copied().max().unwrap_or(0);
        let bits = u64::BITS - (most - least).leading_zeros();
        let mut words = Vec::with_capacity(BLOCK / 64 * bits as usize);
        let (mut word, mut filled) = (0, 0);
        if bits > 0 {
            for number in numbers {
                let number = number - least;
                word |= number << filled;
                filled += bits;
                if filled >= u64::BITS {
                    words.push(word);
                    filled -= u64::BITS;
                    // The part that did not fit; all of it did if nothing is left over.
                    word = number.checked_shr(bits - filled).unwrap_or(0);
                }
            }
        }
        Self {
            least,
            words: words.into(),
            bits: bits.to_le_bytes()[0],
        }
    }

    #[inline]
    fn at(&self, at: usize) -> u64 {
        if self.bits == 0 {
            return self.least;
        }
        let bits = usize::from(self.bits);
        let (word, from) = (at * bits / 64, at * bits % 64);
        let mut number = self.words[word] >> from;
        if from + bits > 64 {
            number |= self.words[word + 1] << (64 - from);
        }
        self.least + (number & (u64::MAX >> (64 - bits)))
    }

    /// Puts all numbers behind those of `numbers`.
    fn unpack(&self, numbers: &mut Vec<u64>) {
        if self.bits == 0 {
            numbers.resize(numbers.len() + BLOCK, self.least);
            return;
        }
        let bits = u32::from(self.bits);
        let mask = u64::MAX >> (u64::BITS - bits);
        // The bits that no number has taken yet, and how many.
        let (mut word, mut left) = (0_u64, 0);
        let mut words = self.words.iter();
        numbers.extend((0..BLOCK).map(|_| {
            let mut number = word;
            if left < bits {
                let next = words.next().copied().unwrap_or(0);
                number |= next << left;
                word = next.checked_shr(bits - left).unwrap_or(0);
                left += u64::BITS - bits;
            } else {
                word >>= bits;
                left -= bits;
            }
            self.least + (number & mask)
        }));
    }
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            open: Vec::new(),
            of: PhantomData,
        }
    }
}

impl<T: Number> Column<T> {
    /// Adds a number at the end.
    #[inline]
    pub fn push(&mut self, number: T) {
        self.open.push(number.wide());
        if self.open.len() == BLOCK {
            self.close();
        }
    }

    #[cold]
    fn close(&mut self) {
        self.blocks.push(Block::new(&self.open));
        self.open.clear();
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.open.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.open.is_empty()
    }

    /// The number at this index. [`Column::iter`] is faster for all of them.
    ///
    /// # Panics
    /// If there are not as many.
    #[inline]
    #[must_use]
    pub fn at(&self, at: usize) -> T {
        T::narrow(match self.blocks.get(at / BLOCK) {
            Some(block) => block.at(at % BLOCK),
            None => self.open[at - self.blocks.len() * BLOCK],
        })
    }

    /// The first one.
    #[must_use]
    pub fn first(&self) -> Option<T> {
        (!self.is_empty()).then(|| self.at(0))
    }

    /// The last one.
    #[must_use]
    pub fn last(&self) -> Option<T> {
        let last = self.len().checked_sub(1)?;
        Some(self.at(last))
    }

    /// The number that all are equal to.
    #[must_use]
    pub fn common(&self) -> Option<T> {
        let first = self.first()?;
        let wide = first.wide();
        let equal = |block: &Block| block.bits == 0 && block.least == wide;
        let all = self.blocks.iter().all(equal) && self.open.iter().all(|&open| open == wide);
        all.then_some(first)
    }

    /// All of them.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, T> {
        Iter {
            column: self,
            block: 0,
            unpacked: Vec::with_capacity(BLOCK),
            at: 0,
        }
    }

    /// Replaces each number.
    pub fn map(&mut self, mut into: impl FnMut(T) -> T) {
        let mut unpacked = Vec::with_capacity(BLOCK);
        for block in &mut self.blocks {
            unpacked.clear();
            block.unpack(&mut unpacked);
            for number in &mut unpacked {
                *number = into(T::narrow(*number)).wide();
            }
            *block = Block::new(&unpacked);
        }
        for number in &mut self.open {
            *number = into(T::narrow(*number)).wide();
        }
    }
}

/// The numbers of a [`Column`], in order.
#[derive(Clone, Debug)]
pub struct Iter<'a, T> {
    column: &'a Column<T>,
    /// The next block to unpack.
    block: usize,
    unpacked: Vec<u64>,
    at: usize,
}

impl<T: Number> Iter<'_, T> {
    /// Unpacks the next block; returns whether there was one.
    #[cold]
    fn refill(&mut self) -> bool {
        self.unpacked.clear();
        self.at = 0;
        match self.column.blocks.get(self.block) {
            Some(block) => block.unpack(&mut self.unpacked),
            None if self.block == self.column.blocks.len() => {
                self.unpacked.extend_from_slice(&self.column.open);
            }
            None => return false,
        }
        self.block += 1;
        !self.unpacked.is_empty()
    }
}

impl<T: Number> Iterator for Iter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.at == self.unpacked.len() && !self.refill() {
            return None;
        }
        let number = self.unpacked[self.at];
        self.at += 1;
        Some(T::narrow(number))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let packed = (self.column.len()).saturating_sub(self.block * BLOCK);
        let left = packed + self.unpacked.len() - self.at;
        (left, Some(left))
    }
}

impl<T: Number> FromIterator<T> for Column<T> {
    fn from_iter<I: IntoIterator<Item = T>>(numbers: I) -> Self {
        let mut column = Self::default();
        numbers.into_iter().for_each(|number| column.push(number));
        column
    }
}

impl<T: Number, const N: usize> PartialEq<[T; N]> for Column<T> {
    fn eq(&self, others: &[T; N]) -> bool {
        self.iter().eq(others.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_all_there_before_and_after_another_one() {
        for equal in [3, BLOCK, 2 * BLOCK + 1] {
            let mut column = Column::<u64>::default();
            assert_eq!((column.len(), column.common()), (0, None));
            for _ in 0..equal {
                column.push(7);
            }
            assert_eq!((column.len(), column.common()), (equal, Some(7)));
            column.push(8);
            column.push(7);
            let numbers: Vec<u64> = column.iter().collect();
            assert_eq!(numbers, [vec![7; equal], vec![8, 7]].concat());
            assert_eq!((column.at(equal), column.at(equal + 1)), (8, 7));
            assert_eq!((column.len(), column.common()), (equal + 2, None));
        }
    }

    #[test]
    fn numbers_of_every_width_come_back() {
        let mut random = 7_u64;
        for bits in 0..=64_u32 {
            let mut numbers = Vec::new();
            for _ in 0..BLOCK + 3 {
                random = random.wrapping_mul(6_364_136_223_846_793_005);
                random = random.wrapping_add(1_442_695_040_888_963_407);
                numbers.push(random.checked_shr(64 - bits).unwrap_or(0));
            }
            // Both ends of the range.
            (numbers[1], numbers[2]) = (0, u64::MAX.checked_shr(64 - bits).unwrap_or(0));
            let mut column: Column<u64> = numbers.iter().copied().collect();
            assert!(column.iter().eq(numbers.iter().copied()), "{bits} bits");
            assert_eq!(column.iter().size_hint().0, numbers.len());
            for (at, &number) in numbers.iter().enumerate() {
                assert_eq!(column.at(at), number, "{bits} bits");
            }
            assert_eq!(column.last(), numbers.last().copied());
            column.map(|number| number / 2);
            let halves = numbers.iter().map(|number| number / 2);
            assert!(column.iter().eq(halves), "{bits} bits");
        }
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn what_is_beyond_the_end_is_not_there() {
        let mut column = Column::<u64>::default();
        column.push(1);
        column.push(1);
        assert_eq!(column.at(2), 1);
    }
}
