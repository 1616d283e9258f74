//! How the budget of a run is divided among its processes: pure calculation.
//!
//! Memory that cannot be managed is subtracted first. Of the rest, each process keeps what it uses;
//! what is unused goes to those that evict, in proportion to the pages they read back. When
//! everything is in use, at each step a little of the share of the process that reads back least
//! moves to the one that reads back most.

/// The least share of a process that evicts: this fraction of the budget, and at least this many
/// bytes.
const LEAST: (u64, u64) = (64, 1 << 20);
/// Bytes by which an idle process may grow until the next step.
const IDLE_GROWTH: u64 = 256 << 10;
/// The fraction of the budget that moves from one process to another in a step.
const STEP: u64 = 32;
/// A share moves if one process reads back this many times as many pages as the other,
const CONTRAST: f64 = 2.0;
/// and this many more pages per second.
const LEAST_RATE: f64 = 64.0;

/// The state of a process at a step. All sizes in bytes; shared pages are divided among their
/// users.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Member {
    /// Resident.
    pub resident: u64,
    /// Of that, memory that cannot be managed.
    pub fixed: u64,
    /// Its share at the last step, without memory that cannot be managed.
    pub share: u64,
    /// Pages that it reads back per second.
    pub refaults: f64,
    /// Whether it has evicted since the last step, so that it can use more memory.
    pub is_short: bool,
}

impl Member {
    fn movable(&self) -> u64 {
        self.resident.saturating_sub(self.fixed)
    }
}

/// The resident memory allowed for each of `members`, without memory that cannot be managed:
/// together the rest of `budget`, but for each at least what it needs to run at all.
#[must_use]
pub fn divide(budget: u64, members: &[Member]) -> Vec<u64> {
    let fixed: u64 = members.iter().map(|one| one.fixed).sum();
    let pool = budget.saturating_sub(fixed);
    let least = least(budget);
    let mut shares: Vec<u64> = members.iter().map(|one| kept(one, least)).collect();
    let used: u64 = shares.iter().sum();
    match pool.checked_sub(used) {
        Some(spare) => hand_out(spare, members, &mut shares),
        None => cut(used - pool, least, &mut shares),
    }
    move_one_step(pool / STEP, least, members, &mut shares);
    shares
}

/// The least share of a process that evicts.
#[must_use]
pub fn least(budget: u64) -> u64 {
    (budget / LEAST.0).max(LEAST.1)
}

/// The part of its former share that a process keeps: all of it while it evicts, otherwise what it
/// uses plus a little.
fn kept(one: &Member, least: u64) -> u64 {
    let movable = one.movable();
    match one.is_short {
        true => one.share.max(least),
        false => one.share.min(movable + movable / 8 + IDLE_GROWTH),
    }
}

/// Gives `spare` bytes to the processes that evict, by the pages they read back; if none evicts, to
/// all, by their sizes, so that growing ones need not wait.
fn hand_out(spare: u64, members: &[Member], shares: &mut [u64]) {
    let any_short = members.iter().any(|one| one.is_short);
    let weight = |one: &Member| match (any_short, one.is_short) {
        (true, true) => one.refaults + LEAST_RATE,
        (true, false) => 0.0,
        (false, _) => (one.movable() + IDLE_GROWTH) as f64,
    };
    let sum: f64 = members.iter().map(weight).sum();
    for (one, share) in members.iter().zip(shares) {
        *share += part(spare, weight(one) / sum);
    }
}

/// Takes `excess` bytes away, in proportion to each share beyond the least one.
fn cut(excess: u64, least: u64, shares: &mut [u64]) {
    let free = |share: u64| share.saturating_sub(least);
    let sum: u64 = shares.iter().map(|share| free(*share)).sum();
    if sum == 0 {
        return;
    }
    let ratio = (excess as f64 / sum as f64).min(1.0);
    for share in shares {
        *share -= part(free(*share), ratio);
    }
}

/// Moves `step` bytes from the process that reads back least to the one that reads back most, if
/// they differ enough.
fn move_one_step(step: u64, least: u64, members: &[Member], shares: &mut [u64]) {
    let rates = || members.iter().map(|one| one.refaults).enumerate();
    let most = rates().max_by(|a, b| a.1.total_cmp(&b.1));
    let richest = |(place, rate): &(usize, f64)| (*rate, std::cmp::Reverse(shares[*place]));
    let donors = rates().filter(|(place, _)| shares[*place] > least);
    let fewest = donors.min_by(|a, b| {
        let (a, b) = (richest(a), richest(b));
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    });
    if let (Some((to, high)), Some((from, low))) = (most, fewest)
        && from != to
        && high > CONTRAST * low + LEAST_RATE
    {
        let moved = step.min(shares[from] - least);
        shares[from] -= moved;
        shares[to] += moved;
    }
}

/// The resident memory allowed for each right now: its `wanted` bytes, but growth is limited to
/// what the others have really given up, so that the sum stays within `budget`.
#[must_use]
pub fn grant(budget: u64, members: &[Member], wanted: &[u64]) -> Vec<u64> {
    let resident: u64 = members.iter().map(|one| one.resident).sum();
    let slack = budget.saturating_sub(resident);
    let totals = || {
        members
            .iter()
            .zip(wanted)
            .map(|(one, share)| (one, one.fixed + share))
    };
    let growth: u64 = totals()
        .map(|(one, total)| total.saturating_sub(one.resident))
        .sum();
    let ratio = match growth {
        0 => 0.0,
        growth => (slack as f64 / growth as f64).min(1.0),
    };
    let granted = totals().map(|(one, total)| match total.checked_sub(one.resident) {
        Some(grown) => one.resident + part(grown, ratio),
        None => total,
    });
    granted.collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of a whole is between 0 and the whole"
)]
fn part(whole: u64, share: f64) -> u64 {
    ((whole as f64 * share) as u64).min(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn member(resident: u64, share: u64, refaults: f64) -> Member {
        Member {
            resident: (resident + 2) * MIB,
            fixed: 2 * MIB,
            share: share * MIB,
            refaults,
            is_short: refaults > 0.0,
        }
    }

    /// Their shares after `looks` steps, each as large as its share.
    fn after(looks: usize, budget: u64, members: &[Member]) -> Vec<u64> {
        let mut members = members.to_vec();
        for _ in 0..looks {
            let shares = divide(budget, &members);
            for (one, share) in members.iter_mut().zip(&shares) {
                one.share = *share;
                if one.is_short {
                    one.resident = one.fixed + share;
                }
            }
        }
        members.iter().map(|one| one.share / MIB).collect()
    }

    #[test]
    fn one_process_has_all() {
        let budget = 100 * MIB;
        for one in [member(0, 98, 0.0), member(50, 60, 0.0), member(98, 98, 9e4)] {
            let wanted = divide(budget, &[one]);
            let total = grant(budget, &[one], &wanted)[0];
            assert!(budget - total <= 1, "{total}");
        }
    }

    #[test]
    fn what_nobody_uses_goes_to_who_evicts() {
        let shares = after(1, 100 * MIB, &[member(1, 60, 0.0), member(36, 36, 1000.0)]);
        assert!(shares[0] <= 2 && shares[1] >= 93, "{shares:?}");
    }

    #[test]
    fn shares_move_to_who_reads_back_most() {
        let alike = [member(50, 48, 900.0), member(50, 48, 1000.0)];
        assert_eq!(after(50, 100 * MIB, &alike), [48, 48]);
        let apart = [member(50, 48, 100.0), member(50, 48, 1000.0)];
        let shares = after(5, 100 * MIB, &apart);
        assert!(
            (30..40).contains(&shares[0]) && shares[1] > 55,
            "{shares:?}"
        );
        let shares = after(100, 100 * MIB, &apart);
        assert!(shares[0] >= 1 && shares[1] > 90, "{shares:?}");
    }

    #[test]
    fn what_cannot_be_managed_is_taken_off_first() {
        let mut java = member(30, 96, 0.0);
        (java.resident, java.fixed) = (70 * MIB, 70 * MIB);
        let shares = divide(100 * MIB, &[java, member(60, 60, 500.0)]);
        assert!(shares.iter().sum::<u64>() <= 28 * MIB + 2);
        assert!(shares[1] > 26 * MIB, "{shares:?}");
    }

    #[test]
    fn nobody_grows_before_others_have_shrunk() {
        let budget = 100 * MIB;
        let members = [member(90, 90, 1.0), member(6, 20, 5000.0)];
        let wanted = [40 * MIB, 56 * MIB];
        let granted = grant(budget, &members, &wanted);
        assert_eq!(granted[0], 42 * MIB);
        assert_eq!(granted[1], members[1].resident, "there is no room yet");
        let shrunk = [member(40, 40, 1.0), members[1]];
        let granted = grant(budget, &shrunk, &wanted);
        assert!(granted.iter().sum::<u64>() <= budget && granted[1] > 57 * MIB);
    }

    #[test]
    fn too_little_for_all_leaves_each_the_least() {
        let crowd = [member(5, 5, 100.0); 20];
        let shares = divide(60 * MIB, &crowd);
        assert!(
            shares.iter().all(|share| *share == least(60 * MIB)),
            "{shares:?}"
        );
    }
}
