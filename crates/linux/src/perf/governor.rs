//! Keeps units that record all the time, not in turns, within a share of a time that passes: of the clock,
//! or of the program's CPU time.

use pagewise_model::units::Nanos;

/// Watches the cost of one unit and decides when it must pause. Pure: times and cost are passed in, the
/// windows in those of the clock, everything else in those of which it has a share.
///
/// A pause lasts until the budget has caught up and has a fresh reserve, so that each period of
/// recording has a useful length.
#[derive(Debug)]
pub(super) struct Governor {
    /// Budget in millionths of the time that passed.
    share_ppm: u64,
    /// What may be spent in advance, so that short programs are recorded in full.
    head_start: Nanos,
    began: Nanos,
    spent: Nanos,
    /// Since when the unit has been on; `None` while paused.
    on_since: Option<Nanos>,
    windows: Vec<(Nanos, Nanos)>,
}

/// What a unit may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub share_ppm: u64,
    pub head_start: Nanos,
}

/// What to switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pause,
    Resume,
}

/// Reserve to build up before recording resumes.
const RESERVE: Nanos = Nanos(2_000_000);

impl Governor {
    /// A unit that is on since `now`, when the time of which it has a share is `passed`.
    pub fn new(bound: Bound, now: Nanos, passed: Nanos) -> Self {
        Self {
            share_ppm: bound.share_ppm,
            head_start: bound.head_start,
            began: passed,
            spent: Nanos(0),
            on_since: Some(now),
            windows: Vec::new(),
        }
    }

    /// Adds the cost of the unit's records to the program.
    pub fn spend(&mut self, cost: Nanos) {
        self.spent += cost;
    }

    /// The switch due when this much time has `passed`.
    pub fn verdict(&self, passed: Nanos) -> Option<Verdict> {
        let budget = self.budget(passed) + self.head_start;
        match self.on_since {
            Some(_) if self.spent > budget => Some(Verdict::Pause),
            None if self.spent + RESERVE <= budget => Some(Verdict::Resume),
            _ => None,
        }
    }

    /// Notes that the unit was switched off at `now`.
    pub fn paused(&mut self, now: Nanos) {
        if let Some(since) = self.on_since.take() {
            self.windows.push((since, now));
        }
    }

    /// Notes that the unit was switched on at `now`.
    pub fn resumed(&mut self, now: Nanos) {
        self.on_since = Some(now);
    }

    /// Whether the unit is on.
    pub fn is_on(&self) -> bool {
        self.on_since.is_some()
    }

    /// How much time must still pass until the unit may resume; `None` while it is on.
    pub fn resumes_in(&self, passed: Nanos) -> Option<Nanos> {
        if self.is_on() {
            return None;
        }
        let missing = (self.spent + RESERVE) - self.head_start;
        let wait = missing.0.saturating_mul(1_000_000) / self.share_ppm;
        Some((self.began + Nanos(wait)) - passed)
    }

    /// The times during which the unit was on without a gap, the last one ending at `now`.
    pub fn finish(mut self, now: Nanos) -> Vec<(Nanos, Nanos)> {
        self.paused(now);
        self.windows
    }

    fn budget(&self, passed: Nanos) -> Nanos {
        let passed = u128::from((passed - self.began).0);
        let budget = passed * u128::from(self.share_ppm) / 1_000_000;
        Nanos(u64::try_from(budget).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound = Bound {
        share_ppm: 10_000,
        head_start: Nanos(10_000_000),
    };

    #[test]
    fn a_cheap_unit_is_never_paused() {
        let mut governor = Governor::new(BOUND, Nanos(5), Nanos(0));
        for second in 1..60 {
            governor.spend(Nanos(9_000_000));
            assert_eq!(governor.verdict(Nanos(second * 1_000_000_000)), None);
        }
        assert_eq!(governor.finish(Nanos(99)), [(Nanos(5), Nanos(99))]);
    }

    /// What a unit costs that takes half of the program's time while it is on, and its windows: ten
    /// seconds, in which the program runs one step of 100 µs in `every`.
    fn costs(every: u64) -> (u64, usize) {
        let mut governor = Governor::new(BOUND, Nanos(0), Nanos(0));
        let mut total = 0;
        for step in 1..=100_000_u64 {
            let now = Nanos(step * 100_000);
            let passed = Nanos(step / every * 100_000);
            if governor.is_on() && step % every == 0 {
                governor.spend(Nanos(50_000));
                total += 50_000;
            }
            match governor.verdict(passed) {
                Some(Verdict::Pause) => governor.paused(now),
                Some(Verdict::Resume) => {
                    assert_eq!(governor.resumes_in(passed), Some(Nanos(0)));
                    governor.resumed(now);
                }
                None => {}
            }
        }
        let windows = governor.finish(Nanos(10_000_000_000));
        assert!(windows.windows(2).all(|pair| pair[0].1 < pair[1].0));
        (total, windows.len())
    }

    #[test]
    fn a_costly_unit_stays_within_its_share_of_the_time_that_passes() {
        // 1 % of the time in which the program runs, the head start and one step's overshoot.
        let (total, windows) = costs(1);
        assert!((90_000_000..=110_100_000).contains(&total), "{total}");
        assert!(windows > 10);
        let (total, windows) = costs(4);
        assert!((30_000_000..=35_100_000).contains(&total), "{total}");
        assert!(windows > 5);
    }
}
