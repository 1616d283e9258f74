//! Groups of events that are read together (`perf record -e '{…}:S'`).
//!
//! A sample of the leader contains the counts of all members since they were opened; each stands
//! for what was added since the sample before. Inherited events count per thread, under one id
//! (`perf_sample_id__get_period_storage`, tools/perf/util/evlist.c).

use super::layout::RECORD_HEADER_SIZE;
use super::sample;
use super::sources::Sources;
use pagewise_model::event::SourceIndex;
use rustc_hash::FxHashMap;

/// The thread of events that have one count for all.
const ALL_THREADS: i32 = -1;

/// The counts at each member's last sample, by thread and id.
#[derive(Debug, Default)]
pub(super) struct Groups {
    counts: FxHashMap<i32, FxHashMap<u64, u64>>,
}

impl Groups {
    /// The counts of a sample's group by source, each since the sample before; `None` where the
    /// sample stands only for its own event.
    pub fn of_sample(
        &mut self,
        sources: &Sources,
        record: &[u8],
        tid: i32,
    ) -> Option<Vec<(SourceIndex, u64)>> {
        let layout = sources.layout(sources.of_sample(record)?)?;
        let payload = record.get(RECORD_HEADER_SIZE..)?;
        let counts = sample::group_counts(&layout.attr, payload)?;
        let known: Vec<(u64, SourceIndex, u64)> = counts
            .filter_map(|(id, count)| Some((id, SourceIndex(sources.by_id(id)?), count)))
            .collect();
        if known.is_empty() {
            return None;
        }
        let since = known.into_iter().filter_map(|(id, source, count)| {
            let is_per_thread = sources
                .layout(source.0)
                .is_some_and(|layout| layout.attr.counts_per_thread());
            let thread = if is_per_thread { tid } else { ALL_THREADS };
            let before = self.counts.entry(thread).or_default().insert(id, count);
            let more = count.saturating_sub(before.unwrap_or(0));
            (more > 0).then_some((source, more))
        });
        Some(since.collect())
    }

    /// A thread ended: another one may get its id, and starts to count at zero.
    pub fn forget(&mut self, tid: i32) {
        self.counts.remove(&tid);
    }
}
