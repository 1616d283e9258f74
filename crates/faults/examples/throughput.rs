//! How fast, and in how much memory, faults are attributed.
//!
//! `cargo run --release -p pagewise-faults --example throughput [FAULTS]` plays that many faults
//! (10⁷ by default), each with begin and end and a stack of 20 frames out of 500, on blocks of
//! 64 MiB that are mapped, touched and unmapped, and prints seconds of CPU time and the peak
//! resident set. Making the events is part of the time.

use pagewise_faults::Attributor;
use pagewise_model::event::{
    Callchain, Event, EventKind, EventSource, Mmap, Sample, Sampling, SourceIndex,
};
use pagewise_model::recording::Sidecar;
use pagewise_model::units::Nanos;
use std::time::Instant;

const PAGE: u64 = 4096;
const BLOCK_PAGES: u64 = 16_384;
const STACKS: u64 = 500;

fn source(name: &str, kind: EventKind) -> EventSource {
    EventSource {
        name: name.to_owned(),
        kind,
        sampling: Sampling::Every(1),
        has_callchain: name == "page-faults",
        user_only: false,
        has_switches: false,
    }
}

fn tracepoint(name: &str) -> EventSource {
    source(name, EventKind::Tracepoint(name.to_owned()))
}

fn sidecar() -> Sidecar {
    let text = r#"{"schema_version":1,"command":[],"pid":1,"started_unix_ms":0,"started_clock":0,
        "cost":{"wall":0,"user":0,"system":0,"minor_faults":0,"major_faults":0,"max_rss":0,
        "voluntary_switches":0,"involuntary_switches":0},"ending":"running",
        "timeline":{"interval":0,"points":[],"pressure":[]},"allocators":[],
        "host":{"hostname":"","kernel":"","architecture":"","cpu":"","cpus":1,"memory_bytes":0,
        "page_size":4096,"settings":{}},"losses":{},
        "collection":{"mode":"","latency_windows":[],"own_cost":0,"notes":[]}}"#;
    serde_json::from_str(text).expect("a sidecar in its own schema")
}

struct Player {
    attributor: Attributor,
    clock: u64,
    chains: Vec<Vec<u8>>,
}

impl Player {
    fn sample(&mut self, source: u16, address: u64, stack: Option<u64>, raw: &[u8]) {
        self.clock += 700;
        let chain = stack.and_then(|n| self.chains.get(usize::try_from(n % STACKS).unwrap_or(0)));
        self.attributor.event(&Event::Sample(Sample {
            source: SourceIndex(source),
            pid: 1,
            tid: 1,
            time: Nanos(self.clock),
            cpu: Some(0),
            cgroup: 0,
            ip: 0x40_1000,
            mode: pagewise_model::event::CpuMode::User,
            address,
            period: 1,
            callchain: chain.map_or(Callchain::default(), |chain| {
                Callchain::from_le_bytes(chain)
            }),
            raw,
            user_stack: None,
        }));
    }

    fn map(&mut self, start: u64, length: u64) {
        self.clock += 700;
        self.attributor.event(&Event::Mmap(Mmap {
            pid: 1,
            tid: 1,
            time: Nanos(self.clock),
            start,
            length,
            file_offset: 0,
            protection: 3,
            flags: 2,
            path: b"//anon",
            build_id: None,
            file: None,
            synthetic: false,
            executable: false,
        }));
    }

    fn round(&mut self, start: u64, pages: u64) {
        self.map(start, pages * PAGE);
        for page in 0..pages {
            let address = start + page * PAGE;
            self.sample(0, address, Some(page), &[]);
            self.sample(1, address, None, &[]);
        }
        let mut raw = vec![0_u8; 16];
        raw.extend_from_slice(&start.to_le_bytes());
        raw.extend_from_slice(&(pages * PAGE).to_le_bytes());
        self.sample(2, 0, None, &raw);
    }
}

fn chain(number: u64) -> Vec<u8> {
    (0..20)
        .flat_map(|frame| (0x40_0000 + frame * 64 + number * 4096).to_le_bytes())
        .collect()
}

fn peak_rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn main() {
    let wanted: u64 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(10_000_000);
    let sources = [
        source("page-faults", EventKind::PageFault),
        source("minor-faults", EventKind::MinorFault),
        tracepoint("syscalls:sys_enter_munmap"),
        tracepoint("syscalls:sys_enter_brk"),
        tracepoint("syscalls:sys_enter_madvise"),
    ];
    let mut player = Player {
        attributor: Attributor::new(&sources, &sidecar()),
        clock: 1,
        chains: (0..STACKS).map(chain).collect(),
    };
    let begun = Instant::now();
    // Half of the blocks churn at one address; the others are touched once, side by side.
    for round in 0..wanted.div_ceil(BLOCK_PAGES) {
        let fresh = 0x6000_0000_0000 + round * BLOCK_PAGES * PAGE;
        let start = if round % 2 == 0 {
            0x7f00_0000_0000
        } else {
            fresh
        };
        player.round(start, BLOCK_PAGES);
    }
    let attribution = player.attributor.finish();
    let seconds = begun.elapsed().as_secs_f64();
    println!("faults attributed: {}", attribution.tally.samples);
    println!("seconds: {seconds:.2}");
    println!("unique stacks: {}", attribution.stacks().stacks().len() - 1);
    match peak_rss_kib() {
        Some(kib) => println!("peak resident: {} MiB", kib / 1024),
        None => println!("peak resident: unknown"),
    }
    for (cause, weight) in &attribution.tally.causes {
        println!("{}: {}", cause.label(), weight.sum);
    }
}
