use super::*;

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
    let ids = profile.stacks.frames(profile.samples.stacks[at]);
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
    assert_eq!(profile.samples.stacks[1], profile.samples.stacks[2]);
    let thread = |at: usize| {
        let thread = &profile.threads[profile.samples.threads[at] as usize];
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
fn what_makes_no_sense_is_counted() {
    let text = "hello\n\tffffffff81000001 f ([k])\n\nx 1 [0] -1.000000: 1 cycles:\n\t\x01 \x1b[31m (x\n\nfoo bar\n";
    let profile = read(text.as_bytes()).expect("memory is readable");
    assert_eq!(profile.samples.len(), 1);
    assert_eq!(profile.losses.of(LossKind::MalformedRecord), 3);
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
    let deepest = profile.samples.stacks[10_000];
    assert_eq!(profile.stacks.frames(deepest).count(), 10_000);
    assert_eq!(profile.stacks.len(), 10_002);
}
