//! Keeps units that record all the time, not in turns, within a share of the time.

use pagewise_model::units::Nanos;

/// Watches the cost of one unit and decides when it must pause. Pure: time and cost are passed in.
///
/// A pause lasts until the budget has caught up and has a fresh reserve, so that each period of
/// recording has a useful length.
#[derive(Debug)]
pub(super) struct Governor {
    /// Budget in millionths of the elapsed time.
    share_ppm: u64,
    began: Nanos,
    spent: Nanos,
    /// Since when the unit has been on; `None` while paused.
    on_since: Option<Nanos>,
    windows: Vec<(Nanos, Nanos)>,
}

/// What to switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pause,
    Resume,
}

/// This much time's budget may be spent in advance, so that short programs are recorded in full.
const HEAD_START_PER_PPM: u64 = 1_000_000_000 / 1_000_000;
/// Reserve to build up before recording resumes.
const RESERVE: Nanos = Nanos(2_000_000);

impl Governor {
    pub fn new(share_ppm: u64, now: Nanos) -> Self {
        Self {
            share_ppm,
            began: now,
            spent: Nanos(0),
            on_since: Some(now),
            windows: Vec::new(),
        }
    }

    /// Adds the cost of the unit's records to the program.
    pub fn spend(&mut self, cost: Nanos) {
        self.spent += cost;
    }

    /// The switch due at `now`.
    pub fn verdict(&self, now: Nanos) -> Option<Verdict> {
        let budget = self.budget(now);
        match self.on_since {
            Some(_) if self.spent > budget + self.head_start() => Some(Verdict::Pause),
            None if self.spent + RESERVE <= budget + self.head_start() => Some(Verdict::Resume),
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

    /// When the unit may next resume; `None` while it is on.
    pub fn resumes_at(&self) -> Option<Nanos> {
        if self.on_since.is_some() {
            return None;
        }
        let missing = (self.spent + RESERVE) - self.head_start();
        let wait = missing.0.saturating_mul(1_000_000) / self.share_ppm;
        Some(self.began + Nanos(wait))
    }

    /// The times during which the unit was on without a gap, the last one ending at `now`.
    pub fn finish(mut self, now: Nanos) -> Vec<(Nanos, Nanos)> {
        self.paused(now);
        self.windows
    }

    /// The first second's budget.
    fn head_start(&self) -> Nanos {
        Nanos(self.share_ppm.saturating_mul(HEAD_START_PER_PPM))
    }

    fn budget(&self, now: Nanos) -> Nanos {
        let elapsed = u128::from((now - self.began).0);
        let budget = elapsed * u128::from(self.share_ppm) / 1_000_000;
        Nanos(u64::try_from(budget).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cheap_unit_is_never_paused() {
        let mut governor = Governor::new(10_000, Nanos(5));
        for second in 1..60 {
            governor.spend(Nanos(9_000_000));
            assert_eq!(governor.verdict(Nanos(5 + second * 1_000_000_000)), None);
        }
        assert_eq!(governor.finish(Nanos(99)), [(Nanos(5), Nanos(99))]);
    }

    #[test]
    fn a_costly_unit_stays_within_its_share() {
        let mut governor = Governor::new(10_000, Nanos(0));
        let (mut on, mut total) = (true, 0);
        // While on, it costs half of the time. One step is 100 µs; 10 s in all.
        for step in 1..=100_000_u64 {
            let now = Nanos(step * 100_000);
            if on {
                governor.spend(Nanos(50_000));
                total += 50_000;
            }
            match governor.verdict(now) {
                Some(Verdict::Pause) => {
                    governor.paused(now);
                    on = false;
                }
                Some(Verdict::Resume) => {
                    assert!(governor.resumes_at().unwrap() <= now);
                    governor.resumed(now);
                    on = true;
                }
                None => {}
            }
        }
        // 1 % of 10 s, the head start and one step's overshoot.
        assert!((90_000_000..=110_100_000).contains(&total), "{total}");
        let windows = governor.finish(Nanos(10_000_000_000));
        assert!(windows.len() > 10);
        assert!(windows.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
