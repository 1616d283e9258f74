//! The one document format: every command writes its results as such a document, reads it back as
//! one, and displays from one.
//!
//! What all answers have in common is in the document itself: the subject, the machine, the answer
//! in a sentence, what is wrong, what to change, whether that helped, and what is missing. What one
//! kind of analysis found is its *evidence*: a part named after the document's kind.

mod evidence;
mod kind;

pub use evidence::Evidence;
pub use kind::{Head, Kind};

use crate::advice::Advice;
use crate::diagnosis::Diagnosis;
use crate::host::HostSnapshot;
use crate::loss::Losses;
use crate::proof::Proof;
use crate::secrets;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};

/// Version of all documents as JSON. Kinds had versions of their own, up to 4, before they became
/// one document.
pub const SCHEMA_VERSION: u32 = 6;

/// What a command found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Document"))]
#[serde(bound(
    serialize = "E: Evidence + Serialize",
    deserialize = "E: Evidence + DeserializeOwned"
))]
pub struct Document<E> {
    /// Which part of the evidence is here.
    pub kind: Kind,
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What was observed; absent where it is only the machine.
    #[serde(default, skip_serializing_if = "Subject::is_machine")]
    pub subject: Subject,
    /// The machine; absent where it is unknown, or the evidence covers several.
    #[serde(default, skip_serializing_if = "HostSnapshot::is_unknown")]
    pub host: HostSnapshot,
    /// The answer in a sentence or two; absent where there are only figures.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verdict: String,
    /// What is wrong: what the verdict is about, then most serious first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnoses: Vec<Diagnosis>,
    /// What to change, best first; absent where there is nothing to gain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// Whether it helped; absent where nothing was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// What is missing from the figures.
    #[serde(default, skip_serializing_if = "Losses::is_empty")]
    pub losses: Losses,
    /// What a reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The evidence: the part named after `kind`.
    #[serde(with = "evidence")]
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    pub evidence: E,
}

/// What was observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subject {
    /// The command with its arguments; absent where running processes were observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The process that the command became, or those that were already running, each with its
    /// children; absent where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<i32>,
}

impl Subject {
    /// The program that this command runs; its secrets are masked.
    #[must_use]
    pub fn of_command(command: Vec<String>) -> Self {
        Self {
            command: secrets::masked(&command),
            pids: Vec::new(),
        }
    }

    /// Processes that were already running.
    #[must_use]
    pub fn of_processes(pids: Vec<i32>) -> Self {
        Self {
            command: Vec::new(),
            pids,
        }
    }

    /// Whether no program was observed.
    #[must_use]
    pub fn is_machine(&self) -> bool {
        self.command.is_empty() && self.pids.is_empty()
    }
}

impl<E: Evidence> Document<E> {
    /// A document with this evidence and its own verdict, about the machine, without other
    /// sentences.
    #[must_use]
    pub fn new(evidence: E) -> Self {
        Self {
            kind: E::KIND,
            schema_version: SCHEMA_VERSION,
            subject: Subject::default(),
            host: HostSnapshot::default(),
            verdict: evidence.verdict(),
            diagnoses: Vec::new(),
            advice: Vec::new(),
            proof: None,
            losses: Losses::default(),
            notes: Vec::new(),
            evidence,
        }
    }

    /// The same sentences over other evidence.
    #[must_use]
    pub fn over<F: Evidence>(&self, evidence: F) -> Document<F> {
        Document {
            kind: F::KIND,
            schema_version: self.schema_version,
            subject: self.subject.clone(),
            host: self.host.clone(),
            verdict: self.verdict.clone(),
            diagnoses: self.diagnoses.clone(),
            advice: self.advice.clone(),
            proof: self.proof.clone(),
            losses: self.losses.clone(),
            notes: self.notes.clone(),
            evidence,
        }
    }

    /// The same about this subject.
    #[must_use]
    pub fn about(self, subject: Subject) -> Self {
        Self { subject, ..self }
    }

    /// The same with this answer.
    #[must_use]
    pub fn with_verdict(self, verdict: impl Into<String>) -> Self {
        Self {
            verdict: verdict.into(),
            ..self
        }
    }

    /// The same with the evidence's own verdict where it has none: earlier builds wrote none for
    /// some kinds.
    #[must_use]
    pub fn with_own_verdict(self) -> Self {
        match self.verdict.is_empty() {
            true => Self {
                verdict: self.evidence.verdict(),
                ..self
            },
            false => self,
        }
    }

    /// The same with these notes.
    #[must_use]
    pub fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }
}

/// A document dereferences to its evidence.
impl<E> Deref for Document<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.evidence
    }
}

impl<E> DerefMut for Document<E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.evidence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::Check;
    use serde_json::json;

    fn check() -> Check {
        Check {
            kernel: "6.12".to_owned(),
            capabilities: Vec::new(),
        }
    }

    #[test]
    fn evidence_is_named_by_kind_and_omits_what_is_absent() {
        let json = serde_json::to_value(Document::new(check())).unwrap();
        let evidence = json!({"check": {"kernel": "6.12", "capabilities": []}});
        let bare = json!({
            "kind": "check",
            "schema_version": SCHEMA_VERSION,
            "verdict": "Linux 6.12: 0 of 0 available, 0 partial, 0 missing.",
            "evidence": evidence,
        });
        assert_eq!(json, bare);
    }

    #[test]
    fn a_document_reads_back_without_other_kinds_parts() {
        let whole = Document::new(check())
            .about(Subject::of_command(vec!["ls".to_owned()]))
            .with_verdict("It works.")
            .with_notes(vec!["A note.".to_owned()]);
        let mut json = serde_json::to_value(&whole).unwrap();
        json["evidence"]["later"] = json!([1]);
        let back: Document<Check> = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(back, whole);
        json["evidence"] = json!({"later": [1]});
        let error = serde_json::from_value::<Document<Check>>(json).unwrap_err();
        assert_eq!(error.to_string(), "the evidence lacks \"check\"");
    }
}
