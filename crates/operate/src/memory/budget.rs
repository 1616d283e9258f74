//! When a look at a running tree is worth what it takes.

use pagewise_linux::proc::ProcRoot;
use std::thread;
use std::time::Duration;

/// A look is of the peak, as far as is known, if so much more is resident than any look saw, or if growth
/// has stopped: it changed by less than this part (1 in so many) since the last reading.
const TIMES_MORE: u64 = 2;
const STEADY: u64 = 256;

/// CPU time for looks.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// For looks in all: so much, and a part of the time so far (1 in so many).
    pub usual: (Duration, u32),
    /// Kept for looks at the peak.
    pub reserve: Duration,
    /// All of it is so many times as much where a CPU is idle, which takes none from the program.
    pub where_idle: u32,
}

/// What was spent, and what the next look would take.
pub struct Budget {
    allowance: Allowance,
    spent: Duration,
    /// Nanoseconds for each MiB beyond the last look.
    nanos_per_mib: u64,
    /// Size in MiB and cost of the last look.
    last: (u64, Duration),
    /// Resident size at the last reading.
    before: u64,
}

impl Budget {
    /// Nothing is spent yet; the first look is expected to take so long for each MiB.
    pub fn new(allowance: Allowance, nanos_per_mib: u64) -> Self {
        Self {
            allowance,
            spent: Duration::ZERO,
            nanos_per_mib,
            last: (0, Duration::ZERO),
            before: 0,
        }
    }

    /// Whether a look is affordable now that so much is resident; the largest look so far saw `seen`.
    pub fn covers(
        &mut self,
        resident: u64,
        seen: u64,
        elapsed: Duration,
        has_idle_cpu: impl Fn() -> bool,
    ) -> bool {
        let is_steady = resident.abs_diff(self.before) <= resident / STEADY;
        self.before = resident;
        let is_of_peak = resident >= seen * TIMES_MORE || (resident > seen && is_steady);
        let reserve = match is_of_peak {
            true => self.allowance.reserve,
            false => Duration::ZERO,
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
        reserve: Duration::from_millis(150),
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
            let is_covered = budget.covers(resident, seen, 20 * MS * step, || is_idle);
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
