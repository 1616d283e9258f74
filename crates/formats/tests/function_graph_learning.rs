//! Interrupts are learned from their position: their names do not matter.

use pagewise_formats::function_graph::{CallTree, Names, is_interrupt, read};
use std::collections::BTreeMap;
use std::path::Path;

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/traces");
    let packed = std::fs::File::open(folder.join(name)).expect("a trace for tests");
    let text = zstd::decode_all(packed).expect("packed text");
    String::from_utf8(text).expect("text")
}

/// The outermost calls that are attributed to interrupts, by name, and how many calls are left.
fn interrupts(text: &str) -> (BTreeMap<String, u64>, u64) {
    let (mut found, mut others) = (BTreeMap::new(), 0);
    let mut sink = |tree: &CallTree, names: &Names| {
        let mut at = 0;
        while let Some(node) = tree.nodes.get(at) {
            let place = u32::try_from(at).expect("small trees");
            let is = tree.interrupts.binary_search(&place).is_ok()
                || is_interrupt(names.base(node.name()));
            if is {
                *found.entry(names.text(node.name()).to_owned()).or_default() += 1;
            }
            others += u64::from(!is);
            at = if is { node.end as usize } else { at + 1 };
        }
    };
    read(text.as_bytes(), &mut sink).expect("readable");
    (found, others)
}

const FRAMES: &[&str] = &[
    "irq_enter_rcu",
    "__sysvec_apic_timer_interrupt",
    "irq_exit_rcu",
    "raw_irqentry_exit_cond_resched",
    "__hrtimer_rearm_deferred",
];

/// With the frames of 7.2 under unknown names, nearly all are found, and nothing else.
#[test]
fn frames_under_unknown_names_are_found() {
    let text = fixture("anon-7.2.txt.zst");
    let (known, others) = interrupts(&text);
    for frame in FRAMES {
        assert!(known[*frame] >= 10, "{frame}: {known:?}");
    }
    for hidden in [&FRAMES[3..], &FRAMES[4..], &FRAMES[1..2]] {
        let renamed = hidden.iter().fold(text.clone(), |text, frame| {
            text.replace(frame, &format!("new_{}", &frame[2..]))
        });
        let (learned, left) = interrupts(&renamed);
        assert_eq!(
            (learned.values().sum::<u64>(), left),
            (known.values().sum(), others),
            "{hidden:?}: {learned:?} {known:?}"
        );
    }
    let all = FRAMES.iter().fold(text, |text, frame| {
        text.replace(frame, &format!("new_{}", &frame[2..]))
    });
    let (learned, left) = interrupts(&all);
    assert!(
        left.abs_diff(others) * 500 <= others,
        "{left} {others} {learned:?}"
    );
}

/// No function that a fault calls directly is attributed to an interrupt.
#[test]
fn what_is_taken_for_an_interrupt_is_one() {
    const EXPECTED: &[&str] = &[
        "__common_interrupt",
        "__sysvec_apic_timer_interrupt",
        "irq_enter_rcu",
        "irq_exit_rcu",
    ];
    for trace in ["redis.txt.zst", "tpcc.txt.zst"] {
        let (found, _) = interrupts(&fixture(trace));
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert!(!names.is_empty(), "{trace}");
        for name in names {
            assert!(EXPECTED.contains(&name), "{trace}: {name}");
        }
    }
}
