//! The reader against naive counterparts: order, fields, truncation, damage.

mod made;

use made::{PLAIN, attr, faults, file, plain_sample, record, words};
use pagewise_formats::perf_data::synthesise::{self, MapsLine, SampleId};
use pagewise_formats::perf_data::{
    Cut, Features, PerfData, ReadError, SourceAttr, Writer, replace_sidecar, sample_type as bit,
};
use pagewise_model::event::{Event, EventKind, Sample};
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::units::Nanos;
use proptest::prelude::*;
use std::io::Cursor;

/// Address of each sample in the order in which they were passed on, with its time, and the losses.
fn samples(bytes: &[u8]) -> (Vec<(u64, u64)>, Losses) {
    let data = PerfData::parse(bytes).expect("a perf.data file");
    let mut seen = Vec::new();
    let losses = data.for_each(|event| {
        if let Event::Sample(sample) = event {
            seen.push((sample.time.0, sample.address));
        }
    });
    (seen, losses.expect("readable"))
}

/// Rings drained in turn: each turn takes from each ring the records that are older than the moment
/// of that ring's turn. Returns the file and its samples in file order.
fn drained(rings: &[Vec<u64>], moments: &[u64]) -> (Vec<u8>, Vec<(u64, u64)>) {
    let mut in_file = Vec::new();
    let mut taken = vec![0; rings.len()];
    let bytes = file(&[faults(PLAIN, 7)], |writer| {
        for turn in moments
            .chunks_exact(rings.len())
            .chain([&vec![u64::MAX; rings.len()][..]])
        {
            for (ring, &moment) in turn.iter().enumerate() {
                let rest = &rings[ring][taken[ring]..];
                for &time in rest.iter().take_while(|&&time| time <= moment) {
                    let address = in_file.len() as u64;
                    in_file.push((time, address));
                    taken[ring] += 1;
                    writer
                        .records(&plain_sample(7, time, address))
                        .expect("in memory");
                }
            }
            writer.finished_round().expect("in memory");
        }
    });
    (bytes, in_file)
}

fn sorted(mut times: Vec<u64>) -> Vec<u64> {
    times.sort_unstable();
    times
}

proptest! {
    #[test]
    fn order_is_that_of_a_stable_sort(
        rings in prop::collection::vec(prop::collection::vec(1_u64..2000, 0..60), 1..5),
        moments in prop::collection::vec(1_u64..2000, 0..40),
    ) {
        let rings: Vec<_> = rings.into_iter().map(sorted).collect();
        let (bytes, mut expected) = drained(&rings, &sorted(moments));
        expected.sort_by_key(|&(time, _)| time);
        let (seen, losses) = samples(&bytes);
        prop_assert_eq!(seen, expected);
        prop_assert!(losses.is_empty(), "{:?}", losses);
    }

    #[test]
    fn any_combination_of_fields_is_read(
        sample_type in 0_u64..1 << 25,
        read_format in 0_u64..32,
        numbers in prop::collection::vec(1_u64..1 << 40, 12),
        lengths in prop::collection::vec(0_usize..5, 6),
        abi in 0_u64..3,
    ) {
        let source = SourceAttr {
            name: "page-faults".into(),
            attr: attr(1, 2, sample_type, read_format),
            ids: vec![numbers[0]],
        };
        let body = encode(sample_type, read_format, &numbers, &lengths, abi);
        let bytes = file(&[source], |writer| {
            writer.records(&record(9, 2, &body)).expect("in memory");
        });
        let data = PerfData::parse(&bytes).expect("a perf.data file");
        let mut count = 0;
        let losses = data.for_each(|event| {
            let Event::Sample(sample) = event else { panic!("no sample: {event:?}") };
            check(sample_type, &numbers, &lengths, abi, &sample);
            count += 1;
        });
        prop_assert_eq!(count, 1);
        prop_assert!(losses.expect("readable").is_empty());
        // One byte less than the fields need is a contradiction, not a sample.
        if !body.is_empty() && sample_type & bit::RAW == 0 {
            let cut = file(&[SourceAttr { name: String::new(), attr: attr(1, 2, sample_type, read_format), ids: vec![numbers[0]] }],
                |writer| writer.records(&record(9, 2, &body[..body.len() - 1])).expect("in memory"));
            let (seen, losses) = samples(&cut);
            prop_assert_eq!((seen.len(), losses.count(LossKind::MalformedRecord)), (0, 1));
        }
    }

    #[test]
    fn damage_never_panics(changes in prop::collection::vec((0_usize..4000, any::<u8>()), 1..20)) {
        let (mut bytes, _) = drained(&[vec![5, 6, 7], vec![1, 9]], &[4, 5, 8, 9]);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Ok(data) = PerfData::parse(&bytes) {
            data.for_each(|_| ()).expect("damage is counted");
        }
    }
}

/// A sample's fields in the kernel's order, from the documentation of `perf_event_open(2)`.
fn encode(
    sample_type: u64,
    read_format: u64,
    numbers: &[u64],
    lengths: &[usize],
    abi: u64,
) -> Vec<u8> {
    let mut out = Vec::new();
    let has = |field: u64| sample_type & field != 0;
    let mut put = |on: bool, values: &[u64]| {
        if on {
            out.extend(words(values));
        }
    };
    put(has(bit::IDENTIFIER), &numbers[..1]);
    put(has(bit::IP), &numbers[1..2]);
    put(
        has(bit::TID),
        &[(numbers[2] % 1000) | ((numbers[3] % 1000) << 32)],
    );
    put(has(bit::TIME), &numbers[4..5]);
    put(has(bit::ADDR), &numbers[5..6]);
    put(has(bit::ID), &numbers[..1]);
    put(has(bit::STREAM_ID), &[1]);
    put(has(bit::CPU), &[numbers[6] % 64]);
    put(has(bit::PERIOD), &numbers[7..8]);
    let per_value = 1 + usize::from(read_format & 4 != 0) + usize::from(read_format & 16 != 0);
    let times = (read_format & 3).count_ones() as usize;
    if read_format & 8 != 0 {
        put(has(bit::READ), &[lengths[0] as u64]);
        put(has(bit::READ), &vec![3; times + lengths[0] * per_value]);
    } else {
        put(has(bit::READ), &vec![3; times + per_value]);
    }
    put(has(bit::CALLCHAIN), &[lengths[1] as u64]);
    put(has(bit::CALLCHAIN), &numbers[..lengths[1]]);
    if has(bit::RAW) {
        let raw = vec![0xaa_u8; lengths[2] * 8 + 4];
        out.extend_from_slice(&u32::try_from(raw.len()).expect("small").to_le_bytes());
        out.extend_from_slice(&raw);
    }
    let mut put = |on: bool, values: &[u64]| {
        if on {
            out.extend(words(values));
        }
    };
    put(has(bit::BRANCH_STACK), &[lengths[3] as u64]);
    put(has(bit::BRANCH_STACK), &vec![9; lengths[3] * 3]);
    put(has(bit::REGS_USER), &[abi]);
    put(has(bit::REGS_USER) && abi != 0, &[11, 12, 13]);
    put(has(bit::STACK_USER), &[lengths[4] as u64 * 16]);
    put(
        has(bit::STACK_USER) && lengths[4] > 0,
        &vec![0x55; lengths[4] * 2],
    );
    put(
        has(bit::STACK_USER) && lengths[4] > 0,
        &[lengths[4] as u64 * 8],
    );
    put(has(bit::WEIGHT | bit::WEIGHT_STRUCT), &[1]);
    put(has(bit::DATA_SRC), &[1]);
    put(has(bit::TRANSACTION), &[1]);
    put(has(bit::REGS_INTR), &[abi]);
    put(has(bit::REGS_INTR) && abi != 0, &[1, 2]);
    put(has(bit::PHYS_ADDR), &[1]);
    put(has(bit::CGROUP), &[1]);
    put(has(bit::DATA_PAGE_SIZE), &[1]);
    put(has(bit::CODE_PAGE_SIZE), &[1]);
    put(has(bit::AUX), &[lengths[5] as u64 * 8]);
    put(has(bit::AUX), &vec![1; lengths[5]]);
    out
}

fn check(sample_type: u64, numbers: &[u64], lengths: &[usize], abi: u64, sample: &Sample<'_>) {
    let has = |field: u64| sample_type & field != 0;
    let or = |field: u64, value: u64, missing: u64| if has(field) { value } else { missing };
    let small = |number: u64| i32::try_from(number % 1000).expect("below 1000");
    assert_eq!(sample.ip, or(bit::IP, numbers[1], 0));
    if has(bit::TID) {
        assert_eq!(
            (sample.pid, sample.tid),
            (small(numbers[2]), small(numbers[3]))
        );
    }
    assert_eq!(sample.time.0, or(bit::TIME, numbers[4], 0));
    assert_eq!(sample.address, or(bit::ADDR, numbers[5], 0));
    let cpu = sample.cpu.map(u64::from);
    assert_eq!(cpu, has(bit::CPU).then_some(numbers[6] % 64));
    assert_eq!(sample.period, or(bit::PERIOD, numbers[7], 1));
    let chain: Vec<u64> = sample.callchain.words().collect();
    let expected = if has(bit::CALLCHAIN) { lengths[1] } else { 0 };
    assert_eq!(chain, numbers[..expected]);
    let raw = if has(bit::RAW) { lengths[2] * 8 + 4 } else { 0 };
    assert_eq!(sample.raw, vec![0xaa; raw]);
    let unwindable = has(bit::REGS_USER) && has(bit::STACK_USER) && abi == 2 && lengths[4] > 0;
    assert_eq!(sample.user_stack.is_some(), unwindable);
    if let Some(stack) = sample.user_stack {
        assert_eq!(stack.register_mask, 0x1c0);
        assert_eq!(stack.registers, words(&[11, 12, 13]));
        assert_eq!(stack.stack, &words(&[0x55; 8])[..lengths[4] * 8]);
    }
}

#[test]
fn a_file_cut_anywhere_gives_the_events_before() {
    let (whole, _) = drained(
        &[(1..40).collect(), (20..60).collect()],
        &[10, 11, 30, 31, 50, 51],
    );
    let (all, losses) = samples(&whole);
    assert_eq!(all.len(), 79);
    assert!(losses.is_empty());
    for end in 0..whole.len() {
        match PerfData::parse(&whole[..end]) {
            Ok(data) => {
                let mut times = Vec::new();
                let losses = data
                    .for_each(|event| times.push(event.time().0))
                    .expect("readable");
                assert!(times.is_sorted(), "{times:?}");
                assert!(
                    losses.count(LossKind::Truncated) > 0,
                    "cut at {end} goes unseen"
                );
            }
            Err(error) => assert!(
                matches!(error, ReadError::Empty | ReadError::CutOff { .. }),
                "{error}"
            ),
        }
    }
}

#[test]
fn each_byte_that_is_cut_off_is_counted() {
    let mut disk = Cursor::new(Vec::new());
    let mut writer = Writer::new(&mut disk, &[faults(PLAIN, 7)]).expect("in memory");
    for time in 1..=4 {
        let sample = plain_sample(7, time, time);
        writer.records(&sample).expect("in memory");
    }
    let size = plain_sample(7, 1, 1).len();
    // The writer crashed: the header has no size, so the data end where the file does.
    drop(writer);
    let whole = disk.into_inner();
    let truncated = |bytes: &[u8]| samples(bytes).1.count(LossKind::Truncated);
    let unfinished = truncated(&whole);
    for left in 0..size {
        let cut = &whole[..whole.len() - size + left];
        let (seen, losses) = samples(cut);
        assert_eq!(seen.len(), 3, "{left} bytes of the last record left");
        assert_eq!(losses.count(LossKind::Truncated), unfinished + left as u64);
        assert_eq!(losses.count(LossKind::MalformedRecord), 0);
    }
}

#[test]
fn a_file_whose_writer_died_is_read_to_its_end() {
    let mut disk = Cursor::new(Vec::new());
    let mut writer = Writer::new(&mut disk, &[faults(PLAIN, 7)]).expect("in memory");
    for time in 1..=10 {
        writer
            .records(&plain_sample(7, time, time))
            .expect("in memory");
    }
    drop(writer);
    let mut bytes = disk.into_inner();
    bytes.truncate(bytes.len() - 5);
    let (seen, losses) = samples(&bytes);
    assert_eq!(seen.len(), 9);
    assert!(losses.count(LossKind::Truncated) > 0);
}

/// Killed, or cut: who made the file and what its events are called is known from its front, and
/// how much is missing is said.
#[test]
fn a_file_without_its_end_keeps_its_maker_and_names() {
    let mut disk = Cursor::new(Vec::new());
    let mut source = faults(PLAIN, 7);
    source.name = "syscalls:sys_enter_brk".into();
    let known = Features {
        version: "pagewise 1".into(),
        cmdline: vec!["pagewise".into(), "--".into(), "app".into()],
        ..Features::default()
    };
    let sources = [source];
    let mut writer = Writer::with_preface(&mut disk, &sources, &known).expect("in memory");
    for time in 1..=10 {
        let sample = plain_sample(7, time, time);
        writer.records(&sample).expect("in memory");
    }
    let end = writer.data_size();
    let finished = Features {
        hostname: "host".into(),
        ..known.clone()
    };
    let unfinished = {
        drop(writer);
        disk.clone().into_inner()
    };
    let mut writer = Writer::with_preface(&mut disk, &sources, &known).expect("in memory");
    for time in 1..=10 {
        let sample = plain_sample(7, time, time);
        writer.records(&sample).expect("in memory");
    }
    writer.finish(&finished).expect("in memory");
    let whole = disk.into_inner();
    let checked = |bytes: &[u8]| {
        let data = PerfData::parse(bytes).expect("readable");
        assert!(data.is_own());
        assert_eq!(data.sources()[0].name, "syscalls:sys_enter_brk");
        assert_eq!(data.origin().version, "pagewise 1");
        assert_eq!(data.origin().cmdline[2], "app");
        data.cut()
    };
    assert_eq!(checked(&whole), None);
    assert_eq!(checked(&unfinished), Some(Cut::Unfinished));
    let end = usize::try_from(end).unwrap();
    let start = unfinished.len() - end;
    for left in start..whole.len() {
        let cut = checked(&whole[..left]);
        let Some(Cut::Missing {
            left: is,
            whole: of,
        }) = cut
        else {
            panic!("{left}: {cut:?}");
        };
        assert_eq!(is, left as u64);
        assert!(of > is && of >= (start + end) as u64, "{left}: {of}");
    }
}

#[test]
fn made_up_records_come_back_as_they_were() {
    let of = SampleId {
        sample_type: PLAIN,
        pid: 500,
        tid: 501,
        ..SampleId::default()
    };
    let map = MapsLine {
        start: 0x40_0000,
        length: 0x2000,
        file_offset: 0x1000,
        major: 8,
        minor: 1,
        inode: 4711,
        protection: 5,
        flags: 2,
        path: b"/usr/bin/program",
    };
    let timed = SampleId {
        time: 50,
        id: 7,
        ..of
    };
    let bytes = file(&[faults(PLAIN, 7)], |writer| {
        let records = [
            synthesise::fork(500, 500, &of),
            synthesise::comm(b"a name longer than fifteen", true, &of),
            synthesise::mmap2(&map, &of).expect("short path"),
            synthesise::mmap2(&map, &timed).expect("short path"),
            synthesise::exit(500, 500, &timed),
        ];
        writer.records(&records.concat()).expect("in memory");
    });
    let data = PerfData::parse(&bytes).expect("a perf.data file");
    let mut seen = Vec::new();
    let losses = data.for_each(|event| match event {
        Event::Mmap(m) => seen.push(format!(
            "map {} {} {:x}+{:x}@{:x} {} {} {} {} {}",
            m.pid,
            m.tid,
            m.start,
            m.length,
            m.file_offset,
            m.protection,
            m.flags,
            String::from_utf8_lossy(m.path),
            m.synthetic,
            m.executable
        )),
        other => seen.push(format!("{other:?}")),
    });
    assert!(losses.expect("readable").is_empty());
    let name = format!("{:?}", b"a name longer t");
    assert_eq!(
        seen,
        [
            "Fork { pid: 500, tid: 501, parent_pid: 500, parent_tid: 500, time: Nanos(0) }".into(),
            format!("Comm {{ pid: 500, tid: 501, time: Nanos(0), name: {name}, exec: true }}"),
            "map 500 501 400000+2000@1000 5 2 /usr/bin/program true true".to_owned(),
            "map 500 501 400000+2000@1000 5 2 /usr/bin/program false true".to_owned(),
            "Exit { pid: 500, tid: 501, time: Nanos(50) }".into(),
        ]
    );
}

/// Since Linux 5.12 a mapping may identify its file by build id instead of device and inode; the
/// bit may also be set by mistake.
#[test]
fn mappings_tell_files_by_build_id_where_a_bit_says_so() {
    const MISC: usize = 4;
    const IDENTITY: usize = 8 + 8 + 24;
    let of = SampleId {
        sample_type: PLAIN,
        pid: 500,
        tid: 500,
        ..SampleId::default()
    };
    let map = MapsLine {
        start: 0x40_0000,
        length: 0x2000,
        file_offset: 0,
        major: 8,
        minor: 1,
        inode: 4711,
        protection: 5,
        flags: 2,
        path: b"/usr/bin/program",
    };
    let plain = synthesise::mmap2(&map, &of).expect("short path");
    let with = |size: u8| {
        let mut record = plain.clone();
        record[MISC + 1] |= 0x40;
        record[IDENTITY] = size;
        record[IDENTITY + 1..IDENTITY + 24].fill(0);
        let id = (0..size.min(20)).zip(&mut record[IDENTITY + 4..]);
        id.for_each(|(byte, place)| *place = byte);
        record
    };
    let bytes = file(&[faults(PLAIN, 7)], |writer| {
        let mut marked = plain.clone();
        marked[MISC + 1] |= 0x40;
        marked[IDENTITY] = 254;
        let records = [plain.clone(), with(20), with(16), with(255), marked];
        writer.records(&records.concat()).expect("in memory");
    });
    let data = PerfData::parse(&bytes).expect("a perf.data file");
    let mut seen = Vec::new();
    let losses = data.for_each(|event| {
        if let Event::Mmap(mmap) = event {
            seen.push(mmap.build_id.map(<[u8]>::to_vec));
        }
    });
    assert!(losses.expect("readable").is_empty());
    let id: Vec<u8> = (0..20).collect();
    let short = id[..16].to_vec();
    assert_eq!(seen, [None, Some(id), Some(short), None, None]);
}

#[test]
fn what_is_not_perf_data_says_so() {
    let refusal = |bytes: &[u8]| {
        PerfData::parse(bytes)
            .expect_err("no perf.data")
            .to_string()
    };
    assert!(refusal(b"").contains("empty"));
    assert!(refusal(b"\x7fELF\x02\x01\x01 and so on").contains("instead of PERFILE2"));
    assert!(refusal(b"2ELIFREP\0\0\0\0\0\0\0\x68").contains("big-endian"));
    assert!(refusal(b"PERFFILE\0\0\0\0\0\0\0\x68").contains("before Linux 3.2"));
    assert!(refusal(b"PERFILE2\x68\0\0\0\0\0\0\0").contains("truncated in its header"));
    assert!(refusal(&file(&[], |_| ())).contains("no event"));
}

#[test]
fn records_of_unknown_types_and_late_ones_are_counted() {
    let bytes = file(&[faults(PLAIN, 7)], |writer| {
        let mut put = |record: &[u8]| writer.records(record).expect("in memory");
        put(&record(63, 0, &[0; 8]));
        put(&record(69, 0, &[0; 8]));
        for time in [10, 20] {
            put(&plain_sample(7, time, time));
            put(&record(68, 0, &[]));
        }
        put(&record(68, 0, &[]));
        put(&plain_sample(7, 5, 5));
    });
    let data = PerfData::parse(&bytes).expect("a perf.data file");
    let mut times = Vec::new();
    let reading = data.read(|event| times.push(event.time().0), |_| ());
    assert_eq!(times, [10, 20, 5]);
    assert_eq!(reading.losses.count(LossKind::UnknownRecord), 1);
    assert_eq!(reading.losses.count(LossKind::OutOfOrder), 1);
    assert_eq!(reading.passed_over.get(&69), Some(&1));
}

#[test]
fn facts_and_sources_come_back() {
    let text = include_str!("fixtures/sidecar.json");
    let mut sidecar: pagewise_model::recording::Sidecar =
        serde_json::from_str(text).expect("the fixture is a sidecar");
    // Large enough to be stored compressed.
    sidecar.collection.notes = (0..2000).map(|n| format!("note {n}")).collect();
    let features = Features {
        hostname: "host.example".into(),
        cpus_online: 2,
        cpus_available: 4,
        cmdline: vec!["pagewise".into(), "record".into()],
        sidecar: Some(sidecar.clone()),
        ..Features::default()
    };
    let writer = Writer::new(Cursor::new(Vec::new()), &[faults(PLAIN, 7)]).expect("in memory");
    let mut file = writer.finish(&features).expect("in memory");
    let data = PerfData::parse(file.get_ref()).expect("a perf.data file");
    assert_eq!(data.sidecar(), Some(&sidecar));
    let reads = vec![("/data/numbers".to_owned(), Nanos(60_000))];
    sidecar.surroundings.page_reads = reads;
    replace_sidecar(&mut file, &sidecar).expect("it has one");
    let data = PerfData::parse(file.get_ref()).expect("still a perf.data file");
    assert_eq!(data.sidecar(), Some(&sidecar));
    assert_eq!(data.origin().hostname, "host.example");
    assert_eq!(data.origin().cpus_online, 2);
    assert_eq!(data.origin().cmdline, ["pagewise", "record"]);
    assert_eq!(data.sources()[0].kind, EventKind::PageFault);
    assert_eq!(data.sources()[0].name, "page-faults");
}

#[test]
fn a_file_without_facts_takes_none() {
    let mut file = Cursor::new(file(&[faults(PLAIN, 7)], |_| {}));
    let before = file.get_ref().clone();
    let sidecar = serde_json::from_str(include_str!("fixtures/sidecar.json")).expect("a sidecar");
    replace_sidecar(&mut file, &sidecar).expect_err("it has no sidecar");
    assert_eq!(*file.get_ref(), before);
}
