//! A comment for a pull request: GitHub's and GitLab's Markdown.

use super::{cause, cells, function, runs, side, stack};
use crate::lines::line;
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::gate::{Culprit, Gate, GateVerdict};

/// The line that identifies the comment, so that it can be replaced later.
const MARK: &str = "<!-- pagewise gate -->";
/// Frames shown of a stack: the innermost ones.
const FRAMES: usize = 12;

/// The answer, the figures, and the reasons for growth.
#[must_use]
pub fn markdown(document: &Document<Gate>) -> String {
    let gate = &document.evidence;
    let mut text = String::new();
    let answer = if gate.passed { "passed" } else { "failed" };
    line!(&mut text, "{MARK}");
    line!(&mut text, "### pagewise gate {answer}\n");
    line!(&mut text, "{}\n", escaped(&document.verdict));
    figures(&mut text, gate);
    if let Some(found) = &gate.culprit {
        culprit(&mut text, found);
    }
    how(&mut text, document);
    text
}

fn figures(text: &mut String, gate: &Gate) {
    line!(text, "| | old | new | change | allowed | |");
    line!(text, "|---|--:|--:|--:|--:|---|");
    for figure in &gate.figures {
        let [name, old, new, change, allowed, verdict] = cells(figure);
        let verdict = match figure.verdict {
            GateVerdict::Grown => format!("**{verdict}**"),
            _ => verdict,
        };
        line!(
            text,
            "| {name} | {old} | {new} | {change} | {allowed} | {verdict} |"
        );
    }
    line!(text);
}

fn culprit(text: &mut String, found: &Culprit) {
    line!(text, "#### What is behind it\n");
    for grown in &found.causes {
        line!(text, "- {}", escaped(&cause(grown)));
    }
    for grown in &found.functions {
        line!(text, "- {}: {}", code(&grown.name), function(grown));
    }
    for grown in &found.stacks {
        line!(
            text,
            "- {}: {}",
            code(&grown.culprit),
            escaped(&stack(grown))
        );
        line!(text);
        line!(text, "  ```");
        let hidden = grown.stack.len().saturating_sub(FRAMES);
        if hidden > 0 {
            line!(text, "  …");
        }
        for (depth, frame) in grown.stack.iter().skip(hidden).enumerate() {
            let frame = visible(frame).replace("```", "'''");
            line!(text, "  {}{frame}", " ".repeat(depth));
        }
        line!(text, "  ```");
    }
    for missing in &found.missing {
        line!(text, "- {}", escaped(missing));
    }
    line!(text);
}

fn how(text: &mut String, document: &Document<Gate>) {
    let gate = &document.evidence;
    line!(text, "<details><summary>How this was measured</summary>\n");
    line!(text, "- old: {}", code(&side(&gate.old)));
    line!(text, "- new: {}", code(&side(&gate.new)));
    line!(
        text,
        "- {}, in random order; all figures together raise a false alarm in at most 5 % of gates",
        runs(gate)
    );
    for figure in gate
        .figures
        .iter()
        .filter(|figure| !figure.reason.is_empty())
    {
        let name = figure.metric.label();
        line!(text, "- {name}: not judged, {}", escaped(&figure.reason));
    }
    for note in &document.notes {
        line!(text, "- {}", escaped(note));
    }
    line!(text, "\n</details>");
}

/// Text without markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text).chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '@' | '&'
        ) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// A code span, delimited by more backticks than it contains (CommonMark 0.31, 6.1).
fn code(text: &str) -> String {
    let text = visible(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    match longest {
        0 => format!("{fence}{text}{fence}"),
        _ => format!("{fence} {text} {fence}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(escaped("a_b <img> *x* @all"), r"a\_b \<img\> \*x\* \@all");
        assert_eq!(code("operator`"), "`` operator` ``");
        assert_eq!(code("f<a, b>"), "`f<a, b>`");
        assert_eq!(code("x\ny"), "`x\\ny`");
    }
}
