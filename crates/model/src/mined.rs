//! Frequent patterns as JSON.

use crate::document::Kind;
use crate::fault_paths::TreePattern;
use serde::{Deserialize, Serialize};

/// Version of [`Mined`] as JSON.
pub const MINED_VERSION: u32 = 1;

/// What was found in a database of sequences: patterns, or the rests behind one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mined {
    /// [`MINED_VERSION`].
    pub schema_version: u32,
    /// [`Kind::Mined`].
    pub kind: Kind,
    /// Frequent patterns in the order of their items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patterns: Option<Vec<MinedPattern>>,
    /// With `--projection`: the sequences of the projected database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequences: Option<Vec<Vec<String>>>,
}

/// One pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MinedPattern {
    /// Its items; of a tree its functions, and braces around what they call.
    pub items: Vec<String>,
    /// Sequences that hold it; places for the algorithm "suffixes", faults for "trees".
    pub support: u64,
    /// Of the algorithm "trees": the tree with its repeats, and its times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreePattern>,
}
