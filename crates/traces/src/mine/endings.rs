//! Items that can end a pattern: whether one follows a place in a sequence is known from where it
//! occurs last.

use super::database::{Database, Item};
use super::step::{Place, Step};
use rustc_hash::FxHashSet;

/// The last places of the items that are frequent, which alone can end a frequent pattern.
pub(super) enum Endings<'a> {
    /// Every item of every sequence.
    Table(Table),
    /// What occurs in each sequence, where a table would take too much memory.
    Lists(Lists<'a>),
}

/// Most cells of a table: 64 MiB.
const MOST_CELLS: usize = 16 << 20;

impl<'a> Endings<'a> {
    /// `first` are the frequent items, in their order.
    pub fn new(database: &'a Database, first: &[Step]) -> Self {
        let cells = database.distinct().saturating_mul(first.len());
        match u32::try_from(database.len()) {
            Ok(_) if cells <= MOST_CELLS => Self::Table(Table::new(database, first)),
            _ => Self::Lists(Lists::new(database)),
        }
    }

    /// The frequent items of the rests in item order, without the places after them.
    pub fn supports(
        &mut self,
        places: &[Place],
        min_support: u64,
        mut steps: Vec<Step>,
    ) -> Vec<Step> {
        let note = |item: Item, support: u64| {
            if support >= min_support.max(1) {
                steps.push(Step {
                    item,
                    support,
                    places: Vec::new(),
                });
            }
        };
        match self {
            Self::Table(table) => table.supports(places, note),
            Self::Lists(lists) => lists.supports(places, note),
        }
        steps
    }
}

/// A row for each sequence and a column for each frequent item.
pub(super) struct Table {
    items: Vec<Item>,
    /// The place behind an item's last occurrence, 0 where there is none.
    ends: Vec<u32>,
    /// Cells of a row: the items, and some more that stay 0.
    width: usize,
    weights: Vec<u32>,
    sums: Vec<u32>,
}

/// Cells that a processor compares at once, at most.
const LANES: usize = 8;

impl Table {
    /// The sum of all counts fits into 32 bits.
    fn new(database: &Database, first: &[Step]) -> Self {
        let items: Vec<Item> = first.iter().map(|step| step.item).collect();
        let width = items.len().next_multiple_of(LANES);
        let mut column = vec![None; database.kinds()];
        for (at, &item) in items.iter().enumerate() {
            column[item as usize] = Some(at);
        }
        let mut ends = vec![0; width * database.distinct()];
        let rows = ends.chunks_exact_mut(width.max(1));
        for (row, (sequence, _)) in rows.zip(database.sequences()) {
            for (end, &item) in (1..).zip(sequence) {
                if let Some(at) = column[item as usize] {
                    row[at] = end;
                }
            }
        }
        let weight = |(_, weight)| u32::try_from(weight).unwrap_or(u32::MAX);
        Self {
            items,
            ends,
            width,
            weights: database.sequences().map(weight).collect(),
            sums: vec![0; width],
        }
    }

    fn supports(&mut self, places: &[Place], mut note: impl FnMut(Item, u64)) {
        self.sums.fill(0);
        for place in places {
            let at = place.sequence as usize;
            let row = &self.ends[at * self.width..][..self.width];
            let weight = self.weights[at];
            for (sum, &end) in self.sums.iter_mut().zip(row) {
                *sum += if end > place.rest { weight } else { 0 };
            }
        }
        for (&item, &sum) in self.items.iter().zip(&self.sums) {
            note(item, u64::from(sum));
        }
    }
}

/// For each sequence its distinct items with the last position of each, in descending order.
pub(super) struct Lists<'a> {
    database: &'a Database,
    lasts: Vec<Vec<(u32, Item)>>,
    /// Sums by item, reused.
    support: Vec<u64>,
    met: Vec<Item>,
}

impl<'a> Lists<'a> {
    fn new(database: &'a Database) -> Self {
        Self {
            database,
            lasts: database.sequences().map(|(s, _)| lasts(s)).collect(),
            support: vec![0; database.kinds()],
            met: Vec::new(),
        }
    }

    fn supports(&mut self, places: &[Place], mut note: impl FnMut(Item, u64)) {
        for place in places {
            let weight = self.database.weight(place.sequence);
            for &(last, item) in &self.lasts[place.sequence as usize] {
                if last < place.rest {
                    break;
                }
                let support = &mut self.support[item as usize];
                if *support == 0 {
                    self.met.push(item);
                }
                *support += weight;
            }
        }
        // Sorting many takes longer than looking at all.
        let kinds = self.support.len();
        if self.met.len() > kinds / 16 {
            for (item, support) in (0..).zip(&mut self.support) {
                note(item, std::mem::take(support));
            }
        } else {
            self.met.sort_unstable();
            for &item in &self.met {
                note(item, std::mem::take(&mut self.support[item as usize]));
            }
        }
        self.met.clear();
    }
}

/// The distinct items of a sequence with the last position of each, in descending order.
fn lasts(sequence: &[Item]) -> Vec<(u32, Item)> {
    let mut met = FxHashSet::default();
    let len = u32::try_from(sequence.len()).unwrap_or(u32::MAX);
    let places = (0..len).rev().zip(sequence.iter().rev());
    let lasts = places.filter(|(_, item)| met.insert(**item));
    lasts.map(|(place, &item)| (place, item)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::database::Builder;
    use super::*;

    #[test]
    fn a_table_and_lists_find_the_same() {
        let mut builder = Builder::new();
        for (line, times) in [("a b a c", 2), ("b c d", 3), ("c b a", 1), ("e e", 7)] {
            builder.push_many(line.split(' '), times);
        }
        let database = builder.finish();
        let first: Vec<Step> = (0..5)
            .map(|item| Step {
                item,
                support: 1,
                places: Vec::new(),
            })
            .collect();
        let table = Endings::new(&database, &first);
        assert!(matches!(table, Endings::Table(_)));
        let lists = Endings::Lists(Lists::new(&database));
        let places = [(0, 1), (1, 1), (2, 3), (3, 1)];
        let places = places.map(|(sequence, rest)| Place { sequence, rest });
        let found = [table, lists].map(|mut endings| {
            let steps = endings.supports(&places, 2, Vec::new());
            steps
                .iter()
                .map(|step| (database.name(step.item).to_owned(), step.support))
                .collect::<Vec<_>>()
        });
        let names = |list: &[(&str, u64)]| -> Vec<(String, u64)> {
            let owned = list
                .iter()
                .map(|&(name, support)| (name.to_owned(), support));
            owned.collect()
        };
        let expected = names(&[("a", 2), ("b", 2), ("c", 5), ("d", 3), ("e", 7)]);
        assert_eq!(found, [expected.clone(), expected]);
    }
}
