//! Tables with both traces next to each other.

use crate::text::columns::{Row, named, words};
use crate::text::page::Page;
use crate::visible::visible;
use pagewise_model::fault_diff::{
    ClassChange, FaultDiff, FunctionChange, LayerChange, Pair, QuantileShift, Test,
};
use pagewise_model::fault_paths::Latency;
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
    let rows = std::iter::once(mean).chain(rows);
    let of = ["A raw", "B raw", "A", "B", "change [95 %]"];
    page.table("Whole time of a fault", &named("", &of), rows);
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
