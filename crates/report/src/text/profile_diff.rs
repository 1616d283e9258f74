//! The differences between two profiles: the answer, the functions, the stacks, the settings behind
//! them.

use super::Style;
use super::columns::{Row, figures, named, words};
use super::page::{Ink, Page, chain, clip};
use super::sides::{setting_line, sides};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::profile_diff::{Change, Measure, ProfileDiff, StackChange, Weighed};
use pagewise_model::quantity::{
    change_interval, counted, percent, percent_fine, points_interval, relative_change, rounded,
};
use pagewise_model::run_diff::RunDiff;
use pagewise_model::units::{Estimate, Nanos};

/// Lines of the table of functions.
const FUNCTIONS: usize = 20;
/// Causes of missing names shown.
const UNKNOWN: usize = 4;
/// Stacks shown.
const STACKS: usize = 6;
/// Settings shown without a known relation to the change.
const OTHER_SETTINGS: usize = 8;

/// The comparison as text of at most `width` columns, clamped to 60–200.
#[must_use]
pub fn render(diff: &Document<ProfileDiff>, width: usize, style: Style) -> String {
    let mut page = Page::new(width, style);
    let found = diff.functions.iter().any(|change| change.significant);
    let ink = match found || diff.run.as_ref().is_some_and(RunDiff::differs) {
        true => Ink::Caution,
        false => Ink::Good,
    };
    page.marked("● diff", ink, &visible(&diff.verdict));
    page.gap();
    sides(&mut page, &diff.a, &diff.b, weighed);
    page.paragraph("Method", Ink::Faint, &method(diff));
    for note in &diff.notes {
        page.paragraph("Note", Ink::Faint, &visible(note));
    }
    if let Some(run) = &diff.run {
        super::run_diff::runs(&mut page, run);
    }
    settings(&mut page, diff);
    functions(&mut page, diff);
    unknown(&mut page, diff);
    stacks(&mut page, diff);
    counters(&mut page, diff);
    page.finish()
}

fn weighed(side: &Weighed) -> Vec<String> {
    let samples = counted(side.samples, "sample");
    let cpus = counted(u64::from(side.cpus), "CPU");
    vec![
        match side.span.0 {
            0 => samples,
            _ => format!("{samples} over {}", side.span),
        },
        if side.cpus > 0 { cpus } else { String::new() },
    ]
}

fn method(diff: &ProfileDiff) -> String {
    let what = match diff.measure {
        Measure::ShareOfBusy => "shares of the samples",
        Measure::CpusInUse => "CPU time by elapsed time",
        Measure::PerSecond => "events per second",
        Measure::CpuSecondsPerRun => "CPU time of a whole run",
        Measure::EventsPerRun => "events of a whole run",
    };
    let blocks = match diff.block.0 {
        0 => String::new(),
        _ => format!(
            " in {} and {} blocks of {}",
            diff.blocks.0, diff.blocks.1, diff.block
        ),
    };
    let what = format!("{} as {what}{blocks}", visible(&diff.event));
    match diff.detectable.is_finite() && diff.detectable > 0.0 {
        true => format!(
            "{what}; a change of {} in one of the large functions would have been found four times \
             in five",
            amount(diff.detectable, diff.measure)
        ),
        false => what,
    }
}

fn functions(page: &mut Page, diff: &ProfileDiff) {
    if diff.functions.is_empty() {
        return;
    }
    page.heading("Functions with what they call (* where chance alone is below 5 %, all together)");
    let b = diff.divisor().map(|factor| format!("B ÷ {factor:.2}"));
    let heads = [
        figures("A"),
        figures(b.as_deref().unwrap_or("B")),
        words(""),
        words("change [95 %]"),
        words("function"),
        words("module"),
    ];
    let room = page.width.saturating_sub(55).max(30);
    let shown = diff.functions.iter().take(FUNCTIONS);
    let rows = shown.map(|change| function_row(change, diff.measure, room));
    page.rows(&heads, rows);
    page.more(diff.functions.len(), FUNCTIONS);
}

fn function_row(change: &Change, measure: Measure, room: usize) -> Row {
    let (mark, ink) = mark(change.significant, change.change.value);
    Row::new([
        short(change.a, measure),
        short(change.b, measure),
        mark.to_owned(),
        interval(&change.change, measure),
        clip(&visible(&change.name), room),
        visible(&change.module).into_owned(),
    ])
    .in_ink(ink)
}

fn unknown(page: &mut Page, diff: &ProfileDiff) {
    if diff.unknown.is_empty() {
        return;
    }
    page.heading("Frames without a name");
    for cause in diff.unknown.iter().take(UNKNOWN) {
        let shares = format!("{} of A, {} of B: ", percent(cause.a), percent(cause.b));
        page.bullet("", &(shares + &visible(&cause.remedy)));
    }
    page.more(diff.unknown.len(), UNKNOWN);
}

fn stacks(page: &mut Page, diff: &ProfileDiff) {
    let telling: Vec<&StackChange> = diff
        .stacks
        .iter()
        .filter(|stack| stack.significant)
        .collect();
    if telling.is_empty() {
        return;
    }
    page.heading("Stacks that changed");
    for stack in telling.iter().take(STACKS) {
        let (mark, ink) = mark(true, stack.change.value);
        let interval = interval(&stack.change, diff.measure);
        let figures = page.paint(ink, &format!("{mark} {interval:<26}"));
        let room = page.width.saturating_sub(34);
        page.line(&format!("  {figures} {}", chain(&stack.frames, room)));
    }
    page.more(telling.len(), STACKS);
}

fn settings(page: &mut Page, diff: &ProfileDiff) {
    if diff.settings.is_empty() {
        return;
    }
    page.heading("Settings that differ");
    let (touching, others): (Vec<_>, Vec<_>) = diff
        .settings
        .iter()
        .partition(|setting| !setting.touches.is_empty());
    for setting in touching {
        page.bullet("", &setting_line(setting));
        let touches: Vec<_> = setting
            .touches
            .iter()
            .take(4)
            .map(|name| visible(name))
            .collect();
        let text = format!("touches {}: {}", touches.join(", "), setting.reason);
        page.paragraph("", Ink::Faint, &text);
    }
    for setting in others.iter().take(OTHER_SETTINGS) {
        page.bullet("", &setting_line(setting));
    }
    page.more(others.len(), OTHER_SETTINGS);
}

fn counters(page: &mut Page, diff: &ProfileDiff) {
    let rows = diff.counters.iter().map(|counter| {
        let change = match counter.a {
            0.0 => String::new(),
            a => relative_change(counter.b / a),
        };
        Row::new([
            visible(&counter.name).into_owned(),
            figure(counter.a, &counter.name),
            figure(counter.b, &counter.name),
            change,
        ])
    });
    let heads = named("counter", &["A", "B", "change"]);
    let title = "Counters per second, and ratios";
    page.table(title, &heads, rows);
}

fn figure(value: f64, name: &str) -> String {
    match value {
        // Clocks count nanoseconds: one second of them per second is one CPU.
        value if name.ends_with("-clock") => format!("{:.2} CPUs", value / 1e9),
        value if value >= 100.0 => rounded(value),
        value => format!("{value:.3}"),
    }
}

fn mark(significant: bool, change: f64) -> (&'static str, Ink) {
    match (significant, change > 0.0) {
        (false, _) => (" ", Ink::Plain),
        (true, true) => ("*", Ink::Bad),
        (true, false) => ("*", Ink::Good),
    }
}

fn interval(change: &Estimate, measure: Measure) -> String {
    match measure {
        Measure::ShareOfBusy | Measure::CpusInUse => points_interval(change),
        Measure::PerSecond => change_interval(change, "", 1),
        Measure::CpuSecondsPerRun => change_interval(change, " s", decimals(change)),
        Measure::EventsPerRun => change_interval(change, "", 0),
    }
}

/// Decimal places at which an interval in seconds becomes visible.
fn decimals(change: &Estimate) -> usize {
    match (change.high - change.low).abs() {
        width if width >= 0.1 => 2,
        width if width >= 0.01 => 3,
        _ => 4,
    }
}

fn short(value: f64, measure: Measure) -> String {
    match measure {
        Measure::ShareOfBusy | Measure::CpusInUse => percent_fine(value),
        Measure::PerSecond => format!("{value:.1}"),
        Measure::CpuSecondsPerRun => Nanos::from_secs_f64(value).to_string(),
        Measure::EventsPerRun => format!("{value:.0}"),
    }
}

fn amount(value: f64, measure: Measure) -> String {
    match measure {
        Measure::ShareOfBusy => format!("{} of the samples", percent_fine(value)),
        Measure::CpusInUse => format!("{} of a CPU", percent_fine(value)),
        Measure::PerSecond => format!("{value:.1} per second"),
        Measure::CpuSecondsPerRun => format!("{} of CPU time", Nanos::from_secs_f64(value)),
        Measure::EventsPerRun => format!("{value:.0} per run"),
    }
}
