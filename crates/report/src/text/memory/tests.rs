use super::*;
use pagewise_model::memory::{ByteRange, MemoryFinding, ProcessMemory};

fn row(kind: MemoryKind, mib: u64) -> MemoryRow {
    MemoryRow {
        resident: Bytes(mib << 20),
        proportional: Bytes(mib << 20),
        ..MemoryRow::new(kind)
    }
}

#[test]
fn a_runs_report_joins_small_rows_and_says_what_no_look_saw() {
    let rows = vec![
        row(MemoryKind::Stacks, 300),
        row(MemoryKind::Program, 1),
        row(MemoryKind::Special, 1),
    ];
    let resident = Bytes(302 << 20);
    let process = ProcessMemory {
        pid: 42,
        name: "server".to_owned(),
        resident,
        proportional: resident,
        rows,
        ..ProcessMemory::default()
    };
    let memory = Memory {
        finding: MemoryFinding {
            verdict: MemoryVerdict::AllInUse,
            bytes: resident,
            ..MemoryFinding::default()
        },
        moments: vec![MemoryMoment {
            when: MemoryWhen::Peak,
            elapsed_ns: Some(2_000_000_000),
            began_unix_ms: None,
            processes: vec![process],
            cgroup: None,
            refused: Vec::new(),
            look_ns: 0,
        }],
        course: Vec::new(),
        growth: None,
        holders: None,
        touched: Vec::new(),
    };
    let mut page = Page::new(100, Style::PLAIN);
    of_run(&mut page, &memory, Bytes(400 << 20));
    let expected = "
Resident memory, after 2.00 s: 98.0 MiB below the peak of 400 MiB
  what                resident   share  swap
  stacks               300 MiB  99.3 %
  2 smaller rows      2.00 MiB   0.7 %
  resident, by smaps   302 MiB   100 %
  All in use: 302 MiB (100 %) of 302 MiB resident at the peak.
";
    assert_eq!(page.finish().trim_start(), expected.trim_start());
}

#[test]
fn the_account_adds_up_and_says_what_was_not_readable() {
    let heap = |kind, mib| MemoryRow {
        allocator: Some(AllocatorKind::Glibc),
        part: Some(HeapPart::Main),
        ..row(kind, mib)
    };
    let process = ProcessMemory {
        pid: 42,
        name: "server".to_owned(),
        resident: Bytes(200 << 20),
        proportional: Bytes(200 << 20),
        page_tables: Bytes(1 << 20),
        rows: vec![
            heap(MemoryKind::Live, 60),
            heap(MemoryKind::FreedKept, 100),
            row(MemoryKind::Stacks, 10),
            MemoryRow {
                unread: Some(Unread::NoKnownAllocator),
                ..row(MemoryKind::NotReadable, 30)
            },
        ],
        ..ProcessMemory::default()
    };
    let document = Document::new(Memory {
        finding: MemoryFinding {
            verdict: MemoryVerdict::Retention,
            bytes: Bytes(100 << 20),
            returnable: Some(ByteRange {
                low: Bytes(100 << 20),
                high: Bytes(100 << 20),
            }),
            ..MemoryFinding::default()
        },
        moments: vec![MemoryMoment {
            when: MemoryWhen::Now,
            elapsed_ns: None,
            began_unix_ms: None,
            processes: vec![process],
            cgroup: None,
            refused: Vec::new(),
            look_ns: 3_000_000,
        }],
        course: Vec::new(),
        growth: None,
        holders: None,
        touched: Vec::new(),
    });
    let expected = "\
pagewise   server (42)

● costly   Retention: 100 MiB (50 %) of 200 MiB resident was freed and is kept by the allocator.
           malloc_trim would return 100 MiB.

Resident memory
  what                                      resident  share  swap
  in use: glibc main heap                   60.0 MiB   30 %
  freed and kept: glibc main heap            100 MiB   50 %
  stacks                                    10.0 MiB  5.0 %
  not readable: of no allocator known here  30.0 MiB   15 %
  resident, by smaps                         200 MiB  100 %

Next to it
  what            bytes
  page tables  1.00 MiB

Look       3.00 ms for one process; nothing was stopped
";
    assert_eq!(render(&document, 100, Style::PLAIN), expected);
}
