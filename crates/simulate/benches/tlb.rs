//! Accesses per second of CPU time of the engines on each generated workload, and over all of them
//! together (all accesses by all the time they took, so that slow workloads weigh most).
//!
//! `cargo bench -p pagewise-simulate --bench tlb [-- NAME…]` (machines, workloads; all by default)
//!
//! `PEER` names a program that simulates Golden Cove's TLBs for small pages on a file of addresses and
//! prints CPU seconds (`bench/tlb/peer` builds one): it takes turns with our engine.

use pagewise_simulate::tlb::workload::{NAMES, named};
use pagewise_simulate::tlb::{Engine, Exact, Machine, PageSize, Reuse, Space};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsStr;
use std::process::Command;

/// Accesses of each workload; the first quarter warms up.
const ACCESSES: usize = 1 << 23;
const ROUNDS: usize = 5;

/// CPU seconds of this thread: other work on the machine does not count.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The median over rounds of the CPU seconds that `access` takes for all but the first quarter.
fn seconds<E>(accesses: &[u64], new: impl Fn() -> E, access: impl Fn(&mut E, &[u64])) -> f64 {
    let (warm, rest) = accesses.split_at(accesses.len() / 4);
    let round = |_| {
        let mut engine = new();
        access(&mut engine, warm);
        let start = cpu_seconds();
        access(&mut engine, rest);
        cpu_seconds() - start
    };
    let mut times: Vec<f64> = (0..ROUNDS).map(round).collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn exact(machine: &Machine, space: Space, accesses: &[u64]) -> f64 {
    let new = || {
        let mut engine = Exact::new(machine);
        engine.add(space);
        engine
    };
    seconds(accesses, new, |engine, part| engine.access(0, part))
}

fn sampled(machine: &Machine, accesses: &[u64]) -> f64 {
    let new = || Reuse::new(machine.small_shift(), 1 << 16, 6);
    seconds(accesses, new, Reuse::access)
}

/// CPU seconds of the peer for all but the first quarter, median of rounds.
fn peer(program: &OsStr, accesses: &[u64]) -> f64 {
    let path = std::env::temp_dir().join(format!("pagewise-tlb-{}", std::process::id()));
    let bytes: Vec<u8> = accesses.iter().flat_map(|a| a.to_ne_bytes()).collect();
    std::fs::write(&path, bytes).expect("a temporary file");
    let round = |_| {
        let output = Command::new(program).arg(&path).output();
        let output = output.expect("PEER names a program");
        let text = String::from_utf8_lossy(&output.stdout);
        let seconds = text.split_whitespace().next().map(str::parse);
        seconds.expect("it prints").expect("seconds")
    };
    let mut times: Vec<f64> = (0..ROUNDS).map(round).collect();
    times.sort_by(f64::total_cmp);
    std::fs::remove_file(&path).expect("it is there");
    times[ROUNDS / 2]
}

fn row(name: &str, times: &[f64], accesses: f64) {
    print!("{name:12}");
    for time in times {
        print!("{:9.1}", accesses / time / 1e6);
    }
    println!();
}

fn bench(machine: &Machine, spaces: &[(&str, Space)], workloads: &[&str]) {
    print!("{}, M accesses/s\n{:12}", machine.name, "huge pages");
    spaces.iter().for_each(|(pages, _)| print!("{pages:>9}"));
    let peer_of = std::env::var_os("PEER").filter(|_| machine.name.contains("Golden Cove"));
    print!("{:>9}", "sampled");
    println!("{}", if peer_of.is_some() { "     peer" } else { "" });
    let measured = (ACCESSES - ACCESSES / 4) as f64;
    let mut all = vec![0.0; spaces.len() + 1 + usize::from(peer_of.is_some())];
    for name in workloads {
        let mut workload = named(name, None, 1).expect("a workload");
        let mut accesses = vec![0; ACCESSES];
        workload.fill(&mut accesses);
        let exact = spaces
            .iter()
            .map(|(_, space)| exact(machine, *space, &accesses));
        let mut times: Vec<f64> = exact.collect();
        times.push(sampled(machine, &accesses));
        times.extend(peer_of.as_ref().map(|program| peer(program, &accesses)));
        row(name, &times, measured);
        for (all, time) in all.iter_mut().zip(&times) {
            *all += time;
        }
    }
    let suite = measured * workloads.len() as f64;
    row("all", &all, suite);
    let exact: f64 = all[..spaces.len()].iter().sum();
    let rate = suite * spaces.len() as f64 / exact / 1e6;
    println!("exact, all workloads and pages: {rate:.1}\n");
}

fn main() {
    use PageSize::{Huge, Small};
    let native = [("none", Space::native(Small)), ("all", Space::native(Huge))];
    let guest = [
        ("none", Space::guest(Small, Small)),
        ("guest's", Space::guest(Huge, Small)),
        ("host's", Space::guest(Small, Huge)),
        ("both", Space::guest(Huge, Huge)),
    ];
    let machines: [(&str, &[(&str, Space)]); 2] = [("golden-cove", &native), ("3a4000", &guest)];
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let is_chosen = |name: &&str| chosen.iter().any(|word| word == name);
    let mut workloads: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    if workloads.iter().any(is_chosen) {
        workloads.retain(|name| is_chosen(name));
    }
    let is_any = machines.iter().any(|(name, _)| is_chosen(name));
    for (name, spaces) in machines {
        if !is_any || is_chosen(&name) {
            let machine = Machine::named(name).expect("a shipped machine");
            bench(&machine, spaces, &workloads);
        }
    }
}
