//! The comparison of two sets of faults as terminal text.
//!
//! What differs comes first, in sentences; tables with both traces side by side follow.

mod paragraph;
mod tables;

use crate::lines::line;
use crate::text::Style;
use crate::visible::visible;
use pagewise_model::fault_diff::{Explanation, FaultDiff, Finding, Side, Subject};
use pagewise_model::fault_paths::Source;
use pagewise_model::quantity::{count, counted, percent};
use pagewise_model::units::Nanos;
use paragraph::paragraph;
use std::collections::BTreeMap;
use tables::{classes, extra, functions, layers, nanos, quantiles};

/// The comparison as text of at most `width` columns where names allow.
#[must_use]
pub fn render(diff: &FaultDiff, width: usize, _style: Style) -> String {
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
            "tracing costs {} ± {} per call ({})",
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
    let chosen = without_repeats(&explaining);
    let shown: Vec<&Finding> = chosen.into_iter().take(EXPLAINING).collect();
    let more = explaining.len() - shown.len();
    let lists: [(&str, Vec<&Finding>, usize); 4] = [
        ("What differs", answers, 0),
        ("What explains it, the largest part first", shown, more),
        (
            "What differs in these recordings, but in few of their phases: another may differ",
            diff.phases.iter().collect(),
            0,
        ),
        (
            "What looks different, but could be chance or the tracer's cost",
            diff.suspicions.iter().collect(),
            0,
        ),
    ];
    let mut is_first = diff.findings.len() + diff.phases.len() > 0;
    if !is_first {
        let words = format!(
            "Nothing differs beyond chance by enough to matter, in {} figures tested.",
            count(diff.method.tests)
        );
        paragraph(text, "", &words, width);
    }
    for (title, found, more) in lists {
        if found.is_empty() {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            line!(text);
        }
        line!(text, "{title}");
        for finding in found {
            paragraph(text, "- ", &visible(&finding.sentence), width);
        }
        if more > 0 {
            line!(text, "  … and {} more with --json", count(more as u64));
        }
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
