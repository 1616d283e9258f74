//! What is wrong, or not, in words.

use crate::units::Estimate;
use serde::{Deserialize, Serialize};

/// How serious a diagnosis is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing is wrong.
    Healthy,
    /// Worth knowing.
    Note,
    /// Costs time.
    Costly,
    /// Dominates the run.
    Severe,
}

/// One thing that is wrong (or right), with the evidence for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// Stable name: `churn.brk`, `first_touch`, `cow.fork`, `healthy`…
    pub id: String,
    /// How serious.
    pub severity: Severity,
    /// One plain sentence that a person without background understands.
    pub headline: String,
    /// What happens, in two or three sentences.
    pub explanation: String,
    /// Measured facts that show it, each a short sentence with numbers.
    pub evidence: Vec<String>,
    /// Share of CPU time lost to it (0 to 1).
    pub share_of_cpu: Option<Estimate>,
    /// Share of elapsed time lost to it (0 to 1), if it is a wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of_elapsed: Option<Estimate>,
}

impl Diagnosis {
    /// A diagnosis with this name, still without sentences and shares.
    #[must_use]
    pub fn named(id: impl Into<String>, severity: Severity) -> Self {
        Self {
            id: id.into(),
            severity,
            headline: String::new(),
            explanation: String::new(),
            evidence: Vec::new(),
            share_of_cpu: None,
            share_of_elapsed: None,
        }
    }

    /// Whether its evidence is samples rather than faults, calls or counts.
    #[must_use]
    pub fn is_of_samples(&self) -> bool {
        self.id.starts_with("profile.")
    }
}
