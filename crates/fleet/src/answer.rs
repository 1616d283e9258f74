//! Answers: a document of the shape that all of Pagewise's documents have, and its text.

use crate::data::Unusable;
use crate::text::Table;
use pagewise_model::answer::SCHEMA_VERSION;
use pagewise_model::units::Estimate;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;

/// What a command found.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// `fleet_top`, `fleet_outliers`…
    pub kind: &'static str,
    /// The version of all of Pagewise's documents.
    pub schema_version: u32,
    /// The answer in a sentence or two.
    pub verdict: String,
    /// What is missing from the figures.
    #[serde(skip_serializing_if = "Losses::is_empty")]
    pub losses: Losses,
    /// What a reader should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The figures, under the name of the kind.
    pub evidence: Value,
    /// The same as tables.
    #[serde(skip)]
    pub tables: Vec<Table>,
    /// And as a flame graph (SVG), if it was asked for.
    #[serde(skip)]
    pub flame: Option<String>,
}

/// Files that could not be used.
#[derive(Debug, Default, Serialize)]
pub struct Losses {
    /// How many.
    pub unusable_files: usize,
    /// Which, and why.
    pub files: Vec<Unusable>,
}

impl Losses {
    fn is_empty(&self) -> bool {
        self.unusable_files == 0
    }
}

/// Most files that the text names.
const NAMED_FILES: usize = 10;

impl Answer {
    /// An answer with this evidence.
    pub fn new(
        kind: &'static str,
        verdict: String,
        evidence: &impl Serialize,
        tables: Vec<Table>,
    ) -> Self {
        let evidence = serde_json::to_value(evidence).unwrap_or_default();
        Self {
            kind,
            schema_version: SCHEMA_VERSION,
            verdict,
            losses: Losses::default(),
            notes: Vec::new(),
            evidence: serde_json::json!({ kind: evidence }),
            tables: tables
                .into_iter()
                .filter(|table| !table.rows.is_empty())
                .collect(),
            flame: None,
        }
    }

    /// The same, with files that were left out.
    pub fn without(mut self, files: Vec<Unusable>) -> Self {
        self.losses = Losses {
            unusable_files: files.len(),
            files,
        };
        self
    }

    /// The same with these notes.
    pub fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// The same with a flame graph.
    pub fn with_flame(mut self, flame: Option<String>) -> Self {
        self.flame = flame;
        self
    }

    /// As text for a terminal.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.verdict);
        for table in &self.tables {
            let _ = write!(out, "\n{}", table.text());
        }
        let files = &self.losses.files;
        if !files.is_empty() {
            let _ = writeln!(out, "\nLeft out: {} files that cannot be used", files.len());
            for file in files.iter().take(NAMED_FILES) {
                let _ = writeln!(out, "  {}: {}", file.path, file.reason);
            }
            if files.len() > NAMED_FILES {
                let _ = writeln!(
                    out,
                    "  … and {} more (--json names all)",
                    files.len() - NAMED_FILES
                );
            }
        }
        for note in &self.notes {
            let _ = writeln!(out, "\nNote: {note}");
        }
        out
    }
}

/// An estimate as text: `12.3 (11.9 to 12.8)`.
pub fn told(estimate: &Estimate) -> String {
    use crate::text::number;
    let (value, low, high) = (estimate.value, estimate.low, estimate.high);
    format!("{} ({} to {})", number(value), number(low), number(high))
}
