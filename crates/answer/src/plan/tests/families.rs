//! Settings by version of an allocator or runtime, and allocators inside programs and libraries.

use super::*;

/// Churn of large mappings whose calls have this stack, in a process with these allocators.
fn mapped(stack: &[&str], size: u64, allocators: Vec<Allocator>) -> Findings {
    let mut findings = churning(
        run(350, 909, 540_458),
        Cause::RefaultAfterMunmap,
        RegionKind::Anonymous,
        537_000.0,
        size,
    );
    findings.allocators = allocators;
    findings.churn.release_sites = vec![site(stack, Cause::RefaultAfterMunmap)];
    concluded(findings)
}

fn site(stack: &[&str], main_cause: Cause) -> Site {
    Site {
        stack: stack.iter().map(ToString::to_string).collect(),
        culprit: (*stack.last().expect("a function")).to_owned(),
        faults: 537_000.0,
        main_cause,
    }
}

fn glibc() -> Allocator {
    allocator(AllocatorKind::Glibc, "2.36")
}

fn inside(kind: AllocatorKind, file: &str, variable: Option<&str>) -> Allocator {
    Allocator {
        kind,
        is_static: true,
        inside: Some(file.to_owned()),
        variable: variable.map(str::to_owned),
        ..Allocator::default()
    }
}

fn rules(answer: &Findings) -> Vec<&str> {
    answer.advice.iter().map(|one| one.rule.as_str()).collect()
}

fn variables(answer: &Findings) -> Vec<&str> {
    let settings = answer.advice.iter().flat_map(|one| &one.settings.0);
    let names = settings.filter_map(|one| match one {
        Setting::Env { name, .. } => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

#[test]
fn a_mimalloc_linked_in_gets_no_thresholds_of_glibc() {
    let linked = || vec![inside(AllocatorKind::Mimalloc, "server", None), glibc()];
    for stack in [
        &["main", "mi_free", "_mi_os_purge", "munmap"][..],
        // Stripped.
        &["__libc_start_main", "[server]", "__munmap"],
    ] {
        let answer = mapped(stack, 48 << 20, linked());
        assert_eq!(tunables(&answer), [""; 0], "{stack:?}");
    }
    let own = mapped(
        &["main", "free", "munmap_chunk", "munmap"],
        48 << 20,
        linked(),
    );
    assert_eq!(tunables(&own).len(), 2, "the C library serves malloc");
}

#[test]
fn unnamed_functions_of_the_c_library_are_mallocs() {
    // glibc 2.43 without debugging symbols: systrim and munmap_chunk have no names.
    let mut findings = zlib_churn();
    let stack = [
        "main",
        "burst",
        "[libc.so.6]",
        "__default_morecore",
        "__sbrk",
        "brk",
    ];
    findings.churn.release_sites = vec![site(&stack, Cause::RefaultAfterBrk)];
    assert_eq!(tunables(&concluded(findings)).len(), 2);
    let of_program = mapped(&["main", "burst", "munmap"], 16 << 20, vec![glibc()]);
    assert_eq!(tunables(&of_program), [""; 0]);
    let stack = ["main", "burst", "[libc.so.6]", "__munmap"];
    assert_eq!(tunables(&mapped(&stack, 48 << 20, vec![glibc()])).len(), 2);
}

#[test]
fn a_jemalloc_in_a_library_gets_the_variable_it_reads() {
    let jemalloc = inside(
        AllocatorKind::Jemalloc,
        "_polars.abi3.so",
        Some("_RJEM_MALLOC_CONF"),
    );
    for stack in [
        &["main", "[_polars.abi3.so]", "madvise"][..],
        &["main", "_rjem_je_pages_purge_forced", "madvise"],
    ] {
        let answer = mapped(stack, 16 << 20, vec![glibc(), jemalloc.clone()]);
        assert_eq!(rules(&answer), ["jemalloc.no-decay"], "{stack:?}");
        assert_eq!(variables(&answer), ["_RJEM_MALLOC_CONF"]);
        assert_eq!(answer.diagnoses[0].id, "churn.mmap");
    }
    let elsewhere = mapped(
        &["main", "_int_free", "munmap"],
        16 << 20,
        vec![glibc(), jemalloc],
    );
    assert_eq!(variables(&elsewhere), [""; 0]);
}

#[test]
fn of_two_allocators_in_a_library_each_gets_its_settings() {
    let file = "libarrow.so.2100";
    let variable = Some("JE_ARROW_MALLOC_CONF");
    let both = vec![
        glibc(),
        inside(AllocatorKind::Jemalloc, file, variable),
        inside(AllocatorKind::Mimalloc, file, None),
    ];
    let answer = mapped(
        &["main", "[libarrow.so.2100]", "madvise"],
        16 << 20,
        both.clone(),
    );
    assert_eq!(variables(&answer), ["JE_ARROW_MALLOC_CONF"]);
    let answer = mapped(&["main", "je_arrow_free", "madvise"], 16 << 20, both);
    assert_eq!(rules(&answer), ["jemalloc.no-decay"]);
}

#[test]
fn a_users_own_settings_of_such_a_jemalloc_are_kept() {
    let mut jemalloc = inside(AllocatorKind::Jemalloc, "server", Some("JE_MALLOC_CONF"));
    let own = ("JE_MALLOC_CONF".to_owned(), "narenas:1".to_owned());
    jemalloc.settings.extend([own]);
    let answer = mapped(&["main", "je_free", "munmap"], 16 << 20, vec![jemalloc]);
    let value = answer.advice.iter().flat_map(|one| &one.settings.0).next();
    assert!(
        matches!(value, Some(Setting::Env { name, value })
            if name == "JE_MALLOC_CONF" && value.starts_with("narenas:1,dirty_decay_ms:-1")),
        "{value:?}"
    );
}

#[test]
fn mimallocs_large_blocks_are_kept_from_3_6_on() {
    let advised = |version, size| {
        let stack = ["main", "[libmimalloc.so.3.6]", "madvise"];
        let answer = mapped(
            &stack,
            size,
            vec![allocator(AllocatorKind::Mimalloc, version)],
        );
        rules(&answer).first().map(ToString::to_string)
    };
    assert_eq!(
        advised("2.0", 16 << 20).as_deref(),
        Some("mimalloc.no-purge")
    );
    assert_eq!(advised("2.0", 48 << 20), None);
    assert_eq!(advised("3.1", 48 << 20), None);
    let any = Some("mimalloc.no-purge-at-any-size");
    assert_eq!(advised("3.6", 48 << 20).as_deref(), any);
}

#[test]
fn settings_are_those_of_the_version_found() {
    let shipped = Rules::shipped().expect("shipped rules");
    let fits = |id: &str, kind, version: &str| {
        let rule = shipped.0.iter().find(|rule| rule.id == id);
        let case = case::Case {
            owner: case::Owner::Runtime(kind),
            ..case::plain(&run(1, 1, 1), Symptom::Runtime, 0.0, &[])
        };
        let found = [allocator(kind, version)];
        let around = Surroundings::default();
        rule.expect(id).fits(&case, &found, &around).is_some()
    };
    use AllocatorKind::{Cpython, Jvm, Ruby, V8};
    let cases = [
        ("v8.semi-space", V8, "22.11.0", "24.1.0"),
        ("v8.larger-semi-space", V8, "26.0.0", "20.20.2"),
        ("ruby.more-slots-before-3.3", Ruby, "3.1", "3.3"),
        ("ruby.more-slots", Ruby, "3.3", "3.1"),
        ("jvm.initial-heap", Jvm, "26", "25.0.1"),
        ("python.own-mimalloc", Cpython, "3.14", "3.12"),
    ];
    for (id, kind, with, without) in cases {
        assert!(fits(id, kind, with), "{id} {with}");
        assert!(!fits(id, kind, without), "{id} {without}");
    }
}
