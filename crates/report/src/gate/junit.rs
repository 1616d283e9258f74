//! A JUnit report for CI servers: a test suite with a case for each figure.
//!
//! JUnit has no standard; this uses only what Jenkins, GitLab and Gradle agree on: `testsuites`,
//! `testsuite` with counts, `testcase` with `failure` or `skipped`.

use super::{cause, cells, function, side, stack};
use crate::lines::line;
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::gate::{Gate, GateVerdict, Judged};

/// The document.
#[must_use]
pub fn junit(document: &Document<Gate>) -> String {
    let gate = &document.evidence;
    let with = |verdict| {
        gate.figures
            .iter()
            .filter(|figure| figure.verdict == verdict)
            .count()
    };
    // All figures come from the same runs: each case has its share of their time.
    let seconds = seconds(gate);
    let each = seconds / gate.figures.len().max(1) as f64;
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{seconds:.6}\"",
        gate.figures.len(),
        with(GateVerdict::Grown),
        with(GateVerdict::NotJudged)
    );
    let name = escaped(&side(&gate.new));
    let mut text = String::new();
    line!(&mut text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    line!(&mut text, "<testsuites name=\"pagewise gate\" {counts}>");
    line!(&mut text, "<testsuite name=\"{name}\" {counts}>");
    for figure in &gate.figures {
        case(&mut text, document, figure, &name, each);
    }
    line!(&mut text, "</testsuite>");
    line!(&mut text, "</testsuites>");
    text
}

/// Elapsed time of all runs; those of a stored baseline were made before.
fn seconds(gate: &Gate) -> f64 {
    let old = match gate.old.baseline {
        Some(_) => &[][..],
        None => &gate.old.runs,
    };
    let runs = old.iter().chain(&gate.new.runs);
    let one: f64 = runs.map(|run| run.cost.wall.as_secs_f64()).sum();
    one * f64::from(gate.batch)
}

fn case(text: &mut String, document: &Document<Gate>, figure: &Judged, suite: &str, seconds: f64) {
    let [label, old, new, change, allowed, _] = cells(figure);
    let figures = escaped(&format!("{old} → {new} ({change}, {allowed} allowed)"));
    line!(
        text,
        "<testcase classname=\"{suite}\" name=\"{label}\" time=\"{seconds:.6}\">"
    );
    match figure.verdict {
        GateVerdict::Grown => {
            line!(
                text,
                "<failure type=\"growth\" message=\"{label}: {figures}\">"
            );
            line!(text, "{}", escaped(&document.verdict));
            for found in details(&document.evidence) {
                line!(text, "{}", escaped(&found));
            }
            line!(text, "</failure>");
        }
        GateVerdict::NotJudged => {
            line!(text, "<skipped message=\"{}\"/>", escaped(&figure.reason));
        }
        GateVerdict::Within | GateVerdict::Unsure => {
            line!(text, "<system-out>{figures}</system-out>");
        }
    }
    line!(text, "</testcase>");
}

/// The reasons for the growth, one per line.
fn details(gate: &Gate) -> Vec<String> {
    let Some(found) = &gate.culprit else {
        return Vec::new();
    };
    let causes = found.causes.iter().map(cause);
    let functions = found.functions.iter();
    let functions = functions.map(|grown| format!("{}: {}", grown.name, function(grown)));
    let stacks = found.stacks.iter().map(|grown| {
        let frames: Vec<&str> = grown.stack.iter().rev().map(String::as_str).collect();
        format!(
            "{}: {}: {}",
            grown.culprit,
            stack(grown),
            frames.join(" ← ")
        )
    });
    let missing = found.missing.iter().cloned();
    causes
        .chain(functions)
        .chain(stacks)
        .chain(missing)
        .collect()
}

/// Text without markup, and without characters that XML 1.0 excludes.
fn escaped(text: &str) -> String {
    let text = visible(text).replace('&', "&amp;").replace('<', "&lt;");
    let text = text.replace('>', "&gt;").replace('"', "&quot;");
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(
            escaped("f<a & b>\"\u{1b}"),
            "f&lt;a &amp; b&gt;&quot;\\u{1b}"
        );
    }
}
