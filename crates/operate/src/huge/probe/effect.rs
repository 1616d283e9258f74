//! A chase's gain as more and more of its memory is in huge pages.

use super::memory::touch;
use super::{Bench, LINE, STEPS, as_index};
use anyhow::{Context, Result};
use pagewise_linux::hugepages::chase::Chase;
use pagewise_linux::hugepages::walks::{Counting, Cpu, table_for};
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::sys::anonymous::{Anonymous, Pages};
use pagewise_model::probe::EffectPoint;
use pagewise_model::units::{Bytes, Estimate};
use pagewise_simulate::tlb::steps::{estimate, ratio};
use std::path::Path;

/// Shares of huge pages in the chase that shows their effect.
const SHARES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Result of the measurement.
pub struct Effect {
    /// A point for each share of huge pages.
    pub points: Vec<EffectPoint>,
    /// Events that counted page walks.
    pub walk_events: Option<String>,
    /// Why there were none.
    pub no_counters: Option<String>,
}

impl Bench {
    /// A random chase with an increasing share of huge pages, each share in turn.
    pub fn effect(&mut self, memory: Bytes) -> Result<Effect> {
        let huge = as_index(self.sizes.huge.0);
        let half = as_index(memory.0);
        let mut area = Anonymous::map(half * 2, huge, Pages::Huge)
            .with_context(|| format!("cannot map {} for the chase", Bytes(memory.0 * 2)))?;
        // If this fails, the second half is huge as well, which the map then shows.
        let _ = area.advise(half, half, Pages::Base);
        touch(&mut area, 0, half * 2, self.sizes);
        self.make_huge(&area, half);
        let chases: Vec<Chase> = (0_u64..)
            .zip(SHARES)
            .map(|(word, share)| self.mixed(&mut area, half, share, word))
            .collect();
        let table = table_for(&Cpu::this());
        let counting = Counting::prepare(Path::new("/sys"), table.as_ref());
        let no_counters = counting.as_ref().err().map(|refusal| refusal.message());
        let mut counting = counting.ok();
        let mut times = vec![Vec::new(); SHARES.len()];
        let mut walks = vec![Vec::new(); SHARES.len()];
        let mut order: Vec<usize> = (0..SHARES.len()).collect();
        for _ in 0..self.rounds {
            self.random.shuffle(&mut order);
            for &at in &order {
                let before = read_walks(counting.as_mut());
                times[at].push(chases[at].time(&area, STEPS));
                let after = read_walks(counting.as_mut());
                walks[at].extend(before.zip(after).map(|(before, after)| after.less(before)));
            }
        }
        let points = self.points(&times, &walks);
        let events = table.filter(|_| counting.is_some());
        Ok(Effect {
            points,
            walk_events: events.map(|table| format!("{} ({})", table.name, table.source)),
            no_counters,
        })
    }

    fn points(&mut self, times: &[Vec<f64>], walks: &[Vec<Walks>]) -> Vec<EffectPoint> {
        let mut points = Vec::new();
        for (at, share) in SHARES.into_iter().enumerate() {
            let change = ratio(&times[at], &times[0], &mut self.random);
            let mean = |of: fn(&Walks) -> f64| {
                let sum: f64 = walks[at].iter().map(of).sum();
                sum / walks[at].len().max(1) as f64 / STEPS as f64
            };
            points.push(EffectPoint {
                huge_share: share,
                step_ns: estimate(&times[at], &mut self.random),
                change: change.map_or(Estimate::exact(0.0), |ratio| Estimate {
                    value: ratio.value - 1.0,
                    low: ratio.low - 1.0,
                    high: ratio.high - 1.0,
                }),
                walks: (!walks[at].is_empty()).then(|| {
                    [
                        mean(|walks| walks.all - walks.huge),
                        mean(|walks| walks.huge),
                    ]
                }),
            });
        }
        points
    }

    /// A chase through `half` bytes of which `share` are in the huge first half of the memory. It
    /// has a word of its own in each line, so that all shares can be chased in turn.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "numbers of slots, far below 2^52"
    )]
    fn mixed(&mut self, area: &mut Anonymous, half: usize, share: f64, word: u64) -> Chase {
        let slots = half as u64 / self.sizes.huge.0;
        let huge_slots = (slots as f64 * share).round() as u64;
        let slot_words = self.sizes.huge.0 / 8;
        let base_words = self.sizes.base.0 / 8;
        let lines = self.sizes.base.0 / LINE;
        let mut places = Vec::new();
        for slot in 0..slots {
            let half_of = if slot < huge_slots { 0 } else { slots };
            let start = (slot + half_of) * slot_words;
            for page in 0..slot_words / base_words {
                // Some lines of each page, drawn separately for each.
                for _ in 0..2 {
                    let line = self.random.below(as_index(lines / 2)) as u64 * 2;
                    places.push(start + page * base_words + line * (LINE / 8) + word);
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        let random = &mut self.random;
        Chase::write(area, &places, &mut |bound: usize| random.below(bound))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Walks {
    all: f64,
    huge: f64,
}

impl Walks {
    fn less(self, before: Self) -> Self {
        Self {
            all: self.all - before.all,
            huge: self.huge - before.huge,
        }
    }
}

fn read_walks(counting: Option<&mut Counting>) -> Option<Walks> {
    let counting = counting?;
    let me = i32::try_from(std::process::id()).ok()?;
    counting.follow(&ProcRoot::default(), &[me]);
    let count = counting.read();
    Some(Walks {
        all: count.all?,
        huge: count.huge.unwrap_or(0.0),
    })
}
