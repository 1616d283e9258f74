use super::*;
use pagewise_model::memory::{
    HeapCheck, LeakCheck, LeaksUnknown, MemoryWhen, ProcessMemory, Unread,
};

const MIB: u64 = 1 << 20;

fn row(kind: MemoryKind, part: Option<HeapPart>, mib: u64) -> MemoryRow {
    MemoryRow {
        part,
        allocator: part.map(|_| AllocatorKind::Glibc),
        unread: (kind == MemoryKind::NotReadable).then_some(Unread::NoKnownAllocator),
        resident: Bytes(mib * MIB),
        proportional: Bytes(mib * MIB),
        ..MemoryRow::new(kind)
    }
}

fn heap(part: HeapPart, count: u64, free: u64, large_free: u64) -> Heap {
    Heap {
        count,
        free: Bytes(free * MIB),
        free_blocks: 1,
        large_free: Bytes(large_free * MIB),
        returnable: Bytes(free * MIB),
        raised_mmap_threshold: (large_free > 0).then_some(Bytes(32 * MIB)),
        ..Heap::new(AllocatorKind::Glibc, part, HeapCheck::Counter)
    }
}

fn found(rows: Vec<MemoryRow>, heaps: Vec<Heap>) -> MemoryFinding {
    finding(&moment(rows, heaps))
}

fn moment(rows: Vec<MemoryRow>, heaps: Vec<Heap>) -> MemoryMoment {
    let resident: Bytes = rows.iter().map(|row| row.resident).sum();
    MemoryMoment {
        when: MemoryWhen::Now,
        elapsed_ns: None,
        began_unix_ms: None,
        processes: vec![ProcessMemory {
            pid: 1,
            resident,
            proportional: resident,
            rows,
            heaps,
            ..ProcessMemory::default()
        }],
        cgroup: None,
        refused: Vec::new(),
        look_ns: 0,
    }
}

const MAIN: Option<HeapPart> = Some(HeapPart::Main);
const THREADS: Option<HeapPart> = Some(HeapPart::Threads);

#[test]
fn the_two_opposite_causes_of_retention_get_opposite_fixes() {
    let rows = vec![
        row(MemoryKind::Live, MAIN, 10),
        row(MemoryKind::FreedKept, MAIN, 90),
    ];
    let ratchet = found(rows, vec![heap(HeapPart::Main, 1, 90, 80)]);
    assert_eq!(ratchet.verdict, MemoryVerdict::Retention);
    assert_eq!(ratchet.returnable.map(|range| range.low.0), Some(90 * MIB));
    assert_eq!(
        ratchet.fixes,
        [MemoryFix::FixedMmapThreshold, MemoryFix::Trim]
    );
    let rows = vec![
        row(MemoryKind::Live, THREADS, 10),
        row(MemoryKind::FreedKept, THREADS, 90),
    ];
    let pool = found(rows, vec![heap(HeapPart::Threads, 8, 90, 0)]);
    assert_eq!(pool.fixes, [MemoryFix::FewerArenas, MemoryFix::Trim]);
}

#[test]
fn an_unknown_above_what_is_kept_cannot_tell() {
    let rows = vec![
        row(MemoryKind::Live, MAIN, 30),
        row(MemoryKind::FreedKept, MAIN, 20),
        row(MemoryKind::NotReadable, None, 50),
    ];
    let found = found(rows, vec![heap(HeapPart::Main, 1, 20, 0)]);
    assert_eq!(found.verdict, MemoryVerdict::CannotTell);
    assert_eq!((found.bytes.0, found.returnable), (50 * MIB, None));
}

#[test]
fn pinned_space_is_fragmentation_and_a_trim_is_not_its_fix() {
    let rows = vec![
        row(MemoryKind::Live, THREADS, 60),
        row(MemoryKind::Pinned, THREADS, 30),
        row(MemoryKind::FreedKept, THREADS, 5),
    ];
    let found = found(rows, vec![heap(HeapPart::Threads, 4, 35, 0)]);
    assert_eq!(found.verdict, MemoryVerdict::Fragmentation);
    assert_eq!(
        found.fixes,
        [MemoryFix::FewerArenas, MemoryFix::OtherAllocator]
    );
}

#[test]
fn each_allocator_that_keeps_memory_has_a_fix_of_its_own() {
    for (allocator, fix) in [
        (AllocatorKind::Jemalloc, MemoryFix::JemallocDecay),
        (AllocatorKind::Mimalloc, MemoryFix::MimallocPurge),
        (AllocatorKind::Tcmalloc, MemoryFix::TcmallocDecommit),
        (AllocatorKind::Go, MemoryFix::GoMemoryLimit),
    ] {
        let of = |kind, mib| MemoryRow {
            allocator: Some(allocator),
            ..row(kind, Some(HeapPart::Arenas), mib)
        };
        let rows = vec![of(MemoryKind::Live, 10), of(MemoryKind::FreedKept, 90)];
        let heap = Heap {
            allocator,
            ..heap(HeapPart::Arenas, 4, 90, 0)
        };
        let found = found(rows, vec![heap]);
        assert_eq!(found.verdict, MemoryVerdict::Retention);
        assert_eq!(found.allocator, Some(allocator));
        assert_eq!(found.fixes, [fix]);
    }
}

#[test]
fn stalls_at_a_full_limit_are_a_limit_too_small() {
    let cgroup = |charged, stalled| CgroupMemory {
        charged: Bytes(charged * MIB),
        limit: Some(Bytes(100 * MIB)),
        anonymous: Bytes(90 * MIB),
        page_cache: Bytes(0),
        page_cache_before: None,
        shared: Bytes(0),
        kernel: None,
        swapped: None,
        stalled: Some(stalled),
    };
    let verdict = |cgroup| {
        let mut moment = moment(vec![row(MemoryKind::Live, MAIN, 95)], Vec::new());
        moment.cgroup = Some(cgroup);
        finding(&moment).verdict
    };
    assert_eq!(verdict(cgroup(99, 0.2)), MemoryVerdict::LimitTooSmall);
    assert_eq!(verdict(cgroup(99, 0.001)), MemoryVerdict::AllInUse);
    assert_eq!(verdict(cgroup(50, 0.2)), MemoryVerdict::AllInUse);
}

#[test]
fn page_cache_that_was_there_before_is_that_of_others() {
    let verdict = |before| {
        let mut moment = moment(vec![row(MemoryKind::Live, MAIN, 95)], Vec::new());
        moment.cgroup = Some(CgroupMemory {
            charged: Bytes(3_100 * MIB),
            limit: None,
            anonymous: Bytes(90 * MIB),
            page_cache: Bytes(3_000 * MIB),
            page_cache_before: before,
            shared: Bytes(0),
            kernel: None,
            swapped: None,
            stalled: None,
        });
        finding(&moment).verdict
    };
    assert_eq!(verdict(None), MemoryVerdict::Cache);
    assert_eq!(verdict(Some(Bytes(100 * MIB))), MemoryVerdict::Cache);
    assert_eq!(verdict(Some(Bytes(2_950 * MIB))), MemoryVerdict::AllInUse);
}

#[test]
fn blocks_that_were_added_between_two_looks_are_growth() {
    let look = |live, freed| {
        let rows = vec![
            row(MemoryKind::Live, MAIN, live),
            row(MemoryKind::FreedKept, MAIN, freed),
        ];
        moment(rows, vec![heap(HeapPart::Main, 1, freed, 0)])
    };
    let verdict = |before: (u64, u64), after: (u64, u64)| {
        let (before, after) = (look(before.0, before.1), look(after.0, after.1));
        let growth = Growth::between(&before, &after, Some(1));
        let found = finding_of_growth(&growth, &after);
        (found.verdict, found.bytes.0 / MIB)
    };
    assert_eq!(verdict((90, 5), (140, 5)), (MemoryVerdict::Growth, 50));
    // What was freed and kept grew more; blocks in use shrank; nothing to speak of.
    assert_eq!(verdict((90, 5), (100, 60)), (MemoryVerdict::Retention, 60));
    assert_eq!(verdict((90, 5), (80, 5)), (MemoryVerdict::AllInUse, 80));
    assert_eq!(verdict((90, 5), (91, 5)), (MemoryVerdict::AllInUse, 91));
}

#[test]
fn what_no_pointer_leads_to_is_a_leak_and_explains_growth() {
    let leaking = |live, lost: u64| {
        let mut moment = moment(vec![row(MemoryKind::Live, MAIN, live)], Vec::new());
        let bytes = ByteRange {
            low: Bytes(lost * MIB),
            high: Bytes((lost + 1) * MIB),
        };
        moment.processes[0].leaks = Some(LeakCheck {
            leaked: bytes,
            ..LeakCheck::unknown(LeaksUnknown::NoHeap)
        });
        moment
    };
    let found = finding(&leaking(100, 20));
    assert_eq!(
        (found.verdict, found.bytes.0),
        (MemoryVerdict::Leak, 20 * MIB)
    );
    // A small part, and too small a one.
    assert_eq!(finding(&leaking(100, 5)).verdict, MemoryVerdict::Leak);
    assert_eq!(finding(&leaking(100, 1)).verdict, MemoryVerdict::AllInUse);
    let of_growth = |lost| {
        let (before, after) = (leaking(900, 0), leaking(1000, lost));
        let growth = Growth::between(&before, &after, Some(1));
        finding_of_growth(&growth, &after).verdict
    };
    assert_eq!(of_growth(50), MemoryVerdict::Leak);
    assert_eq!(of_growth(49), MemoryVerdict::Growth);
}

#[test]
fn a_small_reserve_is_all_in_use() {
    let rows = vec![
        row(MemoryKind::Live, MAIN, 95),
        row(MemoryKind::Reserve, MAIN, 5),
    ];
    let found = found(rows, vec![heap(HeapPart::Main, 1, 0, 0)]);
    assert_eq!(found.verdict, MemoryVerdict::AllInUse);
    assert_eq!(found.bytes, Bytes(95 * MIB));
    assert_eq!(found.fixes, []);
}
