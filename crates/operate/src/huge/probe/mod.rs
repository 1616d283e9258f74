//! Properties of this machine's TLB, by timed pointer chases, without counters or privileges.

mod curve;
mod effect;
mod host;
mod memory;

use anyhow::Result;
use effect::Effect;
use pagewise_linux::host::cpu_model;
use pagewise_linux::hugepages::map::PageSizes;
use pagewise_linux::hugepages::trial::{self, Found};
use pagewise_linux::proc::ProcRoot;
use pagewise_model::answer::Document;
use pagewise_model::probe::{ActuatorFinding, Probe, TlbLevel};
use pagewise_model::units::{Bytes, Estimate};
use pagewise_simulate::tlb::steps::{Reading, Step, steps};
use pagewise_stats::Random;
use std::path::Path;
use std::time::Instant;

/// Steps of one timing: 0.2 to 5 ms.
const STEPS: u64 = 100_000;
/// Base pages in the largest chase: 64 MiB of 4 KiB pages, beyond every second level so far.
const MOST_BASE: u64 = 16_384;
/// Cache line of all probed machines, precise enough to spread lines over sets.
const LINE: u64 = 64;

/// Extent of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Maximum memory of the chases.
    pub memory: Bytes,
    /// Measurements per point.
    pub rounds: u32,
}

/// Measures levels, the cost of a walk, the host's pages and the effect of huge pages; `say`
/// receives progress messages.
///
/// # Errors
/// If memory cannot be allocated.
pub fn probe(request: Request, say: &dyn Fn(&str)) -> Result<Document<Probe>> {
    let started = Instant::now();
    let sizes = PageSizes::read(Path::new("/sys"))?;
    let memory = request.memory;
    let mut bench = Bench {
        sizes,
        rounds: request.rounds,
        random: Random::seeded(0x7072_6f62),
        notes: Vec::new(),
    };
    say("chases through base pages");
    let base = bench.curve(sizes.base, sizes.base, MOST_BASE)?;
    say("chases through huge pages");
    let most_huge = (memory.0 / sizes.huge.0).min(4096);
    let huge = bench.curve(sizes.huge, sizes.huge, most_huge)?;
    say("base-sized steps within huge pages");
    let host = bench.host(&base)?;
    say("a chase with more and more huge pages");
    let half = Bytes(memory.0 / 2 / sizes.huge.0 * sizes.huge.0);
    let Effect {
        points: effect,
        walk_events,
        no_counters,
    } = bench.effect(half)?;
    let actuators = bench.actuators();
    let levels = bench.levels(&[(sizes.base, &base), (sizes.huge, &huge)]);
    let walk_ns = base
        .last()
        .map(|last| last.extra_estimate(&mut bench.random));
    let curves = [(sizes.base, base), (sizes.huge, huge)];
    let curves = curves.map(|(page, readings)| bench.drawn(page, &readings));
    let found = Probe {
        cpu: cpu_model().unwrap_or_else(|| "unknown CPU".to_owned()),
        elapsed: started.elapsed().into(),
        rounds: request.rounds,
        levels,
        walk_ns,
        host,
        effect_memory: half,
        effect,
        actuators,
        walk_events,
        no_counters,
        curves: curves.into(),
    };
    Ok(Document::new(found).with_notes(bench.notes))
}

/// Change of the time of a random chase through `memory` from base to huge pages: the most that a
/// program can gain. `None` if no huge pages are available.
pub fn effect_on_chase(memory: Bytes, sizes: PageSizes) -> Option<Estimate> {
    let mut bench = Bench {
        sizes,
        rounds: 5,
        random: Random::seeded(0x6566_6665),
        notes: Vec::new(),
    };
    let memory = Bytes(memory.0.div_ceil(sizes.huge.0) * sizes.huge.0);
    let effect = bench.effect(memory).ok()?;
    bench
        .notes
        .is_empty()
        .then(|| effect.points.last().map(|last| last.change))?
}

struct Bench {
    sizes: PageSizes,
    rounds: u32,
    random: Random,
    notes: Vec<String>,
}

impl Bench {
    /// The steps of each curve, as levels of the TLB.
    fn levels(&mut self, curves: &[(Bytes, &Vec<Reading>)]) -> Vec<TlbLevel> {
        let mut levels = Vec::new();
        for (page, curve) in curves {
            let found = steps(curve, &mut self.random);
            let numbered = (1..).zip(found);
            levels.extend(numbered.map(|(level, step)| tlb_level(level, *page, step)));
        }
        levels
    }

    fn actuators(&mut self) -> Vec<ActuatorFinding> {
        let found = match trial::run(&ProcRoot::default(), self.sizes) {
            Ok(found) => found,
            Err(error) => {
                self.notes
                    .push(format!("Page sizes of other processes: {error}"));
                return Vec::new();
            }
        };
        let one = |change: &str, call: &str, found: Found| ActuatorFinding {
            change: change.to_owned(),
            call: call.to_owned(),
            median: match found {
                Found::Works(median) => Some(median),
                Found::Fails(_) => None,
            },
        };
        vec![
            one("collapse", "process_madvise(MADV_COLLAPSE)", found.collapse),
            one(
                "split",
                "process_madvise(MADV_COLD) on one base page",
                found.split,
            ),
        ]
    }
}

/// Word of a line in page number `page`: a different line for each page, so that all cache sets are
/// used equally.
fn spread_line(page: u64, lines: u64) -> u64 {
    (page * 7 + page / lines) % lines * LINE / 8
}

fn tlb_level(level: u32, page: Bytes, step: Step) -> TlbLevel {
    TlbLevel {
        level,
        page,
        entries: step.entries,
        miss_ns: step.height,
    }
}

fn as_index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
