//! Random legal traces are read back exactly: every option of the text, tasks that interleave and
//! migrate, losses, and cuts at any byte.

mod on_cores;
mod simulator;

use pagewise_formats::function_graph::{self, CallTree, Names, Wait};
use proptest::prelude::*;
use simulator::{Call, Options, Simulation};

/// A tree as both sides describe it.
fn described(tree: &CallTree, names: &Names) -> (Option<u64>, Vec<Call>) {
    let calls = tree.nodes.iter().enumerate().map(|(place, node)| Call {
        name: names.text(node.name()).to_owned(),
        depth: u32::from(node.depth),
        ns: node.span.ns,
        off_ns: tree
            .off_cpu
            .iter()
            .filter(|off| off.node as usize == place && off.wait != Wait::Estimated)
            .map(|off| off.ns)
            .sum(),
    });
    (tree.start, calls.collect())
}

fn read(text: &[u8], chunk: usize) -> Vec<(Option<u64>, Vec<Call>)> {
    let mut found = Vec::new();
    let mut sink = |tree: &CallTree, names: &Names| found.push(described(tree, names));
    let mut parser = function_graph::Parser::new();
    let mut builder = function_graph::Builder::new();
    for part in text.chunks(chunk.max(1)) {
        parser.feed(part, |line, names| builder.line(line, names, &mut sink));
    }
    parser.finish(|line, names| builder.line(line, names, &mut sink));
    builder.finish();
    assert_eq!(
        parser.counts().unknown_lines,
        0,
        "{}",
        String::from_utf8_lossy(text)
    );
    found
}

fn options() -> impl Strategy<Value = Options> {
    let flags = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    (flags, 0_u8..4, 1_u32..4, 1_u32..6, any::<bool>()).prop_map(
        |((tail, proc, overhead, latency, args), retval, cpus, tasks, sched)| Options {
            tail,
            // Without the task column a migrating task can't be followed.
            proc: proc || cpus > 1,
            overhead,
            latency,
            args,
            retval,
            cpus,
            tasks,
            sched,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_legal_trace_is_read_back_exactly(options in options(), seed in any::<u64>(), chunk in 1_usize..5000) {
        let simulation = Simulation::run(&options, seed);
        let expected: Vec<_> = simulation.complete();
        let text = simulation.text();
        prop_assert_eq!(read(text.as_bytes(), chunk), expected, "{}", &text);
        let (threads, text) = (2 + chunk % 3, text.as_bytes());
        prop_assert_eq!(on_cores::difference(text, threads, chunk), None);
    }

    #[test]
    fn a_cut_at_any_byte_leaves_the_trees_before_it(options in options(), seed in any::<u64>(), cut in 0.0_f64..1.0) {
        let simulation = Simulation::run(&options, seed);
        let text = simulation.text();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a short text")]
        let cut = (text.len() as f64 * cut) as usize;
        let whole = read(text.as_bytes(), 4096);
        let part = read_cut(&text.as_bytes()[..cut]);
        prop_assert!(part.len() <= whole.len());
        prop_assert_eq!(&part[..], &whole[..part.len()]);
        let lines_before = text[..cut].rfind('\n').map_or(0, |end| end + 1);
        let certain = read(&text.as_bytes()[..lines_before], 4096);
        prop_assert!(part.len() >= certain.len());
    }

    #[test]
    fn losses_leave_only_true_trees(options in options(), seed in any::<u64>()) {
        let options = Options { proc: true, ..options };
        let simulation = Simulation::run(&options, seed);
        let (text, untouched) = simulation.with_losses(seed);
        let all = simulation.complete();
        let found = read(text.as_bytes(), 4096);
        prop_assert_eq!(on_cores::difference(text.as_bytes(), 3, 900), None);
        for tree in &found {
            prop_assert!(all.contains(tree), "no such tree: {:?}\n{}", tree, text);
        }
        for start in untouched {
            prop_assert!(found.iter().any(|(time, _)| *time == Some(start)), "lost: {}\n{}", start, text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Lines dropped, duplicated and swapped, bytes changed: nothing panics, trees remain
    /// well-formed, and chunks make no difference.
    #[test]
    fn spoilt_text_is_read_the_same_in_any_chunks(
        options in options(),
        seed in any::<u64>(),
        spoils in prop::collection::vec((any::<u16>(), 0_u8..6, any::<u8>()), 0..20),
        chunk in 1_usize..300,
    ) {
        let simulation = Simulation::run(&options, seed);
        let mut lines: Vec<Vec<u8>> = simulation
            .text()
            .split_inclusive('\n')
            .map(|line| line.as_bytes().to_vec())
            .collect();
        for (place, kind, value) in spoils {
            let place = usize::from(place) % lines.len();
            let other = (place + usize::from(value)) % lines.len();
            match kind {
                0 => lines[place].clear(),
                1 => lines[place] = lines[other].clone(),
                2 => lines.swap(place, other),
                3 => lines[place] = lines[place].iter().skip(2).copied().collect(),
                4 => shift(&mut lines[place], value),
                _ => {
                    let at = usize::from(value) % lines[place].len().max(1);
                    if let Some(byte) = lines[place].get_mut(at) {
                        *byte = value;
                    }
                }
            }
        }
        let text = lines.concat();
        let whole = read_cut(&text);
        prop_assert_eq!(&read_chunks(&text, chunk), &whole);
        let (threads, piece) = (2 + chunk % 3, 1 + chunk * 13);
        prop_assert_eq!(on_cores::difference(&text, threads, piece), None);
        for (_, calls) in whole {
            prop_assert!(!calls.is_empty());
        }
    }
}

/// Moves a call one or two levels in or out, as interrupts at its entry and exit appear.
fn shift(line: &mut Vec<u8>, value: u8) {
    let Some(bar) = line.windows(3).rposition(|w| w == b"|  ") else {
        return;
    };
    match value % 4 {
        0 => drop(line.splice(bar + 3..bar + 3, *b"  ")),
        1 => drop(line.splice(bar + 3..bar + 3, *b"    ")),
        _ if line[bar + 3..].starts_with(b"  ") => drop(line.drain(bar + 3..bar + 5)),
        _ => {}
    }
}

fn read_chunks(text: &[u8], chunk: usize) -> Vec<(Option<u64>, Vec<Call>)> {
    let mut found = Vec::new();
    let mut sink = |tree: &CallTree, names: &Names| {
        for (place, node) in tree.nodes.iter().enumerate() {
            assert!(node.end as usize > place && node.end as usize <= tree.nodes.len());
        }
        found.push(described(tree, names));
    };
    let (mut parser, mut builder) = (
        function_graph::Parser::new(),
        function_graph::Builder::new(),
    );
    for part in text.chunks(chunk) {
        parser.feed(part, |line, names| builder.line(line, names, &mut sink));
    }
    parser.finish(|line, names| builder.line(line, names, &mut sink));
    builder.finish();
    found
}

/// A cut may leave a last line of no known form.
fn read_cut(text: &[u8]) -> Vec<(Option<u64>, Vec<Call>)> {
    let mut found = Vec::new();
    let mut sink = |tree: &CallTree, names: &Names| found.push(described(tree, names));
    function_graph::read(text, &mut sink).expect("memory is readable");
    found
}

/// Time goes back in the second piece, so that it is read twice: the first time, a damaged line
/// yields a name that is not in the text.
#[test]
fn names_of_a_first_try_are_forgotten() {
    let text = b"\
   45.397453 |   0)     wl-343     |   0.719 us    |            __rcu_read_unlock();
   45.397454 |   0)     wl-343     |   3.587 us    |          } /* get_mem_cgroup_from_mm */
   45.397455 |   0)     wl-343     |   5.033 us    |        } /* __mem_cgroup_charge */
   45.397456 |   0)     wl-343     |   0.722 us    |        __folio_thr  __alloc_pages_noprof() {
   41.281430 |   0)     wl-289     |             __cond_resched();
   41.281431 |   0)     wl-289     |             get_page_from_freelist() {
   41.281432 |   0)     wl-289     |               cond_accept_memory();
   41.281433 |   0)     wl-289     |ottle_swaprate();
   45.397457 |   0)     wl-343     |   4.816 us    |        copy_mc_to_kernel();
";
    assert_eq!(on_cores::difference(text, 2, 281), None);
}

/// In the second piece, lines of a task that is known by its own column are followed by one whose
/// task only the last switch tells, which is in the first piece.
#[test]
fn a_line_without_its_task_belongs_to_a_task_that_others_name() {
    let options = Options {
        tail: false,
        proc: true,
        overhead: false,
        latency: true,
        args: true,
        retval: 2,
        cpus: 1,
        tasks: 5,
        sched: false,
    };
    let text = Simulation::run(&options, 17_111_616_078_708_876_178).text();
    let lines = text.split_inclusive('\n');
    let mut lines: Vec<Vec<u8>> = lines.map(|line| line.as_bytes().to_vec()).collect();
    let place = lines
        .iter()
        .position(|line| line.starts_with(b"   29.048194 |"))
        .expect("the simulation is the same each time");
    let name = lines[place].iter().position(|&byte| byte == b']');
    lines[place][name.expect("tasks are called `x-1 [y]`") + 1] = 242;
    assert_eq!(on_cores::difference(&lines.concat(), 2, 365), None);
}
