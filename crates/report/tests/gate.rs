//! The gate's answer as text, Markdown and JUnit: widths, and names that contain markup or control
//! terminals.

use pagewise_model::answer::Document;
use pagewise_model::findings::Cause;
use pagewise_model::gate::{
    Culprit, FunctionGrowth, Gate, GateSide, GateVerdict, Judged, Metric, StackGrowth,
};
use pagewise_model::run_diff::CauseChange;
use pagewise_model::units::Estimate;
use pagewise_report::gate::{junit, markdown};
use pagewise_report::text::{Style, gate::render};

fn judged(metric: Metric, old: f64, new: f64, verdict: GateVerdict) -> Judged {
    Judged {
        metric,
        old: Some(old),
        new: Some(new),
        growth: (old > 0.0).then(|| new / old - 1.0),
        surely_more_than: None,
        allowed: Some(0.02),
        verdict,
        reason: String::new(),
    }
}

fn failed(name: &str) -> Document<Gate> {
    let side = |baseline: Option<&str>| GateSide {
        command: vec![name.to_owned(), "--all".to_owned()],
        baseline: baseline.map(str::to_owned),
        runs: Vec::new(),
    };
    let unknown = Judged {
        old: None,
        growth: None,
        reason: format!("{name} is unknown"),
        ..judged(Metric::ElapsedTime, 0.0, 1.2e12, GateVerdict::NotJudged)
    };
    let gate = Gate {
        passed: false,
        old: side(Some("base.json")),
        new: side(None),
        most_pairs: 6,
        batch: 3,
        seed: 1,
        level: 0.01,
        figures: vec![
            judged(
                Metric::Faults,
                1_234_567.0,
                12_345_678.0,
                GateVerdict::Grown,
            ),
            judged(Metric::MajorFaults, 0.0, 0.0, GateVerdict::Within),
            judged(Metric::PeakMemory, 1.5e9, 1.6e9, GateVerdict::Unsure),
            unknown,
        ],
        culprit: Some(Culprit {
            causes: vec![CauseChange {
                cause: Cause::FirstTouch,
                label: Cause::FirstTouch.label().to_owned(),
                a: Estimate::exact(1.0),
                b: Estimate::exact(9_000.0),
                differs: true,
            }],
            stacks: vec![StackGrowth {
                stack: vec!["main".to_owned(), name.to_owned(), "malloc".to_owned()],
                culprit: name.to_owned(),
                cause: Cause::FirstTouch,
                label: Cause::FirstTouch.label().to_owned(),
                old: 1.0,
                new: 9_000.0,
            }],
            functions: vec![FunctionGrowth {
                name: name.to_owned(),
                module: "app".to_owned(),
                old_s: 0.1,
                new_s: 0.2,
            }],
            missing: vec![format!("{name} could not be seen")],
        }),
    };
    Document::new(gate)
        .with_verdict("Page faults grew from 1,234,567 to 12,345,678.")
        .with_notes(vec![format!("{name} ends with status 1.")])
}

const PLAIN: Style = Style {
    color: false,
    unicode: true,
};
const HOSTILE: &str = "f<a & b>|`x`\u{1b}[31m\u{202e}\"*y*\n<img>";

#[test]
fn the_text_fits_a_narrow_terminal() {
    for name in ["./app", HOSTILE] {
        let text = render(&failed(name), 80, PLAIN);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(text.contains("grew") && text.contains("not sure") && text.contains("not judged"));
    }
}

#[test]
fn names_neither_steer_a_terminal_nor_become_markup() {
    let gate = failed(HOSTILE);
    for text in [render(&gate, 80, PLAIN), markdown(&gate), junit(&gate)] {
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(steers), "{text}");
    }
    let comment = markdown(&gate);
    for line in comment.lines().filter(|line| line.starts_with('|')) {
        assert_eq!(line.matches('|').count(), 7, "{line}");
    }
    // Names are in code spans and blocks, and escaped elsewhere.
    for line in comment.lines().filter(|line| line.contains("<img>")) {
        assert!(line.contains("``") || line.starts_with("   "), "{line}");
    }
    let report = junit(&gate);
    assert!(
        !report.contains("<img>") && report.contains("&lt;img&gt;"),
        "{report}"
    );
    assert_eq!(
        report.matches("<testcase ").count(),
        report.matches("</testcase>").count()
    );
}

#[test]
fn what_the_comment_says_is_what_the_text_says() {
    let gate = failed("./app");
    let (comment, text, report) = (markdown(&gate), render(&gate, 100, PLAIN), junit(&gate));
    for message in [
        "1 → 9,000 faults",
        "first touch",
        "100 ms → 200 ms of CPU time",
        "./app could not be seen",
        "1,234,567",
    ] {
        assert!(comment.contains(message), "{message}: {comment}");
        assert!(text.contains(message), "{message}: {text}");
        assert!(report.contains(message), "{message}: {report}");
    }
    assert!(comment.starts_with("<!-- pagewise gate -->\n### pagewise gate failed\n"));
    assert!(report.contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\""));
}
