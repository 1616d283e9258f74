//! Heaps and collectors of language runtimes.

use super::*;
use pagewise_model::account::{CALLOC, COLLECTOR, TimePart};
use pagewise_model::findings::FlameNode;

fn call(stack: &[&str], faults: f64) -> Site {
    Site {
        stack: stack.iter().map(ToString::to_string).collect(),
        culprit: (*stack.last().expect("a function")).to_owned(),
        faults,
        main_cause: Cause::FirstTouch,
    }
}

/// A run of Node whose young generation is mapped elsewhere each time.
fn moving(stack: &[&str]) -> Findings {
    let mut findings = run(400, 400, 180_000);
    findings.cost.max_rss = Bytes(40_000 * 4096);
    findings
        .allocators
        .push(allocator(AllocatorKind::V8, "22.11.0"));
    findings.by_cause = vec![share(Cause::FirstTouch, 178_000.0)];
    findings.churn.release_sites = vec![call(stack, 170_000.0)];
    findings
}

const BY_V8: [&str; 3] = ["main", "v8::base::OS::Free(void*)", "munmap"];

fn environment(answer: &Findings) -> Vec<(String, String)> {
    let settings = answer.advice.iter().flat_map(|one| &one.settings.0);
    let variables = settings.filter_map(|one| match one {
        Setting::Env { name, value } => Some((name.clone(), value.clone())),
        _ => None,
    });
    variables.collect()
}

fn collecting(kind: AllocatorKind, share: f64) -> Findings {
    let mut findings = run(1900, 100, 2_000);
    findings.allocators = vec![allocator(kind, "")];
    let time = Estimate {
        value: share * 2e9,
        low: share * 1.9e9,
        high: share * 2.1e9,
    };
    findings.account.cpu = vec![TimePart {
        places: vec!["runtime.gcBgMarkWorker".into()],
        ..TimePart::plain(COLLECTOR, "", time)
    }];
    findings
}

#[test]
fn blocks_that_grow_to_other_addresses_are_churn() {
    let leading = |blocks| {
        let mut findings = moving(&BY_V8);
        findings.allocators = vec![allocator(AllocatorKind::Glibc, "2.36")];
        findings.churn.release_sites.clear();
        findings.churn.allocator_blocks = blocks;
        concluded(findings).diagnoses[0].id.clone()
    };
    assert_eq!(leading(Some(1.0)), "churn.mmap");
    assert_ne!(leading(Some(0.0)), "churn.mmap");
    assert_ne!(leading(None), "churn.mmap");
}

#[test]
fn few_stacks_of_threads_do_not_hide_an_allocators_blocks() {
    let leading = |of_threads| {
        let mut findings = churning(
            run(200, 1800, 600_000),
            Cause::RefaultAfterMunmap,
            RegionKind::MmappedChunk,
            590_000.0,
            41_943_040,
        );
        findings.churn.faults = Some(Estimate::exact(590_000.0));
        findings.churn.allocator_blocks = Some(1.0);
        let starts = ["main", "__pthread_create_2_1", "allocate_stack", "__mmap"];
        findings.churn.regrow_sites = vec![call(&starts, of_threads)];
        concluded(findings).diagnoses[0].headline.clone()
    };
    assert_eq!(
        leading(15_616.0),
        "Large blocks are returned to the kernel at each free, then requested again"
    );
    assert_eq!(
        leading(590_000.0),
        "Stacks of threads are released at their ends and touched again by the next threads"
    );
}

#[test]
fn stacks_whose_callers_are_unknown_are_told_by_their_mapping() {
    let of = |region| {
        let churned = churning(
            run(150, 1700, 480_000),
            Cause::RefaultAfterMunmap,
            region,
            460_000.0,
            80 << 20,
        );
        let answer = concluded(churned);
        let advised = answer.advice.first().map(|one| one.rule.clone());
        (answer.diagnoses[0].headline.clone(), advised)
    };
    let (headline, advised) = of(RegionKind::Stack);
    assert!(headline.starts_with("Stacks of threads"), "{headline}");
    assert_eq!(advised.as_deref(), Some("threads.keep"));
    let (headline, _) = of(RegionKind::Anonymous);
    assert!(!headline.starts_with("Stacks of threads"), "{headline}");
}

#[test]
fn memory_that_a_runtime_maps_elsewhere_each_time_is_churn() {
    let answer = concluded(moving(&BY_V8));
    let first = &answer.diagnoses[0];
    assert_eq!(first.id, "churn.mmap");
    assert!(
        first
            .evidence
            .iter()
            .any(|line| line.starts_with("V8 makes the calls")),
        "{:?}",
        first.evidence
    );
    let moved = "138,000 of them are the first touch of an address";
    assert!(
        first.evidence.iter().any(|line| line.starts_with(moved)),
        "{:?}",
        first.evidence
    );
    let expected = (
        "NODE_OPTIONS".to_owned(),
        "--max-semi-space-size=128".to_owned(),
    );
    assert_eq!(environment(&answer), [expected]);
}

#[test]
fn a_first_touch_is_one_where_nobody_is_seen_to_map_anew() {
    let answer = concluded(moving(&["main", "other"]));
    assert_eq!(answer.diagnoses[0].id, "first_touch");
    assert!(environment(&answer).is_empty());
    let mut held = moving(&BY_V8);
    held.cost.max_rss = Bytes(170_000 * 4096);
    assert_eq!(concluded(held).diagnoses[0].id, "first_touch");
}

#[test]
fn blocks_that_grow_to_other_addresses_are_returned_and_requested_again() {
    let mut findings = moving(&["main", "_int_free", "munmap"]);
    findings.allocators = vec![allocator(AllocatorKind::Glibc, "2.36")];
    let answer = concluded(findings.clone());
    assert_eq!(answer.diagnoses[0].id, "churn.mmap");
    assert_eq!(answer.advice[0].rule, "glibc.keep-freed-memory");
    // It holds what it touched.
    findings.cost.max_rss = Bytes(170_000 * 4096);
    assert_eq!(concluded(findings).diagnoses[0].id, "first_touch");
}

#[test]
fn malloc_inside_a_runtime_is_mallocs() {
    let mut findings = moving(&["main", "v8::internal::ArrayBuffer", "_int_free", "munmap"]);
    findings.by_cause = vec![share(Cause::RefaultAfterMunmap, 178_000.0)];
    findings.churn.routes = vec![ChurnRoute {
        cause: Cause::RefaultAfterMunmap,
        region: RegionKind::MmappedChunk,
        faults: 178_000.0,
        released_sizes: Histogram::default(),
    }];
    assert!(environment(&concluded(findings)).is_empty());
}

#[test]
fn values_that_a_variable_has_are_kept() {
    let mut findings = moving(&BY_V8);
    let node = findings.allocators.last_mut().expect("V8");
    node.settings
        .insert("NODE_OPTIONS".into(), "--no-warnings".into());
    let answer = concluded(findings.clone());
    assert_eq!(
        environment(&answer)[0].1,
        "--no-warnings --max-semi-space-size=128"
    );
    let node = findings.allocators.last_mut().expect("V8");
    node.settings
        .insert("--max-semi-space-size".into(), "32".into());
    assert!(environment(&concluded(findings)).is_empty());
}

#[test]
fn collections_in_forked_processes_are_one_problem() {
    let mut findings = run(600, 400, 170_000);
    findings.allocators = vec![
        allocator(AllocatorKind::Glibc, "2.36"),
        allocator(AllocatorKind::Cpython, "3.11"),
    ];
    findings.time.forks = 8;
    findings.by_cause = vec![share(Cause::CopyOnWrite, 100_000.0)];
    findings.account.cpu = vec![TimePart {
        places: vec!["gc_collect_main".into()],
        ..TimePart::plain("collector", "", Estimate::exact(2.6e8))
    }];
    findings.sites = vec![copying(&["gc_collect_main", "gc_reset_refs"])];
    let answer = concluded(findings.clone());
    let words = "Forked processes collect garbage in what they inherited";
    assert!(answer.verdict.starts_with(words), "{}", answer.verdict);
    assert_eq!(answer.advice[0].rule, "cow.collector");
    // Without copies it is an ordinary collector.
    findings.by_cause = vec![share(Cause::FirstTouch, 100_000.0)];
    let answer = concluded(findings);
    assert!(!answer.verdict.starts_with(words), "{}", answer.verdict);
}

/// A place where pages are copied after a fork.
fn copying(stack: &[&str]) -> Site {
    Site {
        main_cause: Cause::CopyOnWrite,
        ..call(stack, 90_000.0)
    }
}

/// `for v in x: s += v` in the children of a process with a list of three million integers: its few collections,
/// at the end, copy nothing, and gc.freeze() before the forks gains nothing.
#[test]
fn children_that_read_objects_are_not_blamed_on_the_collector() {
    let mut findings = run(2_400, 1_300, 349_000);
    findings.allocators = vec![
        allocator(AllocatorKind::Glibc, "2.36"),
        allocator(AllocatorKind::Cpython, "3.11"),
    ];
    findings.time.forks = 12;
    findings.by_cause = vec![share(Cause::CopyOnWrite, 240_000.0)];
    findings.account.cpu = vec![TimePart {
        places: vec!["gc_collect_main".into()],
        ..TimePart::plain("collector", "", Estimate::exact(5.0e6))
    }];
    findings.sites = vec![copying(&["_PyEval_EvalFrameDefault", "listiter_next"])];
    let in_module = |module: &str| FlameNode {
        name: "listiter_next".into(),
        module: module.into(),
        total: 240_000.0,
        children: Vec::new(),
    };
    findings.flame.children = vec![in_module("libpython3.11.so.1.0")];
    let answer = concluded(findings.clone());
    let words = "Forked processes use Python objects that they inherited";
    assert!(answer.verdict.starts_with(words), "{}", answer.verdict);
    assert_eq!(answer.advice[0].rule, "cow.reference-counts");
    // Distributions strip it.
    let mut stripped = findings.clone();
    stripped.sites = vec![copying(&["_PyEval_EvalFrameDefault", "[python3.11]"])];
    stripped.flame.children = vec![FlameNode {
        name: "[python3.11]".into(),
        ..in_module("python3.11")
    }];
    assert_eq!(concluded(stripped).advice[0].rule, "cow.python-objects");
    // A library's own writes are its own.
    findings.flame.children = vec![in_module("_multiarray_umath.so")];
    let answer = concluded(findings);
    assert_eq!(answer.advice[0].rule, "cow.fork", "{}", answer.verdict);
}

/// The forked children of a Python without names collect what they inherited: 14 % of the CPU time are copies, 67 % are
/// functions without names, the collector's among them.
#[test]
fn copies_by_python_lead_where_its_own_code_has_no_names() {
    let of = |name: &str| {
        let mut findings = run(1_330, 500, 164_680);
        findings.allocators = vec![allocator(AllocatorKind::Cpython, "3.11")];
        findings.time.forks = 8;
        findings.by_cause = vec![Share {
            time: Some(Nanos(256_000_000)),
            ..share(Cause::CopyOnWrite, 102_493.0)
        }];
        findings.account.cpu = vec![
            TimePart {
                places: vec![name.into()],
                shares: vec![0.65],
                ..TimePart::plain("own", "", Estimate::exact(0.67 * 1.83e9))
            },
            TimePart::plain("fault", "", Estimate::exact(0.21 * 1.83e9)),
        ];
        findings.time.total_ns = Some(Estimate::exact(0.384e9));
        findings.sites = vec![copying(&["_PyEval_EvalFrameDefault", "[python3.11]"])];
        findings.flame.children = vec![FlameNode {
            name: "[python3.11]".into(),
            module: "python3.11".into(),
            total: 102_493.0,
            children: Vec::new(),
        }];
        concluded(findings)
    };
    let stripped = of("[unknown in python3.11]");
    assert_eq!(stripped.diagnoses[0].id, "cow.fork", "{}", stripped.verdict);
    let words = "Forked processes write to Python objects that they inherited";
    assert!(stripped.verdict.starts_with(words), "{}", stripped.verdict);
    assert_eq!(stripped.advice[0].rule, "cow.python-objects");
    let named = of("_PyEval_EvalFrameDefault");
    assert_eq!(named.diagnoses[0].id, "computing", "{}", named.verdict);
    assert!(named.verdict.contains(words), "{}", named.verdict);
}

#[test]
fn a_hot_collector_gets_more_room_unless_its_user_decided() {
    let answer = concluded(collecting(AllocatorKind::Go, 0.5));
    assert_eq!(answer.diagnoses[0].id, "collector.hot");
    assert_eq!(
        environment(&answer),
        [("GOGC".to_owned(), "400".to_owned())]
    );
    let best = &answer.advice[0];
    assert!(
        best.predicted_speedup.covers(1.43),
        "{:?}",
        best.predicted_speedup
    );
    assert_eq!(best.rss_price, Bytes(24 << 20));
    assert!(environment(&concluded(collecting(AllocatorKind::Go, 0.09))).is_empty());
    let mut decided = collecting(AllocatorKind::Go, 0.5);
    decided.allocators[0]
        .settings
        .insert("GOGC".into(), "50".into());
    assert!(environment(&concluded(decided)).is_empty());
}

#[test]
fn what_may_do_harm_is_tried_and_not_advised() {
    let mut findings = moving(&["zend_execute", "[php8.2]", "__munmap"]);
    findings.allocators = vec![
        allocator(AllocatorKind::Glibc, "2.36"),
        allocator(AllocatorKind::Php, ""),
    ];
    let rules = Rules::shipped().expect("shipped rules");
    let tried = |findings: &Findings| -> Vec<String> {
        let tried = trials(findings, &rules, &Surroundings::default());
        tried.into_iter().map(|one| one.rule).collect()
    };
    let huge = "php.zend-huge-pages".to_owned();
    assert!(!tried(&concluded(findings.clone())).contains(&huge));
    findings
        .host
        .settings
        .insert("thp.enabled".into(), "always [madvise] never".into());
    let answer = concluded(findings);
    assert!(environment(&answer).is_empty());
    assert!(tried(&answer).contains(&huge));
    assert!(tried(&answer).contains(&"php.use-malloc".to_owned()));
    let also = "'use malloc'";
    assert!(answer.verdict.contains(also), "{}", answer.verdict);
}

/// A Java program that touches fresh memory: nothing is advised, and a proof tries the collector.
#[test]
fn possible_fixes_are_named_where_only_trials_can_tell() {
    let mut findings = run(530, 280, 183_165);
    findings.by_cause = vec![share(Cause::FirstTouch, 183_000.0)];
    findings.allocators = vec![allocator(AllocatorKind::Jvm, "17")];
    let answer = concluded(findings);
    assert_eq!(answer.diagnoses[0].id, "first_touch");
    let tried = "No setting is sure to fix that; pagewise doctor --prove tries 'one size' and \
                 'serial collector'.";
    assert!(answer.verdict.contains(tried), "{}", answer.verdict);
    assert!(
        !answer.verdict.contains("No setting cures"),
        "{}",
        answer.verdict
    );
}

#[test]
fn a_java_heap_with_a_limit_is_kept_at_it() {
    let mut findings = moving(&["JavaThread", "os::pd_uncommit_memory(char*)", "mmap"]);
    findings
        .allocators
        .push(allocator(AllocatorKind::Jvm, "17"));
    let free = environment(&concluded(findings.clone()));
    assert_eq!(free[0].1, format!("-Xms{}", 256 << 20));
    let java = findings.allocators.last_mut().expect("a JVM");
    java.settings.insert("-Xmx".into(), "300m".into());
    java.settings
        .insert("JAVA_TOOL_OPTIONS".into(), "-Dx=y".into());
    let limited = environment(&concluded(findings));
    assert_eq!(limited[0].1, "-Dx=y -Xms300m");
}

/// A run of Node of so many milliseconds, three tenths of it in its collector, that touches no page twice.
fn of_node(millis: u64) -> Findings {
    let mut findings = moving(&BY_V8);
    findings.cost = run(millis * 7 / 10, millis * 3 / 10, 30_000).cost;
    findings.cost.max_rss = Bytes(30_000 * 4096);
    let collected = millis as f64 * 300_000.0;
    findings.account.cpu = vec![TimePart {
        places: vec!["v8::internal::ScavengerCollector::JobTask::Run(v8::JobDelegate*)".into()],
        ..TimePart::plain(COLLECTOR, "", Estimate::exact(collected))
    }];
    findings.by_cause = vec![share(Cause::FirstTouch, 30_000.0)];
    findings
}

#[test]
fn a_heap_grows_in_runs_that_last_longer_than_growing_takes() {
    let rules = Rules::shipped().expect("shipped rules");
    let foretold = |millis: u64| {
        let tried = trials(
            &concluded(of_node(millis)),
            &rules,
            &Surroundings::default(),
        );
        let mut tried = tried.iter().filter(|one| one.rule == "v8.semi-space");
        tried.next().expect("a trial").predicted_speedup.value
    };
    assert!(
        foretold(450) < 1.0,
        "its heap would be touched for the first time"
    );
    assert!(foretold(20_000) > 1.1);
}

/// Objects that nearly fill their limit: a higher one is ×2.2, one that is far away changes nothing.
#[test]
fn a_limit_of_the_heap_is_raised_only_where_the_heap_is_near_it() {
    let advised = |name: &str, value: &str| {
        let mut findings = of_node(3_000);
        for one in &mut findings.allocators {
            one.settings.clear();
            if one.kind == AllocatorKind::V8 {
                one.settings.insert(name.to_owned(), value.to_owned());
            }
        }
        let answer = concluded(findings);
        let mut found = answer.advice.into_iter();
        found.find(|one| one.rule == "v8.more-old-space")
    };
    let limit = "--max-old-space-size";
    let near = advised(limit, "130").expect("a fix by hand");
    assert!(
        near.headline.ends_with("--max-old-space-size=130"),
        "{}",
        near.headline
    );
    assert!(near.settings.0.is_empty());
    let listed = "--max-old-space-size=130 --no-warnings";
    let listed = advised("NODE_OPTIONS", listed).expect("the same fix");
    assert_eq!(listed.headline, near.headline);
    assert!(advised(limit, "4096").is_none());
    assert!(advised(limit, "much").is_none());
    assert!(advised("--stack-size", "130").is_none());
}

#[test]
fn touching_a_whole_java_heap_first_is_taken_back_as_a_trial() {
    let tried = |option: &str| {
        let mut findings = run(500, 900, 520_000);
        findings.by_cause = vec![share(Cause::FirstTouch, 519_000.0)];
        let mut java = allocator(AllocatorKind::Jvm, "17");
        java.settings.insert(option.to_owned(), String::new());
        findings.allocators = vec![java];
        let answer = concluded(findings);
        answer.verdict.contains("'no pretouch'")
    };
    assert!(tried("-XX:+AlwaysPreTouch"));
    assert!(!tried("-XX:+UseG1GC"));
}

#[test]
fn much_zeroing_by_an_unseen_caller_is_tried_as_callocs() {
    let tried = |function: &str, share: f64| {
        let mut findings = run(1900, 100, 9_000);
        findings.allocators = vec![allocator(AllocatorKind::Glibc, "2.36")];
        findings.account.cpu = vec![TimePart {
            places: vec!["work".into(), function.into()],
            shares: vec![0.9 - share, share],
            ..TimePart::plain("own", "", Estimate::exact(1.9e9))
        }];
        let rules = Rules::shipped().expect("shipped rules");
        let all = trials(&concluded(findings), &rules, &Surroundings::default());
        all.iter().any(|one| one.rule == "glibc.fresh-callocs")
    };
    assert!(tried("__memset_avx512_unaligned_erms", 0.4));
    assert!(!tried("__memset_avx512_unaligned_erms", 0.1));
    assert!(!tried("__memcpy_avx512_unaligned_erms", 0.4));
}

#[test]
fn zeroing_for_calloc_is_a_finding_with_its_own_trial() {
    let answer = |share: f64| {
        let mut findings = run(1900, 100, 9_000);
        findings.allocators = vec![allocator(AllocatorKind::Glibc, "2.36")];
        findings.account.cpu = vec![TimePart {
            places: vec!["default_calloc".into()],
            ..TimePart::plain(CALLOC, "", Estimate::exact(share * 2e9))
        }];
        concluded(findings)
    };
    let much = answer(0.8);
    assert_eq!(much.diagnoses[0].id, "calloc.zeroing");
    assert!(much.verdict.contains("'fresh callocs'"), "{}", much.verdict);
    let evidence = much.diagnoses[0].evidence.join("\n");
    assert!(evidence.contains("default_calloc"), "{evidence}");
    assert_ne!(answer(0.05).diagnoses[0].id, "calloc.zeroing");
}
