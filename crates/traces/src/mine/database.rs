//! Sequences of items, each distinct one stored once with its count.

use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// An item by its rank in the database's order.
pub type Item = u32;

/// A database of sequences.
///
/// Items are ordered: integers first, by value; then all others by their bytes. An [`Item`]'s
/// number is its rank in this order.
#[derive(Clone, Debug, Default)]
pub struct Database {
    names: Vec<String>,
    items: Vec<Item>,
    sequences: Vec<Stored>,
    total: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stored {
    start: usize,
    end: usize,
    weight: u64,
}

impl Database {
    /// Number of sequences added.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether there are no sequences.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Number of distinct items.
    #[must_use]
    pub fn kinds(&self) -> usize {
        self.names.len()
    }

    /// An item's text.
    #[must_use]
    pub fn name(&self, item: Item) -> &str {
        self.names.get(item as usize).map_or("", String::as_str)
    }

    /// The item with this text.
    #[must_use]
    pub fn item(&self, name: &str) -> Option<Item> {
        let found = self
            .names
            .binary_search_by(|probe| item_order(probe, name))
            .ok()?;
        Item::try_from(found).ok()
    }

    /// The distinct sequences with the count of each, in order of first appearance.
    pub fn sequences(&self) -> impl ExactSizeIterator<Item = (&[Item], u64)> {
        self.sequences
            .iter()
            .map(|s| (&self.items[s.start..s.end], s.weight))
    }

    /// Number of distinct sequences.
    #[must_use]
    pub(super) fn distinct(&self) -> usize {
        self.sequences.len()
    }

    /// One of the distinct sequences.
    #[inline]
    pub(super) fn sequence(&self, index: u32) -> &[Item] {
        let stored = self.sequences[index as usize];
        &self.items[stored.start..stored.end]
    }

    /// The count of this sequence.
    #[inline]
    pub(super) fn weight(&self, index: u32) -> u64 {
        self.sequences[index as usize].weight
    }
}

/// Integers by value before everything else by bytes.
fn item_order(a: &str, b: &str) -> Ordering {
    match (a.parse::<i64>(), b.parse::<i64>()) {
        (Ok(x), Ok(y)) => x.cmp(&y).then_with(|| a.cmp(b)),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

/// Collects sequences.
#[derive(Default)]
pub struct Builder {
    ids: FxHashMap<String, Item>,
    names: Vec<String>,
    index: FxHashMap<Box<[Item]>, usize>,
    sequences: Vec<(Box<[Item]>, u64)>,
    current: Vec<Item>,
}

impl Builder {
    /// An empty database under construction.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sequence.
    pub fn push<'a>(&mut self, items: impl IntoIterator<Item = &'a str>) {
        self.push_many(items, 1);
    }

    /// Adds a sequence that occurs `times` times.
    pub fn push_many<'a>(&mut self, items: impl IntoIterator<Item = &'a str>, times: u64) {
        let mut current = std::mem::take(&mut self.current);
        current.clear();
        current.extend(items.into_iter().map(|item| self.id(item)));
        match self.index.get(current.as_slice()) {
            Some(&known) => self.sequences[known].1 += times,
            None => {
                let stored: Box<[Item]> = current.as_slice().into();
                self.index.insert(stored.clone(), self.sequences.len());
                self.sequences.push((stored, times));
            }
        }
        self.current = current;
    }

    fn id(&mut self, name: &str) -> Item {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = Item::try_from(self.names.len()).unwrap_or(Item::MAX);
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// The database, with its items numbered in item order.
    #[must_use]
    pub fn finish(self) -> Database {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by(|&a, &b| item_order(&self.names[a], &self.names[b]));
        let mut rank = vec![0; order.len()];
        for (place, &id) in (0..).zip(&order) {
            rank[id] = place;
        }
        let mut database = Database {
            names: order.iter().map(|&id| self.names[id].clone()).collect(),
            ..Database::default()
        };
        for (sequence, weight) in &self.sequences {
            let start = database.items.len();
            let ranked = sequence.iter().map(|&id| rank[id as usize]);
            database.items.extend(ranked);
            database.total += weight;
            database.sequences.push(Stored {
                start,
                end: database.items.len(),
                weight: *weight,
            });
        }
        database
    }
}
