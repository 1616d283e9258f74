//! A profile's summary: what is unusual, where the time went, what has no name, what is missing.

use super::Style;
use super::page::{Ink, Page, chain, clip, shorten};
use super::wrap::columns;
use crate::visible::{command_line, visible};
use pagewise_model::findings::{Diagnosis, Severity};
use pagewise_model::profile::{FrameKind, WeightUnit};
use pagewise_model::profile_findings::{
    CounterRate, EventProfile, FunctionShare, ProfileFindings, ProfileSummary,
};
use pagewise_model::quantity::{count, counted, percent, rounded};
use pagewise_model::units::{Bytes, Nanos};

/// Lines of each table.
const LINES: usize = 10;
/// Stacks shown.
const STACKS: usize = 5;
/// Events with tables of their own; the rest have one line each.
const TABLES: usize = 2;
/// Causes of missing names shown.
const UNKNOWN: usize = 5;
/// Facts shown for one diagnosis.
const FACTS: usize = 5;

/// The summary as text of at most `width` columns, clamped to 60–200.
#[must_use]
pub fn render(findings: &ProfileFindings, width: usize, style: Style) -> String {
    let mut page = Page::new(width, style);
    let program = match findings.subject.is_machine() {
        true => findings.host.hostname.clone(),
        false => command_line(&findings.subject.command),
    };
    if !program.is_empty() {
        let program = shorten(&program, page.width.saturating_sub(11));
        let line = page.paint(Ink::Faint, &program);
        let label = page.label("pagewise");
        page.line(&format!("{label}{line}"));
        page.gap();
    }
    answer(&mut page, findings);
    samples(&mut page, &findings.evidence, findings.host.cpus);
    missing(&mut page, findings);
    page.finish()
}

/// The first result of the samples.
fn answer(page: &mut Page, findings: &ProfileFindings) {
    let worst = findings.diagnoses.iter().map(|d| d.severity).max();
    let (word, ink) = match worst {
        Some(Severity::Severe) => ("● severe", Ink::Bad),
        Some(Severity::Costly) => ("● costly", Ink::Caution),
        _ => ("● profile", Ink::Strong),
    };
    page.marked(word, ink, &visible(&findings.verdict));
    also(page, &findings.diagnoses, &findings.verdict);
    page.gap();
}

/// Diagnoses from samples, without the headline `said`, which is already shown.
pub(super) fn also(page: &mut Page, diagnoses: &[Diagnosis], said: &str) {
    for diagnosis in diagnoses.iter().filter(|one| one.is_of_samples()) {
        if diagnosis.headline != said {
            page.gap();
            page.marked("Also", Ink::Caution, &visible(&diagnosis.headline));
        }
        page.paragraph("", Ink::Plain, &visible(&diagnosis.explanation));
        for fact in diagnosis.evidence.iter().take(FACTS) {
            page.bullet("", &visible(fact));
        }
    }
}

/// Where time went, on a machine with this many CPUs (0: unknown).
pub(super) fn samples(page: &mut Page, found: &ProfileSummary, cpus: u32) {
    for event in &found.events {
        page.paragraph("Samples", Ink::Plain, &event_line(event, found.span, cpus));
    }
    counters(page, found);
    for event in found.events.iter().take(TABLES) {
        functions(page, event);
        stacks(page, event);
        processes(page, event);
        cgroups(page, event);
    }
    unknown(page, found);
}

fn event_line(event: &EventProfile, span: Nanos, cpus: u32) -> String {
    let mut line = format!("{} of {}", count(event.samples), visible(&event.name));
    line.push_str(&format!(": {}", weight(event.weight, event.unit)));
    if event.idle > 0 {
        let share = event.weight as f64 / (event.weight + event.idle) as f64;
        line.push_str(&format!(", CPUs {} busy", percent(share)));
    }
    if event.unit == WeightUnit::Nanoseconds && event.idle > 0 && span.0 > 0 {
        let used = event.weight as f64 / span.0 as f64;
        let of = match cpus {
            0 => String::new(),
            cpus => format!(" of {cpus}"),
        };
        line.push_str(&format!(" ({used:.2}{of} in use)"));
    }
    if let Some(hz) = event.frequency {
        line.push_str(&format!(", {hz} per second"));
    }
    if span.0 > 0 {
        line.push_str(&format!(", over {span}"));
    }
    line
}

/// All counters on a line or two.
fn counters(page: &mut Page, found: &ProfileSummary) {
    let one = |rate: &CounterRate| {
        let partly = match rate.counted < 0.99 {
            true => format!(" (counted {} of the time)", percent(rate.counted)),
            false => String::new(),
        };
        match (rate.total, &*rate.name) {
            (None, name) => format!("{:.2} {}{partly}", rate.rate, visible(name)),
            (Some(total), name) if name.ends_with("-clock") => {
                let cpus = rate.rate / 1e9;
                format!(
                    "{} {}, {cpus:.2} CPUs{partly}",
                    Nanos(whole(total)),
                    visible(name)
                )
            }
            (Some(_), name) => format!(
                "{} {} per second{partly}",
                rounded(rate.rate),
                visible(name)
            ),
        }
    };
    let message: Vec<String> = found.counters.iter().map(one).collect();
    if !message.is_empty() {
        page.paragraph("Counters", Ink::Plain, &message.join(" · "));
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates; counts are never negative"
)]
fn whole(count: f64) -> u64 {
    count.round() as u64
}

fn weight(weight: u64, unit: WeightUnit) -> String {
    match unit {
        WeightUnit::Nanoseconds => Nanos(weight).to_string(),
        WeightUnit::Events => counted(weight, "event"),
        WeightUnit::Samples => counted(weight, "sample"),
        WeightUnit::Bytes => Bytes(weight).to_string(),
    }
}

fn missing(page: &mut Page, findings: &ProfileFindings) {
    page.gap();
    for lost in findings.losses.descriptions() {
        page.paragraph("Missing", Ink::Caution, &lost);
    }
    for note in &findings.notes {
        page.paragraph("Note", Ink::Faint, &visible(note));
    }
    if let Some(cost) = findings.own_cost.filter(|cost| cost.0 > 0) {
        let text = format!("recording cost the observed programs about {cost} (estimated)");
        page.paragraph("Cost", Ink::Faint, &text);
    }
}

fn functions(page: &mut Page, event: &EventProfile) {
    if event.functions.is_empty() {
        return;
    }
    page.heading(&format!(
        "Functions by {} of their own",
        visible(&event.name)
    ));
    let room = page.width.saturating_sub(24);
    let head = page.paint(Ink::Faint, &format!("  {:>7} {:>9}", "own", "with all"));
    page.line(&head);
    for function in event.functions.iter().take(LINES) {
        let line = function_line(page, function, event.weight, room);
        page.line(&line);
    }
    page.more(event.functions.len(), LINES);
}

fn function_line(page: &Page, function: &FunctionShare, all: u64, room: usize) -> String {
    let share = |weight: u64| percent(weight as f64 / all.max(1) as f64);
    let name = visible(&function.name);
    let module = match (&*function.module, function.kind) {
        ("", _) => String::new(),
        (module, FrameKind::Inlined) => format!("  {} (inlined)", visible(module)),
        (module, _) => format!("  {}", visible(module)),
    };
    let name = clip(&name, room.saturating_sub(columns(&module)).max(20));
    let module = page.paint(Ink::Faint, &module);
    format!(
        "  {:>7} {:>9}  {name}{module}",
        share(function.own),
        share(function.total)
    )
}

fn stacks(page: &mut Page, event: &EventProfile) {
    if event.stacks.is_empty() {
        return;
    }
    page.heading(&format!("Stacks by {}", visible(&event.name)));
    let room = page.width.saturating_sub(11);
    for stack in event.stacks.iter().take(STACKS) {
        let share = percent(stack.weight as f64 / event.weight.max(1) as f64);
        page.line(&format!("  {share:>7}  {}", chain(&stack.frames, room)));
    }
    page.more(event.stacks.len(), STACKS);
}

fn cgroups(page: &mut Page, event: &EventProfile) {
    if event.cgroups.len() < 2 {
        return;
    }
    page.heading(&format!("Control groups by {}", visible(&event.name)));
    for cgroup in event.cgroups.iter().take(LINES) {
        let share = percent(cgroup.weight as f64 / event.weight.max(1) as f64);
        let room = page.width.saturating_sub(11);
        page.line(&format!(
            "  {share:>7}  {}",
            clip(&visible(&cgroup.path), room)
        ));
    }
    page.more(event.cgroups.len(), LINES);
}

fn processes(page: &mut Page, event: &EventProfile) {
    if event.processes.len() < 2 {
        return;
    }
    page.heading(&format!("Processes by {}", visible(&event.name)));
    for process in event.processes.iter().take(LINES) {
        let share = percent(process.weight as f64 / event.weight.max(1) as f64);
        let threads = match process.threads {
            1 => String::new(),
            threads => page.paint(Ink::Faint, &format!("  {threads} threads")),
        };
        let name = visible(&process.comm);
        page.line(&format!("  {share:>7}  {name} {}{threads}", process.pid));
    }
    page.more(event.processes.len(), LINES);
}

fn unknown(page: &mut Page, found: &ProfileSummary) {
    if found.unknown.is_empty() {
        return;
    }
    page.heading("Frames without a name");
    for cause in found.unknown.iter().take(UNKNOWN) {
        page.paragraph(
            &format!("{:>9}", percent(cause.touched)),
            Ink::Plain,
            &visible(&cause.remedy),
        );
    }
    page.more(found.unknown.len(), UNKNOWN);
}
