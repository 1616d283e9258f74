//! What samples of a run under user-level paging show about all its pages.

use crate::attribute::wilson;
use pagewise_model::paging::{DistanceBucket, Heat, LargerBudget};
use pagewise_model::units::Estimate;

/// With fewer sampled refaults nothing is reported.
const LEAST_SAMPLES: f64 = 50.0;
/// A larger budget is reported if it avoids at least this share of the refaults, even at the lower
/// end.
const WORTH: f64 = 0.5;

/// Refaults, some of which were followed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Followed refaults.
    pub samples: u64,
    /// Sum of the squares of the refaults that each of them stands for.
    pub squares: u64,
    /// Number of their distinct pages.
    pub pages: u64,
}

/// The smallest budget among the histogram's steps that would have avoided most refaults: a page
/// that returns after `n` evictions would have stayed if there had been room for `n` more. With
/// room for `away_pages`, the most that can be evicted at a time, every page would have stayed.
#[must_use]
pub fn larger_budget(
    buckets: &[DistanceBucket],
    sample: &Sample,
    away_pages: u64,
    page_bytes: u64,
) -> Option<LargerBudget> {
    let whole = float(buckets.iter().map(|bucket| bucket.refaults).sum());
    // Refaults of one page are similar: at most as many count as there are pages.
    let independent = (whole * whole / float(sample.squares).max(1.0))
        .min(float(sample.samples))
        .min(float(sample.pages));
    if independent < LEAST_SAMPLES {
        return None;
    }
    let mut within = 0;
    buckets.iter().find_map(|bucket| {
        within += bucket.refaults;
        let spared = match bucket.to_pages < away_pages {
            true => wilson(float(within) / whole, independent),
            false => Estimate::exact(1.0),
        };
        (spared.low >= WORTH).then(|| LargerBudget {
            more_bytes: bucket.to_pages.min(away_pages) * page_bytes,
            spared,
        })
    })
}

/// Random pages that were watched for their next use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    /// Pages watched for one second.
    pub soon_of: u64,
    /// Of these, used.
    pub soon: u64,
    /// Of these, written.
    pub written: u64,
    /// Pages watched for eight seconds.
    pub later_of: u64,
    /// Of these, used.
    pub later: u64,
}

/// The amounts of hot, warm and cold memory; `None` if nothing was watched.
#[must_use]
pub fn heat(watched: &Watched) -> Option<Heat> {
    let share = |part: u64, whole: u64| {
        (whole > 0).then(|| wilson(float(part) / float(whole), float(whole)))
    };
    let hot = share(watched.soon, watched.soon_of)?;
    let cold = share(
        watched.later_of.saturating_sub(watched.later),
        watched.later_of,
    );
    // The two shares come from different pages, so their rest may be below zero.
    let warm = cold.map(|cold| {
        let rest = (1.0 - hot.value - cold.value).max(0.0);
        wilson(rest, float(watched.later_of))
    });
    Some(Heat {
        watched: watched.soon_of,
        hot,
        warm,
        cold,
        written: share(watched.written, watched.soon_of)?,
    })
}

fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(from_pages: u64, refaults: u64) -> DistanceBucket {
        DistanceBucket {
            from_pages,
            to_pages: from_pages * 2,
            refaults,
            ahead: 0,
        }
    }

    #[test]
    fn the_step_that_spares_most_is_named_with_its_doubt() {
        let buckets = [bucket(64, 200), bucket(1024, 1500), bucket(4096, 300)];
        let sample = |count| Sample {
            samples: count,
            squares: 2000 * 2000 / count,
            pages: count,
        };
        let found = larger_budget(&buckets, &sample(1000), u64::MAX, 4096).expect("enough");
        assert_eq!(found.more_bytes, 2048 * 4096);
        assert!((found.spared.value - 0.85).abs() < 1e-9);
        assert!(found.spared.low > 0.8 && found.spared.high < 0.9);
        let all = larger_budget(&buckets, &sample(1000), 1500, 4096).expect("enough");
        assert_eq!((all.more_bytes, all.spared.low), (1500 * 4096, 1.0));
        let found = larger_budget(&buckets, &sample(60), u64::MAX, 4096).expect("enough");
        assert!(found.spared.high - found.spared.low > 0.1);
        assert_eq!(larger_budget(&buckets, &sample(40), u64::MAX, 4096), None);
        let few_pages = Sample {
            pages: 3,
            ..sample(1000)
        };
        assert_eq!(larger_budget(&buckets, &few_pages, u64::MAX, 4096), None);
        assert_eq!(larger_budget(&[], &sample(1000), u64::MAX, 4096), None);
    }

    #[test]
    fn heat_is_told_with_its_doubt_and_not_before_its_time() {
        assert_eq!(heat(&Watched::default()), None);
        let early = Watched {
            soon_of: 40,
            soon: 10,
            written: 4,
            ..Watched::default()
        };
        let found = heat(&early).expect("some were watched");
        assert!((found.hot.value - 0.25).abs() < 1e-9);
        assert!(found.hot.low < 0.2 && found.hot.high > 0.3);
        assert_eq!((found.warm, found.cold), (None, None));
        let whole = Watched {
            later_of: 400,
            later: 200,
            ..early
        };
        let found = heat(&whole).expect("some were watched");
        let [warm, cold] = [found.warm, found.cold].map(|one| one.expect("watched long").value);
        assert!((warm - 0.25).abs() < 1e-9 && (cold - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_spares_less_than_half_is_not_named() {
        let buckets = [bucket(64, 510), bucket(1 << 20, 490)];
        let sample = Sample {
            samples: 1000,
            squares: 1000,
            pages: 1000,
        };
        let found = larger_budget(&buckets, &sample, u64::MAX, 4096).expect("all at least");
        assert_eq!(found.more_bytes, 4096 << 21, "51 % of a sample may be 48");
    }
}
