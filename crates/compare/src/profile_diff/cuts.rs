//! Both sides cut into blocks of time, and summed by function and stack.

use super::Samples;
use super::exchange::Series;
use super::union::Union;
use pagewise_model::profile::ProfileSample;
use pagewise_model::profile_diff::Measure;
use pagewise_stats::Random;

/// Blocks of each side, if it is long enough: enough for small p-values, ...
const BLOCKS: u64 = 20;
/// ... and long enough to be independent: loads come in waves, and blocks shorter than a wave make
/// two recordings of one load look different.
const SHORTEST_BLOCK: u64 = 1_000_000_000;
/// Fewest blocks, for short recordings: with fewer, exchanges give only coarse p-values.
const FEWEST_BLOCKS: u64 = 6;
/// Functions and stacks smaller than this on both sides are not compared individually.
const LEAST_SHARE: f64 = 0.005;
/// Most stacks compared individually.
const MOST_STACKS: usize = 300;

/// Length of the blocks, the same on both sides so that they can be exchanged. Zero without times.
pub(super) fn block_length(sides: &[Samples<'_>; 2]) -> u64 {
    if sides.iter().any(|side| !side.profile.has_times) {
        return 0;
    }
    let shorter = sides[0].span.min(sides[1].span);
    (shorter / BLOCKS)
        .max(SHORTEST_BLOCK)
        .min(shorter / FEWEST_BLOCKS)
        .max(1)
}

/// Amounts of each node by block.
pub(super) struct Cuts {
    /// Self amount of each node in each block, scaled as if the whole were like the block.
    own: Vec<Vec<(u32, f64)>>,
    /// Blocks of A.
    pub(super) first: usize,
    /// Amounts of each node including callees, of A and of B.
    pub(super) totals: [Vec<f64>; 2],
    pub(super) owns: [Vec<f64>; 2],
}

/// The functions and nodes compared individually.
pub(super) struct Chosen {
    pub(super) functions: Vec<usize>,
    pub(super) nodes: Vec<usize>,
}

impl Cuts {
    pub(super) fn new(
        union: &Union,
        sides: &[Samples<'_>; 2],
        block: u64,
        measure: Measure,
    ) -> Self {
        let mut own = Vec::new();
        let mut first = 0;
        for (at, side) in sides.iter().enumerate() {
            own.extend(cut(union, side, at, block, measure));
            if at == 0 {
                first = own.len();
            }
        }
        let mut owns = [vec![0.0; union.tree.len()], vec![0.0; union.tree.len()]];
        for (at, side) in sides.iter().enumerate() {
            for sample in &side.samples {
                owns[at][union.place(at, sample)] += sample.weight as f64 * side.scale;
            }
        }
        let totals = owns.clone().map(|mut weights| {
            union.tree.accumulate(&mut weights);
            weights
        });
        Self {
            own,
            first,
            totals,
            owns,
        }
    }

    /// Multiplies one side's amounts by a factor.
    pub(super) fn slow_down(&mut self, side: usize, factor: f64) {
        let amounts = self.totals[side].iter_mut().chain(&mut self.owns[side]);
        amounts.for_each(|amount| *amount *= factor);
    }

    pub(super) fn counts(&self) -> (u32, u32) {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (number(self.first), number(self.own.len() - self.first))
    }

    /// Amounts of a function in A or B: self, and including callees.
    pub(super) fn function(&self, union: &Union, side: usize) -> Vec<(f64, f64)> {
        let mut own = vec![0.0; union.frames.len()];
        for (node, _, frame) in union.tree.nodes() {
            own[frame.0 as usize] += self.owns[side][node.0 as usize];
        }
        let whole = union.by_function(&self.totals[side]);
        own.into_iter().zip(whole).collect()
    }

    pub(super) fn candidates(&self, union: &Union) -> Chosen {
        let (a, b) = (self.function(union, 0), self.function(union, 1));
        let least = LEAST_SHARE * self.totals[0][0].max(self.totals[1][0]);
        let functions = (0..union.frames.len())
            .filter(|&at| a[at].1.max(b[at].1) >= least)
            .collect();
        let size = |at: usize| self.totals[0][at].max(self.totals[1][at]);
        let mut nodes: Vec<usize> = (1..union.tree.len())
            .filter(|&at| size(at) >= least)
            .collect();
        nodes.sort_by(|&x, &y| size(y).total_cmp(&size(x)));
        nodes.truncate(MOST_STACKS);
        Chosen { functions, nodes }
    }

    /// The chosen functions' and nodes' amounts in each block.
    pub(super) fn series(&self, union: &Union, chosen: &Chosen) -> Vec<Series> {
        let mut series = vec![Series::new(); chosen.functions.len() + chosen.nodes.len()];
        let mut totals = vec![0.0; union.tree.len()];
        for block in &self.own {
            totals.fill(0.0);
            for &(node, amount) in block {
                totals[node as usize] += amount;
            }
            union.tree.accumulate(&mut totals);
            let by_function = union.by_function(&totals);
            let of_functions = chosen.functions.iter().map(|&at| by_function[at]);
            let of_nodes = chosen.nodes.iter().map(|&at| totals[at]);
            for (series, value) in series.iter_mut().zip(of_functions.chain(of_nodes)) {
                series.push(value);
            }
        }
        series
    }
}

/// Samples of folded stacks that are worth one independent sample: a tenth of a second at 99 per
/// second, in which a program mostly does one thing.
const CLUMP: u64 = 10;
/// Clumps of one side, about; each is dealt by itself.
const MOST_CLUMPS: u64 = 100_000;

/// Counts of folded stacks, dealt to blocks at random by clumps: a line may stand for thousands of
/// samples, which one block must not hold alone.
fn dealt<'s>(
    side: &'s Samples<'_>,
    blocks: usize,
    at: usize,
) -> impl Iterator<Item = (usize, &'s ProfileSample, u64)> {
    let mut random = Random::seeded(at as u64);
    let all: u64 = side.samples.iter().map(|sample| sample.weight).sum();
    let clump = CLUMP.max(all / MOST_CLUMPS);
    side.samples.iter().flat_map(move |sample| {
        let (whole, rest) = (sample.weight / clump, sample.weight % clump);
        let clumps = (0..whole).map(|_| clump).chain((rest > 0).then_some(rest));
        let places: Vec<(usize, &ProfileSample, u64)> = clumps
            .map(|weight| (random.below(blocks), sample, weight))
            .collect();
        places
    })
}

/// One side's blocks. Without times, consecutive samples are dealt to the blocks in turn.
fn cut(
    union: &Union,
    side: &Samples<'_>,
    at: usize,
    block: u64,
    measure: Measure,
) -> Vec<Vec<(u32, f64)>> {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let count = match block {
        0 => number(BLOCKS),
        block => number(side.span / block).max(1),
    };
    let mut blocks = vec![Vec::new(); count];
    // A block's amounts are scaled to those of a whole that is like it.
    let scale = side.scale * count as f64;
    let all = side.samples.len();
    if block == 0 && side.is_counted() {
        for (place, sample, weight) in dealt(side, count, at) {
            let node = u32::try_from(union.place(at, sample)).unwrap_or(u32::MAX);
            blocks[place].push((node, weight as f64 * scale));
        }
    }
    let singly = match block == 0 && side.is_counted() {
        true => &[][..],
        false => &side.samples,
    };
    for (index, sample) in singly.iter().enumerate() {
        let place = match block {
            // Dealt out in turn: neighbours in a folded file are neighbours by name, not in time.
            0 => index % count.min(all.max(1)),
            // The remainder at the end joins the last block.
            block => number((sample.time - side.from) / block).min(count - 1),
        };
        let node = u32::try_from(union.place(at, sample)).unwrap_or(u32::MAX);
        blocks[place].push((node, sample.weight as f64 * scale));
    }
    if measure == Measure::ShareOfBusy {
        // Relative to its own block, so that it does not matter how busy the block was.
        blocks.retain(|block| !block.is_empty());
        for block in &mut blocks {
            let all: f64 = block.iter().map(|(_, amount)| amount).sum();
            block.iter_mut().for_each(|(_, amount)| *amount /= all);
        }
    }
    blocks
}
