//! Pages of answers that are tables: of fleets, and of commands whose documents have no plots of their own.

use super::pack::Pack;
use pagewise_model::units::Estimate;
use serde::Serialize;

/// What a page of tables shows besides its verdict (`web/src/data/sheets.ts`).
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sheets {
    /// What the answer is, in a word or two, and whether that is good news.
    pub badge: (String, Tone),
    /// Figures of the first screen.
    pub tiles: Vec<Tile>,
    /// The tables, each a part of the page.
    pub sheets: Vec<Sheet>,
}

/// Whether a badge or a cell is bad news, good news, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Something is wrong.
    Bad,
    /// All is well.
    Good,
    /// Neither.
    #[default]
    Neutral,
}

/// A figure of the first screen.
#[derive(Clone, Debug, Serialize)]
pub struct Tile {
    /// What it is.
    pub name: String,
    /// With its unit.
    pub figure: String,
    /// What belongs to it.
    pub note: String,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sheet {
    /// What a link to it ends in.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Its name in the navigation; empty to leave it out there.
    pub nav: String,
    /// How to read it; may be empty.
    pub intro: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with as many cells.
    pub rows: Vec<Vec<Cell>>,
    /// Rows that there are besides.
    pub more: usize,
    /// A plot above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scatter: Option<Scatter>,
    /// Whether it is closed until somebody opens it or follows a link to it.
    pub is_folded: bool,
}

/// Two figures of each of several things.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scatter {
    /// What is plotted.
    pub title: String,
    /// To the right.
    pub across: String,
    /// Upwards.
    pub up: String,
    /// The things.
    pub points: Vec<Spot>,
}

/// A point of a plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spot {
    /// What it is.
    pub name: String,
    /// To the right, and as it is read.
    pub x: (f64, String),
    /// Upwards, and as it is read.
    pub y: (f64, String),
    /// Whether no other beats it.
    pub is_best: bool,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its head.
    pub head: String,
    /// How its cells look.
    pub look: Look,
}

/// How the cells of a column look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Look {
    /// Words.
    Text,
    /// Names of functions, settings, files.
    Code,
    /// Text to copy, of one line or more.
    Command,
    /// Figures, right-aligned.
    Number,
    /// Figures with bars as long as their values.
    Bar,
    /// Intervals, each around its value.
    Interval,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// As it is read.
    pub text: String,
    /// What a bar or an interval is drawn from; absent where there is no figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// A second line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Where the text leads: a part of the page (`#…`), or a file next to it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub link: String,
    /// Whether it is good or bad news.
    #[serde(skip_serializing_if = "Tone::is_neutral")]
    pub tone: Tone,
}

impl Tone {
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_neutral(&self) -> bool {
        *self == Self::Neutral
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Cell {
    /// A figure.
    #[must_use]
    pub fn figure(text: String, value: f64) -> Self {
        Self {
            value: value.is_finite().then_some(value),
            ..text.into()
        }
    }

    /// A figure with its interval.
    #[must_use]
    pub fn estimate(text: String, found: &Estimate) -> Self {
        Self {
            interval: Some((found.low, found.high)),
            ..Self::figure(text, found.value)
        }
    }

    /// The same cell with a second line.
    #[must_use]
    pub fn with_note(self, note: impl Into<String>) -> Self {
        Self {
            note: note.into(),
            ..self
        }
    }

    /// The same cell as a link.
    #[must_use]
    pub fn leading_to(self, link: impl Into<String>) -> Self {
        Self {
            link: link.into(),
            ..self
        }
    }

    /// The same cell as good or bad news.
    #[must_use]
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

/// What is said beside the tables where there is no document of the model.
#[derive(Debug, Default)]
pub struct Said<'a> {
    /// What the page is about.
    pub subject: &'a str,
    /// The answer.
    pub verdict: &'a str,
    /// What is missing.
    pub losses: Vec<String>,
    /// What a reader should know.
    pub notes: &'a [String],
    /// The same as text, for a browser without scripts.
    pub text: &'a str,
}

/// Samples of a page of tables: one profile, or two that are compared.
#[derive(Serialize)]
pub(super) struct Samples<'a> {
    pub(super) pack: Pack<'a>,
}
