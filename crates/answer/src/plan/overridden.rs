//! Calls of the program's own that decide what the C library's allocator does, whatever its settings.

use super::case::{Owner, is_one_process, mainly_threads};
use super::own_settings::FREEZING;
use super::symptom::Symptom;
use pagewise_faults::runtimes::Runtimes;
use pagewise_model::allocator::{Allocator, AllocatorKind};
use pagewise_model::findings::{Cause, Churn, ChurnRoute, Findings, RegionKind, Site};

/// The name under which the allocator's settings list that the program calls mallopt(3).
const MALLOPT: &str = "mallopt()";
/// The functions that return free memory on request: glibc's symbol, and the part inlined into it or not.
const TRIMS: [&str; 3] = ["malloc_trim", "__malloc_trim", "mtrim"];
/// The functions that allocate aligned blocks (malloc/malloc.c), with the names that callers know them by.
const ALIGNS: [&str; 6] = [
    "_int_memalign",
    "_mid_memalign",
    "__libc_memalign",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
];
/// The share of the released memory from which calls decide.
const MOST: f64 = 0.5;

/// Who decides in place of the allocator's settings; `by_calls` makes the calls, by their stacks.
pub(super) fn by(findings: &Findings, kind: Symptom, by_calls: Owner) -> Option<Owner> {
    let mut found = findings.allocators.iter();
    let glibc = found.find(|one| one.kind == AllocatorKind::Glibc)?;
    let released = [
        Symptom::ChurnBrk,
        Symptom::ChurnMadvise,
        Symptom::ChurnThreadArena,
    ];
    if released.contains(&kind) && is_trimmed(&findings.churn) {
        return Some(Owner::Trimmed);
    }
    match kind {
        Symptom::ChurnBrk | Symptom::ChurnMmap if calls_mallopt(glibc) => Some(Owner::Fixed),
        // Without stacks they may as well be an allocator's that is not the C library's.
        Symptom::ChurnMmap if does_not_adapt(findings, glibc) => match by_calls {
            Owner::Allocator => Some(Owner::Fixed),
            _ => Some(Owner::Unknown),
        },
        _ => None,
    }
}

fn calls_mallopt(glibc: &Allocator) -> bool {
    glibc.settings.contains_key(MALLOPT)
}

/// Whether most of what came back had been released by `malloc_trim`: by the stacks of the calls, or
/// since of glibc's functions that one alone releases pages in the middle of the main heap by `madvise`.
fn is_trimmed(churn: &Churn) -> bool {
    let of_heap = |route: &&ChurnRoute| {
        (route.cause, route.region) == (Cause::RefaultAfterDontneed, RegionKind::Heap)
    };
    let faults = |routes: &mut dyn Iterator<Item = &ChurnRoute>| {
        routes.map(|route| route.faults).sum::<f64>()
    };
    let in_heap = faults(&mut churn.routes.iter().filter(of_heap));
    if in_heap > 0.0 && in_heap >= MOST * faults(&mut churn.routes.iter()) {
        return true;
    }
    are_mostly_by(&churn.release_sites, &TRIMS)
}

/// Whether most of these sites are reached through one of `functions`.
fn are_mostly_by(sites: &[Site], functions: &[&str]) -> bool {
    let reaches = |site: &&Site| {
        let mut stack = site.stack.iter();
        stack.any(|name| functions.contains(&name.as_str()))
    };
    let sum = |sites: &mut dyn Iterator<Item = &Site>| sites.map(|site| site.faults).sum::<f64>();
    let all = sum(&mut sites.iter());
    all > 0.0 && sum(&mut sites.iter().filter(reaches)) >= MOST * all
}

/// The largest block to which glibc adapts its threshold (malloc/malloc.c: DEFAULT_MMAP_THRESHOLD_MAX).
const LARGEST_ADAPTED: u64 = 32 << 20;
/// Bytes in which sizes of mapped blocks differ at least: a page.
const STEP: u64 = 4096;
/// Blocks of one size are unmapped often from this many times on: glibc unmaps one of each size, in
/// each of the few processes that share the figures.
const OFTEN: u64 = 16;

/// Whether blocks of one size are mapped and unmapped again and again: the first that is unmapped
/// raises the threshold to its size (malloc/malloc.c, `free`) unless a threshold was set, by a variable
/// or by mallopt, from wherever that was called. Aligned blocks are mapped with room to align them, which is no part
/// of the size that `free` adapts to, so that the next one is beyond the threshold again.
fn does_not_adapt(findings: &Findings, glibc: &Allocator) -> bool {
    let mut names = glibc.settings.keys();
    let is_set = names.any(|name| FREEZING.contains(&name.as_str()));
    let mut kinds = findings.allocators.iter().map(|one| one.kind);
    let has_runtime = kinds.any(|kind| Runtimes::shipped().has(kind));
    // Heaps of threads end at 64 MiB, and what does not fit is mapped whatever the threshold.
    let is_aligned = are_mostly_by(&findings.churn.regrow_sites, &ALIGNS);
    if is_set || has_runtime || is_aligned || mainly_threads(findings) || !is_one_process(findings)
    {
        return false;
    }
    let routes = findings.churn.routes.iter();
    let mut routes = routes.filter(|route| route.cause == Cause::RefaultAfterMunmap);
    routes.any(|route| {
        route.released_sizes.buckets().any(|(start, end, count)| {
            let sizes = (end - start) / STEP + 1;
            end <= LARGEST_ADAPTED && count >= OFTEN * sizes
        })
    })
}
