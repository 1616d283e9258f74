//! Frequent patterns as JSON.

use crate::answer::{Evidence, Kind};
use crate::fault_paths::TreePattern;
use crate::quantity::{count, counted};
use serde::{Deserialize, Serialize};

/// What was found in a database of sequences: patterns, or the sequences projected on one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mined {
    /// Frequent patterns in the order of their items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patterns: Option<Vec<MinedPattern>>,
    /// With `--projection`: the sequences of the projected database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequences: Option<Vec<Vec<String>>>,
}

impl Evidence for Mined {
    const KIND: Kind = Kind::Mined;

    fn verdict(&self) -> String {
        match (&self.patterns, &self.sequences) {
            (Some(patterns), _) => {
                let supports = patterns.iter().map(|one| one.support);
                patterns_found(patterns.len() as u64, supports.max().unwrap_or(0))
            }
            (None, Some(rows)) => sequences_found(rows.len() as u64),
            (None, None) => String::new(),
        }
    }
}

/// The verdict on this many patterns, the most frequent with this support.
#[must_use]
pub fn patterns_found(number: u64, most: u64) -> String {
    let found = counted(number, "frequent pattern");
    match most {
        0 => format!("{found}."),
        most => format!(
            "{found}, the most frequent with a support of {}.",
            count(most)
        ),
    }
}

/// The verdict on this many projected sequences.
#[must_use]
pub fn sequences_found(number: u64) -> String {
    format!("{}.", counted(number, "projected sequence"))
}

/// One pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MinedPattern {
    /// Its items; for a tree its functions, with braces around what they call.
    pub items: Vec<String>,
    /// Sequences that contain it; occurrences for the algorithm "suffixes", faults for "trees".
    pub support: u64,
    /// For the algorithm "trees": the tree with its repeats, and its times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreePattern>,
}
