use super::*;
use pagewise_model::event::Event;
use pagewise_model::formats::perf_data::PerfData;
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

/// perf records faults of awk with copied stacks; nearly each must unwind to its start.
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
        eprintln!("SKIPPED: perf cannot record here: {record:?}");
        return;
    }
    let bytes = std::fs::read(&file).expect("perf wrote it");
    let data = PerfData::parse(&bytes).expect("perf wrote it");
    let mut unwinder =
        Unwinder::for_architecture(std::env::consts::ARCH).expect("x86_64 or aarch64");
    let mut space = AddressSpace::default();
    let (mut all, mut deep) = (0, 0);
    let losses = data.for_each(|event| match event {
        Event::Mmap(mmap) => space.map(Mapping {
            start: mmap.start,
            end: mmap.start + mmap.length,
            file_offset: mmap.file_offset,
            protection: mmap.protection,
            flags: mmap.flags,
            path: String::from_utf8_lossy(mmap.path).into(),
            build_id: None,
        }),
        Event::Sample(sample) => {
            // The faults of execve(2) itself happen before there is a user stack.
            let Some(stack) = sample.user_stack else {
                return;
            };
            let frames = unwinder.unwind(sample.pid, &space, stack);
            assert_eq!(frames[0], sample.ip);
            // The loader runs before main; what comes later has at least main, its two callers in
            // libc and _start below it.
            all += 1;
            deep += usize::from(frames.len() >= 4);
            let mapped = frames
                .iter()
                .filter(|&&frame| space.find(frame - 1).is_some());
            assert_eq!(mapped.count(), frames.len(), "a frame outside all code");
        }
        _ => {}
    });
    assert!(losses.expect("readable").is_empty());
    assert!(all > 50, "only {all} samples");
    assert!(deep * 2 > all, "only {deep} of {all} stacks are deep");
}
