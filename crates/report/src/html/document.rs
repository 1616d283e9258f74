//! Any document as a page: the parts that it has, each in the form that the page reads.
//!
//! The page has one list of sections (`web/src/sections/index.ts`); each section is shown if its
//! part is present.

use super::bytes::Columns;
use super::faults::Faults;
use super::head::Head;
use super::memory::MemoryPart;
use super::pack::pack;
use super::paths::{Paths, PathsDiff};
use super::samples::{ProfileData, ProfileDiffData};
use super::sheets::{Said, Samples, Sheets};
use super::{DATA_LIMIT, Encoded, Error, TEXT_STYLE, TEXT_WIDTH, TRACE_DATA_LIMIT, encode, page};
use crate::text;
use crate::visible::{command_line, named};
use pagewise_model::answer::{Document, Evidence};
use pagewise_model::balance::Balance;
use pagewise_model::fault_diff::FaultDiff;
use pagewise_model::fault_paths::FaultPaths;
use pagewise_model::findings::Findings;
use pagewise_model::huge_simulation::HugeSimulation;
use pagewise_model::memory::Memory;
use pagewise_model::paging::PagingTimeline;
use pagewise_model::profile::Profile;
use pagewise_model::profile_diff::ProfileDiff;
use pagewise_model::profile_findings::ProfileFindings;
use pagewise_model::run_diff::RunDiff;
use serde::Serialize;

/// The content of a page (`web/src/data/page.ts`): each part that is present.
#[derive(Serialize)]
struct Page<'a> {
    generator: String,
    /// The observed command, or the files.
    subject: String,
    /// The fields common to all documents.
    #[serde(flatten)]
    head: Head<'a>,
    /// Faults of a recording: causes, costs, advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<Faults<'a>>,
    /// Where memory is.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryPart<'a>>,
    /// CPU samples and other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileData<'a>>,
    /// Faults of a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Paths>,
    /// A run under user-level paging.
    #[serde(skip_serializing_if = "Option::is_none")]
    paging: Option<&'a PagingTimeline>,
    /// Huge pages of running programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<&'a Balance>,
    /// Simulated page sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulation: Option<&'a HugeSimulation>,
    /// Two whole runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_diff: Option<&'a RunDiff>,
    /// Two profiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile_diff: Option<ProfileDiffData<'a>>,
    /// Two traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    paths_diff: Option<PathsDiff>,
    /// Tables, where an answer has no parts of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    sheets: Option<&'a Sheets>,
    /// Samples beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<Samples<'a>>,
}

impl<'a> Page<'a> {
    /// Starts with the head of a document, without any part.
    fn of_document(document: &'a Document<impl Evidence>, subject: impl Into<String>) -> Self {
        Self::with(Head::new(document), subject.into())
    }

    /// Starts with what is said without a document.
    fn said(said: &'a Said<'a>) -> Self {
        Self::with(Head::said(said), said.subject.to_owned())
    }

    fn with(head: Head<'a>, subject: String) -> Self {
        Self {
            generator: format!("pagewise {}", env!("CARGO_PKG_VERSION")),
            subject,
            head,
            faults: None,
            memory: None,
            profile: None,
            paths: None,
            paging: None,
            balance: None,
            simulation: None,
            run_diff: None,
            profile_diff: None,
            paths_diff: None,
            sheets: None,
            samples: None,
        }
    }

    /// The page. If its data are too large, the distributions of traces become coarser, then the
    /// smallest frames of the flame graph are left out and counted.
    fn page(mut self, columns: &Columns, text: &str) -> Result<String, Error> {
        let mut encoded = encode(&self)?;
        while !self.fits(&encoded) && self.shrink() {
            encoded = encode(&self)?;
        }
        Ok(page(&encoded, columns, text))
    }

    fn fits(&self, encoded: &Encoded) -> bool {
        let is_of_trace = self.paths.is_some() || self.paths_diff.is_some();
        let limit = if is_of_trace {
            TRACE_DATA_LIMIT
        } else {
            DATA_LIMIT
        };
        encoded.text.len() <= limit
    }

    /// Drops the least important data; returns whether there was any to drop.
    fn shrink(&mut self) -> bool {
        self.paths.as_mut().is_some_and(Paths::shrink)
            || self.paths_diff.as_mut().is_some_and(PathsDiff::shrink)
            || self.faults.as_mut().is_some_and(Faults::shrink)
            || self.memory.as_mut().is_some_and(MemoryPart::shrink)
    }
}

/// The page about a recording's findings.
///
/// # Errors
/// Only if the findings could not be encoded, which the model's types rule out.
pub fn render(findings: &Findings) -> Result<String, Error> {
    let document = Page {
        faults: Some(Faults::new(findings)),
        ..Page::of_document(
            findings,
            named(&findings.subject, findings.collection.whole_machine),
        )
    };
    let text = text::render(findings, TEXT_WIDTH, TEXT_STYLE);
    document.page(&Columns::default(), &text)
}

/// The same, with the samples of the recording called `name`.
///
/// # Errors
/// As [`render`].
pub fn render_with_profile(
    findings: &Findings,
    profile: &Profile,
    name: &str,
) -> Result<String, Error> {
    let mut columns = Columns::default();
    let samples = findings.profile.as_ref();
    let samples = samples.map(|found| ProfileData::new(profile, found, name, &mut columns));
    let document = Page {
        faults: Some(Faults::new(findings)),
        profile: samples.transpose()?,
        ..Page::of_document(
            findings,
            named(&findings.subject, findings.collection.whole_machine),
        )
    };
    let text = text::render(findings, TEXT_WIDTH, TEXT_STYLE);
    document.page(&columns, &text)
}

/// The page about a profile called `name`.
///
/// # Errors
/// As [`render`].
pub fn render_profile(
    profile: &Profile,
    findings: &ProfileFindings,
    name: &str,
) -> Result<String, Error> {
    let mut columns = Columns::default();
    let command = command_line(&profile.command);
    let subject = if command.is_empty() { name } else { &command };
    let document = Page {
        profile: Some(ProfileData::new(
            profile,
            &findings.evidence,
            name,
            &mut columns,
        )?),
        ..Page::of_document(findings, subject)
    };
    let text = text::profile::render(findings, TEXT_WIDTH, TEXT_STYLE);
    document.page(&columns, &text)
}

/// The page about the comparison of two profiles.
///
/// # Errors
/// As [`render`].
pub fn render_profile_diff(
    diff: &Document<ProfileDiff>,
    a: &Profile,
    b: &Profile,
) -> Result<String, Error> {
    let mut columns = Columns::default();
    let text = text::profile_diff::render(diff, TEXT_WIDTH, TEXT_STYLE);
    let document = Page {
        run_diff: diff.run.as_ref(),
        profile_diff: Some(ProfileDiffData::new(diff, a, b, &mut columns)?),
        ..Page::of_document(diff, against(&diff.a.name, &diff.b.name))
    };
    document.page(&columns, &text)
}

/// The page about the comparison of two whole runs, without samples.
///
/// # Errors
/// As [`render`].
pub fn render_run_diff(diff: &Document<RunDiff>, text: &str) -> Result<String, Error> {
    let document = Page {
        run_diff: Some(&diff.evidence),
        ..Page::of_document(diff, against(&diff.a.name, &diff.b.name))
    };
    document.page(&Columns::default(), text)
}

/// The page about the faults of the trace called `name`.
///
/// # Errors
/// As [`render`].
pub fn render_fault_paths(findings: &FaultPaths, name: &str) -> Result<String, Error> {
    let document = Page {
        paths: Some(Paths::new(findings)?),
        ..Page::of_document(findings, name)
    };
    let text = crate::fault_paths::render(findings, TEXT_WIDTH, TEXT_STYLE);
    document.page(&Columns::default(), &text)
}

/// The page about the comparison of two traces; `text` is shown by a browser without scripts.
///
/// # Errors
/// As [`render`].
pub fn render_fault_diff(diff: &Document<FaultDiff>, text: &str) -> Result<String, Error> {
    let sides = [("A", &diff.a.losses), ("B", &diff.b.losses)];
    let losses = sides.into_iter().flat_map(|(letter, losses)| {
        let message = losses.descriptions();
        message.map(move |lost| format!("{letter}: {lost}"))
    });
    let mut document = Page {
        paths_diff: Some(PathsDiff::new(diff)?),
        ..Page::of_document(diff, against(&diff.a.name, &diff.b.name))
    };
    document.head.losses.extend(losses);
    document.page(&Columns::default(), text)
}

/// The page about a run under user-level paging.
///
/// # Errors
/// As [`render`].
pub fn render_paging(found: &Document<PagingTimeline>) -> Result<String, Error> {
    let document = Page {
        paging: Some(&found.evidence),
        ..Page::of_document(found, command_line(&found.subject.command))
    };
    let text = text::paging_timeline::render(found, TEXT_WIDTH, TEXT_STYLE);
    document.page(&Columns::default(), &text)
}

/// The page about where memory is.
///
/// # Errors
/// As [`render`].
pub fn render_memory(document: &Document<Memory>, text: &str) -> Result<String, Error> {
    let page = Page {
        memory: Some(MemoryPart::new(document)),
        ..Page::of_document(document, crate::text::memory::subject(document))
    };
    page.page(&Columns::default(), text)
}

/// The page about huge pages of running programs.
///
/// # Errors
/// As [`render`].
pub fn render_huge_balance(found: &Document<Balance>, text: &str) -> Result<String, Error> {
    let processes = || found.evidence.processes.iter();
    let named = processes().map(|one| format!("{} ({})", one.comm, one.pid));
    let subject = match command_line(&found.subject.command) {
        command if command.is_empty() => named.collect::<Vec<_>>().join(", "),
        command => command,
    };
    let document = Page {
        balance: Some(&found.evidence),
        ..Page::of_document(found, subject)
    };
    document.page(&Columns::default(), text)
}

/// The page about simulated huge pages. Its size is bounded: timelines have a few hundred points,
/// maps at most 128 rows.
///
/// # Errors
/// As [`render`].
pub fn render_huge_simulation(
    found: &Document<HugeSimulation>,
    text: &str,
) -> Result<String, Error> {
    let result = &found.evidence;
    let subject = format!("{} on {}", result.workloads.join(", "), result.machine);
    let document = Page {
        simulation: Some(result),
        ..Page::of_document(found, subject)
    };
    document.page(&Columns::default(), text)
}

/// The page of tables about a document.
///
/// # Errors
/// Only if the tables could not be encoded, which their types rule out.
pub fn render_sheets(
    document: &Document<impl Evidence>,
    subject: &str,
    sheets: &Sheets,
    text: &str,
) -> Result<String, Error> {
    let mut page = Page::of_document(document, subject);
    page.sheets = Some(sheets);
    page.page(&Columns::default(), text)
}

/// The page of tables without a document, with a flame graph of one profile, or of two that are compared.
///
/// # Errors
/// As [`render_sheets`].
pub fn render_sheets_of(
    said: &Said<'_>,
    sheets: &Sheets,
    profiles: &[(&Profile, &str)],
) -> Result<String, Error> {
    let mut columns = Columns::default();
    let samples = match profiles.is_empty() {
        true => None,
        false => Some(Samples {
            pack: pack(profiles, &mut columns)?,
        }),
    };
    let mut page = Page::said(said);
    page.sheets = Some(sheets);
    page.samples = samples;
    page.page(&columns, said.text)
}

fn against(a: &str, b: &str) -> String {
    format!("{a} against {b}")
}
