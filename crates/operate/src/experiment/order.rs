//! The order of runs within a round.

use pagewise_stats::Random;

/// Shuffles each round except the second, which runs the first backwards: within two rounds each
/// arm has run before the baseline and after it, so that a command that is fast in every other run
/// does not look like an improvement.
#[derive(Debug)]
pub(super) struct Order {
    random: Random,
    first: Vec<usize>,
}

impl Order {
    pub(super) fn seeded(seed: u64) -> Self {
        Self {
            random: Random::seeded(seed),
            first: Vec::new(),
        }
    }

    /// The order of the round after `rounds` complete ones.
    pub(super) fn next(&mut self, rounds: usize, arms: Vec<usize>) -> Vec<usize> {
        let mut order = arms;
        if rounds == 1 && order.iter().all(|at| self.first.contains(at)) {
            let backwards = self.first.iter().rev().copied();
            return backwards.filter(|at| order.contains(at)).collect();
        }
        self.random.shuffle(&mut order);
        if rounds == 0 {
            self.first.clone_from(&order);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_round_reverses_the_first() {
        let mut kinds = Vec::new();
        for seed in 0..300 {
            let mut order = Order::seeded(seed);
            let first = order.next(0, vec![0, 1, 2]);
            let second = order.next(1, vec![0, 2]);
            let kept: Vec<usize> = first.iter().rev().copied().filter(|at| *at != 1).collect();
            assert_eq!(second, kept);
            let mut third = order.next(2, vec![0, 2]);
            kinds.push((first, third.clone()));
            third.sort_unstable();
            assert_eq!(third, [0, 2]);
            let mut with_another = order.next(1, vec![0, 3]);
            with_another.sort_unstable();
            assert_eq!(with_another, [0, 3]);
        }
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), 12, "each of 6 orders with each of 2");
    }
}
