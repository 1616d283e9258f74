//! The fields common to all documents, in the form that the page reads (`web/src/data/page.ts`).

use super::sheets::Said;
use pagewise_model::advice::Advice;
use pagewise_model::answer::{Document, Evidence};
use pagewise_model::findings::Diagnosis;
use pagewise_model::host::HostSnapshot;
use pagewise_model::proof::Proof;
use serde::Serialize;
use std::sync::LazyLock;

/// A document without its evidence.
#[derive(Serialize)]
pub(super) struct Head<'a> {
    command: &'a [String],
    pids: &'a [i32],
    host: &'a HostSnapshot,
    verdict: &'a str,
    diagnoses: &'a [Diagnosis],
    advice: &'a [Advice],
    proof: Option<&'a Proof>,
    /// What is missing in the figures, in words.
    pub(super) losses: Vec<String>,
    notes: &'a [String],
}

impl<'a> Head<'a> {
    pub(super) fn new(document: &'a Document<impl Evidence>) -> Self {
        Self {
            command: &document.subject.command,
            pids: &document.subject.pids,
            host: &document.host,
            verdict: &document.verdict,
            diagnoses: &document.diagnoses,
            advice: &document.advice,
            proof: document.proof.as_ref(),
            losses: document.losses.descriptions().collect(),
            notes: &document.notes,
        }
    }

    /// What is said without a document: about several machines.
    pub(super) fn said(said: &'a Said<'a>) -> Self {
        static UNKNOWN: LazyLock<HostSnapshot> = LazyLock::new(HostSnapshot::default);
        Self {
            command: &[],
            pids: &[],
            host: &UNKNOWN,
            verdict: said.verdict,
            diagnoses: &[],
            advice: &[],
            proof: None,
            losses: said.losses.clone(),
            notes: said.notes,
        }
    }
}
