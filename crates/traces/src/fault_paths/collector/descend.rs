//! Descents: calls inside faults, treated as faults are elsewhere.

use super::super::descent::Descent;
use super::super::shapes::describe;
use super::super::signature::Class;
use super::Collector;
use super::walk::gives_up_unseen;
use pagewise_formats::function_graph::{CallTree, Names};

impl Collector {
    /// Takes the first step of the descent into a fault.
    pub(super) fn descend_from(&mut self, tree: &CallTree, root: usize, names: &Names) {
        let Some(mut descent) = self.descent.take() else {
            return;
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        let (checks, by_place) = (self.checks, self.by_place);
        self.walk(tree, root, &mut scratch);
        (self.checks, self.by_place) = (checks, by_place);
        let (class, _, _) = describe(&scratch.tokens, &self.roles);
        self.scratch = scratch;
        self.descend(&mut descent, tree, (root, root), 0, class, names);
        self.descent = Some(descent);
    }

    /// Finds the outermost calls that match a step's goal among a call and its callees.
    fn descend(
        &mut self,
        descent: &mut Descent,
        tree: &CallTree,
        (root, inside): (usize, usize),
        step: usize,
        class: Class,
        names: &Names,
    ) {
        let end = tree.nodes[inside].end as usize;
        let mut at = inside;
        while at < end {
            let node = &tree.nodes[at];
            let next = node.end as usize;
            if self.roles.role(node.name).interrupt {
                at = next;
            } else if descent.steps[step].is_goal(names.base(node.name()), at == root) {
                let ns = self.corrected_time(tree, at, descent.cost);
                descent.met[step].0 += 1;
                if descent.steps[step].takes(class, ns) {
                    descent.met[step].1 += 1;
                    descent.met[step].2 += ns;
                    match step + 1 < descent.steps.len() {
                        true => self.descend(descent, tree, (root, at), step + 1, class, names),
                        false => self.fault(tree, at, Some(class)),
                    }
                }
                at = next;
            } else {
                at += 1;
            }
        }
    }

    /// A call's time on the CPU without interrupts and without the tracer's cost.
    fn corrected_time(&self, tree: &CallTree, root: usize, cost: f64) -> f64 {
        let end = tree.nodes[root].end as usize;
        let (mut taken, mut calls) = (tree.off_cpu_inside(root), 0_u32);
        let mut at = root;
        while at < end {
            let node = &tree.nodes[at];
            let role = self.roles.role(node.name);
            calls += u32::from(!role.interrupt);
            let asleep = role.wait.is_some() && gives_up_unseen(tree, at, role);
            if role.interrupt || asleep {
                taken += node.span.ns.saturating_sub(tree.off_cpu_inside(at));
                at = node.end as usize;
            } else {
                at += 1;
            }
        }
        let on = tree.nodes[root].span.ns.saturating_sub(taken);
        on as f64 - cost * f64::from(calls.saturating_sub(1))
    }
}
