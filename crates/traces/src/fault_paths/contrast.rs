//! Compares the slowest faults with the others: which functions and paths occur more often in them,
//! and where their additional time is spent.
//!
//! Slow faults occur in runs, and so do paths, so a test that treats faults as independent finds
//! too much. Here the sequence "slow or not" is rotated against the sequence of paths by random
//! offsets: both keep their own rhythm, and only the link between them is broken. The largest score
//! of all functions and paths over all rotations shows what chance does (maxT).

use super::cells::Logged;
use super::collector::Collector;
use super::outline::{base_names, outline};
use super::probe::Calibration;
use super::ranked::{Chosen, Functions, Ranked, Sums};
use super::signature::Class;
use pagewise_formats::function_graph::Names;
use pagewise_model::fault_paths::{Contrast, Excess, Overrepresented};
use pagewise_stats::Random;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

const QUANTILES: [f64; 2] = [0.99, 0.9];
/// Fewest slow faults for a conclusion.
const FEWEST_SLOW: usize = 10;
/// Faults examined; if there are more, an even selection.
const MOST_FAULTS: usize = 1 << 15;
const ROTATIONS: usize = 199;
const LEVEL: f64 = 0.05;
const SEED: u64 = 1;
const MOST_EXCESS: usize = 12;
const MOST_NAMES: usize = 20;
const MOST_ALONG: usize = 12;

/// Contrasts of all faults and of each frequent kind.
pub(super) fn contrasts(
    collector: &Collector,
    names: &Names,
    calibration: Calibration,
) -> Vec<Contrast> {
    let mut faults: BTreeMap<Class, usize> = BTreeMap::new();
    for fault in &collector.log.faults {
        let class = collector.shapes.all[fault.shape as usize].class;
        *faults.entry(class).or_default() += 1;
    }
    let mut order: Vec<(Class, usize)> = faults.into_iter().collect();
    order.sort_by_key(|(_, faults)| std::cmp::Reverse(*faults));
    let scopes = std::iter::once(None).chain(order.iter().map(|(class, _)| Some(*class)));
    let only_one = order.len() == 1;
    let scopes = scopes.filter(|class| class.is_none() || !only_one);
    let view = View::new(collector, names, calibration);
    let each = scopes.flat_map(|class| view.of_class(class));
    each.collect()
}

struct View<'a> {
    collector: &'a Collector,
    names: &'a Names,
    calibration: Calibration,
    /// Functions by shape, each once with its least depth.
    functions: Vec<BTreeMap<u32, u16>>,
    outlines: Vec<String>,
    bases: Functions<'a>,
}

/// The faults of a scope with their latencies.
struct Scope<'a> {
    class: Option<Class>,
    faults: Vec<(&'a Logged, u64)>,
    ranked: Ranked<'a>,
}

impl<'a> View<'a> {
    fn new(collector: &'a Collector, names: &'a Names, calibration: Calibration) -> Self {
        let shapes = collector.shapes.all.iter();
        let functions = shapes.clone().map(|shape| {
            let mut found: BTreeMap<u32, u16> = BTreeMap::new();
            for token in &shape.tokens {
                let depth = found.entry(token.name()).or_insert(u16::MAX);
                *depth = (*depth).min(token.depth());
            }
            found
        });
        Self {
            collector,
            names,
            calibration,
            functions: functions.collect(),
            outlines: shapes.map(|shape| outline(&shape.tokens, names)).collect(),
            bases: Functions::new(names),
        }
    }

    fn of_class(&self, class: Option<Class>) -> Vec<Contrast> {
        let shapes = &self.collector.shapes.all;
        let of_class =
            self.collector.log.faults.iter().filter(|fault| {
                class.is_none_or(|class| shapes[fault.shape as usize].class == class)
            });
        let latency = |fault: &'a Logged| {
            let calls = shapes[fault.shape as usize].calls_inside();
            (fault, fault.corrected(self.calibration.cost(calls)))
        };
        let scope = Scope {
            class,
            faults: of_class.map(latency).collect(),
            ranked: Ranked::new(self.collector, self.calibration, class),
        };
        let contrasts = QUANTILES
            .into_iter()
            .filter_map(|quantile| self.contrast(&scope, quantile));
        contrasts.collect()
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks and means of faults"
    )]
    fn contrast(&self, scope: &Scope<'_>, quantile: f64) -> Option<Contrast> {
        let all = scope.faults.len();
        let slow = ((1.0 - quantile) * all as f64).floor() as usize;
        if slow < FEWEST_SLOW {
            return None;
        }
        let mut sorted: Vec<u64> = scope.faults.iter().map(|(_, ns)| *ns).collect();
        sorted.sort_unstable();
        let threshold = sorted[all - slow - 1];
        let is_slow = |ns: u64| ns > threshold;
        let tail = sorted.iter().filter(|ns| is_slow(**ns)).count();
        if tail < FEWEST_SLOW {
            return None;
        }
        let share = tail as f64 / all as f64;
        let of = |chosen| scope.ranked.sums(&self.bases, chosen);
        let (in_tail, in_body) = (of(Chosen::Slowest(share)), of(Chosen::Rest(share)));
        let (tests, functions, paths) = self.overrepresented(scope, threshold);
        let every = self.collector.log.every;
        Some(Contrast {
            class: scope.class,
            quantile,
            threshold_ns: threshold,
            tail: tail as u64 * every,
            body: (all - tail) as u64 * every,
            tail_mean_ns: in_tail.mean().1,
            body_mean_ns: in_body.mean().1,
            error_ns: [true, false].map(|slow| self.error(scope, |ns| is_slow(ns) == slow)),
            tests,
            functions,
            paths,
            excess: excess(&in_tail, &in_body, &self.calibration),
        })
    }

    /// Error of the mean of the chosen faults due to the uncertainty of the correction.
    fn error(&self, scope: &Scope<'_>, is_chosen: impl Fn(u64) -> bool) -> f64 {
        let shapes = &self.collector.shapes.all;
        let chosen = scope.faults.iter().filter(|(_, ns)| is_chosen(*ns));
        let (faults, calls) = chosen.fold((0_usize, 0_usize), |(faults, calls), (fault, _)| {
            (
                faults + 1,
                calls + shapes[fault.shape as usize].calls_inside(),
            )
        });
        self.calibration.error(calls as f64 / faults.max(1) as f64)
    }

    /// The number of tests, then functions and paths that are more frequent in slow faults.
    fn overrepresented(
        &self,
        scope: &Scope<'_>,
        threshold: u64,
    ) -> (u64, Vec<Overrepresented>, Vec<Overrepresented>) {
        let step = scope.faults.len().div_ceil(MOST_FAULTS).max(1);
        let faults = scope.faults.iter().step_by(step);
        let of_shape = faults.clone().map(|(fault, _)| fault.shape);
        let is_slow: Vec<bool> = faults.map(|(_, ns)| *ns > threshold).collect();
        let sequence = Sequence::new(of_shape, &is_slow);
        let groups = self.groups(&sequence.met);
        let sets: Vec<&[u32]> = groups.iter().map(|group| &group.shapes[..]).collect();
        let found = rotated(&sequence, &sets);
        let (mut functions, mut paths) = (Vec::new(), Vec::new());
        let (all, tail) = (sequence.shapes.len(), sequence.slow.len());
        for (group, link) in groups.iter().zip(found) {
            if link.p > LEVEL {
                continue;
            }
            let (in_tail, in_body) = (link.slow, link.faults - link.slow);
            let found = Overrepresented {
                name: group.name.clone(),
                along: group.along.clone(),
                class: group.class,
                tail: (in_tail * step) as u64,
                body: (in_body * step) as u64,
                tail_share: share(in_tail, tail),
                body_share: share(in_body, all - tail),
                p_adjusted: link.p,
            };
            match group.class {
                None => functions.push(found),
                Some(_) => paths.push(found),
            }
        }
        for list in [&mut functions, &mut paths] {
            list.sort_by(|x, y| strength(y).total_cmp(&strength(x)));
            list.truncate(MOST_NAMES);
        }
        (groups.len() as u64, functions, paths)
    }

    /// Paths, and functions that occur in the same shapes, as sets of shapes. Shapes are given by
    /// their positions in `met`.
    fn groups(&self, met: &[u32]) -> Vec<Group> {
        let mut by_function: BTreeMap<u32, (u16, Vec<u32>)> = BTreeMap::new();
        let mut by_path: BTreeMap<(Class, &str), Vec<u32>> = BTreeMap::new();
        for (place, &shape) in (0..).zip(met) {
            let shape = shape as usize;
            for (&function, &depth) in &self.functions[shape] {
                let entry = by_function
                    .entry(function)
                    .or_insert((u16::MAX, Vec::new()));
                entry.0 = entry.0.min(depth);
                entry.1.push(place);
            }
            let class = self.collector.shapes.all[shape].class;
            by_path
                .entry((class, &self.outlines[shape]))
                .or_default()
                .push(place);
        }
        let bases = base_names(self.names);
        let mut alike: FxHashMap<Vec<u32>, Vec<(u16, &str)>> = FxHashMap::default();
        for (function, (depth, shapes)) in by_function {
            // A function that every fault calls is not informative.
            if shapes.len() < met.len() {
                alike
                    .entry(shapes)
                    .or_default()
                    .push((depth, bases[function as usize]));
            }
        }
        let mut groups: Vec<Group> = alike
            .into_iter()
            .map(|(shapes, mut functions)| {
                functions.sort_unstable();
                let names = functions.iter().map(|(_, name)| (*name).to_owned());
                Group {
                    name: functions[0].1.to_owned(),
                    along: names.skip(1).take(MOST_ALONG).collect(),
                    class: None,
                    shapes,
                }
            })
            .collect();
        groups.sort_by(|x, y| x.name.cmp(&y.name));
        if by_path.len() > 1 {
            groups.extend(by_path.into_iter().map(|((class, path), shapes)| Group {
                name: path.to_owned(),
                along: Vec::new(),
                class: Some(class),
                shapes,
            }));
        }
        groups
    }
}

struct Group {
    name: String,
    along: Vec<String>,
    /// The class, for a path.
    class: Option<Class>,
    /// By their positions in [`Sequence::met`], ascending.
    shapes: Vec<u32>,
}

/// Faults in their order.
struct Sequence {
    /// The shapes that occur, ascending.
    met: Vec<u32>,
    /// The position of each fault's shape in `met`.
    shapes: Vec<u32>,
    /// The slow faults.
    slow: Vec<usize>,
}

impl Sequence {
    fn new(of_shape: impl Iterator<Item = u32> + Clone, is_slow: &[bool]) -> Self {
        let mut met: Vec<u32> = of_shape.clone().collect();
        met.sort_unstable();
        met.dedup();
        let mut places = vec![0; met.last().map_or(0, |&last| last as usize + 1)];
        for (place, &shape) in (0..).zip(&met) {
            places[shape as usize] = place;
        }
        let slow = is_slow.iter().enumerate().filter(|(_, slow)| **slow);
        Self {
            shapes: of_shape.map(|shape| places[shape as usize]).collect(),
            slow: slow.map(|(at, _)| at).collect(),
            met,
        }
    }

    /// Slow faults by shape, if the slow ones were `by` faults earlier (wrapping around).
    fn slow_by_shape(&self, by: usize, counts: &mut [u32]) {
        counts.fill(0);
        let (all, by) = (self.shapes.len(), by % self.shapes.len().max(1));
        for &at in &self.slow {
            let place = if at < by { at + all - by } else { at - by };
            counts[self.shapes[place] as usize] += 1;
        }
    }
}

/// A set of the shapes that occur: the shapes themselves, or the complement if that is smaller.
struct Set<'g> {
    shapes: std::borrow::Cow<'g, [u32]>,
    is_rest: bool,
}

impl<'g> Set<'g> {
    fn new(shapes: &'g [u32], met: usize) -> Self {
        if shapes.len() * 2 <= met {
            let shapes = shapes.into();
            return Self {
                shapes,
                is_rest: false,
            };
        }
        let mut is_in = vec![false; met];
        shapes
            .iter()
            .for_each(|&shape| is_in[shape as usize] = true);
        let rest = (0..).zip(is_in).filter(|(_, is_in)| !is_in);
        Self {
            shapes: rest.map(|(shape, _)| shape).collect::<Vec<u32>>().into(),
            is_rest: true,
        }
    }

    /// Faults of these shapes, of `all`.
    fn count(&self, by_shape: &[u32], all: usize) -> usize {
        let counts = self.shapes.iter().map(|&shape| by_shape[shape as usize]);
        let sum = counts.sum::<u32>() as usize;
        if self.is_rest { all - sum } else { sum }
    }
}

/// The association between slow faults and a set of shapes.
struct Link {
    /// Faults of the set.
    faults: usize,
    /// Slow ones among them.
    slow: usize,
    /// Chance of so strong a link if there were none.
    p: f64,
}

/// The links between sets of shapes and the slow faults.
fn rotated(sequence: &Sequence, sets: &[&[u32]]) -> Vec<Link> {
    let (len, slow) = (sequence.shapes.len(), sequence.slow.len());
    let (all, tail) = (len as f64, slow as f64);
    let met = sequence.met.len();
    let sets: Vec<Set<'_>> = sets.iter().map(|shapes| Set::new(shapes, met)).collect();
    let mut counts = vec![0; met];
    sequence
        .shapes
        .iter()
        .for_each(|&shape| counts[shape as usize] += 1);
    let faults: Vec<usize> = sets.iter().map(|set| set.count(&counts, len)).collect();
    let moments: Vec<(f64, f64)> = faults
        .iter()
        .map(|&faults| {
            let have = faults as f64;
            let expected = have * tail / all;
            let variance = expected * (1.0 - have / all) * (all - tail) / (all - 1.0).max(1.0);
            (expected, variance.sqrt())
        })
        .collect();
    let score = |both: usize, (expected, deviation): (f64, f64)| {
        let excess = both as f64 - expected;
        if deviation > 0.0 {
            excess / deviation
        } else {
            0.0
        }
    };
    sequence.slow_by_shape(0, &mut counts);
    let both: Vec<usize> = sets.iter().map(|set| set.count(&counts, slow)).collect();
    let mut random = Random::seeded(SEED);
    let margin = len / 20;
    let mut largest: Vec<f64> = (0..ROTATIONS)
        .map(|_| {
            let by = margin + random.below((len - 2 * margin).max(1));
            sequence.slow_by_shape(by, &mut counts);
            let scores = sets.iter().zip(&moments);
            let scores = scores.map(|(set, &moments)| score(set.count(&counts, slow), moments));
            scores.fold(0.0, f64::max)
        })
        .collect();
    largest.sort_by(f64::total_cmp);
    let p = |score: f64| {
        let beaten = largest.len() - largest.partition_point(|most| *most < score - 1e-9);
        (beaten as f64 + 1.0) / (largest.len() as f64 + 1.0)
    };
    let each = faults.into_iter().zip(both).zip(moments);
    each.map(|((faults, slow), moments)| Link {
        faults,
        slow,
        p: p(score(slow, moments)),
    })
    .collect()
}

/// How much more frequent it is in slow faults, in standard errors of a two-by-two table.
fn strength(found: &Overrepresented) -> f64 {
    (found.tail_share - found.body_share) / (found.body_share + 0.01).sqrt()
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// The components of the additional time of slow faults; the last part is the rest.
fn excess(tail: &Sums<'_>, body: &Sums<'_>, cost: &Calibration) -> Vec<Excess> {
    let all = tail.mean().1 - body.mean().1;
    // Means in the tail and in the others, and the corrections subtracted from them.
    let mut means: BTreeMap<(&str, bool), [f64; 2]> = BTreeMap::new();
    let mut taken_off: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for (place, sums) in [tail, body].into_iter().enumerate() {
        let faults = f64::max(sums.faults, f64::MIN_POSITIVE);
        for class in sums.by_class.values() {
            for (function, (raw, own)) in &class.own {
                means.entry((function, false)).or_default()[place] += own / faults;
                taken_off.entry(function).or_default()[place] += (raw - own) / faults;
            }
            let waits = WAITS.iter().zip(class.waits);
            for (wait, ns) in waits {
                means.entry((wait, true)).or_default()[place] += ns / faults;
            }
        }
    }
    let doubt = cost.error_ns / cost.per_call_ns.max(f64::MIN_POSITIVE);
    let error = |name: &str, wait: bool| match taken_off.get(name).filter(|_| !wait) {
        Some([tail, body]) => doubt.min(1.0) * (tail - body).abs(),
        None => 0.0,
    };
    let part = |((name, wait), [tail, body]): ((&str, bool), [f64; 2])| Excess {
        name: name.to_owned(),
        wait,
        ns: tail - body,
        error_ns: error(name, wait),
        share: if all == 0.0 { 0.0 } else { (tail - body) / all },
        tail_ns: tail,
        body_ns: body,
    };
    let mut parts: Vec<Excess> = means.into_iter().map(part).collect();
    parts.retain(|part| part.ns != 0.0);
    parts.sort_by(|x, y| y.ns.abs().total_cmp(&x.ns.abs()));
    let rest = parts.split_off(parts.len().min(MOST_EXCESS));
    if !rest.is_empty() {
        let sum = |of: fn(&Excess) -> f64| rest.iter().map(of).sum();
        parts.push(Excess {
            name: "all others".to_owned(),
            wait: false,
            ns: sum(|part| part.ns),
            error_ns: sum(|part| part.error_ns),
            share: sum(|part| part.share),
            tail_ns: sum(|part| part.tail_ns),
            body_ns: sum(|part| part.body_ns),
        });
    }
    parts
}

/// In the order of [`super::ranked::ClassSums::waits`].
const WAITS: [&str; 4] = [
    "waiting for a CPU",
    "asleep",
    "off the CPU",
    "waiting for the lock before the fault",
];

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::fault_paths::Source;

    /// Means of 10 faults: of one function as traced and corrected, and of a wait.
    fn means(raw: f64, corrected: f64, wait: f64) -> Sums<'static> {
        let mut sums = Sums {
            faults: 10.0,
            ..Sums::default()
        };
        let class = sums.by_class.entry(Class::Anonymous).or_default();
        class.faults = 10.0;
        class.own.insert("lru_add", (raw * 10.0, corrected * 10.0));
        class.waits[0] = wait * 10.0;
        sums
    }

    #[test]
    fn a_part_of_the_extra_time_is_as_sure_as_what_was_taken_off_it() {
        let cost = Calibration {
            per_call_ns: 1_000.0,
            inside_ns: 400.0,
            error_ns: 50.0,
            source: Source::OwnTrace,
            withdrawn: None,
        };
        // 6,000 ns were subtracted in the tail, 2,000 in the others.
        let parts = excess(
            &means(9_000.0, 3_000.0, 700.0),
            &means(3_000.0, 1_000.0, 0.0),
            &cost,
        );
        let part = |name: &str| parts.iter().find(|part| part.name == name).expect(name);
        assert!((part("lru_add").ns - 2_000.0).abs() < 1e-9);
        assert!((part("lru_add").error_ns - 200.0).abs() < 1e-9);
        assert_eq!(part("waiting for a CPU").error_ns, 0.0);
    }

    /// Runs of slow faults and runs of a path, either independent or together.
    fn linked(together: bool) -> f64 {
        let mut random = Random::seeded(21);
        let (mut slow, mut path) = (Vec::new(), Vec::new());
        let (mut is_slow, mut has_path) = (false, false);
        for _ in 0..4000 {
            if random.below(20) == 0 {
                is_slow = random.below(10) == 0;
                has_path = if together {
                    is_slow
                } else {
                    random.below(10) == 0
                };
            }
            slow.push(is_slow);
            path.push(u32::from(has_path && random.below(4) > 0));
        }
        let sequence = Sequence::new(path.iter().copied(), &slow);
        let [link] = &rotated(&sequence, &[&[1]])[..] else {
            panic!("one set, one link");
        };
        let both = path
            .iter()
            .zip(&slow)
            .filter(|(path, slow)| **path > 0 && **slow);
        assert_eq!(link.slow, both.count());
        assert_eq!(link.faults, path.iter().filter(|path| **path > 0).count());
        link.p
    }

    #[test]
    fn rows_of_slow_faults_are_no_link_by_themselves() {
        assert!(linked(true) <= 0.01);
        assert!(linked(false) > 0.05);
    }

    #[test]
    fn slow_faults_turn_around() {
        let shapes: Vec<u32> = (0..131).map(|at| at % 5 * 3).collect();
        let slow: Vec<bool> = (0..131).map(|at| at % 7 == 0 || at == 130).collect();
        let sequence = Sequence::new(shapes.iter().copied(), &slow);
        assert_eq!(sequence.met, [0, 3, 6, 9, 12]);
        for by in [0, 1, 64, 130] {
            let mut counts = vec![9; 5];
            sequence.slow_by_shape(by, &mut counts);
            let mut expected = vec![0; 5];
            for (place, shape) in shapes.iter().enumerate() {
                expected[*shape as usize / 3] += u32::from(slow[(place + by) % slow.len()]);
            }
            assert_eq!(counts, expected);
            let sum: u32 = counts.iter().sum();
            for set in [&[0, 2][..], &[0, 1, 2, 4], &[]] {
                let direct: u32 = set.iter().map(|&shape| counts[shape as usize]).sum();
                let found = Set::new(set, 5).count(&counts, sum as usize);
                assert_eq!(found, direct as usize);
            }
        }
    }
}
