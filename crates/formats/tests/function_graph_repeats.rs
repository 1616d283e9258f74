//! The file `trace` of kernels up to 4.18 repeats itself; the reader returns exactly what was
//! traced.

use pagewise_formats::function_graph::{CallTree, Cores, Counts, Names, read_bytes, read_on};
use pagewise_model::loss::Losses;
use std::path::Path;

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/traces");
    let packed = std::fs::File::open(folder.join(name)).expect("a trace for tests");
    String::from_utf8(zstd::decode_all(packed).expect("packed text")).expect("text")
}

fn trees(text: &str, cores: Option<Cores>) -> (Vec<CallTree>, Counts, Losses) {
    let mut found = Vec::new();
    let mut sink = |tree: &CallTree, _: &Names| found.push(tree.clone());
    let summary = match cores {
        Some(cores) => read_on(cores, text.as_bytes(), &mut sink).expect("readable"),
        None => read_bytes(text.as_bytes(), &mut sink),
    };
    (found, summary.counts, summary.incomplete)
}

/// A text as in the file of 4.18: each read goes back to the event whose number is that of the
/// lines so far, though a leaf is one line of two events.
fn repeated(text: &str, page: usize) -> (String, u64) {
    let lines: Vec<&str> = text.lines().filter(|line| line.contains('|')).collect();
    let mut events = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        events.push((place, (*line).to_owned()));
        if line.ends_with(';') {
            events.push((place, ends(line)));
        }
    }
    let (mut out, mut printed, mut repeats) = (String::new(), 0, 0);
    let mut last = None;
    while printed < events.len() {
        let mut at = printed;
        let begun = out.len();
        // After the last line, if it was a leaf, the end of that leaf continues in time order.
        let is_end = at > 0 && events[at - 1].0 == events[at].0;
        let is_repeat = last.is_some_and(|last| events[at].0 + usize::from(is_end) <= last);
        repeats += u64::from(is_repeat);
        while at < events.len() && out.len() < begun + page {
            let (place, event) = &events[at];
            let is_end = at > 0 && events[at - 1].0 == *place;
            out.push_str(if is_end { event } else { lines[*place] });
            out.push('\n');
            printed += 1;
            last = last.max(Some(*place));
            at += 1;
            at += usize::from(!is_end && events.get(at).is_some_and(|next| next.0 == *place));
        }
    }
    (out, repeats)
}

/// The end of a leaf on a line of its own.
fn ends(leaf: &str) -> String {
    let (head, call) = leaf.rsplit_once("|  ").expect("a call");
    let (blanks, name) = call.split_at(call.len() - call.trim_start().len());
    let name = name.trim_end_matches("();");
    let (time, rest) = head.trim_start().split_once(' ').expect("a time");
    let span = rest.rsplit('|').next().unwrap_or_default();
    let us: f64 = span
        .trim_matches([' ', '+', '!', '#', '*', 'u', 's'])
        .parse()
        .expect("µs");
    let (seconds, micros) = time.split_once('.').expect("seconds");
    let end = (micros.parse::<f64>().expect("digits") + us).floor();
    format!("   {seconds}.{end:06.0} {rest}|  {blanks}}} /* {name} */")
}

#[test]
fn repeats_are_dropped_and_counted() {
    let clean = fixture("redis.txt.zst");
    let clean: String = clean
        .lines()
        .filter(|line| line.contains('|'))
        .take(12_000)
        .flat_map(|line| [line, "\n"])
        .collect();
    let (expected, before, _) = trees(&clean, None);
    assert!(expected.len() > 30, "{}", expected.len());
    assert_eq!(before.repeats, 0);
    for page in [4096, 65536] {
        let (text, repeats) = repeated(&clean, page);
        assert!(repeats > 5, "{repeats}");
        let (found, counts, incomplete) = trees(&text, None);
        assert_eq!(found, expected);
        assert_eq!((counts.repeats, counts.times_back), (repeats, 0));
        let lines = text.lines().count() - clean.lines().count();
        assert_eq!(counts.repeated_lines, lines as u64);
        assert_eq!(counts.calls, before.calls);
        for (threads, piece) in [(2, 1000), (3, 5000), (2, 40_000)] {
            let on_cores = trees(&text, Some(Cores { threads, piece }));
            assert_eq!(on_cores, (found.clone(), counts, incomplete.clone()));
        }
    }
}

/// Faults with calls of ever new names, among them those of a task switch.
fn switching() -> String {
    let mut text = String::new();
    let mut now = 0;
    let mut line = |span: &str, call: &str| {
        now += 3;
        text.push_str(&format!(
            "    1.{now:06} |   0)     app-42    | {span:<13} |  {call}\n"
        ));
    };
    for fault in 0..400 {
        line("", "exc_page_fault() {");
        for call in 0..12 {
            let work = (fault * 7 + call * 5) % 89;
            line("  0.500 us", &format!("  work_{work}();"));
        }
        line("  0.500 us", "  switch_mm_irqs_off();");
        line("  0.500 us", "  finish_task_switch();");
        line("+ 45.000 us", "} /* exc_page_fault */");
    }
    text
}

/// Name ids start anew when a piece is read again.
#[test]
fn what_functions_do_is_known_by_the_names_of_the_last_reading() {
    let (text, repeats) = repeated(&switching(), 3000);
    let alone = trees(&text, None);
    assert_eq!((alone.0.len(), alone.1.repeats), (400, repeats));
    assert!(alone.0.iter().all(|tree| tree.off_cpu.len() == 1));
    for (threads, piece) in [(2, 1000), (2, 4000), (3, 2000)] {
        assert_eq!(trees(&text, Some(Cores { threads, piece })), alone);
    }
}

/// 16,000 lines of a real trace, of which more than 4,000 are repeats.
#[test]
fn a_trace_of_4_18_has_nearly_all_its_faults() {
    let text = fixture("anon-4.18.txt.zst");
    let (found, counts, incomplete) = trees(&text, None);
    assert!(
        counts.repeats > 300 && counts.repeated_lines > 4000,
        "{counts:?}"
    );
    assert_eq!((counts.times_back, counts.bytes), (0, text.len() as u64));
    let missing: u64 = incomplete.iter().map(|(_, count)| count).sum();
    assert!(
        missing <= 3 && found.len() > 100,
        "{} {incomplete:?}",
        found.len()
    );
    for (threads, piece) in [(2, 1000), (2, 30_000)] {
        let on_cores = trees(&text, Some(Cores { threads, piece }));
        assert_eq!(on_cores, (found.clone(), counts, incomplete.clone()));
    }
}

/// A repeat may be only the last line: time then stands still.
#[test]
fn the_last_line_alone_is_a_repeat() {
    let line = |us: u32, cpu: u32, span: &str, call: &str| {
        format!("   1.0000{us} |   {cpu})  wl-7  |  {span:10}  |  {call}\n")
    };
    let open = line(10, 0, "", "handle_mm_fault() {");
    let long = line(11, 0, "1.204 us", "  clear_page_erms();");
    let short = line(13, 0, "0.100 us", "  __rcu_read_lock();");
    let close = line(14, 0, "4.100 us", "}");
    let clean = [&open, &long, &short, &short, &close]
        .map(String::as_str)
        .concat();
    let (expected, before, _) = trees(&clean, None);
    assert_eq!((expected.len(), before.calls, before.repeats), (1, 4, 0));
    let again = [&open, &open, &long, &long, &short, &short, &close, &close];
    let again = again.map(String::as_str).concat();
    let (found, counts, incomplete) = trees(&again, None);
    assert_eq!(found, expected);
    assert_eq!(
        (counts.repeats, counts.repeated_lines, counts.calls),
        (3, 3, 4)
    );
    assert!(incomplete.is_empty(), "{incomplete:?}");
    for piece in [1, open.len() * 2, open.len() * 3] {
        let on_cores = trees(&again, Some(Cores { threads: 2, piece }));
        assert_eq!(on_cores, (found.clone(), counts, incomplete.clone()));
    }
    // Two CPUs that the text does not distinguish may well do the same at the same time.
    let unknown = again.replace("0)  wl-7  |", "");
    let (_, counts, _) = trees(&unknown, None);
    assert_eq!((counts.repeats, counts.calls), (0, 6));
}

/// Two traces in one file: nothing is a repeat.
#[test]
fn time_that_goes_back_otherwise_is_counted() {
    let line = |time: u32, pid: u32, cpu: u32| {
        format!("   {time}.000000 |   {cpu})  wl-{pid}  |   0.100 us    |  handle_mm_fault();\n")
    };
    let first: String = (10..20).map(|time| line(time, 1, time % 2)).collect();
    let second: String = (5..12).map(|time| line(time, 2, time % 2)).collect();
    let text = first + &second;
    let (found, counts, _) = trees(&text, None);
    assert_eq!(found.len(), 17);
    assert_eq!(
        (counts.repeats, counts.repeated_lines, counts.times_back),
        (0, 0, 2)
    );
    for piece in [1, 200, 700] {
        let (_, on_cores, _) = trees(&text, Some(Cores { threads: 2, piece }));
        assert_eq!(on_cores, counts, "{piece}");
    }
}
