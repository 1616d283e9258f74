//! The results of the readers for everything in the repository, intact and damaged: each event,
//! tree and sample, as a fingerprint. Any change shows here, intended or not.
//!
//! `UPDATE_GOLDEN=1 cargo test -p pagewise-model --test readings` rewrites `fixtures/readings`;
//! with `READINGS=FOLDER` each test writes what it read as text, for comparison with the previous
//! build.

use pagewise_formats::function_graph::{CallTree, Cores, Line, Names, Sink, Span, Tail, read_on};
use pagewise_formats::memory_trace::{self, Mapping, Writer};
use pagewise_formats::perf_data::PerfData;
use pagewise_formats::trace_dat::TraceDat;
use pagewise_formats::{folded, function_graph, perf_script, sniff};
use pagewise_model::event::Event;
use pagewise_model::profile::Profile;
use pagewise_model::trace_note::TraceNote;
use pagewise_stats::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// FNV-1a of what is written to it, and its lines if they are requested.
struct Reading {
    hash: u64,
    lines: u64,
    text: Option<String>,
}

impl Reading {
    fn new() -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            lines: 0,
            text: std::env::var_os("READINGS").map(|_| String::new()),
        }
    }

    fn line(&mut self, words: fmt::Arguments<'_>) {
        self.lines += 1;
        writeln!(self, "{words}").expect("it takes all");
    }
}

impl fmt::Write for Reading {
    fn write_str(&mut self, words: &str) -> fmt::Result {
        for byte in words.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        if let Some(text) = &mut self.text {
            text.push_str(words);
        }
        Ok(())
    }
}

macro_rules! message {
    ($reading:expr, $($words:tt)*) => { $reading.line(format_args!($($words)*)) };
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder with one of these endings, by their path in the repository; links are
/// skipped, since their targets are found anyway.
fn files(folder: &str, endings: &[&str]) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the repository") {
            let entry = entry.expect("it can be read");
            let kind = entry.file_type().expect("it has a type");
            let path = entry.path();
            let name = path.to_string_lossy().into_owned();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
                let bytes = std::fs::read(&path).expect("it can be read");
                let bytes = match name.ends_with(".zst") {
                    true => zstd::decode_all(&*bytes).expect("it unpacks"),
                    false => bytes,
                };
                let name = path.strip_prefix(root()).expect("below it");
                found.push((name.to_string_lossy().into_owned(), bytes));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{folder}");
    found
}

/// The file as it is, and this many times damaged: bits flipped, stretches removed, duplicated or
/// moved, the end cut off.
fn and_damaged(bytes: &[u8], times: u64) -> Vec<Vec<u8>> {
    let mut all = vec![bytes.to_vec()];
    for seed in 0..times {
        let mut random = Random::seeded(seed);
        let mut damaged = bytes.to_vec();
        if damaged.is_empty() {
            break;
        }
        let at = random.below(damaged.len());
        let until = (at + 1 + random.below(200)).min(damaged.len());
        match seed % 5 {
            0 => {
                for _ in 0..3 {
                    let at = random.below(damaged.len());
                    damaged[at] ^= 1 << random.below(8);
                }
            }
            1 => drop(damaged.drain(at..until)),
            2 => drop(damaged.splice(at..at, bytes[at..until].to_vec())),
            3 => damaged.truncate(at),
            _ => {
                let cut: Vec<u8> = damaged.drain(at..until).collect();
                let to = random.below(damaged.len() + 1);
                drop(damaged.splice(to..to, cut));
            }
        }
        all.push(damaged);
    }
    all
}

/// At most this many bytes, up to the end of a line.
fn beginning(bytes: &[u8], most: usize) -> &[u8] {
    let cut = &bytes[..bytes.len().min(most)];
    let end = cut.iter().rposition(|&byte| byte == b'\n');
    end.map_or(cut, |end| &cut[..=end])
}

/// Compares the reading of each file with the stored one.
fn hold(kind: &str, found: &[(String, Vec<u8>)], damages: u64, read: fn(&[u8], &mut Reading)) {
    let kept = root().join(format!("crates/formats/tests/fixtures/readings/{kind}.txt"));
    let mut now = String::new();
    for (name, bytes) in found {
        for (number, bytes) in and_damaged(bytes, damages).iter().enumerate() {
            let mut reading = Reading::new();
            read(bytes, &mut reading);
            let _ = writeln!(
                now,
                "{name} {number}: {} {:016x}",
                reading.lines, reading.hash
            );
            let folder = std::env::var_os("READINGS").map(PathBuf::from);
            if let (Some(folder), Some(text)) = (folder, reading.text) {
                let name = format!("{}.{number}", name.replace('/', "-"));
                std::fs::write(folder.join(name), text).expect("a folder that exists");
            }
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(kept.parent().expect("a folder")).expect("a folder");
        std::fs::write(&kept, &now).expect("it is written");
    }
    let then = std::fs::read_to_string(&kept).expect("it was written before");
    let by_file = |text: &str| -> BTreeMap<String, String> {
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        lines
            .map(|(file, read)| (file.to_owned(), read.to_owned()))
            .collect()
    };
    let (now, then) = (by_file(&now), by_file(&then));
    let files = now.keys().chain(then.keys());
    let others: BTreeSet<&String> = files
        .filter(|file| now.get(*file) != then.get(*file))
        .collect();
    assert!(
        others.is_empty(),
        "{} readings differ (READINGS=FOLDER writes them): {:#?}",
        others.len(),
        others.iter().take(8).collect::<Vec<_>>()
    );
}

/// Trees and what is between them.
struct Trees<'a>(&'a mut Reading);

impl Sink for Trees<'_> {
    fn tree(&mut self, tree: &CallTree, names: &Names) {
        message!(
            self.0,
            "{:?} {:?} {:?} {:?} {} {:?} {:?} {:?}",
            tree.pid,
            tree.cpu,
            tree.start,
            tree.end,
            tree.timed,
            tree.off_cpu,
            tree.interrupts,
            tree.details
        );
        for node in &tree.nodes {
            let name = names.text(node.name());
            message!(
                self.0,
                " {} {name} {} {:?} {}",
                node.depth,
                node.end,
                node.span,
                node.children_ns
            );
        }
    }

    fn bare_close(&mut self, tail: Tail, depth: u32, span: Option<Span>) {
        message!(self.0, "end {tail:?} {depth} {span:?}");
    }

    fn event(&mut self, line: &Line<'_>, text: &[u8]) {
        message!(self.0, "event {line:?} {}", String::from_utf8_lossy(text));
    }

    fn note(&mut self, note: TraceNote) {
        message!(self.0, "note {note:?}");
    }
}

fn summary(summary: &function_graph::Summary, reading: &mut Reading) {
    message!(
        reading,
        "{} names {:?} {:?}",
        summary.names.len(),
        summary.counts,
        summary.incomplete
    );
}

fn text_of_a_trace(bytes: &[u8], reading: &mut Reading) {
    message!(
        reading,
        "{} {:?}",
        function_graph::looks_like(bytes),
        sniff::sniff(bytes)
    );
    for cores in [
        Cores {
            threads: 1,
            piece: 1 << 20,
        },
        Cores {
            threads: 2,
            piece: 4_000,
        },
    ] {
        let found = read_on(cores, bytes, &mut Trees(reading)).expect("memory is readable");
        summary(&found, reading);
    }
}

#[test]
fn of_texts_of_traces() {
    let mut found = files("tests/fixtures/traces", &[".txt.zst", ".head.zst"]);
    found.extend(files(
        "crates/formats/tests/fixtures/function_graph",
        &[".txt"],
    ));
    for (_, bytes) in &mut found {
        *bytes = beginning(bytes, 30_000).to_vec();
    }
    hold("trace_texts", &found, 5, text_of_a_trace);
}

/// Longer stretches, which contain waits, interrupts and losses.
#[test]
fn of_long_texts_of_traces() {
    let mut found = files("tests/fixtures/traces", &[".txt.zst"]);
    for (_, bytes) in &mut found {
        *bytes = beginning(bytes, 600_000).to_vec();
    }
    hold("long_trace_texts", &found, 0, text_of_a_trace);
}

fn trace_dat(bytes: &[u8], reading: &mut Reading) {
    match TraceDat::parse(bytes) {
        Ok(trace) => {
            let found = trace.read(&mut Trees(reading));
            summary(&found, reading);
            let comms: Vec<_> = (0..5_000).filter_map(|pid| trace.comm(pid)).collect();
            message!(reading, "{comms:?}");
        }
        Err(error) => message!(reading, "{error}"),
    }
}

#[test]
fn of_binary_traces() {
    let found = files("tests/fixtures/traces", &[".dat.zst"]);
    hold("binary_traces", &found, 10, trace_dat);
}

fn recording(bytes: &[u8], reading: &mut Reading) {
    let data = match PerfData::parse(bytes) {
        Ok(data) => data,
        Err(error) => return message!(reading, "{error}"),
    };
    for source in data.sources() {
        message!(reading, "{source:?}");
    }
    message!(
        reading,
        "{:?} {:?} {:?} {:?}",
        data.origin(),
        data.build_ids(),
        data.sidecar(),
        data.sidecar_error()
    );
    let mut done = 0;
    let left_out = data.read(
        |event| {
            message!(reading, "{event:?}");
            if let Event::Sample(sample) = event {
                let frames: Vec<_> = sample.callchain.frames().collect();
                message!(reading, "{frames:x?}");
            }
        },
        |offset| done = offset,
    );
    message!(reading, "{done} {left_out:?}");
}

#[test]
fn of_recordings() {
    let mut found = files("crates/formats/tests/fixtures", &[".data.zst"]);
    for (_, bytes) in &found {
        assert!(PerfData::parse(bytes).is_ok());
    }
    hold("recordings", &found, 40, recording);
    found = files("crates/answer/tests/fixtures/recordings", &[".data.zst"]);
    hold("own_recordings", &found, 3, recording);
}

fn profile(profile: &Profile, reading: &mut Reading) {
    for event in &profile.events {
        message!(reading, "{event:?}");
    }
    message!(
        reading,
        "{:?} {:?} {} {:?} {:?} {:?} {:?}",
        profile.start,
        profile.span,
        profile.has_times,
        profile.command,
        profile.observed,
        profile.host,
        profile.losses
    );
    message!(reading, "{:?} {:?}", profile.notes, profile.contention);
    for sample in profile.samples.iter() {
        let thread = &profile.threads[sample.thread as usize];
        message!(
            reading,
            "{} {thread:?} {} {} {}",
            sample.time,
            sample.cpu,
            sample.event,
            sample.weight
        );
        for frame in profile.stacks.frames(sample.stack) {
            message!(reading, " {:?}", profile.frames.get(frame.0 as usize));
        }
    }
}

fn script(bytes: &[u8], reading: &mut Reading) {
    message!(
        reading,
        "{} {:?}",
        perf_script::looks_like(bytes),
        sniff::sniff(bytes)
    );
    let found = perf_script::read(bytes).expect("memory is readable");
    profile(&found, reading);
    let on_two = perf_script::read_on(2, bytes).expect("memory is readable");
    message!(reading, "{:?}", on_two.samples == found.samples);
}

#[test]
fn of_texts_of_perf() {
    let found = files("crates/formats/tests/fixtures/perf_script", &[".txt"]);
    hold("perf_script", &found, 25, script);
}

fn stacks(bytes: &[u8], reading: &mut Reading) {
    message!(
        reading,
        "{} {:?}",
        folded::looks_like(bytes),
        sniff::sniff(bytes)
    );
    profile(&folded::read(bytes).expect("memory is readable"), reading);
}

#[test]
fn of_folded_stacks() {
    let mut found = files("crates/report/tests/golden/folded", &[".folded"]);
    found.extend(files(
        "crates/profile/tests/fixtures/bottlenecks",
        &[".folded"],
    ));
    hold("folded", &found, 10, stacks);
}

fn accesses(bytes: &[u8], reading: &mut Reading) {
    let read = memory_trace::read(bytes, &mut |batch| message!(reading, "{batch:x?}"));
    match read {
        Ok(summary) => message!(reading, "{summary:?}"),
        Err(error) => message!(reading, "{error}"),
    }
}

/// A file of each writable kind, with mappings, notes and two threads.
fn written() -> Vec<(String, Vec<u8>)> {
    let make = |is_by_page: bool| {
        let mut writer = match is_by_page {
            true => Writer::by_page(Vec::new()),
            false => Writer::new(Vec::new()),
        }
        .expect("memory takes all");
        let mapping = Mapping {
            start: 0x7f00_0000_0000,
            bytes: 1 << 20,
            is_anonymous: true,
            name: "heap".into(),
        };
        writer.note("made for a test").expect("memory takes all");
        writer.mapping(&mapping).expect("memory takes all");
        let mut random = Random::seeded(9);
        let mut at = mapping.start;
        for number in 0..6_000_u64 {
            at = match random.below(10) {
                0 => mapping.start + random.below(1 << 22) as u64,
                1 => 0xffff_8000_0000_0000 + random.below(1 << 20) as u64,
                _ => at + 8,
            };
            let thread = number / 1_500 % 2;
            writer
                .access(thread, at, number % 3 == 0)
                .expect("canonical addresses");
            writer.instructions(number % 5);
        }
        writer.finish(7).expect("memory takes all")
    };
    let lackey = "\
==1234== Lackey, an example Valgrind tool
I  04000e70,3
 L 1ffeffeec8,8
 S 1ffeffeec0,8
 M 0421c7c4,4
I  04000e73,5
 X 0,0
 L zz,8
";
    vec![
        ("addresses".to_owned(), make(false)),
        ("pages".to_owned(), make(true)),
        ("lackey".to_owned(), lackey.as_bytes().to_vec()),
    ]
}

#[test]
fn of_traces_of_accesses() {
    let mut found = written();
    let texts = files("crates/formats/tests/fixtures/perf_script", &[".txt"]);
    let of_addresses = |name: &str| name.ends_with("addr.txt") || name.ends_with("data.txt");
    found.extend(texts.into_iter().filter(|(name, _)| of_addresses(name)));
    hold("accesses", &found, 25, accesses);
}

/// The same file always gives the same reading: the fingerprints above depend on nothing else.
#[test]
fn readings_repeat() {
    let mut seen = BTreeMap::new();
    for (name, bytes) in files("crates/formats/tests/fixtures", &[".data.zst"]) {
        for _ in 0..2 {
            let mut reading = Reading::new();
            recording(&bytes, &mut reading);
            assert_eq!(
                *seen.entry(name.clone()).or_insert(reading.hash),
                reading.hash
            );
        }
    }
}
