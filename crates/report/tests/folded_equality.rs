//! Folded stacks equal those of `stackcollapse-perf.pl` and `inferno-collapse-perf`.
//!
//! `golden/folded/alike` contains inputs for which both tools produce exactly the stored bytes;
//! `apart` contains one for each line of the table in docs/EXPORTS.md, with the output of Pagewise.
//! `bench/profiles/run equality` runs the two tools on them. Here only Pagewise is checked against
//! these files, and against a plain implementation of the rules on generated text.

use pagewise_formats::perf_script;
use pagewise_report::exports::folded_stacks;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

fn folded(text: &str) -> String {
    let profile = perf_script::read(text.as_bytes()).expect("memory is readable");
    let mut out = Vec::new();
    folded_stacks::write(&profile, 0, &mut out).expect("memory is writable");
    String::from_utf8(out).expect("names are UTF-8")
}

/// All lines in byte order.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn golden_inputs_give_the_stored_stacks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/folded");
    let mut inputs = 0;
    for part in ["alike", "apart"] {
        for entry in std::fs::read_dir(folder.join(part)).expect("golden inputs") {
            let input = entry.expect("golden inputs").path();
            if input.extension().is_none_or(|extension| extension != "txt") {
                continue;
            }
            let read = |path: &Path| std::fs::read_to_string(path).expect("both files are there");
            let (found, expected) = (folded(&read(&input)), read(&input.with_extension("folded")));
            assert_eq!(sorted(&found), sorted(&expected), "{}", input.display());
            inputs += 1;
        }
    }
    assert_eq!(inputs, 13);
}

/// A function, as perf prints its frame and as it is folded in a Java thread or another.
struct Known {
    printed: &'static str,
    folded: &'static str,
}

const FUNCTIONS: [Known; 12] = [
    known("copy_page+0x10 ([kernel.kallsyms])", "copy_page"),
    known("ext4_read ([ext4])", "ext4_read"),
    known("main+0x3a1 (/usr/bin/app)", "main"),
    known("f(int, char const*)+0x1 (/b)", "f"),
    known("net/http.(*Client).Do+0x2 (/b)", "net/http.(*Client).Do"),
    known("a;b (/b)", "a:b"),
    known("v<int>::push(int const&)+0x4 (/b)", "v<int>::push"),
    known(
        "n::(anonymous namespace)::g(int) (/b)",
        "n::(anonymous namespace)::g",
    ),
    known("[unknown] (/usr/lib/libfoo.so.1)", "[libfoo.so.1]"),
    known("[unknown] ([unknown])", "[unknown]"),
    known("with space+0x6 (/b)", "with space"),
    known(
        "Lio/A;::x->Lio/B;::y (/tmp/perf-1.map)",
        "Lio/A:::x;Lio/B:::y_[i]",
    ),
];

const fn known(printed: &'static str, folded: &'static str) -> Known {
    Known { printed, folded }
}

const COMMANDS: [&str; 5] = ["redis-server", "V8 Worker", "kworker/0:1", "a b:c", ":-1"];
const EVENTS: [&str; 2] = ["cpu-clock:pppH", "page-faults"];

#[derive(Clone, Debug)]
struct Sample {
    command: usize,
    tid: u16,
    has_pid: bool,
    cpu: Option<u8>,
    time: u32,
    period: Option<u32>,
    event: usize,
    /// Functions, innermost first, at addresses of which many are equal.
    frames: Vec<(usize, u8)>,
}

fn sample() -> impl Strategy<Value = Sample> {
    let task = (0..COMMANDS.len(), 1..9_u16, any::<bool>());
    let place = (proptest::option::of(0..4_u8), 0..3_000_000_u32);
    let event = (proptest::option::weighted(0.8, 1..99_u32), 0..EVENTS.len());
    let frames = vec((0..FUNCTIONS.len(), 0..3_u8), 0..9);
    (task, place, event, frames).prop_map(|(task, place, event, frames)| Sample {
        command: task.0,
        tid: task.1,
        has_pid: task.2,
        cpu: place.0,
        time: place.1,
        period: event.0,
        event: event.1,
        frames,
    })
}

/// The output that perf script would print.
fn printed(samples: &[Sample]) -> String {
    let mut text = String::new();
    for sample in samples {
        let command = COMMANDS[sample.command];
        let _ = write!(text, "{command:>16} ");
        if sample.has_pid {
            let _ = write!(text, "7/");
        }
        let _ = write!(text, "{:<5} ", sample.tid);
        if let Some(cpu) = sample.cpu {
            let _ = write!(text, "[{cpu:03}] ");
        }
        let (seconds, us) = (sample.time / 1_000_000, sample.time % 1_000_000);
        let _ = write!(text, "{seconds:>5}.{us:06}: ");
        if let Some(period) = sample.period {
            let _ = write!(text, "{period:>10} ");
        }
        let _ = writeln!(text, "{}: ", EVENTS[sample.event]);
        for &(function, at) in &sample.frames {
            let address = 0x7f00_0000_0000_u64 + (function as u64) * 64 + u64::from(at);
            let _ = writeln!(text, "\t{address:16x} {}", FUNCTIONS[function].printed);
        }
        text.push('\n');
    }
    text
}

/// Sums by stack, following the rules of docs/EXPORTS.md.
fn by_the_rules(samples: &[Sample]) -> String {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let first_event = samples.first().map(|sample| sample.event);
    for sample in samples.iter().filter(|s| Some(s.event) == first_event) {
        let mut stack = COMMANDS[sample.command].replace(' ', "_");
        for &(function, _) in sample.frames.iter().rev() {
            stack.push(';');
            stack.push_str(FUNCTIONS[function].folded);
        }
        *sums.entry(stack).or_default() += u64::from(sample.period.unwrap_or(1));
    }
    let lines = sums.iter().map(|(stack, sum)| format!("{stack} {sum}\n"));
    lines.collect()
}

proptest! {
    #[test]
    fn generated_samples_fold_by_the_rules(samples in vec(sample(), 1..60)) {
        prop_assert_eq!(folded(&printed(&samples)), by_the_rules(&samples));
    }
}
