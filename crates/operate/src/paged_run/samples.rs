//! Figures from the pager's samples of pages.

use super::PAGE_BYTES;
use pagewise_faults::paging::{Sample, Watched, larger_budget};
use pagewise_model::paging::{DistanceBucket, RefaultDistances};
use pagewise_wire::counter;
use pagewise_wire::histogram::least;
use pagewise_wire::shared::DISTANCE_BUCKETS;
use pagewise_wire::snapshot::{ProcessBytes, RegionBytes};

/// Refault distances of `processes` together.
pub fn distances<'a>(processes: impl IntoIterator<Item = ProcessBytes<'a>>) -> RefaultDistances {
    let mut counts = [[0; 2]; DISTANCE_BUCKETS];
    let mut sample = Sample::default();
    let mut away_pages: u64 = 0;
    for one in processes {
        if counter!(one, distance_samples) > 0 {
            away_pages = away_pages.saturating_add(away(&one));
        }
        let returns = one.distance_waited().into_iter().zip(one.distance_ahead());
        for (sums, (refaults, ahead)) in counts.iter_mut().zip(returns) {
            sums[0] += refaults;
            sums[1] += ahead;
        }
        sample.samples += counter!(one, distance_samples);
        sample.squares += counter!(one, distance_squares);
        sample.pages += counter!(one, distance_pages);
    }
    let filled = counts
        .iter()
        .enumerate()
        .filter(|(_, sums)| **sums != [0; 2]);
    let buckets: Vec<_> = filled
        .map(|(bucket, &[refaults, ahead])| DistanceBucket {
            // The first bucket includes refaults without any eviction in between.
            from_pages: if bucket == 0 { 0 } else { least(bucket) },
            to_pages: least(bucket + 1).max(2),
            refaults,
            ahead,
        })
        .collect();
    RefaultDistances {
        samples: sample.samples,
        sampled_pages: sample.pages,
        larger_budget: larger_budget(&buckets, &sample, away_pages, PAGE_BYTES),
        buckets,
    }
}

/// Maximum number of pages evicted at a time; unknown if some memory is no longer mapped.
fn away(one: &ProcessBytes<'_>) -> u64 {
    let mapped = counter!(one, managed_bytes) / PAGE_BYTES;
    mapped
        .checked_sub(counter!(one, limit_pages))
        .filter(|beyond| *beyond > 0)
        .unwrap_or(u64::MAX)
}

/// Pages of one process that were watched.
pub fn watched(one: &ProcessBytes<'_>) -> Watched {
    Watched {
        soon_of: counter!(one, heat_soon_of),
        soon: counter!(one, heat_soon),
        written: counter!(one, heat_written),
        later_of: counter!(one, heat_later_of),
        later: counter!(one, heat_later),
    }
}

/// Recently watched pages of a region.
pub fn watched_in(region: &RegionBytes<'_>) -> Watched {
    let [soon_of, soon, written, later_of, later] = region.heat();
    Watched {
        soon_of,
        soon,
        written,
        later_of,
        later,
    }
}

/// All of them together.
pub fn sum(parts: impl IntoIterator<Item = Watched>) -> Watched {
    let add = |sum: Watched, one: Watched| Watched {
        soon_of: sum.soon_of + one.soon_of,
        soon: sum.soon + one.soon,
        written: sum.written + one.written,
        later_of: sum.later_of + one.later_of,
        later: sum.later + one.later,
    };
    parts.into_iter().fold(Watched::default(), add)
}
