//! A column of numbers that are often all equal, such as the periods of samples at a fixed rate.

use std::ops::Index;

/// Numbers by index. As long as all are equal, they take the room of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column<T>(Numbers<T>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Numbers<T> {
    None,
    /// One, and how many times.
    Equal(T, usize),
    Each(Vec<T>),
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self(Numbers::None)
    }
}

impl<T: Copy + PartialEq> Column<T> {
    /// Adds a number at the end.
    pub fn push(&mut self, number: T) {
        match &mut self.0 {
            Numbers::None => self.0 = Numbers::Equal(number, 1),
            Numbers::Equal(known, count) if *known == number => *count += 1,
            Numbers::Equal(known, count) => {
                let mut each = vec![*known; *count];
                each.push(number);
                self.0 = Numbers::Each(each);
            }
            Numbers::Each(each) => each.push(number),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Numbers::None => 0,
            Numbers::Equal(_, count) => *count,
            Numbers::Each(each) => each.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number that all are equal to.
    #[must_use]
    pub fn common(&self) -> Option<T> {
        match &self.0 {
            Numbers::Equal(number, _) => Some(*number),
            Numbers::None | Numbers::Each(_) => None,
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len()).map(|at| self[at])
    }
}

impl<T> Index<usize> for Column<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        match &self.0 {
            Numbers::Each(each) => &each[at],
            Numbers::Equal(number, count) if at < *count => number,
            _ => panic!("number {at} of a shorter column"),
        }
    }
}

impl<T: Copy + PartialEq, const N: usize> PartialEq<[T; N]> for Column<T> {
    fn eq(&self, others: &[T; N]) -> bool {
        self.iter().eq(others.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_all_there_before_and_after_another_one() {
        let mut column = Column::default();
        assert_eq!((column.len(), column.common()), (0, None));
        for number in [7, 7, 7] {
            column.push(number);
        }
        assert_eq!(column, [7, 7, 7]);
        assert_eq!(column.common(), Some(7));
        column.push(8);
        column.push(7);
        assert_eq!(column, [7, 7, 7, 8, 7]);
        assert_eq!((column[2], column[3], column.len()), (7, 8, 5));
        assert_eq!(column.common(), None);
    }

    #[test]
    #[should_panic(expected = "number 2 of a shorter column")]
    fn what_is_beyond_the_end_is_not_there() {
        let mut column = Column::default();
        column.push(1);
        column.push(1);
        assert_eq!(column[2], 1);
    }
}
