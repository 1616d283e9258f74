//! How proofs decide on simulated machines: false gains, gains found, and runs spent, by the rule that
//! stops early and by the one before. `cargo run --release -p pagewise-compare --example proofs [N]`.

#[path = "../tests/proofs/simulated.rs"]
mod simulated;

use simulated::{Noise, Outcome, Rule, experiment};

const EFFECTS: [f64; 5] = [1.0, 1.01, 1.05, 2.0, 8.0];
const NOISES: [(&str, Noise); 5] = [
    ("2 %", Noise::Normal(0.02)),
    ("20 %", Noise::Normal(0.2)),
    ("heavy tails", Noise::Heavy),
    ("drift", Noise::Drift),
    ("two speeds", Noise::TwoSpeeds),
];

fn main() {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let count: u64 = count.unwrap_or(1_000);
    println!("{count} experiments each; before → now\n");
    println!(
        "| noise | arms | effect | proved | false gain | false loss | interval holds | runs | time |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, noise) in NOISES {
        for arms in [1, 3, 8] {
            for effect in EFFECTS {
                let mut speeds = vec![1.0; arms];
                speeds[0] = effect;
                let [before, now] = [Rule::Narrow, Rule::Early].map(|rule| {
                    let run = |seed| experiment(&speeds, noise, rule, seed);
                    Rates::new((0..count).map(run))
                });
                let both = |of: fn(&Rates) -> String| format!("{} → {}", of(&before), of(&now));
                println!(
                    "| {name} | {arms} | ×{effect} | {} | {} | {} | {} | {} | {} |",
                    both(|rates| percent(rates.proved)),
                    both(|rates| percent(rates.false_gain)),
                    both(|rates| percent(rates.false_loss)),
                    both(|rates| percent(rates.covers)),
                    both(|rates| format!("{:.0}", rates.runs)),
                    both(|rates| format!("{:.0}", rates.time)),
                );
            }
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[derive(Default)]
struct Rates {
    proved: f64,
    false_gain: f64,
    false_loss: f64,
    covers: f64,
    runs: f64,
    time: f64,
}

impl Rates {
    fn new(outcomes: impl Iterator<Item = Outcome>) -> Self {
        let (mut sum, mut count) = (Self::default(), 0.0);
        for outcome in outcomes {
            count += 1.0;
            let of = |holds: bool| f64::from(u8::from(holds));
            sum.proved += of(outcome.winner.is_some_and(|speed| speed > 1.0));
            sum.false_gain += of(outcome.winner == Some(1.0));
            sum.false_loss += of(outcome.false_slower);
            sum.covers += of(outcome.covers);
            sum.runs += f64::from(outcome.runs);
            sum.time += outcome.time;
        }
        Self {
            proved: sum.proved / count,
            false_gain: sum.false_gain / count,
            false_loss: sum.false_loss / count,
            covers: sum.covers / count,
            runs: sum.runs / count,
            time: sum.time / count,
        }
    }
}
