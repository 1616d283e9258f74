//! The time of each call path in each stretch of the trace.
//!
//! Successive faults are similar, so a comparison of two traces must be made stretch by stretch.
//! Stretches have equal numbers of faults; when there are too many, neighbours are merged, so
//! memory does not grow with the trace. Sums are differences of running sums, taken at the end of
//! each stretch: a fault costs little more, but the end of a stretch visits every path. Stretches
//! are therefore kept only for comparisons.

use super::contexts::Context;
use pagewise_model::histogram::bucket_of;

/// Stretches kept; twice as many are merged in pairs.
const MOST: usize = 128;
/// Faults of the first stretches.
const SHORTEST: u64 = 16;
/// Histogram buckets (128 per power of two) in one interval of self time: four intervals per power
/// of two.
const BUCKETS: u32 = 32;
/// Intervals of self time, the last one open: up to 2^27 ns = 134 ms.
const BINS: u32 = 88;

/// The calls of one path in one stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathSums {
    pub context: u32,
    pub calls: u64,
    /// Self time, ns.
    pub own: u64,
    pub direct_calls: u64,
}

/// Calls of a path with self times in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binned {
    pub context: u32,
    pub bin: u32,
    pub calls: u64,
}

/// Consecutive faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub faults: u64,
    /// By context, ascending.
    pub sums: Vec<PathSums>,
    /// By context and bin, ascending.
    pub own_times: Vec<Binned>,
}

/// All stretches of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Stretches {
    pub all: Vec<Stretch>,
    faults: u64,
    length: u64,
    before: Vec<Running>,
    bins: Vec<[u32; BINS as usize]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Running {
    calls: u64,
    own: u64,
    direct_calls: u64,
}

impl Default for Stretches {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            faults: 0,
            length: SHORTEST,
            before: Vec::new(),
            bins: Vec::new(),
        }
    }
}

/// The interval of self time that contains a duration.
#[inline]
pub(crate) fn bin_of(own: u64) -> u32 {
    (bucket_of(own) / BUCKETS).min(BINS - 1)
}

/// The first duration of an interval, ns.
pub(crate) fn bin_start(bin: u32) -> u64 {
    pagewise_model::histogram::bucket_range(bin * BUCKETS).0
}

impl Stretches {
    /// This many faults with these sums as one stretch, for a collector that kept none.
    pub(super) fn undivided(faults: u64, contexts: &[Context]) -> Vec<Stretch> {
        let all = Self {
            faults,
            ..Self::default()
        };
        all.finished(contexts)
    }

    /// Records the self times of a fault's calls by their paths.
    #[inline]
    pub(super) fn own_times(&mut self, calls: impl Iterator<Item = (u32, u64)>) {
        for (context, own) in calls {
            let context = context as usize;
            if context >= self.bins.len() {
                self.bins.resize(context + 1, [0; BINS as usize]);
            }
            self.bins[context][bin_of(own) as usize] += 1;
        }
    }

    /// Records that a fault's calls are in the sums.
    #[inline]
    pub(super) fn fault(&mut self, contexts: &[Context]) {
        self.faults += 1;
        if self.faults >= self.length {
            self.end_stretch(contexts);
        }
    }

    /// The stretches, with the last, shorter one merged into the one before it.
    pub(crate) fn finished(&self, contexts: &[Context]) -> Vec<Stretch> {
        let mut whole = self.clone();
        if whole.faults > 0 {
            whole.end_stretch(contexts);
            if let [.., before, last] = &mut whole.all[..]
                && last.faults * 2 < before.faults
            {
                *before = join(before, last);
                whole.all.pop();
            }
        }
        whole.all
    }

    #[cold]
    fn end_stretch(&mut self, contexts: &[Context]) {
        self.before.resize(contexts.len(), Running::default());
        let mut stretch = Stretch {
            faults: std::mem::take(&mut self.faults),
            ..Stretch::default()
        };
        for ((context, now), before) in (0..).zip(contexts).zip(&mut self.before) {
            if now.calls > before.calls {
                let own = u64::try_from(now.own).unwrap_or(u64::MAX);
                stretch.sums.push(PathSums {
                    context,
                    calls: now.calls - before.calls,
                    own: own - before.own,
                    direct_calls: now.direct_calls - before.direct_calls,
                });
                *before = Running {
                    calls: now.calls,
                    own,
                    direct_calls: now.direct_calls,
                };
            }
        }
        for sums in &stretch.sums {
            drain(sums.context, &mut self.bins, &mut stretch.own_times);
        }
        self.all.push(stretch);
        if self.all.len() >= 2 * MOST {
            self.all = self
                .all
                .chunks(2)
                .map(|pair| join(&pair[0], &pair[1]))
                .collect();
            self.length *= 2;
        }
    }
}

fn drain(context: u32, bins: &mut [[u32; BINS as usize]], to: &mut Vec<Binned>) {
    let Some(bins) = bins.get_mut(context as usize) else {
        return;
    };
    for (bin, count) in (0..).zip(bins) {
        if *count > 0 {
            to.push(Binned {
                context,
                bin,
                calls: u64::from(std::mem::take(count)),
            });
        }
    }
}

/// Merges two stretches.
pub(crate) fn join(a: &Stretch, b: &Stretch) -> Stretch {
    let mut sums = [&a.sums[..], &b.sums].concat();
    sums.sort_by_key(|sums| sums.context);
    sums.dedup_by(|next, kept| {
        let same = next.context == kept.context;
        if same {
            kept.calls += next.calls;
            kept.own += next.own;
            kept.direct_calls += next.direct_calls;
        }
        same
    });
    let mut own_times = [&a.own_times[..], &b.own_times].concat();
    own_times.sort_by_key(|binned| (binned.context, binned.bin));
    own_times.dedup_by(|next, kept| {
        let same = (next.context, next.bin) == (kept.context, kept.bin);
        if same {
            kept.calls += next.calls;
        }
        same
    });
    Stretch {
        faults: a.faults + b.faults,
        sums,
        own_times,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault_paths::Class;
    use crate::fault_paths::contexts::Contexts;

    /// Faults of one context with self time 100, 101, …; every third calls another.
    fn run(faults: u64) -> (Stretches, Contexts) {
        let mut contexts = Contexts::default();
        let root = contexts.root(Class::Anonymous, 1);
        let child = contexts.child(root, 2);
        let mut stretches = Stretches::default();
        for fault in 0..faults {
            contexts.all[root as usize].calls += 1;
            contexts.all[root as usize].own += u128::from(100 + fault);
            stretches.own_times([(root, 100 + fault)].into_iter());
            if fault % 3 == 0 {
                contexts.all[child as usize].calls += 1;
                contexts.all[child as usize].own += 7;
                contexts.all[root as usize].direct_calls += 1;
                stretches.own_times([(child, 7)].into_iter());
            }
            stretches.fault(&contexts.all);
        }
        (stretches, contexts)
    }

    #[test]
    fn stretches_add_up_to_the_whole() {
        for faults in [0, 1, 15, 16, 17, 100, 5_000, 50_000] {
            let (stretches, contexts) = run(faults);
            let all = stretches.finished(&contexts.all);
            assert!(all.len() < 2 * MOST);
            let undivided = Stretches::undivided(faults, &contexts.all);
            assert_eq!(undivided.len(), usize::from(faults > 0));
            let total = all
                .iter()
                .fold(Stretch::default(), |sum, next| join(&sum, next));
            assert_eq!(total.faults, faults);
            for one in undivided {
                assert_eq!((one.faults, &one.sums), (faults, &total.sums));
            }
            let own: u64 = total.sums.iter().map(|sums| sums.own).sum();
            let expected: u128 = contexts.all.iter().map(|context| context.own).sum();
            assert_eq!(u128::from(own), expected);
            let binned: u64 = total.own_times.iter().map(|binned| binned.calls).sum();
            let calls: u64 = total.sums.iter().map(|sums| sums.calls).sum();
            assert_eq!(binned, calls);
            if let [first, .., _] = &all[..] {
                let even = all[..all.len() - 1]
                    .iter()
                    .all(|s| s.faults == first.faults);
                assert!(even, "equal lengths but for the last");
            }
        }
    }

    #[test]
    fn every_own_time_has_its_interval() {
        for own in [0, 1, 200, 670, 5_670, 1 << 40] {
            let bin = bin_of(own);
            assert!(bin_start(bin) <= own);
            assert!(bin == BINS - 1 || own < bin_start(bin + 1));
        }
    }
}
