//! Resident memory of a process tree: the largest sum over its processes that was seen at a time.
//!
//! `wait4(2)` reports only the peak of the largest process. The tree is read every 10 ms. A process
//! counts once it was seen twice, with the smaller of both sizes: one that has just forked and is
//! about to exec still shows its parent's memory. Pages that processes share count for each of
//! them, the same in all runs.

use pagewise_linux::proc::{ProcessReading, Sampler, SamplerOptions};
use pagewise_model::units::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(10);

/// A watch in progress.
pub(super) struct Together {
    sampler: Sampler,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    before: BTreeMap<i32, Bytes>,
    /// `None` as long as there was only one process.
    most: Option<Bytes>,
}

impl Together {
    /// Starts to watch the tree of `pid`.
    pub(super) fn watch(pid: i32) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let noted = Arc::clone(&seen);
        let options = SamplerOptions {
            pss: false,
            pressure: false,
            ..SamplerOptions::every(INTERVAL)
        };
        let sampler = Sampler::start_with(pid, options, move |_, processes, _| {
            let mut seen = noted.lock().unwrap_or_else(PoisonError::into_inner);
            seen.note(processes.iter().map(resident));
        });
        Self { sampler, seen }
    }

    /// Ends the watch; returns the most memory of several processes together, if there were
    /// several.
    pub(super) fn most(self) -> Option<Bytes> {
        drop(self.sampler.stop());
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .most
    }
}

fn resident(process: &ProcessReading) -> (i32, Bytes) {
    (process.pid, process.rss)
}

impl Seen {
    fn note(&mut self, processes: impl Iterator<Item = (i32, Bytes)>) {
        let now: BTreeMap<i32, Bytes> = processes.collect();
        let both = now
            .iter()
            .filter_map(|(pid, rss)| Some(*self.before.get(pid)?.min(rss)));
        let (count, sum) = both.fold((0, Bytes(0)), |(count, sum), rss| (count + 1, sum + rss));
        if count > 1 {
            self.most = self.most.max(Some(sum));
        }
        self.before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most(readings: &[&[(i32, u64)]]) -> Option<u64> {
        let mut seen = Seen::default();
        for reading in readings {
            seen.note(reading.iter().map(|&(pid, rss)| (pid, Bytes(rss))));
        }
        seen.most.map(|most| most.0)
    }

    #[test]
    fn processes_count_together_once_seen_twice() {
        let one: &[(i32, u64)] = &[(1, 100)];
        assert_eq!(most(&[one, one]), None);
        // A child that shows its parent's memory until it calls exec.
        assert_eq!(
            most(&[one, &[(1, 100), (2, 100)], &[(1, 100), (2, 10)]]),
            Some(110)
        );
        assert_eq!(most(&[one, &[(1, 100), (2, 100)], one]), None);
        assert_eq!(
            most(&[&[(1, 1), (2, 9)], &[(1, 5), (2, 9)], &[(1, 5), (2, 7)]]),
            Some(12)
        );
    }
}
