use super::*;
use crate::made::Maker;
use pagewise_model::loss::LossKind;
use pagewise_model::profile::{Frame, FrameKind, FrameTable, NodeId, StackTree};
use pagewise_model::symbol::Unnamed;
use pagewise_stats::Random;

/// This many seconds of two CPUs at 99 samples per second. The stack of a sample is random, and the
/// load varies slowly, as real loads do; `shift` of all time moves from `parse` to `copy`.
fn load(seconds: u64, shift: f64, seed: u64) -> Profile {
    let mut random = Random::seeded(seed);
    let mut draw = || random.below(1_000_000) as f64 / 1e6;
    let period = 1_000_000_000 / 99;
    let mut maker = Maker::default();
    let mut wave = 0.0;
    for at in 0..seconds * 99 {
        wave = 0.98 * wave + 0.004 * (draw() - 0.5);
        for cpu in 0..2 {
            let stack = match draw() {
                x if x < 0.20 + wave => "main;serve;send_k;tcp_k",
                x if x < 0.30 + shift => "main;serve;read_k;copy_k",
                x if x < 0.60 => "main;serve;parse;lex",
                x if x < 0.62 => "main;log;format",
                x if x < 0.70 => "main;serve;parse;tree;walk;walk",
                _ => "start_k;default_idle_k",
            };
            maker.sample_of(0, cpu, at * period, stack, period);
        }
    }
    maker.finish()
}

fn options(seed: u64) -> DiffOptions {
    DiffOptions {
        names: ("before".to_owned(), "after".to_owned()),
        event: None,
        shares: false,
        seed,
    }
}

fn compared(a: &Profile, b: &Profile, seed: u64) -> Document<ProfileDiff> {
    diff(a, b, &options(seed), &SettingRules::shipped().unwrap()).unwrap()
}

fn is_quiet(diff: &ProfileDiff) -> bool {
    !diff.functions.iter().any(|c| c.significant) && !diff.stacks.iter().any(|c| c.significant)
}

#[test]
fn equal_loads_differ_in_nothing() {
    let runs = 100;
    let quiet = (0..runs)
        .filter(|&run| {
            is_quiet(&compared(
                &load(10, 0.0, 2 * run),
                &load(10, 0.0, 2 * run + 1),
                run,
            ))
        })
        .count();
    assert!(quiet >= 95, "{quiet} of {runs}");
}

#[test]
fn three_per_cent_that_move_are_found_and_named() {
    let runs = 10;
    let found = (0..runs).filter(|&run| {
        let found = compared(&load(60, 0.0, 2 * run), &load(60, 0.03, 2 * run + 1), run);
        let copy = found
            .functions
            .iter()
            .find(|change| change.name == "copy")
            .unwrap();
        copy.significant && found.verdict.starts_with("copy grew in after")
    });
    assert!(found.count() >= 8);
}

#[test]
fn amounts_do_not_depend_on_rate_or_length() {
    let (short, long) = (load(10, 0.0, 1), load(40, 0.0, 2));
    let found = compared(&short, &long, 1);
    assert_eq!(found.measure, Measure::CpusInUse);
    let main = found
        .functions
        .iter()
        .find(|change| change.name == "main")
        .unwrap();
    assert!(
        (main.a - 1.4).abs() < 0.1 && (main.b - 1.4).abs() < 0.1,
        "{main:?}"
    );
}

/// B runs next to another program that takes half of the machine from it, in waves.
#[test]
fn shares_do_not_depend_on_how_much_of_the_machine_there_was() {
    let (a, whole) = (load(20, 0.0, 1), load(20, 0.0, 2));
    let b = whole.without(Nanos(3_000_000_000), Nanos(9_000_000_000));
    let shares = DiffOptions {
        shares: true,
        ..options(1)
    };
    let found = diff(&a, &b, &shares, &SettingRules::shipped().unwrap()).unwrap();
    assert_eq!(found.measure, Measure::ShareOfBusy);
    assert!(is_quiet(&found), "{}", found.verdict);
    let main = found
        .functions
        .iter()
        .find(|change| change.name == "main")
        .unwrap();
    assert!((main.a - 1.0).abs() < 1e-9 && (main.b - 1.0).abs() < 1e-9);
}

#[test]
fn both_trees_add_up_and_vanished_frames_stay_visible() {
    let mut a = Maker::default();
    a.samples("main;old", 300);
    a.samples("main;same", 300);
    let mut b = Maker::default();
    b.samples("main;new", 300);
    b.samples("main;same", 300);
    let found = compared(&a.finish(), &b.finish(), 1);
    for name in ["old", "new"] {
        assert!(found.tree.iter().any(|node| node.name == name), "{name}");
    }
    for (at, node) in found.tree.iter().enumerate() {
        let below = found
            .tree
            .iter()
            .enumerate()
            .filter(|&(of, child)| of > 0 && child.parent as usize == at);
        let sum: f64 = below.map(|(_, child)| child.b).sum();
        assert!(sum <= node.b * 1.000_001, "{node:?}");
    }
}

#[test]
fn without_times_shares_are_compared_and_that_is_said() {
    let (mut a, mut b) = (load(10, 0.0, 1), load(10, 0.1, 2));
    a.has_times = false;
    b.has_times = false;
    let found = compared(&a, &b, 1);
    assert_eq!(found.measure, Measure::ShareOfBusy);
    assert!(found.notes[0].contains("lack times"));
    assert!(
        found
            .functions
            .iter()
            .any(|change| change.name == "copy" && change.significant)
    );
}

#[test]
fn nothing_in_common_is_an_error_with_both_lists() {
    let mut a = Maker::default();
    a.samples("main", 3);
    let mut b = Maker::default();
    b.events = vec!["page-faults"];
    b.samples("main", 3);
    let (a, b) = (a.finish(), b.finish());
    let error = diff(&a, &b, &options(1), &SettingRules::shipped().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the two have no event in common: cpu-clock against page-faults"
    );
}

/// Twenty seconds in which one of five samples ends in a frame without a name, and `more` of a
/// hundred in `copy`.
fn partly_named(unnamed: u64, more: u64) -> Profile {
    let mut maker = Maker::default();
    for at in 0..2_000_u64 {
        let stack = match at * 37 % 100 {
            draw if draw < unnamed => "main;?libc.so.6",
            draw if draw < unnamed + more => "main;copy_k",
            _ => "main;parse",
        };
        maker.sample_at(at * 10_000_000, stack, 10_000_000);
    }
    maker.finish()
}

#[test]
fn what_has_a_name_comes_before_what_has_none() {
    let found = compared(&partly_named(10, 10), &partly_named(40, 30), 1);
    let named: Vec<bool> = found
        .functions
        .iter()
        .filter(|change| change.significant)
        .map(|change| change.unnamed.is_none())
        .collect();
    // The unnamed part grew most (0.3); of the named functions parse shrank by 0.5, copy grew by
    // 0.2.
    assert_eq!(named, [true, true, false]);
    assert!(
        found.verdict.starts_with("copy grew in after"),
        "{}",
        found.verdict
    );
    let causes: Vec<(f64, f64)> = found
        .unknown
        .iter()
        .map(|cause| (cause.a, cause.b))
        .collect();
    assert_eq!(causes, [(0.1, 0.4)]);
    assert!(found.unknown[0].remedy.contains("libc.so.6 is stripped"));
    let alone = compared(&partly_named(10, 0), &partly_named(40, 0), 1);
    assert!(
        alone.verdict.starts_with("parse shrank"),
        "{}",
        alone.verdict
    );
}

#[test]
fn how_long_a_broken_chain_is_means_nothing() {
    let chains = |broken: &str| {
        let mut maker = Maker::default();
        for at in 0..2_000_u64 {
            let stack = match at % 2 {
                0 => format!("{broken};work"),
                _ => "main;parse".to_owned(),
            };
            maker.sample_at(at * 10_000_000, &stack, 10_000_000);
        }
        maker.finish()
    };
    let found = compared(&chains("?;?;?"), &chains("?"), 1);
    assert!(is_quiet(&found), "{:?}", found.stacks);
    assert_eq!(found.tree.len(), 4, "all, work, main, parse");
}

/// Two seconds of a run with this many hundredths of interrupts in addition to the program's work.
fn run_with_interrupts(hundredths: u64) -> Profile {
    let mut maker = Maker::default();
    for at in 0..2_000_u64 {
        let stack = match at * 37 % 100 {
            draw if draw < hundredths => "main;work;asm_common_interrupt_k;handle_softirqs_k",
            draw if draw % 10 == 9 => "main;send_k;net_send_k;handle_softirqs_k",
            _ => "main;work",
        };
        maker.sample_at(at * 1_000_000, stack, 1_000_000);
    }
    Profile {
        observed: Observed::Run(Some(Nanos(2_000_000_000))),
        ..maker.finish()
    }
}

#[test]
fn what_interrupts_take_of_a_run_is_not_the_programs() {
    let found = compared(&run_with_interrupts(0), &run_with_interrupts(9), 1);
    assert_eq!(found.measure, Measure::CpuSecondsPerRun);
    assert!(is_quiet(&found), "{}", found.verdict);
    let message = found
        .notes
        .iter()
        .any(|note| note.starts_with("Interrupts took"));
    assert!(message, "{:?}", found.notes);
    let names: Vec<&str> = found.functions.iter().map(|change| &*change.name).collect();
    assert!(
        names.contains(&"handle_softirqs"),
        "its own calls run softirqs, too: {names:?}"
    );
    assert!(!names.contains(&"asm_common_interrupt"), "{names:?}");
}

/// `f` of `file`; without a name if it is `?`.
fn frame(f: &str, file: &str, kind: FrameKind) -> Frame {
    Frame {
        name: f.into(),
        module: file.into(),
        kind,
        unnamed: (f == "?").then_some(Unnamed::NoFile),
    }
}

/// A profile of these stacks, outermost frames first, and how often each was sampled.
fn profile_of(stacks: &[(&[Frame], u64)]) -> Profile {
    let mut maker = Maker::default();
    for (at, (_, count)) in stacks.iter().enumerate() {
        for _ in 0..*count {
            maker.sample_of(0, 0, 0, &format!("stack{at}"), 1);
        }
    }
    let made = maker.finish();
    let mut table = FrameTable::default();
    let mut tree = StackTree::default();
    let nodes: Vec<NodeId> = stacks
        .iter()
        .map(|(frames, _)| {
            let numbers: Vec<_> = frames.iter().map(|f| table.intern(f.clone())).collect();
            tree.intern(numbers)
        })
        .collect();
    let mut profile = made.clone();
    profile.samples.stacks = made
        .samples
        .stacks
        .iter()
        .map(|node| {
            let frame = made.stacks.frame(node).expect("it has one");
            let name = &made.frames[frame.0 as usize].name;
            let at: usize = name["stack".len()..].parse().expect("its number");
            nodes[at]
        })
        .collect();
    (profile.frames, profile.stacks) = (table.into_frames(), tree);
    profile
}

#[test]
fn a_file_with_names_on_one_side_is_compared_as_a_whole() {
    let user = FrameKind::User;
    let bare = frame("?", "wl", user);
    let main = frame("main", "wl", user);
    let without: [Frame; 2] = [bare.clone(), bare];
    let with: [Frame; 3] = [
        main.clone(),
        frame("gamma", "wl", user),
        frame("inl", "", FrameKind::Inlined),
    ];
    let other = [main, frame("beta", "wl", user)];
    let union = Union::new(
        &profile_of(&[(&without, 3)]),
        &profile_of(&[(&with, 2), (&other, 1)]),
    );
    let names: Vec<&str> = union.frames.iter().map(|frame| &*frame.name).collect();
    assert_eq!(names, ["[unknown in wl]"]);
}

#[test]
fn inlined_frames_are_compared_where_one_tool_named_them() {
    let main = frame("main", "wl", FrameKind::User);
    let recorded = [main.clone(), frame("inl", "wl", FrameKind::Inlined)];
    // Text does not name their file.
    let of_text = [main, frame("inl", "", FrameKind::Inlined)];
    let [recorded, of_text] = [recorded, of_text].map(|stack| profile_of(&[(&stack, 3)]));
    let frames = |a, b| Union::new(a, b).frames;
    assert_eq!(frames(&recorded, &of_text).len(), 1);
    assert_eq!(frames(&recorded, &recorded).len(), 2);
    let in_text = frames(&of_text, &of_text);
    assert_eq!((&*in_text[1].name, &*in_text[1].module), ("inl", "wl"));
}

#[test]
fn spellings_of_another_tool_are_the_same_functions() {
    let user = |name: &str, module: &str| frame(name, module, FrameKind::User);
    let own = [
        frame("[unknown]", "wl", FrameKind::User),
        user("__libc_start_main", "libc.so.6"),
        user("a::f(int)", "wl"),
        user("cfree", "libc.so.6"),
    ];
    let of_text = [
        user("a::f", "wl"),
        frame("__GI___libc_free", "", FrameKind::Inlined),
    ];
    let union = Union::new(&profile_of(&[(&own, 3)]), &profile_of(&[(&of_text, 3)]));
    let names: Vec<&str> = union.frames.iter().map(|frame| &*frame.name).collect();
    assert_eq!(names[1..], ["a::f", "free"]);
    assert!(
        union.tree.len() == 4,
        "a root, what called main, and one stack"
    );
    // perf 6.1 calls a whole function inlined.
    let own = [user("main", "wl"), user("copy", "libc.so.6")];
    let of_text = [user("main", "wl"), frame("copy", "", FrameKind::Inlined)];
    let union = Union::new(&profile_of(&[(&own, 3)]), &profile_of(&[(&of_text, 3)]));
    assert_eq!(union.frames.len(), 2);
    // What one tool alone calls inlined is compared with the function around it.
    let inlined = [user("main", "wl"), frame("inl", "wl", FrameKind::Inlined)];
    let whole = [user("main", "wl")];
    let (a, b) = (profile_of(&[(&inlined, 3)]), profile_of(&[(&whole, 3)]));
    assert_eq!(Union::new(&a, &b).frames.len(), 1);
    assert_eq!(Union::new(&a, &a).frames.len(), 2);
    // So is what is inlined in some places, and called in others.
    let stacks = |module| {
        let (inlined, called) = (frame("inl", module, FrameKind::Inlined), user("inl", "wl"));
        let main = user("main", "wl");
        profile_of(&[(&[main.clone(), inlined][..], 3), (&[main, called][..], 1)])
    };
    let (recorded, of_text) = (stacks("wl"), stacks(""));
    let union = Union::new(&recorded, &of_text);
    let nodes = |profile: &Profile, side| -> Vec<usize> {
        let samples = profile.samples.iter();
        samples.map(|sample| union.place(side, &sample)).collect()
    };
    assert_eq!(nodes(&recorded, 0), nodes(&of_text, 1));
    // Overloads stay apart where both sides have them.
    let overloads = [user("a::f(int)", "wl"), user("a::f(long)", "wl")];
    let profile = profile_of(&[(&overloads, 3)]);
    assert_eq!(Union::new(&profile, &profile).frames.len(), 2);
}

/// Folded stacks: the lines of 200 lambdas, and one line for the rest. Runs stay in one place for ten
/// samples.
fn folded(of_lambdas: f64, seed: u64) -> Profile {
    let mut random = Random::seeded(seed);
    let mut counts = vec![0_u64; 201];
    for _ in 0..1_200 {
        let line = match (random.below(1_000_000) as f64) < 1e6 * of_lambdas {
            true => random.below(200),
            false => 200,
        };
        counts[line] += 10;
    }
    let mut maker = Maker::default();
    for (line, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let leaf = match line {
            200 => "Other.work".to_owned(),
            line => format!("Foo$$Lambda${line}/0x0000d8f191b7584a.apply"),
        };
        maker.sample_of(0, 0, 0, &format!("java;Main.run;{leaf}"), count);
    }
    let mut profile = maker.finish();
    profile.has_times = false;
    profile.events[0].unit = WeightUnit::Samples;
    profile
}

#[test]
fn growth_that_one_line_of_folded_stacks_holds_is_found() {
    let (a, b) = (folded(0.333, 1), folded(0.5, 2));
    let found = compared(&a, &b, 1);
    assert_eq!(
        (found.a.sums.samples, found.b.sums.samples),
        (12_000, 12_000)
    );
    let grown = found
        .functions
        .iter()
        .find(|change| change.name.contains("Lambda"));
    assert!(
        grown.is_some_and(|grown| grown.significant),
        "{:?}",
        found.functions
    );
}

/// A twentieth of 200 is 10, with a standard deviation of 3.
#[test]
fn equal_folded_stacks_rarely_differ() {
    let differ = (0..200).filter(|&pair| {
        let (a, b) = (folded(0.333, 2 * pair + 10), folded(0.333, 2 * pair + 11));
        !is_quiet(&compared(&a, &b, pair))
    });
    let differ = differ.count();
    assert!(differ <= 20, "{differ} of 200");
}

#[test]
fn a_side_without_its_end_is_told_first_and_compared_by_shares() {
    let run = |seconds| Profile {
        observed: Observed::Run(Some(Nanos(seconds * 2_000_000_000))),
        ..load(seconds, 0.0, seconds)
    };
    let mut a = run(20);
    a.cut = Some("This recording is cut off: 1 MB of 2 MB are missing.".to_owned());
    a.losses.add(LossKind::Truncated, 1_000_000);
    let found = compared(&a, &run(40), 1);
    assert_eq!(found.measure, Measure::ShareOfBusy);
    let expected = "before: This recording is cut off: 1 MB of 2 MB are missing. In what is left: No \
                    significant difference between before and after";
    assert!(found.verdict.starts_with(expected), "{}", found.verdict);
    let lost = "Losses of before: 1,000,000 bytes missing at the end of the file.";
    assert!(
        found.notes.iter().any(|note| note == lost),
        "{:?}",
        found.notes
    );
}

/// The same work: `copy` takes `copying` of the time. If `ends_early`, nine in ten stacks end below
/// `serve`, some of them with what the stack happened to hold there.
fn served(copying: f64, ends_early: bool, seed: u64) -> Profile {
    let mut random = Random::seeded(seed);
    let mut draw = || random.below(1_000_000) as f64 / 1e6;
    let period = 1_000_000_000 / 99;
    let mut maker = Maker::default();
    for at in 0..60 * 99 {
        let stack = match draw() {
            x if x < copying => "main;serve;read_k;copy_k",
            x if x < 0.6 => "main;serve;parse;lex",
            x if x < 0.7 => "main;log;format",
            _ => "start_k;default_idle_k",
        };
        let is_cut = ends_early && draw() < 0.9;
        let stack = match is_cut {
            true => stack.replace("main;serve;", if draw() < 0.3 { "log;?;" } else { "" }),
            false => stack.to_owned(),
        };
        maker.sample_of(0, 0, at * period, &stack, period);
    }
    maker.finish()
}

#[test]
fn callers_that_one_side_lacks_are_no_difference() {
    for seed in 0..10 {
        let (whole, cut) = (
            served(0.2, false, 2 * seed),
            served(0.2, true, 2 * seed + 1),
        );
        for found in [compared(&whole, &cut, seed), compared(&cut, &whole, seed)] {
            assert!(is_quiet(&found), "{}", found.verdict);
            let lacking = found
                .notes
                .iter()
                .find(|note| note.contains("lack callers"));
            let percent = lacking.and_then(|note| note.split(" %").next()?.parse::<f64>().ok());
            assert!(
                percent.is_some_and(|share| (75.0..80.0).contains(&share)),
                "{:?}",
                found.notes
            );
        }
    }
}

#[test]
fn what_grew_is_found_although_one_side_lacks_its_callers() {
    let found = compared(&served(0.2, false, 1), &served(0.3, true, 2), 1);
    assert!(found.verdict.starts_with("copy grew"), "{}", found.verdict);
    // Both alike: nothing is withdrawn.
    let found = compared(&served(0.2, true, 1), &served(0.3, true, 2), 1);
    assert!(
        !found.notes.iter().any(|note| note.contains("lack callers")),
        "{:?}",
        found.notes
    );
}

#[test]
fn what_broken_chains_took_for_callers_is_no_difference() {
    let run = |is_broken: bool, seed| {
        let mut random = Random::seeded(seed);
        let period = 1_000_000_000 / 99;
        let mut maker = Maker::default();
        for at in 0..60 * 99 {
            let function = ["sort", "sort", "read"][random.below(3)];
            let stack = match is_broken && random.below(3) > 0 {
                // One sample that nothing is known of makes no function of what the others begin with.
                true if at < 20 => "?".to_owned(),
                true => format!("?;?;{function}"),
                false => function.to_owned(),
            };
            maker.sample_of(0, 0, at * period, &stack, period);
        }
        maker.finish()
    };
    let (whole, broken) = (run(false, 1), run(true, 2));
    for found in [compared(&whole, &broken, 1), compared(&broken, &whole, 1)] {
        assert!(is_quiet(&found), "{}", found.verdict);
    }
}
