//! The state of the current fault, in memory reused from fault to fault.

use super::super::cells::Waits;
use super::super::shapes::{Split, Token};
use pagewise_formats::function_graph::{Node, Wait};

/// Memory reused from fault to fault.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    pub(super) tokens: Vec<Token>,
    pub(super) kept: Vec<Timed>,
    pub(super) cuts: Vec<Cut>,
    /// The calls around the current one: the end of each and its position among the kept ones.
    pub(super) open: Vec<(u32, usize)>,
}

/// A kept node, with its on-CPU times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    pub(super) node: u32,
    pub(super) direct_calls: u32,
    pub(super) on: u64,
    pub(super) own: u64,
    /// Time off the CPU inside the call.
    pub(super) waited: u64,
}

/// Time taken out of a fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) node: u32,
    pub(super) ns: u64,
    pub(super) kind: Kind,
    pub(super) from: From,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Interrupt,
    Off(Wait),
}

/// The time as which it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// Self time of a kept call.
    Own,
    /// The time of a kept call except its callees: `schedule()` in a trace without any sign of the
    /// switch itself.
    Whole,
    /// Time of calls that are not kept.
    Gone,
}

impl Scratch {
    #[inline]
    pub(super) fn keep(&mut self, at: usize, node: &Node, own: u64) {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        while self.open.pop_if(|(end, _)| *end <= at).is_some() {}
        if let Some(&(_, caller)) = self.open.last() {
            self.kept[caller].direct_calls += 1;
        }
        if node.end > at + 1 {
            self.open.push((node.end, self.kept.len()));
        }
        self.kept.push(Timed {
            node: at,
            direct_calls: 0,
            on: node.span.ns,
            own,
            waited: 0,
        });
    }

    /// The position of a node among the kept ones, which are in order.
    pub(super) fn kept_at(&self, node: u32) -> bool {
        self.kept
            .binary_search_by_key(&node, |kept| kept.node)
            .is_ok()
    }

    pub(super) fn cut(&mut self, node: u32, ns: u64, kind: Kind, from: From) {
        self.cuts.push(Cut {
            node,
            ns,
            kind,
            from,
        });
    }
}

pub(super) fn waits_of(cuts: &[Cut], lock: u64) -> Waits {
    let mut waits = Waits {
        lock,
        ..Waits::default()
    };
    for cut in cuts {
        match cut.kind {
            Kind::Interrupt => {}
            Kind::Off(Wait::Runnable) => waits.runnable += cut.ns,
            Kind::Off(Wait::Blocked) => waits.blocked += cut.ns,
            Kind::Off(Wait::Estimated) => waits.unknown += cut.ns,
        }
    }
    waits
}

pub(super) fn add_split(split: &mut Split, total: u64, own: u64, scratch: &Scratch) {
    let mut taken = 0;
    for cut in &scratch.cuts {
        let ns = u128::from(cut.ns);
        taken += ns;
        match cut.kind {
            Kind::Interrupt => split.interrupts += ns,
            Kind::Off(Wait::Runnable) => split.runnable += ns,
            Kind::Off(Wait::Blocked) => split.blocked += ns,
            Kind::Off(Wait::Estimated) => split.estimated += ns,
        }
    }
    split.own += u128::from(own);
    split.children += u128::from(total).saturating_sub(taken + u128::from(own));
}
