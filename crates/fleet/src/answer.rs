//! Answers: a document of the shape that all of Pagewise's documents have, and its text.

use crate::data::Unusable;
use crate::text::{Table, number};
use pagewise_model::answer::SCHEMA_VERSION;
use pagewise_model::profile::Profile;
use pagewise_model::quantity::counted;
use pagewise_model::units::Estimate;
use pagewise_report::html::sheets::{Tile, Tone};
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
    /// Tables about single hosts, which only pages have.
    #[serde(skip)]
    pub details: Vec<Table>,
    /// What the answer is in a word or two, and its first figures, for a page.
    #[serde(skip)]
    pub badge: (String, Tone),
    #[serde(skip)]
    pub tiles: Vec<Tile>,
    /// Samples for a flame graph, if one was asked for.
    #[serde(skip)]
    pub flame: Option<Flame>,
}

/// Samples for a flame graph, with their names.
#[derive(Debug)]
pub enum Flame {
    /// Of all hosts.
    Of(String, Box<Profile>),
    /// Of two sides, that before first.
    Change(Box<[(String, Profile); 2]>),
}

/// What could not be used.
#[derive(Debug, Default, Serialize)]
pub struct Losses {
    /// How many files.
    pub unusable_files: usize,
    /// Which, and why.
    pub files: Vec<Unusable>,
    /// Hosts with such files: what they use is not known, or only from their other recordings.
    pub incomplete_hosts: Vec<String>,
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
            details: Vec::new(),
            badge: (String::new(), Tone::Neutral),
            tiles: Vec::new(),
            flame: None,
        }
    }

    /// The same, with files that were left out and the hosts that they belong to.
    pub fn without(mut self, files: Vec<Unusable>, incomplete_hosts: Vec<String>) -> Self {
        self.losses = Losses {
            unusable_files: files.len(),
            files,
            incomplete_hosts,
        };
        self
    }

    /// The same with these notes.
    pub fn with_notes(mut self, notes: impl Iterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// The same with a flame graph.
    pub fn with_flame(mut self, flame: Option<Flame>) -> Self {
        self.flame = flame;
        self
    }

    /// The same with the first screen of a page.
    pub fn shown_as(mut self, badge: &str, tone: Tone, tiles: Vec<Tile>) -> Self {
        self.badge = (badge.to_owned(), tone);
        self.tiles = tiles;
        self
    }

    /// The same with tables about single hosts.
    pub fn with_details(mut self, details: Vec<Table>) -> Self {
        self.details = details;
        self
    }

    /// What was left out, in lines: first what it means, then the files.
    pub fn left_out(&self) -> Vec<String> {
        let Losses {
            files,
            incomplete_hosts: hosts,
            ..
        } = &self.losses;
        if files.is_empty() {
            return Vec::new();
        }
        let files_told = counted(files.len() as u64, "file");
        let first = match &**hosts {
            [] => format!("{files_told} cannot be used"),
            [host] => format!(
                "{files_told} cannot be used: recordings of {host} are left out, and what they would add is not known"
            ),
            hosts => format!(
                "{files_told} cannot be used: recordings of {} hosts are left out, and what they would add is not \
                 known: {}",
                hosts.len(),
                some(hosts)
            ),
        };
        let named = files.iter().take(NAMED_FILES);
        let named = named.map(|file| format!("{}: {}", file.path, file.reason));
        let more = files.len().checked_sub(NAMED_FILES + 1);
        let more = more.map(|more| {
            format!(
                "… and {} (--json names all)",
                counted(more as u64 + 1, "more file")
            )
        });
        std::iter::once(first).chain(named).chain(more).collect()
    }

    /// As text for a terminal: what was left out stands first.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let left_out = self.left_out();
        for (at, line) in left_out.iter().enumerate() {
            let _ = writeln!(out, "{}{line}", if at == 0 { "Incomplete: " } else { "  " });
        }
        if !left_out.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "{}", self.verdict);
        for table in &self.tables {
            let _ = write!(out, "\n{}", table.text());
        }
        for note in &self.notes {
            let _ = writeln!(out, "\nNote: {note}");
        }
        out
    }
}

/// The first names of several.
fn some(names: &[String]) -> String {
    const NAMED: usize = 5;
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().checked_sub(NAMED).filter(|&more| more > 0) {
        Some(more) => format!("{first} and {more} more"),
        None => first,
    }
}

/// An estimate of hours as text: `12.3 (11.9 to 12.8)`.
pub fn told(estimate: &Estimate) -> String {
    let (value, low, high) = (estimate.value, estimate.low, estimate.high);
    format!("{} ({} to {})", number(value), number(low), number(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_stands_first() {
        let file = |path: &str| Unusable {
            path: path.to_owned(),
            reason: "it is empty".to_owned(),
        };
        let answer = Answer::new("fleet_top", "63 hosts use 5.".to_owned(), &(), Vec::new());
        let whole = answer.text();
        assert_eq!(whole, "63 hosts use 5.\n");
        let answer = answer.without(vec![file("a/samples.parquet")], vec!["web-4".to_owned()]);
        let text = answer.text();
        assert!(
            text.starts_with("Incomplete: 1 file cannot be used: recordings of web-4 are left out"),
            "{text}"
        );
        assert!(text.ends_with("63 hosts use 5.\n"), "{text}");
        let many: Vec<Unusable> = (0..12).map(|at| file(&at.to_string())).collect();
        let hosts = (0..7).map(|at| format!("h{at}")).collect();
        let lines = Answer::new("fleet_top", String::new(), &(), Vec::new())
            .without(many, hosts)
            .left_out();
        assert!(
            lines[0].ends_with("h0, h1, h2, h3, h4 and 2 more"),
            "{lines:?}"
        );
        assert_eq!(
            (lines.len(), &*lines[11]),
            (12, "… and 2 more files (--json names all)")
        );
    }
}
