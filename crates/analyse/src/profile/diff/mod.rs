//! How two profiles differ: hosts, runs, or ranges of one.
//!
//! Amounts are made comparable (time, CPUs, period), both trees are laid over each other, and
//! blocks of time are exchanged between the sides to see which differences are more than what two
//! recordings of the same load show anyway.

mod exchange;
mod settings;
mod union;
mod words;

use super::summary::is_cpu;
use super::weigh::Idle;
use exchange::{Series, Tested};
use pagewise_model::profile::{Profile, ProfileSample, WeightUnit};
use pagewise_model::profile_diff::{
    Change, CounterChange, DiffNode, Measure, PROFILE_DIFF_VERSION, ProfileDiff, Side, StackChange,
    UnknownChange,
};
use pagewise_model::profile_findings::CounterRate;
use pagewise_model::units::Nanos;
use union::Union;

pub use settings::{SettingRules, SettingRulesError};
pub use words::amount;

/// What to compare, and how it is called.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// Names of A and B.
    pub names: (String, String),
    /// The event; the first of CPU time that both have, else the first that both have.
    pub event: Option<String>,
    /// Compares shares of the busy time even where amounts of it are known: for programs whose
    /// share of a machine depends on what else runs there.
    pub shares: bool,
    /// Seed of the exchanges.
    pub seed: u64,
}

/// Why two profiles cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// No event is in both.
    #[error("the two have no event in common: {a} against {b}")]
    NoCommonEvent {
        /// A's events.
        a: String,
        /// B's events.
        b: String,
    },
    /// One has no sample of it.
    #[error("{name} has no busy sample of {event}")]
    Empty {
        /// Which one.
        name: String,
        /// The event.
        event: String,
    },
}

/// Blocks that each side is cut into, where it is long enough: enough for small chances, ...
const BLOCKS: u64 = 20;
/// ... and long enough for one to be independent of the next: loads go in waves, and blocks shorter
/// than a wave make two recordings of one load look different.
const SHORTEST_BLOCK: u64 = 1_000_000_000;
/// Fewest blocks, for short recordings: the chances of exchanges are coarse below.
const FEWEST_BLOCKS: u64 = 6;
/// Functions and stacks smaller than this on both sides are not compared one by one.
const LEAST_SHARE: f64 = 0.005;
/// Most stacks compared one by one.
const MOST_STACKS: usize = 300;
/// Nodes of the drawn tree are at least this share of the larger side.
const LEAST_DRAWN: f64 = 0.001;
/// Chance of a false find that is accepted, over all of a comparison.
const LEVEL: f64 = 0.05;
/// Rows that are kept.
const MOST_ROWS: usize = 200;

/// One side, ready to be summed.
struct Samples<'a> {
    samples: Vec<ProfileSample>,
    profile: &'a Profile,
    /// What one unit of weight adds to an amount.
    scale: f64,
    cpus: u32,
    from: u64,
    span: u64,
}

/// Compares B with A.
///
/// # Errors
/// When they have nothing in common that could be compared.
pub fn diff(
    a: &Profile,
    b: &Profile,
    options: &DiffOptions,
    rules: &SettingRules,
) -> Result<ProfileDiff, DiffError> {
    let event = common_event(a, b, options.event.as_deref())?;
    let measure = match options.shares {
        true => Measure::ShareOfBusy,
        false => measure(a, b, &event),
    };
    let names = [&options.names.0, &options.names.1];
    let sides = [(a, names[0]), (b, names[1])].map(|(profile, name)| {
        let side = Samples::of(profile, &event, measure);
        match side.samples.is_empty() {
            true => Err(DiffError::Empty {
                name: name.clone(),
                event: event.clone(),
            }),
            false => Ok(side),
        }
    });
    let [side_a, side_b] = sides;
    let sides = [side_a?, side_b?];
    let union = Union::of(a, b);
    let block = block_length(&sides);
    let cuts = Cuts::new(&union, &sides, block, measure);
    let chosen = cuts.candidates(&union);
    let series = cuts.series(&union, &chosen);
    let tested = exchange::test(&series, cuts.first, options.seed);
    let (of_functions, of_stacks) = tested.split_at(chosen.functions.len());
    let functions = functions(&union, &cuts, &chosen, of_functions);
    let stacks = stacks(&union, &cuts, &chosen, of_stacks);
    let touched: Vec<String> = functions
        .iter()
        .filter(|change| change.significant)
        .map(|change| change.name.clone())
        .collect();
    let mut found = ProfileDiff {
        schema_version: PROFILE_DIFF_VERSION,
        a: side(&sides[0], names[0], &event),
        b: side(&sides[1], names[1], &event),
        event,
        measure,
        block: Nanos(block),
        blocks: cuts.counts(),
        headline: String::new(),
        detectable: detectable(&tested),
        functions,
        stacks,
        tree: tree(&union, &cuts),
        unknown: unknown(a, b),
        settings: rules.changes(&a.host, &b.host, &touched),
        counters: counters(a, b),
        notes: words::notes(&sides, names),
    };
    found.headline = words::headline(&found);
    Ok(found)
}

fn common_event(a: &Profile, b: &Profile, wanted: Option<&str>) -> Result<String, DiffError> {
    let base = |name: &str| name.split(':').next().unwrap_or(name).to_owned();
    let fits = |name: &str| match wanted {
        Some(wanted) => name == wanted || base(name) == wanted,
        None => true,
    };
    let both = |name: &str| b.events.iter().any(|event| event.name == name);
    let mut common: Vec<&str> = a
        .events
        .iter()
        .map(|event| event.name.as_str())
        .filter(|name| both(name) && fits(name))
        .collect();
    common.sort_by_key(|name| !is_cpu(name));
    let list = |profile: &Profile| {
        let names: Vec<&str> = profile.events.iter().map(|e| e.name.as_str()).collect();
        names.join(", ")
    };
    let first = common.first().map(|name| (*name).to_owned());
    first.ok_or_else(|| DiffError::NoCommonEvent {
        a: list(a),
        b: list(b),
    })
}

/// Rates where both tell times, shares where one does not.
fn measure(a: &Profile, b: &Profile, event: &str) -> Measure {
    let unit = |profile: &Profile| {
        let found = profile.events.iter().find(|known| known.name == event);
        found.map(|event| event.unit)
    };
    match (a.has_times && b.has_times, unit(a), unit(b)) {
        (true, Some(WeightUnit::Nanoseconds), Some(WeightUnit::Nanoseconds)) => Measure::CpusInUse,
        (true, Some(left), Some(right)) if left == right => Measure::PerSecond,
        _ => Measure::ShareOfBusy,
    }
}

impl<'a> Samples<'a> {
    fn of(profile: &'a Profile, event: &str, measure: Measure) -> Self {
        let idle = Idle::of(profile);
        let number = profile.events.iter().position(|known| known.name == event);
        let samples: Vec<ProfileSample> = profile
            .samples
            .iter()
            .filter(|sample| Some(usize::from(sample.event)) == number && !idle.is(sample.stack))
            .collect();
        let weight: u64 = samples.iter().map(|sample| sample.weight).sum();
        let from = profile.samples.times.first().copied().unwrap_or(0);
        let last = profile.samples.times.last().copied().unwrap_or(0);
        let span = profile.span.0.max(last - from).max(1);
        let scale = match measure {
            Measure::ShareOfBusy => 1.0 / weight.max(1) as f64,
            Measure::CpusInUse => 1.0 / span as f64,
            Measure::PerSecond => 1e9 / span as f64,
        };
        Self {
            samples,
            profile,
            scale,
            cpus: cpus_of(profile),
            from,
            span,
        }
    }
}

fn cpus_of(profile: &Profile) -> u32 {
    let seen = profile.samples.cpus.iter().filter(|&&cpu| cpu != u16::MAX);
    let highest = seen.max().map_or(0, |&cpu| u32::from(cpu) + 1);
    profile.host.cpus.max(highest)
}

/// Blocks of one length on both sides, so that they may be exchanged. Zero without times.
fn block_length(sides: &[Samples<'_>; 2]) -> u64 {
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
struct Cuts {
    /// Own amount of each node in each block, as if the whole went like the block.
    own: Vec<Vec<(u32, f64)>>,
    /// Blocks of A.
    first: usize,
    /// Amounts of each node, callees included, of A and of B.
    totals: [Vec<f64>; 2],
    owns: [Vec<f64>; 2],
}

/// What is compared one by one.
struct Chosen {
    functions: Vec<usize>,
    nodes: Vec<usize>,
}

impl Cuts {
    fn new(union: &Union, sides: &[Samples<'_>; 2], block: u64, measure: Measure) -> Self {
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

    fn counts(&self) -> (u32, u32) {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (number(self.first), number(self.own.len() - self.first))
    }

    /// Amounts of a function: of its own, and with callees, of A or B.
    fn function(&self, union: &Union, side: usize) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0); union.frames.len()];
        for (node, _, frame) in union.tree.nodes() {
            let (at, sum) = (node.0 as usize, &mut sums[frame.0 as usize]);
            sum.0 += self.owns[side][at];
            if union.outermost[at] {
                sum.1 += self.totals[side][at];
            }
        }
        sums
    }

    fn candidates(&self, union: &Union) -> Chosen {
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
    fn series(&self, union: &Union, chosen: &Chosen) -> Vec<Series> {
        let mut series = vec![Series::new(); chosen.functions.len() + chosen.nodes.len()];
        let mut totals = vec![0.0; union.tree.len()];
        for block in &self.own {
            totals.fill(0.0);
            for &(node, amount) in block {
                totals[node as usize] += amount;
            }
            union.tree.accumulate(&mut totals);
            let mut by_frame = vec![0.0; union.frames.len()];
            for (node, _, frame) in union.tree.nodes() {
                if union.outermost[node.0 as usize] {
                    by_frame[frame.0 as usize] += totals[node.0 as usize];
                }
            }
            let of_functions = chosen.functions.iter().map(|&at| by_frame[at]);
            let of_nodes = chosen.nodes.iter().map(|&at| totals[at]);
            for (series, value) in series.iter_mut().zip(of_functions.chain(of_nodes)) {
                series.push(value);
            }
        }
        series
    }
}

/// One side's blocks. Without times, every so many samples are a block: the order of the input is
/// all there is.
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
    // A block's amounts are those of a whole that went like it.
    let scale = side.scale * count as f64;
    let all = side.samples.len();
    for (index, sample) in side.samples.iter().enumerate() {
        let place = match block {
            // Dealt out by turns: neighbours in a folded file are neighbours by name, not in time.
            0 => index % count.min(all.max(1)),
            // What is left over at the end joins the last block.
            block => number((sample.time - side.from) / block).min(count - 1),
        };
        let node = u32::try_from(union.place(at, sample)).unwrap_or(u32::MAX);
        blocks[place].push((node, sample.weight as f64 * scale));
    }
    if measure == Measure::ShareOfBusy {
        // Of its own block, so that how busy a block was does not matter.
        blocks.retain(|block| !block.is_empty());
        for block in &mut blocks {
            let all: f64 = block.iter().map(|(_, amount)| amount).sum();
            block.iter_mut().for_each(|(_, amount)| *amount /= all);
        }
    }
    blocks
}

fn functions(union: &Union, cuts: &Cuts, chosen: &Chosen, tested: &[Tested]) -> Vec<Change> {
    let (a, b) = (cuts.function(union, 0), cuts.function(union, 1));
    let mut changes: Vec<Change> = chosen
        .functions
        .iter()
        .zip(tested)
        .map(|(&at, tested)| {
            let frame = &union.frames[at];
            Change {
                name: frame.name.to_string(),
                module: frame.module.to_string(),
                kind: frame.kind,
                unnamed: frame.unnamed,
                a: a[at].1,
                b: b[at].1,
                own: (a[at].0, b[at].0),
                change: centred(tested, b[at].1 - a[at].1),
                p_adjusted: tested.p_adjusted,
                significant: tested.p_adjusted < LEVEL,
            }
        })
        .collect();
    changes.sort_by(|x, y| {
        let size = |change: &Change| change.change.value.abs();
        // Frames without a name are many functions in one: what has a name says more.
        (y.significant.cmp(&x.significant))
            .then(x.unnamed.is_some().cmp(&y.unnamed.is_some()))
            .then(size(y).total_cmp(&size(x)))
    });
    changes.truncate(MOST_ROWS);
    changes
}

fn stacks(union: &Union, cuts: &Cuts, chosen: &Chosen, tested: &[Tested]) -> Vec<StackChange> {
    let mut changes: Vec<(bool, StackChange)> = chosen
        .nodes
        .iter()
        .zip(tested)
        .map(|(&at, tested)| {
            let (a, b) = (cuts.totals[0][at], cuts.totals[1][at]);
            let change = StackChange {
                frames: union.names(at),
                a,
                b,
                change: centred(tested, b - a),
                p_adjusted: tested.p_adjusted,
                significant: tested.p_adjusted < LEVEL,
            };
            (union.ends_unnamed(at), change)
        })
        .collect();
    changes.sort_by(|(x_unnamed, x), (y_unnamed, y)| {
        let size = |change: &StackChange| change.change.value.abs();
        let deep = |change: &StackChange| change.frames.len();
        (y.significant.cmp(&x.significant))
            .then(x_unnamed.cmp(y_unnamed))
            .then(size(y).total_cmp(&size(x)))
            .then(deep(y).cmp(&deep(x)))
    });
    changes.truncate(MOST_ROWS);
    changes.into_iter().map(|(_, change)| change).collect()
}

/// Shares of samples that frames without a name touch on either side, from one in a hundred on.
fn unknown(a: &Profile, b: &Profile) -> Vec<UnknownChange> {
    const LEAST: f64 = 0.01;
    let mut changes: Vec<UnknownChange> = Vec::new();
    for (is_b, profile) in [(false, a), (true, b)] {
        for cause in super::unknown::causes(profile, &Idle::of(profile)) {
            let known = changes
                .iter()
                .position(|known| known.reason == cause.reason && known.module == cause.module);
            let at = known.unwrap_or_else(|| {
                changes.push(UnknownChange {
                    reason: cause.reason,
                    module: cause.module,
                    a: 0.0,
                    b: 0.0,
                    remedy: cause.remedy,
                });
                changes.len() - 1
            });
            *(if is_b {
                &mut changes[at].b
            } else {
                &mut changes[at].a
            }) = cause.touched;
        }
    }
    changes.retain(|change| change.a.max(change.b) >= LEAST);
    changes.sort_by(|x, y| y.a.max(y.b).total_cmp(&x.a.max(x.b)));
    changes
}

/// The interval about the difference of the wholes; the last block's left-over makes the blocks'
/// mean differ from it a little.
fn centred(tested: &Tested, value: f64) -> pagewise_model::units::Estimate {
    let shift = value - tested.change.value;
    pagewise_model::units::Estimate {
        value,
        low: tested.change.low + shift,
        high: tested.change.high + shift,
    }
}

/// Change of a median quantity that four of five such comparisons would find: some 4.3 standard
/// errors where a hundred are compared (3.5 to be significant, 0.84 for the power).
fn detectable(tested: &[Tested]) -> f64 {
    const HALF_TO_ERROR: f64 = 1.0 / 1.96;
    const ERRORS: f64 = 4.3;
    let mut halves: Vec<f64> = tested
        .iter()
        .map(|tested| (tested.change.high - tested.change.low) / 2.0)
        .collect();
    halves.sort_by(f64::total_cmp);
    let median = halves.get(halves.len() / 2).copied().unwrap_or(0.0);
    median * HALF_TO_ERROR * ERRORS
}

fn tree(union: &Union, cuts: &Cuts) -> Vec<DiffNode> {
    let least = LEAST_DRAWN * cuts.totals[0][0].max(cuts.totals[1][0]);
    let mut numbers = vec![None; union.tree.len()];
    let mut nodes = vec![DiffNode {
        parent: 0,
        name: "all".to_owned(),
        module: String::new(),
        a: cuts.totals[0][0],
        b: cuts.totals[1][0],
    }];
    numbers[0] = Some(0_u32);
    for (node, parent, frame) in union.tree.nodes() {
        let at = node.0 as usize;
        let (a, b) = (cuts.totals[0][at], cuts.totals[1][at]);
        let (Some(parent), true) = (numbers[parent.0 as usize], a.max(b) >= least) else {
            continue;
        };
        numbers[at] = u32::try_from(nodes.len()).ok();
        let frame = &union.frames[frame.0 as usize];
        nodes.push(DiffNode {
            parent,
            name: frame.name.to_string(),
            module: frame.module.to_string(),
            a,
            b,
        });
    }
    nodes
}

fn side(samples: &Samples<'_>, name: &str, event: &str) -> Side {
    let known = samples
        .profile
        .events
        .iter()
        .find(|known| known.name == event);
    Side {
        name: name.to_owned(),
        host: samples.profile.host.hostname.clone(),
        samples: samples.samples.len() as u64,
        weight: samples.samples.iter().map(|sample| sample.weight).sum(),
        unit: known.map(|event| event.unit),
        span: Nanos(match samples.profile.has_times {
            true => samples.span,
            false => 0,
        }),
        cpus: samples.cpus,
    }
}

/// Counters and ratios that both have.
fn counters(a: &Profile, b: &Profile) -> Vec<CounterChange> {
    let others = super::counters::rates(b);
    let pair = |rate: CounterRate| {
        let other = others.iter().find(|other| other.name == rate.name)?;
        Some(CounterChange {
            name: rate.name,
            a: rate.rate,
            b: other.rate,
        })
    };
    super::counters::rates(a)
        .into_iter()
        .filter_map(pair)
        .collect()
}

#[cfg(test)]
mod tests;
