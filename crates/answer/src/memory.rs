//! An account of memory in words: why, what shows it, and what would help.

mod ending;
mod leaks;

use pagewise_model::advice::{Advice, Risk, Setting, Settings};
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::answer::Document;
use pagewise_model::findings::{Diagnosis, Severity};
use pagewise_model::memory::{
    Heap, HeapPart, Memory, MemoryFinding, MemoryFix, MemoryMoment, MemoryVerdict,
};
use pagewise_model::quantity::{count, counted};
use pagewise_model::units::{Bytes, Estimate};

/// The document about this account.
#[must_use]
pub fn explain(memory: Memory) -> Document<Memory> {
    let mut document = Document::new(memory);
    let Some(moment) = document.evidence.judged() else {
        return document;
    };
    let finding = &document.evidence.finding;
    let diagnoses = diagnosis(finding, moment, &document.verdict);
    let advice = finding
        .fixes
        .iter()
        .map(|fix| advice(*fix, finding, moment))
        .collect();
    let notes = [
        broken_lists(moment),
        collected_later(moment),
        unsearched(moment),
        ending::note(&document.evidence),
    ];
    let notes = notes.into_iter().flatten();
    let notes = notes.chain(leaks::notes(&document.evidence)).collect();
    (document.diagnoses, document.advice) = (vec![diagnoses], advice);
    document.notes = notes;
    document
}

fn id(verdict: MemoryVerdict) -> &'static str {
    match verdict {
        MemoryVerdict::AllInUse => "memory.in_use",
        MemoryVerdict::Growth => "memory.growth",
        MemoryVerdict::Leak => "memory.leak",
        MemoryVerdict::Retention => "memory.retention",
        MemoryVerdict::Fragmentation => "memory.fragmentation",
        MemoryVerdict::Bloat => "memory.bloat",
        MemoryVerdict::FreedToEnd => "memory.freed_to_end",
        MemoryVerdict::Cache => "memory.cache",
        MemoryVerdict::LimitTooSmall => "memory.limit",
        MemoryVerdict::CannotTell => "memory.unknown",
    }
}

fn diagnosis(finding: &MemoryFinding, moment: &MemoryMoment, headline: &str) -> Diagnosis {
    let severity = match finding.verdict {
        MemoryVerdict::Growth
        | MemoryVerdict::Leak
        | MemoryVerdict::Retention
        | MemoryVerdict::Fragmentation
        | MemoryVerdict::Bloat
        | MemoryVerdict::LimitTooSmall => Severity::Costly,
        MemoryVerdict::AllInUse | MemoryVerdict::FreedToEnd | MemoryVerdict::Cache => {
            Severity::Healthy
        }
        MemoryVerdict::CannotTell => Severity::Note,
    };
    let heaps = moment.processes.iter().flat_map(|one| &one.heaps);
    Diagnosis {
        headline: headline.to_owned(),
        explanation: explanation(finding.verdict).to_owned(),
        evidence: heaps.map(heap_fact).collect(),
        ..Diagnosis::named(id(finding.verdict), severity)
    }
}

fn broken_lists(moment: &MemoryMoment) -> Option<String> {
    let heaps = moment.processes.iter().flat_map(|one| &one.heaps);
    let broken: u64 = heaps.map(|heap| heap.broken_lists).sum();
    (broken > 0).then(|| {
        format!(
            "{} of freed blocks (fastbins) could not be followed to the end: they changed meanwhile, or are damaged. The rest of their blocks counts as in use.",
            counted(broken, "list")
        )
    })
}

/// What "in use" means where a collector frees.
fn collected_later(moment: &MemoryMoment) -> Option<String> {
    let mut heaps = moment.processes.iter().flat_map(|one| &one.heaps);
    heaps
        .any(|heap| heap.allocator == AllocatorKind::Go && heap.in_use.0 > 0)
        .then(|| {
            "Go: objects are in use until a garbage collection frees them. GOGC and GOMEMLIMIT \
             decide how many wait for one."
                .to_owned()
        })
}

fn unsearched(moment: &MemoryMoment) -> Option<String> {
    let bytes: Bytes = moment.processes.iter().map(|one| one.huge_unsearched).sum();
    (bytes.0 > 0).then(|| {
        format!("{bytes} in huge pages were not searched for zeros: there may be more of them.")
    })
}

fn explanation(verdict: MemoryVerdict) -> &'static str {
    match verdict {
        MemoryVerdict::LimitTooSmall => {
            "The memory cgroup is at its limit. The kernel reclaims its pages, and the tasks wait until they are read again."
        }
        MemoryVerdict::AllInUse => {
            "What the program holds is what it uses. To need less, it must hold less."
        }
        MemoryVerdict::Growth => {
            "The program asked for these blocks and has not freed them. Whether it still needs them is not known: a cache that fills looks the same as a leak until it is full."
        }
        MemoryVerdict::Leak => {
            "The program has not freed these blocks, and neither its registers, stacks and variables nor blocks that they lead to hold an address inside them. It cannot use or free them any more, unless it keeps addresses in a disguise."
        }
        MemoryVerdict::Retention => {
            "The program freed these blocks. The allocator keeps their pages for later requests."
        }
        MemoryVerdict::Fragmentation => {
            "The program freed much of what is on these pages. A page goes back to the kernel only when no block on it is in use."
        }
        MemoryVerdict::Bloat => {
            "A huge page is resident as a whole, however little of it the program has written."
        }
        MemoryVerdict::FreedToEnd => {
            "Many programs free what they hold before they end. Memory counts as kept by the allocator only if it was free for a tenth of the run."
        }
        MemoryVerdict::Cache => {
            "Files that were read or written are kept in memory until it is needed for something else."
        }
        MemoryVerdict::CannotTell => {
            "This memory belongs to no allocator that Pagewise can read here, so nothing is said about what is in use."
        }
    }
}

fn heap_fact(heap: &Heap) -> String {
    let name = part_name(heap);
    let mut fact = format!(
        "{name}: {} in use in {}",
        heap.in_use,
        counted(heap.blocks, "block")
    );
    if heap.free.0 > 0 {
        let blocks = counted(heap.free_blocks, "block");
        fact.push_str(&format!("; {} free in {blocks}", heap.free));
    }
    if heap.cached.0 > 0 {
        fact.push_str(&format!("; {} in caches", heap.cached));
    }
    if heap.reserve.0 > 0 {
        fact.push_str(&format!("; {} at the end in reserve", heap.reserve));
    }
    fact
}

/// The heap's name in a sentence.
#[must_use]
pub fn part_name(heap: &Heap) -> String {
    let allocator = heap.allocator.name();
    match heap.part {
        HeapPart::Main => format!("{allocator}'s main heap"),
        HeapPart::Threads => match heap.count {
            1 => format!("{allocator}'s thread arena"),
            arenas => format!("{allocator}'s {} thread arenas", count(arenas)),
        },
        HeapPart::Mapped => format!("{allocator}'s blocks with mappings of their own"),
        HeapPart::Arenas => format!("{allocator}'s arenas"),
    }
}

/// The sentences of one fix.
struct Words {
    rule: &'static str,
    headline: &'static str,
    reason: String,
    settings: Vec<Setting>,
    manual: Option<&'static str>,
    risk: Risk,
    caveat: Option<&'static str>,
}

fn advice(fix: MemoryFix, finding: &MemoryFinding, moment: &MemoryMoment) -> Advice {
    let words = words(fix, finding, moment);
    Advice {
        rule: words.rule.to_owned(),
        cures: vec![id(finding.verdict).to_owned()],
        headline: words.headline.to_owned(),
        reason: words.reason,
        settings: Settings(words.settings),
        manual: words.manual.map(str::to_owned),
        predicted_speedup: Estimate::exact(1.0),
        faults_avoided: 0.0,
        rss_price: Bytes(0),
        risk: words.risk,
        caveat: words.caveat.map(str::to_owned),
    }
}

fn tunable(name: &str, value: &str) -> Setting {
    Setting::GlibcTunable {
        name: format!("glibc.malloc.{name}"),
        value: value.to_owned(),
    }
}

fn variable(name: &str, value: &str) -> Setting {
    Setting::Env {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

/// What Go's heaps have in use, and a quarter more.
fn memory_limit(moment: &MemoryMoment) -> String {
    let heaps = moment.processes.iter().flat_map(|one| &one.heaps);
    let go = heaps.filter(|heap| heap.allocator == AllocatorKind::Go);
    let most = go.map(|heap| heap.in_use.0).max().unwrap_or(0);
    format!("{}MiB", (most / 4 * 5).div_ceil(1 << 20).max(4))
}

fn words(fix: MemoryFix, finding: &MemoryFinding, moment: &MemoryMoment) -> Words {
    let most = finding.returnable.map_or(Bytes(0), |range| range.high);
    let returned = finding.returnable.map_or(Bytes(0), |range| range.low);
    match fix {
        MemoryFix::Trim => Words {
            rule: "glibc.trim",
            headline: "Call malloc_trim(0) when the load is over, or at intervals.",
            reason: format!("One call now would return {returned}."),
            settings: Vec::new(),
            manual: Some(
                "In C and C++: #include <malloc.h>, then malloc_trim(0). In Python: ctypes.CDLL(None).malloc_trim(0).",
            ),
            risk: Risk::Low,
            caveat: Some("Each page that is used again afterwards costs a fault."),
        },
        MemoryFix::TrimThreshold => Words {
            rule: "glibc.trim-threshold",
            headline: "Return the end of the heap earlier.",
            reason: "Most of what is kept is at the end of the heap, which glibc returns once it exceeds the trim threshold.".to_owned(),
            settings: vec![tunable("trim_threshold", "131072")],
            manual: None,
            risk: Risk::Medium,
            caveat: Some("A program that needs the memory again soon faults each time."),
        },
        MemoryFix::FixedMmapThreshold => Words {
            rule: "glibc.mmap-threshold",
            headline: "Give blocks of 128 KiB and more mappings of their own.",
            reason: "glibc raised this size when the program freed such blocks; since then they come from the heap, which cannot shrink around the blocks behind them.".to_owned(),
            settings: vec![tunable("mmap_threshold", "131072")],
            manual: None,
            risk: Risk::Medium,
            caveat: Some("Each large block then costs two system calls and its faults."),
        },
        MemoryFix::FewerArenas => Words {
            rule: "glibc.arena-max",
            headline: "Let threads share fewer arenas.",
            reason: "Each arena keeps its own freed blocks, which threads of other arenas cannot use.".to_owned(),
            settings: vec![tunable("arena_max", "2")],
            manual: None,
            risk: Risk::Medium,
            caveat: Some("Threads that allocate at the same time wait for each other."),
        },
        MemoryFix::OtherAllocator => Words {
            rule: "allocator.other",
            headline: "Try an allocator that keeps blocks of one size together.",
            reason: "jemalloc, mimalloc and tcmalloc place blocks of one size on pages of their own, which become free as a whole more often.".to_owned(),
            settings: Vec::new(),
            manual: Some("pagewise tune -- CMD compares those that are installed, time and memory."),
            risk: Risk::Medium,
            caveat: None,
        },
        MemoryFix::JemallocDecay => Words {
            rule: "jemalloc.decay",
            headline: "Let jemalloc purge freed pages after a second, in threads of its own.",
            reason: "By default it purges over 10 s, and only while the program calls it: what an idle program has freed stays.".to_owned(),
            settings: vec![variable(
                "MALLOC_CONF",
                "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0",
            )],
            manual: Some("A jemalloc that was built with a prefix reads its own variable: JE_MALLOC_CONF in Redis, _RJEM_MALLOC_CONF in Rust programs."),
            risk: Risk::Low,
            caveat: Some("Each page that is used again afterwards costs a fault."),
        },
        MemoryFix::MimallocPurge => Words {
            rule: "mimalloc.purge",
            headline: "Let mimalloc return freed pages at once.",
            reason: "It purges them some time after they were freed, and only while the program frees more: what an idle program has freed stays.".to_owned(),
            // The name up to 2.0, and from 2.1 on.
            settings: vec![variable("MIMALLOC_PURGE_DELAY", "0"), variable("MIMALLOC_RESET_DELAY", "0")],
            manual: Some("In the program: mi_option_set(mi_option_purge_delay, 0), before it allocates."),
            risk: Risk::Medium,
            caveat: Some("Each page that is used again afterwards costs a fault."),
        },
        MemoryFix::TcmallocDecommit => Words {
            rule: "tcmalloc.decommit",
            headline: "Let tcmalloc return freed pages at once.",
            reason: "By default it returns a page for each thousand or so that are freed.".to_owned(),
            settings: vec![variable("TCMALLOC_AGGRESSIVE_DECOMMIT", "1")],
            manual: Some("Once, in the program: MallocExtension::instance()->ReleaseFreeMemory(). At a higher rate: TCMALLOC_RELEASE_RATE=10."),
            risk: Risk::Medium,
            caveat: Some("Each page that is used again afterwards costs a fault."),
        },
        MemoryFix::GoMemoryLimit => Words {
            rule: "go.memory-limit",
            headline: "Give Go a memory limit.",
            reason: "Above the limit, Go returns freed pages at once; without one, it keeps what its next collection may need, and returns the rest slowly.".to_owned(),
            settings: vec![Setting::Env {
                name: "GOMEMLIMIT".to_owned(),
                value: memory_limit(moment),
            }],
            manual: Some("debug.FreeOSMemory() returns everything once, after a collection."),
            risk: Risk::Medium,
            caveat: Some("Close to the limit, Go collects more often. This value is what is in use now, and a quarter more."),
        },
        MemoryFix::LargerLimit => Words {
            rule: "cgroup.limit",
            headline: "Raise the limit of the memory cgroup, or need less.",
            reason: "At this limit the program waits for its own pages.".to_owned(),
            settings: Vec::new(),
            manual: Some("pagewise run --memory SIZE -- CMD measures what a smaller or larger budget costs."),
            risk: Risk::Low,
            caveat: None,
        },
        MemoryFix::NoHugePages => Words {
            rule: "thp.never",
            headline: "Run the program without huge pages.",
            reason: format!("Up to {most} are zeros that only huge pages make resident: what the program has filled with zeros itself stays."),
            settings: vec![Setting::Thp {
                mode: "never".to_owned(),
            }],
            manual: None,
            risk: Risk::Medium,
            caveat: Some("A program with a large working set may get slower."),
        },
    }
}
