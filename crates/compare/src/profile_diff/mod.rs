//! The differences between two profiles: hosts, runs, or ranges of one.
//!
//! Amounts are made comparable (time, CPUs, period), both trees are overlaid, and blocks of time
//! are exchanged between the sides to see which differences exceed those between two recordings of
//! the same load.

mod callers;
mod chance;
mod cuts;
mod exchange;
mod measure;
mod rows;
mod runs;
mod settings;
mod spelling;
mod union;
pub(crate) mod words;

use callers::Callers;
use chance::Tested;
use cuts::{Chosen, Cuts, block_length};
use measure::measure;
use pagewise_model::answer::Document;
use pagewise_model::contention::Contention;
use pagewise_model::profile::{Observed, Profile, ProfileSample, WeightUnit};
use pagewise_model::profile_diff::{Measure, ProfileDiff};
use pagewise_model::units::Nanos;
use pagewise_profile::is_cpu;
use pagewise_profile::weigh::{Idle, interrupted};
use rows::{counters, functions, side, stacks, tree, unknown};
use runs::{Comparing, Run};
use union::Union;

pub use settings::SettingRules;
pub use words::amount;

/// What to compare, and under which names.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// Names of A and B.
    pub names: (String, String),
    /// The event; by default the first of CPU time that both have, otherwise the first that both
    /// have.
    pub event: Option<String>,
    /// Compares shares of the busy time even if amounts of it are known: for programs whose share
    /// of a machine depends on its other load.
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
    /// One profile has no sample of it.
    #[error("{name} has no samples of {event} on busy CPUs")]
    Empty {
        /// Which profile.
        name: String,
        /// The event.
        event: String,
    },
}

/// Accepted chance of a false finding, over a whole comparison.
const LEVEL: f64 = 0.05;
/// Share of the whole from which a function is large: the stated power is for such functions.
const LARGE: f64 = 0.1;

/// Number of samples of a whole run that are worth one independent sample: once a function is
/// sampled, the next samples find it again, and the number of calls differs from run to run with
/// hashes and addresses. Of 19 pairs of equal runs, two reported a function of 33 against 75 and of
/// 5 against 27 samples.
const CLUMP: f64 = 2.0;

/// One side, ready to be summed.
struct Samples<'a> {
    samples: Vec<ProfileSample>,
    profile: &'a Profile,
    /// Factor from weights to amounts.
    scale: f64,
    /// Weight of interrupts during a run: the machine's work, which is not compared.
    interrupts: u64,
    cpus: u32,
    from: u64,
    span: u64,
}

/// Compares B with A.
///
/// # Errors
/// When they have nothing comparable in common.
pub fn diff(
    a: &Profile,
    b: &Profile,
    options: &DiffOptions,
    rules: &SettingRules,
) -> Result<Document<ProfileDiff>, DiffError> {
    let event = common_event(a, b, options.event.as_deref())?;
    let measure = match options.shares {
        true => Measure::ShareOfBusy,
        false => measure([a, b], &event),
    };
    let names = [&options.names.0, &options.names.1];
    let sides = [(a, names[0]), (b, names[1])].map(|(profile, name)| {
        let side = Samples::new(profile, &event, measure);
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
    let union = Union::new(a, b);
    let is_of_runs = measure.is_of_runs();
    let block = if is_of_runs { 0 } else { block_length(&sides) };
    let mut cuts = Cuts::new(&union, &sides, block, measure);
    let chosen = cuts.candidates(&union);
    let mut compared = match is_of_runs {
        true => by_runs(&union, &mut cuts, &chosen, &sides),
        false => by_blocks(&union, &cuts, &chosen, options.seed),
    };
    let callers = Callers::new(&union, &cuts);
    let withdrawn = callers.withdraw(&mut compared.tested, &chosen, &union, &cuts);
    let (of_functions, of_stacks) = compared.tested.split_at(chosen.functions.len());
    let amounts = cuts.function(&union, 0);
    let sizes = chosen.functions.iter().map(|&at| amounts[at].1);
    let functions = functions(&union, &cuts, &chosen, of_functions);
    let stacks = stacks(&union, &cuts, &chosen, of_stacks);
    let touched: Vec<String> = functions
        .iter()
        .filter(|change| change.significant)
        .map(|change| change.name.clone())
        .collect();
    let found = ProfileDiff {
        a: side(&sides[0], names[0], &event),
        b: side(&sides[1], names[1], &event),
        event,
        measure,
        slowdown: compared.slowdown,
        block: Nanos(block),
        blocks: if is_of_runs { (0, 0) } else { cuts.counts() },
        run: None,
        detectable: compared.detectable(of_functions, sizes, cuts.totals[0][0]),
        functions,
        stacks,
        tree: tree(&union, &cuts),
        unknown: unknown(a, b),
        settings: rules.changes(&a.host, &b.host, &touched),
        counters: counters(a, b),
    };
    let mut notes = words::notes(&sides, names, &found);
    notes.extend(words::note_of_callers(callers.shares, withdrawn, names));
    let verdict = words::with_cuts(&sides, names, words::headline(&found));
    Ok(Document::new(found).with_verdict(verdict).with_notes(notes))
}

/// The result of a comparison method.
struct Compared {
    /// Functions, then stacks.
    tested: Vec<Tested>,
    /// Standard errors that a significant difference must have.
    critical: f64,
    /// Differences below this are not reported.
    least: f64,
    /// Factor by which B was slower in everything, if that was removed.
    slowdown: Option<f64>,
}

impl Compared {
    /// The change that would have been found in a large function, given the intervals shown to the
    /// reader.
    fn detectable(
        &self,
        functions: &[Tested],
        sizes: impl Iterator<Item = f64>,
        whole: f64,
    ) -> f64 {
        let large: Vec<&Tested> = functions
            .iter()
            .zip(sizes)
            .filter(|&(_, size)| size >= LARGE * whole)
            .map(|(tested, _)| tested)
            .collect();
        chance::detectable(large.into_iter(), self.critical).max(self.least)
    }
}

fn by_blocks(union: &Union, cuts: &Cuts, chosen: &Chosen, seed: u64) -> Compared {
    let series = cuts.series(union, chosen);
    let (tested, critical) = exchange::test(series, cuts.first, seed);
    Compared {
        tested,
        critical,
        least: 0.0,
        slowdown: None,
    }
}

/// Compares whole runs; B's amounts are converted to A's speed.
fn by_runs(union: &Union, cuts: &mut Cuts, chosen: &Chosen, sides: &[Samples<'_>; 2]) -> Compared {
    let run = |side: usize| {
        let contention = sides[side].profile.contention;
        Run {
            total: cuts.totals[side][0],
            samples: sides[side].effective() / CLUMP,
            contended: contention.as_ref().and_then(Contention::degree),
            stolen: contention.and_then(|known| known.stolen).unwrap_or(0.0),
            seconds: sides[side].profile.span.as_secs_f64(),
        }
    };
    let (a, b) = (cuts.function(union, 0), cuts.function(union, 1));
    let own: Vec<(f64, f64)> = a.iter().zip(&b).map(|(a, b)| (a.0, b.0)).collect();
    let comparing = Comparing::new([run(0), run(1)], &own);
    let of_functions = chosen.functions.iter().map(|&at| (a[at].1, b[at].1));
    let of_stacks = chosen
        .nodes
        .iter()
        .map(|&at| (cuts.totals[0][at], cuts.totals[1][at]));
    let amounts: Vec<(f64, f64)> = of_functions.chain(of_stacks).collect();
    let tested = comparing.test(&amounts);
    let least = comparing.least_of_large(LARGE);
    cuts.slow_down(1, comparing.slowdown.factor.recip());
    Compared {
        critical: chance::critical(tested.len()),
        tested,
        least,
        slowdown: Some(comparing.slowdown.factor),
    }
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

impl<'a> Samples<'a> {
    fn new(profile: &'a Profile, event: &str, measure: Measure) -> Self {
        let idle = Idle::new(profile);
        let number = profile.events.iter().position(|known| known.name == event);
        let samples: Vec<ProfileSample> = profile
            .samples
            .iter()
            .filter(|sample| Some(usize::from(sample.event)) == number && !idle.is(sample.stack))
            .collect();
        let weight: u64 = samples.iter().map(|sample| sample.weight).sum();
        let (samples, interrupts) = match measure {
            Measure::CpuSecondsPerRun => without_interrupts(profile, samples),
            _ => (samples, 0),
        };
        let from = profile.samples.times.first().unwrap_or(0);
        let last = profile.samples.times.last().unwrap_or(0);
        let span = profile.span.0.max(last - from).max(1);
        let scale = match measure {
            Measure::ShareOfBusy => 1.0 / weight.max(1) as f64,
            Measure::CpusInUse => 1.0 / span as f64,
            Measure::PerSecond => 1e9 / span as f64,
            Measure::CpuSecondsPerRun => match profile.observed {
                // The kernel's accounting is exact; samples divide it.
                Observed::Run(Some(cpu)) => cpu.as_secs_f64() / weight.max(1) as f64,
                _ => 1e-9,
            },
            Measure::EventsPerRun => 1.0,
        };
        Self {
            samples,
            profile,
            scale,
            interrupts,
            cpus: cpus_of(profile),
            from,
            span,
        }
    }
}

impl Samples<'_> {
    /// Amount of all samples together.
    fn total(&self) -> f64 {
        let weight: u64 = self.samples.iter().map(|sample| sample.weight).sum();
        weight as f64 * self.scale
    }

    /// Whether a weight is a number of samples, as in folded stacks.
    fn is_counted(&self) -> bool {
        let first = self.samples.first();
        let event = first.and_then(|sample| self.profile.events.get(usize::from(sample.event)));
        event.is_some_and(|event| event.unit == WeightUnit::Samples)
    }

    /// How many samples there are.
    fn count(&self) -> u64 {
        match self.is_counted() {
            true => self.samples.iter().map(|sample| sample.weight).sum(),
            false => self.samples.len() as u64,
        }
    }

    /// Number of samples of equal weight with the same precision.
    fn effective(&self) -> f64 {
        let weights = || self.samples.iter().map(|sample| sample.weight as f64);
        let squares: f64 = weights().map(|weight| weight * weight).sum();
        match squares > 0.0 {
            true => weights().sum::<f64>().powi(2) / squares,
            false => 1.0,
        }
    }
}

/// Samples of the program's own work, and the weight of others.
fn without_interrupts(profile: &Profile, samples: Vec<ProfileSample>) -> (Vec<ProfileSample>, u64) {
    let interrupted = interrupted(profile);
    let is_own = |sample: &ProfileSample| !interrupted[sample.stack.0 as usize];
    if !samples.iter().any(is_own) {
        return (samples, 0);
    }
    let (own, others): (Vec<_>, Vec<_>) = samples.into_iter().partition(is_own);
    (own, others.iter().map(|sample| sample.weight).sum())
}

fn cpus_of(profile: &Profile) -> u32 {
    let seen = profile.samples.cpus.iter().filter(|&cpu| cpu != u16::MAX);
    let highest = seen.max().map_or(0, |cpu| u32::from(cpu) + 1);
    profile.host.cpus.max(highest)
}

#[cfg(test)]
mod tests;
