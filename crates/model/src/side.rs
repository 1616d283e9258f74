//! One of the two sides of a comparison.

use crate::answer::Subject;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// One of two recordings, traces or runs, with its sums.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "{E}Side"))]
pub struct Side<E> {
    /// Its name in this comparison.
    pub name: String,
    /// What was observed; absent if unknown.
    #[serde(default, skip_serializing_if = "Subject::is_machine")]
    pub subject: Subject,
    /// The host; absent if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Its sums.
    #[serde(flatten)]
    pub sums: E,
}

/// A side dereferences to its sums.
impl<E> Deref for Side<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.sums
    }
}

/// A setting that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingChange {
    /// Its name.
    pub name: String,
    /// Value on A's host; `None` where it does not exist.
    pub a: Option<String>,
    /// Value on B's host.
    pub b: Option<String>,
    /// Functions that changed significantly and that this setting is known to affect.
    pub touches: Vec<String>,
    /// How it affects them; empty if no effect is known.
    pub reason: String,
}
