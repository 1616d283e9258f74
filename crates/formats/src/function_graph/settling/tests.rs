//! The fast method against the naive one, which examines every caller with all its calls.

use super::super::line::Span;
use super::super::tree::{Detail, Node, OffCpu, Wait};
use super::*;
use proptest::prelude::*;

/// `g` belongs to an interrupt, `h` ends a switch and `i` begins one; `j` and `k` are the
/// scheduler's.
const NAMES: [&str; 11] = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "irq_enter_rcu",
    "finish_task_switch",
    "rcu_note_context_switch",
    "schedule",
    "dequeue_task",
];

/// A tree of calls at these depths (as far as there is a caller), some of them marked.
fn tree(calls: &[(u32, u16, bool)]) -> CallTree {
    let mut tree = CallTree::default();
    let mut depth = 0;
    for (place, &(name, wanted, marked)) in (0..).zip(calls) {
        depth = match place {
            0 => 0,
            _ => wanted.clamp(1, depth + 1),
        };
        tree.nodes.push(Node {
            name,
            end: 0,
            depth,
            span: Span::default(),
            children_ns: 0,
        });
        if marked && place > 0 {
            tree.interrupts.push(place);
        }
    }
    for at in 0..tree.nodes.len() {
        let behind = tree.nodes[at + 1..].iter();
        let inside = behind.take_while(|node| node.depth > tree.nodes[at].depth);
        tree.nodes[at].end = u32::try_from(at + 1 + inside.count()).expect("a small tree");
    }
    tree
}

fn trees() -> impl Strategy<Value = Vec<CallTree>> {
    let names = u32::try_from(NAMES.len()).expect("a few");
    let call = (0..names, 1_u16..5, prop::bool::weighted(0.1));
    let calls = prop::collection::vec(call, 1..30);
    prop::collection::vec(calls.prop_map(|calls| tree(&calls)), 0..12)
}

fn each_caller(learned: &Learned, tree: Calls<'_>, mut visit: impl FnMut(u32, &[Sibling])) {
    let mut at = 0;
    while let Some(node) = tree.nodes.get(at) {
        let call = learned.sibling(tree, at).expect("it is there");
        if at > 0 && (call.sure || call.marked) {
            at = node.end as usize;
            continue;
        }
        let mut row = Vec::new();
        let mut child = at + 1;
        while child < node.end as usize {
            row.push(learned.sibling(tree, child).expect("it is there"));
            child = tree.nodes[child].end as usize;
        }
        visit(node.name, &row);
        at += 1;
    }
}

fn calls(tree: &CallTree) -> Calls<'_> {
    Calls {
        nodes: &tree.nodes,
        interrupts: &tree.interrupts,
    }
}

fn batch(trees: &[CallTree]) -> Batch {
    let mut batch = Batch::default();
    trees.iter().for_each(|tree| batch.push(&mut tree.clone()));
    batch
}

fn evidence_of(learned: &Learned, trees: &[CallTree]) -> Evidence {
    let mut evidence = Evidence {
        calls: vec![0; NAMES.len()],
        ..Evidence::default()
    };
    for tree in trees {
        evidence.calls[tree.nodes[0].name as usize] += 1;
        each_caller(learned, calls(tree), |caller, row| {
            for call in row.iter().filter(|call| !call.sure && !call.marked) {
                evidence.calls[call.name as usize] += 1;
            }
            evidence.beside(caller, row);
            evidence.off_level(row);
        });
    }
    let beside = evidence.beside.keys().map(|&(name, _)| name);
    let asked: Vec<u32> = beside.chain(evidence.off_level.keys().copied()).collect();
    for tree in trees {
        each_caller(learned, calls(tree), |caller, row| {
            for call in row.iter().filter(|call| !call.sure && !call.marked) {
                if asked.contains(&call.name) {
                    *evidence.callers.entry((call.name, caller)).or_default() += 1;
                }
            }
        });
    }
    evidence
}

fn marked(learned: &Learned, tree: &CallTree) -> Vec<u32> {
    let mut found = tree.interrupts.clone();
    each_caller(learned, calls(tree), |caller, row| {
        let mut is: Vec<bool> = row.iter().map(|call| call.sure || call.marked).collect();
        learned.put_aside(caller, row, &mut is);
        learned.extend(row, &mut is);
        let marked = row.iter().zip(is).filter(|(_, is)| *is);
        found.extend(marked.map(|(call, _)| call.node));
    });
    found.sort_unstable();
    found.dedup();
    found
}

fn names() -> Names {
    let mut names = Names::default();
    for name in NAMES {
        names.intern(name.as_bytes());
    }
    names
}

#[test]
fn the_names_of_these_tests_say_what_they_are_to_say() {
    let mut learned = Learned::default();
    learned.know(&names());
    assert_eq!(
        learned.signs,
        [0, 0, 0, 0, 0, 0, SURE, BACK, BEGINS_SWITCH, 0, 0]
    );
}

proptest! {
    #[test]
    fn a_batch_gives_back_the_trees_that_it_took(trees in trees()) {
        let mut trees = trees;
        for (place, tree) in (0..).zip(&mut trees) {
            tree.pid = Some(place);
            (tree.cpu, tree.start, tree.end) = (Some(1), None, Some(u64::from(place)));
            tree.timed = place % 2 == 0;
            for node in 0..place % 3 {
                let detail = Detail { node, args: "a=1".into(), returned: Some(2) };
                tree.details.push(detail);
                tree.off_cpu.push(OffCpu { node, from: 1, ns: 2, wait: Wait::Blocked });
            }
        }
        let mut batch = batch(&trees);
        let mut out = CallTree::default();
        for (place, tree) in trees.iter().enumerate() {
            batch.take(place, &mut out);
            prop_assert_eq!(&out, tree);
        }
    }

    #[test]
    fn evidence_is_what_all_callers_tell(trees in trees()) {
        let mut learned = Learned::default();
        learned.know(&names());
        let mut evidence = Evidence {
            calls: vec![0; NAMES.len()],
            ..Evidence::default()
        };
        let mut memory = Memory::default();
        for tree in &trees {
            let met = learned.observe(calls(tree), &mut evidence, &mut memory);
            prop_assert_eq!(met, learned.met(calls(tree)));
        }
        learned.observe_callers(&batch(&trees), &mut evidence, &mut memory.open);
        prop_assert_eq!(evidence, evidence_of(&learned, &trees));
    }

    #[test]
    fn marks_are_those_among_the_calls_of_all_callers(trees in trees()) {
        let names = names();
        let mut learned = Learned::default();
        let met = learned.study(&batch(&trees), &names);
        for (place, tree) in trees.into_iter().enumerate() {
            let expected = marked(&learned, &tree);
            let met = met.as_ref().map_or_else(|| learned.met(calls(&tree)), |met| met[place]);
            let mut tree = tree;
            learned.mark(&mut tree, met);
            prop_assert_eq!(tree.interrupts, expected);
        }
    }
}
