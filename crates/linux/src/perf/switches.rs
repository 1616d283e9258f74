//! Context switches of the observed threads, for what timers of threads cost at each of them.

use crate::proc::ProcRoot;
use pagewise_model::units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// What setting and cancelling a thread's timer costs at a context switch (`bench/overhead/doctor
/// switches --user 54321`: 240,000 switches took 0.17 s more).
const EACH: Nanos = Nanos(700);
/// Most threads that are read at a time; they stand for the others.
const MOST: usize = 64;
/// Time between two readings.
const INTERVAL: Nanos = Nanos(20_000_000);

/// The counts so far.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// How often each thread had come onto a CPU.
    seen: BTreeMap<i32, u64>,
    read_at: Nanos,
}

impl Switches {
    /// What switches of `threads` have cost since the reading before, if it is time for one.
    pub fn cost(&mut self, proc: &ProcRoot, threads: &BTreeSet<i32>, now: Nanos) -> Nanos {
        if now - self.read_at < INTERVAL {
            return Nanos(0);
        }
        self.read_at = now;
        let step = threads.len().div_ceil(MOST).max(1);
        let read = threads.iter().step_by(step);
        let found: BTreeMap<i32, u64> = read
            .filter_map(|&tid| Some((tid, proc.scheduled(tid, tid)?.turns)))
            .collect();
        let new = |(tid, turns): (&i32, &u64)| turns - self.seen.get(tid).unwrap_or(&0).min(turns);
        let switches: u64 = found.iter().map(new).sum();
        self.seen = found;
        Nanos(switches * step as u64 * EACH.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn switches_of_many_threads_are_estimated_from_some() {
        let root = tempfile::tempdir().unwrap();
        let counted = |tid: i32, turns: u64| {
            let folder = root.path().join(format!("{tid}/task/{tid}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("schedstat"), format!("5 6 {turns}\n")).unwrap();
        };
        let proc = ProcRoot::at(root.path());
        let one = BTreeSet::from([7, 8]);
        let mut switches = Switches::default();
        counted(7, 100);
        let second = |n: u64| Nanos(n * 1_000_000_000);
        assert_eq!(switches.cost(&proc, &one, second(1)), Nanos(100 * EACH.0));
        counted(7, 140);
        assert_eq!(switches.cost(&proc, &one, second(1)), Nanos(0), "too soon");
        assert_eq!(switches.cost(&proc, &one, second(2)), Nanos(40 * EACH.0));
        let many: BTreeSet<i32> = (1000..1640).collect();
        many.iter().for_each(|&tid| counted(tid, 10));
        let cost = Switches::default().cost(&proc, &many, second(3));
        assert_eq!(cost, Nanos(6400 * EACH.0));
    }
}
