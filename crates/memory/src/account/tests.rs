//! The account of made-up processes.

use super::*;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{HeapCheck, HeapPart};

fn mapping(start: u64, kind: MappingKind, resident: u64) -> MappingFacts {
    MappingFacts {
        start,
        end: start + 0x10_0000,
        kind,
        resident: Bytes(resident),
        proportional: Bytes(resident / 2),
        swapped: Bytes(0),
        zeros: Bytes(0),
    }
}

fn heap(cached: u64, extents: Vec<u64>) -> HeapFacts {
    HeapFacts {
        heap: Heap {
            count: 1,
            cached: Bytes(cached),
            ..Heap::new(AllocatorKind::Glibc, HeapPart::Main, HeapCheck::Counter)
        },
        extents,
        returns: Returns::PagesAndReserve,
    }
}

pub(super) fn facts() -> ProcessFacts {
    let resident = |resident| PageBytes {
        resident,
        swapped: 0,
    };
    let sums = ExtentSums {
        live: resident(40_000),
        zeros: resident(0),
        freed: resident(8_192),
        pinned: resident(1_000),
        reserve: resident(12_000),
        reserve_pages: resident(8_192),
        bookkeeping: resident(344),
        changed: resident(0),
    };
    ProcessFacts {
        mappings: vec![
            mapping(0x10_0000, MappingKind::Anonymous, 61_536),
            mapping(0x30_0000, MappingKind::Anonymous, 20_480),
            mapping(0x50_0000, MappingKind::Stack, 8_192),
        ],
        heaps: vec![heap(3_000, vec![0x10_0000])],
        extents: vec![Extent {
            start: 0x10_0000,
            end: 0x20_0000,
            sums,
        }],
        unread: vec![UnreadRange {
            start: 0x30_0000,
            end: 0x30_1000,
            why: Unread::Swapped,
            resident: 4_096,
            swapped: 0,
        }],
        ..ProcessFacts::default()
    }
}

#[test]
fn the_rows_add_up_to_smaps() {
    let found = account(facts());
    assert_eq!(found.resident, Bytes(61_536 + 20_480 + 8_192));
    assert_eq!(found.residue, 0);
    let of = |kind| {
        let rows = found.rows.iter().filter(|row| row.kind == kind);
        rows.map(|row| row.resident.0).sum::<u64>()
    };
    assert_eq!(of(MemoryKind::Live), 37_000);
    assert_eq!(of(MemoryKind::Cached), 3_000);
    assert_eq!(of(MemoryKind::Stacks), 8_192);
    assert_eq!(found.heaps[0].returnable, Bytes(16_384));
    let is_unread = |row: &&MemoryRow| row.kind == MemoryKind::NotReadable;
    let unread = found.rows.iter().filter(is_unread);
    let unread: Vec<_> = unread.map(|row| (row.unread, row.resident.0)).collect();
    // Only the part that should have been read has a reason.
    let expected = [
        (Some(Unread::NoKnownAllocator), 20_480 - 4_096),
        (Some(Unread::Swapped), 4_096),
    ];
    assert_eq!(unread, expected);
}

#[test]
fn a_heap_in_two_mappings_is_no_residue_and_readable() {
    let mut facts = facts();
    let mut second = facts.mappings[0];
    facts.mappings[0].end = 0x14_0000;
    facts.mappings[0].resident = Bytes(40_000);
    second.start = 0x14_0000;
    second.resident = Bytes(21_536);
    facts.mappings.insert(1, second);
    let found = account(facts);
    assert_eq!(found.residue, 0);
    let unread = found
        .rows
        .iter()
        .filter(|row| row.kind == MemoryKind::NotReadable);
    assert_eq!(unread.map(|row| row.resident.0).sum::<u64>(), 20_480);
}

#[test]
fn a_heap_that_grew_meanwhile_shows_in_the_residue() {
    let mut facts = facts();
    facts.mappings[0].resident = Bytes(50_000);
    assert_eq!(account(facts).residue, 50_000 - 61_536);
}
