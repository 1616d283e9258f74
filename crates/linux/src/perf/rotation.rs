//! Decides which of the fault sources is on: they take turns.

use super::role::{Role, Slot};
use pagewise_model::units::Nanos;

/// Turns one after the other. Pure: time is passed in, the switch to make is returned.
#[derive(Debug)]
pub(super) struct Rotation {
    cycle: Vec<Slot>,
    /// Position in the cycle; `None` during the opening slot.
    at: Option<usize>,
    until: Nanos,
    /// Cost of this cycle's rare slots to the program so far.
    spent: Nanos,
    stretch_to: Nanos,
    state: u64,
}

/// Rare slots may cost a hundredth of the time: the last slot of a cycle is extended until they do.
const COST_SHARE: u64 = 100;

impl Rotation {
    /// Starts at `now` with `opening`. `None` if there is nothing to take turns with.
    pub fn new(opening: Option<Slot>, cycle: Vec<Slot>, now: Nanos) -> Option<Self> {
        let opening = opening?;
        (!cycle.is_empty()).then(|| Self {
            cycle,
            at: None,
            until: now + opening.length,
            spent: Nanos(0),
            stretch_to: Nanos(0),
            state: now.0 | 1,
        })
    }

    /// When the present turn ends.
    pub fn until(&self) -> Nanos {
        self.until
    }

    /// Adds the cost of a rare slot, or of switching itself, to the program.
    pub fn spend(&mut self, cost: Nanos) {
        self.spent += cost;
    }

    /// The role whose turn starts, if one is due at `now`.
    pub fn due(&mut self, now: Nanos) -> Option<Role> {
        if now < self.until {
            return None;
        }
        let next = self.at.map_or(0, |at| (at + 1) % self.cycle.len());
        let slot = self.cycle[next];
        if next == 0 {
            self.spent = Nanos(0);
        }
        let is_last = next + 1 == self.cycle.len();
        if is_last {
            self.stretch_to = Nanos(self.spent.0.saturating_mul(COST_SHARE));
        }
        let base = if is_last {
            slot.length.max(self.stretch_to)
        } else {
            slot.length
        };
        self.until = now + self.varied(base);
        self.at = Some(next);
        Some(slot.role)
    }

    /// `length` plus or minus up to a quarter, so that turns do not stay in step with the program.
    /// xorshift64 (Marsaglia 2003) suffices: only the lack of a rhythm matters.
    fn varied(&mut self, length: Nanos) -> Nanos {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        Nanos(length.0 - length.0 / 4 + self.state % (length.0 / 2 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn slot(role: Role, ms: u64) -> Slot {
        Slot::new(role, Duration::from_millis(ms))
    }

    fn rotation() -> Rotation {
        let cycle = vec![slot(Role::Paired, 7), slot(Role::Sampled(0), 400)];
        Rotation::new(Some(slot(Role::Sampled(0), 2)), cycle, Nanos(1_000)).unwrap()
    }

    #[test]
    fn turns_follow_each_other() {
        let mut rotation = rotation();
        assert_eq!(rotation.due(Nanos(1_001)), None);
        let mut now = rotation.until();
        let mut order = Vec::new();
        for _ in 0..4 {
            order.extend(rotation.due(now));
            now = rotation.until();
        }
        assert_eq!(
            order,
            [
                Role::Paired,
                Role::Sampled(0),
                Role::Paired,
                Role::Sampled(0)
            ]
        );
    }

    #[test]
    fn a_costly_window_prolongs_the_pause_after_it() {
        let mut rotation = rotation();
        let window = rotation.until();
        rotation.due(window);
        rotation.spend(Nanos(20_000_000));
        let end = rotation.until();
        rotation.due(end);
        let pause = rotation.until() - end;
        // 20 ms at a hundredth is 2 s, plus or minus a quarter.
        assert!(
            (1_500_000_000..=2_500_000_000).contains(&pause.0),
            "{pause}"
        );
    }

    #[test]
    fn lengths_vary_around_the_plan() {
        let mut rotation = rotation();
        let lengths: Vec<u64> = (0..100).map(|_| rotation.varied(Nanos(1_000)).0).collect();
        assert!(lengths.iter().all(|length| (750..=1_250).contains(length)));
        assert!(lengths.iter().any(|length| *length < 900));
        assert!(lengths.iter().any(|length| *length > 1_100));
    }
}
