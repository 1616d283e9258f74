//! Limits of the controller: changes per second, and CPU time.

use pagewise_model::units::Nanos;
use std::time::{Duration, Instant};

/// Time over which the share of CPU time applies: unused time can be spent at once, up to this much
/// time's worth. A search for the best number of huge pages costs most at its start.
const HORIZON: Duration = Duration::from_secs(300);
/// Changes may come in bursts of this much time's worth.
const BURST: Duration = Duration::from_millis(250);

/// Limits as the user gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Changes per second.
    pub actions_per_second: f64,
    /// Share of one CPU, 0 to 1.
    pub cpu_share: f64,
}

/// An account that fills with time and empties with work.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Limits,
    filled_at: Instant,
    actions: f64,
    cpu_seconds: f64,
    /// Our CPU time that is already accounted for.
    seen_cpu: Nanos,
    spent: Nanos,
}

impl Budget {
    /// A full account. `cpu` is our CPU time so far.
    pub fn new(limits: Limits, now: Instant, cpu: Nanos) -> Self {
        Self {
            limits,
            filled_at: now,
            actions: limits.actions_per_second * BURST.as_secs_f64(),
            cpu_seconds: limits.cpu_share * HORIZON.as_secs_f64(),
            seen_cpu: cpu,
            spent: Nanos(0),
        }
    }

    /// Updates the account for the time and for our CPU time so far.
    pub fn update(&mut self, now: Instant, cpu: Nanos) {
        let elapsed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.filled_at = now;
        let most_actions = (self.limits.actions_per_second * BURST.as_secs_f64()).max(1.0);
        self.actions = (self.actions + elapsed * self.limits.actions_per_second).min(most_actions);
        let used = cpu - self.seen_cpu;
        self.seen_cpu = cpu;
        self.spent += used;
        let most_cpu = self.limits.cpu_share * HORIZON.as_secs_f64();
        self.cpu_seconds =
            (self.cpu_seconds + elapsed * self.limits.cpu_share - used.as_secs_f64()).min(most_cpu);
    }

    /// Takes one change from the account, if it has one.
    pub fn take_action(&mut self) -> bool {
        let affordable = self.actions >= 1.0 && self.cpu_seconds > 0.0;
        if affordable {
            self.actions -= 1.0;
        }
        affordable
    }

    /// Whether CPU time is left.
    pub fn has_cpu(&self) -> bool {
        self.cpu_seconds > 0.0
    }

    /// Whether little of the CPU time is left.
    pub fn is_low(&self) -> bool {
        self.filling() < 0.4
    }

    /// Whether half of the CPU time is available again.
    pub fn is_half_full(&self) -> bool {
        self.filling() > 0.5
    }

    fn filling(&self) -> f64 {
        self.cpu_seconds / (self.limits.cpu_share * HORIZON.as_secs_f64())
    }

    /// CPU time spent since the start.
    pub fn spent(&self) -> Nanos {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_bounded_and_cpu_time_is_owed() {
        let limits = Limits {
            actions_per_second: 100.0,
            cpu_share: 0.01,
        };
        let start = Instant::now();
        let mut budget = Budget::new(limits, start, Nanos(0));
        let burst = std::iter::repeat_with(|| budget.take_action());
        assert_eq!(burst.take_while(|&taken| taken).count(), 25);
        budget.update(start + Duration::from_millis(20), Nanos(0));
        assert!(budget.take_action() && budget.take_action() && !budget.take_action());
        // 3 s of CPU time are 1 % of 300 s; after 4 s have been used, nothing more is done for 100
        // s.
        budget.update(start + Duration::from_secs(1), Nanos(4_000_000_000));
        assert!(!budget.take_action() && !budget.has_cpu());
        budget.update(start + Duration::from_secs(105), Nanos(4_000_000_000));
        assert!(budget.take_action());
        assert_eq!(budget.spent(), Nanos(4_000_000_000));
    }
}
