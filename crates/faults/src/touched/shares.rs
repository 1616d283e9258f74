//! The pages of a look, divided among the faults that made them.

use super::{Touch, Touched};
use pagewise_model::memory::PresentRun;
use pagewise_model::stack::StackId;
use pagewise_model::units::{Bytes, Nanos};
use rustc_hash::FxHashMap;

/// Smallest stretch that is divided among its own faults, and how many it should have.
const LEAST_STRETCH: u64 = 2 << 20;
const FAULTS_PER_STRETCH: u64 = 24;
/// Newest faults of a stretch that count may stand for this many times its pages: with the pages alone,
/// older ones of its pages would be left out by chance.
const AT_MOST: f64 = 1.5;
/// Of a stretch that should have so many faults, at least this part of the pages must have some.
const ENOUGH: f64 = 20.0;
const LEAST_FOUND: f64 = 0.25;
const HUGE_PAGE: u64 = 2 << 20;
const PAGE: u64 = 4096;

/// The page of an address, by its first address.
pub(super) fn page_of(address: u64, run: PresentRun) -> u64 {
    let size = if run.is_huge { HUGE_PAGE } else { PAGE };
    address / size * size
}

/// The private memory of a process by the stacks that made it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shared {
    pub(crate) pid: i32,
    pub(crate) name: String,
    pub(crate) is_peak: bool,
    /// Time of the look, on the clock of the events.
    pub(crate) clock: Nanos,
    /// All of it.
    pub(crate) resident: Bytes,
    /// The part for which no fault was recorded, in bytes.
    pub(crate) unseen: f64,
    /// Faults that made it.
    pub(crate) samples: u64,
    /// By stack.
    pub(crate) stacks: Vec<(StackId, Owned)>,
}

/// What one stack made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Owned {
    pub(crate) bytes: f64,
    /// Variance by sampling.
    pub(crate) variance: f64,
}

/// Pages of one size and place, which are divided among their own faults.
struct Stretch {
    /// Bytes, and bytes that a fault makes.
    bytes: f64,
    page: f64,
    touches: Vec<Touch>,
}

/// How faults were recorded.
#[derive(Clone, Copy)]
struct Recorded {
    /// Weight of all, for the weight of one that can be used.
    per_shown: f64,
    /// What one stands for at most.
    heaviest: f64,
    /// Whether some are missing.
    is_late: bool,
}

impl Touched {
    pub(super) fn shared(self, shows: &impl Fn(StackId) -> bool) -> Shared {
        let is_shown = |touch: &Touch| touch.stack.is_some_and(shows);
        let (mut all, mut shown) = (0.0, 0.0);
        for touch in self.touches.values() {
            all += touch.weight;
            shown += if is_shown(touch) { touch.weight } else { 0.0 };
        }
        let recorded = Recorded {
            // Faults without a stack that shows callers are taken to be as the others.
            per_shown: if shown > 0.0 { all / shown } else { 0.0 },
            heaviest: self
                .touches
                .values()
                .map(|touch| touch.weight)
                .fold(1.0, f64::max),
            is_late: self.is_late,
        };
        let mut sums: FxHashMap<StackId, Owned> = FxHashMap::default();
        let (mut divided, mut known) = (0.0, 0.0);
        for stretch in self.stretches(is_shown) {
            let bytes = stretch.bytes;
            let is_whole = !stretch.lacks(&recorded);
            let part = stretch.divide(&recorded, &mut sums);
            divided += part;
            known += if is_whole { bytes } else { part };
        }
        let kept = self.kept as f64;
        // Small stretches without a fault are taken to be as the others.
        let known = if divided > 0.0 { known } else { 0.0 };
        let of_all = self.resident.0 as f64 / kept.max(1.0);
        let scale = known / divided.max(1.0) * of_all;
        let mut shared = Shared {
            pid: self.pid,
            name: self.name.clone(),
            is_peak: self.is_peak,
            clock: self.clock,
            resident: self.resident,
            unseen: (kept - known).max(0.0) * of_all,
            samples: self.touches.len() as u64,
            stacks: sums.into_iter().collect(),
        };
        let total: f64 = shared.stacks.iter().map(|(_, owned)| owned.bytes).sum();
        let variance: f64 = shared.stacks.iter().map(|(_, owned)| owned.variance).sum();
        for (_, owned) in &mut shared.stacks {
            let share = owned.bytes / total.max(1.0);
            // The delta method for a part of a known sum.
            owned.variance = owned.variance * (1.0 - 2.0 * share) + share * share * variance;
            owned.bytes *= scale;
            owned.variance = owned.variance.max(0.0) * scale * scale;
        }
        shared.stacks.sort_by_key(|(stack, _)| *stack);
        shared
    }

    /// The pages by stretch, with those of their faults that are shown.
    fn stretches(&self, is_shown: impl Fn(&Touch) -> bool) -> impl Iterator<Item = Stretch> {
        let touches = self.touches.iter().filter(|(_, touch)| is_shown(touch));
        let count = touches.clone().count() as u64;
        let size = self.kept * FAULTS_PER_STRETCH / count.max(1);
        // No huge page is in two of them.
        let size = size.max(1).next_multiple_of(LEAST_STRETCH);
        let key = |run: PresentRun, address: u64| (run.is_huge, address / size);
        let mut stretches: FxHashMap<(bool, u64), (u64, Vec<Touch>)> = FxHashMap::default();
        for run in &self.runs {
            let mut at = run.start;
            while at < run.end {
                let end = run.end.min((at / size + 1) * size);
                stretches.entry(key(*run, at)).or_default().0 += end - at;
                at = end;
            }
        }
        for (page, touch) in touches {
            // The run of a huge page may start behind it, where a part was left out.
            let run = self
                .runs
                .get(self.runs.partition_point(|run| run.end <= *page));
            if let Some(run) = run {
                let at = (*page).max(run.start);
                stretches.entry(key(*run, at)).or_default().1.push(*touch);
            }
        }
        stretches
            .into_iter()
            .map(|((is_huge, _), (bytes, touches))| Stretch {
                bytes: bytes as f64,
                page: if is_huge { HUGE_PAGE } else { PAGE } as f64,
                touches,
            })
    }
}

impl Stretch {
    /// Whether pages have no fault that should have one: then the others do not stand for them.
    fn lacks(&self, recorded: &Recorded) -> bool {
        let expected = self.bytes / (self.page * recorded.heaviest);
        let weight: f64 = self.touches.iter().map(|touch| touch.weight).sum();
        let found = weight * self.page * recorded.per_shown;
        recorded.is_late || (expected >= ENOUGH && found < self.bytes * LEAST_FOUND)
    }

    /// Divides the pages among the newest faults; where some are missing, each gets no more than it stands
    /// for. Returns the bytes that have a stack now.
    fn divide(mut self, recorded: &Recorded, sums: &mut FxHashMap<StackId, Owned>) -> f64 {
        let lacks = self.lacks(recorded);
        self.touches
            .sort_by_key(|touch| std::cmp::Reverse(touch.order));
        let most = self.bytes * AT_MOST / (self.page * recorded.per_shown.max(1.0));
        let (mut weight, mut count) = (0.0, 0);
        for touch in &self.touches {
            if weight >= most {
                break;
            }
            weight += touch.weight;
            count += 1;
        }
        if weight <= 0.0 {
            return 0.0;
        }
        let full = self.bytes / weight;
        let each = match lacks {
            true => full.min(recorded.per_shown * self.page),
            false => full,
        };
        for touch in self.touches.iter().take(count) {
            let Some(stack) = touch.stack else {
                continue;
            };
            let owned = sums.entry(stack).or_default();
            let part = touch.weight * each;
            owned.bytes += part;
            // A fault that stands for itself is counted, not drawn.
            owned.variance += part * part * (1.0 - 1.0 / touch.weight.max(1.0));
        }
        weight * each
    }
}
