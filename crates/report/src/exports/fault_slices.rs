//! Calls of a function_graph trace as slices on a task's track.

use super::perfetto::{Category, Slice};
use pagewise_formats::function_graph::{CallTree, NameId, Names, Wait, is_interrupt};

/// A call and all its callees. Times in which the task did not run are slices of their own at the
/// end of the call in which they occurred: the trace does not show between which callees.
#[must_use]
pub fn slices<'a>(tree: &CallTree, names: &'a Names) -> Vec<Slice<'a>> {
    let mut found: Vec<Slice<'a>> = Vec::with_capacity(tree.nodes.len() + tree.off_cpu.len());
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        while let Some((node, slice)) =
            open.pop_if(|(node, _)| tree.nodes[*node].end as usize <= at)
        {
            close(tree, node, slice, &mut found);
        }
        open.push((at, found.len()));
        found.push(Slice {
            name: names.text(NameId(node.name)),
            category: category(tree, names, at),
            end: 0,
            duration_ns: node.span.ns,
        });
    }
    while let Some((node, slice)) = open.pop() {
        close(tree, node, slice, &mut found);
    }
    found
}

fn category(tree: &CallTree, names: &Names, at: usize) -> Category {
    let by_place = u32::try_from(at).is_ok_and(|at| tree.interrupts.binary_search(&at).is_ok());
    match by_place || is_interrupt(names.base(NameId(tree.nodes[at].name))) {
        true => Category::Interrupt,
        false => Category::Call,
    }
}

fn close<'a>(tree: &CallTree, node: usize, slice: usize, found: &mut Vec<Slice<'a>>) {
    let own = &tree.nodes[node];
    let mut room = own.span.ns.saturating_sub(own.children_ns);
    for wait in tree.off_cpu.iter().filter(|off| off.node as usize == node) {
        let duration_ns = wait.ns.min(room);
        room -= duration_ns;
        found.push(Slice {
            name: reason(wait.wait),
            category: Category::Wait,
            end: found.len() + 1,
            duration_ns,
        });
    }
    found[slice].end = found.len();
}

fn reason(wait: Wait) -> &'static str {
    match wait {
        Wait::Runnable => "waiting for a CPU",
        Wait::Blocked => "asleep",
        Wait::Estimated => "off the CPU",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_formats::function_graph::read_bytes;

    const TRACE: &str = "\
   2.000000 |   0)   a-7    |               |  handle_mm_fault() {
   2.000001 |   0)   a-7    |               |    io_schedule() {
   2.000002 |   0)   a-7    |               |      /* sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=D ==> next_comm=b next_pid=8 next_prio=120 */
   2.000030 |   0)   b-8    |               |  /* sched_switch: prev_comm=b prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=a next_pid=7 next_prio=120 */
   2.000032 |   0)   a-7    | + 31.000 us   |    }
   2.000035 |   0)   a-7    |   2.000 us    |    irq_enter_rcu();
   2.000040 |   0)   a-7    | + 40.000 us   |  }
";

    #[test]
    fn waits_are_slices_inside_the_call_that_they_struck() {
        let mut seen = Vec::new();
        let mut sink = |tree: &CallTree, names: &Names| {
            let owned = slices(tree, names).into_iter();
            seen.extend(owned.map(|s| (s.name.to_owned(), s.category, s.end, s.duration_ns)));
        };
        read_bytes(TRACE.as_bytes(), &mut sink);
        let expected = [
            ("handle_mm_fault", Category::Call, 4, 40_000),
            ("io_schedule", Category::Call, 3, 31_000),
            ("asleep", Category::Wait, 3, 28_000),
            ("irq_enter_rcu", Category::Interrupt, 4, 2_000),
        ];
        let expected =
            expected.map(|(name, category, end, ns)| (name.to_owned(), category, end, ns));
        assert_eq!(seen, expected);
    }
}
