//! How fast perf.data is read: 10⁷ plain fault samples, and 2·10⁶ with chains of 16 frames.
//!
//! `cargo bench -p pagewise-formats --bench perf_data [-- SAMPLES]`
//!
//! The files are made here, as two rings drained in turn. Prints CPU seconds, samples per CPU
//! second and the peak resident memory of a process that only reads. Each measurement runs in a
//! child process of its own with the file in its heap; the file's size is printed separately and
//! not counted. If perf is installed, `perf report` and `perf script` run on a tenth of the file
//! for comparison.

use pagewise_formats::perf_data::{Features, PerfData, SourceAttr, Writer, sample_type as bit};
use pagewise_model::event::Event;
use std::fs::File;
use std::io::{BufWriter, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CHILD: &str = "PAGEWISE_BENCH_READ";

fn main() {
    if let Ok(file) = std::env::var(CHILD) {
        return read(Path::new(&file));
    }
    let samples = std::env::args().filter_map(|a| a.parse().ok()).next();
    let samples: u64 = samples.unwrap_or(10_000_000);
    let directory = tempfile::tempdir().expect("temporary directory");
    measure(directory.path(), "plain", samples, 0);
    measure(directory.path(), "chains of 16", samples / 5, 16);
}

fn measure(directory: &Path, what: &str, samples: u64, frames: usize) {
    let file = write(directory, samples, frames);
    let size = std::fs::metadata(&file).expect("just written").len() >> 20;
    println!("{what}: {samples} samples, {size} MiB");
    let own = std::env::current_exe().expect("Linux");
    let mut child = Command::new(own);
    child.env(CHILD, &file);
    report("pagewise", &mut child, samples);
    let tenth = write(directory, samples / 10, frames);
    for arguments in [
        &["report", "--stdio", "--sort", "comm"][..],
        &["script", "-F", "tid,time,event"],
    ] {
        let mut perf = Command::new("perf");
        perf.args(arguments)
            .arg("-i")
            .arg(&tenth)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        report(
            &format!("perf {} (a tenth)", arguments[0]),
            &mut perf,
            samples / 10,
        );
    }
}

/// Runs a command and prints what it took.
fn report(who: &str, command: &mut Command, samples: u64) {
    let before = children();
    match command.status() {
        Ok(status) if status.success() => {}
        other => return println!("  {who:22} not measured: {other:?}"),
    }
    let after = children();
    let cpu = after - before;
    let rate = samples as f64 / cpu / 1e6;
    println!("  {who:22} {cpu:6.2} CPU s  {rate:7.2} M samples/s");
}

/// CPU seconds of all children so far: `cutime` and `cstime` of proc(5), in ticks of 10 ms.
fn children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit(')').next().expect("a name");
    let ticks = after_name.split_ascii_whitespace().skip(13).take(2);
    ticks
        .map(|t| t.parse::<f64>().expect("a number"))
        .sum::<f64>()
        / 100.0
}

/// The child: reads the whole file and prints its own peak resident memory.
fn read(path: &Path) {
    let mut bytes = Vec::new();
    let mut file = File::open(path).expect("just written");
    file.read_to_end(&mut bytes).expect("just written");
    let data = PerfData::parse(&bytes).expect("a perf.data file");
    let (mut samples, mut sum) = (0_u64, 0_u64);
    let losses = data.for_each(|event| {
        if let Event::Sample(s) = event {
            samples += 1;
            sum = sum
                .wrapping_add(s.address ^ s.time.0)
                .wrapping_add(s.callchain.words().sum());
        }
    });
    assert!(losses.expect("readable").is_empty());
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: usize = peak
        .and_then(|p| p.split_ascii_whitespace().next()?.parse().ok())
        .unwrap_or(0);
    let beside = (peak >> 10).saturating_sub(bytes.len() >> 20);
    println!("  {samples} samples read (sum {sum:x}), peak {beside} MiB beside the file's bytes");
}

/// Two rings that take turns with 4096 samples each.
fn write(directory: &Path, samples: u64, frames: usize) -> PathBuf {
    let path = directory.join(format!("{samples}-{frames}.data"));
    let out = BufWriter::with_capacity(1 << 20, File::create(&path).expect("temporary file"));
    let sources = [SourceAttr {
        name: "page-faults".into(),
        attr: attr(frames),
        ids: vec![1, 2],
    }];
    let mut writer = Writer::new(out, &sources).expect("disk");
    let mut record = Vec::new();
    for turn in 0..samples.div_ceil(8192) {
        for ring in 0..2 {
            for n in 0..4096.min((samples - turn * 8192).saturating_sub(ring * 4096)) {
                let time = 1 + (turn * 4096 + n) * 100 + ring * 50;
                sample(&mut record, ring, time, n, frames);
                writer.records(&record).expect("disk");
            }
        }
        writer.finished_round().expect("disk");
    }
    writer.finish(&Features::default()).expect("disk");
    path
}

fn attr(frames: usize) -> Vec<u8> {
    let chain = if frames > 0 { bit::CALLCHAIN } else { 0 };
    let fields = bit::IDENTIFIER | bit::IP | bit::TID | bit::TIME | bit::ADDR | bit::PERIOD | chain;
    let mut attr = vec![0; 136];
    let mut put = |at: usize, word: u64| attr[at..at + 8].copy_from_slice(&word.to_le_bytes());
    put(0, 1 | (136 << 32));
    put(8, 2);
    put(16, 1);
    put(24, fields);
    put(40, 1 << 18);
    attr
}

fn sample(out: &mut Vec<u8>, ring: u64, time: u64, n: u64, frames: usize) {
    out.clear();
    let words = 6 + if frames > 0 { 1 + frames } else { 0 };
    let header = 9 | (2 << 32) | ((8 + words as u64 * 8) << 48);
    let ids = 1000 | ((1000 + ring) << 32);
    let address = 0x7f00_0000_0000 + n * 4096;
    for word in [header, ring + 1, 0x40_1000, ids, time, address, 1] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    if frames > 0 {
        out.extend_from_slice(&(frames as u64).to_le_bytes());
        for frame in 0..frames as u64 {
            out.extend_from_slice(&(0x40_1000 + frame * 64 + n % 32).to_le_bytes());
        }
    }
}
