//! PrefixSpan (Pei et al., 2001) for sequences of single items, gaps allowed, with an explicit
//! stack; closed and maximal patterns are those that pass [`Extensions`].
//!
//! A projected database is a list of places: the sequence and where its rest begins behind the
//! earliest match. One scan over the rests counts all items and collects the next level's places.

use super::database::{Database, Item};
use super::extension::{Extensions, Limit, Room};
use super::{Algorithm, Query};

/// The rest of a sequence behind a match.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub sequence: u32,
    pub rest: u32,
}

/// One item that prolongs a pattern, with the places behind it.
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
        let (room, threshold) = match query.algorithm {
            Algorithm::Closed => (Room::LatestMatch, step.support),
            Algorithm::StrictlyClosed => (Room::Anywhere, step.support),
            Algorithm::Maximal => (Room::Anywhere, query.min_support),
            _ => return visit(pattern, step.support),
        };
        let wanted = extensions.best(database, pattern, room, holders) < threshold;
        if wanted {
            visit(pattern, step.support);
        }
    };
    let all = (0..)
        .take(database.distinct())
        .map(|sequence| Place { sequence, rest: 0 })
        .collect::<Vec<_>>();
    let first = scan.steps(&all, query.min_support);
    grow(first, Limit::of(query.max_length), &mut report, |places| {
        scan.steps(places, query.min_support)
    });
}

/// Walks all patterns depth first: each step prolongs the pattern, `next` finds what may follow.
pub(super) fn grow(
    first: Vec<Step>,
    limit: Limit,
    report: &mut impl FnMut(&[Item], &Step),
    mut next: impl FnMut(&[Place]) -> Vec<Step>,
) {
    let mut pattern: Vec<Item> = Vec::new();
    let mut open = vec![first.into_iter()];
    while let Some(siblings) = open.last_mut() {
        let Some(step) = siblings.next() else {
            open.pop();
            pattern.pop();
            continue;
        };
        pattern.push(step.item);
        report(&pattern, &step);
        if limit.allows_longer_than(pattern.len()) {
            open.push(next(&step.places).into_iter());
        } else {
            pattern.pop();
        }
    }
}

/// Tables by item, reused from scan to scan.
struct Scan<'a> {
    database: &'a Database,
    /// The last scan and sequence that met the item.
    seen: Vec<(u64, u32)>,
    support: Vec<u64>,
    places: Vec<Vec<Place>>,
    met: Vec<Item>,
    scans: u64,
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
        }
    }

    /// The frequent items of the rests in their order.
    fn steps(&mut self, places: &[Place], min_support: u64) -> Vec<Step> {
        self.scans += 1;
        for place in places {
            self.scan(*place);
        }
        let mut met = std::mem::take(&mut self.met);
        met.sort_unstable();
        let mut steps = Vec::new();
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
