use super::*;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{HeapPart, MemoryRow, ProcessMemory};
use pagewise_model::units::Bytes;

const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

/// A look after so many milliseconds at a heap with so many MiB in use, and free.
fn look(when: MemoryWhen, ms: u64, in_use: u64, free: u64) -> MemoryMoment {
    let row = |kind, mib| MemoryRow {
        allocator: Some(AllocatorKind::Glibc),
        part: Some(HeapPart::Main),
        resident: Bytes(mib * MIB),
        proportional: Bytes(mib * MIB),
        ..MemoryRow::new(kind)
    };
    let resident = Bytes((in_use + free) * MIB);
    MemoryMoment {
        when,
        elapsed_ns: Some(ms * MS),
        began_unix_ms: None,
        processes: vec![ProcessMemory {
            pid: 1,
            resident,
            proportional: resident,
            rows: vec![
                row(MemoryKind::Live, in_use),
                row(MemoryKind::FreedKept, free),
            ],
            ..ProcessMemory::default()
        }],
        cgroup: None,
        refused: Vec::new(),
        look_ns: 0,
    }
}

/// What is said about a run with looks after so many milliseconds, of which the last is the end.
fn judged(looks: &[(u64, u64, u64)]) -> Judged {
    let (end, running) = looks.split_last().unwrap();
    let mut largest = Largest::default();
    let mut course = Vec::new();
    for (ms, in_use, free) in running {
        let moment = look(MemoryWhen::Peak, *ms, *in_use, *free);
        course.push(MemoryPoint::new(&moment, ms * MS));
        largest.add(moment);
    }
    let (ms, in_use, free) = *end;
    let end = look(MemoryWhen::End, ms, in_use, free);
    judge(largest, Some(end), &course)
}

fn verdict(looks: &[(u64, u64, u64)]) -> (MemoryVerdict, MemoryWhen) {
    let finding = judged(looks).finding;
    (finding.verdict, finding.when)
}

#[test]
fn what_is_freed_in_order_to_end_is_no_retention() {
    let at_once = [(50, 20, 0), (100, 96, 1), (110, 96, 1), (115, 14, 86)];
    let running = (MemoryVerdict::AllInUse, MemoryWhen::Running);
    assert_eq!(verdict(&at_once), running);
    assert_eq!(judged(&at_once).moments.len(), 2);
    // Freeing takes a third of the run, and is seen.
    let slowly = [
        (30, 40, 0),
        (60, 99, 1),
        (70, 80, 20),
        (80, 50, 50),
        (90, 20, 80),
        (100, 5, 95),
    ];
    assert_eq!(
        verdict(
            &slowly[..2]
                .iter()
                .chain(&slowly[4..])
                .copied()
                .collect::<Vec<_>>()
        ),
        running
    );
    // The largest look came in the middle of it.
    let late = [(97, 40, 58), (98, 30, 69), (100, 5, 95)];
    let freed = (MemoryVerdict::FreedToEnd, MemoryWhen::End);
    assert_eq!(verdict(&late), freed);
    // No look saw the program at its size.
    assert_eq!(verdict(&[(10, 5, 0), (30, 10, 90)]), freed);
    assert_eq!(verdict(&[(30, 10, 90)]), freed);
}

#[test]
fn a_child_that_frees_in_order_to_end_keeps_nothing() {
    let child = [(60, 90, 2), (70, 95, 1), (75, 40, 70), (100, 3, 0)];
    let peak = (MemoryVerdict::AllInUse, MemoryWhen::Peak);
    assert_eq!(verdict(&child), peak);
    assert_eq!(judged(&child).moments[0].total(), Bytes(96 * MIB));
}

#[test]
fn what_stays_free_until_the_end_is_retention() {
    let kept = (MemoryVerdict::Retention, MemoryWhen::End);
    // Freed in the middle, then idle.
    assert_eq!(verdict(&[(50, 99, 1), (60, 10, 89), (100, 10, 90)]), kept);
    // More and less of it, and more at the end.
    let changing = [(50, 80, 20), (70, 60, 40), (85, 70, 30), (100, 10, 90)];
    assert_eq!(verdict(&changing), kept);
    // The peak was somewhat larger.
    assert_eq!(verdict(&[(50, 130, 1), (60, 10, 89), (100, 10, 90)]), kept);
}

#[test]
fn a_small_rest_after_a_large_peak_does_not_count() {
    let peak = (MemoryVerdict::AllInUse, MemoryWhen::Peak);
    assert_eq!(verdict(&[(50, 2000, 0), (60, 10, 89), (100, 10, 90)]), peak);
}

#[test]
fn of_looks_of_one_size_that_with_most_in_use_stands_for_the_run() {
    let mut largest = Largest::default();
    for (in_use, free) in [(50, 0), (96, 2), (40, 60), (97, 0), (10, 20)] {
        largest.add(look(MemoryWhen::Peak, 1, in_use, free));
    }
    let found = largest.into_moment().unwrap();
    assert_eq!(found.total(), Bytes(97 * MIB));
}
