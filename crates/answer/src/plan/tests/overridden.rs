//! Calls of the program's own that decide what its allocator returns.

use super::*;
use pagewise_model::findings::MmCallCost;

const MIB: u64 = 1 << 20;

fn released_by(stack: &[&str]) -> Site {
    Site {
        stack: stack.iter().map(|name| (*name).to_owned()).collect(),
        culprit: "main".to_owned(),
        faults: 100_000.0,
        main_cause: Cause::RefaultAfterDontneed,
    }
}

fn mapped_blocks(size: u64) -> Findings {
    let mut findings = churning(
        run(200, 800, 500_000),
        Cause::RefaultAfterMunmap,
        RegionKind::MmappedChunk,
        490_000.0,
        size,
    );
    findings.churn.allocator_blocks = Some(1.0);
    let maps = [
        "main",
        "work",
        "malloc",
        "_int_malloc",
        "sysmalloc_mmap",
        "mmap",
    ];
    findings.churn.regrow_sites = vec![released_by(&maps)];
    findings
}

fn calls_of_brk() -> MmCallCost {
    MmCallCost {
        call: "brk".to_owned(),
        calls: 57_718,
        bytes: Bytes(0),
        time: None,
    }
}

fn rules_of(findings: &Findings) -> Vec<&str> {
    findings.advice.iter().map(|one| &*one.rule).collect()
}

fn with_tcmalloc(findings: Findings) -> Findings {
    let around = Surroundings {
        libraries: vec![(AllocatorKind::Tcmalloc, "/lib/libtcmalloc.so.4".to_owned())],
        ..Surroundings::default()
    };
    conclude(findings, &Rules::shipped().expect("shipped rules"), &around)
}

#[test]
fn thresholds_are_not_advised_against_malloc_trim() {
    let mut churn = zlib_churn();
    churn.churn.release_sites = vec![released_by(&["main", "malloc_trim", "mtrim", "__madvise"])];
    let answer = with_tcmalloc(churn.clone());
    assert_eq!(rules_of(&answer), ["overridden.use-tcmalloc", "own.trim"]);
    assert!(answer.verdict.contains("malloc_trim"), "{}", answer.verdict);
    // Where most of it is returned by free, the thresholds decide.
    let frees = Site {
        faults: 300_000.0,
        ..released_by(&["main", "cfree", "_int_free", "systrim", "brk"])
    };
    churn.churn.release_sites.push(frees);
    assert_eq!(tunables(&concluded(churn)).len(), 2);
}

#[test]
fn pages_released_inside_the_heap_show_malloc_trim() {
    let mut churn = zlib_churn();
    churn.churn.routes[0].cause = Cause::RefaultAfterDontneed;
    assert_eq!(rules_of(&concluded(churn)), ["own.trim"]);
}

#[test]
fn thresholds_are_not_advised_to_who_calls_mallopt() {
    let mut churn = zlib_churn();
    let calls = [("mallopt()".to_owned(), String::new())];
    churn.allocators[0].settings.extend(calls);
    let answer = with_tcmalloc(churn);
    assert_eq!(
        rules_of(&answer),
        ["overridden.use-tcmalloc", "own.mallopt"]
    );
    let message = answer.diagnoses[0].evidence.join(" ");
    assert!(message.contains("mallopt()"), "{message}");
}

/// stress-ng's brk, which imports mallopt as well.
#[test]
fn who_calls_brk_itself_is_advised_no_allocator() {
    let mut churn = zlib_churn();
    let calls = [("mallopt()".to_owned(), String::new())];
    churn.allocators[0].settings.extend(calls);
    let stack = ["__libc_start_main", "[stress-ng]", "__sbrk", "brk"];
    churn.churn.regrow_sites = vec![released_by(&stack)];
    let answer = with_tcmalloc(churn);
    assert_eq!(rules_of(&answer), ["own.mapping"]);
    assert!(
        answer.verdict.starts_with("The program itself"),
        "{}",
        answer.verdict
    );
}

#[test]
fn blocks_that_glibc_would_keep_show_a_threshold_in_force() {
    let small = concluded(mapped_blocks(200_704));
    assert_eq!(rules_of(&small), ["own.mallopt"]);
    // Blocks whose mapper was not seen are not the C library's.
    let mut unseen = mapped_blocks(200_704);
    unseen.churn.regrow_sites.clear();
    assert_eq!(rules_of(&concluded(unseen.clone())), ["own.unseen"]);
    // Root is not advised to become root.
    unseen.time.mm_calls = vec![calls_of_brk()];
    let answer = concluded(unseen);
    assert_eq!(rules_of(&answer), ["own.unseen-by-root"]);
    assert!(
        answer.verdict.contains("was not seen"),
        "{}",
        answer.verdict
    );
    // glibc adapts to blocks of up to 32 MiB, and not where the user has set a threshold.
    let large = concluded(mapped_blocks(48 * MIB));
    assert_eq!(tunables(&large).len(), 2);
    let mut set = mapped_blocks(200_704);
    let threshold = ("MALLOC_MMAP_THRESHOLD_".to_owned(), "131072".to_owned());
    set.allocators[0].settings.extend([threshold]);
    assert_eq!(tunables(&concluded(set)).len(), 2);
    // Aligned blocks are beyond the threshold that the last one left, too.
    let mut aligned = mapped_blocks(200_704);
    let maps = [
        "main",
        "posix_memalign",
        "_mid_memalign",
        "_int_memalign",
        "mmap",
    ];
    aligned.churn.regrow_sites = vec![released_by(&maps)];
    assert_eq!(tunables(&concluded(aligned)).len(), 2);
    // Blocks that grow are each beyond the threshold that the last one left.
    let mut growing = mapped_blocks(200_704);
    let mut sizes = Histogram::default();
    (50..1000).for_each(|pages| sizes.record_many(pages * 4096, 1));
    growing.churn.routes[0].released_sizes = sizes;
    assert_eq!(tunables(&concluded(growing)).len(), 2);
}

#[test]
fn locked_memory_that_comes_and_goes_gets_the_thresholds() {
    let mut findings = run(180, 1_490, 4_000);
    let time = |millis: u64| Estimate::exact((millis * 1_000_000) as f64);
    findings.account.kernel = time(1_490);
    findings.account.samples = 500;
    let entry = |id: &str, millis| KernelEntry {
        id: id.to_owned(),
        label: id.to_owned(),
        time: time(millis),
        functions: Vec::new(),
    };
    findings.account.entries = vec![entry("populate", 760), entry("call.map", 550)];
    findings.time.mm_calls = vec![calls_of_brk()];
    let frees = ["main", "cfree", "_int_free", "systrim", "brk"];
    findings.churn.release_sites = vec![released_by(&frees)];
    let answer = concluded(findings.clone());
    assert_eq!(answer.diagnoses[0].id, "churn.populated");
    assert_eq!(tunables(&answer).len(), 2);
    assert!(answer.diagnoses.iter().all(|one| one.id != "kernel.work"));
    // Callers that were not seen: the heap's end is an allocator's.
    findings.churn.release_sites.clear();
    assert_eq!(
        concluded(findings.clone()).diagnoses[0].id,
        "churn.populated"
    );
    // The program's own mappings are not the allocator's.
    findings.churn.release_sites = vec![released_by(&["main", "work", "munmap"])];
    assert_eq!(concluded(findings).diagnoses[0].id, "kernel.work");
}
