use super::*;
use pagewise_model::units::Nanos;

use pagewise_model::profile::{Frame, FrameKind};

const TEXT: &str = "# a remark
swapper     0 [001] 10.000001:     250000 cpu-clock:pppH: 
\tffffffff81000001 native_halt+0x1 ([kernel.kallsyms])
\tffffffff81000009 start+0x9 ([kernel.kallsyms])

a b:c 12/13 [000] 10.000000:     250000 cpu-clock:pppH: 
\t    7f0000000001 leaf+0x1 (/usr/bin/a b)
\t    7f0000000002 main+0x7 (/usr/bin/a b)
\t               0 [unknown] ([unknown])

:-1    -1 [000] 10.500000:     250000 cpu-clock:pppH: 
\tffffffff81000002 native_halt+0x2 ([kernel.kallsyms])
\tffffffff81000009 start+0x9 ([kernel.kallsyms])
";

fn stack(profile: &Profile, at: usize) -> String {
    let ids = profile.stacks.frames(profile.samples.stacks.at(at));
    let names = ids.map(|id| profile.frames[id.0 as usize].name.to_string());
    names.collect::<Vec<_>>().join("<")
}

#[test]
fn samples_with_chains_in_time_order() {
    let profile = read(TEXT.as_bytes()).expect("memory is readable");
    assert!(looks_like(TEXT.as_bytes()));
    assert_eq!(profile.samples.times, [0, 1000, 500_000_000]);
    assert_eq!(
        (profile.start, profile.span),
        (Nanos(10_000_000_000), Nanos(500_000_000))
    );
    let stacks: Vec<_> = (0..3).map(|at| stack(&profile, at)).collect();
    assert_eq!(
        stacks,
        [
            "leaf<main<[unknown]",
            "native_halt<start",
            "native_halt<start"
        ]
    );
    assert_eq!(profile.samples.stacks.at(1), profile.samples.stacks.at(2));
    let thread = |at: usize| {
        let thread = &profile.threads[profile.samples.threads.at(at) as usize];
        (&*thread.comm, thread.pid, thread.tid)
    };
    assert_eq!(
        [thread(0), thread(1), thread(2)],
        [("a b:c", 12, 13), ("swapper", -1, 0), (":-1", -1, -1)]
    );
    assert_eq!(profile.weight_of(0), 750_000);
    assert_eq!(profile.events[0].unit, WeightUnit::Nanoseconds);
    assert_eq!(profile.losses, Losses::default());
}

#[test]
fn samples_without_chains_and_without_blank_lines() {
    let text = "x 1 [000] 1.000000: 5 cycles: ffffffff81000001 f+0x1 ([kernel.kallsyms])\n\
                x 1 [000] 2.000000: 5 cycles: ffffffff81000002 g ([kernel.kallsyms])\n\
                y 2 [000] 3.000000: sched:sched_switch: prev_comm=y prev_pid=2 ==> next_comm=x\n";
    let profile = read(text.as_bytes()).expect("memory is readable");
    let stacks: Vec<_> = (0..3).map(|at| stack(&profile, at)).collect();
    assert_eq!(stacks, ["f", "g", ""]);
    assert_eq!(profile.events.len(), 2);
    assert_eq!(profile.losses, Losses::default());
}

#[test]
fn an_event_without_a_name_is_one() {
    let text = "a 7 [001] 1.500000: 1 : 7f01 f\n";
    let profile = read(text.as_bytes()).expect("memory is readable");
    let names: Vec<&str> = profile.events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["samples"]);
    assert_eq!(profile.samples.len(), 1);
}

#[test]
fn what_makes_no_sense_is_counted() {
    let text = "hello\n\tffffffff81000001 f ([k])\n\nx 1 [0] -1.000000: 1 cycles:\n\t\x01 \x1b[31m (x\n\nfoo bar\n";
    let profile = read(text.as_bytes()).expect("memory is readable");
    assert_eq!(profile.samples.len(), 1);
    assert_eq!(profile.losses.count(LossKind::MalformedRecord), 3);
    assert!(
        profile
            .frames
            .iter()
            .all(|frame| !frame.name.contains(char::is_control))
    );
}

#[test]
fn deep_stacks_and_many_threads_cost_what_they_hold() {
    let mut text = String::new();
    for thread in 0..10_000 {
        text += &format!("t{thread} {thread} [000] 1.000000: 1 cycles:\n\tffff f ([k])\n\n");
    }
    text += "deep 1 [000] 2.000000: 1 cycles:\n";
    for frame in 0..10_000 {
        text += &format!("\tffff f{} ([k])\n", frame % 3);
    }
    let profile = read(text.as_bytes()).expect("memory is readable");
    assert_eq!(
        (profile.threads.len(), profile.samples.len()),
        (10_001, 10_001)
    );
    let deepest = profile.samples.stacks.at(10_000);
    assert_eq!(profile.stacks.frames(deepest).count(), 10_000);
    assert_eq!(profile.stacks.len(), 10_002);
}

/// Samples of every kind, some of them invalid.
fn mixed(samples: usize) -> String {
    let mut text = String::new();
    let mut random = 7_u64;
    let mut below = |limit: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % limit
    };
    for at in 0..samples {
        let (thread, event) = (below(9), ["cycles", "faults"][usize::from(below(5) == 0)]);
        text += &match below(12) {
            0 => format!("a b:c {thread} [001] 1.{at:06}: 7 {event}:\n"),
            1 => format!("x {thread} 1.{at:06}: 7 {event}:  7f0000000001 g+0x1 (/b)\n"),
            2 => format!("  x   {thread} [000] 1.{at:06}: 7 {event}:\r\n"),
            3 => "nonsense\n".to_owned(),
            _ => format!("x {thread}/{thread} [000] 1.{at:06}: 7 {event}: \n"),
        };
        for depth in 0..below(6) {
            let (function, offset) = (below(4) + depth, below(3));
            text += &match below(20) {
                0 => " 7f0000000009 spaces (/b)\n".to_owned(),
                1 => "\t\n".to_owned(),
                2 => "what\n".to_owned(),
                3 => format!("\tffffffff8100000{offset} [unknown] ([unknown])\r\n"),
                _ => format!("\t    7f000000000{offset} f{function}+0x{offset} (/b)\n"),
            };
        }
        if below(10) > 0 {
            text += "\n";
        }
    }
    text
}

/// A profile as text: every column of every sample, and every stack.
fn written(profile: &Profile) -> String {
    format!(
        "{:?}",
        (
            &profile.frames,
            profile.stacks.nodes().collect::<Vec<_>>(),
            (&profile.threads, &profile.events, &profile.samples),
            (profile.start, profile.span, &profile.losses),
        )
    )
}

#[test]
fn whole_chains_are_read_as_their_lines_are() {
    let text = mixed(3000);
    let mut by_line = Reader::default();
    for line in text.split('\n') {
        by_line.line(line.as_bytes());
    }
    by_line.end_of_sample();
    let by_line = in_time_order(by_line.into_profile());
    let whole = read(text.as_bytes()).expect("memory is readable");
    assert!(whole.losses.count(LossKind::MalformedRecord) > 100);
    assert_eq!(written(&whole), written(&by_line));
}

#[test]
fn blocks_of_any_size_on_any_threads_give_the_same_profile() {
    let text = mixed(2000);
    let whole = written(&read(text.as_bytes()).expect("memory is readable"));
    for size in [1, 100, 3000] {
        let blocks = || blocks::stream(text.as_bytes(), size);
        let in_memory = || blocks::in_memory(text.as_bytes(), size, |_| ());
        for profile in [
            read_in_turn(blocks()),
            read_in_turn(in_memory()),
            parallel::read(2, blocks()),
            parallel::read(3, in_memory()),
        ] {
            assert!(
                written(&profile.expect("memory is readable")) == whole,
                "{size}"
            );
        }
    }
}

/// A text's stacks, innermost first, and its losses.
fn stacks_of(text: &str) -> (Vec<Vec<String>>, Profile) {
    assert!(looks_like(text.as_bytes()), "{text}");
    let profile = read(text.as_bytes()).expect("memory is readable");
    let names = |stack| {
        let frames = profile.stacks.frames(stack);
        frames
            .map(|frame| profile.frames[frame.0 as usize].name.to_string())
            .collect()
    };
    let stacks = profile.samples.stacks.iter().map(names).collect();
    (stacks, profile)
}

#[test]
fn frames_need_no_tab() {
    for indent in ["", "        ", "\t"] {
        let text = format!(
            "dd 19983 cycles:\n{indent}ffffffff8103d0ca write ([kernel.kallsyms])\n\
             {indent}  123456 12: f (/b)\n\n\
             dd 19983 cycles: \n{indent}ffffffff8103d0ca write ([kernel.kallsyms])\n\n"
        );
        let (stacks, profile) = stacks_of(&text);
        let expected = [vec!["write", "12: f"], vec!["write"]];
        assert_eq!(stacks, expected, "{indent:?}");
        assert!(profile.losses.is_empty(), "{indent:?}");
    }
}

#[test]
fn the_end_of_a_copied_stack_is_not_in_the_kernel() {
    let text = "t 1  4.608913:     250000 cpu-clock: \n\
        \t           1469e leaf+0x7e (/b)\n\tffffffffffffffff [unknown] ([unknown])\n\n\
        t 1  4.609913:     250000 cpu-clock: \n\
        \tffffffff81000000 [unknown] ([unknown])\n\n";
    let (_, profile) = stacks_of(text);
    let in_kernel = |frame: &&Frame| frame.kind == FrameKind::Kernel;
    assert_eq!(profile.frames.iter().filter(in_kernel).count(), 1);
}

#[test]
fn places_in_the_source_are_no_frames() {
    let text = "t 1  4.608913:     250000 cpu-clock:ppp: \n\
        \t           1469e leaf+0x7e (/b)\n  t.c:327\n\
        \tffffffff816e4b15 fget+0x5 ([kernel.kallsyms])\n  [kernel.kallsyms][ffffffff816e4b15]\n\
        \t           14690 main+0x1 (/b)\n  main file.c:3 (discriminator 2)\n\n";
    let (stacks, profile) = stacks_of(text);
    assert_eq!(stacks, [["leaf", "fget", "main"]]);
    assert!(profile.losses.is_empty());
}

#[test]
fn a_place_in_the_source_may_say_that_a_call_was_inlined() {
    let text = "t 1  4.608913:     250000 cpu-clock:ppp: \n\
        \t           1469e leaf+0x7e\n  t.c:327 (inlined)\n\
        \t           1469e main+0x1 (/b)\n  :0\n\n";
    let (stacks, profile) = stacks_of(text);
    assert_eq!(stacks, [["leaf", "main"]]);
    let is_leaf = |frame: &&Frame| &*frame.name == "leaf" && frame.kind == FrameKind::Inlined;
    assert_eq!(profile.frames.iter().filter(is_leaf).count(), 1);
    assert!(profile.losses.is_empty());
}

#[test]
fn records_that_are_no_samples_are_none() {
    let text = "# hostname : vm\n# nrcpus online : 2\n#\n\
        perf-exec     0     0.000000: PERF_RECORD_COMM: perf-exec:14504/14504\n\
        t 14504  4021.608913: PERF_RECORD_COMM exec: t:14504/14504\n\
        t 14504  4021.608947: PERF_RECORD_MMAP2 14504/14504: [0x55f(0x1000) @ 0x1000 fe:00 1 4]: r-xp /b\n\
        t 14504  4021.609151:     250000 cpu-clock:ppp: \n\t  1469e leaf+0x7e (/b)\n\n\
        t 14504  4021.610000: PERF_RECORD_LOST lost 12\n\
        PERF_RECORD_FINISHED_ROUND\n\
        t 14504 [001] 4021.611000: PERF_RECORD_SWITCH OUT preempt\n\
        t 14504  4022.351758: PERF_RECORD_EXIT(14504:14504):(14498:14498)\n";
    let (stacks, profile) = stacks_of(text);
    assert_eq!(stacks, [["leaf"]]);
    assert_eq!(profile.events.len(), 1);
    assert_eq!((&*profile.host.hostname, profile.host.cpus), ("vm", 2));
    assert_eq!(profile.losses.count(LossKind::RingOverrun), 12);
    assert_eq!(profile.losses.count(LossKind::MalformedRecord), 0);
}

#[test]
fn a_time_that_cannot_be_right_is_left_out_and_told() {
    let mut text = String::new();
    for at in 0..50 {
        text += &format!("t 1 [000] 100.{at:02}0000: 5 cycles:\n\t 1469e f+0x1 (/b)\n\n");
    }
    text += "t 1 [000] 9000000100.000000: 5 cycles:\n\t 1469e f+0x1 (/b)\n\n";
    let profile = read(text.as_bytes()).expect("memory is readable");
    assert_eq!(
        (profile.samples.len(), profile.span),
        (50, Nanos(490_000_000))
    );
    assert_eq!(profile.losses.count(LossKind::ImpossibleTime), 1);
    assert!(
        profile.notes[0].contains("9000000000 s after"),
        "{:?}",
        profile.notes
    );
}

#[test]
fn weights_without_room_in_a_sum_are_left_out() {
    let huge = u64::MAX / 2;
    let text = format!(
        "t 1 [000] 1.000000: {huge} cycles:\n\t 1469e f+0x1 (/b)\n\n\
         t 1 [000] 1.100000: 7 cycles:\n\t 1469e f+0x1 (/b)\n\n"
    );
    let profile = read(text.as_bytes()).expect("memory is readable");
    assert_eq!(profile.samples.weights, [7]);
    assert_eq!(profile.losses.count(LossKind::ImpossibleWeight), 1);
}

/// One line in four may be none of these: an unknown header, a message from perf.
#[test]
fn a_quarter_of_the_lines_may_be_something_else() {
    let sample = TEXT.split("\n\n").nth(1).expect("a sample of four lines");
    let of_others = |others: usize| format!("{sample}\n{}", "what perf says\n".repeat(others));
    assert!(looks_like(of_others(1).as_bytes()));
    assert!(!looks_like(of_others(2).as_bytes()));
    let longer = format!("{sample}\n\n{sample}\n\n{}", of_others(3));
    assert!(looks_like(longer.as_bytes()));
}

#[test]
fn an_address_column_is_no_frame() {
    let chain = "w 7 1.000001: 50 page-faults:     7f00aa000000 [unknown] (//anon)\n\
        \t    5606ffe06460 toucher+0x40 (/srv/w)\n\t    5606ffe064bf main+0x3f (/srv/w)\n\n";
    assert_eq!(stacks_of(chain).0, [["toucher", "main"]]);
    let one_line = "w 7 1.000001: 50 page-faults:     7f00aa000000 [unknown] (//anon)     563eae755460 toucher+0x40 (/srv/w)\n\
        w 7 1.000002: 50 page-faults:     7f00aa001000 a (b) c+0x1 (/x y)     563eae755460 toucher+0x40 (/srv/w)\n\
        w 7 1.000003: 50 cycles:                0     563eae755460 f(int) const+0x40 (/srv/w)\n\
        w 7 1.000004: 50 cycles:     563eae755460 f(int) const+0x40 (/srv/w)\n";
    let (stacks, profile) = stacks_of(one_line);
    assert_eq!(
        stacks,
        [["toucher"], ["toucher"], ["f(int) const"], ["f(int) const"]]
    );
    assert!(profile.losses.is_empty());
}

#[test]
fn a_blank_line_before_the_frames_ends_no_sample() {
    let sample = |at: u32| {
        format!(
            "java 10 {at}.502413:   10 cpu-clock:\n\n\tffffffffaee8017b fput+0xb ([k])\n\tffffffffaee7f61c main ([k])\n\n"
        )
    };
    let text: String = (1..30).map(sample).collect::<String>()
        + "x 3 99.000000: 1 cpu-clock:\n\ny 4 99.500000: 1 cpu-clock:\n";
    let (stacks, profile) = stacks_of(&text);
    assert!(stacks[..29].iter().all(|stack| stack == &["fput", "main"]));
    assert!(stacks[29..].iter().all(Vec::is_empty));
    assert_eq!(stacks.len(), 31);
    assert!(profile.losses.is_empty());
    let whole = written(&profile);
    for size in [1, 60, 500] {
        let blocks = || blocks::stream(text.as_bytes(), size);
        let in_memory = blocks::in_memory(text.as_bytes(), size, |_| ());
        for profile in [
            read_in_turn(blocks()),
            read_in_turn(in_memory),
            parallel::read(2, blocks()),
        ] {
            assert_eq!(
                written(&profile.expect("memory is readable")),
                whole,
                "{size}"
            );
        }
    }
}

#[test]
fn registers_and_instructions_are_not_malformed() {
    let text = "t 1  4.608913:     250000 cpu-clock:ppp: \n\t           1469e leaf+0x7e (/b)\n\
        \t           14690 main+0x1 (/b)\n ABI:2    AX:0x0    BX:0x7ffd \n insn: 48 83 c0 01\n\n\
        t 1  4.609913:     250000 cpu-clock:ppp:           1469e leaf+0x7e (/b) insn: 48 83 c0 01\n\
        t 1  4.610913:     250000 cpu-clock:ppp:           1469ee leaf+0x7e (/b) ABI:2    AX:0x0 \n";
    let (stacks, profile) = stacks_of(text);
    assert_eq!(stacks[0], ["leaf", "main"]);
    assert_eq!(stacks[2], ["leaf"]);
    assert!(profile.losses.is_empty(), "{:?}", profile.losses);
}

#[test]
fn more_than_255_events_are_kept_apart() {
    let sample =
        |at: usize| format!("t 1 1.{at:06}: 1 syscalls:sys_enter_{at}:\n\t 1469e f (/b)\n\n");
    let text: String = (0..341).map(sample).collect();
    for profile in [read(text.as_bytes()), read_on(2, text.as_bytes())] {
        let profile = profile.expect("memory is readable");
        assert_eq!((profile.events.len(), profile.samples.len()), (341, 341));
        assert!(profile.losses.is_empty());
    }
}

#[test]
fn two_kinds_of_core_count_one_event() {
    let text = "t 1 1.000001: 5 cpu_core/cycles/P:\n\t 1469e f (/b)\n\n\
        t 1 1.000002: 7 cpu_atom/cycles/P:\n\t 1469e f (/b)\n\n\
        t 1 1.000003: 7 cpu_core/event=0x3c,umask=1/:\n\t 1469e f (/b)\n\n";
    let (_, profile) = stacks_of(text);
    let names: Vec<&str> = profile.events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["cycles:P", "cpu_core/event=0x3c,umask=1/"]);
    assert_eq!(profile.weight_of(0), 12);
}

fn weighing(weights: &[u64], event: &str) -> Profile {
    let mut text = String::new();
    for (at, weight) in weights.iter().enumerate() {
        text += &format!("t 1 [000] 100.{at:06}: {weight} {event}:\n\t 1469e f+0x1 (/b)\n\n");
    }
    read(text.as_bytes()).expect("memory is readable")
}

#[test]
fn ten_trillion_cycles_in_a_millisecond_are_set_apart() {
    let mut weights = vec![1_000_000; 30];
    weights[7] = 10_000_000_000_000;
    let profile = weighing(&weights, "cycles");
    assert_eq!(profile.weight_of(0), 29_000_000);
    assert_eq!(profile.losses.count(LossKind::ImpossibleWeight), 1);
    assert!(
        profile.notes[0].contains("10,000,000,000,000 cycles"),
        "{:?}",
        profile.notes
    );
}

#[test]
fn long_periods_of_all_samples_stay() {
    let weights = [50_000_000_000; 10];
    for event in ["cycles", "cpu-clock", "page-faults"] {
        let profile = weighing(&weights, event);
        assert_eq!(profile.samples.len(), 10, "{event}");
        assert!(profile.losses.is_empty());
    }
}
