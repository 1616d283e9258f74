//! Time conservation over a million faults: self + children + interrupts + off the CPU = total.
//!
//! `cargo run --release -p pagewise-traces --example conservation -- [TRACE.txt[.zst]…]` reads
//! generated faults, whose parts are known, and then real traces, and shows violations: calls whose
//! parts exceed their whole by more than the printed precision, and sums that are off by more than
//! a tick a fault. Exits with 1 where there are any.

use pagewise_formats::function_graph::{Cores, read_on};
use pagewise_traces::fault_paths::{Collector, FaultPaths, analyse, estimate};
use std::fmt::Write;
use std::io::{self, Read};
use std::process::ExitCode;

const FAULTS: u64 = 1_000_000;

/// Text of random faults on one CPU, made as it is read, and the sums of what is in it, ns.
struct Generated {
    random: u64,
    now: u64,
    faults: u64,
    total: u64,
    own: u64,
    interrupts: u64,
    blocked: u64,
    text: Vec<u8>,
    at: usize,
}

impl Generated {
    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 27)) % limit
    }

    fn line(&self, out: &mut String, ns: Option<u64>, depth: usize, call: &str) {
        let span = ns.map_or_else(String::new, |ns| match ns {
            ..10_000_000 => format!("{}.{:03} us", ns / 1000, ns % 1000),
            _ => format!("{}.{:02} us", ns / 1000, ns % 1000 / 10),
        });
        let (s, us) = (self.now / 1_000_000_000, self.now / 1000 % 1_000_000);
        let _ = writeln!(
            out,
            "{s:5}.{us:06} |   0)    bash-100    |   {span:12}|  {:1$}{call}",
            "",
            depth * 2
        );
    }

    /// A call with its children; how long it took. `own` is what it spent itself.
    fn call(&mut self, out: &mut String, depth: usize) -> u64 {
        let own = self.below(3000) + 40;
        let begin = self.now;
        self.now += own;
        let mut total = own;
        let name = ["handle_mm_fault", "do_anonymous_page", "charge", "alloc"][depth.min(3)];
        let open = out.len();
        self.line(out, None, depth, &format!("{name}() {{"));
        let behind = out.len();
        for _ in 0..self.below(if depth == 0 { 5 } else { 3 }) {
            total += match self.below(40) {
                0 => self.interrupt(out, depth + 1),
                1 => self.sleep(out, depth + 1),
                _ if depth < 4 => self.call(out, depth + 1),
                _ => 0,
            };
        }
        if out.len() == behind {
            out.truncate(open);
            // A leaf's line bears the time at which it began.
            let end = std::mem::replace(&mut self.now, begin);
            self.line(out, Some(total), depth, &format!("{name}();"));
            self.now = end;
        } else {
            self.line(out, Some(total), depth, &format!("}} /* {name} */"));
        }
        if depth == 0 {
            self.own += own;
        }
        total
    }

    fn interrupt(&mut self, out: &mut String, depth: usize) -> u64 {
        let ns = self.below(9000) + 100;
        self.line(out, Some(ns), depth, "irq_enter_rcu();");
        self.now += ns;
        self.interrupts += ns;
        ns
    }

    /// Off the CPU for whole microseconds, at whole microseconds.
    fn sleep(&mut self, out: &mut String, depth: usize) -> u64 {
        let rounded = self.now.next_multiple_of(1000) - self.now;
        self.now += rounded;
        if depth == 1 {
            self.own += rounded;
        }
        let ns = (self.below(30_000) + 1) * 1000;
        let call = |from: &str, to: &str| {
            format!(
                "/* sched_switch: prev_comm={from} prev_prio=120 prev_state=S ==> next_comm={to} next_prio=120 */"
            )
        };
        let away = call("bash prev_pid=100", "x next_pid=7");
        self.line(out, None, depth, &away);
        self.now += ns;
        let back = call("x prev_pid=7", "bash next_pid=100");
        let line = out.len();
        self.line(out, None, 0, &back);
        let other = out[line..].replace("bash-100", "   x-7  ");
        out.truncate(line);
        out.push_str(&other);
        self.blocked += ns;
        rounded + ns
    }
}

impl Read for Generated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.text.len() && self.faults < FAULTS {
            let mut out = String::new();
            for _ in 0..100 {
                self.total += self.call(&mut out, 0);
                self.now += 1000;
                self.faults += 1;
            }
            (self.text, self.at) = (out.into_bytes(), 0);
        }
        let rest = &self.text[self.at..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

fn findings(input: impl Read + Send) -> io::Result<FaultPaths> {
    let mut collector = Collector::default();
    let summary = read_on(Cores::new(2), input, &mut collector)?;
    Ok(analyse(&collector, &summary, estimate(&collector)))
}

fn main() -> io::Result<ExitCode> {
    let mut made = Generated {
        random: 1,
        now: 5_000_000_000,
        faults: 0,
        total: 0,
        own: 0,
        interrupts: 0,
        blocked: 0,
        text: Vec::new(),
        at: 0,
    };
    let found = findings(&mut made)?;
    let split = found.split;
    let children = made.total - made.own - made.interrupts - made.blocked;
    let mut wrong = found.faults != made.faults || found.conservation.violations > 0;
    println!(
        "{} of {} generated faults, {} violations",
        found.faults, made.faults, found.conservation.violations
    );
    // Long calls are printed in ticks of 10 ns and more.
    for (part, planted, got, tick) in [
        ("total", made.total, split.total_ns, 10),
        ("self", made.own, split.self_ns, 10),
        ("children", children, split.children_ns, 10),
        ("interrupts", made.interrupts, split.interrupts_ns, 1),
        ("blocked", made.blocked, split.blocked_ns, 1),
    ] {
        let is_off = planted.abs_diff(got) > tick * made.faults;
        wrong |= is_off;
        let verdict = if is_off { "OFF" } else { "ok" };
        println!("  {part}: {planted} ns planted, {got} found: {verdict}");
    }
    let mut real = (0, 0);
    for path in std::env::args().skip(1) {
        let file = std::fs::File::open(&path)?;
        let input: Box<dyn Read + Send> = match path.ends_with(".zst") {
            true => Box::new(zstd::Decoder::new(file)?),
            false => Box::new(file),
        };
        let found = findings(input)?;
        println!(
            "{path}: {} faults, {} violations",
            found.faults, found.conservation.violations
        );
        real = (
            real.0 + found.faults,
            real.1 + found.conservation.violations,
        );
    }
    println!("real traces: {} faults, {} violations", real.0, real.1);
    wrong |= real.1 > 0;
    Ok(ExitCode::from(u8::from(wrong)))
}
