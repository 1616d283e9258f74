//! When a look at a running tree is worth what it takes.

use pagewise_linux::proc::{ProcRoot, family};
use std::thread;
use std::time::Duration;

/// A look is of the peak, as far as is known, if so much more is resident than any look saw, or if growth
/// has stopped: it changed by less than this part (1 in so many) since the last reading.
const TIMES_MORE: u64 = 2;
const STEADY: u64 = 256;

/// Parts of the tree's own CPU time (1 in so many) that looks at the peak may take, within bounds: where
/// growth has stopped, and where it may go on.
const OF_ITS_TIME: (u32, u32) = (2, 8);

/// CPU time for looks.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// For looks in all: so much, and a part of the time so far (1 in so many).
    pub usual: (Duration, u32),
    /// Kept for looks at the peak: at least and at most, with the tree's own CPU time between them.
    pub reserve: (Duration, Duration),
    /// All of it is so many times as much where a CPU is idle, which takes none from the program.
    pub where_idle: u32,
}

/// A tree at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Resident memory, pages that it shares as often as they are mapped.
    pub resident: u64,
    /// CPU time so far, in steps of a clock tick.
    pub ran: Duration,
    /// Whether one of its processes runs, or would if it had a CPU.
    pub is_runnable: bool,
}

impl Now {
    /// The processes with `pid` and below it.
    pub fn read(proc: &ProcRoot, pid: i32) -> Self {
        let stats = family(proc, pid).into_iter();
        let stats = stats.filter_map(|one| proc.stat(one).ok().flatten());
        stats.fold(Self::default(), |sum, stat| {
            let times = [
                stat.user,
                stat.system,
                stat.children_user,
                stat.children_system,
            ];
            let ran = times
                .iter()
                .map(|time| Duration::from_nanos(time.0))
                .sum::<Duration>();
            Self {
                resident: sum.resident + stat.rss.0,
                ran: sum.ran + ran,
                is_runnable: sum.is_runnable || stat.state == 'R',
            }
        })
    }

    /// Whether nothing can have changed since `before`: it waits for a CPU.
    fn is_still(self, before: Self) -> bool {
        self.is_runnable && self.ran == before.ran
    }
}

/// What was spent, and what the next look would take.
pub struct Budget {
    allowance: Allowance,
    spent: Duration,
    /// Nanoseconds for each MiB beyond the last look.
    nanos_per_mib: u64,
    /// Size in MiB and cost of the last look.
    last: (u64, Duration),
    /// The last reading.
    before: Now,
}

impl Budget {
    /// Nothing is spent yet; the first look is expected to take so long for each MiB.
    pub fn new(allowance: Allowance, nanos_per_mib: u64) -> Self {
        Self {
            allowance,
            spent: Duration::ZERO,
            nanos_per_mib,
            last: (0, Duration::ZERO),
            before: Now::default(),
        }
    }

    /// Whether a look is affordable now; the largest look so far saw `seen`.
    pub fn covers(
        &mut self,
        now: Now,
        seen: u64,
        elapsed: Duration,
        has_idle_cpu: impl Fn() -> bool,
    ) -> bool {
        let resident = now.resident;
        // On a busy machine it seems steady whenever others run.
        let is_steady = !now.is_still(self.before)
            && resident.abs_diff(self.before.resident) <= resident / STEADY;
        self.before = now;
        let (stopped, grows) = OF_ITS_TIME;
        let (least, most) = self.allowance.reserve;
        let reserve = match () {
            () if resident > seen && is_steady => (now.ran / stopped).clamp(least, most),
            () if resident >= seen * TIMES_MORE => (now.ran / grows).clamp(least, most),
            () => Duration::ZERO,
        };
        let (fixed, part) = self.allowance.usual;
        let allowed = fixed + elapsed / part + reserve;
        let wanted = self.spent + self.expected(resident);
        wanted <= allowed || (wanted <= allowed * self.allowance.where_idle && has_idle_cpu())
    }

    /// What a look at so much is expected to take: as much as the last one, and the part that is new.
    fn expected(&self, resident: u64) -> Duration {
        let (size, cost) = self.last;
        let more = mib(resident).saturating_sub(size);
        cost + Duration::from_nanos(more.saturating_mul(self.nanos_per_mib))
    }

    /// A look at so much took so long.
    pub fn took(&mut self, resident: u64, cost: Duration) {
        self.spent += cost;
        let (size, before) = self.last;
        let more = mib(resident).saturating_sub(size);
        // Looks of about one size differ by chance.
        if size > 0 && more >= size / 2 {
            let nanos = cost.saturating_sub(before).as_nanos() / u128::from(more.max(1));
            self.nanos_per_mib = u64::try_from(nanos).unwrap_or(u64::MAX);
        }
        self.last = (mib(resident), cost);
    }
}

/// Whether a CPU has nothing to do but for the caller, and the recorder of the program's events now and then.
pub fn has_idle_cpu(proc: &ProcRoot) -> bool {
    const RECORDER: usize = 1;
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let runnable = proc.runnable();
    runnable.is_some_and(|threads| threads <= cpus + RECORDER)
}

fn mib(resident: u64) -> u64 {
    (resident >> 20).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const ALLOWANCE: Allowance = Allowance {
        usual: (Duration::from_millis(50), 100),
        reserve: (Duration::from_millis(150), Duration::from_secs(1)),
        where_idle: 8,
    };

    /// Sizes (MiB) that are looked at of those that are read each 20 ms. A look takes 20 ms, and so many
    /// microseconds for each MiB.
    fn looked_at(sizes: &[u64], micros: u64) -> Vec<u64> {
        looked_at_where(false, sizes, micros)
    }

    fn looked_at_where(is_idle: bool, sizes: &[u64], micros: u64) -> Vec<u64> {
        let mut budget = Budget::new(ALLOWANCE, 1 << 20);
        let (mut seen, mut found) = (0, Vec::new());
        for (&size, step) in sizes.iter().zip(1..) {
            let resident = size << 20;
            let now = Now {
                resident,
                ran: 10 * MS * step,
                is_runnable: true,
            };
            let is_covered = budget.covers(now, seen, 20 * MS * step, || is_idle);
            if resident > seen + seen / 20 && is_covered {
                budget.took(resident, 20 * MS + Duration::from_micros(micros * size));
                seen = resident;
                found.push(size);
            }
        }
        found
    }

    #[test]
    fn a_short_peak_after_steady_growth_is_looked_at() {
        let ramp = (1..=20).map(|step| step * 15);
        let peak = [300; 3];
        let after = [20; 20];
        let sizes: Vec<u64> = ramp.chain(peak).chain(after).collect();
        assert_eq!(looked_at(&sizes, 0).last(), Some(&300));
        assert_eq!(looked_at(&sizes, 100).last(), Some(&300));
    }

    #[test]
    fn growth_without_an_end_does_not_use_the_reserve_up() {
        let sizes: Vec<u64> = (1..=200).map(|step| step * 15).collect();
        let found = looked_at(&sizes, 0);
        // Usual looks at first, then at twice as much each.
        assert_eq!(found, [15, 30, 60, 120, 240, 480, 960, 1920]);
    }

    #[test]
    fn a_program_that_waits_for_a_cpu_is_not_at_its_peak() {
        let look = |is_runnable, ran: u32| {
            let mut budget = Budget::new(ALLOWANCE, 1 << 20);
            let now = |ran: u32, is_runnable| Now {
                resident: 60 << 20,
                ran: 10 * MS * ran,
                is_runnable,
            };
            budget.covers(now(9, true), 40 << 20, 100 * MS, || false);
            budget.covers(now(ran, is_runnable), 40 << 20, 120 * MS, || false)
        };
        assert!(!look(true, 9));
        // It works with what it has, or sleeps.
        assert!(look(true, 10) && look(false, 9));
    }

    #[test]
    fn where_growth_stops_longer_looks_are_worth_it() {
        let looks = |ran: u32| {
            let mut budget = Budget::new(ALLOWANCE, 1 << 20);
            [ran, ran + 10].map(|ran| {
                let now = Now {
                    resident: 400 << 20,
                    ran: ran * MS,
                    is_runnable: true,
                };
                budget.covers(now, 0, 1000 * MS, || false)
            })
        };
        assert_eq!(looks(600), [false, false]);
        assert_eq!(looks(1600), [false, true]);
    }

    #[test]
    fn an_idle_cpu_has_time_for_looks() {
        let sizes: Vec<u64> = (1..=20).map(|step| step * 16).collect();
        let last = |is_idle| looked_at_where(is_idle, &sizes, 1000).last().copied();
        assert_eq!(last(false), Some(64));
        assert!(last(true) >= Some(256), "{:?}", last(true));
    }

    #[test]
    fn a_look_that_would_take_too_long_is_not_begun() {
        assert_eq!(looked_at(&[16, 64, 64, 50_000, 50_000], 1000), [16, 64]);
    }
}
