//! Trees of random faults, compared with a count over all of them, one by one.

use super::*;
use crate::fault_paths::Source;
use pagewise_formats::function_graph::read_bytes;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A call: function, self time in nanoseconds, callees.
#[derive(Clone, Debug)]
struct Call {
    name: char,
    own: u64,
    below: Vec<Call>,
}

impl Call {
    fn total(&self) -> u64 {
        self.own + self.below.iter().map(Call::total).sum::<u64>()
    }

    fn calls(&self) -> u64 {
        self.below.iter().map(|call| 1 + call.calls()).sum()
    }

    fn write(&self, depth: usize, text: &mut String) {
        let total = self.total();
        let span = format!("{}.{:03} us", total / 1000, total % 1000);
        let indent = "  ".repeat(depth);
        let name = match depth {
            0 => "handle_mm_fault".to_owned(),
            _ => format!("f{}", self.name),
        };
        if self.below.is_empty() {
            let _ = writeln!(text, " 0)  a-1    | {span:>11}  |  {indent}{name}();");
            return;
        }
        let _ = writeln!(text, " 0)  a-1    |              |  {indent}{name}() {{");
        self.below
            .iter()
            .for_each(|call| call.write(depth + 1, text));
        let _ = writeln!(text, " 0)  a-1    | {span:>11}  |  {indent}}} /* {name} */");
    }

    /// The tree without repeats, as in the outline without numbers.
    fn folded(&self, is_root: bool) -> String {
        let name = match is_root {
            true => "handle_mm_fault".to_owned(),
            false => format!("f{}", self.name),
        };
        let below = self.below.iter();
        let mut row: Vec<(String, bool)> = below.map(|call| (call.folded(false), false)).collect();
        for len in 1..=4 {
            row = without_loops(&row, len);
        }
        match row.is_empty() {
            true => name,
            false => {
                let below: Vec<String> = row.into_iter().map(|(call, _)| call).collect();
                format!("{name} {{ {} }}", below.join(" "))
            }
        }
    }
}

/// A row without consecutive repeats; the flag ties a call to the next, in a loop.
fn without_loops(row: &[(String, bool)], len: usize) -> Vec<(String, bool)> {
    if row.is_empty() {
        return Vec::new();
    }
    let texts = |turn: &[(String, bool)]| -> Vec<String> {
        turn.iter().map(|(text, _)| text.clone()).collect()
    };
    let mut turns = 0;
    while let Some(turn) = row.get(turns * len..(turns + 1) * len)
        && texts(turn) == texts(&row[..len])
        && !turn[len - 1].1
    {
        turns += 1;
    }
    if turns > 1 {
        let ties = |at: usize| (0..turns).any(|turn| row[turn * len + at].1) || at + 1 < len;
        let kept = (0..len).map(|at| (row[at].0.clone(), ties(at)));
        return kept
            .chain(without_loops(&row[turns * len..], len))
            .collect();
    }
    // A loop must not begin within another one.
    let tied = row.iter().take_while(|(_, is_tied)| *is_tied).count();
    let (now, rest) = row.split_at((tied + 1).min(row.len()));
    now.iter()
        .cloned()
        .chain(without_loops(rest, len))
        .collect()
}

#[derive(Default)]
struct Counted {
    faults: BTreeSet<usize>,
    occurrences: u64,
    inner: u64,
    inside: u64,
    direct: u64,
    total: u64,
    own: u64,
    least: Option<u64>,
    most: u64,
    callers: BTreeSet<Option<String>>,
}

fn count(call: &Call, fault: usize, caller: Option<&str>, all: &mut BTreeMap<String, Counted>) {
    let tree = call.folded(caller.is_none());
    for below in &call.below {
        count(below, fault, Some(&tree), all);
    }
    let counted = all.entry(tree).or_default();
    counted.faults.insert(fault);
    counted.occurrences += 1;
    counted.inner += u64::from(caller.is_some());
    counted.inside += call.calls();
    counted.direct += call.below.len() as u64;
    counted.total += call.total();
    counted.own += call.own;
    counted.least = Some(counted.least.unwrap_or(u64::MAX).min(call.calls()));
    counted.most = counted.most.max(call.calls());
    counted.callers.insert(caller.map(str::to_owned));
}

/// An outline without numbers and brackets of repeats.
fn plain(outline: &str) -> String {
    let is_plain = |word: &&str| !word.starts_with('×') && !["(", ")"].contains(word);
    let words: Vec<&str> = outline.split(' ').filter(is_plain).collect();
    words.join(" ")
}

fn calls() -> impl Strategy<Value = Call> {
    let leaf = (prop::char::range('a', 'c'), 1_u64..5000).prop_map(|(name, own)| Call {
        name,
        own,
        below: Vec::new(),
    });
    leaf.prop_recursive(3, 24, 6, |inner| {
        let below = prop::collection::vec((inner, 1_usize..4), 0..5);
        let one = (prop::char::range('a', 'c'), 1_u64..5000, below, 1_usize..3);
        one.prop_map(|(name, own, below, turns)| {
            let once = below
                .into_iter()
                .flat_map(|(call, times)| std::iter::repeat_n(call, times));
            let once: Vec<Call> = once.collect();
            let below = std::iter::repeat_n(once, turns).flatten().collect();
            Call { name, own, below }
        })
    })
}

const CALIBRATION: Calibration = Calibration {
    per_call_ns: 100.0,
    inside_ns: 40.0,
    error_ns: 0.0,
    source: Source::OwnTrace,
    withdrawn: None,
};

fn found(faults: &[Call], min_faults: u64) -> FrequentTrees {
    let mut text = String::new();
    faults.iter().for_each(|fault| fault.write(0, &mut text));
    let mut collector = Collector::default();
    let summary = read_bytes(text.as_bytes(), &mut collector);
    assert_eq!(collector.faults(), faults.len() as u64, "{text}");
    let query = TreeQuery {
        min_faults,
        min_share: 2.0,
        most: usize::MAX,
    };
    frequent_trees(&collector, &summary.names, CALIBRATION, query)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn trees_are_those_of_a_count_one_by_one(
        faults in prop::collection::vec(calls(), 1..12), min_faults in 1_u64..4,
    ) {
        let mut all = BTreeMap::new();
        for (at, fault) in faults.iter().enumerate() {
            count(fault, at, None, &mut all);
        }
        all.retain(|tree, counted| {
            let is_free = counted.callers.len() > 1 || counted.callers.contains(&None);
            tree.contains('{') && is_free && counted.faults.len() as u64 >= min_faults
        });
        let fault_time: u64 = faults.iter().map(Call::total).sum();
        let trees = found(&faults, min_faults);
        prop_assert_eq!(trees.left_out, 0);
        let mut shares = trees.trees.iter().map(|tree| tree.corrected_time_share);
        prop_assert!(shares.by_ref().is_sorted_by(|a, b| a >= b));
        for tree in &trees.trees {
            let name = plain(&tree.outline);
            let Some(counted) = all.remove(&name) else {
                return Err(TestCaseError::fail(format!("{} is not one", tree.outline)));
            };
            prop_assert_eq!(tree.faults, counted.faults.len() as u64);
            prop_assert_eq!(tree.occurrences, counted.occurrences);
            prop_assert_eq!(tree.calls, (counted.least.unwrap_or(0), counted.most));
            prop_assert_eq!((tree.total_ns, tree.self_ns), (counted.total, counted.own));
            prop_assert_eq!(tree.timed, counted.occurrences);
            prop_assert_eq!(tree.complete, counted.inner == 0);
            let cost = counted.inside * 100 + counted.inner * 40;
            prop_assert_eq!(tree.corrected_total_ns, counted.total.saturating_sub(cost));
            let cost = counted.direct * 60 + counted.inner * 40;
            prop_assert_eq!(tree.corrected_self_ns, counted.own.saturating_sub(cost));
            let share = counted.total as f64 / fault_time as f64;
            prop_assert!((tree.time_share - share).abs() < 1e-9);
        }
        prop_assert!(all.is_empty(), "missing: {:?}", all.keys());
    }
}

fn call(name: char, below: &[Call]) -> Call {
    Call {
        name,
        own: 500,
        below: below.to_vec(),
    }
}

#[test]
fn outlines_say_how_often() {
    let (a, b) = (call('a', &[]), call('b', &[]));
    let one = |times: usize, loops: usize| {
        let mut below = vec![a.clone(); times];
        for _ in 0..loops {
            below.extend([b.clone(), call('c', &vec![a.clone(); 2])]);
        }
        call('x', &below)
    };
    let trees = found(&[one(1, 2), one(3, 2), one(3, 4)], 1).trees;
    let [whole] = &trees[..] else {
        panic!("fc is nowhere else: {trees:#?}");
    };
    assert_eq!(
        whole.outline,
        "handle_mm_fault { fa ×1–3 ( fb fc { fa ×2 } ) ×2–4 }"
    );
    assert_eq!(whole.repeats[0].function, "fa");
    assert_eq!(whole.repeats[0].counts, [(1, 1), (3, 2)]);
    assert_eq!(whole.repeats[1].function, "fb fc");
    assert_eq!(whole.repeats[1].counts, [(2, 2), (4, 1)]);
    assert_eq!((whole.faults, whole.complete), (3, true));
}
