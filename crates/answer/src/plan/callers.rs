//! Who frees and requests the memory behind churn: an allocator, a runtime, or the program itself.

use super::case::{Case, Owner, faults_of, is_one_process, plain};
use super::fitting::has_own_heap;
use super::overridden;
use super::symptom::Symptom;
use pagewise_families::{self as families, families};
use pagewise_faults::runtimes::Runtimes;
use pagewise_model::allocator::{Allocator, AllocatorKind};
use pagewise_model::findings::{Cause, Churn, Findings, RegionKind, Site};
use pagewise_model::units::Nanos;

/// CPU time from which a runtime's settings are worth trying.
pub(super) const WORTH_TRYING: Nanos = Nanos(150_000_000);

/// Memory counts as moving if a process's first touches are this many times the pages of its peak
/// resident memory…
const MOVING: f64 = 2.0;

/// … and certainly, if they are this many times as many.
const FAR_ABOVE: f64 = 4.0;

/// Faults that are first touches only by their address: a runtime that places its memory elsewhere
/// each time (V8 draws addresses at random) touches no page twice, nor does an allocator whose blocks grow
/// to other addresses (mremap), yet a process cannot have more new pages than its peak resident memory.
pub(super) fn moved(findings: &Findings) -> f64 {
    let first = faults_of(findings, &[Cause::FirstTouch]);
    let held = findings.cost.max_rss.0 as f64 / findings.host.page_size.max(1) as f64;
    let moves = held > 0.0
        && first >= MOVING * held
        && is_one_process(findings)
        && matches!(
            owner(findings, Symptom::ChurnMmap),
            Owner::Runtime(_) | Owner::Allocator
        );
    if moves { first - held } else { 0.0 }
}

/// Whether faults on memory that seems to have been returned before are far more than the pages that the
/// process ever held at a time: then most of them are, however few samples hit a page twice.
pub(super) fn exceeds_its_peak(findings: &Findings) -> bool {
    let churn = findings.by_cause.iter().filter(|line| line.key.is_churn());
    let faults: f64 = churn.map(|line| line.faults.value).sum();
    let held = findings.cost.max_rss.0 as f64 / findings.host.page_size.max(1) as f64;
    held > 0.0 && faults >= FAR_ABOVE * held && is_one_process(findings)
}

/// Blocks with an allocator's header show who maps them; otherwise the stacks of the calls do. The
/// heap's end is an allocator's unless whole stacks show that the program moves it, and thread arenas
/// always are. `madvise` is attributed to an
/// allocator unless its callers are seen, since blocks show nothing about it.
pub(super) fn owner(findings: &Findings, kind: Symptom) -> Owner {
    let by_calls = callers(findings);
    match seen_owner(findings, kind, by_calls) {
        Owner::Allocator => overridden::by(findings, kind, by_calls).unwrap_or(Owner::Allocator),
        owner => owner,
    }
}

fn seen_owner(findings: &Findings, kind: Symptom, by_calls: Owner) -> Owner {
    match kind {
        Symptom::ChurnBrk => match by_stacks(findings, moves_heap) {
            Owner::Program => Owner::Program,
            _ => Owner::Allocator,
        },
        Symptom::ChurnMmap | Symptom::ChurnMadvise
            if matches!(
                by_calls,
                Owner::Runtime(_) | Owner::Threads | Owner::Bundled(_)
            ) =>
        {
            by_calls
        }
        // Stacks of threads are mapped as such (MAP_STACK), also where the calls show no caller.
        Symptom::ChurnMmap | Symptom::ChurnMadvise
            if by_calls == Owner::Unknown && is_of_stacks(findings, kind) =>
        {
            Owner::Threads
        }
        // Whole stacks show more than headers: the first bytes of any mapping may be written first.
        Symptom::ChurnMmap if by_calls == Owner::Program => Owner::Program,
        Symptom::ChurnMmap => match findings.churn.allocator_blocks {
            Some(share) if share >= 0.5 => Owner::Allocator,
            // What is not malloc's may be the heap of a runtime, or an allocator's inside the program.
            Some(_) if by_calls == Owner::Unknown && !runtimes(findings).is_empty() => {
                Owner::Unknown
            }
            Some(_) if by_calls == Owner::Unknown && bundled(findings).is_some() => {
                Owner::Bundled(bundled(findings))
            }
            Some(_) => Owner::Program,
            None if by_calls == Owner::Unknown && is_on_musl_alone(findings) => Owner::Presumed,
            None => by_calls,
        },
        Symptom::ChurnMadvise if by_calls == Owner::Unknown => match runtimes_apart(findings)[..] {
            [only] => Owner::Runtime(only),
            [] if bundled(findings).is_some() => Owner::Bundled(bundled(findings)),
            _ => Owner::Presumed,
        },
        Symptom::ChurnMadvise => by_calls,
        _ => Owner::Allocator,
    }
}

/// Share of the faults of one kind on stacks from which they are about stacks.
const MOSTLY_STACKS: f64 = 0.5;

fn is_of_stacks(findings: &Findings, kind: Symptom) -> bool {
    let routes = findings.churn.routes.iter();
    let of_kind = routes.filter(|route| Symptom::of_churn(route.cause, route.region) == kind);
    let (mut all, mut on_stacks) = (0.0, 0.0);
    for route in of_kind {
        all += route.faults;
        if route.region == RegionKind::Stack {
            on_stacks += route.faults;
        }
    }
    all > 0.0 && on_stacks >= MOSTLY_STACKS * all
}

/// The runtimes in the process whose heap malloc has no part in: of unnamed code that releases pages by
/// `madvise`, which glibc hardly does, a runtime is the likeliest.
fn runtimes_apart(findings: &Findings) -> Vec<AllocatorKind> {
    let kinds = findings.allocators.iter().map(|one| one.kind);
    kinds.filter(|kind| has_own_heap(*kind)).collect()
}

/// The only family of allocators inside the program and its libraries.
fn bundled(findings: &Findings) -> Option<AllocatorKind> {
    let inside = findings
        .allocators
        .iter()
        .filter(|one| one.inside.is_some());
    only_one(&inside.map(|one| one.kind).collect::<Vec<_>>())
}

fn only_one(kinds: &[AllocatorKind]) -> Option<AllocatorKind> {
    let first = kinds.first()?;
    kinds.iter().all(|kind| kind == first).then_some(*first)
}

/// Whether the program's only allocator is musl's, which maps and unmaps groups of blocks at any size.
fn is_on_musl_alone(findings: &Findings) -> bool {
    let mut kinds = findings.allocators.iter().map(|one| one.kind);
    kinds.len() > 0 && kinds.all(|kind| kind == AllocatorKind::Musl)
}

/// Entry functions of allocators, and parts of the names of those inside them.
const ALLOCATING: [&str; 15] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "cfree",
    "operator new",
    "operator delete",
    "_int_",
    "sysmalloc",
    "systrim",
    "munmap_chunk",
    "je_",
    "mi_",
    "_mi_",
    "tc_",
];

/// Beginnings of the functions of a jemalloc that is built into a library: by the Rust crate
/// tikv-jemallocator, by Arrow, by DuckDB.
const BUNDLED: [&str; 3] = ["_rjem_", "je_arrow_", "duckdb_je_"];

/// Who makes memory calls, according to the stacks of those calls that have names, otherwise to
/// samples of CPU time in an allocator inside a library.
pub(super) fn callers(findings: &Findings) -> Owner {
    match by_stacks(findings, |_| true) {
        Owner::Unknown if has_bundled(findings) => Owner::Bundled(bundled(findings)),
        owner => owner,
    }
}

fn has_bundled(findings: &Findings) -> bool {
    let mut places = findings
        .account
        .allocator()
        .into_iter()
        .flat_map(|part| &part.places);
    places.any(|place| is_of_bundled(place))
}

fn is_of_bundled(function: &str) -> bool {
    BUNDLED.iter().any(|start| function.starts_with(start))
}

/// Whether a stack is that of a call that moves the end of the heap.
fn moves_heap(site: &Site) -> bool {
    let last = site.stack.last();
    last.is_some_and(|name| ["brk", "sbrk"].contains(&name.trim_start_matches('_')))
}

fn by_stacks(findings: &Findings, is_wanted: impl Fn(&Site) -> bool) -> Owner {
    let churn = &findings.churn;
    let sites = churn.release_sites.iter().chain(&churn.regrow_sites);
    let runtimes = Runtimes::shipped();
    let mut found: Vec<(Owner, f64)> = Vec::new();
    for site in sites.filter(|site| site.stack.len() >= LEAST_FRAMES && is_wanted(site)) {
        let Some(caller) = caller(&site.stack, runtimes, &findings.allocators) else {
            continue;
        };
        match found.iter_mut().find(|(known, _)| *known == caller) {
            Some((_, sum)) => *sum += site.faults,
            None => found.push((caller, site.faults)),
        }
    }
    found.retain(|(owner, pages)| *owner != Owner::Threads || *pages >= fewest_of_threads(churn));
    let most = found.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.filter(|(_, faults)| *faults > 0.0)
        .map_or(Owner::Unknown, |(owner, _)| owner)
}

/// Nearly every process starts threads, whose stacks are mapped, and released, whole. They explain the
/// faults only if they hold this share of the pages that came back.
const SHARE_OF_THREADS: f64 = 0.1;

fn fewest_of_threads(churn: &Churn) -> f64 {
    SHARE_OF_THREADS * churn.faults.map_or(0.0, |faults| faults.value)
}

/// Functions of the C library that map, release and unmap stacks of threads (glibc:
/// nptl/allocatestack.c, nptl/nptl-stack.c, nptl/pthread_create.c).
const THREADING: [&str; 9] = [
    "pthread_create",
    "pthread_join",
    "pthread_clockjoin_ex",
    "pthread_exit",
    "allocate_stack",
    "advise_stack_range",
    "nptl_free_stacks",
    "nptl_free_tcb",
    "nptl_deallocate_stack",
];

/// Where a thread begins; its end, with the release of its stack, is inlined into it.
const STARTS_THREAD: &str = "start_thread";

/// The wrappers of the system calls.
const WRAPPERS: [&str; 3] = ["madvise", "munmap", "mmap"];

fn is_threading(function: &str, is_innermost: bool) -> bool {
    let name = function.trim_start_matches('_');
    THREADING.iter().any(|known| name.starts_with(known)) || (is_innermost && name == STARTS_THREAD)
}

fn is_wrapper(name: &str) -> bool {
    let name = name.trim_start_matches('_').trim_start_matches("GI_");
    let name = name.trim_end_matches("64");
    WRAPPERS.contains(&name)
}

/// Whether a stack of a memory call is the C library's work on a thread's stack.
fn is_of_a_thread(stack: &[String]) -> bool {
    let mut inner = stack.iter().rev().skip_while(|name| is_wrapper(name));
    let innermost = inner.next().map(|name| is_threading(name, true));
    innermost.unwrap_or(false) || inner.take(2).any(|name| is_threading(name, false))
}

/// Who makes a call: the allocator or the runtime's heap, whichever is nearer to the call.
pub(super) fn caller(
    stack: &[String],
    runtimes: &Runtimes,
    allocators: &[Allocator],
) -> Option<Owner> {
    if is_of_a_thread(stack) {
        return Some(Owner::Threads);
    }
    let contained = contained(stack, allocators);
    if !contained.is_empty() {
        return Some(Owner::Bundled(only_one(&contained)));
    }
    let mut frames = stack.iter().rev().enumerate();
    let near = frames.find_map(|(at, function)| {
        let near = runtimes.heap_of(function).filter(|_| at < OF_RUNTIME);
        match is_of_bundled(function) {
            true => Some(Owner::Bundled(None)),
            false if is_allocating(function) => Some(Owner::Allocator),
            false => near.map(Owner::Runtime),
        }
    });
    let by_module = || runtimes.calling_module(stack).map(Owner::Runtime);
    // An incomplete stack may hide the allocator.
    let is_whole = stack.iter().any(|name| ROOTS.contains(&name.as_str()));
    by_module()
        .or(near)
        .or_else(|| is_whole.then_some(Owner::Program))
}

/// The families of allocators inside the program or a library that may make this call: by its function, or
/// since the file that contains them makes the call itself by a function without a name.
fn contained(stack: &[String], allocators: &[Allocator]) -> Vec<AllocatorKind> {
    let Some(nearest) = stack.iter().rev().find(|name| !is_wrapper(name)) else {
        return Vec::new();
    };
    let module = nearest
        .strip_prefix('[')
        .map(|name| name.trim_end_matches(']'));
    let inside = allocators.iter().filter(|one| one.inside.is_some());
    let makes_it = |one: &&Allocator| match module {
        Some(module) => one.inside.as_deref() == Some(module),
        None => families::family(one.kind)
            .and_then(|family| family.code.as_ref())
            .is_some_and(|code| families::matches(&code.functions, nearest)),
    };
    inside.filter(makes_it).map(|one| one.kind).collect()
}

/// Entry points of programs and their threads: glibc's, musl's and Go's names for the latter.
const ROOTS: [&str; 9] = [
    "main",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "clone3",
    "__clone3",
    "clone",
    "__clone",
    "runtime.goexit",
];

/// A runtime's heap makes its calls in these innermost frames; one further out called something
/// else, which does.
const OF_RUNTIME: usize = 6;

/// Fewest frames of a stack that shows a caller.
const LEAST_FRAMES: usize = 2;

fn is_allocating(function: &str) -> bool {
    // A function without a name, in the file of an allocator.
    if let Some(module) = function.strip_prefix('[') {
        let mut code = families().iter().filter_map(|family| family.code.as_ref());
        return code.any(|code| code.has_unnamed(module));
    }
    ALLOCATING.iter().any(|known| match *known {
        "free" | "malloc" | "calloc" | "realloc" => {
            function.trim_start_matches('_').trim_start_matches("libc_") == *known
        }
        part => function.starts_with(part),
    })
}

/// The language runtimes in use, each as a separate symptom.
pub(super) fn runtimes(findings: &Findings) -> Vec<Case> {
    let known = Runtimes::shipped();
    let mut kinds: Vec<AllocatorKind> = Vec::new();
    for allocator in &findings.allocators {
        if known.has(allocator.kind) && !kinds.contains(&allocator.kind) {
            kinds.push(allocator.kind);
        }
    }
    if findings.cost.cpu() < WORTH_TRYING {
        return Vec::new();
    }
    let symptom = |kind| Case {
        owner: Owner::Runtime(kind),
        ..plain(findings, Symptom::Runtime, 0.0, &[])
    };
    kinds.into_iter().map(symptom).collect()
}
