use super::*;
use pagewise_formats::perf_data::PerfData;
use pagewise_model::event::Event;
use pagewise_model::loss::LossKind;
use std::process::Command;

#[test]
fn registers_are_found_by_their_bit() {
    let registers: Vec<u8> = [60_u64, 70, 80]
        .iter()
        .flat_map(|r| r.to_le_bytes())
        .collect();
    let stack = UserStack {
        register_mask: 1 << 6 | 1 << 7 | 1 << 20,
        registers: &registers,
        stack: &[],
    };
    assert_eq!(register(&stack, 7), Some(70));
    assert_eq!(register(&stack, 20), Some(80));
    assert_eq!(register(&stack, 8), None);
    assert_eq!(register(&stack, 64), None);
}

/// perf records faults of awk with copied stacks; nearly all of them must unwind to their start.
#[test]
fn faults_in_libraries_without_frame_pointers_get_full_stacks() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("perf.data");
    let record = Command::new("perf")
        .args(["record", "-q", "-m", "1M", "-e", "page-faults:u", "-c", "3"])
        .args(["--call-graph", "dwarf,8192", "-o"])
        .arg(&file)
        .args([
            "--",
            "awk",
            "BEGIN { for (i = 0; i < 30000; i++) a[i] = i }",
        ])
        .output();
    if !record.as_ref().is_ok_and(|output| output.status.success()) {
        skipped!("perf cannot record here: {record:?}");
        return;
    }
    let bytes = std::fs::read(&file).expect("perf wrote it");
    let data = PerfData::parse(&bytes).expect("perf wrote it");
    let mut follower = StackFollower::new(std::env::consts::ARCH);
    let (mut all, mut deep) = (0, 0);
    let losses = data.for_each(|event| {
        let frames = follower.take(&event);
        // The faults of execve(2) itself happen before there is a user stack.
        let Event::Sample(sample) = event else { return };
        if sample.user_stack.is_some() {
            let frames = frames.unwrap_or_else(|| vec![sample.ip]);
            assert_eq!(frames[0], sample.ip);
            // Stacks in the loader, before main, are shallow; later ones have main, its two callers
            // in libc and _start below.
            all += 1;
            deep += usize::from(frames.len() >= 5);
        }
    });
    // On a busy machine perf may not empty its buffers in time; what it wrote must be whole.
    let losses = losses.expect("readable");
    let by_perf = [LossKind::RingOverrun, LossKind::Throttled];
    let ours = losses.iter().filter(|(kind, _)| !by_perf.contains(kind));
    assert_eq!(ours.count(), 0, "{losses:?}");
    assert!(all > 50, "only {all} samples");
    assert!(deep * 10 > all * 9, "only {deep} of {all} stacks are deep");
}
