//! How densely faults are sampled: one of a few fixed periods, chosen by the rate of faults.
//!
//! The kernel's own frequency mode is not used. For software events it overshoots wildly when
//! faults come in a storm, and reports periods that were not counted whenever a thread is switched
//! in (`perf_swevent_add` takes the newest period, kernel/events/core.c of Linux 6.18): one sample
//! stood for 418,923 faults where some 20,000 had happened. Samples of a fixed period all stand
//! for the same number of faults, exactly.

use pagewise_model::units::Nanos;

/// Periods in faults. Primes, so as not to stay in step with blocks of 2^n pages. The first records
/// each fault, so that programs of a few milliseconds are recorded in full.
pub(super) const PERIODS: [u64; 5] = [1, 7, 61, 499, 4_001];

/// Once the rate of faults is known, no rung below this is chosen: at the start of a storm each
/// fault would be recorded until the recorder has noticed, which overruns any ring when the machine
/// is busy.
const LOWEST: usize = 1;
/// From this rung on, samples carry a copy of the stack: below it, faults are rare or about to
/// become frequent, and copies would fill the ring.
pub(super) const COPIES: u8 = 2;
/// From this rung on, faults come in a storm: they are sampled in windows, with rests in between.
pub(super) const STORM: usize = 3;
/// A turn with its rest is this many times as long as the turn alone.
const WINDOW_PART: u64 = 6;

/// A choice is based on this many samples or this much time, whichever comes first.
const ENOUGH_SAMPLES: u64 = 256;
const ENOUGH_TIME: Nanos = Nanos(80_000_000);

/// Chooses the period. Pure: samples and time are passed in.
#[derive(Debug)]
pub(super) struct Ladder {
    /// Wanted samples per second.
    frequency: u64,
    rung: usize,
    since: Nanos,
    /// Time of observation before `since`.
    before: Nanos,
    samples: u64,
}

impl Ladder {
    /// Starts at `now` by recording each fault.
    pub fn new(frequency: u64, now: Nanos) -> Self {
        Self {
            frequency: frequency.max(1),
            rung: 0,
            since: now,
            before: Nanos(0),
            samples: 0,
        }
    }

    /// Position in [`PERIODS`].
    pub fn rung(&self) -> u8 {
        u8::try_from(self.rung).unwrap_or(0)
    }

    /// Whether faults come so fast that the source must rest.
    pub fn is_storm(&self) -> bool {
        self.rung >= STORM
    }

    /// Takes note of samples at the present rung; returns the rung to change to, if any.
    pub fn observe(&mut self, samples: u64, now: Nanos) -> Option<u8> {
        self.samples += samples;
        let elapsed = self.before + (now - self.since);
        if self.samples < ENOUGH_SAMPLES && elapsed < ENOUGH_TIME {
            return None;
        }
        // A program's first faults come faster than later ones: they indicate a storm at most.
        let highest = if self.rung == 0 { STORM } else { PERIODS.len() };
        let wanted = self.wanted_rung(elapsed).clamp(LOWEST, highest);
        self.restart(now);
        (wanted != self.rung).then(|| {
            self.rung = wanted;
            self.rung()
        })
    }

    /// Sampling is off from `now` on.
    pub fn hold(&mut self, now: Nanos) {
        self.before += now - self.since;
        self.since = now;
    }

    /// Sampling is on again.
    pub fn resume(&mut self, now: Nanos) {
        self.since = now;
    }

    fn restart(&mut self, now: Nanos) {
        self.since = now;
        self.before = Nanos(0);
        self.samples = 0;
    }

    /// The densest rung that keeps to the frequency. Rungs are a factor of eight apart, so a
    /// little above the frequency is better than far below it.
    fn wanted_rung(&self, elapsed: Nanos) -> usize {
        let faults = u128::from(self.samples) * u128::from(PERIODS[self.rung]);
        let rate = faults * 1_000_000_000 / u128::from(elapsed.0.max(1));
        let fitting = PERIODS
            .iter()
            .enumerate()
            .position(|(rung, &period)| rate / u128::from(period) <= self.tolerated(rung));
        fitting.unwrap_or(PERIODS.len() - 1)
    }
}

impl Ladder {
    /// Samples per second that a rung may give while it is on.
    fn tolerated(&self, rung: usize) -> u128 {
        let part = if rung >= STORM { WINDOW_PART } else { 1 };
        u128::from(self.frequency.saturating_mul(2).saturating_mul(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a program with `rate` faults per second, observed each `step` ms.
    fn settle(ladder: &mut Ladder, rate: u64, from: Nanos, seconds: u64) -> Nanos {
        let mut now = from;
        for _ in 0..seconds * 100 {
            now += Nanos(10_000_000);
            let faults = rate / 100;
            ladder.observe(faults / PERIODS[ladder.rung], now);
        }
        now
    }

    #[test]
    fn storms_are_sampled_sparsely_and_drizzle_densely() {
        let mut ladder = Ladder::new(997, Nanos(0));
        let now = settle(&mut ladder, 600_000, Nanos(0), 1);
        assert_eq!(PERIODS[ladder.rung], 499);
        let now = settle(&mut ladder, 20_000, now, 1);
        assert_eq!(PERIODS[ladder.rung], 61);
        settle(&mut ladder, 900, now, 1);
        assert_eq!(PERIODS[ladder.rung], 7);
    }

    #[test]
    fn a_storm_is_noticed_after_a_few_hundred_samples() {
        let mut ladder = Ladder::new(997, Nanos(0));
        assert_eq!(ladder.observe(255, Nanos(400_000)), None);
        assert_eq!(ladder.observe(1, Nanos(410_000)), Some(3));
    }
}
