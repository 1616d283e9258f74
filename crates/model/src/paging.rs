//! How a run under user-level paging went, point by point.

use crate::answer::{Evidence, Kind};
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
    /// Time between points; doubled as often as the points became too many.
    pub interval: Nanos,
    /// Readings, oldest first; the last one is that of the end.
    pub points: Vec<PagingPoint>,
    /// How long pages stayed away, over all processes.
    pub refault_distances: RefaultDistances,
}

impl Evidence for PagingTimeline {
    const KIND: Kind = Kind::PagingTimeline;
}

/// How many pages were evicted between a page's eviction and its return. Counts are estimates from a
/// sample of pages, exact where all were followed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefaultDistances {
    /// Refaults of the sample.
    pub samples: u64,
    /// Pages of the sample that came back.
    pub sampled_pages: u64,
    /// Those that are not empty, ascending.
    pub buckets: Vec<DistanceBucket>,
    /// What more memory would have avoided, where the sample is large enough to tell.
    pub larger_budget: Option<LargerBudget>,
}

impl RefaultDistances {
    /// Evictions below which at least `tenths` of the refaults lie; none without any refault.
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

    /// The same in words: for half of the refaults, and for nine tenths.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let [half, most] = [self.within(5)?, self.within(9)?];
        Some(format!(
            "half less than {half} evictions, nine tenths {most}"
        ))
    }
}

impl LargerBudget {
    /// What it would save, in words.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "{} more would save at least {:.0} % of those waits",
            Bytes(self.more_bytes),
            (self.spared.low * 100.0).floor()
        )
    }
}

/// Returns after so many evictions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DistanceBucket {
    /// Least distance.
    pub from_pages: u64,
    /// The first one that is too long.
    pub to_pages: u64,
    /// Returns that a fault waited for.
    pub refaults: u64,
    /// Returns before anyone asked.
    pub ahead: u64,
}

/// A larger budget for one process, for policies that evict roughly in order of use. A lower bound: a
/// page that is evicted twice meanwhile counts twice, and takes room once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LargerBudget {
    /// Bytes more.
    pub more_bytes: u64,
    /// Share of the refaults that it would have avoided at least.
    pub spared: Estimate,
}

/// How soon resident pages are used again, by random ones whose next use was awaited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Heat {
    /// Pages that were watched for a second.
    pub watched: u64,
    /// Share that was used within it.
    pub hot: Estimate,
    /// Share that was used later, within eight seconds; none before any was watched so long.
    pub warm: Option<Estimate>,
    /// Share that was not used within eight seconds.
    pub cold: Option<Estimate>,
    /// Share that was seen written within a second. At least: after a read, writes to a page that
    /// differs from the store are not seen.
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
    /// How much of it may be.
    pub limit_bytes: u64,
    /// Resident memory that is not managed.
    pub unmanaged_bytes: u64,
    /// What the stores hold, on disk and packed in memory.
    pub store_bytes: u64,
    /// Faults on pages without contents.
    pub first_touches: u64,
    /// Faults that waited for the store.
    pub refaults: u64,
    /// Uses of watched pages that were seen.
    pub seen_used: u64,
    /// Pages read from the store.
    pub pages_read: u64,
    /// Of these, before anyone asked for them.
    pub pages_read_ahead: u64,
    /// Pages written to the store.
    pub pages_written: u64,
    /// Pages that left memory.
    pub pages_evicted: u64,
    /// Nanoseconds that faults waited for room.
    pub throttled_ns: u64,
    /// Resident pages whose next use was awaited for a second.
    pub watched_soon: u64,
    /// Of these, used meanwhile.
    pub used_soon: u64,
    /// Of these, written.
    pub written_soon: u64,
    /// Pages whose next use was awaited for eight seconds.
    pub watched_later: u64,
    /// Of these, used meanwhile.
    pub used_later: u64,
}
