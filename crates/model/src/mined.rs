//! Frequent patterns as JSON.

use crate::answer::{Evidence, Kind};
use crate::fault_paths::TreePattern;
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
