//! Substrings: consecutive items without a gap, extended at all places at once.

use super::classic::grow;
use super::database::{Database, Item};
use super::extension::Limit;
use super::step::{Place, Step};
use super::{Algorithm, Query};
use std::collections::BTreeMap;

pub(super) fn mine(database: &Database, query: Query, visit: &mut impl FnMut(&[Item], u64)) {
    let everywhere: Vec<Place> = (0..)
        .take(database.distinct())
        .flat_map(|sequence| {
            let ends = (0..).take(database.sequence(sequence).len());
            ends.map(move |rest| Place { sequence, rest })
        })
        .collect();
    let first = steps(database, query, &everywhere);
    let mut report = |pattern: &[Item], step: &Step| visit(pattern, step.support);
    grow(
        first,
        Limit::new(query.max_length),
        &mut report,
        |places, _, _| steps(database, query, places),
    );
}

/// The items that directly follow these places, in item order.
fn steps(database: &Database, query: Query, places: &[Place]) -> Vec<Step> {
    let mut by_item: BTreeMap<Item, Vec<Place>> = BTreeMap::new();
    for place in places {
        let sequence = database.sequence(place.sequence);
        if let Some(&item) = sequence.get(place.rest as usize) {
            by_item.entry(item).or_default().push(Place {
                sequence: place.sequence,
                rest: place.rest + 1,
            });
        }
    }
    by_item
        .into_iter()
        .map(|(item, places)| Step {
            item,
            support: support(database, query.algorithm, &places),
            places,
        })
        .filter(|step| step.support >= query.min_support)
        .collect()
}

/// By places, or by sequences; places of a sequence are adjacent.
fn support(database: &Database, algorithm: Algorithm, places: &[Place]) -> u64 {
    let same_sequence = |a: &Place, b: &Place| a.sequence == b.sequence;
    places
        .chunk_by(same_sequence)
        .map(|chunk| {
            let times = match algorithm {
                Algorithm::Suffixes => chunk.len() as u64,
                _ => 1,
            };
            database.weight(chunk[0].sequence) * times
        })
        .sum()
}
