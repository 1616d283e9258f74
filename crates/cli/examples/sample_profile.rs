//! Writes pages of generated profiles, for tests of the page and for measuring it:
//!
//! ```text
//! cargo run -p pagewise --example sample_profile -- load SAMPLES          > profile.html
//! cargo run -p pagewise --example sample_profile -- compare SAMPLES       > diff.html
//! cargo run -p pagewise --example sample_profile -- deep|hostile|crowd    > page.html
//! ```
//!
//! `load` is a machine of eight CPUs at 999 samples per second each: three services whose threads
//! migrate, a few hundred functions, stacks of five to forty frames of which few are hot and
//! thousands rare, idle CPUs, page faults and waits; throughout it waits for a lock of the block
//! layer, and for one second one thread only copies. `compare` compares it with the same load
//! without either. `deep` has a recursion of ten thousand frames, `hostile` names that try to be
//! markup, `crowd` a million threads.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers that are made here and small"
)]

use pagewise_compare::profile_diff::{DiffOptions, SettingRules, diff};
use pagewise_model::profile::{
    CounterSeries, Frame, FrameId, FrameKind, NodeId, Profile, ProfileEvent, ProfileSample,
    ProfileThread, WeightUnit,
};
use pagewise_model::units::Nanos;
use pagewise_profile::{ProfileRules, summarise};
use pagewise_report::html::{render_profile, render_profile_diff};
use std::error::Error;

const CPUS: u64 = 8;
const FREQUENCY: u64 = 999;
const SECOND: u64 = 1_000_000_000;
const PERIOD: u64 = SECOND / FREQUENCY;
/// The stall, as shares of the whole, and its CPU.
const STALL: (u64, u64) = (2, 7);

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let kind = words
        .next()
        .ok_or("load, compare, deep, hostile or crowd?")?;
    let samples = words
        .next()
        .map_or(Ok(10_000), |text| text.parse::<u64>())?;
    if kind == "compare" {
        print!("{}", compared(samples)?);
        return Ok(());
    }
    let profile = match kind.as_str() {
        "load" => load(samples, 1, true),
        "deep" => deep(),
        "hostile" => hostile(),
        "crowd" => crowd(),
        other => return Err(format!("{other}: no such profile").into()),
    };
    let findings = summarise(&profile, &ProfileRules::shipped()?);
    print!("{}", render_profile(&profile, &findings, "generated")?);
    Ok(())
}

fn compared(samples: u64) -> Result<String, Box<dyn Error>> {
    let (mut a, mut b) = (load(samples, 1, false), load(samples, 2, true));
    for (profile, scheduler) in [(&mut a, "none"), (&mut b, "kyber")] {
        let settings = &mut profile.host.settings;
        settings.insert("block.nvme0n1.scheduler".to_owned(), scheduler.to_owned());
        settings.insert("vm.swappiness".to_owned(), "60".to_owned());
    }
    let options = DiffOptions {
        names: ("quiet".to_owned(), "stalled".to_owned()),
        event: None,
        shares: false,
        seed: 1,
    };
    let found = diff(&a, &b, &options, &SettingRules::shipped()?)?;
    Ok(render_profile_diff(&found, &a, &b)?)
}

/// A small fast generator (xorshift64*), so that pages are identical everywhere.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Small numbers often, large ones rarely: the n-th with a chance of about 1/n.
    fn skewed(&mut self, end: u64) -> u64 {
        let uniform = self.below(1 << 20) as f64 / f64::from(1 << 20);
        ((end as f64).powf(uniform) as u64)
            .saturating_sub(1)
            .min(end - 1)
    }
}

fn frame(name: String, module: &str) -> Frame {
    let is_kernel = module == "[kernel]";
    Frame {
        name: name.into(),
        module: module.into(),
        kind: if is_kernel {
            FrameKind::Kernel
        } else {
            FrameKind::User
        },
        unnamed: None,
    }
}

const KERNEL: [&str; 12] = [
    "default_idle",
    "entry_SYSCALL_64_after_hwframe",
    "do_syscall_64",
    "tcp_recvmsg",
    "copy_user_generic",
    "handle_mm_fault",
    "clear_page_erms",
    "schedule",
    "finish_task_switch.isra.0",
    "tcp_sendmsg",
    "_raw_spin_lock",
    "blk_mq_submit_bio",
];
const MODULES: [&str; 4] = ["server", "libc.so.6", "libssl.so.3", "redis-server"];
const FUNCTIONS: u64 = 600;
const STACKS: u64 = 12_000;

fn load(samples: u64, seed: u64, with_stall: bool) -> Profile {
    let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut profile = empty();
    profile.frames = KERNEL.map(|name| frame(name.to_owned(), "[kernel]")).into();
    for at in 0..FUNCTIONS {
        let module = MODULES[(at % 4) as usize];
        let name = match at % 3 {
            0 => format!("std::vector<Item{at}>::push_back"),
            1 => format!("handle_request_{at}"),
            _ => format!("parse_{at}"),
        };
        profile.frames.push(frame(name, module));
    }
    // The same functions and stacks on both hosts of a comparison.
    let stacks = stacks(&mut profile, &mut Noise(7));
    let idle = profile.stacks.intern([FrameId(0)]);
    let copying = profile.stacks.intern([12, 13, 1, 2, 3, 4].map(FrameId));
    let waiting = profile.stacks.intern([12, 13, 1, 2, 11, 10].map(FrameId));
    let threads = profile.threads.len() as u64;
    let ticks = samples.div_ceil(CPUS);
    profile.span = Nanos(ticks * PERIOD);
    let mut running = [0_u32; CPUS as usize];
    let mut at_stack = [idle; CPUS as usize];
    for tick in 0..ticks {
        let stall = with_stall && is_stalled(tick, ticks);
        for cpu in 0..CPUS {
            let slot = cpu as usize;
            if noise.below(5) == 0 {
                running[slot] = u32::try_from(1 + noise.skewed(threads - 1)).unwrap_or(1);
            }
            if noise.below(3) != 0 {
                at_stack[slot] = match noise.below(3) {
                    0 => idle,
                    _ if with_stall && noise.below(25) == 0 => waiting,
                    _ => stacks[noise.skewed(STACKS) as usize],
                };
            }
            let (stack, thread) = match (stall && cpu == 3, at_stack[slot] == idle) {
                (true, _) => (copying, 1),
                (false, true) => (idle, 0),
                (false, false) => (at_stack[slot], running[slot]),
            };
            let time = tick * PERIOD + cpu * 1_700 + noise.below(9_000);
            push(&mut profile, time, thread, cpu, (0, PERIOD), stack);
            if stack != idle && noise.below(40) == 0 {
                push(&mut profile, time + 50, thread, cpu, (1, 1), stack);
            }
            if stack != idle && noise.below(60) == 0 {
                let wait = 50_000 + noise.skewed(40_000_000);
                push(&mut profile, time + 90, thread, cpu, (2, wait), stack);
            }
        }
    }
    profile.samples.sort_by_time();
    profile.counters = counters(ticks * PERIOD, &mut noise);
    profile
}

fn is_stalled(tick: u64, ticks: u64) -> bool {
    let from = ticks * STALL.0 / STALL.1;
    (from..from + FREQUENCY).contains(&tick)
}

fn empty() -> Profile {
    let event = |name: &str, unit, frequency| ProfileEvent {
        name: name.to_owned(),
        unit,
        frequency,
    };
    let mut profile = Profile {
        events: vec![
            event("cpu-clock", WeightUnit::Nanoseconds, Some(FREQUENCY)),
            event("page-faults", WeightUnit::Events, None),
            event("off-cpu (blocked)", WeightUnit::Nanoseconds, None),
        ],
        start: Nanos(1_700_000_000_250_000_000),
        has_times: true,
        command: vec!["./server".to_owned(), "--port=80".to_owned()],
        ..Profile::default()
    };
    profile.host.hostname = "generated".to_owned();
    profile.host.cpus = u32::try_from(CPUS).unwrap_or(1);
    let thread = |pid, tid, comm: &str| ProfileThread {
        pid,
        tid,
        comm: comm.into(),
        cgroup: Box::default(),
    };
    profile.threads.push(thread(0, 0, "swapper"));
    for (pid, comm) in [(100, "server"), (200, "redis-server"), (300, "nginx")] {
        profile
            .threads
            .extend((0..40).map(|at| thread(pid, pid + at, comm)));
    }
    profile
}

/// Stacks of five to forty frames that share their beginnings; the first are the most frequent.
fn stacks(profile: &mut Profile, noise: &mut Noise) -> Vec<NodeId> {
    let functions = profile.frames.len() as u64 - KERNEL.len() as u64;
    let mut made: Vec<NodeId> = vec![profile.stacks.intern([FrameId(12), FrameId(13)])];
    while (made.len() as u64) < STACKS {
        let mut node = made[noise.skewed(made.len() as u64) as usize];
        for _ in 0..1 + noise.below(4) {
            let function = KERNEL.len() as u64 + noise.skewed(functions);
            node = profile
                .stacks
                .child(node, FrameId(u32::try_from(function).unwrap_or(0)));
        }
        if noise.below(4) == 0 {
            for kernel in [1, 2, 3 + u32::try_from(noise.below(9)).unwrap_or(0)] {
                node = profile.stacks.child(node, FrameId(kernel));
            }
        }
        made.push(node);
    }
    made
}

fn push(
    profile: &mut Profile,
    time: u64,
    thread: u32,
    cpu: u64,
    (event, weight): (u8, u64),
    stack: NodeId,
) {
    profile.samples.push(ProfileSample {
        time,
        thread,
        cpu: u16::try_from(cpu).unwrap_or(0),
        event: event.into(),
        weight,
        stack,
    });
}

fn counters(span: u64, noise: &mut Noise) -> Vec<CounterSeries> {
    let mut series = |name: &str, usual: u64, counted: f64| CounterSeries {
        name: name.to_owned(),
        counted,
        points: (1..=span / (SECOND / 10))
            .map(|at| (at * (SECOND / 10), (usual + noise.below(usual / 4)) as f64))
            .collect(),
    };
    vec![
        series("cycles", 900_000_000, 1.0),
        series("instructions", 1_100_000_000, 1.0),
        series("cache-references", 9_000_000, 0.75),
        series("cache-misses", 700_000, 0.75),
        series("context-switches", 4_000, 1.0),
    ]
}

fn deep() -> Profile {
    let mut profile = empty();
    profile.frames = vec![
        frame("main".to_owned(), "server"),
        frame("walk".to_owned(), "server"),
        frame("leaf".to_owned(), "server"),
    ];
    let walk = |depth: usize| (0..=depth).map(|at| FrameId(u32::from(at > 0)));
    let nodes = [10_000, 9_000, 3].map(|depth| profile.stacks.intern(walk(depth)));
    let leaf = profile.stacks.child(nodes[0], FrameId(2));
    for at in 0..4_000 {
        let stack = if at % 5 == 4 { leaf } else { nodes[at % 3] };
        push(&mut profile, at as u64 * PERIOD, 1, 0, (0, PERIOD), stack);
    }
    profile.span = Nanos(4_000 * PERIOD);
    profile
}

fn hostile() -> Profile {
    let mut profile = empty();
    let names = [
        "</script><script>window.pwned=1</script>",
        "<img src=x onerror=window.pwned=1>",
        "a\u{202e}b\u{0}\u{7}\u{1b}[31m\n\t",
        "${alert(1)}{{7*7}}&lt;b&gt;",
        "__proto__",
        "constructor",
    ];
    profile.frames = names
        .map(|name| frame(name.to_owned(), "<b>lib</b>"))
        .into();
    profile
        .frames
        .push(frame("x".repeat(20_000), "javascript:window.pwned=1"));
    for thread in &mut profile.threads {
        thread.comm = "<i>\"'`sh</i>\u{202e}".into();
    }
    profile.command = vec!["<b>./a</b>".to_owned()];
    profile.events[0].name = "cpu-clock\"><script>window.pwned=1</script>".to_owned();
    profile.notes = vec!["<b>note</b>".to_owned()];
    profile.counters = vec![CounterSeries {
        name: "<b>c</b>".to_owned(),
        counted: 1.0,
        points: vec![(SECOND, 5.0)],
    }];
    for at in 0..3_000_u32 {
        let frames = (0..=at % 7).map(FrameId);
        let stack = profile.stacks.intern(frames);
        push(
            &mut profile,
            u64::from(at) * PERIOD,
            at % 100,
            0,
            (0, PERIOD),
            stack,
        );
    }
    profile.span = Nanos(3_000 * PERIOD);
    profile
}

/// A million threads of a hundred thousand processes, each sampled once or twice.
fn crowd() -> Profile {
    let mut profile = empty();
    profile.frames = vec![frame("main".to_owned(), "server")];
    let stack = profile.stacks.intern([FrameId(0)]);
    profile.threads = (0..1_000_000)
        .map(|tid| ProfileThread {
            pid: tid / 10,
            tid,
            comm: format!("worker-{}", tid % 5_000).into(),
            cgroup: Box::default(),
        })
        .collect();
    for at in 0..1_200_000_u32 {
        let time = u64::from(at) * 10_000;
        push(
            &mut profile,
            time,
            at % 1_000_000,
            u64::from(at % 8),
            (0, PERIOD),
            stack,
        );
    }
    profile.span = Nanos(12 * SECOND);
    profile
}
