//! The comparison of two sets of faults.
//!
//! The differences come first, in sentences; tables with both traces next to each other follow.

mod tables;

use super::Style;
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::fault_diff::{Explanation, FaultDiff, Finding, Subject, Traced};
use pagewise_model::fault_paths::Source;
use pagewise_model::quantity::{count, counted, duration_interval, percent};
use pagewise_model::units::{Estimate, Nanos};
use tables::{classes, contrary, extra, functions, layers, quantiles};

/// Caution for raw latencies when the tracer's cost exceeds what it measures.
pub(super) const DOUBTFUL: &str = "CAUTION: more than half of the traced latency is the tracer's own; \
     raw latencies compare numbers of calls, not times.";

/// The comparison as text of at most `width` columns, clamped to 60–200.
#[must_use]
pub fn render(diff: &Document<FaultDiff>, width: usize, style: Style) -> String {
    let mut page = Page::new(width, style);
    let ink = match diff.findings.is_empty() {
        true => Ink::Strong,
        false => Ink::Caution,
    };
    page.marked("● diff", ink, &visible(&diff.verdict));
    page.gap();
    sides(&mut page, diff);
    findings(&mut page, diff);
    explanation(&mut page, "Why the means differ", &diff.mean);
    let tail = "Why the slowest hundredths differ";
    explanation(&mut page, tail, &diff.tail);
    if let Some(note) = contrary(&diff.whole, &diff.tail) {
        page.paragraph("", Ink::Plain, &note);
    }
    quantiles(&mut page, diff);
    classes(&mut page, &diff.classes);
    layers(&mut page, &diff.layers);
    functions(&mut page, &diff.functions);
    extra(&mut page, diff);
    method(&mut page, diff);
    page.finish()
}

fn sides(page: &mut Page, diff: &FaultDiff) {
    let text = format!(
        "A is {}, B is {}; changes are B minus A.",
        visible(&diff.a.label),
        visible(&diff.b.label)
    );
    page.paragraph("", Ink::Plain, &text);
    super::sides::sides(page, &diff.a, &diff.b, traced);
    for (side, name) in [(&diff.a, "A"), (&diff.b, "B")] {
        for lost in side.losses.descriptions() {
            page.paragraph("", Ink::Faint, &format!("{name}: left out: {lost}"));
        }
    }
    if diff.a.correction_exceeds_signal || diff.b.correction_exceeds_signal {
        page.paragraph("", Ink::Caution, DOUBTFUL);
    }
}

fn traced(side: &Traced) -> Vec<String> {
    let faults = counted(side.faults, "page fault");
    vec![
        match side.duration_ns {
            Some(ns) => format!("{faults} in {}", Nanos(ns)),
            None => faults,
        },
        counted(side.distinct_paths, "different path"),
        cost_of_tracing(side),
    ]
}

fn cost_of_tracing(side: &Traced) -> String {
    let found = &side.calibration;
    let how = match found.source {
        Source::Nothing | Source::Withdrawn => return "not corrected for tracing".to_owned(),
        Source::RootOnly => "measured",
        _ => "estimated from the trace",
    };
    let cost = duration_interval(&Estimate {
        value: found.per_call_ns,
        low: found.per_call_ns - found.error_ns,
        high: found.per_call_ns + found.error_ns,
    });
    format!("tracing costs {cost} per call ({how})")
}

/// Explaining findings that the text shows.
const EXPLAINING: usize = 8;

fn findings(page: &mut Page, diff: &FaultDiff) {
    if let Some(reason) = &diff.method.not_tested {
        page.gap();
        let text = format!("Nothing was tested: {}.", visible(reason));
        page.indented(0, Ink::Strong, &text);
        return;
    }
    if diff.findings.len() + diff.phases.len() == 0 {
        page.gap();
        let text = format!(
            "Nothing differs beyond chance by enough to matter, in {} figures tested.",
            count(diff.method.tests)
        );
        page.indented(0, Ink::Strong, &text);
    }
    let (answers, explaining): (Vec<&Finding>, Vec<&Finding>) =
        diff.findings.iter().partition(|finding| is_answer(finding));
    let explaining = without_repeats(&explaining);
    let all = |found: &'_ [Finding]| found.iter().map(sentence).collect::<Vec<_>>();
    let of = |found: &[&Finding]| found.iter().map(|one| sentence(one)).collect::<Vec<_>>();
    sentences(page, "What differs", &of(&answers), usize::MAX);
    let title = "What explains it, largest part first";
    sentences(page, title, &of(&explaining), EXPLAINING);
    let title = "What differs in a few phases of these recordings; others may not differ";
    sentences(page, title, &all(&diff.phases), usize::MAX);
    let title = "What looks different, but may be chance or the tracer's cost";
    sentences(page, title, &all(&diff.suspicions), usize::MAX);
}

fn sentence(finding: &Finding) -> String {
    visible(&finding.sentence).into_owned()
}

fn sentences(page: &mut Page, title: &str, found: &[String], most: usize) {
    if found.is_empty() {
        return;
    }
    page.heading(title);
    for sentence in found.iter().take(most) {
        page.item(sentence);
    }
    page.more(found.len(), most);
}

/// Whether it is about the faults as a whole.
fn is_answer(finding: &Finding) -> bool {
    match finding.subject {
        Subject::Mean | Subject::Quantile => finding.class.is_none(),
        Subject::Rate | Subject::ClassShare | Subject::SamePath | Subject::SamePathTail => true,
        _ => false,
    }
}

/// A statement about all faults is not repeated for a kind of fault.
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

fn explanation(page: &mut Page, title: &str, found: &Explanation) {
    let Some((first, rest)) = found.sentences.split_first() else {
        return;
    };
    page.heading(title);
    page.indented(2, Ink::Plain, &visible(first));
    for sentence in rest {
        page.item(&visible(sentence));
    }
}

fn method(page: &mut Page, diff: &FaultDiff) {
    let method = &diff.method;
    page.gap();
    if method.not_tested.is_some() {
        return;
    }
    let text = format!(
        "* differs beyond chance: {} blocks of A's faults and {} of B's, permuted at random {} times; the largest score of all figures tested together sets the bound (Westfall & Young). {} figures answer the questions of how many, which kinds and how long; others \
         explain what was found ({} in all). Traces that are alike show any difference in {} of comparisons. Shown is what matters: 2 % of the median or mean, 5 % of the 99th \
         percentile, 1 % of the faults, 10 % of the rate, or a part of 0.5 % of the mean fault. \
         Neighbouring blocks correlate by {:.2} and {:.2}. Intervals are 95 % each, from {} resamples of blocks. Two runs of one program differ too: what is shown is a difference between the runs.",
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
    page.indented(0, Ink::Faint, &text);
    let findings = diff.findings.iter();
    let doubtful = findings.filter(|one| one.correction_exceeds_signal).count();
    if doubtful > 0 {
        let text = format!(
            "In {doubtful} of {} findings the correction for the tracer's cost differs by more \
             than the change: they may be the tracer's.",
            diff.findings.len()
        );
        page.indented(0, Ink::Caution, &text);
    }
}
