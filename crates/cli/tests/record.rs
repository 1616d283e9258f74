//! `pagewise record` in good and bad situations. If perf events, tracepoints, perf itself or root
//! are missing, a test reports this and skips what needs them.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use pagewise_faults::Attributor;
use pagewise_formats::perf_data::PerfData;
use pagewise_model::event::Event;
use pagewise_model::loss::LossKind;
use pagewise_model::run::Ending;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PAGEWISE: &str = env!("CARGO_BIN_EXE_pagewise");

struct Recorded {
    folder: tempfile::TempDir,
    output: Output,
}

impl Recorded {
    fn file(&self) -> PathBuf {
        self.folder.path().join("perf.data")
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.file()).unwrap()
    }

    fn messages(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Whether this machine allows faults to be sampled; prints a message if not.
    fn has_events(&self) -> bool {
        let has = !self.messages().contains("Faults could not be sampled");
        if !has {
            skipped!("perf events are not allowed here");
        }
        has
    }
}

fn record(options: &[&str], command: &[&str]) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(PAGEWISE)
        .args(["record", "-o"])
        .arg(folder.path().join("perf.data"))
        .args(options)
        .args(command)
        .output()
        .unwrap();
    Recorded { folder, output }
}

/// Maps, touches and drops 8 MiB, `rounds` times: 2,048 faults each on 4 KiB pages.
fn toucher(rounds: u32) -> String {
    touching(&format!("for _ in range({rounds})"))
}

/// The same, for this many seconds.
fn toucher_for(seconds: u32) -> String {
    touching(&format!(
        "end = time.monotonic() + {seconds}\nwhile time.monotonic() < end"
    ))
}

fn touching(again: &str) -> String {
    format!(
        "import mmap, time\n{again}:\n m = mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE | \
         mmap.MAP_ANONYMOUS)\n m.madvise(mmap.MADV_NOHUGEPAGE)\n for at in range(0, 8 << 20, \
         4096): m[at] = 1\n m.close()\n"
    )
}

/// Sum of the periods of page-fault samples, over all sources of the recording.
fn faults_told(bytes: &[u8]) -> u64 {
    let data = PerfData::parse(bytes).unwrap();
    let mut sum = 0;
    data.for_each(|event| {
        if let Event::Sample(sample) = event {
            let source = &data.sources()[usize::from(sample.source.0)];
            if source.name == "page-faults" {
                sum += sample.period;
            }
        }
    })
    .unwrap();
    sum
}

#[test]
fn full_mode_tells_each_fault_once() {
    let program = toucher(5);
    let recorded = record(&["--full"], &["--", "python3", "-c", &program]);
    if !recorded.has_events() {
        return;
    }
    let bytes = recorded.bytes();
    let data = PerfData::parse(&bytes).unwrap();
    let sidecar = data.sidecar().expect("a recording of ours has a sidecar");
    assert_eq!(sidecar.ending, Ending::Exited(0));
    let (message, counted) = (faults_told(&bytes), sidecar.cost.faults());
    assert!(counted > 10_240, "python touched {counted} pages");
    // A few faults between fork and exec belong to the child but come before recording; without
    // privileges those inside the kernel are missing too.
    let missing = counted.abs_diff(message);
    // On a busy machine the collector may get no time; then the loss is reported.
    let lost = sidecar.losses.count(LossKind::RingOverrun);
    assert!(
        missing * 20 < counted + lost * 20,
        "{message} told, {lost} records lost, {counted} counted"
    );
}

/// Faults of a sampled recording.
struct Counts {
    /// Number of faults that were sampled.
    sampled: f64,
    /// Number of faults that they represent.
    all: f64,
    /// Number of faults that the kernel counted.
    counted: f64,
    /// Share of the elapsed time in which the program ran.
    running: f64,
}

/// A share from which on the machine is not busy with something else.
const ALONE: f64 = 0.9;

impl Counts {
    /// The error relative to the truth.
    fn error(&self) -> f64 {
        (self.counted - self.all).abs() / self.counted
    }
}

/// A sampled recording of this Python program.
fn recorded(program: &str) -> Option<Counts> {
    let recorded = record(&[], &["--", "python3", "-c", program]);
    if !recorded.has_events() {
        return None;
    }
    let bytes = recorded.bytes();
    let data = PerfData::parse(&bytes).unwrap();
    let sidecar = data.sidecar().unwrap();
    let cost = &sidecar.cost;
    let mut attributor = Attributor::new(data.sources(), sidecar);
    data.for_each(|event| attributor.event(&event)).unwrap();
    Some(Counts {
        sampled: faults_told(&bytes) as f64,
        all: attributor.finish().tally.all.sum,
        counted: cost.faults() as f64,
        running: (cost.user + cost.system).0 as f64 / cost.wall.0 as f64,
    })
}

/// Passes if one of five recordings of `program` is within this error, with samples that represent
/// a number of faults in this range: other load on the machine may keep the program and its
/// recorder from running at the same time. On a busy machine, where a rest may end too late, there are
/// fewer rests or none.
fn is_true_within(error: f64, factors: Range<f64>, program: &str) {
    let mut seen = Vec::new();
    for _ in 0..5 {
        let Some(message) = recorded(program) else {
            return;
        };
        let factor = message.all / message.sampled;
        let least = match message.running < ALONE {
            true => factors.start.min(1.0),
            false => factors.start,
        };
        if message.error() < error && (least..factors.end).contains(&factor) {
            return;
        }
        seen.push((message.error(), factor, message.running));
    }
    panic!("errors, faults that a sampled one stands for, shares of the time: {seen:?}");
}

#[test]
fn sampled_weights_add_up_to_the_true_count() {
    is_true_within(0.1, 0.0..f64::INFINITY, &toucher(60));
}

/// In a storm of more than two seconds faults are recorded in windows, each of which represents the
/// adjacent rests. Windows take about a sixth of the time and have the same share of the faults.
#[test]
fn windows_of_a_long_storm_stand_for_its_rests() {
    is_true_within(0.5, 1.5..12.0, &toucher_for(8));
}

/// Samples of each event as counted by perf.
fn counts_by_perf(perf_data: &Path) -> Option<BTreeMap<String, u64>> {
    let output = Command::new("perf")
        .args(["report", "--stats", "-i"])
        .arg(perf_data)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    assert!(output.status.success(), "perf does not open our file");
    let mut counts = BTreeMap::new();
    let mut event = None;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some(name) = line.strip_suffix(" stats:") {
            event = Some(name.to_owned());
        } else if let Some((event, count)) = event.as_ref().zip(samples_in(line)) {
            *counts.entry(event.clone()).or_default() += count;
        }
    }
    // The sum over all events, which comes first.
    counts.remove("Aggregated");
    Some(counts)
}

/// `          SAMPLE events:         61  ( 1.0%)`
fn samples_in(line: &str) -> Option<u64> {
    let count = line.trim().strip_prefix("SAMPLE events:")?;
    count.split_whitespace().next()?.parse().ok()
}

/// Programs are started all the while, as their mappings are what both recorders are told of.
#[test]
fn a_recording_leaves_that_of_another_tool_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let starts = "i=0; while [ $i -lt 150 ]; do /bin/true; i=$((i+1)); done";
    let mut ours = Command::new(PAGEWISE)
        .args(["record", "-q", "-o"])
        .arg(folder.path().join("ours.data"))
        .args(["--", "sh", "-c", &[starts; 4].join("; ")])
        .spawn()
        .unwrap();
    let perf = Command::new("perf")
        .args(["record", "-q", "-e", "cpu-clock:u", "-g", "-o"])
        .arg(&file)
        .args(["--", "sh", "-c", starts])
        .output();
    assert!(ours.wait().unwrap().success());
    let Ok(perf) = perf else {
        return skipped!("perf is not installed");
    };
    let message = String::from_utf8_lossy(&perf.stderr);
    if message.contains("perf_event_paranoid") {
        return skipped!("{message}");
    }
    assert!(perf.status.success(), "{message}");
}

#[test]
fn perf_counts_the_same_samples() {
    let program = toucher(20);
    let recorded = record(&[], &["--", "python3", "-c", &program]);
    if !recorded.has_events() {
        return;
    }
    let Some(by_perf) = counts_by_perf(&recorded.file()) else {
        return skipped!("perf is not installed");
    };
    let bytes = recorded.bytes();
    let data = PerfData::parse(&bytes).unwrap();
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    data.for_each(|event| {
        if let Event::Sample(sample) = event {
            let name = &data.sources()[usize::from(sample.source.0)].name;
            *ours.entry(name.clone()).or_default() += 1;
        }
    })
    .unwrap();
    assert!(ours.get("page-faults").is_some_and(|&count| count > 100));
    assert_eq!(by_perf, ours);
}

#[test]
fn the_programs_status_is_ours() {
    let exits = record(&["-q"], &["--", "sh", "-c", "exit 3"]);
    assert_eq!(exits.output.status.code(), Some(3));
    let crash = record(&["-q"], &["--", "sh", "-c", "kill -SEGV $$"]);
    assert_eq!(crash.output.status.code(), Some(139));
    let bytes = crash.bytes();
    let sidecar = PerfData::parse(&bytes).unwrap().sidecar().cloned();
    assert_eq!(sidecar.unwrap().ending, Ending::Killed(11));
}

#[test]
fn a_program_of_a_millisecond_is_known_in_full() {
    let recorded = record(&[], &["--", "true"]);
    if !recorded.has_events() {
        return;
    }
    let message = faults_told(&recorded.bytes());
    assert!(
        message > 20,
        "only {message} faults of a whole program start"
    );
}

#[test]
fn a_program_that_is_not_there_leaves_no_file() {
    let recorded = record(&[], &["--", "no-such-program-anywhere"]);
    assert_eq!(recorded.output.status.code(), Some(127));
    assert!(recorded.messages().contains("no-such-program-anywhere"));
    assert!(!recorded.file().exists());
}

#[test]
fn a_process_that_is_gone_is_named() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id().to_string();
    child.wait().unwrap();
    let recorded = record(&["-p", &pid], &[]);
    assert_eq!(recorded.output.status.code(), Some(1));
    assert!(recorded.messages().contains(&format!("no process {pid}")));
}

#[test]
fn nothing_to_record_is_a_usage_error() {
    assert_eq!(record(&[], &[]).output.status.code(), Some(2));
}

#[test]
fn a_file_that_takes_nothing_is_an_error_in_words() {
    let output = Command::new(PAGEWISE)
        .args(["record", "-o", "/dev/full", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(
        messages.contains("cannot write the recording /dev/full"),
        "{messages}"
    );
    assert!(Path::new("/dev/full").exists());
}

/// A process with `threads` threads that each touch fresh memory until killed. It prints a line
/// once all are running.
fn crowd(threads: u32) -> std::process::Child {
    let program = format!(
        "import mmap, threading, time, sys\nthreading.stack_size(65536)\ndef work():\n while True:\n  \
         m = mmap.mmap(-1, 65536)\n  for at in range(0, 65536, 4096): m[at] = 1\n  m.close()\n  \
         time.sleep(0.3)\nfor _ in range({threads}): threading.Thread(target=work, \
         daemon=True).start()\nprint('ready', flush=True)\ntime.sleep(3600)\n"
    );
    let mut child = Command::new("python3")
        .args(["-c", &program])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn threads_sampled(bytes: &[u8]) -> BTreeSet<i32> {
    let mut threads = BTreeSet::new();
    let data = PerfData::parse(bytes).unwrap();
    data.for_each(|event| {
        if let Event::Sample(sample) = event {
            threads.insert(sample.tid);
        }
    })
    .unwrap();
    threads
}

#[test]
fn a_thousand_threads_are_attached_to() {
    let mut child = crowd(1000);
    let pid = child.id().to_string();
    // A thread is seen only if it ran meanwhile: on a busy machine that takes longer.
    let mut seen = (0, String::new());
    for duration in ["3s", "15s", "60s"] {
        let recorded = record(&["-p", &pid, "--duration", duration], &[]);
        let alive = child.try_wait().unwrap().is_none();
        assert!(alive, "recording must not end the process");
        assert!(recorded.output.status.success(), "{}", recorded.messages());
        seen = (
            threads_sampled(&recorded.bytes()).len(),
            recorded.messages(),
        );
        let message = seen.1.contains("threads are not observed");
        if seen.0 > 900 || message || !recorded.has_events() {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (threads, messages) = seen;
    let excused = ["threads are not observed", "Faults could not be sampled"];
    assert!(
        threads > 900 || excused.iter().any(|words| messages.contains(words)),
        "{threads} of 1000 threads\n{messages}"
    );
}

#[test]
fn the_end_of_the_time_keeps_what_was_gathered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let child = Command::new(PAGEWISE)
        .args(["record", "--duration", "1s", "-o"])
        .arg(&file)
        .args(["--", "sleep", "100"])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.code(), Some(0), "{message}");
    assert!(!message.contains("killed"), "{message}");
    let bytes = std::fs::read(&file).unwrap();
    let sidecar = PerfData::parse(&bytes).unwrap().sidecar().cloned().unwrap();
    assert_eq!(sidecar.ending, Ending::Running);
}

#[test]
fn overhead_is_measured_against_the_noise() {
    let loops = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(PAGEWISE)
        .args([
            "record",
            "--measure-overhead=1s",
            "-e",
            "cpu",
            "--",
            "sh",
            "-c",
            loops,
        ])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    let ratios: Vec<f64> = text
        .split('×')
        .skip(1)
        .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    let [cpu, elapsed, floor] = ratios[..] else {
        panic!("three ratios in {text}");
    };
    // Recording a run of a few hundredths of a second takes a good part of it, never nothing.
    assert!((1.01..20.0).contains(&cpu), "{text}");
    assert!((0.1..50.0).contains(&elapsed), "{text}");
    assert!((0.5..2.0).contains(&floor) && floor < cpu, "{text}");
    let rounds = text.split("Method        ").nth(1).unwrap();
    let rounds: u32 = rounds.split(' ').next().unwrap().parse().unwrap();
    assert!(rounds >= 6, "{text}");
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "no recording is kept");

    let nothing = Command::new(PAGEWISE)
        .args(["record", "--measure-overhead", "-p", "1"])
        .output()
        .unwrap();
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
}

/// Starts collecting from a busy process to `to`, every two seconds.
fn collect(spool: &Path, to: &Path, pid: u32, more: &[&str]) -> std::process::Child {
    let words = "--duration 300ms --every 2s --most-cpu 100 --export parquet";
    Command::new(PAGEWISE)
        .args(["record", "-p", &pid.to_string()])
        .args(words.split(' '))
        .arg("-o")
        .arg(spool)
        .arg("--to")
        .arg(to)
        .args(more)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The folders of recordings in `folder`, in order.
fn collected(folder: &Path) -> Vec<PathBuf> {
    let inside = |parents: Vec<PathBuf>| -> Vec<PathBuf> {
        let read = parents.iter().filter_map(|parent| parent.read_dir().ok());
        let paths = read.flatten().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    };
    let mut found = inside(inside(inside(vec![folder.to_owned()])));
    found.sort();
    found
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        // It only ends a hang.
        assert!(begun.elapsed().as_secs() < 600, "it takes too long");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Ends it as systemd does, and returns what it said.
fn end(mut child: std::process::Child) -> String {
    pagewise_linux::process::signal(child.id(), libc::SIGTERM).unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    said
}

#[test]
fn recordings_are_collected_and_wait_while_the_place_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, to) = (folder.path().join("spool"), folder.path().join("to"));
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let child = collect(&spool, &to, busy.id(), &[]);
    wait_until(|| collected(&spool).len() >= 2);
    std::fs::create_dir(&to).unwrap();
    wait_until(|| collected(&to).len() >= 3);
    let said = end(child);
    assert!(said.contains("there is no folder"), "{said}");
    assert!(said.contains("is there again; sent:"), "{said}");
    assert!(collected(&spool).is_empty());
    for recording in collected(&to) {
        assert!(recording.join("runs.parquet").is_file(), "{recording:?}");
    }
    std::fs::remove_dir_all(&to).unwrap();
    let child = collect(&spool, &to, busy.id(), &["--spool-size", "1"]);
    wait_until(|| spool.join(".dropped").is_file());
    let said = end(child);
    assert!(said.contains("the oldest recordings are dropped"), "{said}");
    busy.kill().unwrap();
    busy.wait().unwrap();
}
