//! Callers that the stacks of one side lack: by frame pointers a stack may end where copied stacks go
//! on, and what the functions above took then seems to have come or gone.

use super::chance::Tested;
use super::cuts::{Chosen, Cuts};
use super::union::Union;
use pagewise_model::profile::{Frame, FrameId, NodeId};

/// A side lacks callers if this share of it begins in functions that have callers on the other side.
const LACKING: f64 = 0.02;
/// A difference is explained by missing callers if these may be behind this share of it.
const EXPLAINED: f64 = 0.5;

/// What may be below each function of A and of B, had their stacks not ended before.
pub(super) struct Callers {
    /// For each function: the amount of stacks that end below it.
    hidden: [Vec<f64>; 2],
    /// For each function: its amount in stacks that end too early.
    in_cut: [Vec<f64>; 2],
    /// For each node: the amount in which it is above what no caller can be, of stacks that end too early.
    stray: [Vec<f64>; 2],
    /// For each node: whether most stacks that begin like it end too early.
    is_cut: [Vec<bool>; 2],
    /// Shares of each side whose callers are missing.
    pub shares: [f64; 2],
}

impl Callers {
    pub fn new(union: &Union, cuts: &Cuts) -> Self {
        let begins = begins(union);
        let sides = [0, 1].map(|side| Begun::new(union, cuts, side, &begins));
        let [(a, share_a), (b, share_b)] = [0, 1].map(|side| {
            let ends = sides[side].ends_early(&sides[1 - side]);
            let whole = cuts.totals[side][0];
            let share = ends.iter().sum::<f64>() / whole.max(f64::MIN_POSITIVE);
            match share >= LACKING {
                true => (ends, share),
                false => (vec![0.0; ends.len()], 0.0),
            }
        });
        let early = [a, b];
        let hidden = [0, 1].map(|side| {
            let totals = &cuts.totals[1 - side];
            sides[1 - side].above(union, totals, &early[side], &begins)
        });
        let is_cut = [0, 1].map(|side| {
            let is_cut = |frame: &FrameId| {
                let at = frame.0 as usize;
                early[side][at] > 0.0 && early[side][at] >= 0.5 * sides[side].begun[at]
            };
            begins.iter().map(is_cut).collect::<Vec<bool>>()
        });
        let in_cut = [0, 1].map(|side| {
            let totals = cuts.totals[side].iter().zip(&is_cut[side]);
            let cut: Vec<f64> = totals
                .map(|(&total, &is_cut)| if is_cut { total } else { 0.0 })
                .collect();
            union.by_function(&cut)
        });
        let stray = [0, 1].map(
            |side| match early[side].iter().any(|&amount| amount > 0.0) {
                true => stray(union, &cuts.totals[side]),
                false => vec![0.0; union.tree.len()],
            },
        );
        Self {
            hidden,
            in_cut,
            stray,
            is_cut,
            shares: [share_a, share_b],
        }
    }

    /// Withdraws the differences, of functions and then of stacks, that missing callers explain, and those of
    /// what broken chains took for callers: where a chain breaks is a matter of how a run was recorded.
    /// Returns how many of the former were significant.
    pub fn withdraw(
        &self,
        tested: &mut [Tested],
        chosen: &Chosen,
        union: &Union,
        cuts: &Cuts,
    ) -> usize {
        let (a, b) = (cuts.function(union, 0), cuts.function(union, 1));
        let stray = [0, 1].map(|side| union.by_function(&self.stray[side]));
        let of_functions = chosen.functions.iter().map(|&at| {
            if is_nowhere(&union.frames[at]) {
                return Explained::Broken;
            }
            let (less, difference) = lesser(a[at].1, b[at].1);
            let explained = self.hidden[less][at] + stray[1 - less][at];
            Explained::by_callers(explained >= EXPLAINED * difference)
        });
        let of_stacks = chosen.nodes.iter().map(|&at| {
            let (less, difference) = lesser(cuts.totals[0][at], cuts.totals[1][at]);
            let node = NodeId(u32::try_from(at).unwrap_or(u32::MAX));
            let elsewhere = union.tree.frame(node).map_or(0.0, |frame| {
                let of = frame.0 as usize;
                self.hidden[less][of] + self.in_cut[less][of]
            });
            let mut frames = union.tree.frames(node);
            if frames.any(|frame| is_nowhere(&union.frames[frame.0 as usize])) {
                return Explained::Broken;
            }
            let explained = elsewhere + self.stray[1 - less][at];
            Explained::by_callers(self.is_cut[1 - less][at] || explained >= EXPLAINED * difference)
        });
        let explained = of_functions.chain(of_stacks);
        let mut withdrawn = 0;
        for (tested, explained) in tested.iter_mut().zip(explained) {
            let is_lacking = explained != Explained::No && self.shares != [0.0, 0.0];
            withdrawn += usize::from(is_lacking && tested.is_significant());
            tested.matters &= !is_lacking && explained != Explained::Broken;
        }
        withdrawn
    }
}

/// What explains a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Explained {
    No,
    /// One side lacks callers.
    Callers,
    /// It is one of words that a broken chain took for addresses.
    Broken,
}

impl Explained {
    fn by_callers(is_explained: bool) -> Self {
        match is_explained {
            true => Self::Callers,
            false => Self::No,
        }
    }
}

/// The function in which the stack of each node begins: its outermost, or the one below what a broken
/// chain took for a caller.
fn begins(union: &Union) -> Vec<FrameId> {
    let mut begins = vec![FrameId(0); union.tree.len()];
    let mut is_broken = vec![true; union.tree.len()];
    for (node, parent, frame) in union.tree.nodes() {
        let (at, above) = (node.0 as usize, parent.0 as usize);
        is_broken[at] = is_nowhere(&union.frames[frame.0 as usize]);
        begins[at] = match is_broken[above] {
            true => frame,
            false => begins[above],
        };
    }
    begins
}

/// A frame without a name and a file: a word that a broken chain took for an address.
fn is_nowhere(frame: &Frame) -> bool {
    frame.unnamed.is_some() && frame.module.is_empty()
}

/// For each node: how much of it is below what a broken chain took for a caller, further in.
fn stray(union: &Union, totals: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; union.tree.len()];
    let mut is_below = vec![false; union.tree.len()];
    for (node, parent, frame) in union.tree.nodes() {
        let (at, above) = (node.0 as usize, parent.0 as usize);
        let is_nowhere = is_nowhere(&union.frames[frame.0 as usize]);
        is_below[at] = is_below[above] || is_nowhere;
        if is_nowhere && !is_below[above] {
            sums[at] = totals[at];
        }
    }
    union.tree.accumulate(&mut sums);
    sums
}

/// The side with less, and how much less.
fn lesser(a: f64, b: f64) -> (usize, f64) {
    (usize::from(b < a), (b - a).abs())
}

/// Amounts of one side's functions.
struct Begun {
    /// Of stacks that begin in each.
    begun: Vec<f64>,
    /// Of stacks that contain each.
    whole: Vec<f64>,
}

impl Begun {
    fn new(union: &Union, cuts: &Cuts, side: usize, begins: &[FrameId]) -> Self {
        let mut begun = vec![0.0; union.frames.len()];
        for (own, begin) in cuts.owns[side].iter().zip(begins).skip(1) {
            begun[begin.0 as usize] += own;
        }
        let functions = cuts.function(union, side).into_iter();
        Self {
            begun,
            whole: functions.map(|(_, whole)| whole).collect(),
        }
    }

    /// For each function: by how much more stacks begin in it than the other side lets expect.
    fn ends_early(&self, other: &Self) -> Vec<f64> {
        let functions = 0..self.begun.len();
        functions
            .map(|at| match other.whole[at] > 0.0 {
                true => self.begun[at] - self.whole[at] * other.begun[at] / other.whole[at],
                false => 0.0,
            })
            .map(|more| more.max(0.0))
            .collect()
    }

    /// For each function of this side: how much of `early`, by functions in which stacks of the other
    /// side begin, is below it here.
    fn above(&self, union: &Union, totals: &[f64], early: &[f64], begins: &[FrameId]) -> Vec<f64> {
        let mut sums = vec![0.0; union.frames.len()];
        let mut callers = Vec::new();
        for (node, _, frame) in union.tree.nodes() {
            let (at, of) = (node.0 as usize, frame.0 as usize);
            let called = self.whole[of] - self.begun[of];
            let has_callers = union.outermost[at] && begins[at] != frame && called > 0.0;
            if early[of] <= 0.0 || !has_callers {
                continue;
            }
            callers.clear();
            callers.extend(union.tree.frames(node).skip(1));
            callers.sort_unstable();
            callers.dedup();
            for caller in &callers {
                sums[caller.0 as usize] += early[of] * totals[at] / called;
            }
        }
        sums
    }
}
