//! Frequent patterns as JSON.

use crate::answer::{Evidence, Kind};
use crate::fault_paths::TreePattern;
use crate::quantity::counted;
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
        let count = |of: usize, what| counted(of as u64, what);
        match (&self.patterns, &self.sequences) {
            (Some(patterns), _) => {
                let most = patterns.iter().map(|one| one.support).max();
                let most = most.map_or(String::new(), |most| {
                    format!(", the most frequent with a support of {most}")
                });
                format!("{}{most}.", count(patterns.len(), "frequent pattern"))
            }
            (None, Some(rows)) => format!("{}.", count(rows.len(), "projected sequence")),
            (None, None) => String::new(),
        }
    }
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
