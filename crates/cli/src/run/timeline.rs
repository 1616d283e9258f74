//! Readings of a run while it goes on (`--timeline`).

use super::statistics::{Document, Figures, Process};
use pagewise_model::paging::{KIND, PagingPoint, PagingTimeline, VERSION};
use std::time::{Duration, Instant};

/// Points that are kept; of more, every second one goes and the interval doubles.
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

    /// How long until the next point.
    pub fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Whether a point is due.
    pub fn is_due(&self) -> bool {
        self.pause().is_zero()
    }

    /// Takes a point.
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

    /// The document, with a last point of the end.
    pub fn finish(mut self, document: &Document, memory_bytes: u64) -> PagingTimeline {
        self.take(&document.figures);
        PagingTimeline {
            pagewise: KIND.to_owned(),
            schema_version: VERSION,
            command: document.command.clone(),
            ending: document.ending.clone(),
            memory_bytes,
            policy: document.policy.clone(),
            store: document.store.clone(),
            interval_s: self.interval.as_secs_f64(),
            points: self.points,
            refault_distances: document.figures.refault_distances.clone(),
        }
    }
}

fn point(time: Duration, figures: &Figures) -> PagingPoint {
    // What has ended keeps its counters, but no memory.
    let living = |of: fn(&Process) -> u64| figures.living().map(of).sum();
    PagingPoint {
        time_s: time.as_secs_f64(),
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
        let none = Figures::of(&[], |_| false);
        for _ in 0..5000 {
            timeline.take(&none);
        }
        assert!(timeline.points.len() <= MOST && timeline.points.len() >= MOST / 2);
        assert!(timeline.interval >= Duration::from_millis(400));
        assert!(timeline.points.is_sorted_by(|a, b| a.time_s <= b.time_s));
    }
}
