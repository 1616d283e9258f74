//! Adding the sums of parts of a trace gives the report of the whole trace.

use pagewise_formats::function_graph::read_bytes;
use pagewise_traces::fault_paths::{
    Calibration, Collector, FaultPaths, Source, Sums, Total, analyse,
};
use proptest::prelude::*;
use serde_json::Value;
use std::fmt::Write;

/// One fault or lock call: task, path, nanoseconds in addition to its minimum.
type Step = (u8, u8, u32);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0_u8..4, 0_u8..6, 0_u32..5000), 1..300)
}

/// The lines of one step; times only grow.
fn write(text: &mut String, now: &mut u64, (task, path, more): Step) {
    let inner = u64::from(more) / 3 + 200;
    let pid = 100 + u32::from(task);
    let mut line = |ns: Option<u64>, call: &str| {
        let span = ns.map_or(" ".repeat(12), |ns| {
            let number = format!("{}.{:03} us", ns / 1000, ns % 1000);
            format!("{number:12}")
        });
        let (s, us) = (*now / 1_000_000_000, *now / 1000 % 1_000_000);
        let _ = writeln!(
            text,
            "{s:5}.{us:06} |   0)    bash-{pid}    |   {span}|  {call}"
        );
        *now += 2000;
    };
    let total = inner + u64::from(more) + 900;
    match path {
        0 => line(Some(total), "lock_mm_and_find_vma();"),
        1 => line(Some(total), "handle_mm_fault();"),
        _ => {
            line(None, "handle_mm_fault() {");
            if path == 2 {
                line(Some(150), "  irq_enter_rcu();");
            }
            line(None, "  do_anonymous_page() {");
            for _ in 2..path {
                line(Some(inner / 8), "    __alloc_pages();");
            }
            line(Some(inner / 9), "    folio_add_new_anon_rmap();");
            line(Some(inner), "  } /* do_anonymous_page */");
            line(Some(total), "} /* handle_mm_fault */");
        }
    }
}

fn text<'s>(steps: impl IntoIterator<Item = &'s Step>) -> String {
    let (mut text, mut now) = (String::new(), 5_000_000_000);
    for &step in steps {
        write(&mut text, &mut now, step);
    }
    text
}

/// The tracing cost in all of them.
const COST: Calibration = Calibration {
    per_call_ns: 40.0,
    inside_ns: 15.0,
    error_ns: 2.0,
    source: Source::OwnTrace,
    withdrawn: None,
};

fn report(text: &str) -> (FaultPaths, Sums) {
    let mut collector = Collector::default();
    let summary = read_bytes(text.as_bytes(), &mut collector);
    let findings = analyse(&collector, &summary, COST);
    (findings, Sums::new(&collector, &summary, COST))
}

/// The report of parts, each stored as JSON and read again.
fn merged(parts: &[String]) -> FaultPaths {
    let mut total = Total::new(&[COST]);
    for part in parts {
        let stored = serde_json::to_string(&report(part).1).expect("sums are JSON");
        let sums = serde_json::from_str(&stored).expect("what was stored is read");
        total.add(&sums).expect("sums of this version");
    }
    let (collector, summary, _) = total.finish();
    analyse(&collector, &summary, COST)
}

/// Where two documents differ by more than rounding.
fn difference(place: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => a
            .iter()
            .find_map(|(key, a)| difference(&format!("{place}.{key}"), a, &b[key])),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => (0..)
            .zip(a.iter().zip(b))
            .find_map(|(at, (a, b))| difference(&format!("{place}[{at}]"), a, b)),
        (Value::Number(x), Value::Number(y)) if x.is_f64() || y.is_f64() => {
            let (x, y) = (x.as_f64()?, y.as_f64()?);
            let near = (x - y).abs() <= 1e-9 * x.abs().max(y.abs()).max(1.0);
            (!near).then(|| format!("{place}: {x} against {y}"))
        }
        _ => (a != b).then(|| format!("{place}: {a} against {b}")),
    }
}

fn compare(whole: &FaultPaths, parts: &FaultPaths, without: &[&str]) -> Option<String> {
    let document = |findings: &FaultPaths| {
        let mut value = serde_json::to_value(&findings.evidence).expect("findings are JSON");
        for key in without {
            value[key] = Value::Null;
        }
        value
    };
    difference("", &document(whole), &document(parts))
}

/// Data about single faults or their order is left out when reports are merged.
const NOT_MERGED: [&str; 6] = [
    "duration_ns",
    "descent",
    "contrasts",
    "timeline",
    "lock_waits",
    "reading",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn parts_by_time(steps in steps(), cuts in prop::collection::vec(0_usize..300, 0..4)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (steps.len() + 1)).collect();
        cuts.extend([0, steps.len()]);
        cuts.sort_unstable();
        // A lock call belongs to the next fault of its task, so a cut between them makes a
        // difference.
        let steps: Vec<Step> = steps.into_iter().map(|(task, path, more)| (task, path.max(1), more)).collect();
        let parts: Vec<String> = cuts.windows(2).map(|cut| text(&steps[cut[0]..cut[1]])).collect();
        let whole = report(&text(&steps)).0;
        prop_assert_eq!(compare(&whole, &merged(&parts), &NOT_MERGED), None);
    }

    #[test]
    fn parts_by_task(steps in steps()) {
        let parts: Vec<String> = (0..4)
            .map(|task| text(steps.iter().filter(|step| step.0 == task)))
            .collect();
        let whole = report(&text(&steps)).0;
        let merged = merged(&parts);
        // The same call paths in order of appearance, which differs.
        let without: Vec<&str> = NOT_MERGED.into_iter().chain(["call_map"]).collect();
        prop_assert_eq!(compare(&whole, &merged, &without), None);
    }
}

#[test]
fn sums_that_contradict_themselves_are_refused() {
    let (_, sums) = report(&text(&[(0, 4, 10), (0, 0, 5)]));
    let good = serde_json::to_value(&sums).expect("sums are JSON");
    assert_eq!(Total::new(&[COST]).add(&sums), Ok(()));
    for (path, value) in [
        ("/costs", Value::Array(vec![])),
        ("/costs/0/per_call_ns", Value::from(-1.0)),
        ("/shapes/0/source", Value::from(7)),
        ("/version", Value::from(99)),
        ("/names", Value::Array(vec![])),
        ("/contexts", Value::Array(vec![])),
        ("/shapes/0/calls", Value::Array(vec![])),
        ("/shapes/0/own", Value::Array(vec![])),
        ("/call_times/slots/0/1", Value::from(99)),
        ("/others/0/1/buckets", serde_json::json!([[9, 1], [3, 1]])),
        (
            "/others/0/1/buckets",
            serde_json::json!([[4_000_000_000_u32, 1]]),
        ),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(path).expect(path) = value;
        let bad: Sums = serde_json::from_value(bad).expect("still of the right shape");
        assert!(Total::new(&[COST]).add(&bad).is_err(), "{path}");
    }
}
