//! A profile as folded stacks: `thread;outermost;innermost weight`, a line each, in the order of
//! bytes, as `stackcollapse-perf.pl` and `inferno-collapse-perf` write them.

use super::stacks::{NodeNumber, Stacks};
use std::io::{self, Write};

/// Writes stacks that have a weight in the first profile.
///
/// # Errors
/// When `out` can't be written.
pub fn write(stacks: &Stacks, out: &mut impl Write) -> io::Result<()> {
    let children = stacks.children();
    let mut path: Vec<u8> = Vec::new();
    let mut open: Vec<Entry> = Vec::new();
    push(stacks, children.first(), 0, &mut open);
    while let Some(entry) = open.pop() {
        path.truncate(entry.prefix);
        if entry.prefix > 0 {
            path.push(b';');
        }
        path.extend_from_slice(name(stacks, entry.node).as_bytes());
        if entry.has_callees {
            push(stacks, children.get(entry.node), path.len(), &mut open);
        } else {
            out.write_all(&path)?;
            writeln!(out, " {}", stacks.own(entry.node)[0])?;
        }
    }
    Ok(())
}

/// A line, or all lines of stacks that go on behind a node. In the order of bytes, `main` comes
/// before `main-loop`, and that before `main;work`.
struct Entry {
    node: NodeNumber,
    has_callees: bool,
    /// Length of the caller's path.
    prefix: usize,
}

/// Puts what follows a node on the stack of what is to be written, the first on top.
fn push(stacks: &Stacks, callees: Option<&Vec<NodeNumber>>, prefix: usize, open: &mut Vec<Entry>) {
    let from = open.len();
    for &node in callees.into_iter().flatten() {
        if stacks.own(node)[0] > 0 {
            open.push(Entry {
                node,
                has_callees: false,
                prefix,
            });
        }
        open.push(Entry {
            node,
            has_callees: true,
            prefix,
        });
    }
    let key = |entry: &Entry| {
        let end = if entry.has_callees { ";" } else { "" };
        name(stacks, entry.node).bytes().chain(end.bytes())
    };
    open[from..].sort_unstable_by(|a, b| key(b).cmp(key(a)));
}

fn name(stacks: &Stacks, node: NodeNumber) -> &str {
    stacks.place(node).map_or("", |place| place.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::formats::{folded, perf_script};

    fn folded_of(text: &str) -> String {
        let profile = perf_script::read(text.as_bytes()).expect("memory is readable");
        let mut out = Vec::new();
        write(&Stacks::of(&profile, 0), &mut out).expect("memory is writable");
        String::from_utf8(out).expect("names are UTF-8")
    }

    #[test]
    fn lines_are_in_the_order_of_bytes() {
        let text = "main 3\nmain;b 1\nmain-x;c 2\nmain;a;b 5\nmain;a 4\n";
        let profile = folded::read(text.as_bytes()).expect("memory is readable");
        let mut out = Vec::new();
        write(&Stacks::of(&profile, 0), &mut out).expect("memory is writable");
        let out = String::from_utf8(out).expect("names are UTF-8");
        let mut lines: Vec<&str> = text.lines().collect();
        // The count is no part of the order.
        lines.sort_by_key(|line| line.rsplit_once(' ').map(|(stack, _)| stack));
        assert_eq!(out.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn frames_are_named_as_by_stackcollapse() {
        let text = "V8 Worker 12/13 [000] 1.000000: 5 cycles:u: \n\
            \tffffffff81000001 do_work+0x1 ([kernel.kallsyms])\n\
            \t    7f0000000001 f(int)+0x1 (/usr/bin/x)\n\
            \t    7f0000000002 [unknown] (/usr/lib/libc.so.6)\n\
            \t    7f0000000003 [unknown] ([unknown])\n\n\
            V8 Worker 12/13 [000] 2.000000: 7 cycles:u: \n\n\
            V8 Worker 12/13 [000] 2.000000: 9 faults: \n\
            \t    7f0000000001 f(int)+0x1 (/usr/bin/x)\n\n";
        assert_eq!(
            folded_of(text),
            "V8_Worker 7\nV8_Worker;[unknown];[libc.so.6];f;do_work 5\n"
        );
    }

    #[test]
    fn a_stack_ten_thousand_deep_is_written() {
        let frames: String = (0..10_000).map(|at| format!("\tff f{at} (x)\n")).collect();
        let text = format!("x 1 [000] 1.000000: 5 cycles: \n{frames}\n");
        let line = folded_of(&text);
        assert!(line.starts_with("x;f9999;f9998;") && line.ends_with(";f0 5\n"));
    }
}
