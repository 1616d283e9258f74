//! PrefixSpan (Pei et al., 2001) for sequences of single items, gaps allowed, with an explicit
//! stack; closed and maximal patterns are those that pass [`Extensions`].
//!
//! A projected database is a list of places: the sequence, and the start of its rest after the
//! earliest match. One scan over the rests counts all items and collects the next level's places.

use super::database::{Database, Item};
use super::extension::{Extensions, Limit};
use super::{Algorithm, Query};
use rustc_hash::FxHashSet;

/// The rest of a sequence after a match.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub sequence: u32,
    pub rest: u32,
}

/// An item that extends a pattern, with the places after it.
pub(super) struct Step {
    pub item: Item,
    pub support: u64,
    pub places: Vec<Place>,
}

pub(super) fn mine(database: &Database, query: Query, visit: &mut impl FnMut(&[Item], u64)) {
    let mut scan = Scan::new(database);
    let mut extensions = Extensions::default();
    let mut report = |pattern: &[Item], step: &Step| {
        let holders = step.places.iter().map(|place| place.sequence);
        let threshold = match query.algorithm {
            Algorithm::Closed => step.support,
            Algorithm::Maximal => query.min_support,
            _ => return visit(pattern, step.support),
        };
        let wanted = extensions.best(database, pattern, holders) < threshold;
        if wanted {
            visit(pattern, step.support);
        }
    };
    let all = (0..)
        .take(database.distinct())
        .map(|sequence| Place { sequence, rest: 0 })
        .collect::<Vec<_>>();
    let limit = Limit::of(query.max_length);
    // Nothing follows the longest patterns, so only their support is needed; but closed and maximal
    // patterns need the places too.
    let is_last =
        |length| query.algorithm == Algorithm::Classic && !limit.allows_longer_than(length);
    let first = scan.steps(&all, query.min_support, Vec::new());
    grow(first, limit, &mut report, |places, length, spare| {
        if is_last(length + 1) {
            scan.supports(places, query.min_support, spare)
        } else {
            scan.steps(places, query.min_support, spare)
        }
    });
}

/// Walks all patterns depth first: each step extends the pattern, `next` finds the possible
/// extensions of a pattern of the given length, in the memory that it is given or its own.
pub(super) fn grow(
    first: Vec<Step>,
    limit: Limit,
    report: &mut impl FnMut(&[Item], &Step),
    mut next: impl FnMut(&[Place], usize, Vec<Step>) -> Vec<Step>,
) {
    let mut pattern: Vec<Item> = Vec::new();
    let mut spare = Vec::new();
    let mut open = vec![(first, 0)];
    while let Some((siblings, at)) = open.last_mut() {
        let Some(step) = siblings.get_mut(*at) else {
            pattern.pop();
            spare.extend(open.pop().map(|(mut steps, _)| {
                steps.clear();
                steps
            }));
            continue;
        };
        *at += 1;
        pattern.push(step.item);
        report(&pattern, step);
        if limit.allows_longer_than(pattern.len()) {
            // They are needed no more, and levels may be many.
            let places = std::mem::take(&mut step.places);
            let memory = spare.pop().unwrap_or_default();
            open.push((next(&places, pattern.len(), memory), 0));
        } else {
            pattern.pop();
        }
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

/// Adds an item that is the last of its patterns, if it is frequent.
fn note(item: Item, support: u64, min_support: u64, steps: &mut Vec<Step>) {
    if support >= min_support.max(1) {
        steps.push(Step {
            item,
            support,
            places: Vec::new(),
        });
    }
}

/// Tables by item, reused from scan to scan.
struct Scan<'a> {
    database: &'a Database,
    /// The last scan and sequence that contained the item.
    seen: Vec<(u64, u32)>,
    support: Vec<u64>,
    places: Vec<Vec<Place>>,
    met: Vec<Item>,
    scans: u64,
    /// For each sequence its distinct items with the last position of each, in descending order.
    lasts: Vec<Vec<(u32, Item)>>,
}

impl<'a> Scan<'a> {
    fn new(database: &'a Database) -> Self {
        let kinds = database.kinds();
        Self {
            database,
            seen: vec![(0, 0); kinds],
            support: vec![0; kinds],
            places: (0..kinds).map(|_| Vec::new()).collect(),
            met: Vec::new(),
            scans: 0,
            lasts: Vec::new(),
        }
    }

    /// The frequent items of the rests in item order, without the places after them. A rest
    /// contains an item if the item's last position in the sequence is in it.
    fn supports(&mut self, places: &[Place], min_support: u64, mut steps: Vec<Step>) -> Vec<Step> {
        if self.lasts.is_empty() {
            self.lasts = self.database.sequences().map(|(s, _)| lasts(s)).collect();
        }
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
                note(item, std::mem::take(support), min_support, &mut steps);
            }
        } else {
            self.met.sort_unstable();
            for &item in &self.met {
                let support = std::mem::take(&mut self.support[item as usize]);
                note(item, support, min_support, &mut steps);
            }
        }
        self.met.clear();
        steps
    }

    /// The frequent items of the rests in item order.
    fn steps(&mut self, places: &[Place], min_support: u64, mut steps: Vec<Step>) -> Vec<Step> {
        self.scans += 1;
        for place in places {
            self.scan(*place);
        }
        let mut met = std::mem::take(&mut self.met);
        met.sort_unstable();
        for &item in &met {
            let index = item as usize;
            let support = std::mem::take(&mut self.support[index]);
            if support >= min_support {
                let places = self.places[index].clone();
                steps.push(Step {
                    item,
                    support,
                    places,
                });
            }
            self.places[index].clear();
        }
        met.clear();
        self.met = met;
        steps
    }

    fn scan(&mut self, place: Place) {
        let sequence = self.database.sequence(place.sequence);
        let weight = self.database.weight(place.sequence);
        let now = (self.scans, place.sequence);
        for (rest, &item) in (place.rest + 1..).zip(&sequence[place.rest as usize..]) {
            let index = item as usize;
            if self.seen[index] == now {
                continue;
            }
            if self.support[index] == 0 {
                self.met.push(item);
            }
            self.seen[index] = now;
            self.support[index] += weight;
            self.places[index].push(Place {
                sequence: place.sequence,
                rest,
            });
        }
    }
}
