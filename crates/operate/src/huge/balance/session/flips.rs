//! Base and huge pages in turn, in one running process: a paired comparison without a restart.

use super::Session;
use anyhow::Result;
use pagewise_answer::balance_verdict::{Pair, faster};
use pagewise_linux::hugepages::actuator::Change;
use pagewise_linux::process::interrupt;
use pagewise_simulate::balance::Victims;
use std::time::{Duration, Instant};

/// Least number of pairs, and the most where there is time for more. What the pairs show does not
/// decide how many there are: an interval would not hold then.
const FEWEST_PAIRS: u32 = 8;
const MOST_PAIRS: u32 = 64;
/// Time for each half of a pair, after the change.
const WINDOW: Duration = Duration::from_millis(500);
/// Time after a change in which nothing is measured, while caches and the TLB fill again.
const SETTLE: Duration = Duration::from_millis(50);
/// Time limit for a change of all slots.
const PATIENCE: Duration = Duration::from_secs(20);

/// Flips all changeable slots until `end`, eight times at least; a pair is dropped if a flip failed
/// or no work was seen.
///
/// # Errors
/// If a journal cannot be written.
pub fn run(session: &mut Session<'_>, end: Option<Instant>) -> Result<Vec<Pair>> {
    // The program may have grown since its maps were last read.
    session.population.refresh()?;
    let keep = session.population.summary().huge;
    let mut pairs = Vec::new();
    if session.population.possible() == 0 {
        return Ok(pairs);
    }
    let began = Instant::now();
    let mut planned = FEWEST_PAIRS;
    for pair in 0..MOST_PAIRS {
        if pair == 1 {
            planned = affordable(began, end);
        }
        if pair >= planned {
            break;
        }
        // Each order equally often.
        let huge_first = pair % 2 == 0;
        let first = half(session, huge_first)?;
        let second = half(session, !huge_first)?;
        let (Some(first), Some(second)) = (first, second) else {
            break;
        };
        pairs.push(match huge_first {
            true => (second, first),
            false => (first, second),
        });
    }
    // The better state stays; without a difference, the earlier one.
    let goal = match faster(&pairs) {
        Some(true) => session.population.possible(),
        Some(false) => 0,
        None => keep,
    };
    let change = match goal > session.population.summary().huge {
        true => Change::Collapse,
        false => Change::Split,
    };
    reach(session, change, goal)?;
    session.remember();
    Ok(pairs)
}

/// The number of pairs in the time left, if each takes as long as the first.
fn affordable(began: Instant, end: Option<Instant>) -> u32 {
    let pair = began.elapsed().max(WINDOW);
    let time = end.map_or(Duration::ZERO, |end| end.saturating_duration_since(began));
    let number = u32::try_from(time.as_millis() / pair.as_millis()).unwrap_or(MOST_PAIRS);
    // An even number, so that both orders occur equally often.
    (number & !1).clamp(FEWEST_PAIRS, MOST_PAIRS)
}

fn half(session: &mut Session<'_>, huge: bool) -> Result<Option<f64>> {
    let (change, goal) = match huge {
        true => (Change::Collapse, session.population.possible()),
        false => (Change::Split, 0),
    };
    let reached = reach(session, change, goal)?;
    session.remember();
    if !reached {
        return Ok(None);
    }
    std::thread::sleep(SETTLE);
    session.sample()?;
    std::thread::sleep(WINDOW);
    let sample = session.sample()?;
    Ok(session.signal.cost(&sample))
}

/// Builds or splits until there are `goal` huge pages, or no more slots can be changed. False if it
/// was interrupted, took too long, or made less than nine tenths of the changes.
fn reach(session: &mut Session<'_>, change: Change, goal: u64) -> Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    let distance = |session: &Session<'_>| session.population.summary().huge.abs_diff(goal);
    let asked = distance(session);
    while distance(session) > 0 {
        if Instant::now() >= deadline || interrupt::requested().is_some() {
            return Ok(false);
        }
        let left = distance(session);
        let done = session.change(change, left, Victims::Sparsest)?;
        if done == 0
            && session
                .population
                .queue(change, Victims::Sparsest)
                .is_empty()
        {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(distance(session) * 10 <= asked)
}
