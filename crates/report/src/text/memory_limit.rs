//! The smallest memory limit, for a person.

use super::Style;
use super::columns::{Row, named};
use super::page::{Ink, Page, shorten};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::memory_limit::{LimitOutcome, LimitRun, MemoryLimit, StallMeasure};
use pagewise_model::quantity::percent;
use pagewise_model::units::Bytes;

/// The limit, lines that set it, and all runs, as text of at most `width` columns.
#[must_use]
pub fn render(document: &Document<MemoryLimit>, width: usize, style: Style) -> String {
    let found = &document.evidence;
    let mut page = Page::new(width, style);
    let command = document.subject.command.join(" ");
    let line = shorten(&visible(&command), page.width.saturating_sub(11));
    let line = page.paint(Ink::Faint, &line);
    let label = page.label("pagewise");
    page.line(&format!("{label}{line}"));
    page.gap();
    let (word, ink) = match found.smallest {
        Some(_) => ("● limit", Ink::Good),
        None => ("● unknown", Ink::Strong),
    };
    page.marked(word, ink, &visible(&document.verdict));
    page.gap();
    if let Some(limit) = found.smallest {
        set(&mut page, limit);
    }
    let mut runs: Vec<&LimitRun> = found.runs.iter().collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.limit.unwrap_or(Bytes(u64::MAX))));
    let rows = runs.into_iter().map(|run| {
        Row::new([
            run.limit
                .map_or("none".to_owned(), |limit| limit.to_string()),
            outcome(run).to_owned(),
            run.stalled.map_or("–".to_owned(), percent),
            run.elapsed().to_string(),
            run.peak.map_or("–".to_owned(), |peak| peak.to_string()),
        ])
    });
    let heads = named("limit", &["outcome", "waited", "elapsed", "largest"]);
    page.table("Runs", &heads, rows);
    page.gap();
    page.paragraph("Note", Ink::Plain, measure(found));
    page.paragraph(
        "",
        Ink::Plain,
        "Pages of files that other processes have read are charged to these: on a machine that has just started, the program needs room for them, too. With less memory than this, pagewise run --memory SIZE -- CMD keeps the rest on disk.",
    );
    page.finish()
}

/// Lines for those who set limits, in whole MiB.
fn set(page: &mut Page, limit: Bytes) {
    let mib = limit.0.div_ceil(1 << 20);
    page.paragraph("Set", Ink::Strong, "One of these:");
    page.gap();
    page.verbatim(
        "",
        &format!(
            "Kubernetes   resources: {{limits: {{memory: {mib}Mi}}}}\nsystemd      MemoryMax={mib}M\nDocker       docker run --memory {mib}m"
        ),
    );
    page.gap();
}

fn outcome(run: &LimitRun) -> &'static str {
    match run.outcome {
        LimitOutcome::Fits => "fits",
        LimitOutcome::Stalled => "waits",
        LimitOutcome::Killed => "killed (out of memory)",
        LimitOutcome::Failed => "fails",
        LimitOutcome::Endless => "takes too long",
    }
}

fn measure(found: &MemoryLimit) -> &'static str {
    match found.measure {
        StallMeasure::Pressure => {
            "Waited: part of the elapsed time in which a task waited for memory (memory.pressure). A run fits if that is at most 1 % more than without a limit."
        }
        StallMeasure::Delays => {
            "Waited: what all tasks together waited for reclaim, refaults and swap (taskstats), as a part of the elapsed time. A run fits if that is at most 1 % more than without a limit."
        }
        StallMeasure::Time => {
            "Waits for memory cannot be counted here: a run fits if it takes at most a tenth longer than without a limit."
        }
    }
}
