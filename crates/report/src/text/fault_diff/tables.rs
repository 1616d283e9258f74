//! Tables with both traces next to each other.

use crate::text::columns::{Row, named, words};
use crate::text::page::Page;
use crate::visible::visible;
use pagewise_model::fault_diff::{
    ClassChange, Explanation, FaultDiff, FunctionChange, LayerChange, Pair, QuantileShift, Shift,
    Test,
};
use pagewise_model::fault_paths::{Latency, Layer};
use pagewise_model::quantity::{count, duration, duration_change, percent};
use pagewise_model::units::{Estimate, Nanos};

/// Lines of the longer tables.
const LINES: usize = 12;

pub fn quantiles(page: &mut Page, diff: &FaultDiff) {
    if diff.whole.quantiles.is_empty() {
        return;
    }
    let whole = &diff.whole;
    let raw = means(&whole.a_raw, &whole.b_raw);
    let corrected = means(&whole.a, &whole.b);
    let mean = shift("mean", raw, corrected, &whole.mean, whole.mean_test);
    let wanted = |q: &&QuantileShift| [0.5, 0.9, 0.99, 0.999].contains(&q.quantile);
    let rows = whole.quantiles.iter().filter(wanted).map(|at| {
        let name = match at.quantile {
            0.5 => "median".to_owned(),
            quantile => format!("{}th percentile", trimmed(quantile * 100.0)),
        };
        shift(&name, at.ns.raw, at.ns.corrected, &at.change, at.test)
    });
    let rows = std::iter::once(mean)
        .chain(rows)
        .chain(on_the_cpu(&diff.layers));
    let of = ["A raw", "B raw", "A", "B", "change [95 %]"];
    page.table(
        "Whole time of a fault, waits included",
        &named("", &of),
        rows,
    );
}

/// What the reports on each trace say first: the outermost function without waits.
fn on_the_cpu(layers: &[LayerChange]) -> Vec<Row> {
    let is_outermost = |layer: &&LayerChange| {
        layer.class.is_none() && matches!(layer.layer, Layer::Fault | Layer::MmFault)
    };
    let Some(LayerChange { shift: found, .. }) = layers.iter().find(is_outermost) else {
        return Vec::new();
    };
    let of = |name: &str, at: fn(&Latency) -> u64| {
        let pair = |a: &Latency, b: &Latency| [at(a), at(b)].map(|ns| duration(ns as f64));
        let ([a_raw, b_raw], [a, b]) = (pair(&found.a_raw, &found.b_raw), pair(&found.a, &found.b));
        Row::new([
            format!("  on the CPU: {name}"),
            a_raw,
            b_raw,
            a,
            b,
            String::new(),
        ])
    };
    vec![
        of("median", |found| found.p50_ns),
        of("99th percentile", |found| found.p99_ns),
    ]
}

/// Says why the slowest hundredths may differ the other way than the 99th percentile, if they do.
#[must_use]
pub fn contrary(whole: &Shift, slowest: &Explanation) -> Option<String> {
    let tail = whole.quantiles.iter().find(|at| at.quantile == 0.99)?;
    let Pair { a, b } = tail.ns.corrected;
    let is_contrary = slowest.change_ns * (b - a) < 0.0;
    (is_contrary && !slowest.sentences.is_empty()).then(|| {
        format!(
            "The 99th percentile {} all the same, from {} to {}: the faults beyond it are few, and one of them \
             can decide their mean.",
            if b > a { "rose" } else { "fell" },
            duration(a),
            duration(b)
        )
    })
}

fn means(a: &Latency, b: &Latency) -> Pair {
    Pair {
        a: a.mean_ns,
        b: b.mean_ns,
    }
}

fn shift(name: &str, raw: Pair, corrected: Pair, change: &Estimate, test: Option<Test>) -> Row {
    Row::new([
        marked(name, test),
        duration(raw.a),
        duration(raw.b),
        duration(corrected.a),
        duration(corrected.b),
        duration_change(change),
    ])
}

pub fn classes(page: &mut Page, classes: &[ClassChange]) {
    let of = [
        "A",
        "B",
        "A time",
        "B time",
        "A raw p50",
        "B raw p50",
        "A p50",
        "B p50",
    ];
    let rows = classes.iter().take(LINES).map(|class| {
        let (whole, faults) = (&class.whole, class.faults);
        Row::new([
            marked(class.class.describe(), class.test),
            percent(class.share.a),
            percent(class.share.b),
            percent(class.time_share.corrected.a),
            percent(class.time_share.corrected.b),
            or_none(faults.0, whole.a_raw.p50_ns),
            or_none(faults.1, whole.b_raw.p50_ns),
            or_none(faults.0, whole.a.p50_ns),
            or_none(faults.1, whole.b.p50_ns),
        ])
    });
    page.table("Kinds of faults", &named("kind", &of), rows);
}

pub fn layers(page: &mut Page, layers: &[LayerChange]) {
    let of = [
        "A",
        "B",
        "A raw p50",
        "B raw p50",
        "A p50",
        "B p50",
        "A p99",
        "B p99",
    ];
    let whole = layers.iter().filter(|layer| layer.class.is_none());
    let rows = whole.map(|layer| {
        let shift = &layer.shift;
        let (a, b) = (shift.a.count, shift.b.count);
        Row::new([
            marked(layer.layer.describe(), shift.mean_test),
            percent(layer.time_share.corrected.a),
            percent(layer.time_share.corrected.b),
            or_none(a, shift.a_raw.p50_ns),
            or_none(b, shift.b_raw.p50_ns),
            or_none(a, shift.a.p50_ns),
            or_none(b, shift.b.p50_ns),
            or_none(a, shift.a.p99_ns),
            or_none(b, shift.b.p99_ns),
        ])
    });
    let title = "Layers (share of time; where met)";
    page.table(title, &named("layer", &of), rows);
}

pub fn functions(page: &mut Page, functions: &[FunctionChange]) {
    let rows = functions.iter().take(LINES).map(|found| {
        let (raw, corrected) = (found.own_ns.raw, found.own_ns.corrected);
        Row::new([
            marked(&visible(&found.function), found.time_test),
            duration(raw.a),
            duration(raw.b),
            duration(corrected.a),
            duration(corrected.b),
            duration_change(&found.change),
            found.class.describe().to_owned(),
        ])
    });
    let of = ["A raw", "B raw", "A", "B", "change [95 %]"];
    let heads = [named("function", &of), vec![words("kind of fault")]].concat();
    page.table("Own time per fault of its kind", &heads, rows);
}

pub fn extra(page: &mut Page, diff: &FaultDiff) {
    for (in_b, letter) in [(false, 'A'), (true, 'B')] {
        let only = || diff.extra.iter().filter(|extra| extra.in_b == in_b);
        let rows = only().take(LINES / 2).map(|extra| {
            Row::new([
                visible(&extra.function).into_owned(),
                count(extra.calls),
                count(extra.faults),
                percent(extra.share),
                percent(extra.time_share),
            ])
        });
        let rows: Vec<Row> = rows.collect();
        let title = format!("Functions in {letter} alone ({})", only().count());
        let heads = named("function", &["calls", "faults", "share", "time"]);
        page.table(&title, &heads, rows);
    }
}

/// A name, marked if the difference is beyond chance.
fn marked(name: &str, test: Option<Test>) -> String {
    let mark = match test {
        Some(test) if test.significant => "*",
        _ => " ",
    };
    format!("{mark} {name}")
}

fn or_none(values: u64, ns: u64) -> String {
    match values {
        0 => "–".to_owned(),
        _ => Nanos(ns).to_string(),
    }
}

/// `99`, `99.9`.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::fault_diff::Pairs;

    #[test]
    fn a_percentile_against_the_mean_beyond_it_is_told() {
        let pair = Pair {
            a: 20_000.0,
            b: 210_000.0,
        };
        let whole = Shift {
            quantiles: vec![QuantileShift {
                quantile: 0.99,
                ns: Pairs {
                    raw: pair,
                    corrected: pair,
                },
                change: Estimate::exact(190_000.0),
                test: None,
            }],
            ..Shift::default()
        };
        let slowest = |change_ns| Explanation {
            figures: Pairs::default(),
            change_ns,
            parts: Vec::new(),
            sentences: vec!["The mean of the slowest hundredth …".to_owned()],
        };
        let message = contrary(&whole, &slowest(-3.98e6)).expect("a note");
        assert!(
            message.starts_with("The 99th percentile rose all the same, from 20.0 µs to 210 µs"),
            "{message}"
        );
        assert_eq!(contrary(&whole, &slowest(3.98e6)), None);
        assert_eq!(contrary(&Shift::default(), &slowest(-1.0)), None);
    }

    #[test]
    fn the_figures_of_the_reports_stand_beside_whole_times() {
        let latency = |p50_ns, p99_ns| Latency {
            p50_ns,
            p99_ns,
            ..Latency::default()
        };
        let layer = LayerChange {
            layer: Layer::MmFault,
            class: None,
            time_share: Pairs::default(),
            shift: Shift {
                a: latency(7_280, 25_700),
                b: latency(6_610, 181_000),
                ..Shift::default()
            },
        };
        assert_eq!(on_the_cpu(&[layer]).len(), 2);
        assert!(on_the_cpu(&[]).is_empty());
    }
}
