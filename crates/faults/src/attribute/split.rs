//! Faults by stack, cause and region, with first touches separated from churn if releases were not
//! recorded.

mod withheld;

use crate::causes::{Attribution, Cell, Census, Route, is_private_anonymous, refault_by};
use crate::churn::pages_behind;
use pagewise_model::findings::{Cause, RegionKind};
use pagewise_model::units::Estimate;
use std::collections::BTreeMap;

/// Faults by every known property.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// By stack, cause and region, in that order.
    pub(crate) cells: Vec<(Cell, f64)>,
    /// By cause.
    pub(crate) causes: BTreeMap<Cause, f64>,
    /// By cause and region.
    pub(crate) routes: BTreeMap<(Cause, RegionKind), f64>,
    /// Share of repeats among sampled faults by region, where that was used.
    pub(crate) repeats: BTreeMap<RegionKind, Estimate>,
    /// Causes whose faults were sampled as first touches.
    pub(crate) as_first_touches: Vec<Cause>,
    /// Whether the kernel's count bounds the number of copies.
    pub(crate) counted_copies: bool,
}

/// The kernel's counts for the whole run, on the scale of an attribution's weights.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Faults that needed I/O, if known.
    pub(crate) major: Option<f64>,
    /// Upper bound of the pages resident in all processes together at one time, if known.
    pub(crate) resident: Option<f64>,
    /// Upper bound of the pages that were touched for the first time: those resident at the peak,
    /// and those released before it. Known where releases are recorded.
    pub(crate) fresh: Option<f64>,
    /// Whether calls of mprotect covered as many pages as faulted in excess of that.
    pub(crate) protected: f64,
    /// Pages that the kernel copied at a write to a mapped page, if known.
    pub(crate) copied: Option<f64>,
    /// Whether processes forked.
    pub(crate) forked: bool,
}

/// The ledger of an attribution.
pub(crate) fn ledger(attribution: &Attribution, counted: Counted) -> Ledger {
    let repeats = all_repeats(attribution, counted);
    let mut ledger = Ledger {
        repeats,
        ..Ledger::default()
    };
    for (&cell, &faults) in &attribution.tally.cells {
        ledger.enter(attribution, cell, faults);
    }
    if !attribution.sees_every_fault && !attribution.sees_releases {
        ledger.withhold_first_touches(counted);
    }
    if let Some(major) = counted.major.filter(|_| !attribution.sees_every_fault) {
        ledger.match_major_faults(major);
        if let Some(copied) = counted.copied.filter(|_| counted.forked) {
            ledger.bound_copies(copied);
        }
        ledger.bound_first_touches(counted);
    }
    ledger.sort_cells();
    ledger
}

/// More faults than this many times the pages that there can be are not first touches.
const BEYOND_CHANCE: f64 = 1.25;
/// Reads from swap that could explain as many faults.
const SWAPPED: f64 = 0.05;

/// Fewer repeats are chance.
const LEAST_REPEATS: u64 = 4;

/// Share of a census's faults that are repeats; `None` if there is no census.
pub(crate) fn repeats(census: &Census) -> Option<Estimate> {
    let samples = census.seen.samples();
    let repeated = samples - census.seen.distinct();
    if samples == 0 {
        return None;
    }
    let faults = census.faults.max(1.0);
    if faults <= samples as f64 {
        // Each fault was seen, so each page was too.
        return Some(Estimate::exact(repeated as f64 / samples as f64));
    }
    let (pages, few, many) = pages_behind(&census.seen, faults);
    let share = |pages: f64| (1.0 - pages / faults).max(0.0);
    let by_chance = repeated < LEAST_REPEATS;
    Some(Estimate {
        value: if by_chance { 0.0 } else { share(pages) },
        low: if by_chance { 0.0 } else { share(many) },
        high: share(few),
    })
}

/// Share of repeats for each kind of memory. The peak of resident memory limits how many pages can
/// have been touched for the first time without any having been freed.
fn all_repeats(attribution: &Attribution, counted: Counted) -> BTreeMap<RegionKind, Estimate> {
    let mut parts: BTreeMap<RegionKind, Vec<(f64, Estimate)>> = BTreeMap::new();
    for (&(region, _), census) in &attribution.tally.census {
        let share = repeats(census).map(|share| (census.faults, share));
        parts.entry(region).or_default().extend(share);
    }
    let mut all: BTreeMap<RegionKind, Estimate> = parts
        .into_iter()
        .map(|(region, parts)| {
            let share = shares_together(&parts, faults_counted(attribution, region));
            (region, share)
        })
        .collect();
    if let Some(pages) = counted.resident {
        let first = |region| faults_on(attribution, region) - churn_by_records(attribution, region);
        bound_by_resident(&mut all, first, pages);
    }
    if !attribution.sees_every_fault && !attribution.sees_releases {
        // Pages of memory without a recorded mapping were not counted.
        all.insert(RegionKind::Unknown, NOT_KNOWN);
    }
    all
}

const NOT_KNOWN: Estimate = Estimate {
    value: 0.0,
    low: 0.0,
    high: 1.0,
};

/// Combines shares among faults that were sampled at several rates. For faults outside any census
/// (those of latency windows) the share is not known.
fn shares_together(parts: &[(f64, Estimate)], of: f64) -> Estimate {
    let covered: f64 = parts.iter().map(|(faults, _)| faults).sum();
    let mean = |figure: fn(&Estimate) -> f64| {
        let sum: f64 = parts
            .iter()
            .map(|(faults, share)| faults * figure(share))
            .sum();
        sum / covered.max(f64::MIN_POSITIVE)
    };
    let part = (covered / of.max(f64::MIN_POSITIVE)).min(1.0);
    let value = mean(|share| share.value);
    Estimate {
        value,
        low: mean(|share| share.low) * part,
        high: mean(|share| share.high) * part + (1.0 - part),
    }
}

/// Raises shares until the `first` touches of each kind of memory, and of all together, fit into
/// `pages` that were resident at one time.
fn bound_by_resident(
    shares: &mut BTreeMap<RegionKind, Estimate>,
    first: impl Fn(RegionKind) -> f64,
    pages: f64,
) {
    let all: f64 = shares.keys().map(|&region| first(region)).sum();
    if 1.0 - pages / all.max(1.0) <= LEAST_BY_RESIDENT {
        return;
    }
    for (&region, share) in shares.iter_mut() {
        let least = (1.0 - pages / first(region).max(1.0)).max(0.0);
        *share = Estimate {
            value: share.value.max(least),
            low: share.low.max(least),
            high: share.high.max(least),
        };
    }
    // What still does not fit belongs where the samples leave room for it: a small kind of memory
    // that was seen well is not judged by a large one.
    let sum = |of: fn(&Estimate) -> f64| -> f64 {
        let each = shares
            .iter()
            .map(|(&region, share)| first(region) * of(share));
        each.sum()
    };
    let excess = all - pages - sum(|share| share.value);
    let room = sum(|share| share.high - share.value);
    if excess > 0.0 && room > 0.0 {
        let part = (excess / room).min(1.0);
        for share in shares.values_mut() {
            share.value += part * (share.high - share.value);
        }
    }
}

/// Smallest share of repeats that the peak of resident memory is trusted to show: half of the
/// faults did not fit into memory.
const LEAST_BY_RESIDENT: f64 = 0.5;

fn faults_on(attribution: &Attribution, region: RegionKind) -> f64 {
    let weight = attribution.tally.regions.get(&region);
    weight.map_or(0.0, |weight| weight.sum)
}

fn churn_by_records(attribution: &Attribution, region: RegionKind) -> f64 {
    let message = attribution.tally.told_by_records.get(&region);
    message.map_or(0.0, |(_, churn)| *churn)
}

/// Faults that mapping records do not explain.
fn faults_counted(attribution: &Attribution, region: RegionKind) -> f64 {
    let message = attribution.tally.told_by_records.get(&region);
    (faults_on(attribution, region) - message.map_or(0.0, |(faults, _)| *faults)).max(0.0)
}

impl Ledger {
    fn enter(&mut self, attribution: &Attribution, cell: Cell, faults: f64) {
        let again = match self.repeats.get(&cell.region) {
            Some(share) if is_first(cell.cause) => share.value,
            _ => 0.0,
        };
        if again > 0.0 {
            let cause = refault_by(likely_route(attribution, cell.region));
            self.add(Cell { cause, ..cell }, faults * again);
        }
        self.add(cell, faults * (1.0 - again));
    }

    fn add(&mut self, cell: Cell, faults: f64) {
        if faults == 0.0 {
            return;
        }
        self.cells.push((cell, faults));
        *self.causes.entry(cell.cause).or_default() += faults;
        *self.routes.entry((cell.cause, cell.region)).or_default() += faults;
    }

    /// Sampled faults seldom show how they ended, but the kernel counts those that needed I/O: as
    /// many file pages as are missing from that count were read from disk.
    fn match_major_faults(&mut self, major: f64) {
        let sum = |cause| self.causes.get(&cause).copied().unwrap_or(0.0);
        let missing = major - sum(Cause::FileMajor) - sum(Cause::SwapIn);
        let cached = sum(Cause::FileMinor) + sum(Cause::FileCopy);
        let moved = missing.min(cached);
        if moved <= 0.0 {
            return;
        }
        for cause in [Cause::FileMinor, Cause::FileCopy] {
            self.change(cause, Cause::FileMajor, moved / cached);
        }
    }

    /// Each page is touched for the first time once in its life: faults in excess of the pages that
    /// there were are second faults on them. Samples rarely show both.
    fn bound_first_touches(&mut self, counted: Counted) {
        let first = |(cell, _): &&(Cell, f64)| {
            cell.cause == Cause::FirstTouch && is_private_anonymous(cell.region)
        };
        let all: f64 = self.cells.iter().filter(first).map(|(_, n)| n).sum();
        let Some(fresh) = counted.fresh.filter(|fresh| all > BEYOND_CHANCE * fresh) else {
            return;
        };
        // Reads map a page of zeros that counts for no process, so that pages that were only read
        // have no bound: at most as many faults as there are pages are second ones.
        let excess = (all - fresh).min(fresh);
        if counted.major.unwrap_or(0.0) >= SWAPPED * excess {
            return;
        }
        let cause = match counted.protected >= excess {
            true => Cause::WriteProtect,
            false => Cause::WriteAfterRead,
        };
        let moved: Vec<(Cell, f64)> = self.cells.iter().filter(first).copied().collect();
        for (cell, faults) in moved {
            let part = faults * excess / all;
            self.add(cell, -part);
            self.add(Cell { cause, ..cell }, part);
        }
        self.as_first_touches.push(cause);
    }

    /// Samples rarely show whether a write after a fork copies the page, or whether no other process
    /// holds it any more. The kernel counts the copies, and with them those of pages of zeros: there
    /// are no more than that.
    fn bound_copies(&mut self, copied: f64) {
        let held = self.causes.get(&Cause::CopyOnWrite).copied().unwrap_or(0.0);
        if held > copied {
            self.change(Cause::CopyOnWrite, Cause::WriteProtect, 1.0 - copied / held);
            self.counted_copies = true;
        }
    }

    /// Marks this many of the faults that allocated fresh memory as huge-page faults: those are
    /// neither first touches nor churn, whatever they were counted as.
    pub(crate) fn give_huge_pages(&mut self, faults: f64) {
        let fresh = |cause: &Cause| *cause == Cause::FirstTouch || cause.is_churn();
        let causes: Vec<(Cause, f64)> = self
            .causes
            .iter()
            .filter(|(cause, _)| fresh(cause))
            .map(|(&cause, &faults)| (cause, faults))
            .collect();
        let given: f64 = causes.iter().map(|(_, faults)| faults).sum();
        let moved = faults.min(given);
        if moved <= 0.0 {
            return;
        }
        for (cause, _) in causes {
            self.change(cause, Cause::HugePage, moved / given);
        }
        self.sort_cells();
    }

    /// Moves a share of the faults of one cause to another.
    fn change(&mut self, from: Cause, to: Cause, share: f64) {
        for (cell, faults) in self.cells_of(from) {
            self.add(cell, -faults * share);
            self.add(Cell { cause: to, ..cell }, faults * share);
        }
    }

    fn sort_cells(&mut self) {
        self.cells
            .sort_by_key(|(cell, _)| (cell.stack, cell.cause, cell.region));
    }

    fn cells_of(&self, cause: Cause) -> Vec<(Cell, f64)> {
        let of = |(cell, _): &&(Cell, f64)| cell.cause == cause;
        self.cells.iter().filter(of).copied().collect()
    }

    /// Faults that may be of the other kind, where repeats separate first touches from churn.
    pub(crate) fn doubt_of_repeats(&self, attribution: &Attribution) -> f64 {
        let widest = |share: &Estimate| (share.value - share.low).max(share.high - share.value);
        self.repeats
            .iter()
            .map(|(region, share)| widest(share) * faults_counted(attribution, *region))
            .sum()
    }

    /// Faults on private anonymous memory.
    pub(crate) fn private_faults(&self) -> f64 {
        self.routes
            .iter()
            .filter(|((_, region), _)| is_private_anonymous(*region))
            .map(|(_, faults)| faults)
            .sum()
    }

    /// Faults by churn.
    pub(crate) fn churn_faults(&self) -> f64 {
        self.causes
            .iter()
            .filter(|(cause, _)| cause.is_churn())
            // An empty sum of floats is minus zero, which looks odd in the output.
            .fold(0.0, |sum, (_, faults)| sum + faults)
    }

    /// Churn's share of the faults on one kind of memory.
    pub(crate) fn churn_share(&self, region: RegionKind) -> f64 {
        let of = |churn: bool| -> f64 {
            self.routes
                .iter()
                .filter(|((cause, at), _)| *at == region && (!churn || cause.is_churn()))
                .map(|(_, faults)| faults)
                .sum()
        };
        let all = of(false);
        if all > 0.0 { of(true) / all } else { 0.0 }
    }
}

/// Whether a fault of this cause may have been an unseen repeat.
pub(crate) fn is_first(cause: Cause) -> bool {
    matches!(cause, Cause::FirstTouch | Cause::StackGrowth)
}

/// The route by which memory of a kind is freed. Releases seen during part of the run decide.
/// Without any, the kind of memory decides: the heap shrinks, blocks that are mapped repeatedly
/// were unmapped in between, and the rest (thread arenas, allocators that keep their mappings) is
/// freed by advice.
fn likely_route(attribution: &Attribution, region: RegionKind) -> Route {
    let tally = &attribution.tally;
    let seen = tally
        .releases
        .iter()
        .filter(|((_, of), _)| *of == region)
        .max_by_key(|(_, totals)| totals.pages)
        .map(|((route, _), _)| *route);
    let remapped = tally.remapped.get(&region).copied().unwrap_or(0);
    let is_remapped = to_f64(remapped) > REMAPPED_SHARE * faults_on(attribution, region);
    seen.unwrap_or(match region {
        RegionKind::Heap => Route::Brk,
        // Each new mapping leaves a record, so blocks that were reused without any were never
        // unmapped.
        RegionKind::MmappedChunk if remapped > 0 => Route::Munmap,
        RegionKind::Anonymous if is_remapped => Route::Munmap,
        _ => Route::Dontneed,
    })
}

/// Share of a memory's faults that mapping it again must explain to count as their cause.
const REMAPPED_SHARE: f64 = 0.3;

fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_fit_into_memory_are_not_judged_by_a_heap_that_does_not() {
        let share = |value: f64, low: f64, high: f64| Estimate { value, low, high };
        let (heap, blocks) = (RegionKind::Heap, RegionKind::MmappedChunk);
        let mut shares =
            BTreeMap::from([(heap, share(0.9, 0.5, 1.0)), (blocks, share(0.0, 0.0, 0.0))]);
        let first = |region| if region == heap { 58_000.0 } else { 1_000.0 };
        bound_by_resident(&mut shares, first, 1_300.0);
        assert_eq!(shares[&blocks], share(0.0, 0.0, 0.0));
        let touched = 58_000.0 * (1.0 - shares[&heap].value) + 1_000.0;
        assert!((touched - 1_300.0).abs() < 1.0, "{touched}");
        assert!(shares[&heap].low > 0.97, "{:?}", shares[&heap]);
    }

    #[test]
    fn few_faults_beyond_the_peak_prove_nothing() {
        let before = BTreeMap::from([(RegionKind::Heap, Estimate::exact(0.0))]);
        let mut shares = before.clone();
        bound_by_resident(&mut shares, |_| 1_900.0, 1_000.0);
        assert_eq!(shares, before);
    }

    pub(super) fn held(cells: &[(Cause, RegionKind, f64)]) -> Ledger {
        let mut ledger = Ledger::default();
        for &(cause, region, faults) in cells {
            let stack = None;
            ledger.add(
                Cell {
                    stack,
                    cause,
                    region,
                },
                faults,
            );
        }
        ledger
    }

    /// `calloc`, read, write: 262,000 faults on 131,000 pages, of which samples see one each.
    #[test]
    fn no_more_pages_are_touched_first_than_there_are() {
        let sampled = [
            (Cause::FirstTouch, RegionKind::MmappedChunk, 262_000.0),
            (Cause::FileMinor, RegionKind::FilePrivate, 500.0),
        ];
        let counted = Counted {
            fresh: Some(131_000.0),
            ..Counted::default()
        };
        let mut ledger = held(&sampled);
        ledger.bound_first_touches(counted);
        assert_eq!(ledger.causes[&Cause::FirstTouch], 131_000.0);
        assert_eq!(ledger.causes[&Cause::WriteAfterRead], 131_000.0);
        let mut protecting = held(&sampled);
        protecting.bound_first_touches(Counted {
            protected: 140_000.0,
            ..counted
        });
        assert_eq!(protecting.causes[&Cause::WriteProtect], 131_000.0);
        let mut swapping = held(&sampled);
        swapping.bound_first_touches(Counted {
            major: Some(90_000.0),
            ..counted
        });
        assert_eq!(swapping.causes[&Cause::FirstTouch], 262_000.0);
    }

    #[test]
    fn pages_that_are_only_read_are_touched_once() {
        let mut ledger = held(&[(Cause::FirstTouch, RegionKind::MmappedChunk, 153_000.0)]);
        ledger.bound_first_touches(Counted {
            fresh: Some(800.0),
            ..Counted::default()
        });
        assert_eq!(ledger.causes[&Cause::FirstTouch], 152_200.0);
    }

    #[test]
    fn no_more_pages_are_copied_than_the_kernel_counted() {
        let sampled = [(Cause::CopyOnWrite, RegionKind::MmappedChunk, 654_000.0)];
        let mut ledger = held(&sampled);
        ledger.bound_copies(19_809.0);
        assert!((ledger.causes[&Cause::CopyOnWrite] - 19_809.0).abs() < 1e-6);
        assert!((ledger.causes[&Cause::WriteProtect] - 634_191.0).abs() < 1e-6);
    }

    #[test]
    fn faults_that_gave_huge_pages_are_churn_by_no_count() {
        let mut ledger = Ledger::default();
        for (cause, faults) in [
            (Cause::FirstTouch, 300.0),
            (Cause::RefaultAfterMunmap, 700.0),
            (Cause::FileMinor, 50.0),
        ] {
            let region = RegionKind::MmappedChunk;
            let stack = None;
            ledger.add(
                Cell {
                    stack,
                    cause,
                    region,
                },
                faults,
            );
        }
        ledger.give_huge_pages(990.0);
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
        };
        let churned = |(cause, _): &(&(Cause, RegionKind), &f64)| cause.0.is_churn();
        near(ledger.churn_faults(), 7.0);
        near(
            ledger.routes.iter().filter(churned).map(|(_, n)| n).sum(),
            7.0,
        );
        let cells = ledger.cells_of(Cause::RefaultAfterMunmap);
        near(cells.iter().map(|(_, faults)| faults).sum(), 7.0);
        near(ledger.causes[&Cause::HugePage], 990.0);
        near(ledger.private_faults(), 1050.0);
        near(ledger.churn_share(RegionKind::MmappedChunk), 7.0 / 1050.0);
    }
}
