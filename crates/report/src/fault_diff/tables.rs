//! Tables with both traces side by side.

use crate::lines::line;
use crate::visible::visible;
use pagewise_model::fault_diff::{
    ClassChange, FaultDiff, FunctionChange, LayerChange, Pair, QuantileShift, Test,
};
use pagewise_model::quantity::{count, percent};
use pagewise_model::units::{Estimate, Nanos};

/// Lines of the longer tables.
const LINES: usize = 12;

pub(super) fn quantiles(text: &mut String, diff: &FaultDiff) {
    if diff.whole.quantiles.is_empty() {
        return;
    }
    line!(text);
    line!(
        text,
        "{:<24} {:>10} {:>10} {:>10} {:>10}  change (95 % interval)",
        "Whole time of a fault",
        "A raw",
        "B raw",
        "A",
        "B"
    );
    let Pair { a, b } = means(&diff.whole.a_raw, &diff.whole.b_raw);
    let corrected = means(&diff.whole.a, &diff.whole.b);
    shift_line(
        text,
        "mean",
        (a, b),
        corrected,
        &diff.whole.mean,
        diff.whole.mean_test,
    );
    let wanted = |q: &&QuantileShift| [0.5, 0.9, 0.99, 0.999].contains(&q.quantile);
    for shift in diff.whole.quantiles.iter().filter(wanted) {
        let name = match shift.quantile {
            0.5 => "median".to_owned(),
            quantile => format!("{}th percentile", trimmed(quantile * 100.0)),
        };
        let raw = (shift.ns.raw.a, shift.ns.raw.b);
        shift_line(
            text,
            &name,
            raw,
            shift.ns.corrected,
            &shift.change,
            shift.test,
        );
    }
}

fn means(
    a: &pagewise_model::fault_paths::Latency,
    b: &pagewise_model::fault_paths::Latency,
) -> Pair {
    Pair {
        a: a.mean_ns,
        b: b.mean_ns,
    }
}

fn shift_line(
    text: &mut String,
    name: &str,
    raw: (f64, f64),
    corrected: Pair,
    change: &Estimate,
    test: Option<Test>,
) {
    line!(
        text,
        "  {name:<22} {:>10} {:>10} {:>10} {:>10}  {}{}",
        nanos(raw.0),
        nanos(raw.1),
        nanos(corrected.a),
        nanos(corrected.b),
        interval(change),
        sure(test)
    );
}

pub(super) fn classes(text: &mut String, classes: &[ClassChange]) {
    line!(text);
    line!(
        text,
        "{:<38} {:>7} {:>7} {:>8} {:>8} {:>10} {:>10} {:>10} {:>10}",
        "Kinds of faults",
        "A",
        "B",
        "A time",
        "B time",
        "A raw p50",
        "B raw p50",
        "A p50",
        "B p50"
    );
    for class in classes.iter().take(LINES) {
        line!(
            text,
            "  {:<36} {:>7} {:>7} {:>8} {:>8} {:>10} {:>10} {:>10} {:>10}{}",
            class.class.describe(),
            percent(class.share.a),
            percent(class.share.b),
            percent(class.time_share.corrected.a),
            percent(class.time_share.corrected.b),
            or_none(class.faults.0, class.whole.a_raw.p50_ns),
            or_none(class.faults.1, class.whole.b_raw.p50_ns),
            or_none(class.faults.0, class.whole.a.p50_ns),
            or_none(class.faults.1, class.whole.b.p50_ns),
            sure(class.test)
        );
    }
}

pub(super) fn layers(text: &mut String, layers: &[LayerChange]) {
    line!(text);
    line!(
        text,
        "{:<38} {:>7} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "Layers (share of time; where met)",
        "A",
        "B",
        "A raw p50",
        "B raw p50",
        "A p50",
        "B p50",
        "A p99",
        "B p99"
    );
    for layer in layers.iter().filter(|layer| layer.class.is_none()) {
        let shift = &layer.shift;
        line!(
            text,
            "  {:<36} {:>7} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}{}",
            layer.layer.describe(),
            percent(layer.time_share.corrected.a),
            percent(layer.time_share.corrected.b),
            or_none(shift.a.count, shift.a_raw.p50_ns),
            or_none(shift.b.count, shift.b_raw.p50_ns),
            or_none(shift.a.count, shift.a.p50_ns),
            or_none(shift.b.count, shift.b.p50_ns),
            or_none(shift.a.count, shift.a.p99_ns),
            or_none(shift.b.count, shift.b.p99_ns),
            sure(shift.mean_test)
        );
    }
}

pub(super) fn functions(text: &mut String, functions: &[FunctionChange]) {
    line!(text);
    line!(
        text,
        "{:<30} {:>10} {:>10} {:>10} {:>10}  {:<26} kind of fault",
        "Own time per fault of its kind",
        "A raw",
        "B raw",
        "A",
        "B",
        "change (95 % interval)"
    );
    for found in functions.iter().take(LINES) {
        line!(
            text,
            "  {:<28} {:>10} {:>10} {:>10} {:>10}  {:<26} {}{}",
            visible(&found.function),
            nanos(found.own_ns.raw.a),
            nanos(found.own_ns.raw.b),
            nanos(found.own_ns.corrected.a),
            nanos(found.own_ns.corrected.b),
            interval(&found.change),
            found.class.describe(),
            sure(found.time_test)
        );
    }
}

pub(super) fn extra(text: &mut String, diff: &FaultDiff) {
    for (in_b, letter) in [(false, 'A'), (true, 'B')] {
        let only: Vec<_> = diff
            .extra
            .iter()
            .filter(|extra| extra.in_b == in_b)
            .collect();
        if only.is_empty() {
            continue;
        }
        line!(text);
        line!(
            text,
            "{:<38} {:>9} {:>9} {:>7} {:>7}",
            format!("Functions in {letter} alone ({})", only.len()),
            "calls",
            "faults",
            "share",
            "time"
        );
        for extra in only.iter().take(LINES / 2) {
            line!(
                text,
                "  {:<36} {:>9} {:>9} {:>7} {:>7}",
                visible(&extra.function),
                count(extra.calls),
                count(extra.faults),
                percent(extra.share),
                percent(extra.time_share)
            );
        }
    }
}

fn sure(test: Option<Test>) -> &'static str {
    match test {
        Some(test) if test.significant => " *",
        _ => "",
    }
}

fn or_none(values: u64, ns: u64) -> String {
    match values {
        0 => "–".to_owned(),
        _ => Nanos(ns).to_string(),
    }
}

pub(super) fn nanos(ns: f64) -> String {
    let size = Nanos::from_secs_f64(ns.abs() / 1e9);
    if ns <= -0.5 {
        format!("−{size}")
    } else {
        size.to_string()
    }
}

fn signed(ns: f64) -> String {
    if ns >= 0.5 {
        format!("+{}", nanos(ns))
    } else {
        nanos(ns)
    }
}

/// `+2.10 µs [1.80, 2.40]`
fn interval(change: &Estimate) -> String {
    if change.low == change.high || !change.low.is_finite() {
        return signed(change.value);
    }
    format!(
        "{} [{}, {}]",
        signed(change.value),
        signed(change.low),
        signed(change.high)
    )
}

/// `99`, `99.9`.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}
