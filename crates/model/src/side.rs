//! One of two that are compared.

use crate::answer::Subject;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// One of two recordings, traces or runs, and what it holds in sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "{E}Side"))]
pub struct Side<E> {
    /// What it is called here.
    pub name: String,
    /// What was observed; absent where that is not known.
    #[serde(default, skip_serializing_if = "Subject::is_machine")]
    pub subject: Subject,
    /// The host; absent where that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Its sums.
    #[serde(flatten)]
    pub sums: E,
}

/// A side is read as its sums with a name.
impl<E> Deref for Side<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.sums
    }
}
