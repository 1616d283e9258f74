//! Controllers that make no decisions.

use super::{Action, Controller, Observation, Order, Reason, Victims};

/// A fixed number of huge pages.
#[derive(Clone, Debug)]
pub struct Fixed {
    name: &'static str,
    huge: u64,
    victims: Victims,
}

impl Fixed {
    /// As many huge pages as memory can contain.
    #[must_use]
    pub fn always() -> Self {
        Self::new("always", u64::MAX, Victims::Random)
    }

    /// No huge pages.
    #[must_use]
    pub fn never() -> Self {
        Self::new("never", 0, Victims::Random)
    }

    /// The number found best in advance, by trying all.
    #[must_use]
    pub fn oracle(huge: u64, victims: Victims) -> Self {
        Self::new("oracle", huge, victims)
    }

    fn new(name: &'static str, huge: u64, victims: Victims) -> Self {
        Self {
            name,
            huge,
            victims,
        }
    }
}

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn victims(&self) -> Victims {
        self.victims
    }

    fn decide(&mut self, seen: &Observation) -> Order {
        let huge = self.huge.min(seen.pages.possible);
        let action = if seen.pages.huge == huge {
            Action::Hold
        } else {
            Action::Reach(huge)
        };
        Order {
            count_huge: false,
            action,
            reason: Reason::Fixed,
        }
    }
}
