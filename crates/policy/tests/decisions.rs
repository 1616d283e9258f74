//! The decisions of each policy on synthetic workloads, page by page: any change of behaviour shows
//! here, intended or not. The figures show what it costs or gains; the digest covers every
//! decision.
//!
//! `UPDATE_GOLDEN=1 cargo test -p pagewise-policy --test decisions` rewrites decisions.txt.

use pagewise_policy::catalogue::{Config, POLICIES, by_name, eviction};
use pagewise_policy::page::{Arrival, Fault, FaultKind, Page, Plan, Role, Span, Use};
use pagewise_policy::policy::Policy;
use pagewise_policy::replay::Replay;
use pagewise_policy::trace::{Reference, ReferenceKind, Trace};
use std::fmt::Write as _;

const REGIONS: [Span; 2] = [
    Span {
        first: 0,
        count: 1500,
    },
    Span {
        first: 1600,
        count: 900,
    },
];
const PAGES: u32 = 2500;
const BUDGET: u32 = 400;

#[derive(Clone, Copy)]
enum Step {
    Read(u32, Page),
    Write(u32, Page),
    Remove(Span),
    Hint(Span, Role),
    Fork,
}
use Step::{Fork, Hint, Read, Remove, Write};

type Made = fn() -> Vec<Step>;

/// A linear congruential generator (Knuth's MMIX constants): the same steps on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(bound)).expect("below a u32")
    }

    /// Low numbers far more often than high ones.
    fn skewed(&mut self, bound: u32) -> u32 {
        let below = self.below(bound);
        let below = self.below(below + 1);
        self.below(below + 1)
    }
}

fn looped() -> Vec<Step> {
    let rounds = (0..6).flat_map(|round| (0..520).map(move |page| (round, page)));
    rounds
        .map(|(round, page)| match round {
            0 => Write(1, page),
            _ => Read(1, page),
        })
        .collect()
}

fn skewed() -> Vec<Step> {
    let mut dice = Dice(1);
    (0..12_000)
        .map(|at| match dice.below(5) {
            0 => Write(at % 3, dice.skewed(1500)),
            _ => Read(at % 3, dice.skewed(1500)),
        })
        .collect()
}

/// Pages in constant use, with sweeps over the rest in between.
fn swept() -> Vec<Step> {
    let mut dice = Dice(2);
    let mut steps = Vec::new();
    for sweep in 0..4 {
        for page in 0..900 {
            let page = 1600 + if sweep == 3 { 899 - page } else { page };
            steps.push(if sweep == 0 {
                Write(2, page)
            } else {
                Read(2, page)
            });
            steps.push(Read(1, dice.below(150)));
        }
    }
    steps
}

/// Two threads, each with its own stride, and one that jumps.
fn strided() -> Vec<Step> {
    let mut dice = Dice(3);
    let mut steps: Vec<Step> = (0..1500).map(|page| Write(9, page)).collect();
    for at in 0..700 {
        steps.push(Read(1, (at * 3) % 1500));
        steps.push(Read(2, 1499 - (at * 2) % 1500));
        steps.push(Write(3, 1600 + dice.below(900)));
    }
    steps
}

/// The accesses of a graph traversal: offsets in order, edges in runs, vertices anywhere.
fn graph() -> Vec<Step> {
    let (offsets, edges) = (
        Span {
            first: 0,
            count: 40,
        },
        REGIONS[1],
    );
    let mut dice = Dice(4);
    let mut steps = vec![Hint(offsets, Role::CsrOffsets), Hint(edges, Role::CsrEdges)];
    for round in 0..4 {
        for page in 0..900 {
            if page % 25 == 0 {
                steps.push(Read(1, page / 25));
            }
            let edge = 1600 + page;
            steps.push(if round == 0 {
                Write(1, edge)
            } else {
                Read(1, edge)
            });
            steps.push(Write(1, 100 + dice.below(260)));
        }
    }
    steps
}

/// Phases, memory freed and touched again, hints, a fork.
fn changing() -> Vec<Step> {
    let mut dice = Dice(5);
    let mut steps = Vec::new();
    for phase in 0..8 {
        let base = phase * 150;
        let span = |first, count| Span { first, count };
        if phase % 3 == 1 {
            steps.push(Remove(span(base - 100, 120)));
            steps.push(Hint(span(1600, 200), Role::Hot));
        }
        if phase == 4 {
            steps.push(Hint(span(1900, 300), Role::Stream));
            steps.push(Hint(span(2200, 200), Role::Random));
            steps.push(Fork);
        }
        for at in 0..900 {
            let page = base + dice.skewed(350);
            steps.push(if at % 4 == 0 {
                Write(1, page)
            } else {
                Read(1, page)
            });
            if at % 3 == 0 {
                steps.push(Read(2, 1600 + (phase * 77 + at / 3) % 900));
            }
        }
    }
    steps.push(Remove(REGIONS[0]));
    steps.extend((0..500).map(|page| Write(1, page)));
    steps
}

/// A recording of these steps by a run that partly diverged: `replay` must find its way back.
fn recorded(steps: &[Step]) -> Trace {
    let mut dice = Dice(6);
    let uses = steps.iter().filter_map(|step| match *step {
        Read(thread, page) => Some((thread, page, ReferenceKind::Read)),
        Write(thread, page) => Some((thread, page, ReferenceKind::Write)),
        _ => None,
    });
    let mut trace = Trace::default();
    for (region, span) in (0..).zip(REGIONS) {
        trace.regions.insert(region, span);
    }
    for (number, (thread, page, kind)) in (0_u32..).zip(uses) {
        let page = match number % 500 {
            // A diverging stretch, and single pages here and there.
            300..400 => 1600 + dice.below(900),
            _ if dice.below(12) == 0 => dice.below(1500),
            _ => page,
        };
        trace.references.push(Reference {
            page,
            region: u16::from(page >= REGIONS[1].first),
            thread: u16::try_from(thread).expect("a few threads"),
            kind,
        });
    }
    trace
}

/// A core that does what a policy decides, and records each decision.
struct Core<'a> {
    policy: &'a dyn Policy,
    resident: Vec<bool>,
    stored: Vec<bool>,
    dirty: Vec<bool>,
    watched: Vec<bool>,
    early: Vec<bool>,
    held: u32,
    decisions: u64,
    counts: [u64; 5],
}

const REFAULTS: usize = 0;
const EARLY: usize = 1;
const HELPED: usize = 2;
const WRITTEN: usize = 3;
const WATCHED: usize = 4;

impl Core<'_> {
    /// FNV-1a over all decisions.
    fn note(&mut self, number: u32) {
        for byte in number.to_le_bytes() {
            self.decisions = (self.decisions ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Read(thread, page) => self.access(thread, page, false),
            Write(thread, page) => self.access(thread, page, true),
            Hint(span, role) => self.policy.hint(span, role),
            Fork => self.policy.forked(),
            Remove(span) => {
                self.policy.removed(span);
                for page in span.first..span.end() {
                    let at = page as usize;
                    self.held -= u32::from(std::mem::take(&mut self.resident[at]));
                    for flags in [
                        &mut self.stored,
                        &mut self.dirty,
                        &mut self.watched,
                        &mut self.early,
                    ] {
                        flags[at] = false;
                    }
                }
            }
        }
    }

    fn access(&mut self, thread: u32, page: Page, write: bool) {
        let at = page as usize;
        if !self.resident[at] {
            self.fault(thread, page, write);
        } else if std::mem::take(&mut self.watched[at]) {
            self.policy.used(page, Use::Touch);
        }
        self.counts[HELPED] += u64::from(std::mem::take(&mut self.early[at]));
        if write && !std::mem::replace(&mut self.dirty[at], true) && self.stored[at] {
            self.policy.used(page, Use::Write);
        }
    }

    fn fault(&mut self, thread: u32, page: Page, write: bool) {
        let number = REGIONS
            .iter()
            .position(|region| region.contains(page))
            .expect("a region");
        let region = REGIONS[number];
        let mut plan = Plan::only(page);
        let again = self.stored[page as usize];
        self.counts[REFAULTS] += u64::from(again);
        let kind = if again {
            FaultKind::Refault
        } else {
            FaultKind::FirstTouch
        };
        let region_id = u16::try_from(number).expect("two regions");
        self.policy.faulted(
            &Fault {
                page,
                region,
                region_id,
                thread,
                kind,
                write,
                in_file: false,
            },
            &mut plan,
        );
        assert!(plan.along.contains(page), "the faulted page comes along");
        for span in [&[plan.along], plan.ahead()].concat() {
            let inside = REGIONS.iter().any(|region| span == span.clipped(*region));
            assert!(inside, "{span:?} is in no region");
            self.note(span.first);
            self.note(span.count);
            for near in span.first..span.end() {
                let at = near as usize;
                if near == page || (!self.resident[at] && self.stored[at]) {
                    self.bring(
                        near,
                        if near == page {
                            Arrival::Demand
                        } else {
                            Arrival::Ahead
                        },
                    );
                }
            }
        }
    }

    fn bring(&mut self, page: Page, how: Arrival) {
        let at = page as usize;
        if std::mem::replace(&mut self.resident[at], true) {
            return;
        }
        self.held += 1;
        self.early[at] = how == Arrival::Ahead;
        self.counts[EARLY] += u64::from(how == Arrival::Ahead);
        self.policy.mapped(page, how);
        if self.held > BUDGET {
            self.make_room(page);
        }
    }

    fn make_room(&mut self, needed: Page) {
        let mut pages = [0; 8];
        let soon = self.policy.soon(&mut pages);
        for &page in &pages[..soon] {
            assert!(
                self.resident[page as usize],
                "page {page} leaves soon and is not there"
            );
            self.note(page);
            let dirty = std::mem::take(&mut self.dirty[page as usize]);
            self.stored[page as usize] |= dirty;
            self.counts[WRITTEN] += u64::from(dirty);
        }
        let mut next = [0; 32];
        let watched = self.policy.watch(&mut next);
        for &page in &next[..watched] {
            self.note(page);
            self.watched[page as usize] = self.resident[page as usize];
            self.counts[WATCHED] += 1;
        }
        let chosen = self.policy.victims(&mut pages);
        assert!(chosen > 0, "a full memory has a victim");
        for (number, &page) in pages[..chosen].iter().enumerate() {
            let at = page as usize;
            assert!(self.resident[at], "page {page} leaves and is not there");
            self.note(page);
            // Some pages are pinned or busy.
            if page == needed || (page + u32::try_from(number).expect("eight")) % 41 == 0 {
                self.policy.kept(page);
                continue;
            }
            self.held -= 1;
            self.counts[WRITTEN] += u64::from(std::mem::take(&mut self.dirty[at]));
            (self.resident[at], self.stored[at]) = (false, true);
            (self.watched[at], self.early[at]) = (false, false);
        }
    }
}

fn decide(policy: &dyn Policy, steps: &[Step]) -> (u64, [u64; 5]) {
    let flags = || vec![false; PAGES as usize];
    let mut core = Core {
        policy,
        resident: flags(),
        stored: flags(),
        dirty: flags(),
        watched: flags(),
        early: flags(),
        held: 0,
        decisions: 0xcbf2_9ce4_8422_2325,
        counts: [0; 5],
    };
    for &step in steps {
        core.step(step);
    }
    (core.decisions, core.counts)
}

#[test]
fn policies_decide_as_they_did() {
    let workloads: [(&str, Made); 6] = [
        ("looped", looped),
        ("skewed", skewed),
        ("swept", swept),
        ("strided", strided),
        ("graph", graph),
        ("changing", changing),
    ];
    let config = Config {
        pages: PAGES,
        budget: BUDGET,
    };
    let alone = ["2q", "fifo", "clock", "s3fifo"];
    let named = POLICIES
        .map(|(name, _)| name)
        .into_iter()
        .filter(|name| !name.contains(':'));
    let mut message =
        String::from("policy workload refaults early helped written watched decisions\n");
    let policies = alone
        .map(|name| format!("{name}-alone"))
        .into_iter()
        .chain(named.map(str::to_owned))
        .chain(["prefetch+2q", "prefetch+s3fifo", "replay"].map(str::to_owned));
    for name in policies {
        for (workload, steps) in workloads {
            let steps = steps();
            let alone = |name| eviction(name, &config).expect("one of the four");
            let fresh = match name.strip_suffix("-alone") {
                Some(name) => alone(name),
                None if name == "replay" => {
                    Box::new(Replay::new(&recorded(&steps), alone("2q"), BUDGET))
                }
                None => by_name(&name, &config, |_| Err(String::new())).expect("a policy"),
            };
            let (decisions, counts) = decide(&*fresh, &steps);
            let [refaults, early, helped, written, watched] = counts;
            writeln!(
                message,
                "{name} {workload} {refaults} {early} {helped} {written} {watched} {decisions:016x}"
            )
            .expect("a string takes all");
        }
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/decisions.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, &message).expect("decisions.txt is written");
    }
    let kept = std::fs::read_to_string(file).expect("decisions.txt is there");
    for (now, then) in message.lines().zip(kept.lines()) {
        assert_eq!(now, then, "(UPDATE_GOLDEN=1 where this is wanted)");
    }
    assert_eq!(message.lines().count(), kept.lines().count());
}
