//! From a fault's tree to its own work: which calls belong to it, and what must be subtracted.

use super::super::roles::Role;
use super::super::shapes::Token;
use super::super::signature::Signs;
use super::scratch::{From, Kind, Scratch, Timed};
use super::{ALL_PROBED, Collector, PROBED_EVERY};
use pagewise_formats::function_graph::{CallTree, Node};

impl Collector {
    /// Collects the nodes that are the fault's own work, and the times to subtract.
    #[inline]
    pub(super) fn walk(&mut self, tree: &CallTree, root: usize, scratch: &mut Scratch) -> u64 {
        scratch.tokens.clear();
        scratch.kept.clear();
        scratch.cuts.clear();
        scratch.open.clear();
        let end = tree.nodes[root].end as usize;
        let top = tree.nodes[root].depth;
        let any_marked = !tree.interrupts.is_empty();
        let mut hash = 0_u64;
        let mut at = root;
        while at < end {
            let node = &tree.nodes[at];
            let role = self.roles.role(node.name);
            // A call at a position where only interrupts occur is one, unless it is known to belong
            // to a fault.
            let by_place = any_marked
                && is_marked(&tree.interrupts, at)
                && role.layer.is_none()
                && role.signs.without(Signs::INSIDE) == Signs::default();
            if role.interrupt || by_place {
                self.by_place += u64::from(!role.interrupt);
                self.interrupt(tree, at, scratch);
                at = node.end as usize;
                continue;
            }
            let token = Token::new(node.name, node.depth - top);
            hash = mix(hash, token);
            scratch.tokens.push(token);
            let own = self.own_time(node);
            scratch.keep(at, node, own);
            at += 1;
            if let Some(wait) = role.wait
                && gives_up_unseen(tree, at - 1, role)
            {
                scratch.cut(place(at - 1), node.span.ns, Kind::Off(wait), From::Whole);
                at = node.end as usize;
            }
        }
        for off in &tree.off_cpu {
            if (root..end).contains(&(off.node as usize)) {
                // Both ends of the wait are printed in microseconds.
                if tree.nodes[off.node as usize].span.ns + 2000 < off.ns {
                    // Durations exclude sleep (`nosleep-time`): there is nothing to subtract.
                    self.sleep_signs.1 += 1;
                    continue;
                }
                self.sleep_signs.0 += 1;
                let from = match scratch.kept_at(off.node) {
                    true => From::Own,
                    false => From::Gone,
                };
                scratch.cut(off.node, off.ns, Kind::Off(off.wait), from);
            }
        }
        if self.checks.faults < ALL_PROBED || self.checks.faults.is_multiple_of(PROBED_EVERY) {
            self.note_probe(tree, scratch);
        }
        hash
    }

    /// Time in a call but not in its callees. It can be negative only by the printed precision of
    /// the call.
    #[inline]
    pub(super) fn own_time(&mut self, node: &Node) -> u64 {
        if node.children_ns > node.span.ns + u64::from(node.span.tick) {
            self.checks.violations += 1;
        }
        node.span.ns.saturating_sub(node.children_ns)
    }

    #[inline]
    pub(super) fn note_probe(&mut self, tree: &CallTree, scratch: &Scratch) {
        for kept in &scratch.kept {
            let node = &tree.nodes[kept.node as usize];
            self.probe.record(node.name, kept.direct_calls, kept.own);
        }
    }

    /// Subtracts an interrupt; while its task was switched out, it did not run.
    #[cold]
    pub(super) fn interrupt(&mut self, tree: &CallTree, at: usize, scratch: &mut Scratch) {
        let mut away = tree.off_cpu_inside(at);
        let end = tree.nodes[at].end as usize;
        let mut inside = at;
        while let Some(node) = tree.nodes[..end].get(inside) {
            let role = self.roles.role(node.name);
            inside += 1;
            if let Some(wait) = role.wait
                && gives_up_unseen(tree, inside - 1, role)
            {
                let ns = node.span.ns;
                scratch.cut(place(inside - 1), ns, Kind::Off(wait), From::Gone);
                away += ns;
                inside = node.end as usize;
            }
        }
        let ns = tree.nodes[at].span.ns.saturating_sub(away);
        scratch.cut(place(at), ns, Kind::Interrupt, From::Gone);
    }

    /// Subtracts interrupts and time off the CPU from the calls in which they occurred.
    #[cold]
    pub(super) fn take_out(&mut self, tree: &CallTree, scratch: &mut Scratch) {
        let Scratch { cuts, kept, .. } = scratch;
        for cut in cuts.iter_mut() {
            let is_around = |kept: &Timed| {
                kept.node <= cut.node && cut.node < tree.nodes[kept.node as usize].end
            };
            if cut.from == From::Own
                && let Some(innermost) = kept.iter_mut().rev().find(|kept| is_around(kept))
            {
                // Both ends of the wait are printed in microseconds.
                let tick = u64::from(tree.nodes[innermost.node as usize].span.tick) + 1000;
                self.checks.violations += u64::from(cut.ns > innermost.own + tick);
                cut.ns = cut.ns.min(innermost.own);
                innermost.own -= cut.ns;
            }
            for kept in kept.iter_mut().filter(|kept| is_around(kept)) {
                kept.on = kept.on.saturating_sub(cut.ns);
                if cut.kind != Kind::Interrupt {
                    kept.waited = kept.waited.saturating_add(cut.ns);
                }
            }
        }
        for cut in cuts.iter().filter(|cut| cut.from == From::Whole) {
            for kept in kept.iter_mut().filter(|kept| kept.node == cut.node) {
                kept.own = 0;
            }
        }
    }
}

/// Mixes one more call into the hash of a shape.
#[inline]
pub(super) fn mix(hash: u64, token: Token) -> u64 {
    (hash.rotate_left(23) ^ token.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Whether a call belongs to an interrupt by arrow or position.
fn is_marked(interrupts: &[u32], node: usize) -> bool {
    u32::try_from(node).is_ok_and(|node| interrupts.binary_search(&node).is_ok())
}

fn place(node: usize) -> u32 {
    u32::try_from(node).unwrap_or(u32::MAX)
}

/// A call that only checks for a reschedule takes well below a microsecond.
const LONGEST_LOOK_NS: u64 = 10_000;

/// Whether a task gave up the CPU in a call without any record of how long.
pub(super) fn gives_up_unseen(tree: &CallTree, at: usize, role: Role) -> bool {
    let node = &tree.nodes[at];
    let is_sure = role.signs.has(Signs::SCHEDULE);
    let is_long = node.end as usize == at + 1 && node.span.ns > LONGEST_LOOK_NS;
    (is_sure || is_long) && !is_switch_seen(tree, at)
}

/// Whether the trace shows the switch inside a call of `schedule()`.
fn is_switch_seen(tree: &CallTree, node: usize) -> bool {
    let range = node..tree.nodes[node].end as usize;
    let mut switches = tree.off_cpu.iter();
    switches.any(|off| range.contains(&(off.node as usize)))
}
