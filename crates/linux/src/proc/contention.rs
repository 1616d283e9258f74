//! How busy the CPUs were with other work: pressure of `/proc/pressure/cpu`, stolen time of
//! `/proc/stat`.

use super::ProcRoot;
use crate::pseudo_file;
use pagewise_model::contention::Contention;
use pagewise_model::units::Nanos;
use std::time::Instant;

/// The kernel's counts at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentionReading {
    /// Time that some task waited for a CPU.
    waiting: Option<Nanos>,
    /// Ticks that a hypervisor took, and ticks of any kind.
    ticks: Option<(u64, u64)>,
}

impl ProcRoot {
    /// The current counts; absent if the kernel has none.
    #[must_use]
    pub fn contention(&self) -> ContentionReading {
        let text = |file: &str| pseudo_file::text(&self.path(file)).ok().flatten();
        ContentionReading {
            waiting: text("pressure/cpu").as_deref().and_then(some_total),
            ticks: text("stat").as_deref().and_then(stolen_ticks),
        }
    }
}

/// Measures from a moment on how much the CPUs are shared.
#[derive(Clone, Copy, Debug)]
pub struct ContentionWatch {
    began: Instant,
    before: ContentionReading,
}

impl ContentionWatch {
    /// Starts now, on this machine.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
            before: ProcRoot::default().contention(),
        }
    }

    /// Contention until now; `None` if the kernel does not report it.
    #[must_use]
    pub fn so_far(&self) -> Option<Contention> {
        let now = ProcRoot::default().contention();
        now.since(&self.before, Nanos::from(self.began.elapsed()))
    }
}

impl ContentionReading {
    /// The difference from `before` to this reading, `wall` later; `None` if neither is counted.
    #[must_use]
    pub fn since(&self, before: &Self, wall: Nanos) -> Option<Contention> {
        let waited = self.waiting.zip(before.waiting);
        let waiting = waited
            .filter(|_| wall.0 > 0)
            .map(|(now, then)| ((now - then).as_secs_f64() / wall.as_secs_f64()).min(1.0));
        let ticks = self.ticks.zip(before.ticks);
        let stolen = ticks.and_then(|((stolen, all), (stolen_before, all_before))| {
            let all = all.checked_sub(all_before).filter(|&all| all > 0)?;
            Some(stolen.saturating_sub(stolen_before) as f64 / all as f64)
        });
        (waiting.is_some() || stolen.is_some()).then_some(Contention {
            waiting,
            stolen,
            preemptions: None,
        })
    }
}

/// The total of the line `some avg10=… total=microseconds`.
fn some_total(text: &str) -> Option<Nanos> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let (_, total) = line.rsplit_once("total=")?;
    Some(Nanos(
        total.trim().parse::<u64>().ok()?.saturating_mul(1_000),
    ))
}

/// The eighth number of the first line, and the sum of the first eight: guests count as user.
fn stolen_ticks(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .take(8)
        .collect();
    (ticks.len() == 8).then(|| (ticks[7], ticks.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_between_two_moments_become_shares() {
        let folder = tempfile::tempdir().unwrap();
        let root = ProcRoot::at(folder.path());
        assert_eq!(
            root.contention().since(&root.contention(), Nanos::SECOND),
            None
        );
        std::fs::create_dir(folder.path().join("pressure")).unwrap();
        let at = |waited: u64, stolen: u64, idle: u64| {
            let pressure = format!("some avg10=1.00 avg60=0.00 avg300=0.00 total={waited}\n");
            std::fs::write(folder.path().join("pressure/cpu"), pressure).unwrap();
            let stat = format!("cpu  10 0 0 {idle} 0 0 0 {stolen} 5 0\ncpu0 1 2 3\n");
            std::fs::write(folder.path().join("stat"), stat).unwrap();
            root.contention()
        };
        let (before, after) = (at(1_000, 4, 100), at(501_000, 14, 190));
        let found = after.since(&before, Nanos::SECOND).unwrap();
        assert_eq!((found.waiting, found.stolen), (Some(0.5), Some(0.1)));
    }
}
