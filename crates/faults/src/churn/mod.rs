//! Memory that is returned to the kernel and touched again: how much, and by which routes.
//!
//! If releases of memory are recorded, faults already have their route. If not, sampled faults show
//! how often pages repeat, and thereby the number of pages ([`pages`]): all faults beyond one per
//! page are repeats.

mod pages;

pub use pages::Sightings;
pub(crate) use pages::pages_behind;

use crate::attribute::{Doubt, Ledger, Scale, interval};
use crate::causes::{Attribution, refault_by};
use pagewise_model::findings::{Cause, Churn, ChurnRoute, RegionKind};
use pagewise_model::histogram::Histogram;
use pagewise_model::units::{Bytes, Estimate};

/// Everything about churn but its sites.
pub(crate) fn churn(attribution: &Attribution, ledger: &Ledger, scale: &Scale) -> Churn {
    let private = ledger.private_faults();
    if private <= 0.0 {
        return Churn::default();
    }
    let share = share_with_interval(attribution, ledger, ledger.churn_faults() / private);
    let of_all = share.value * private / attribution.tally.all.sum.max(1.0);
    let faults = scale.faults(share.scaled(private), of_all);
    Churn {
        refault_ratio: Some(scale.share(share)),
        faults: Some(faults),
        bytes: bytes(faults.value, attribution.page_size),
        released_sizes: released_sizes(attribution, ledger),
        routes: routes(attribution, ledger, scale),
        allocator_blocks: allocator_blocks(attribution),
        ..Churn::default()
    }
}

/// Churn's share of the faults on private memory: counted if each fault is recorded, otherwise with
/// its interval, widened by the uncertainty of repeats.
fn share_with_interval(attribution: &Attribution, ledger: &Ledger, share: f64) -> Estimate {
    if attribution.sees_every_fault {
        return Estimate::exact(share);
    }
    let private = ledger.private_faults();
    let variation = &attribution.tally.cause_variation;
    let causes = ledger.causes.keys().copied();
    let causes: Vec<Cause> = causes.filter(|cause| cause.is_churn()).collect();
    let doubt_of_repeats = ledger.doubt_of_repeats(attribution) / private;
    let of_all = share * private / attribution.tally.all.sum.max(1.0);
    let doubt = Doubt {
        variance: variation.variance(&causes, Some(of_all)),
        share: 0.0,
    };
    let sum = interval(attribution, share * private, doubt).scaled(1.0 / private);
    Estimate {
        value: share.clamp(0.0, 1.0),
        low: (sum.low - doubt_of_repeats).max(0.0),
        high: (sum.high + doubt_of_repeats).min(1.0),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a byte count below 2^63, never negative"
)]
fn bytes(faults: f64, page_size: u64) -> Bytes {
    Bytes((faults.max(0.0) * page_size as f64) as u64)
}

fn routes(attribution: &Attribution, ledger: &Ledger, scale: &Scale) -> Vec<ChurnRoute> {
    let mut routes: Vec<ChurnRoute> = ledger
        .routes
        .iter()
        .filter(|((cause, _), _)| cause.is_churn())
        .map(|(&(cause, region), &faults)| ChurnRoute {
            cause,
            region,
            faults: faults * scale.factor,
            released_sizes: sizes(attribution, cause, region),
        })
        .collect();
    routes.sort_by(|a, b| b.faults.total_cmp(&a.faults));
    routes
}

/// Sizes of the memory freed by one route; if releases were not seen, of the memory allocated.
fn sizes(attribution: &Attribution, cause: Cause, region: RegionKind) -> Histogram {
    let tally = &attribution.tally;
    let mut sizes = Histogram::default();
    for ((route, of), totals) in &tally.releases {
        if *of == region && refault_by(*route) == cause {
            sizes.merge(&totals.sizes);
        }
    }
    if sizes.count() == 0
        && let Some(taken) = tally.growth_sizes.get(&region)
    {
        sizes.merge(taken);
    }
    sizes
}

fn released_sizes(attribution: &Attribution, ledger: &Ledger) -> Histogram {
    let mut all = Histogram::default();
    for &(cause, region) in ledger.routes.keys().filter(|(cause, _)| cause.is_churn()) {
        all.merge(&sizes(attribution, cause, region));
    }
    all
}

/// By the code that mapped them; if that was not seen, by the code that wrote their first bytes.
fn allocator_blocks(attribution: &Attribution) -> Option<f64> {
    let tally = &attribution.tally;
    let by_header = || (tally.blocks > 0).then(|| tally.headed_blocks as f64 / tally.blocks as f64);
    tally.mapped_by.allocators_share().or_else(by_header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::repeats;
    use crate::causes::Census;
    use pagewise_stats::Random;
    use std::collections::BTreeMap;

    /// Successive samples from this many pages.
    fn census(samples: u64, pages: usize, faults: f64) -> Census {
        let mut random = Random::seeded(7);
        let mut times = BTreeMap::new();
        let mut seen = Sightings::default();
        for _ in 0..samples {
            let before = times.entry(random.below(pages)).or_insert(0);
            seen.see(*before);
            *before += 1;
        }
        Census { seen, faults }
    }

    #[test]
    fn a_thousand_samples_recover_834_pages() {
        let share = repeats(&census(1000, 834, 152_842.0)).unwrap();
        assert!((share.value - 0.9945).abs() < 0.01, "{share:?}");
        assert!(share.covers(1.0 - 834.0 / 152_842.0));
    }

    #[test]
    fn memory_touched_once_has_no_repeats_to_show() {
        for pages in [1 << 40, 400_000] {
            let share = repeats(&census(1000, pages, 1e6)).unwrap();
            assert_eq!((share.value, share.low), (0.0, 0.0), "by chance");
        }
        let many_samples = repeats(&census(10_000, 1 << 40, 1e6)).unwrap();
        assert!(many_samples.high < 0.1, "{many_samples:?}");
    }

    #[test]
    fn where_each_fault_was_seen_repeats_are_counted() {
        let share = repeats(&census(1000, 10, 1000.0));
        assert_eq!(share, Some(Estimate::exact(0.99)));
    }

    #[test]
    fn the_doubt_about_repeats_widens_both_ends() {
        use crate::causes::{Attributor, Cell};
        use pagewise_model::recording::Sidecar;
        let mut attribution = Attributor::new(&[], &Sidecar::default()).finish();
        attribution.sees_every_fault = false;
        for _ in 0..100 {
            attribution.tally.all.add(10.0);
            let heap = attribution.tally.regions.entry(RegionKind::Heap);
            heap.or_default().add(10.0);
        }
        let cell = Cell {
            stack: None,
            cause: Cause::RefaultAfterBrk,
            region: RegionKind::Heap,
        };
        let doubtful = |doubt: f64| Ledger {
            cells: vec![(cell, 500.0)],
            causes: [(Cause::RefaultAfterBrk, 500.0), (Cause::FirstTouch, 500.0)].into(),
            routes: [((Cause::RefaultAfterBrk, RegionKind::Heap), 1000.0)].into(),
            repeats: [(
                RegionKind::Heap,
                Estimate {
                    value: 0.5,
                    low: 0.5 - doubt,
                    high: 0.5 + doubt / 2.0,
                },
            )]
            .into(),
            ..Ledger::default()
        };
        let sure = share_with_interval(&attribution, &doubtful(0.0), 0.5);
        let unsure = share_with_interval(&attribution, &doubtful(0.2), 0.5);
        assert!(sure.low > 0.3 && sure.high < 0.7, "{sure:?}");
        assert!((sure.low - unsure.low - 0.2).abs() < 1e-9, "{unsure:?}");
        assert!((unsure.high - sure.high - 0.2).abs() < 1e-9, "{unsure:?}");
    }
}
