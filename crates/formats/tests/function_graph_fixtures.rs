//! Every fixture is read without an unknown line, and has as many calls and ends of calls as a
//! plain search for `();`, `() {` and `}` finds.

use pagewise_formats::function_graph::{self, CallTree, Content, Names, Parser, looks_like};
use std::path::Path;

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    leaves: usize,
    opens: usize,
    closes: usize,
    with_duration: usize,
}

fn parsed(text: &[u8]) -> (Found, u64) {
    let mut found = Found::default();
    let mut parser = Parser::new();
    parser.feed(text, |line, _| {
        match line.content {
            Content::Leaf(_) => found.leaves += 1,
            Content::Open(_) => found.opens += 1,
            Content::Close(_) => found.closes += 1,
            _ => {}
        }
        found.with_duration += usize::from(line.span.is_some());
    });
    (found, parser.counts().unknown_lines)
}

fn searched(text: &str) -> Found {
    let of = |wanted: &dyn Fn(&str) -> bool| text.lines().filter(|line| wanted(line)).count();
    let call = |line: &str| line.rsplit('|').next().unwrap_or(line).trim().to_owned();
    Found {
        leaves: of(&|line| line.ends_with("();")),
        opens: of(&|line| line.ends_with("() {")),
        closes: of(&|line| call(line).starts_with('}')),
        with_duration: of(&|line| line.contains(" us ")),
    }
}

#[test]
fn every_fixture_is_understood() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/function_graph");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the fixtures").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a fixture");
        let (found, unknown) = parsed(text.as_bytes());
        let name = path.display();
        assert_eq!(unknown, 0, "{name}");
        assert_eq!(found, searched(&text), "{name}");
        assert!(looks_like(text.as_bytes()), "{name}");
        count += 1;
    }
    assert_eq!(count, 23);
}

/// The tracer shows what the kernel calls between announcing a switch and making it: these calls do
/// not mean that the task is back.
#[test]
fn a_task_that_is_about_to_leave_is_not_back() {
    let text = "\
 a-7   [000]   10.000000: funcgraph_entry:                   |  handle_mm_fault() {
 a-7   [000]   10.000010: funcgraph_entry:                   |    schedule() {
 a-7   [000]   10.000020: sched_switch:         a:7 [120] D ==> b:8 [120]
 a-7   [000]   10.000025: funcgraph_entry:        3.000 us   |      switch_mm_irqs_off();
 b-8   [000]   10.000040: funcgraph_entry:        2.000 us   |  mutex_unlock();
 b-8   [000]   10.005000: sched_switch:         b:8 [120] S ==> a:7 [120]
 a-7   [000]   10.005010: funcgraph_exit:      # 5000.000 us |    }
 a-7   [000]   10.005020: funcgraph_exit:      # 5020.000 us |  }
";
    let mut trees = Vec::new();
    let mut sink = |tree: &function_graph::CallTree, _: &function_graph::Names| {
        trees.push(tree.clone());
    };
    function_graph::read_bytes(text.as_bytes(), &mut sink);
    let fault = trees.last().expect("a fault");
    let expected = function_graph::OffCpu {
        node: 1,
        from: 10_000_028_000,
        ns: 4_972_000,
        wait: function_graph::Wait::Blocked,
    };
    assert_eq!(fault.off_cpu, [expected]);
}

/// The positions of a line's columns must not change how the next line is read, wherever its own
/// are.
#[test]
fn durations_are_read_at_whatever_column_they_begin() {
    let durations = ["0.670 us", "10.303 us", "1234.567 us", "12345.67 us", ""];
    let mut lines = Vec::new();
    for duration in durations {
        for width in [11, 12, 13] {
            lines.push(format!(" 0)  a-1    | {duration:>width$}  |  f();"));
            lines.push(format!(" 0)  a-1    | {duration:<width$}  |  f();"));
        }
    }
    let spans = |text: &str| {
        let mut spans = Vec::new();
        Parser::new().feed(text.as_bytes(), |line, _| {
            spans.push(line.span.map(|span| span.ns));
        });
        spans
    };
    for first in &lines {
        for second in &lines {
            let alone = [spans(&format!("{first}\n")), spans(&format!("{second}\n"))].concat();
            assert_eq!(
                spans(&format!("{first}\n{second}\n")),
                alone,
                "{first}\n{second}"
            );
        }
    }
}

/// Name, depth, end and children's nanoseconds of each node of a trace's trees.
fn nodes(trace: &str) -> Vec<(String, u16, u32, u64)> {
    let mut found = Vec::new();
    function_graph::read_bytes(trace.as_bytes(), &mut |tree: &CallTree, names: &Names| {
        found.extend(tree.nodes.iter().map(|of| {
            let name = names.text(of.name());
            node(name, of.depth, of.end, of.children_ns)
        }));
    });
    found
}

fn node(name: &str, depth: u16, end: u32, children_ns: u64) -> (String, u16, u32, u64) {
    (name.to_owned(), depth, end, children_ns)
}

/// Two interrupts at the exit of `f`: one came before its clock was stopped, one after it.
#[test]
fn interrupts_at_an_exit_are_told_apart_by_their_times() {
    const TRACE: &str = "\
   10.000000 |   0)     a-7      |               |  handle_mm_fault() {
   10.000010 |   0)     a-7      |               |    f() {
   10.000100 |   0)     a-7      | + 50.000 us   |    irq_enter_rcu();
   10.000160 |   0)     a-7      |               |    irq_exit_rcu() {
   10.000170 |   0)     a-7      |   5.000 us    |      raise_softirq();
   10.000190 |   0)     a-7      | + 30.000 us   |    } /* irq_exit_rcu */
   10.000220 |   0)     a-7      | + 40.000 us   |    irq_enter_rcu();
   10.000270 |   0)     a-7      | ! 200.000 us  |    } /* f */
   10.000290 |   0)     a-7      | ! 290.000 us  |  } /* handle_mm_fault */
";
    assert_eq!(
        nodes(TRACE),
        [
            node("handle_mm_fault", 0, 6, 240_000),
            node("f", 1, 5, 80_000),
            node("irq_enter_rcu", 2, 3, 0),
            node("irq_exit_rcu", 2, 5, 5_000),
            node("raise_softirq", 3, 5, 0),
            node("irq_enter_rcu", 1, 6, 0),
        ]
    );
}

/// As in 6.12: `g` had ended when the interrupt came, but was still open.
#[test]
fn an_interrupt_is_not_inside_a_call_that_is_too_short_for_it() {
    const TRACE: &str = "\
   10.000000 |   0)     a-7      |               |  handle_mm_fault() {
   10.000010 |   0)     a-7      |               |    g() {
   10.000011 |   0)     a-7      |   1.000 us    |      h();
   10.000100 |   0)     a-7      |   3.500 us    |      irq_enter_rcu();
   10.000110 |   0)     a-7      |               |      irq_exit_rcu() {
   10.000120 |   0)     a-7      |   5.000 us    |        raise_softirq();
   10.000140 |   0)     a-7      | + 30.000 us   |      } /* irq_exit_rcu */
   10.000160 |   0)     a-7      |   2.884 us    |    } /* g */
   10.000180 |   0)     a-7      | ! 180.000 us  |  } /* handle_mm_fault */
";
    assert_eq!(
        nodes(TRACE),
        [
            node("handle_mm_fault", 0, 6, 36_384),
            node("g", 1, 3, 1_000),
            node("h", 2, 3, 0),
            node("irq_enter_rcu", 1, 4, 0),
            node("irq_exit_rcu", 1, 6, 5_000),
            node("raise_softirq", 2, 6, 0),
        ]
    );
}

/// The level of `f` is raised before its clock starts and its line is written: an interrupt that
/// comes then appears two levels below the caller, before `f`. It is inside `f` if `f` took long
/// enough.
#[test]
fn an_interrupt_at_an_entry_is_inside_if_time_allows() {
    let trace = |f: &str| {
        format!(
            "\
   10.000000 |   0)     a-7      |               |  handle_mm_fault() {{
   10.000010 |   0)     a-7      | + 50.000 us   |      irq_enter_rcu();
   10.000070 |   0)     a-7      |               |    f() {{
   10.000170 |   0)     a-7      | {f} us  |    }} /* f */
   10.000190 |   0)     a-7      | ! 190.000 us  |  }} /* handle_mm_fault */
"
        )
    };
    // The line of `f` has the time of its beginning; 100 µs later it ends, so 160 µs include the
    // interrupt's 50.
    let inside = [
        node("handle_mm_fault", 0, 3, 160_000),
        node("f", 1, 3, 50_000),
        node("irq_enter_rcu", 2, 3, 0),
    ];
    assert_eq!(nodes(&trace("! 160.000")), inside);
    let before = [
        node("handle_mm_fault", 0, 3, 151_000),
        node("irq_enter_rcu", 1, 2, 0),
        node("f", 1, 3, 0),
    ];
    assert_eq!(nodes(&trace("! 101.000")), before);
}

/// Without times of lines, only `f`'s duration decides.
#[test]
fn an_untimed_interrupt_is_inside_what_takes_as_long() {
    let trace = |f: &str| {
        format!(
            "\
 0)  a-7   |               |  handle_mm_fault() {{
 0)  a-7   | + 50.000 us   |      irq_enter_rcu();
 0)  a-7   |               |    f() {{
 0)  a-7   | + {f} us   |    }} /* f */
 0)  a-7   | ! 190.000 us  |  }} /* handle_mm_fault */
"
        )
    };
    // Durations are cut off at a nanosecond.
    for (f, is_inside) in [
        ("60.000", true),
        ("49.999", true),
        ("49.998", false),
        ("30.000", false),
    ] {
        let found = nodes(&trace(f));
        let names: Vec<&str> = found.iter().map(|one| one.0.as_str()).collect();
        let second = if is_inside { "f" } else { "irq_enter_rcu" };
        assert_eq!(names[1], second, "{f}: {found:?}");
    }
}
