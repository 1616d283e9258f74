//! The course of a run under user-level paging, point by point.

use crate::quantity::count;
use crate::run::Ending;
use crate::units::{Bytes, Estimate, Nanos};
use serde::{Deserialize, Serialize};

/// The course of one run of `pagewise run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagingTimeline {
    /// How it ended.
    pub ending: Ending,
    /// The budget in bytes.
    pub memory_bytes: u64,
    /// Whether each process had that budget, rather than all together.
    pub memory_is_each: bool,
    /// The policy's name.
    pub policy: String,
    /// The store's kind.
    pub store: String,
    /// Time between points; doubled each time there were too many points.
    pub interval: Nanos,
    /// Readings, oldest first; the last one is from the end of the run.
    pub points: Vec<PagingPoint>,
    /// How long pages stayed evicted, over all processes.
    pub refault_distances: RefaultDistances,
}

/// How many pages were evicted between a page's eviction and its return. Counts are estimates from
/// a sample of pages, exact if all pages were followed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefaultDistances {
    /// Refaults of the sample.
    pub samples: u64,
    /// Pages of the sample that came back.
    pub sampled_pages: u64,
    /// Non-empty buckets, ascending.
    pub buckets: Vec<DistanceBucket>,
    /// What more memory would have avoided, if the sample is large enough.
    pub larger_budget: Option<LargerBudget>,
}

impl RefaultDistances {
    /// Evictions below which at least `tenths` of the refaults lie; `None` without any refault.
    #[must_use]
    pub fn within(&self, tenths: u64) -> Option<u64> {
        let whole: u64 = self.buckets.iter().map(|bucket| bucket.refaults).sum();
        let mut sum = 0;
        let bucket = self.buckets.iter().find(|bucket| {
            sum += bucket.refaults;
            sum > 0 && sum * 10 >= whole * tenths
        });
        bucket.map(|bucket| bucket.to_pages)
    }

    /// The same in words: median and 90th percentile.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let [half, most] = [self.within(5)?, self.within(9)?];
        Some(format!(
            "median {} evictions, p90 {}",
            count(half),
            count(most)
        ))
    }
}

impl LargerBudget {
    /// What the larger budget would save, in words.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "{} more would save at least {:.0} % of those waits",
            Bytes(self.more_bytes),
            (self.spared.low * 100.0).floor()
        )
    }
}

/// Returns after this many evictions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DistanceBucket {
    /// Least distance.
    pub from_pages: u64,
    /// First distance beyond the bucket.
    pub to_pages: u64,
    /// Returns that a fault waited for.
    pub refaults: u64,
    /// Returns by read-ahead, before a fault.
    pub ahead: u64,
}

/// A larger budget for one process, for policies that evict roughly in order of use. A lower bound:
/// a page that is evicted twice meanwhile counts twice, but takes room only once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LargerBudget {
    /// Additional bytes.
    pub more_bytes: u64,
    /// Smallest share of the refaults that it would have avoided.
    pub spared: Estimate,
}

/// How soon resident pages are used again, estimated from random pages that were watched until
/// their next use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Heat {
    /// Pages that were watched for a second.
    pub watched: u64,
    /// Share that was used within it.
    pub hot: Estimate,
    /// Share that was used later, within eight seconds; `None` until a page was watched that long.
    pub warm: Option<Estimate>,
    /// Share that was not used within eight seconds.
    pub cold: Option<Estimate>,
    /// Share that was seen written within a second. A lower bound: after a read, writes to a page
    /// that differs from the store are not seen.
    pub written: Estimate,
}

/// One reading, summed over the processes of the run. Counters are cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagingPoint {
    /// Since the program was started.
    pub time: Nanos,
    /// Processes that have managed memory so far.
    pub processes: u32,
    /// Managed memory that is resident.
    pub resident_bytes: u64,
    /// Limit on that memory.
    pub limit_bytes: u64,
    /// Resident memory that is not managed.
    pub unmanaged_bytes: u64,
    /// Contents of the stores, on disk and packed in memory.
    pub store_bytes: u64,
    /// Faults on pages without contents.
    pub first_touches: u64,
    /// Faults that waited for the store.
    pub refaults: u64,
    /// Uses of watched pages that were seen.
    pub seen_used: u64,
    /// Pages read from the store.
    pub pages_read: u64,
    /// Of these, before they were needed.
    pub pages_read_ahead: u64,
    /// Pages written to the store.
    pub pages_written: u64,
    /// Pages that left memory.
    pub pages_evicted: u64,
    /// Nanoseconds that faults waited for room.
    pub throttled_ns: u64,
    /// Resident pages that were watched for a second for their next use.
    pub watched_soon: u64,
    /// Of these, those that were used.
    pub used_soon: u64,
    /// Of these, those that were written.
    pub written_soon: u64,
    /// Pages that were watched for eight seconds for their next use.
    pub watched_later: u64,
    /// Of these, those that were used.
    pub used_later: u64,
}
