//! PrefixSpan (Pei et al., 2001) for sequences of single items, gaps allowed, with an explicit
//! stack; closed and maximal patterns are those that pass [`Extensions`].
//!
//! A projected database is a list of places: the sequence, and the start of its rest after the
//! earliest match. One scan over the rests counts all items and collects the next level's places.

use super::database::{Database, Item};
use super::endings::Endings;
use super::extension::{Extensions, Limit};
use super::step::{Place, Step};
use super::{Algorithm, Query};

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
    let limit = Limit::new(query.max_length);
    // Nothing follows the longest patterns, so only their support is needed; but closed and maximal
    // patterns need the places too.
    let is_last =
        |length| query.algorithm == Algorithm::Classic && !limit.allows_longer_than(length);
    let first = scan.steps(&all, query.min_support, Vec::new());
    let has_last = query.algorithm == Algorithm::Classic && query.max_length > Some(1);
    let mut endings = has_last.then(|| Endings::new(database, &first));
    grow(
        first,
        limit,
        &mut report,
        |places, length, spare| match &mut endings {
            Some(endings) if is_last(length + 1) => {
                endings.supports(places, query.min_support, spare)
            }
            _ => scan.steps(places, query.min_support, spare),
        },
    );
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

/// Tables by item, reused from scan to scan.
struct Scan<'a> {
    database: &'a Database,
    /// The last scan and sequence that contained the item.
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
