//! The cost of naming addresses and unwinding stacks: 85,000 unique addresses in the libraries of
//! this machine, and the stack copies of a short recording.
//!
//! `cargo bench -p pagewise-linux --bench symbols`; the second part needs perf.

use pagewise_formats::perf_data::PerfData;
use pagewise_linux::symbols::Symbolizer;
use pagewise_linux::symbols::unwind::StackFollower;
use pagewise_model::address_space::{AddressSpace, Mapping};
use pagewise_model::event::{CpuMode, Event};
use pagewise_model::stack::FrameKey;
use pagewise_model::symbol::Name;
use std::collections::HashMap;
use std::process::Command;
use std::time::Instant;

const ADDRESSES: u64 = 85_000;

fn main() {
    names();
    stacks();
}

fn names() {
    let mut space = AddressSpace::default();
    let mut start = 0x1000_0000;
    let directory = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let files = std::fs::read_dir(&directory).map(|entries| {
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths
            .filter(|path| path.to_string_lossy().contains(".so"))
            .collect::<Vec<_>>()
    });
    for path in files.unwrap_or_default().into_iter().take(200) {
        let length = std::fs::metadata(&path).map_or(0, |m| m.len()) & !0xfff;
        space.map(Mapping {
            start,
            end: start + length,
            file_offset: 0,
            protection: 5,
            flags: 2,
            path: path.to_string_lossy().into(),
            build_id: None,
            file: None,
        });
        start += length;
    }
    let step = ((start - 0x1000_0000) / ADDRESSES).max(1);
    let keys = (0..ADDRESSES).map(|n| FrameKey {
        pid: 1,
        mode: CpuMode::User,
        address: 0x1000_0000 + n * step,
    });
    let begin = Instant::now();
    let table = Symbolizer::new().resolve(keys.clone(), &HashMap::from([(1, space)]));
    let took = begin.elapsed();
    let names = keys.filter_map(|key| table.get(&key));
    let named = names
        .filter(|name| matches!(name, Name::Known { .. }))
        .count();
    println!(
        "{} unique addresses, {named} named: {took:.2?}",
        table.len()
    );
}

fn stacks() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("perf.data");
    let recorded = Command::new("perf")
        .args(["record", "-q", "-m", "8M", "-e", "page-faults:u", "-c", "1"])
        .args(["--call-graph", "dwarf,8192", "-o"])
        .arg(&file)
        .args([
            "--",
            "awk",
            "BEGIN { for (i = 0; i < 100000; i++) a[i] = i }",
        ])
        .status();
    if !recorded.is_ok_and(|status| status.success()) {
        return println!("SKIPPED stacks: perf cannot record here");
    }
    let bytes = std::fs::read(&file).expect("perf wrote it");
    let data = PerfData::parse(&bytes).expect("perf wrote it");
    let mut follower = StackFollower::new(std::env::consts::ARCH);
    let (mut stacks, mut frames) = (0_u32, 0);
    let begin = Instant::now();
    let losses = data.for_each(|event| {
        let unwound = follower.take(&event);
        if let (Event::Sample(_), Some(unwound)) = (event, unwound) {
            stacks += 1;
            frames += unwound.len();
        }
    });
    let took = begin.elapsed();
    println!(
        "{stacks} stacks, {frames} frames unwound: {took:.2?}, {:.2?} each",
        took / stacks.max(1)
    );
    drop(losses);
}
