//! Frequent patterns in sequences of function calls or other items.
//!
//! | mode | a pattern is | its support |
//! |---|---|---|
//! | [`Algorithm::Prefix`] | a prefix of a sequence (Algorithm 1 of Wei & Wang, 2024) | sequences with it |
//! | [`Algorithm::Classic`] | items in order, with gaps (PrefixSpan, Pei et al., 2001) | sequences that contain it |
//! | [`Algorithm::Closed`] | classic ones without a longer one of the same support | the same |
//! | [`Algorithm::Maximal`] | classic ones without a longer frequent one | the same |
//! | [`Algorithm::Contiguous`] | consecutive items | sequences that contain it |
//! | [`Algorithm::Suffixes`] | the same (Algorithm 1 over all suffixes) | places where it occurs |
//!
//! "Closed" follows the definition: no longer pattern has the same support. PrefixSpan-py, the
//! usual implementation for comparison, checks one match in each sequence, the latest, and so keeps
//! some patterns that the definition drops: in {abcd, cabc, acbac} it keeps `ac` although `abc` has
//! the same support, since the latest `ac` of the third sequence has nothing in between.
//!
//! Patterns come in the order of their items (see [`Database`]), each before its own extensions.
//! Identical sequences are stored and mined once, with their count as weight.

mod calls;
mod classic;
mod contiguous;
mod database;
mod endings;
mod extension;
mod prefix;
mod projection;
mod read;
mod step;

pub use calls::CallSequences;
pub use database::{Builder, Database, Item};
pub use prefix::{PrefixNode, PrefixTree};
pub use projection::project;
pub use read::{ReadError, read};

/// The definition of a pattern; see the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Supported prefixes.
    Prefix,
    /// Subsequences.
    Classic,
    /// Subsequences without a longer one of the same support.
    Closed,
    /// Maximal subsequences.
    Maximal,
    /// Substrings, by sequences.
    Contiguous,
    /// Substrings, by places.
    Suffixes,
}

/// One pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Its items, in order.
    pub items: Vec<Item>,
    /// How often it occurs.
    pub support: u64,
}

/// The parameters of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The definition of a pattern.
    pub algorithm: Algorithm,
    /// The least support; zero counts as one.
    pub min_support: u64,
    /// The longest pattern, in items. Closed and maximal patterns are determined over all lengths;
    /// longer ones are then left out.
    pub max_length: Option<usize>,
}

/// Passes each pattern to `visit` as it is found, so that millions of them need no memory.
pub fn mine(database: &Database, query: Query, mut visit: impl FnMut(&[Item], u64)) {
    let query = Query {
        min_support: query.min_support.max(1),
        ..query
    };
    match query.algorithm {
        Algorithm::Prefix => prefix::mine(database, query, &mut visit),
        Algorithm::Classic | Algorithm::Closed | Algorithm::Maximal => {
            classic::mine(database, query, &mut visit);
        }
        Algorithm::Contiguous | Algorithm::Suffixes => {
            contiguous::mine(database, query, &mut visit);
        }
    }
}

/// All patterns at once.
#[must_use]
pub fn patterns(database: &Database, query: Query) -> Vec<Pattern> {
    let mut found = Vec::new();
    mine(database, query, |items, support| {
        found.push(Pattern {
            items: items.to_vec(),
            support,
        });
    });
    found
}

#[cfg(test)]
mod tests;
