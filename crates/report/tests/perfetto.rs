//! Perfetto traces, read back by a protobuf decoder that is independent of our encoder.

use pagewise_report::exports::perfetto::{Category, PerfettoWriter, Slice};
use std::collections::BTreeMap;

/// The fields of a message: number and value.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 {
            return value;
        }
    }
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).expect("a length");
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value)
            }
            kind => panic!("wire type {kind}"),
        };
        found.push((key >> 3, value));
    }
    found
}

fn number(fields: &[(u64, Value<'_>)], wanted: u64) -> Option<u64> {
    fields.iter().find_map(|(field, value)| match value {
        Value::Number(number) if *field == wanted => Some(*number),
        _ => None,
    })
}

fn bytes<'a>(fields: &[(u64, Value<'a>)], wanted: u64) -> Vec<&'a [u8]> {
    let all = fields.iter().filter(|(field, _)| *field == wanted);
    all.filter_map(|(_, value)| match value {
        Value::Bytes(bytes) => Some(*bytes),
        Value::Number(_) => None,
    })
    .collect()
}

#[derive(Default)]
struct Decoded {
    /// Track and thread name.
    tracks: BTreeMap<u64, String>,
    /// Track, begin, end, depth, category and name of each slice, in the order of ends.
    slices: Vec<(u64, u64, u64, usize, String, String)>,
}

fn decode(trace: &[u8]) -> Decoded {
    let mut decoded = Decoded::default();
    let (mut names, mut categories) = (BTreeMap::new(), BTreeMap::new());
    let mut open: BTreeMap<u64, Vec<(u64, u64, u64)>> = BTreeMap::new();
    for packet in bytes(&fields(trace), 1) {
        let packet = fields(packet);
        assert_eq!(
            number(&packet, 10),
            Some(1),
            "every packet has its sequence"
        );
        for interned in bytes(&packet, 12) {
            let interned = fields(interned);
            for (field, table) in [(1, &mut categories), (2, &mut names)] {
                for entry in bytes(&interned, field) {
                    let entry = fields(entry);
                    let name = String::from_utf8(bytes(&entry, 2)[0].to_vec()).expect("UTF-8");
                    let id = number(&entry, 1).expect("a number");
                    assert!(table.insert(id, name).is_none(), "interned once");
                }
            }
        }
        for descriptor in bytes(&packet, 60) {
            let descriptor = fields(descriptor);
            let thread = fields(bytes(&descriptor, 4)[0]);
            let name = String::from_utf8_lossy(bytes(&thread, 5)[0]).into_owned();
            let id = number(&descriptor, 1).expect("a number");
            decoded.tracks.insert(id, name);
        }
        for event in bytes(&packet, 11) {
            let event = fields(event);
            let track = number(&event, 11).expect("a track");
            assert!(decoded.tracks.contains_key(&track), "described before use");
            let time = number(&packet, 8).expect("a time");
            let stack = open.entry(track).or_default();
            match number(&event, 9) {
                Some(1) => {
                    let id = |field| number(&event, field).expect("an id");
                    stack.push((time, id(10), id(3)));
                }
                Some(2) => {
                    let (begin, name, category) = stack.pop().expect("a begin for each end");
                    let depth = stack.len();
                    decoded.slices.push((
                        track,
                        begin,
                        time,
                        depth,
                        categories[&category].clone(),
                        names[&name].clone(),
                    ));
                }
                other => panic!("event type {other:?}"),
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    decoded
}

const fn slice(name: &str, end: usize, duration_ns: u64) -> Slice<'_> {
    Slice {
        name,
        category: Category::Call,
        end,
        duration_ns,
    }
}

#[test]
fn slices_nest_as_the_calls_did() {
    let mut writer = PerfettoWriter::new(Vec::new());
    let first = [
        slice("handle_mm_fault", 4, 1000),
        slice("alloc", 3, 400),
        slice("zone", 3, 300),
        Slice {
            category: Category::Interrupt,
            ..slice("irq", 4, 300)
        },
    ];
    writer.write(7, 50_000, &first).expect("writable");
    writer
        .write(
            7,
            60_000,
            &first[2..3]
                .iter()
                .map(|s| Slice {
                    end: 1,
                    ..s.clone()
                })
                .collect::<Vec<_>>(),
        )
        .expect("writable");
    writer
        .write(0, 60_100, &[slice("handle_mm_fault", 1, 5)])
        .expect("writable");
    let decoded = decode(&writer.finish().expect("finished"));
    assert_eq!(decoded.tracks[&8], "task 7");
    assert_eq!(decoded.tracks[&1], "task 0");
    let call = |track, begin, end, depth, name: &str| {
        (track, begin, end, depth, "call".to_owned(), name.to_owned())
    };
    // 300 ns of self time in three gaps of 100; 100 ns in two of 50.
    let irq = (
        8,
        50_600,
        50_900,
        1,
        "interrupt".to_owned(),
        "irq".to_owned(),
    );
    assert_eq!(
        decoded.slices,
        [
            call(8, 50_150, 50_450, 2, "zone"),
            call(8, 50_100, 50_500, 1, "alloc"),
            irq,
            call(8, 50_000, 51_000, 0, "handle_mm_fault"),
            call(8, 60_000, 60_300, 0, "zone"),
            call(1, 60_100, 60_105, 0, "handle_mm_fault"),
        ]
    );
}

#[test]
fn a_trace_without_faults_is_still_a_trace() {
    let trace = PerfettoWriter::new(Vec::new()).finish().expect("finished");
    assert!(!trace.is_empty());
    assert!(decode(&trace).slices.is_empty());
}
