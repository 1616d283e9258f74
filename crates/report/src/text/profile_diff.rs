//! How two profiles differ: the answer, the functions, the stacks, the settings behind it.

use super::Style;
use super::page::{Ink, Page, chain, clip};
use crate::visible::visible;
use pagewise_model::profile_diff::{
    Change, Measure, ProfileDiff, SettingChange, Side, StackChange,
};
use pagewise_model::quantity::{count, percent};
use pagewise_model::units::{Estimate, Nanos};

/// Lines of the table of functions.
const FUNCTIONS: usize = 20;
/// Causes of missing names shown.
const UNKNOWN: usize = 4;
/// Stacks shown.
const STACKS: usize = 6;
/// Settings shown that are not known to touch what changed.
const OTHER_SETTINGS: usize = 8;

/// The comparison as text of at most `width` columns, clamped to 60–200.
#[must_use]
pub fn render(diff: &ProfileDiff, width: usize, style: Style) -> String {
    let mut page = Page::new(width.clamp(super::WIDTHS.0, super::WIDTHS.1), style);
    let found = diff.functions.iter().any(|change| change.significant);
    let ink = if found { Ink::Caution } else { Ink::Good };
    let of_runs = diff.run.as_ref().filter(|run| !run.headline.is_empty());
    match of_runs {
        None => page.marked("● diff", ink, &visible(&diff.headline)),
        Some(run) => {
            page.marked("● diff", Ink::Caution, &visible(&run.headline));
            page.paragraph("", Ink::Plain, &visible(&diff.headline));
        }
    }
    page.gap();
    for (label, side) in [("A", &diff.a), ("B", &diff.b)] {
        page.paragraph(label, Ink::Plain, &side_line(side));
    }
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

fn side_line(side: &Side) -> String {
    let mut line = format!("{}: {} samples", visible(&side.name), count(side.samples));
    if side.span.0 > 0 {
        line.push_str(&format!(" over {}", side.span));
    }
    if side.cpus > 0 {
        line.push_str(&format!(", {} CPUs", side.cpus));
    }
    if !side.host.is_empty() {
        line.push_str(&format!(", host {}", visible(&side.host)));
    }
    line
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
    let head = format!("  {:>9} {:>9}   {:<24}", "A", "B", "change [95 %]");
    let head = page.paint(Ink::Faint, &head);
    page.line(&head);
    for change in diff.functions.iter().take(FUNCTIONS) {
        let line = function_line(page, change, diff.measure);
        page.line(&line);
    }
    page.more(diff.functions.len(), FUNCTIONS);
}

fn function_line(page: &Page, change: &Change, measure: Measure) -> String {
    let (a, b) = (short(change.a, measure), short(change.b, measure));
    let interval = interval(&change.change, measure);
    let (mark, ink) = mark(change.significant, change.change.value);
    let room = page.width.saturating_sub(52).max(16);
    let name = clip(&visible(&change.name), room);
    let module = match &*change.module {
        "" => String::new(),
        module => page.paint(Ink::Faint, &format!("  {}", visible(module))),
    };
    let interval = page.paint(ink, &format!("{mark} {interval:<26}"));
    format!("  {a:>9} {b:>9}  {interval} {name}{module}")
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

pub(super) fn setting_line(setting: &SettingChange) -> String {
    let value = |value: &Option<String>| match value {
        Some(value) => visible(value).into_owned(),
        None => "absent".to_owned(),
    };
    format!(
        "{}: {} in A, {} in B",
        visible(&setting.name),
        value(&setting.a),
        value(&setting.b)
    )
}

fn counters(page: &mut Page, diff: &ProfileDiff) {
    if diff.counters.is_empty() {
        return;
    }
    page.heading("Counters a second, and ratios");
    for counter in &diff.counters {
        let change = match counter.a {
            0.0 => String::new(),
            a => pagewise_model::quantity::relative_change(counter.b / a),
        };
        let name = visible(&counter.name);
        page.line(&format!(
            "  {:>16} {:>16} {change:>10}  {name}",
            figure(counter.a, &counter.name),
            figure(counter.b, &counter.name)
        ));
    }
}

fn figure(value: f64, name: &str) -> String {
    match value {
        // Clocks count nanoseconds: a second of them each second is a CPU.
        value if name.ends_with("-clock") => format!("{:.2} CPUs", value / 1e9),
        value if value >= 100.0 => pagewise_model::quantity::rounded(value),
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
    let digits = |value: f64| match measure {
        Measure::ShareOfBusy | Measure::CpusInUse => format!("{:+.2}", 100.0 * value),
        Measure::PerSecond => format!("{value:+.1}"),
        Measure::CpuSecondsPerRun => format!("{value:+.*}", decimals(change)),
        Measure::EventsPerRun => format!("{value:+.0}"),
    };
    let unit = match measure {
        Measure::ShareOfBusy | Measure::CpusInUse => " %",
        Measure::CpuSecondsPerRun => " s",
        Measure::PerSecond | Measure::EventsPerRun => "",
    };
    format!(
        "{}{unit} [{}, {}]",
        digits(change.value),
        digits(change.low),
        digits(change.high)
    )
}

/// Digits behind the point at which an interval of seconds shows something.
fn decimals(change: &Estimate) -> usize {
    match (change.high - change.low).abs() {
        width if width >= 0.1 => 2,
        width if width >= 0.01 => 3,
        _ => 4,
    }
}

fn short(value: f64, measure: Measure) -> String {
    match measure {
        Measure::ShareOfBusy | Measure::CpusInUse => format!("{:.2} %", 100.0 * value),
        Measure::PerSecond => format!("{value:.1}"),
        Measure::CpuSecondsPerRun => Nanos::from_secs_f64(value).to_string(),
        Measure::EventsPerRun => format!("{value:.0}"),
    }
}

fn amount(value: f64, measure: Measure) -> String {
    match measure {
        Measure::ShareOfBusy => format!("{:.2} % of the samples", 100.0 * value),
        Measure::CpusInUse => format!("{:.2} % of a CPU", 100.0 * value),
        Measure::PerSecond => format!("{value:.1} per second"),
        Measure::CpuSecondsPerRun => format!("{} of CPU time", Nanos::from_secs_f64(value)),
        Measure::EventsPerRun => format!("{value:.0} per run"),
    }
}
