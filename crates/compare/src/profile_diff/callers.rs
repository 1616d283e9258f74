//! Callers that the stacks of one side lack: by frame pointers a stack may end where copied stacks go
//! on, and what the functions above took then seems to have come or gone.

use super::chance::Tested;
use super::cuts::{Chosen, Cuts};
use super::union::Union;
use pagewise_model::profile::{FrameId, NodeId};

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
    /// For each node: whether most stacks that begin like it end too early.
    is_cut: [Vec<bool>; 2],
    /// Shares of each side whose callers are missing.
    pub shares: [f64; 2],
}

impl Callers {
    pub fn of(union: &Union, cuts: &Cuts) -> Self {
        let mut begins = vec![FrameId(0); union.tree.len()];
        for (node, parent, frame) in union.tree.nodes() {
            begins[node.0 as usize] = match parent == NodeId::ROOT {
                true => frame,
                false => begins[parent.0 as usize],
            };
        }
        let sides = [0, 1].map(|side| Begun::of(union, cuts, side));
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
            sides[1 - side].above(union, totals, &early[side])
        });
        let is_cut = [0, 1].map(|side| {
            let is_cut = |frame: &FrameId| {
                let at = frame.0 as usize;
                early[side][at] > 0.0 && early[side][at] >= 0.5 * sides[side].begun[at]
            };
            begins.iter().map(is_cut).collect::<Vec<bool>>()
        });
        let in_cut = [0, 1].map(|side| {
            let mut sums = vec![0.0; union.frames.len()];
            for (node, _, frame) in union.tree.nodes() {
                let at = node.0 as usize;
                if union.outermost[at] && is_cut[side][at] {
                    sums[frame.0 as usize] += cuts.totals[side][at];
                }
            }
            sums
        });
        Self {
            hidden,
            in_cut,
            is_cut,
            shares: [share_a, share_b],
        }
    }

    /// Withdraws the differences, of functions and then of stacks, that missing callers explain.
    /// Returns how many were significant.
    pub fn withdraw(
        &self,
        tested: &mut [Tested],
        chosen: &Chosen,
        union: &Union,
        cuts: &Cuts,
    ) -> usize {
        let (a, b) = (cuts.function(union, 0), cuts.function(union, 1));
        let of_functions = chosen.functions.iter().map(|&at| {
            let (less, difference) = lesser(a[at].1, b[at].1);
            self.hidden[less][at] >= EXPLAINED * difference
        });
        let of_stacks = chosen.nodes.iter().map(|&at| {
            let (less, difference) = lesser(cuts.totals[0][at], cuts.totals[1][at]);
            let node = NodeId(u32::try_from(at).unwrap_or(u32::MAX));
            let elsewhere = union.tree.frame(node).map_or(0.0, |frame| {
                let of = frame.0 as usize;
                self.hidden[less][of] + self.in_cut[less][of]
            });
            self.is_cut[1 - less][at] || elsewhere >= EXPLAINED * difference
        });
        let explained = of_functions.chain(of_stacks);
        let mut withdrawn = 0;
        for (tested, is_explained) in tested.iter_mut().zip(explained) {
            if is_explained && self.shares != [0.0, 0.0] {
                withdrawn += usize::from(tested.is_significant());
                tested.matters = false;
            }
        }
        withdrawn
    }
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
    fn of(union: &Union, cuts: &Cuts, side: usize) -> Self {
        let mut begun = vec![0.0; union.frames.len()];
        for (node, parent, frame) in union.tree.nodes() {
            if parent == NodeId::ROOT {
                begun[frame.0 as usize] += cuts.totals[side][node.0 as usize];
            }
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
    fn above(&self, union: &Union, totals: &[f64], early: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; union.frames.len()];
        let mut callers = Vec::new();
        for (node, parent, frame) in union.tree.nodes() {
            let (at, of) = (node.0 as usize, frame.0 as usize);
            let called = self.whole[of] - self.begun[of];
            if early[of] <= 0.0 || parent == NodeId::ROOT || !union.outermost[at] || called <= 0.0 {
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
