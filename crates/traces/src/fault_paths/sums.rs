//! The sums behind a report, as data that can be stored and added: those of many hosts' traces give
//! the report that a single trace of them all would give.
//!
//! Counts, histograms, and sums of times and of their squares add exactly. Anything that depends on
//! the order of faults, or on single ones, is not included; for long traces the times of single
//! calls are samples, which are added as samples. Each part has its own tracing cost, since parts
//! may come from different kernels.

use super::call_times::StoredTimes;
use super::collector::{Checks, Collector};
use super::contexts::Context;
use super::layer::Layer;
use super::probe::{Calibration, place, pooled, together};
use super::shapes::{Split, Token};
use super::tally::Tally;
use pagewise_formats::function_graph::{Counts, Names, Summary};
use pagewise_model::histogram::Histogram;
use pagewise_model::loss::Losses;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Version of the sums; others can't be added.
const VERSION: u32 = 3;

/// The sums of one trace or several.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sums {
    version: u32,
    /// Number of reports it contains.
    reports: u64,
    /// The tracing cost, by source.
    costs: Vec<Calibration>,
    /// Root-only faults that were not used to measure the cost.
    unmeasured: u64,
    /// Function names; other fields refer to them by index.
    names: Vec<String>,
    shapes: Vec<ShapeSums>,
    contexts: Vec<ContextSums>,
    call_times: StoredTimes,
    others: Vec<(u32, Tally)>,
    bare: Vec<(u32, Tally)>,
    checks: Checks,
    root_only: Histogram,
    duration_ns: Option<u64>,
    counts: Counts,
    incomplete: Losses,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ShapeSums {
    /// Index of its cost.
    source: u16,
    /// Name and depth of each call.
    calls: Vec<(u32, u16)>,
    contexts: Vec<u32>,
    /// Self time of each call over all faults, ns.
    own: Vec<u64>,
    latency: Vec<(Layer, Tally)>,
    elapsed: Tally,
    lock_before: Tally,
    split: Split,
    interrupts: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ContextSums {
    calls: u64,
    total: u128,
    own: u128,
    own_below_1us: u64,
    own_by_fault: u128,
    total_by_fault: u128,
    direct_calls: u64,
}

/// Why sums can't be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SumsError {
    /// Stored by another version of Pagewise.
    #[error(
        "its sums have version {found}, but this pagewise merges version {VERSION}: make the report again with this version"
    )]
    Version {
        /// The version found.
        found: u32,
    },
    /// The parts of the sums are inconsistent.
    #[error("its sums contradict themselves: {what}")]
    Contradiction {
        /// The inconsistent part.
        what: &'static str,
    },
}

impl Sums {
    /// The sums of the collected faults, to be corrected by this calibration.
    #[must_use]
    pub fn new(collector: &Collector, summary: &Summary, calibration: Calibration) -> Self {
        let costs = match collector.costs.is_empty() {
            true => vec![calibration],
            false => collector.costs.clone(),
        };
        let tallies = |tallies: &FxHashMap<u32, Tally>| {
            let mut all: Vec<_> = tallies.iter().map(|(&n, t)| (n, t.clone())).collect();
            all.sort_by_key(|(name, _)| *name);
            all
        };
        let names = summary.names.iter().map(|(_, text)| text.to_owned());
        Self {
            version: VERSION,
            reports: collector.reports.max(1),
            costs,
            unmeasured: collector.unmeasured(&calibration),
            names: names.collect(),
            shapes: shapes_of(collector),
            contexts: collector
                .contexts
                .all
                .iter()
                .map(ContextSums::new)
                .collect(),
            call_times: collector.call_times.stored(),
            others: tallies(&collector.others),
            bare: tallies(&collector.bare),
            checks: collector.checks,
            root_only: collector.root_only().clone(),
            duration_ns: collector.duration(),
            counts: summary.counts,
            incomplete: summary.incomplete.clone(),
        }
    }

    /// The tracing cost, by source.
    #[must_use]
    pub fn costs(&self) -> &[Calibration] {
        &self.costs
    }

    /// The same, with this time of observation.
    #[must_use]
    pub fn over(self, duration_ns: Option<u64>) -> Self {
        Self {
            duration_ns,
            ..self
        }
    }
}

fn shapes_of(collector: &Collector) -> Vec<ShapeSums> {
    let of = |shape: &super::shapes::Shape| ShapeSums {
        source: shape.source,
        calls: shape.tokens.iter().map(|t| (t.name(), t.depth())).collect(),
        contexts: shape.contexts.to_vec(),
        own: shape.own_times(),
        latency: Layer::ALL
            .into_iter()
            .zip(shape.latency.iter().cloned())
            .filter(|(_, tally)| tally.count > 0)
            .collect(),
        elapsed: shape.elapsed.clone(),
        lock_before: shape.lock_before.clone(),
        split: shape.split,
        interrupts: shape.interrupts,
    };
    collector.shapes.all.iter().map(of).collect()
}

impl ContextSums {
    fn new(context: &Context) -> Self {
        Self {
            calls: context.calls,
            total: context.total,
            own: context.own,
            own_below_1us: context.own_below_1us,
            own_by_fault: context.own_by_fault,
            total_by_fault: context.total_by_fault,
            direct_calls: context.direct_calls,
        }
    }

    fn add_to(self, context: &mut Context) {
        context.calls += self.calls;
        context.total += self.total;
        context.own += self.own;
        context.own_below_1us += self.own_below_1us;
        context.own_by_fault += self.own_by_fault;
        context.total_by_fault += self.total_by_fault;
        context.direct_calls += self.direct_calls;
    }
}

/// A total of sums, under construction.
#[derive(Default)]
pub struct Total {
    collector: Collector,
    names: Names,
    counts: Counts,
    incomplete: Losses,
    duration_ns: Option<u64>,
}

impl Total {
    /// An empty total for reports with these costs ([`Sums::costs`] of all of them).
    #[must_use]
    pub fn new(costs: &[Calibration]) -> Self {
        let mut total = Self::default();
        total.collector.costs = pooled(costs);
        total
    }

    /// Adds the sums of another part.
    ///
    /// # Errors
    /// When they are of another version, inconsistent, or have a cost that was not announced.
    /// Nothing is added then.
    pub fn add(&mut self, part: &Sums) -> Result<(), SumsError> {
        part.check()?;
        let pools = &self.collector.costs;
        let sources = part.costs.iter().map(|cost| place(pools, cost));
        let sources = sources.map(|at| at.and_then(|at| u16::try_from(at).ok()));
        let Some(sources) = sources.collect::<Option<Vec<u16>>>() else {
            return Err(SumsError::Contradiction {
                what: "a cost that is none of the announced",
            });
        };
        let names: Vec<u32> = part
            .names
            .iter()
            .map(|name| self.names.intern(name.as_bytes()).0)
            .collect();
        self.collector.roles.learn(&self.names);
        let (shapes, contexts) = self.add_shapes(part, &names, &sources);
        for (sums, &context) in part.contexts.iter().zip(&contexts) {
            if let Some(context) = context {
                sums.add_to(&mut self.collector.contexts.all[context as usize]);
            }
        }
        let Collector {
            call_times,
            shapes: all,
            ..
        } = &mut self.collector;
        call_times.add(&part.call_times, &shapes, &all.all);
        let add = |all: &mut FxHashMap<u32, Tally>, more: &[(u32, Tally)]| {
            for (name, tally) in more {
                all.entry(names[*name as usize]).or_default().merge(tally);
            }
        };
        add(&mut self.collector.others, &part.others);
        add(&mut self.collector.bare, &part.bare);
        self.collector.checks.add(part.checks);
        self.collector.add_root_only(&part.root_only);
        self.collector.reports += part.reports;
        self.collector.unmeasured += part.unmeasured;
        self.counts.add(&part.counts);
        self.incomplete.merge(&part.incomplete);
        let durations = self.duration_ns.into_iter().chain(part.duration_ns);
        self.duration_ns = durations.reduce(u64::saturating_add);
        Ok(())
    }

    /// Adds the shapes; returns the positions of the part's shapes and call paths in the total.
    fn add_shapes(
        &mut self,
        part: &Sums,
        names: &[u32],
        sources: &[u16],
    ) -> (Vec<usize>, Vec<Option<u32>>) {
        let mut shapes = Vec::with_capacity(part.shapes.len());
        let mut contexts = vec![None; part.contexts.len()];
        for sums in &part.shapes {
            let calls = sums.calls.iter();
            let tokens = calls.map(|&(name, depth)| Token::new(names[name as usize], depth));
            self.collector.set_source(sources[usize::from(sums.source)]);
            let at = self.collector.shape_of(&tokens.collect::<Vec<_>>());
            let shape = &mut self.collector.shapes.all[at];
            for (&theirs, &ours) in sums.contexts.iter().zip(&shape.contexts) {
                contexts[theirs as usize] = Some(ours);
            }
            for (layer, tally) in &sums.latency {
                shape.latency[*layer as usize].merge(tally);
            }
            shape.add_own_times(&sums.own);
            shape.elapsed.merge(&sums.elapsed);
            shape.lock_before.merge(&sums.lock_before);
            shape.split.add(&sums.split);
            shape.interrupts += sums.interrupts;
            shapes.push(at);
        }
        (shapes, contexts)
    }

    /// Reports added so far; previously merged ones count individually.
    #[must_use]
    pub fn reports(&self) -> u64 {
        self.collector.reports
    }

    /// The tracing cost of all parts together.
    #[must_use]
    pub fn calibration(&self) -> Calibration {
        let mut calls = vec![0; self.collector.costs.len()];
        for context in &self.collector.contexts.all {
            if let Some(calls) = calls.get_mut(usize::from(context.source)) {
                *calls += context.calls;
            }
        }
        together(&self.collector.costs, &calls)
    }

    /// The input of [`super::analyse()`], and the observed time of all parts together.
    #[must_use]
    pub fn finish(self) -> (Collector, Summary, Option<u64>) {
        let summary = Summary {
            names: self.names,
            counts: self.counts,
            incomplete: self.incomplete,
        };
        (self.collector, summary, self.duration_ns)
    }
}

/// Whether a cost can be subtracted from durations.
fn is_sound(cost: &Calibration) -> bool {
    let parts = [cost.per_call_ns, cost.inside_ns, cost.error_ns];
    parts.iter().all(|ns| ns.is_finite() && *ns >= 0.0)
}

impl Sums {
    /// Whether every reference is valid, so that adding can't fail half way.
    fn check(&self) -> Result<(), SumsError> {
        if self.version != VERSION {
            let found = self.version;
            return Err(SumsError::Version { found });
        }
        let names = self.names.len();
        let known = |&name: &u32| (name as usize) < names;
        let calls = self.shapes.iter().flat_map(|shape| &shape.calls);
        let named = calls.map(|(name, _)| name);
        let others = self.others.iter().chain(&self.bare).map(|(name, _)| name);
        let contexts = self.contexts.len();
        let fits = |shape: &ShapeSums| {
            let starts_at_root = shape.calls.first().is_some_and(|&(_, depth)| depth == 0);
            let has_one_root = shape.calls.iter().skip(1).all(|&(_, depth)| depth > 0);
            let paths = &shape.contexts;
            starts_at_root
                && has_one_root
                && usize::from(shape.source) < self.costs.len()
                && paths.len() == shape.calls.len()
                && shape.own.len() == shape.calls.len()
                && paths.iter().all(|&path| (path as usize) < contexts)
        };
        let wrong = |what| Err(SumsError::Contradiction { what });
        if !self.costs.iter().all(is_sound) {
            return wrong("a cost that is no duration");
        }
        if !named.chain(others).all(known) {
            return wrong("a function without a name");
        }
        let lengths: Vec<usize> = self.shapes.iter().map(|shape| shape.calls.len()).collect();
        if !self.shapes.iter().all(fits) || !self.call_times.fits(&lengths) {
            return wrong("a call without a path");
        }
        let of_shape = |shape: &ShapeSums| {
            let layers = shape.latency.iter().all(|(_, tally)| tally.is_sound());
            layers && shape.elapsed.is_sound() && shape.lock_before.is_sound()
        };
        let mut others = self.others.iter().chain(&self.bare);
        if !self.shapes.iter().all(of_shape) || !others.all(|(_, tally)| tally.is_sound()) {
            return wrong("a histogram out of order");
        }
        Ok(())
    }
}
