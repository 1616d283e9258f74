//! Readings of a run in progress.

use super::figures::Figures;
use pagewise_model::answer::Document;
use pagewise_model::paged_run::{PagedProcess, PagedRun};
use pagewise_model::paging::{PagingPoint, PagingTimeline};
use pagewise_model::units::Nanos;
use std::time::{Duration, Instant};

/// Maximum number of points; beyond it every second one is dropped and the interval doubles.
const MOST: usize = 1000;

/// Gathers points.
#[derive(Debug)]
pub struct Timeline {
    began: Instant,
    interval: Duration,
    next: Instant,
    points: Vec<PagingPoint>,
}

impl Timeline {
    /// A point each 50 ms at first.
    pub fn new() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            interval: Duration::from_millis(50),
            next: now,
            points: Vec::new(),
        }
    }

    /// Time until the next point.
    pub fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Whether a point is due.
    pub fn is_due(&self) -> bool {
        self.pause().is_zero()
    }

    /// Adds a point.
    pub fn take(&mut self, figures: &Figures) {
        self.points.push(point(self.began.elapsed(), figures));
        if self.points.len() > MOST {
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.interval *= 2;
        }
        self.next = Instant::now() + self.interval;
    }

    /// The document, with a final point.
    pub fn finish(
        mut self,
        run: &Document<PagedRun>,
        figures: &Figures,
    ) -> Document<PagingTimeline> {
        self.take(figures);
        let subject = run.subject.clone();
        let run = &run.evidence;
        let timeline = PagingTimeline {
            ending: run.ending,
            memory_bytes: run.memory_bytes,
            memory_is_each: run.memory_is_each,
            policy: run.policy.clone(),
            store: run.store.clone(),
            interval: nanos(self.interval),
            points: self.points,
            refault_distances: run.refault_distances.clone(),
        };
        Document::new(timeline).about(subject)
    }
}

fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn point(time: Duration, figures: &Figures) -> PagingPoint {
    // Ended processes keep their counters, but no memory.
    let living = |of: fn(&PagedProcess) -> u64| figures.living().map(of).sum();
    PagingPoint {
        time: nanos(time),
        processes: figures.processes_total,
        resident_bytes: living(|one| one.resident_bytes),
        limit_bytes: living(|one| one.limit_bytes),
        unmanaged_bytes: living(|one| one.unmanaged_bytes),
        store_bytes: figures.store_bytes(),
        first_touches: figures.sum_faults(|all| all.first_touches),
        refaults: figures.sum_faults(|all| all.refaults),
        seen_used: figures.sum_pages(|all| all.seen_used),
        pages_read: figures.sum_pages(|all| all.read),
        pages_read_ahead: figures.sum_pages(|all| all.prefetched),
        pages_written: figures.sum_pages(|all| all.written),
        pages_evicted: figures.sum_pages(|all| all.evicted),
        throttled_ns: figures.sum_faults(|all| all.throttled_ns),
        watched_soon: figures.watched.soon_of,
        used_soon: figures.watched.soon,
        written_soon: figures.watched.written,
        watched_later: figures.watched.later_of,
        used_later: figures.watched.later,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stay_bounded_and_in_order() {
        let mut timeline = Timeline::new();
        let none = Figures::new(&[], |_| false);
        for _ in 0..5000 {
            timeline.take(&none);
        }
        assert!(timeline.points.len() <= MOST && timeline.points.len() >= MOST / 2);
        assert!(timeline.interval >= Duration::from_millis(400));
        assert!(timeline.points.is_sorted_by(|a, b| a.time <= b.time));
    }
}
