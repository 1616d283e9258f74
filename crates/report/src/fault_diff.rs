//! The comparison of two sets of faults as terminal text and as JSON.
//!
//! What differs comes first, in sentences; tables with both traces side by side follow.

use crate::lines::line;
use crate::quantity::{count, counted, percent};
use crate::visible::visible;
use pagewise_model::fault_diff::{
    ClassChange, Explanation, FaultDiff, Finding, FunctionChange, LayerChange, Pair, QuantileShift,
    Side, Subject, Test,
};
use pagewise_model::fault_paths::Source;
use pagewise_model::units::{Estimate, Nanos};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines of the longer tables.
const LINES: usize = 12;

/// The comparison as text of at most `width` columns where names allow.
#[must_use]
pub fn render(diff: &FaultDiff, width: usize) -> String {
    let width = width.max(60);
    let mut text = String::new();
    paragraph(&mut text, "", &visible(&diff.headline), width);
    line!(&mut text);
    sides(&mut text, diff);
    findings(&mut text, diff, width);
    explanation(&mut text, "Why the means differ", &diff.mean, width);
    explanation(
        &mut text,
        "Why the slowest hundredths differ",
        &diff.tail,
        width,
    );
    quantiles(&mut text, diff);
    classes(&mut text, &diff.classes);
    layers(&mut text, &diff.layers);
    functions(&mut text, &diff.functions);
    extra(&mut text, diff);
    method(&mut text, diff, width);
    text
}

fn sides(text: &mut String, diff: &FaultDiff) {
    line!(
        text,
        "A is {}, B is {}; changes are B minus A.",
        visible(&diff.a.label),
        visible(&diff.b.label)
    );
    for (letter, side) in [('A', &diff.a), ('B', &diff.b)] {
        one_side(text, letter, side);
    }
    if diff.a.correction_exceeds_signal || diff.b.correction_exceeds_signal {
        line!(
            text,
            "CAUTION: more than half of the traced latency is the tracer's own; raw latencies \
             compare numbers of calls, not times."
        );
    }
}

fn one_side(text: &mut String, letter: char, side: &Side) {
    let over = side
        .duration_ns
        .map_or(String::new(), |ns| format!(" in {}", Nanos(ns)));
    let cost = match side.calibration.source {
        Source::Nothing | Source::Withdrawn => "not corrected for tracing".to_owned(),
        source => format!(
            "tracing costs {} ± {} a call ({})",
            nanos(side.calibration.per_call_ns),
            nanos(side.calibration.error_ns),
            match source {
                Source::RootOnly => "measured",
                _ => "estimated from the trace",
            }
        ),
    };
    line!(
        text,
        "  {letter}: {}{over}, {}; {cost}. {}",
        counted(side.faults, "page fault"),
        counted(side.distinct_paths, "different path"),
        visible(&side.name)
    );
    for missing in &side.missing {
        line!(
            text,
            "     left out: {} {}",
            count(missing.count),
            missing.what
        );
    }
}

/// Findings that the text shows of what explains the answers.
const EXPLAINING: usize = 8;

fn findings(text: &mut String, diff: &FaultDiff, width: usize) {
    line!(text);
    if let Some(reason) = &diff.method.not_tested {
        return paragraph(text, "", &format!("Nothing was tested: {reason}."), width);
    }
    let (answers, explaining): (Vec<&Finding>, Vec<&Finding>) =
        diff.findings.iter().partition(|finding| is_answer(finding));
    if diff.findings.is_empty() {
        let words = format!(
            "Nothing differs beyond chance by enough to matter, in {} figures tested.",
            count(diff.method.tests)
        );
        paragraph(text, "", &words, width);
    }
    if !answers.is_empty() {
        line!(text, "What differs");
        sentences(text, answers.into_iter(), width);
        line!(text);
    }
    if !explaining.is_empty() {
        line!(text, "What explains it, the largest part first");
        let chosen = without_repeats(&explaining);
        let shown = chosen.len().min(EXPLAINING);
        sentences(text, chosen.into_iter().take(EXPLAINING), width);
        if explaining.len() > shown {
            let more = (explaining.len() - shown) as u64;
            line!(text, "  … and {} more with --json", count(more));
        }
    }
    if !diff.suspicions.is_empty() {
        line!(text);
        line!(
            text,
            "What looks different, but could be chance or the tracer's cost"
        );
        sentences(text, diff.suspicions.iter(), width);
    }
}

fn sentences<'a>(text: &mut String, found: impl Iterator<Item = &'a Finding>, width: usize) {
    for finding in found {
        paragraph(text, "- ", &visible(&finding.sentence), width);
    }
}

/// Whether it is about the faults as a whole.
fn is_answer(finding: &Finding) -> bool {
    match finding.subject {
        Subject::Mean | Subject::Quantile => finding.class.is_none(),
        Subject::Rate | Subject::ClassShare | Subject::SamePath | Subject::SamePathTail => true,
        _ => false,
    }
}

/// What is told of all faults is not told again of a kind of them.
fn without_repeats<'a>(all: &[&'a Finding]) -> Vec<&'a Finding> {
    let same = |x: &Finding, y: &Finding| {
        let of_function = |finding: &Finding| finding.subject >= Subject::FunctionTime;
        x.name == y.name
            && x.layer == y.layer
            && (x.subject == y.subject || of_function(x) && of_function(y))
    };
    let mut chosen: Vec<&Finding> = Vec::new();
    for finding in all {
        if !chosen.iter().any(|earlier| same(earlier, finding)) {
            chosen.push(finding);
        }
    }
    chosen
}

fn explanation(text: &mut String, title: &str, found: &Explanation, width: usize) {
    if found.sentences.is_empty() {
        return;
    }
    line!(text);
    line!(text, "{title}");
    for (place, sentence) in found.sentences.iter().enumerate() {
        let mark = if place == 0 { "  " } else { "- " };
        paragraph(text, mark, &visible(sentence), width);
    }
}

fn quantiles(text: &mut String, diff: &FaultDiff) {
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

fn classes(text: &mut String, classes: &[ClassChange]) {
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

fn layers(text: &mut String, layers: &[LayerChange]) {
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

fn functions(text: &mut String, functions: &[FunctionChange]) {
    line!(text);
    line!(
        text,
        "{:<30} {:>10} {:>10} {:>10} {:>10}  {:<26} kind of fault",
        "Own time a fault of its kind",
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

fn extra(text: &mut String, diff: &FaultDiff) {
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

fn method(text: &mut String, diff: &FaultDiff, width: usize) {
    let method = &diff.method;
    line!(text);
    if method.not_tested.is_some() {
        return;
    }
    let words = format!(
        "* differs beyond chance: {} blocks of A's faults and {} of B's, exchanged at random {} \
         times; the largest score of all figures tested together sets the bound (Westfall & \
         Young). {} figures answer the questions of how many, which kinds and how long; others \
         explain what was found ({} in all). Traces that are alike show anything in {} of \
         comparisons. Told is what matters: 2 % of the median or mean, 5 % of the 99th \
         percentile, 1 % of the faults, 10 % of the rate, or a part of 0.5 % of the mean fault. \
         Neighbouring blocks correlate by {:.2} and {:.2}. Intervals hold 95 % each, from {} \
         resamples of blocks. Two runs of one program differ too: what differs is the runs.",
        diff.a.blocks,
        diff.b.blocks,
        count(u64::from(method.permutations)),
        count(method.questions),
        count(method.tests),
        percent(method.level),
        diff.a.block_correlation,
        diff.b.block_correlation,
        method.resamples
    );
    paragraph(text, "", &words, width);
    let doubtful: BTreeMap<bool, usize> =
        diff.findings.iter().fold(BTreeMap::new(), |mut sum, f| {
            *sum.entry(f.correction_exceeds_signal).or_default() += 1;
            sum
        });
    if let Some(doubtful) = doubtful.get(&true) {
        let words = format!(
            "In {doubtful} of {} findings the correction for the tracer's cost differs by more \
             than the change: they may be the tracer's.",
            diff.findings.len()
        );
        paragraph(text, "", &words, width);
    }
}

/// Words on lines of at most `width` columns, the first after `mark`, others below it.
fn paragraph(text: &mut String, mark: &str, words: &str, width: usize) {
    let indent = if mark.is_empty() { 0 } else { 4 };
    let mut column = indent;
    let _ = write!(text, "{:>indent$}", mark);
    let mut first = true;
    for word in words_with_units(words) {
        let length = word.chars().count();
        if !first && column + 1 + length > width {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        } else if !first {
            text.push(' ');
            column += 1;
        }
        text.push_str(&word);
        column += length;
        first = false;
    }
    text.push('\n');
}

/// Words, each number with its unit.
fn words_with_units(words: &str) -> Vec<String> {
    const UNITS: [&str; 5] = ["%", "ns", "µs", "ms", "s"];
    let is_unit =
        |word: &str| UNITS.contains(&word.trim_end_matches(|c: char| ",.;:)]".contains(c)));
    let mut all: Vec<String> = Vec::new();
    for word in words.split(' ') {
        match all.last_mut() {
            Some(last) if is_unit(word) && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => all.push(word.to_owned()),
        }
    }
    all
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

fn nanos(ns: f64) -> String {
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
