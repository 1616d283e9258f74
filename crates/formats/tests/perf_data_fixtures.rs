//! perf.data files made by perf, committed so that the reader is also tested on machines without
//! perf, and damaged copies of them. See `fixtures/README.md` for the commands.

use pagewise_formats::perf_data::{PerfData, Reading};
use pagewise_formats::sniff::{Format, sniff};
use pagewise_model::event::{Event, EventKind};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const FIXTURES: [(&str, &[u8]); 5] = [
    ("plain", include_bytes!("fixtures/plain.data.zst")),
    ("packed", include_bytes!("fixtures/packed.data.zst")),
    (
        "tracepoints",
        include_bytes!("fixtures/tracepoints.data.zst"),
    ),
    ("stacks", include_bytes!("fixtures/stacks.data.zst")),
    ("pipe", include_bytes!("fixtures/pipe.data.zst")),
];

fn fixture(name: &str) -> Vec<u8> {
    let packed = FIXTURES.iter().find(|(known, _)| *known == name);
    zstd::decode_all(packed.expect("in the list").1).expect("packed by zstd")
}

/// Samples by source, names given by `execve(2)`, and what was left out.
fn contents(bytes: &[u8]) -> (BTreeMap<String, u32>, Vec<String>, Reading) {
    let data = PerfData::parse(bytes).expect("perf wrote it");
    let mut samples = BTreeMap::new();
    let mut names = Vec::new();
    let mut last = 0;
    let reading = data.read(
        |event| {
            assert!(event.time().0 >= last, "out of order");
            last = event.time().0;
            match event {
                Event::Sample(sample) => {
                    let source = &data.sources()[usize::from(sample.source.0)];
                    *samples.entry(source.name.clone()).or_default() += 1;
                }
                Event::Comm {
                    name, exec: true, ..
                } => {
                    names.push(String::from_utf8_lossy(name).into_owned());
                }
                _ => {}
            }
        },
        |_| (),
    );
    (samples, names, reading)
}

fn check(name: &str, expected: &[(&str, u32)]) {
    let (samples, names, reading) = contents(&fixture(name));
    let expected: BTreeMap<_, _> = expected.iter().map(|&(n, c)| (n.to_owned(), c)).collect();
    assert_eq!(samples, expected, "{name}");
    assert!(names.contains(&"sh".to_owned()), "{name}: {names:?}");
    assert!(reading.losses.is_empty(), "{name}: {:?}", reading.losses);
}

#[test]
fn counts_are_those_of_perf_script() {
    check("plain", &[("page-faults", 64)]);
    check("packed", &[("page-faults", 61), ("minor-faults", 61)]);
    let tracepoints = [
        ("syscalls:sys_enter_mmap", 8),
        ("page-faults", 63),
        ("syscalls:sys_enter_brk", 3),
    ];
    check("tracepoints", &tracepoints);
    check("stacks", &[("page-faults:u", 12)]);
    check("pipe", &[("page-faults", 62), ("minor-faults", 62)]);
}

/// perf 6.16 and newer pack into `PERF_RECORD_COMPRESSED2`, which contains the number of bytes
/// without padding.
#[test]
fn packed_records_of_either_kind_hold_the_same() {
    const DATA: std::ops::Range<usize> = 40..56;
    let old = fixture("packed");
    let word = |at: usize| u64::from_le_bytes(old[at..at + 8].try_into().expect("eight bytes"));
    let (start, size) = (word(DATA.start), word(DATA.start + 8));
    let (start, end) = (
        usize::try_from(start).unwrap(),
        usize::try_from(start + size).unwrap(),
    );
    let (mut records, mut at, mut packed) = (Vec::new(), start, 0);
    while at < end {
        let kind = u32::from_le_bytes(old[at..at + 4].try_into().unwrap());
        let size = usize::from(u16::from_le_bytes(old[at + 6..at + 8].try_into().unwrap()));
        let record = &old[at..at + size];
        at += size;
        if kind != 81 {
            records.extend(record);
            continue;
        }
        packed += 1;
        let body = &record[8..];
        let padded = body.len().next_multiple_of(8);
        records.extend(83_u32.to_le_bytes());
        records.extend([0, 0]);
        records.extend(
            u16::try_from(16 + padded)
                .expect("a small record")
                .to_le_bytes(),
        );
        records.extend((body.len() as u64).to_le_bytes());
        records.extend(body);
        records.resize(records.len() + padded - body.len(), 0xff);
    }
    assert!(packed > 0);
    let grown = records.len() as u64 - size;
    // The table of sections follows the records, and the sections follow the table.
    let mut new = [&old[..start], &records, &old[end..]].concat();
    new[DATA.start + 8..DATA.end].copy_from_slice(&(size + grown).to_le_bytes());
    let table = start + records.len();
    let features = (72..104)
        .map(|at| old[at].count_ones() as usize)
        .sum::<usize>();
    for section in 0..features {
        let at = table + section * 16;
        let offset = u64::from_le_bytes(new[at..at + 8].try_into().unwrap()) + grown;
        new[at..at + 8].copy_from_slice(&offset.to_le_bytes());
    }
    let (of_old, of_new) = (contents(&old), contents(&new));
    assert_eq!((of_old.0, of_old.1), (of_new.0, of_new.1));
    assert!(of_new.2.losses.is_empty(), "{:?}", of_new.2.losses);
}

#[test]
fn kinds_formats_and_origin_are_told() {
    let bytes = fixture("tracepoints");
    let data = PerfData::parse(&bytes).expect("perf wrote it");
    let kinds: Vec<_> = data
        .sources()
        .iter()
        .map(|source| source.kind.clone())
        .collect();
    let mmap = EventKind::Tracepoint("syscalls:sys_enter_mmap".into());
    assert!(
        kinds.contains(&mmap) && kinds.contains(&EventKind::PageFault),
        "{kinds:?}"
    );
    let index = kinds
        .iter()
        .position(|kind| *kind == mmap)
        .expect("just seen");
    let source = pagewise_model::event::SourceIndex(u16::try_from(index).expect("small"));
    let format = &data.tracepoint(source).expect("in the tracing data").format;
    assert!(format.contains("unsigned long len"), "{format}");
    assert_eq!(data.origin().arch, "x86_64");
    assert_eq!(data.origin().os_release, "6.18.44-generic");
    assert_eq!(data.sidecar(), None);
}

#[test]
fn copied_stacks_come_with_their_registers() {
    let bytes = fixture("stacks");
    let data = PerfData::parse(&bytes).expect("perf wrote it");
    let mut with_stack = 0;
    let losses = data.for_each(|event| {
        if let Event::Sample(sample) = event {
            with_stack += u32::from(sample.user_stack.is_some_and(|stack| {
                let words = stack.register_mask.count_ones() as usize;
                stack.registers.len() == words * 8 && stack.stack.len() <= 512
            }));
        }
    });
    assert!(losses.expect("readable").is_empty());
    assert!(with_stack >= 10, "{with_stack} of 12");
}

#[test]
fn formats_are_sniffed() {
    assert_eq!(sniff(&fixture("plain")), Some(Format::PerfDataFile));
    assert_eq!(sniff(&fixture("pipe")), Some(Format::PerfDataPipe));
    assert_eq!(sniff(FIXTURES[0].1), Some(Format::Zstd));
}

#[test]
fn cut_anywhere_nothing_panics_and_order_holds() {
    for (name, _) in FIXTURES {
        let whole = fixture(name);
        let step = (whole.len() / 400).max(1);
        for end in (0..whole.len()).step_by(step) {
            if PerfData::parse(&whole[..end]).is_ok() {
                contents(&whole[..end]);
            }
        }
    }
}

/// The stable stand-in for the fuzzer: bits, words and stretches of the fixtures are changed at
/// random, with a fixed seed, for about two seconds.
#[test]
fn damaged_anyhow_nothing_panics() {
    let fixtures: Vec<Vec<u8>> = FIXTURES.iter().map(|(name, _)| fixture(name)).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let end = Instant::now() + Duration::from_secs(2);
    let mut parsed = 0;
    for round in 0..20_000 {
        let mut bytes = fixtures[round % fixtures.len()].clone();
        for _ in 0..=random.below(8) {
            damage(&mut bytes, &mut random);
        }
        if let Ok(data) = PerfData::parse(&bytes) {
            let mut sum = 0_u64;
            data.read(|event| sum = sum.wrapping_add(event.time().0), |_| ());
            parsed += u32::from(sum > 0);
        }
        if Instant::now() > end {
            break;
        }
    }
    assert!(
        parsed > 100,
        "damage left only {parsed} files readable: nothing was tested"
    );
}

/// Changes one place; half of the time within the header and the attributes, where it matters most.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let range = if random.below(2) == 0 {
        bytes.len().min(600)
    } else {
        bytes.len()
    };
    let at = random.below(range);
    match random.below(5) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = 0xff,
        2 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0xff),
        3 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0),
        _ => bytes.truncate(at.max(200)),
    }
}

/// xorshift64 (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap_or(0)
    }
}
