//! What newer versions of perf write: group reads per thread, user stacks in records of their own,
//! names in pipes, samples without chains, damage. See `fixtures/README.md`.

use pagewise_formats::perf_data::{PerfData, ReadError, Reading};
use pagewise_model::event::{CpuMode, Event};
use pagewise_model::loss::LossKind;
use std::collections::BTreeMap;

fn unpacked(packed: &[u8]) -> Vec<u8> {
    zstd::decode_all(packed).expect("packed by zstd")
}

/// Samples and their sum by event.
fn sums(bytes: &[u8]) -> (BTreeMap<String, (u64, u64)>, Reading) {
    let data = PerfData::parse(bytes).expect("perf wrote it");
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let reading = data.read(
        |event| {
            if let Event::Sample(sample) = event {
                let source = &data.sources()[usize::from(sample.source.0)];
                let (samples, sum) = sums.entry(source.name.clone()).or_default();
                *samples += 1;
                *sum += sample.period;
            }
        },
        |_| (),
    );
    (sums, reading)
}

fn expected(of: &[(&str, u64, u64)]) -> BTreeMap<String, (u64, u64)> {
    let rows = of.iter();
    rows.map(|&(name, samples, sum)| (name.to_owned(), (samples, sum)))
        .collect()
}

#[test]
fn inherited_groups_count_per_id_and_thread() {
    let (sums, reading) = sums(&unpacked(include_bytes!("fixtures/group.data.zst")));
    let right = [("cpu-clock", 78, 407_314_306), ("page-faults", 22, 7_257)];
    assert_eq!(sums, expected(&right));
    assert!(reading.losses.is_empty(), "{:?}", reading.losses);
}

#[test]
fn names_in_a_pipe_are_not_taken_from_lists_of_cpus() {
    let (sums, _) = sums(&unpacked(include_bytes!("fixtures/pipe-names.data.zst")));
    let right = [("cpu-clock", 20, 100_502_500), ("page-faults", 15, 16_458)];
    assert_eq!(sums, expected(&right));
}

/// User frames of each sample, and what was left out.
fn user_frames(bytes: &[u8]) -> (Vec<usize>, Reading) {
    let data = PerfData::parse(bytes).expect("perf wrote it");
    let mut frames = Vec::new();
    let reading = data.read(
        |event| {
            if let Event::Sample(sample) = event {
                let of_user = |&(mode, _): &(CpuMode, u64)| mode == CpuMode::User;
                assert!(
                    sample
                        .callchain
                        .frames()
                        .all(|(mode, _)| mode != CpuMode::Other)
                );
                frames.push(sample.callchain.frames().filter(of_user).count());
            }
        },
        |_| (),
    );
    (frames, reading)
}

#[test]
fn deferred_user_stacks_join_the_samples_that_await_them() {
    let mut bytes = unpacked(include_bytes!("fixtures/deferred.data.zst"));
    let (frames, reading) = user_frames(&bytes);
    assert_eq!(frames.len(), 95);
    assert!(frames.iter().all(|&count| count > 0), "{frames:?}");
    assert!(reading.losses.is_empty(), "{:?}", reading.losses);
    // Without its record, a sample keeps what it has itself, and is counted.
    let record = [22, 0, 0, 0, 2, 0, 56, 0];
    let at = bytes.windows(8).position(|window| window == record);
    let cookie = at.expect("one of two addresses") + 8;
    bytes[cookie..cookie + 8].fill(0xee);
    let (without, reading) = user_frames(&bytes);
    assert_eq!(reading.losses.count(LossKind::UserStackMissing), 1);
    let short = without.iter().filter(|&&count| count == 0).count();
    assert_eq!((without.len(), short), (95, 1));
}

#[test]
fn samples_without_a_chain_have_the_mode_of_their_header() {
    let bytes = unpacked(include_bytes!("fixtures/no-chains.data.zst"));
    let data = PerfData::parse(&bytes).expect("perf wrote it");
    let (mut kernel, mut user) = (0, 0);
    data.read(
        |event| {
            if let Event::Sample(sample) = event {
                assert!(sample.callchain.is_empty());
                assert_eq!(sample.mode == CpuMode::Kernel, sample.ip >> 63 == 1);
                match sample.mode {
                    CpuMode::Kernel => kernel += 1,
                    _ => user += 1,
                }
            }
        },
        |_| (),
    );
    assert_eq!(kernel + user, 106);
    assert!(kernel > 0);
}

#[test]
fn damage_in_a_pipe_is_named_with_its_offset() {
    let whole = unpacked(include_bytes!("fixtures/pipe-names.data.zst"));
    let mut damaged = whole.clone();
    damaged.extend_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
    let (kept, reading) = sums(&damaged);
    assert_eq!(kept, sums(&whole).0);
    let place = reading
        .damage
        .map(|damage| (damage.offset, damage.size, damage.left));
    assert_eq!(place, Some((whole.len() as u64, 0, 12)));
    assert!(reading.notes()[0].contains(&format!("byte {}", whole.len())));
    // Before any event was described, nothing can be read at all.
    let mut early = whole[..16].to_vec();
    early.extend_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0]);
    match PerfData::parse(&early).expect_err("no events") {
        ReadError::Damaged { what } => assert!(what.contains("byte 16"), "{what}"),
        other => panic!("{other}"),
    }
}
