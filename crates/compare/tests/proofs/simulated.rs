//! Experiments on simulated machines, with the rule that stops early and with the previous one.

use pagewise_compare::proof::fate::{Fate, Rules, Standing};
use pagewise_compare::proof::{best, most_promising};
use pagewise_compare::{Criteria, Stopping, compare, correct_for_many};
use pagewise_model::proof::{Comparison, Verdict};
use pagewise_model::run::RunCost;
use pagewise_model::units::{Bytes, Nanos};
use pagewise_stats::Random;
use std::time::Duration;

/// The reason why runs of one program differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Log-normal, of this deviation, on both clocks.
    Normal(f64),
    /// Student's t with three degrees of freedom, and stalls of up to a run in 5 % of them.
    Heavy,
    /// 2 %, on a machine whose speed varies by 10 % and decreases.
    Drift,
    /// Each run at random at one of two speeds.
    TwoSpeeds,
}

/// When arms get no more runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Once both intervals are narrow, or after the maximum number of pairs.
    Narrow,
    /// [`Rules`].
    Early,
}

/// The result of an experiment.
pub struct Outcome {
    /// Speed of the proved arm.
    pub winner: Option<f64>,
    /// Whether an arm was wrongly reported as slower.
    pub false_slower: bool,
    /// Runs of the unchanged program and of arms.
    pub runs: u32,
    /// Their time, in runs of the unchanged program.
    pub time: f64,
    /// Whether the winner's interval contains its speed.
    pub covers: bool,
}

/// A machine, and a program that takes a second on it.
struct Machine {
    random: Random,
    noise: Noise,
    rounds: f64,
    runs: u32,
    time: f64,
}

/// Total time, in runs of the unchanged program: two minutes, with a run of half a second.
const BUDGET: f64 = 240.0;
/// Share that the command reserves for fresh runs.
const FOR_CONFIRMATION: f64 = 0.35;

/// One experiment: arms of these speeds with a baseline, and fresh runs of the best of several.
pub fn experiment(speeds: &[f64], noise: Noise, rule: Rule, seed: u64) -> Outcome {
    let mut machine = Machine {
        random: Random::seeded(seed),
        noise,
        rounds: 0.0,
        runs: 0,
        time: 0.0,
    };
    let criteria = Criteria::default();
    let several = speeds.len() > 1;
    let deadline = BUDGET * if several { 1.0 - FOR_CONFIRMATION } else { 1.0 };
    let mut found = machine.contest(speeds, deadline, rule, &criteria);
    correct_for_many(&mut found, &criteria);
    let false_slower = (found.iter().zip(speeds))
        .any(|(one, speed)| one.verdict == Verdict::Slower && *speed >= 1.0);
    let chosen = match several {
        true => most_promising(&found, &criteria),
        false => best(&found, &criteria),
    };
    let proved = chosen.and_then(|chosen| {
        let at = found.iter().position(|one| one.arm == chosen.arm)?;
        let proved = match several {
            true => machine
                .contest(&[speeds[at]], BUDGET, rule, &criteria)
                .pop()?,
            false => chosen.clone(),
        };
        (proved.verdict == Verdict::Faster).then_some((speeds[at], proved))
    });
    Outcome {
        winner: proved.as_ref().map(|(speed, _)| *speed),
        false_slower,
        runs: machine.runs,
        time: machine.time,
        covers: proved.is_none_or(|(speed, proved)| proved.cpu_speedup.covers(speed)),
    }
}

impl Machine {
    fn uniform(&mut self) -> f64 {
        ((self.random.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Student's t with three degrees of freedom.
    fn heavy(&mut self) -> f64 {
        let square: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / (square / 3.0).sqrt()
    }

    /// Logarithms of the noise in CPU time, and of the additional noise in elapsed time.
    fn noises(&mut self) -> (f64, f64) {
        match self.noise {
            Noise::Normal(deviation) => (deviation * self.normal(), deviation * self.normal()),
            Noise::Heavy => {
                let stall = if self.uniform() < 0.05 {
                    self.uniform()
                } else {
                    0.0
                };
                (0.01 * self.heavy(), 0.02 * self.heavy() + stall.ln_1p())
            }
            Noise::Drift => {
                let drift = 1.0 + 0.1 * (self.rounds / 7.0).sin() + 0.004 * self.rounds;
                (drift.ln() + 0.02 * self.normal(), 0.02 * self.normal())
            }
            Noise::TwoSpeeds => {
                let slow = if self.uniform() < 0.5 {
                    0.5_f64.ln_1p()
                } else {
                    0.0
                };
                (slow + 0.01 * self.normal(), 0.01 * self.normal())
            }
        }
    }

    fn run(&mut self, speed: f64, faults: u64) -> RunCost {
        let (cpu, beside) = self.noises();
        let cpu = cpu.exp() / speed;
        let wall = cpu * beside.exp();
        self.runs += 1;
        self.time += wall;
        RunCost {
            wall: Nanos::from_secs_f64(wall),
            user: Nanos::from_secs_f64(cpu * 0.6),
            system: Nanos::from_secs_f64(cpu * 0.4),
            minor_faults: faults,
            max_rss: Bytes::MIB,
            ..RunCost::default()
        }
    }

    /// Rounds until the rule gives no arm more runs.
    fn contest(
        &mut self,
        speeds: &[f64],
        deadline: f64,
        rule: Rule,
        criteria: &Criteria,
    ) -> Vec<Comparison> {
        let mut runs: Vec<Vec<RunCost>> = vec![Vec::new(); speeds.len() + 1];
        let mut active: Vec<usize> = (1..runs.len()).collect();
        let stopping = Stopping::default().among(speeds.len(), criteria.level);
        let mut first = Vec::new();
        let compared = |runs: &[Vec<RunCost>], at: usize| {
            compare(&at.to_string(), &runs[0], &runs[at], criteria)
        };
        loop {
            if active.is_empty() || self.time + round_time(&runs, &active) >= deadline {
                return (1..runs.len()).map(|at| compared(&runs, at)).collect();
            }
            let mut order: Vec<usize> = std::iter::once(0).chain(active.iter().copied()).collect();
            self.random.shuffle(&mut order);
            if rule == Rule::Early {
                match runs[0].len() {
                    0 => first = order.clone(),
                    1 => {
                        first.retain(|at| order.contains(at));
                        order = first.iter().copied().rev().collect();
                    }
                    _ => (),
                }
            }
            for at in order {
                let (speed, faults) = match at {
                    0 => (1.0, 5_000),
                    arm => (speeds[arm - 1], 10),
                };
                let run = self.run(speed, faults);
                runs[at].push(run);
                self.rounds += 1.0 / (active.len() + 1) as f64;
            }
            let standings: Vec<Standing<'_>> = active
                .iter()
                .map(|&at| Standing {
                    comparison: compared(&runs, at),
                    runs: [&runs[0], &runs[at]],
                })
                .collect();
            let open: Vec<bool> = match rule {
                Rule::Narrow => standings
                    .iter()
                    .map(|one| !stopping.enough(&one.comparison))
                    .collect(),
                Rule::Early => {
                    let round = round_time(&runs, &active);
                    let left = Duration::from_secs_f64((deadline - self.time).max(0.0));
                    let to_come =
                        left.as_nanos() / Duration::from_secs_f64(round).as_nanos().max(1);
                    let pairs = runs[0].len() as u128 + to_come;
                    let most = u128::from(stopping.max_pairs);
                    let pairs = u32::try_from(pairs.min(most)).unwrap_or(stopping.max_pairs);
                    let rules = Rules {
                        stopping,
                        criteria,
                        arms: speeds.len(),
                        pairs,
                    };
                    rules
                        .fates(&standings)
                        .iter()
                        .map(|fate| *fate == Fate::Open)
                        .collect()
                }
            };
            let mut open = open.into_iter();
            active.retain(|_| open.next() == Some(true));
        }
    }
}

/// Time of a round, according to the runs so far.
fn round_time(runs: &[Vec<RunCost>], active: &[usize]) -> f64 {
    let typical = |at: &usize| {
        let took: f64 = runs[*at].iter().map(|run| run.wall.as_secs_f64()).sum();
        match runs[*at].len() {
            0 => 1.0,
            count => took / count as f64,
        }
    };
    std::iter::once(&0).chain(active).map(typical).sum()
}
