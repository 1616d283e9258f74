//! The course of a run under user-level paging, for a terminal.

use super::Style;
use super::page::{Ink, Page};
use crate::visible::{command_line, visible};
use pagewise_model::answer::Document;
use pagewise_model::paging::{PagingPoint, PagingTimeline};
use pagewise_model::quantity::{count, percent, rounded, share};
use pagewise_model::units::Bytes;

const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns for the name and the highest value next to a course.
const BESIDE: usize = 46;

/// A line: its name, its value at a point (given the previous point), and its format.
type Row = (
    &'static str,
    fn(&PagingPoint, &PagingPoint) -> f64,
    fn(f64) -> String,
);

const ROWS: [Row; 8] = [
    ("resident", |_, now| float(now.resident_bytes), bytes),
    ("not managed", |_, now| float(now.unmanaged_bytes), bytes),
    ("in the store", |_, now| float(now.store_bytes), bytes),
    (
        "first touches per second",
        |was, now| rate(was, now, |p| p.first_touches),
        rounded,
    ),
    (
        "waits for the store per second",
        |was, now| rate(was, now, |p| p.refaults),
        rounded,
    ),
    (
        "pages read per second",
        |was, now| rate(was, now, |p| p.pages_read),
        rounded,
    ),
    (
        "pages written per second",
        |was, now| rate(was, now, |p| p.pages_written),
        rounded,
    ),
    (
        "pages evicted per second",
        |was, now| rate(was, now, |p| p.pages_evicted),
        rounded,
    ),
];

/// The report in lines of at most `width` columns.
#[must_use]
pub fn render(document: &Document<PagingTimeline>, width: usize, style: Style) -> String {
    let timeline = &document.evidence;
    let mut page = Page::new(width, style);
    let each = if timeline.memory_is_each {
        " for each process"
    } else {
        ""
    };
    let run = format!(
        "{} {}; {}{each}, policy {}, store {}",
        command_line(&document.subject.command),
        timeline.ending.words(),
        Bytes(timeline.memory_bytes),
        timeline.policy,
        timeline.store
    );
    page.indented(0, Ink::Strong, &run);
    page.indented(0, Ink::Plain, &visible(&document.verdict));
    if let Some(last) = timeline.points.last() {
        courses(&mut page, timeline, seconds(last));
        distances(&mut page, timeline, last);
    }
    page.finish()
}

fn courses(page: &mut Page, timeline: &PagingTimeline, end_s: f64) {
    page.gap();
    let columns = page.width - BESIDE;
    for (name, value, written) in ROWS {
        let course = course(&timeline.points, columns, value);
        let most = course.iter().copied().fold(0.0, f64::max);
        let bars: String = course.iter().map(|value| bar(*value, most)).collect();
        page.line(&format!("{name:<31}{bars:<columns$} {:>12}", written(most)));
    }
    let end = format!("{end_s:.1} s");
    let rest = columns.saturating_sub(1);
    page.line(&format!("{:31}0{end:>rest$}{:>13}", "", "highest"));
}

/// How long pages were evicted when they were needed again, and which refaults more memory would
/// have avoided.
fn distances(page: &mut Page, timeline: &PagingTimeline, last: &PagingPoint) {
    page.gap();
    let all = &timeline.refault_distances;
    if let Some(words) = all.words() {
        let text = format!("Away for: {words}");
        page.indented(0, Ink::Plain, &text);
    }
    if let Some(larger) = &all.larger_budget {
        page.indented(0, Ink::Plain, &larger.words());
    }
    if last.watched_soon > 0 {
        let text = format!(
            "Of {} resident pages that were watched, {} were used again within a second",
            count(last.watched_soon),
            percent(share(last.used_soon, last.watched_soon))
        );
        page.indented(0, Ink::Plain, &text);
    }
}

/// The highest value in each of `columns` parts of the time.
fn course(
    points: &[PagingPoint],
    columns: usize,
    value: fn(&PagingPoint, &PagingPoint) -> f64,
) -> Vec<f64> {
    let end = points.last().map_or(0.0, seconds).max(1e-9);
    let mut most = vec![0.0_f64; columns];
    let mut was = PagingPoint::default();
    let mut filled = 0;
    for point in points {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of some hundred columns"
        )]
        let until = ((seconds(point) / end * columns as f64) as usize).clamp(filled, columns - 1);
        let now = value(&was, point);
        // A point covers the time since the previous one.
        for place in &mut most[filled..=until] {
            *place = place.max(now);
        }
        (was, filled) = (*point, until);
    }
    most
}

fn rate(was: &PagingPoint, now: &PagingPoint, of: fn(&PagingPoint) -> u64) -> f64 {
    let seconds = seconds(now) - seconds(was);
    match seconds > 0.0 {
        true => float(of(now).saturating_sub(of(was))) / seconds,
        false => 0.0,
    }
}

fn bar(value: f64, most: f64) -> char {
    if most <= 0.0 || value <= 0.0 {
        return BARS[0];
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and 8"
    )]
    let step = (value / most * 8.0).ceil() as usize;
    BARS[step.clamp(1, 8)]
}

fn float(value: u64) -> f64 {
    value as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "comes from a count"
)]
fn bytes(value: f64) -> String {
    Bytes(value as u64).to_string()
}

fn seconds(point: &PagingPoint) -> f64 {
    point.time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::answer::Subject;
    use pagewise_model::paging::{DistanceBucket, RefaultDistances};
    use pagewise_model::run::Ending;
    use pagewise_model::units::Nanos;

    fn timeline(points: Vec<PagingPoint>) -> Document<PagingTimeline> {
        let timeline = PagingTimeline {
            ending: Ending::Exited(0),
            memory_bytes: 64 << 20,
            memory_is_each: false,
            policy: "2q".to_owned(),
            store: "disk".to_owned(),
            interval: Nanos(1_000_000_000),
            points,
            refault_distances: RefaultDistances {
                samples: 90,
                sampled_pages: 80,
                buckets: vec![DistanceBucket {
                    from_pages: 512,
                    to_pages: 768,
                    refaults: 500,
                    ahead: 0,
                }],
                larger_budget: None,
            },
        };
        let command = vec!["sort".to_owned(), "\u{1b}[31mbig".to_owned()];
        Document::new(timeline).about(Subject::of_command(command))
    }

    #[test]
    fn a_course_rises_where_the_run_did_and_names_its_highest_value() {
        let point = |time_s: f64, resident_bytes, refaults| PagingPoint {
            time: Nanos::from_secs_f64(time_s),
            resident_bytes,
            refaults,
            ..PagingPoint::default()
        };
        let points = vec![
            point(1.0, 1 << 20, 0),
            point(2.0, 8 << 20, 500),
            point(4.0, 8 << 20, 500),
        ];
        let text = render(&timeline(points), 60, Style::PLAIN);
        let row = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.map(str::to_owned).unwrap_or_default()
        };
        assert!(
            row("resident").contains("▁▁▁") || row("resident").contains("▁▁█"),
            "{text}"
        );
        assert!(row("resident").ends_with("8.00 MiB"), "{text}");
        assert!(
            row("waits").contains("  ██") && row("waits").ends_with(" 500"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "names are made visible");
        assert!(text.contains("median 768 evictions"), "{text}");
    }

    #[test]
    fn a_timeline_without_points_says_so() {
        assert!(render(&timeline(Vec::new()), 80, Style::PLAIN).contains("no point"));
    }
}
