//! A projected database: the rest of each sequence after a prefix.

use super::Algorithm;
use super::database::{Database, Item};

/// The non-empty rests after `prefix`, with their counts, in the order of the database: after the
/// earliest match for subsequences, after the prefix itself for [`Algorithm::Prefix`], after every
/// occurrence for substrings.
#[must_use]
pub fn project(
    database: &Database,
    algorithm: Algorithm,
    prefix: &[Item],
) -> Vec<(Vec<Item>, u64)> {
    let mut projected = Vec::new();
    for (sequence, weight) in database.sequences() {
        let remainders: Vec<&[Item]> = match algorithm {
            Algorithm::Prefix => sequence.strip_prefix(prefix).into_iter().collect(),
            Algorithm::Contiguous | Algorithm::Suffixes => behind_every_place(sequence, prefix),
            _ => behind_earliest(sequence, prefix).into_iter().collect(),
        };
        for rest in remainders.into_iter().filter(|rest| !rest.is_empty()) {
            projected.push((rest.to_vec(), weight));
        }
    }
    projected
}

fn behind_earliest<'a>(sequence: &'a [Item], prefix: &[Item]) -> Option<&'a [Item]> {
    let mut rest = sequence;
    for wanted in prefix {
        let place = rest.iter().position(|item| item == wanted)?;
        rest = &rest[place + 1..];
    }
    Some(rest)
}

fn behind_every_place<'a>(sequence: &'a [Item], prefix: &[Item]) -> Vec<&'a [Item]> {
    (0..sequence.len())
        .filter_map(|start| sequence[start..].strip_prefix(prefix))
        .collect()
}
