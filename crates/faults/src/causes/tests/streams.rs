//! A builder of event streams, and the causes that each stream must yield.

use crate::causes::{Attribution, Attributor, MmCall};
use pagewise_model::event::{
    Callchain, Event, EventKind, EventSource, Mmap, Sample, Sampling, SourceIndex,
};
use pagewise_model::findings::{Cause, RegionKind};
use pagewise_model::recording::Sidecar;
use pagewise_model::run::Ending;
use pagewise_model::units::Nanos;

/// An empty sidecar.
pub(crate) fn sidecar() -> Sidecar {
    Sidecar {
        schema_version: 1,
        pid: 1,
        ending: Ending::Exited(0),
        ..Sidecar::default()
    }
}

pub(super) const PAGE: u64 = 4096;
const FAULT: u16 = 0;
const MINOR: u16 = 1;
const MAJOR: u16 = 2;
const FIRST_ENTER: u16 = 3;
const FIRST_EXIT: u16 = 9;

/// How faults of a stream are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Each fault and each call.
    Fully,
    /// Each fault, no calls.
    WithoutCalls,
    /// Each n-th fault, each call.
    Sampled(u64),
    /// Each n-th fault, no calls.
    SampledWithoutCalls(u64),
}

fn sources(recorded: Recorded) -> Vec<EventSource> {
    let source = |name: &str, kind, sampling| EventSource {
        name: name.to_owned(),
        kind,
        sampling,
        has_callchain: false,
        user_only: false,
        has_switches: false,
    };
    let sampling = match recorded {
        Recorded::Sampled(n) | Recorded::SampledWithoutCalls(n) => Sampling::Every(n),
        _ => Sampling::Every(1),
    };
    let mut all = vec![
        source("page-faults", EventKind::PageFault, sampling),
        source("minor-faults", EventKind::MinorFault, Sampling::Every(1)),
        source("major-faults", EventKind::MajorFault, Sampling::Every(1)),
    ];
    if matches!(recorded, Recorded::Fully | Recorded::Sampled(_)) {
        for side in ["enter", "exit"] {
            for call in MmCall::ALL {
                let name = format!("syscalls:sys_{side}_{}", call.name());
                all.push(source(
                    &name,
                    EventKind::Tracepoint(name.clone()),
                    Sampling::Every(1),
                ));
            }
        }
    }
    all
}

/// Plays a program's life into an attributor.
pub(crate) struct Stream {
    attributor: Attributor,
    recorded: Recorded,
    clock: u64,
    faults: u64,
}

impl Stream {
    pub(crate) fn new(recorded: Recorded) -> Self {
        Self::with_sidecar(recorded, &sidecar())
    }

    pub(crate) fn with_sidecar(recorded: Recorded, sidecar: &Sidecar) -> Self {
        Self {
            attributor: Attributor::new(&sources(recorded), sidecar),
            recorded,
            clock: 1_000_000,
            faults: 0,
        }
    }

    pub(crate) fn tick(&mut self) -> Nanos {
        self.clock += 1000;
        Nanos(self.clock)
    }

    fn sample<'a>(&mut self, pid: i32, source: u16, address: u64, raw: &'a [u8]) -> Event<'a> {
        Event::Sample(Sample {
            source: SourceIndex(source),
            pid,
            tid: pid,
            time: self.tick(),
            cpu: None,
            cgroup: 0,
            ip: 0x1000,
            mode: pagewise_model::event::CpuMode::User,
            address,
            period: 1,
            callchain: Callchain::default(),
            raw,
            user_stack: None,
        })
    }

    /// A fault that takes 700 ns in addition to the cost of recording.
    pub(crate) fn fault(&mut self, pid: i32, address: u64) {
        self.faults += 1;
        let period = match self.recorded {
            Recorded::Sampled(n) | Recorded::SampledWithoutCalls(n) => n,
            _ => 1,
        };
        if self.faults.is_multiple_of(period) {
            let mut event = self.sample(pid, FAULT, address, &[]);
            if let Event::Sample(sample) = &mut event {
                sample.period = period;
            }
            self.attributor.event(&event);
        }
        if period == 1 {
            let end = self.sample(pid, MINOR, address, &[]);
            self.attributor.event(&end);
        }
    }

    pub(crate) fn major_fault(&mut self, pid: i32, address: u64) {
        for source in [FAULT, MAJOR] {
            let event = self.sample(pid, source, address, &[]);
            self.attributor.event(&event);
        }
    }

    pub(crate) fn touch(&mut self, pid: i32, start: u64, pages: u64) {
        for page in 0..pages {
            self.fault(pid, start + page * PAGE);
        }
    }

    pub(crate) fn map_record(&mut self, pid: i32, start: u64, pages: u64, flags: u32, path: &[u8]) {
        self.map_record_with(pid, start, pages, 3, flags, path);
    }

    /// Maps a file's code.
    pub(crate) fn code(&mut self, pid: i32, start: u64, path: &[u8]) {
        self.map_record_with(pid, start, 16, 5, 2, path);
    }

    fn map_record_with(
        &mut self,
        pid: i32,
        start: u64,
        pages: u64,
        protection: u32,
        flags: u32,
        path: &[u8],
    ) {
        let time = self.tick();
        self.attributor.event(&Event::Mmap(Mmap {
            pid,
            tid: pid,
            time,
            start,
            length: pages * PAGE,
            file_offset: 0,
            protection,
            flags,
            path,
            build_id: None,
            file: None,
            synthetic: false,
            executable: false,
        }));
    }

    fn has_calls(&self) -> bool {
        matches!(self.recorded, Recorded::Fully | Recorded::Sampled(_))
    }

    pub(crate) fn call(&mut self, pid: i32, call: MmCall, args: &[u64], result: i64) {
        self.call_from(pid, call, args, result, None);
    }

    fn call_from(
        &mut self,
        pid: i32,
        call: MmCall,
        args: &[u64],
        result: i64,
        frames: Option<&[u64]>,
    ) {
        if !self.has_calls() {
            return;
        }
        let position = MmCall::ALL.iter().position(|&known| known == call).unwrap();
        let position = u16::try_from(position).unwrap();
        let mut raw = vec![0_u8; 16];
        args.iter()
            .for_each(|arg| raw.extend_from_slice(&arg.to_le_bytes()));
        let enter = self.sample(pid, FIRST_ENTER + position, 0, &raw);
        self.attributor.event_with_chain(&enter, frames);
        let mut raw = vec![0_u8; 16];
        raw.extend_from_slice(&result.to_le_bytes());
        let exit = self.sample(pid, FIRST_EXIT + position, 0, &raw);
        self.attributor.event(&exit);
    }

    /// Maps private anonymous memory, as `mmap` and the kernel's record show it.
    pub(crate) fn map(&mut self, pid: i32, start: u64, pages: u64) {
        self.map_from(pid, start, pages, None);
    }

    /// The same, with these frames as its callers.
    pub(crate) fn map_from(&mut self, pid: i32, start: u64, pages: u64, frames: Option<&[u64]>) {
        let result = i64::try_from(start).unwrap();
        let args = [0, pages * PAGE, 3, 0x22, u64::MAX, 0];
        self.call_from(pid, MmCall::Mmap, &args, result, frames);
        self.map_record(pid, start, pages, 2, b"//anon");
    }

    pub(crate) fn unmap(&mut self, pid: i32, start: u64, pages: u64) {
        self.call(pid, MmCall::Munmap, &[start, pages * PAGE], 0);
    }

    pub(crate) fn advise(&mut self, pid: i32, start: u64, pages: u64, advice: u64) {
        self.call(pid, MmCall::Madvise, &[start, pages * PAGE, advice], 0);
    }

    pub(crate) fn set_break(&mut self, pid: i32, heap: u64, end: u64, grows: bool) {
        let result = i64::try_from(end).unwrap();
        self.call(pid, MmCall::Brk, &[end], result);
        if grows {
            self.map_record(pid, heap, (end - heap) / PAGE, 2, b"[heap]");
        }
    }

    pub(crate) fn fork(&mut self, parent: i32, child: i32) {
        let time = self.tick();
        self.attributor.event(&Event::Fork {
            pid: child,
            tid: child,
            parent_pid: parent,
            parent_tid: parent,
            time,
        });
    }

    /// Another thread of a process.
    fn thread(&mut self, pid: i32, tid: i32) {
        let time = self.tick();
        self.attributor.event(&Event::Fork {
            pid,
            tid,
            parent_pid: pid,
            parent_tid: pid,
            time,
        });
    }

    fn exec(&mut self, pid: i32) {
        let time = self.tick();
        self.attributor.event(&Event::Comm {
            pid,
            tid: pid,
            time,
            name: b"program",
            exec: true,
        });
    }

    fn exit(&mut self, pid: i32, tid: i32) {
        let time = self.tick();
        self.attributor.event(&Event::Exit { pid, tid, time });
    }

    pub(crate) fn finish(self) -> Attribution {
        self.attributor.finish()
    }
}

/// Faults by cause, rounded, none left out.
pub(super) fn causes(attribution: &Attribution) -> Vec<(Cause, u64)> {
    let rounded = |weight: f64| format!("{weight:.0}").parse().unwrap();
    attribution
        .tally
        .causes
        .iter()
        .map(|(&cause, weight)| (cause, rounded(weight.sum)))
        .filter(|&(_, faults)| faults > 0)
        .collect()
}

const A: u64 = 0x7f00_0000_0000;
const HEAP: u64 = 0x5500_0000_0000;

#[test]
fn calls_that_the_kernel_refuses_free_nothing() {
    const EINVAL: i64 = -22;
    let mut stream = Stream::new(Recorded::Fully);
    stream.map(1, A, 100);
    stream.touch(1, A, 100);
    for [start, length] in [
        [A, u64::MAX],
        [A, u64::MAX - A],
        [A + 8, 50 * PAGE],
        [1 << 60, PAGE],
    ] {
        stream.call(1, MmCall::Munmap, &[start, length], EINVAL);
        stream.call(1, MmCall::Madvise, &[start, length, 4], EINVAL);
    }
    stream.touch(1, A, 100);
    let attribution = stream.finish();
    assert!(!causes(&attribution).iter().any(|(cause, _)| {
        matches!(
            cause,
            Cause::RefaultAfterMunmap | Cause::RefaultAfterDontneed
        )
    }));
    assert_eq!(attribution.tally.calls[&MmCall::Munmap].bytes, 0);
}

#[test]
fn each_route_of_giving_back_is_told_apart_page_by_page() {
    let mut stream = Stream::new(Recorded::Fully);
    stream.map(1, A, 100);
    stream.touch(1, A, 100);
    stream.advise(1, A, 30, 4);
    stream.touch(1, A, 50);
    stream.advise(1, A, 10, 8);
    stream.touch(1, A, 5);
    stream.unmap(1, A, 100);
    stream.map(1, A, 100);
    stream.touch(1, A, 40);
    let attribution = stream.finish();
    // Pages 5 to 9 were freed, perhaps written again without a fault, then unmapped. The second
    // touch of pages 30 to 49 found them present: had they faulted, it would be a write after a
    // read.
    assert_eq!(
        causes(&attribution),
        [
            (Cause::FirstTouch, 100),
            (Cause::RefaultAfterMunmap, 40),
            (Cause::RefaultAfterDontneed, 30),
            (Cause::RefaultAfterFree, 5),
            (Cause::WriteAfterRead, 20),
        ]
    );
    let chunks = attribution.tally.regions[&RegionKind::MmappedChunk].sum;
    assert!((chunks - 195.0).abs() < 1e-9);
    assert!(attribution.losses.is_empty());
}

#[test]
fn faults_without_an_address_get_no_cause() {
    let mut stream = Stream::new(Recorded::WithoutCalls);
    stream.map(1, A, 100);
    for _ in 0..20 {
        stream.fault(1, 0);
    }
    let attribution = stream.finish();
    assert_eq!(causes(&attribution), [(Cause::Unknown, 20)]);
    assert!((attribution.tally.without_address - 20.0).abs() < 1e-9);
}

#[test]
fn memory_is_known_while_a_thread_lives() {
    for (last, known) in [(None, true), (Some(1), false)] {
        let mut stream = Stream::new(Recorded::Fully);
        stream.exec(1);
        stream.thread(1, 2);
        stream.map(1, A, 10);
        stream.touch(1, A, 10);
        // The first thread ends before the others, or after them.
        if let Some(last) = last {
            stream.exit(1, 2);
            stream.exit(1, last);
        } else {
            stream.exit(1, 1);
        }
        let mut process = stream.attributor.processes[0].clone();
        assert_eq!(process.region_at(A).is_some(), known, "{last:?}");
    }
}

#[test]
fn a_fault_of_a_window_stands_for_the_pause_beside_it() {
    let mut sidecar = sidecar();
    sidecar.collection.fault_windows = vec![
        (Nanos(1_000_000), Nanos(1_100_000)),
        (Nanos(1_300_000), Nanos(1_400_000)),
    ];
    let mut stream = Stream::with_sidecar(Recorded::Sampled(10), &sidecar);
    stream.map(1, A, 10);
    stream.touch(1, A, 10);
    let all = stream.finish().tally.all.sum;
    assert!((all - 20.0).abs() < 1e-9, "{all}");
}

#[test]
fn after_a_fork_a_child_may_copy_what_was_touched_in_a_rest() {
    let perhaps = |windows: &[(u64, u64)]| {
        let mut sidecar = sidecar();
        let windows = windows.iter().map(|&(from, to)| (Nanos(from), Nanos(to)));
        sidecar.collection.fault_windows = windows.collect();
        let mut stream = Stream::with_sidecar(Recorded::Sampled(16), &sidecar);
        stream.map(1, A, 1024);
        stream.fork(1, 2);
        stream.touch(2, A, 1024);
        let tally = stream.finish().tally;
        tally.perhaps_shared / tally.all.sum
    };
    assert!(perhaps(&[]) < 1e-9);
    assert!(perhaps(&[(1_000_000, 1_100_000), (2_000_000, 2_100_000)]) > 0.99);
}

#[test]
fn a_shrinking_growing_heap_is_churn_without_calls_too() {
    for recorded in [Recorded::Fully, Recorded::WithoutCalls] {
        let mut stream = Stream::new(recorded);
        stream.map_record(1, HEAP, 10, 2, b"[heap]");
        stream.touch(1, HEAP, 10);
        for _ in 0..5 {
            stream.set_break(1, HEAP, HEAP + 43 * PAGE, true);
            stream.touch(1, HEAP + 10 * PAGE, 33);
            stream.set_break(1, HEAP, HEAP + 10 * PAGE, false);
        }
        let attribution = stream.finish();
        assert_eq!(
            causes(&attribution),
            [(Cause::FirstTouch, 43), (Cause::RefaultAfterBrk, 132)],
            "{recorded:?}"
        );
        let inferred = if recorded == Recorded::Fully {
            0.0
        } else {
            132.0
        };
        assert!((attribution.tally.inferred - inferred).abs() < 1e-9);
    }
}

#[test]
fn after_a_fork_both_sides_copy_what_they_write() {
    let mut stream = Stream::new(Recorded::Fully);
    stream.map(1, A, 64);
    stream.touch(1, A, 64);
    stream.fork(1, 2);
    stream.touch(2, A, 10);
    stream.touch(1, A, 20);
    let attribution = stream.finish();
    assert_eq!(
        causes(&attribution),
        [(Cause::FirstTouch, 64), (Cause::CopyOnWrite, 30)]
    );
}

#[test]
fn short_children_differ_from_programs_and_workers() {
    let mut stream = Stream::new(Recorded::Fully);
    stream.map(1, A, 64);
    stream.touch(1, A, 64);
    for child in 2..6 {
        stream.fork(1, child);
        // Each source of lifetimes reports it.
        stream.fork(1, child);
        stream.touch(child, A, 10);
        // One executes a program, another lives on.
        if child == 3 {
            stream.exec(child);
        }
        if child != 4 {
            stream.exit(child, child);
        }
    }
    let tally = stream.finish().tally;
    let kinds = (tally.forks, tally.short_lived, tally.spawned);
    assert_eq!(kinds, (4, 2, 1));
    assert!((tally.faults_of_short_lived - 20.0).abs() < 1e-9);
}

#[test]
fn writes_of_children_are_copies_by_samples_alone() {
    for recorded in [Recorded::Sampled(16), Recorded::SampledWithoutCalls(16)] {
        let mut stream = Stream::new(recorded);
        stream.map(1, A, 1024);
        stream.touch(1, A, 1024);
        for child in 2..12 {
            stream.fork(1, child);
            stream.touch(child, A, 1024);
        }
        let copied = causes(&stream.finish())
            .into_iter()
            .find(|(cause, _)| *cause == Cause::CopyOnWrite);
        let faults = copied.map_or(0, |(_, faults)| faults);
        assert!((9_000..=10_240).contains(&faults), "{recorded:?}: {faults}");
    }
}

#[test]
fn memory_moved_by_mremap_is_not_touched_anew() {
    let mut stream = Stream::new(Recorded::Fully);
    stream.map(1, A, 16);
    stream.touch(1, A, 16);
    let to = A + (1 << 30);
    let moved = i64::try_from(to).unwrap();
    stream.call(
        1,
        MmCall::Mremap,
        &[A, 16 * PAGE, 32 * PAGE, 1, 0, 0],
        moved,
    );
    stream.touch(1, to + 16 * PAGE, 16);
    stream.unmap(1, to, 32);
    let attribution = stream.finish();
    assert_eq!(causes(&attribution), [(Cause::FirstTouch, 32)]);
    assert_eq!(
        attribution
            .tally
            .releases
            .values()
            .map(|r| r.pages)
            .sum::<u64>(),
        32
    );
}

#[test]
fn paged_out_pages_come_back_from_swap_or_disk() {
    let mut stream = Stream::new(Recorded::Fully);
    stream.map(1, A, 8);
    stream.touch(1, A, 8);
    stream.advise(1, A, 8, 21);
    stream.touch(1, A, 3);
    stream.major_fault(1, A + 5 * PAGE);
    stream.map_record(1, A + (1 << 32), 4, 2, b"/data/table");
    stream.major_fault(1, A + (1 << 32));
    let attribution = stream.finish();
    assert_eq!(
        causes(&attribution),
        [
            (Cause::FirstTouch, 8),
            (Cause::FileMajor, 1),
            (Cause::SwapIn, 4)
        ]
    );
}

#[test]
fn one_fault_in_an_eligible_stretch_is_a_huge_page() {
    let mut sidecar = sidecar();
    sidecar
        .host
        .settings
        .insert("thp.enabled".into(), "always".into());
    let mut stream = Stream::with_sidecar(Recorded::WithoutCalls, &sidecar);
    stream.map(1, A, 1024);
    stream.fault(1, A);
    let attribution = stream.finish();
    // The builder's faults take 700 ns: too fast to have zeroed two mebibytes.
    assert_eq!(causes(&attribution), [(Cause::FirstTouch, 1)]);
    let mut stream = Stream::with_sidecar(Recorded::WithoutCalls, &sidecar);
    stream.map(1, A, 1024);
    stream.clock += 10_000;
    let begin = stream.sample(1, FAULT, A, &[]);
    stream.attributor.event(&begin);
    stream.clock += 200_000;
    let end = stream.sample(1, MINOR, A, &[]);
    stream.attributor.event(&end);
    stream.touch(1, A + 512 * PAGE, 2);
    let attribution = stream.finish();
    assert_eq!(
        causes(&attribution),
        [(Cause::FirstTouch, 2), (Cause::HugePage, 1)]
    );
    assert_eq!(attribution.tally.huge_refused, 1);
}

#[test]
fn an_untouched_mapping_is_no_churn_when_sampled() {
    let mut stream = Stream::new(Recorded::Sampled(13));
    for _ in 0..20 {
        stream.map(1, A, 10_000);
        stream.unmap(1, A, 10_000);
    }
    stream.map(1, A, 10_000);
    stream.touch(1, A, 10_000);
    let attribution = stream.finish();
    let churn: f64 = attribution
        .tally
        .causes
        .iter()
        .filter(|(cause, _)| cause.is_churn())
        .map(|(_, weight)| weight.sum)
        .sum();
    // While the last life is being touched, its faults look like earlier ones for a moment.
    assert!(churn < 0.5 * attribution.tally.all.sum, "{churn}");
}

#[test]
fn sampled_churn_is_within_a_few_percent_of_the_truth() {
    let mut stream = Stream::new(Recorded::Sampled(97));
    for _ in 0..50 {
        stream.map(1, A, 4096);
        stream.touch(1, A, 4096);
        stream.unmap(1, A, 4096);
    }
    let attribution = stream.finish();
    let truth = 49.0 / 50.0;
    let share =
        attribution.tally.causes[&Cause::RefaultAfterMunmap].sum / attribution.tally.all.sum;
    assert!((share - truth).abs() < 0.03, "{share}");
}

#[test]
fn without_calls_distinct_pages_among_samples_are_counted() {
    let mut stream = Stream::new(Recorded::SampledWithoutCalls(7));
    stream.map_record(1, HEAP, 100, 2, b"[heap]");
    (0..70).for_each(|_| stream.touch(1, HEAP, 100));
    let attribution = stream.finish();
    // Period 7 has magnitude 2.
    let census = &attribution.tally.census[&(RegionKind::Heap, 2)];
    assert_eq!((census.seen.samples(), census.seen.distinct()), (1000, 100));
    assert!((census.faults - 7000.0).abs() < 1e-9);
}

#[test]
fn memory_mapped_anew_is_churn_without_calls() {
    // Samples at this period see no page twice in 20 rounds of 1,000 pages.
    let mut stream = Stream::new(Recorded::SampledWithoutCalls(97));
    stream.map_record(1, A, 30_000, 2, b"//anon");
    stream.touch(1, A, 30_000);
    for _ in 0..20 {
        // The kernel merges neighbours and records the merged mapping.
        stream.map_record(1, A - 1000 * PAGE, 31_000, 2, b"//anon");
        stream.touch(1, A - 1000 * PAGE, 1000);
    }
    let attribution = stream.finish();
    let truth = 19_000.0 / 50_000.0;
    let share =
        attribution.tally.causes[&Cause::RefaultAfterMunmap].sum / attribution.tally.all.sum;
    assert!((share - truth).abs() < 0.02, "{share}");
    let census = attribution.tally.census.values();
    assert_eq!(
        census.map(|census| census.seen.samples()).sum::<u64>(),
        31_000 / 97
    );
}

#[test]
fn without_calls_a_change_of_rights_is_no_new_mapping() {
    let mut stream = Stream::new(Recorded::SampledWithoutCalls(97));
    for round in 0..20 {
        let flags = 2;
        stream.map_record_with(
            1,
            A,
            1000,
            if round % 2 == 0 { 3 } else { 1 },
            flags,
            b"//anon",
        );
        stream.touch(1, A, 1000);
    }
    let attribution = stream.finish();
    assert!(attribution.tally.told_by_records.is_empty());
}

#[test]
fn paired_events_tell_the_latency_without_the_recorders_part() {
    let mut stream = Stream::new(Recorded::WithoutCalls);
    stream.map(1, A, 10);
    stream.touch(1, A, 10);
    let attribution = stream.finish();
    let latency = &attribution.tally.latency[&Cause::FirstTouch];
    assert_eq!(
        (latency.count(), latency.min(), latency.max()),
        (10, 700, 700)
    );
}

#[test]
fn a_sampled_mapping_without_access_reserves_or_releases() {
    let source = EventSource {
        name: "syscalls:sys_enter_mmap".to_owned(),
        kind: EventKind::Tracepoint("syscalls:sys_enter_mmap".to_owned()),
        sampling: Sampling::Every(61),
        has_callchain: true,
        user_only: true,
        has_switches: false,
    };
    let mut stream = Stream {
        attributor: Attributor::new(&[source], &sidecar()),
        recorded: Recorded::WithoutCalls,
        clock: 1_000_000,
        faults: 0,
    };
    // Address, pages, protection, flags: reserved, mapped, uncommitted, and a library's data.
    let calls = [
        (0, 4000, 0, 0x4022),
        (0, 100, 3, 0x22),
        (A, 700, 0, 0x32),
        (A, 20, 1, 0x12),
    ];
    for (frame, (address, pages, protection, flags)) in (0x2000..).zip(calls) {
        let mut raw = vec![0_u8; 16];
        for argument in [address, pages * PAGE, protection, flags, u64::MAX, 0] {
            raw.extend_from_slice(&argument.to_le_bytes());
        }
        let event = stream.sample(1, 0, 0, &raw);
        stream
            .attributor
            .event_with_chain(&event, Some(&[frame, frame]));
    }
    let tally = stream.finish().tally;
    let grown: Vec<f64> = tally.growth_stacks.values().copied().collect();
    let released: Vec<f64> = tally.release_stacks.values().copied().collect();
    assert_eq!((grown, released), (vec![100.0], vec![700.0]));
}
