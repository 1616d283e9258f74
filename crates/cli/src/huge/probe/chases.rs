//! The measurements.

use anyhow::{Context, Result};
use pagewise_analyse::compare::Random;
use pagewise_analyse::probe::{Reading, Step, estimate, extra_share, ratio, steps};
use pagewise_linux::hugepages::actuator::Target;
use pagewise_linux::hugepages::chase::Chase;
use pagewise_linux::hugepages::map::PageSizes;
use pagewise_linux::hugepages::trial::{self, Found};
use pagewise_linux::hugepages::walks::{Counting, Cpu, table_for};
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::sys::anonymous::{Anonymous, Pages};
use pagewise_model::document::Kind;
use pagewise_model::probe::{
    ActuatorFinding, Curve, CurvePoint, EffectPoint, HostFinding, HostPages, PROBE_VERSION, Probe,
    TlbLevel,
};
use pagewise_model::units::{Bytes, Estimate};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

/// Steps of one timing: 0.2 to 5 ms.
const STEPS: u64 = 100_000;
/// Points in an octave of a curve.
const DENSITY: f64 = 4.0;
/// Numbers that are measured between two points of a step.
const FINER: u64 = 8;
/// Base pages in the largest chase: 64 MiB of 4 KiB pages, beyond every second level so far.
const MOST_BASE: u64 = 16_384;
/// Cache line of all machines that are probed, as far as spreading lines over sets goes.
const LINE: u64 = 64;
/// Shares of huge pages in the chase that shows their effect.
const SHARES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// Huge pages over which the host's share is looked for; fewer than any first level holds.
const SPREAD: u64 = 24;

/// Everything.
pub fn probe(memory: Bytes, rounds: u32, sizes: PageSizes, quiet: bool) -> Result<Probe> {
    let started = Instant::now();
    let mut bench = Bench {
        sizes,
        rounds,
        random: Random::seeded(0x7072_6f62),
        notes: Vec::new(),
    };
    let say = |what: &str| {
        if !quiet {
            // Progress that cannot be shown is no reason to stop.
            let _ = writeln!(io::stderr(), "pagewise: {what}");
        }
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
    let (effect, walk_events, no_counters) = bench.effect(half)?;
    let actuators = bench.actuators();
    let mut levels = Vec::new();
    for (page, curve) in [(sizes.base, &base), (sizes.huge, &huge)] {
        let found = steps(curve, &mut bench.random);
        levels.extend(
            (1..)
                .zip(found)
                .map(|(level, step)| tlb_level(level, page, step)),
        );
    }
    let walk_ns = base
        .last()
        .map(|last| last.extra_estimate(&mut bench.random));
    let curves = [(sizes.base, base), (sizes.huge, huge)];
    let curves = curves.map(|(page, readings)| bench.drawn(page, &readings));
    Ok(Probe {
        kind: Kind::HugeProbe,
        schema_version: PROBE_VERSION,
        cpu: cpu_model(),
        elapsed: started.elapsed().into(),
        rounds,
        levels,
        walk_ns,
        host,
        effect_memory: half,
        effect,
        actuators,
        walk_events,
        no_counters,
        notes: bench.notes,
        curves: curves.into(),
    })
}

/// Change of a random chase's time through `memory` from base to huge pages: what a program can
/// gain at most. `None` where no huge pages can be had.
pub fn effect_on_chase(memory: Bytes, sizes: PageSizes) -> Option<Estimate> {
    let mut bench = Bench {
        sizes,
        rounds: 5,
        random: Random::seeded(0x6566_6665),
        notes: Vec::new(),
    };
    let memory = Bytes(memory.0.div_ceil(sizes.huge.0) * sizes.huge.0);
    let (points, _, _) = bench.effect(memory).ok()?;
    bench
        .notes
        .is_empty()
        .then(|| points.last().map(|last| last.change))?
}

struct Bench {
    sizes: PageSizes,
    rounds: u32,
    random: Random,
    notes: Vec<String>,
}

impl Bench {
    /// Cost of a step by number of pages of size `page`, `stride` apart; finer around each step.
    fn curve(&mut self, page: Bytes, stride: Bytes, most: u64) -> Result<Vec<Reading>> {
        let mut memory = Memory {
            spread: self.memory(Bytes(stride.0 * most), page)?,
            together: self.memory(Bytes(most * LINE).max(self.sizes.huge), self.sizes.huge)?,
            stride,
        };
        let coarse = self.readings(&mut memory, &ladder(most));
        let edges = steps(&coarse, &mut self.random);
        let known: Vec<u64> = coarse.iter().map(|reading| reading.pages).collect();
        let finer: Vec<u64> = edges
            .iter()
            .flat_map(|step| between(*step, &known))
            .collect();
        let mut all = coarse;
        all.extend(self.readings(&mut memory, &finer));
        all.sort_by_key(|reading| reading.pages);
        Ok(all)
    }

    /// Memory with pages of one size, all of it touched.
    fn memory(&mut self, size: Bytes, page: Bytes) -> Result<Anonymous> {
        let pages = match page == self.sizes.huge {
            true => Pages::Huge,
            false => Pages::Base,
        };
        let huge = as_index(self.sizes.huge.0);
        let length = as_index(size.0).next_multiple_of(huge);
        let mut memory = Anonymous::map(length, huge, pages)
            .with_context(|| format!("cannot map {size} for the probe"))?;
        touch(&mut memory, 0, length, self.sizes);
        if pages == Pages::Huge {
            self.make_huge(&memory, length);
        }
        Ok(memory)
    }

    /// Where faults gave base pages, they are collapsed; what stays small is said.
    fn make_huge(&mut self, memory: &Anonymous, length: usize) {
        // A refusal shows in the map.
        let _ = memory.collapse(0, length);
        let small = small_slots(memory, length, self.sizes);
        if small > 0 {
            let note = format!(
                "{small} of {} stretches could not be put into huge pages (too little free \
                 contiguous memory, or huge pages forbidden): figures of huge pages hold base \
                 pages as well.",
                length / as_index(self.sizes.huge.0)
            );
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Measures all of `counts` in rounds, each round in another order.
    fn readings(&mut self, memory: &mut Memory, counts: &[u64]) -> Vec<Reading> {
        let mut found: Vec<Reading> = counts
            .iter()
            .map(|&pages| Reading {
                pages,
                samples: Vec::new(),
                data: Vec::new(),
            })
            .collect();
        let mut order: Vec<usize> = (0..counts.len()).collect();
        for _ in 0..self.rounds {
            self.random.shuffle(&mut order);
            for &at in &order {
                let (spread, data) = self.times(memory, counts[at]);
                found[at].samples.push(spread);
                found[at].data.push(data);
            }
        }
        found
    }

    /// Nanoseconds of a step through `pages` pages, and of one through as many cache lines that lie
    /// together.
    fn times(&mut self, memory: &mut Memory, pages: u64) -> (f64, f64) {
        let random = &mut self.random;
        let mut draw = |bound: usize| random.below(bound);
        let lines = self.sizes.base.0 / LINE;
        let places: Vec<u64> = (0..pages)
            .map(|page| page * memory.stride.0 / 8 + spread_line(page, lines))
            .collect();
        let dense: Vec<u64> = (0..pages).map(|line| line * LINE / 8).collect();
        let spread = Chase::write(&mut memory.spread, &places, &mut draw);
        let together = Chase::write(&mut memory.together, &dense, &mut draw);
        (
            spread.time(&memory.spread, STEPS),
            together.time(&memory.together, STEPS),
        )
    }

    /// Whether base-sized steps within huge pages miss the TLB like base pages.
    fn host(&mut self, base: &[Reading]) -> Result<HostFinding> {
        let is_guest = is_guest();
        let first = steps(base, &mut self.random).into_iter().next();
        let Some(first) = first else {
            return Ok(HostFinding {
                pages: HostPages::Unknown,
                is_guest,
                missed_share: None,
                sentence: "Base pages show no step, so nothing can be compared.".to_owned(),
            });
        };
        // Well beyond the first level, well below the second.
        let most = SPREAD * self.sizes.huge.0 / self.sizes.base.0 / 2;
        let pages = as_count(first.entries.high * 3.0).min(most);
        let mut huge = self.memory(Bytes(self.sizes.huge.0 * SPREAD), self.sizes.huge)?;
        let mut small = self.memory(Bytes(self.sizes.base.0 * pages), self.sizes.base)?;
        let (within, among) = self.within_and_among(&mut huge, &mut small, pages);
        let share = extra_share(&within, &among, &mut self.random);
        Ok(judge(is_guest, share))
    }

    /// Cost of TLB misses of a chase over `pages` base-sized steps within huge pages, and over as
    /// many base pages.
    fn within_and_among(
        &mut self,
        huge: &mut Anonymous,
        small: &mut Anonymous,
        pages: u64,
    ) -> (Reading, Reading) {
        let base_words = self.sizes.base.0 / 8;
        let huge_words = self.sizes.huge.0 / 8;
        let lines = self.sizes.base.0 / LINE;
        let within: Vec<u64> = (0..pages)
            .map(|page| {
                let (slot, step) = (page % SPREAD, page / SPREAD);
                slot * huge_words + step * base_words + spread_line(page, lines)
            })
            .collect();
        let among: Vec<u64> = (0..pages)
            .map(|page| page * base_words + spread_line(page, lines))
            .collect();
        // The same number of lines in one page and its neighbours: the data's own cost.
        let together: Vec<u64> = (0..pages).map(|page| page * LINE / 8).collect();
        let empty = Reading {
            pages,
            samples: Vec::new(),
            data: Vec::new(),
        };
        let (mut first, mut second) = (empty.clone(), empty);
        for _ in 0..self.rounds * 2 {
            let random = &mut self.random;
            let mut draw = |bound: usize| random.below(bound);
            let chase = Chase::write(huge, &within, &mut draw);
            first.samples.push(chase.time(huge, STEPS));
            let chase = Chase::write(small, &among, &mut draw);
            second.samples.push(chase.time(small, STEPS));
            let chase = Chase::write(small, &together, &mut draw);
            first.data.push(chase.time(small, STEPS));
        }
        second.data.clone_from(&first.data);
        (first, second)
    }

    /// A random chase with more and more huge pages, each share in turn.
    fn effect(
        &mut self,
        memory: Bytes,
    ) -> Result<(Vec<EffectPoint>, Option<String>, Option<String>)> {
        let huge = as_index(self.sizes.huge.0);
        let half = as_index(memory.0);
        let mut area = Anonymous::map(half * 2, huge, Pages::Huge)
            .with_context(|| format!("cannot map {} for the chase", Bytes(memory.0 * 2)))?;
        // Without this, the second half is huge as well, which the map then shows.
        let _ = area.advise(half, half, Pages::Base);
        touch(&mut area, 0, half * 2, self.sizes);
        self.make_huge(&area, half);
        let chases: Vec<Chase> = (0_u64..)
            .zip(SHARES)
            .map(|(word, share)| self.mixed(&mut area, half, share, word))
            .collect();
        let table = table_for(&Cpu::parse(
            &std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default(),
        ));
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
        let events = events.map(|table| format!("{} ({})", table.name, table.source));
        Ok((points, events, no_counters))
    }

    #[allow(clippy::cast_precision_loss, reason = "steps are far below 2^52")]
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

    /// A chase through `half` bytes of which `share` lie in the huge first half of the memory.
    /// It has a word of its own in each line, so that all shares can be chased in turn.
    #[allow(
        clippy::cast_precision_loss,
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
                // Some lines of each page, drawn anew for each.
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

    fn drawn(&mut self, page: Bytes, readings: &[Reading]) -> Curve {
        let points = readings.iter().map(|reading| CurvePoint {
            pages: reading.pages,
            extra_ns: reading.extra_estimate(&mut self.random),
        });
        Curve {
            page,
            stride: page,
            points: points.collect(),
        }
    }
}

/// What a curve is measured on.
struct Memory {
    /// Pages `stride` apart.
    spread: Anonymous,
    /// Lines that lie together.
    together: Anonymous,
    stride: Bytes,
}

/// Word of a line in page number `page`: another line for each page, so that all cache sets are
/// used alike.
fn spread_line(page: u64, lines: u64) -> u64 {
    (page * 7 + page / lines) % lines * LINE / 8
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

fn judge(is_guest: bool, share: Option<Estimate>) -> HostFinding {
    let pages = match share {
        None => HostPages::Unknown,
        Some(share) if share.high < 0.2 => HostPages::Huge,
        Some(share) if share.low > 0.7 => HostPages::Small,
        Some(_) => HostPages::Mixed,
    };
    let sentence = match (is_guest, pages) {
        (false, HostPages::Huge) => "This is no virtual machine, and huge pages are huge.",
        (false, _) => {
            "This is no virtual machine, yet its huge pages miss the TLB like base pages: the CPU \
             may keep base-sized entries for them, or a hypervisor may hide itself."
        }
        (true, HostPages::Huge) => {
            "The host backs this guest with huge pages: huge pages here are huge in the TLB."
        }
        (true, HostPages::Small) => {
            "The host backs this guest with base pages: a huge page here takes as many TLB entries \
             as base pages do. Huge pages still shorten page walks. The host's administrator can \
             change that: huge pages for the monitor's memory, aligned alike at both levels."
        }
        (true, HostPages::Mixed) => {
            "The host backs some of this guest with huge pages and some with base pages, or what \
             was measured is too noisy to tell: run again, on a quiet machine or with more rounds."
        }
        (true, HostPages::Unknown) => "Whether the host uses huge pages could not be told.",
    };
    HostFinding {
        pages,
        is_guest,
        missed_share: share,
        sentence: sentence.to_owned(),
    }
}

fn tlb_level(level: u32, page: Bytes, step: Step) -> TlbLevel {
    TlbLevel {
        level,
        page,
        entries: step.entries,
        miss_ns: step.height,
    }
}

/// Numbers from 4 to `most`, [`DENSITY`] of them in an octave.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers up to some thousands"
)]
fn ladder(most: u64) -> Vec<u64> {
    let mut rungs = Vec::new();
    let mut at = 8.0_f64;
    while at as u64 <= most {
        rungs.push(at as u64);
        at *= 2_f64.powf(1.0 / DENSITY);
    }
    rungs.push(most);
    rungs.dedup();
    rungs
}

/// Numbers between the two points at a step.
fn between(step: Step, known: &[u64]) -> Vec<u64> {
    let at = known.partition_point(|&pages| as_float(pages) <= step.entries.value);
    let (Some(&low), Some(&high)) = (known.get(at.wrapping_sub(1)), known.get(at)) else {
        return Vec::new();
    };
    let gap = high - low;
    let mut found: Vec<u64> = (1..FINER).map(|part| low + gap * part / FINER).collect();
    found.retain(|pages| *pages > low && *pages < high);
    found.dedup();
    found
}

/// Writes a word into each base page.
fn touch(memory: &mut Anonymous, from: usize, length: usize, sizes: PageSizes) {
    let step = as_index(sizes.base.0 / 8);
    let words = memory.words_mut();
    for at in (from / 8..(from + length) / 8).step_by(step) {
        words[at] = 1;
    }
}

/// Slots of our own memory that no huge page maps; all, where that cannot be seen.
fn small_slots(memory: &Anonymous, length: usize, sizes: PageSizes) -> usize {
    let slots = length / as_index(sizes.huge.0);
    let me = i32::try_from(std::process::id()).unwrap_or(0);
    let Ok(target) = Target::open(&ProcRoot::default(), me, sizes) else {
        return 0;
    };
    (0..slots)
        .filter(|&slot| {
            let address = memory.address() + slot as u64 * sizes.huge.0;
            !target.slot(address).is_ok_and(|slot| slot.huge)
        })
        .count()
}

fn is_guest() -> bool {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    let hides = flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    // Arm and others say it in the device tree or in sysfs.
    hides
        || Path::new("/sys/hypervisor/type").exists()
        || Path::new("/proc/device-tree/hypervisor").exists()
}

fn cpu_model() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':'));
    name.map_or_else(
        || "unknown CPU".to_owned(),
        |(_, name)| name.trim().to_owned(),
    )
}

fn as_index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[allow(clippy::cast_precision_loss, reason = "pages are far below 2^52")]
fn as_float(number: u64) -> f64 {
    number as f64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few hundred pages"
)]
fn as_count(number: f64) -> u64 {
    number as u64
}
