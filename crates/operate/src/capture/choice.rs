//! The functions that the second phase traces: those called in faults that take time themselves or
//! show what kind a fault is, and the rare ones that are worth waiting for.

use pagewise_formats::function_graph::{CallTree, Names, base_name, is_interrupt};
use pagewise_linux::tracefs::functions::Function;
use pagewise_model::histogram::Histogram;
use pagewise_traces::fault_paths::{Signs, layer_of, signs_of};
use std::collections::HashMap;

/// Functions called in the first phase.
#[derive(Clone, Debug, Default)]
pub struct Census {
    functions: HashMap<String, Met>,
    /// Durations of all calls without calls inside.
    leaves: Histogram,
    trees: u64,
}

/// A function in faults.
#[derive(Clone, Debug, Default)]
struct Met {
    calls: u64,
    with_calls_inside: u64,
    /// Durations without calls inside, in nanoseconds.
    leaf: Histogram,
}

/// Trees that have to be seen before a function is dropped.
const ENOUGH_TREES: u64 = 300;
/// Calls of a function, likewise.
const ENOUGH_CALLS: u64 = 50;
/// A leaf that takes no more than this many times the tracer's own cost does nothing worth tracing.
const IDLE: f64 = 1.3;

/// Result of the choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The functions to trace.
    pub functions: Vec<Function>,
    /// Functions dropped because no fault called them.
    pub unmet: usize,
    /// Functions dropped because tracing them only adds cost.
    pub idle: usize,
}

impl Choice {
    /// Why functions are no longer traced, in words.
    pub fn reason(&self) -> String {
        format!(
            "{} that no fault reached and {} that only cost time are left out",
            self.unmet, self.idle
        )
    }
}

impl Census {
    /// Counts the functions in a complete top-level call.
    pub fn tree(&mut self, tree: &CallTree, names: &Names) {
        self.trees += 1;
        for (at, node) in (0_u32..).zip(&tree.nodes) {
            let name = names.text(node.name());
            let met = match self.functions.get_mut(name) {
                Some(met) => met,
                None => self.functions.entry(name.to_owned()).or_default(),
            };
            met.calls += 1;
            if node.end > at + 1 {
                met.with_calls_inside += 1;
            } else {
                met.leaf.record(node.span.ns);
                self.leaves.record(node.span.ns);
            }
        }
    }

    /// Whether enough was seen to drop functions.
    pub fn is_enough(&self) -> bool {
        self.trees >= ENOUGH_TREES
    }

    /// The functions of `candidates` to continue with.
    pub fn choose(&self, candidates: &[Function]) -> Choice {
        let mut choice = Choice {
            functions: Vec::new(),
            unmet: 0,
            idle: 0,
        };
        let enough = self.is_enough();
        for function in candidates {
            let met = self.functions.get(&function.name);
            if enough && self.only_costs(&function.name, met) {
                choice.idle += 1;
            } else if enough && met.is_none() && !function.rare {
                choice.unmet += 1;
            } else {
                choice.functions.push(function.clone());
            }
        }
        choice
    }

    fn only_costs(&self, name: &str, met: Option<&Met>) -> bool {
        let base = base_name(name);
        let signs = signs_of(base).without(Signs::INSIDE);
        let tells = signs != Signs::default() || layer_of(base).is_some();
        let Some(met) = met.filter(|_| !tells && !is_interrupt(base)) else {
            return false;
        };
        let floor = self.leaves.quantile(0.01) as f64;
        met.calls >= ENOUGH_CALLS
            && met.with_calls_inside == 0
            && met.leaf.quantile(0.9) as f64 <= floor * IDLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_formats::function_graph::read_bytes;

    /// A fault with calls that take next to nothing, some time, and a long time.
    const FAULT: &str = "\
 0)               |  handle_mm_fault() {
 0)   0.100 us    |    PageHuge();
 0)   0.900 us    |    clear_page_erms();
 0)   0.101 us    |    folio_add_new_anon_rmap();
 0)   9.000 us    |  }
";

    fn function(name: &str, rare: bool) -> Function {
        Function {
            name: name.to_owned(),
            line: 1,
            rare,
        }
    }

    fn chosen(census: &Census) -> (Vec<String>, usize, usize) {
        let candidates = [
            function("handle_mm_fault", true),
            function("PageHuge", false),
            function("clear_page_erms", false),
            function("folio_add_new_anon_rmap", false),
            function("rwsem_down_read_slowpath", true),
            function("shmem_fault", false),
        ];
        let choice = census.choose(&candidates);
        let names = choice.functions.into_iter().map(|one| one.name).collect();
        (names, choice.unmet, choice.idle)
    }

    fn census(faults: usize) -> Census {
        let mut census = Census::default();
        let text = format!("# tracer: function_graph\n{}", FAULT.repeat(faults));
        let summary = read_bytes(text.as_bytes(), &mut |tree: &CallTree, names: &Names| {
            census.tree(tree, names);
        });
        assert_eq!(summary.counts.unknown_lines, 0);
        census
    }

    #[test]
    fn what_only_costs_and_what_is_not_met_is_given_up() {
        let (names, unmet, idle) = chosen(&census(400));
        let expected = [
            "handle_mm_fault",
            "clear_page_erms",
            "folio_add_new_anon_rmap",
            "rwsem_down_read_slowpath",
        ];
        assert_eq!(names, expected);
        assert_eq!((unmet, idle), (1, 1));
    }

    #[test]
    fn a_short_look_gives_nothing_up() {
        let (names, unmet, idle) = chosen(&census(20));
        assert_eq!((names.len(), unmet, idle), (6, 0, 0));
    }
}
