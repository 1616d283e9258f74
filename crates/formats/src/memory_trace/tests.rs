use super::*;
use proptest::prelude::*;

fn addresses_of(bytes: &[u8]) -> Result<(Vec<(u64, u64)>, Summary), Error> {
    let mut seen = Vec::new();
    let summary = read(bytes, &mut |batch| match batch.accesses {
        Accesses::Addresses(addresses) => {
            seen.extend(addresses.iter().map(|&address| (batch.thread, address)));
        }
        Accesses::Pages(runs) => {
            for run in runs {
                seen.extend((0..run.accesses()).map(|_| (batch.thread, run.page())));
            }
        }
    })?;
    Ok((seen, summary))
}

fn small_file() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.note("made by a test").unwrap();
    writer
        .mapping(&Mapping {
            start: 0x7f00_0000_0000,
            bytes: 1 << 21,
            is_anonymous: true,
            name: "[heap]".to_owned(),
        })
        .unwrap();
    writer.access(7, 0x7f00_0000_0010, false).unwrap();
    writer.access(7, 0x7f00_0000_0008, true).unwrap();
    writer.instructions(5);
    writer.access(8, 0xffff_8000_0000_0000, false).unwrap();
    writer.finish(3).unwrap()
}

#[test]
fn a_file_says_what_was_written() {
    let (seen, summary) = addresses_of(&small_file()).unwrap();
    assert_eq!(
        seen,
        [
            (7, 0x7f00_0000_0010),
            (7, 0x7f00_0000_0008),
            (8, 0xffff_8000_0000_0000)
        ]
    );
    assert_eq!((summary.accesses, summary.writes), (3, 1));
    assert_eq!((summary.instructions, summary.dropped), (5, 3));
    assert!(summary.is_complete);
    assert_eq!(summary.notes, ["made by a test"]);
    assert_eq!(summary.mappings[0].name, "[heap]");
}

#[test]
fn a_file_cut_anywhere_is_read_as_far_as_it_goes() {
    let whole = small_file();
    for cut in 9..whole.len() {
        let (seen, summary) = addresses_of(&whole[..cut]).unwrap();
        assert!(!summary.is_complete, "cut at {cut}");
        assert!(seen.len() <= 3);
    }
    for cut in 1..9 {
        assert!(addresses_of(&whole[..cut]).is_err());
    }
}

#[test]
fn errors_name_the_place() {
    let mut other = small_file();
    other[8] = 9;
    let error = addresses_of(&other).unwrap_err().to_string();
    assert!(error.contains("version 9"), "{error}");
    let mut long = small_file();
    long.truncate(9);
    long.extend([1, 0xff, 0xff, 0xff, 0x7f]);
    let error = addresses_of(&long).unwrap_err().to_string();
    assert!(error.contains("16 MiB"), "{error}");
    let mut after = small_file();
    after.push(3);
    assert!(addresses_of(&after).is_err());
}

#[test]
fn unknown_blocks_are_passed_over_and_counted() {
    let mut file = small_file();
    file.splice(9..9, [42, 2, 0, 0]);
    let (seen, summary) = addresses_of(&file).unwrap();
    assert_eq!((seen.len(), summary.unknown), (3, 1));
}

#[test]
fn a_block_by_page_has_the_documented_bytes() {
    let mut writer = Writer::by_page(Vec::new()).unwrap();
    for address in [0x5_1008, 0x5_1ff8, 0x6_0000, 0x5_1000] {
        writer.access(1, address, address == 0x6_0000).unwrap();
    }
    writer.instructions(9);
    let record = |number: u64, slot: u64, more: u64| number << 16 | slot << 5 | more << 1 | 1;
    let mut expected = b"PWMTRACE\x02\x04\x16\x01\x09\x04\x01".to_vec();
    expected.extend(record(0x51, 0x51, 1).to_le_bytes());
    expected.extend(record(0x60, 0x60, 0).to_le_bytes());
    expected.extend((0x51_u16 << 5).to_le_bytes());
    expected.extend([127, 2, 4, 0]);
    assert_eq!(writer.finish(0).unwrap(), expected);
    let (seen, _) = addresses_of(&expected).unwrap();
    assert_eq!(
        seen,
        [0x5_1000, 0x5_1000, 0x6_0000, 0x5_1000].map(|a| (1, a))
    );
}

#[test]
fn a_block_by_page_that_miscounts_is_refused() {
    let mut writer = Writer::by_page(Vec::new()).unwrap();
    writer.access(0, 0x2000, true).unwrap();
    let good = writer.finish(0).unwrap();
    let error_with = |at: usize, byte: u8| {
        let mut file = good.clone();
        file[at] = byte;
        addresses_of(&file).unwrap_err().to_string()
    };
    assert!(addresses_of(&good).is_ok());
    let miscounted = error_with(13, 2);
    assert!(miscounted.contains("2 accesses"), "{miscounted}");
    let more_writes = error_with(14, 2);
    assert!(more_writes.contains("2 of them writes"), "{more_writes}");
    // Without its lowest bit the record ends after two bytes; the other six are three records.
    let more_records = error_with(15, good[15] & !1);
    assert!(more_records.contains("holds 5"), "{more_records}");
    let mut short = good[..10].to_vec();
    short.extend([7, 0, 0, 1, 0, 1, 0, 0]);
    let cut_off = addresses_of(&short).unwrap_err().to_string();
    assert!(cut_off.contains("cut off"), "{cut_off}");
}

#[test]
fn lackeys_text_is_read() {
    let text =
        b"==12== Lackey\nI  04001000,3\n L 1ffeffe7e0,8\n S 04002000,4\n M 04003000,4\nnoise\n";
    let (seen, summary) = addresses_of(text).unwrap();
    assert_eq!(
        seen,
        [(0, 0x1f_feff_e7e0), (0, 0x0400_2000), (0, 0x0400_3000)]
    );
    assert_eq!((summary.writes, summary.instructions), (2, 1));
    assert_eq!(summary.unknown, 1);
    assert!(!summary.is_sampled);
}

#[test]
fn perf_scripts_text_is_read() {
    let text = b"# comment\n\
        redis 4242 [001]  17.432: cpu/mem-loads,ldlat=30/P:   7f12a4c0e010 |OP LOAD\n\
        redis 4242  17.433: cpu/mem-stores/P:  7f12a4c0e018\n\
        redis 4242  17.434: cpu/mem-loads/P:  0\n\
        7f12a4c0e020\n";
    let (seen, summary) = addresses_of(text).unwrap();
    assert_eq!(
        seen,
        [
            (0, 0x7f12_a4c0_e010),
            (0, 0x7f12_a4c0_e018),
            (0, 0x7f12_a4c0_e020)
        ]
    );
    assert_eq!((summary.writes, summary.dropped), (1, 1));
    assert!(summary.is_sampled);
}

#[test]
fn other_text_is_an_error_that_says_what_was_expected() {
    let error = addresses_of(b"main;f 3\nmain;g 4\n")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("2 lines") && error.contains("lackey"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        accesses in prop::collection::vec((0_u64..3, any::<u64>(), any::<bool>()), 0..200)
    ) {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let canonical = |address: u64| ((address << 1) as i64 >> 1) as u64;
        for &(thread, address, is_write) in &accesses {
            writer.access(thread, canonical(address), is_write).unwrap();
        }
        let (seen, summary) = addresses_of(&writer.finish(0).unwrap()).unwrap();
        let expected: Vec<_> = accesses.iter().map(|a| (a.0, canonical(a.1))).collect();
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(summary.accesses, accesses.len() as u64);
    }

    #[test]
    fn by_page_the_same_pages_are_read(
        accesses in prop::collection::vec(
            (0_u64..2, 0_u64..3, 0_u64..40, 1_usize..40, any::<bool>()), 0..200)
    ) {
        // Pages of which some share a slot, at both ends of the address range.
        let address = |high: u64, low: u64| {
            [0x5500_0000_0000, 0x7fff_ffff_f000, 0xffff_8000_0000_0000][high as usize]
                + low * 0x80_0123
        };
        let mut writers = [Writer::new(Vec::new()).unwrap(), Writer::by_page(Vec::new()).unwrap()];
        for &(thread, high, low, times, is_write) in &accesses {
            for writer in &mut writers {
                for at in 0..times as u64 {
                    writer.access(thread, address(high, low) + at, is_write).unwrap();
                }
                writer.instructions(3);
            }
        }
        let [full, by_page] = writers.map(|writer| addresses_of(&writer.finish(5).unwrap()).unwrap());
        let pages: Vec<_> = full.0.iter().map(|(thread, address)| (*thread, address & !0xfff)).collect();
        prop_assert_eq!(pages, by_page.0);
        prop_assert_eq!(full.1, by_page.1);
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        version in VERSION..=VERSION_BY_PAGE,
    ) {
        let mut file = MAGIC.to_vec();
        file.push(version);
        file.extend(bytes);
        let _ = addresses_of(&file);
    }
}
