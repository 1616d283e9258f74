//! Finds streams of faults: pages of one region that one thread accesses at a constant stride.
//!
//! Read-ahead hides a stream from code that looks at faults alone. A stream therefore remembers
//! where the requested pages end, and takes a fault there, or just behind, for its next step.
//! Streams are separated by thread and region; four can run side by side.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::page::{Fault, FaultKind, MAX_AHEAD, Page, Plan, Span};

/// Places for streams: sets of [`WAYS`]; a busy program has one or two streams per thread and
/// region.
const SETS: usize = 64;
const WAYS: usize = 4;
/// Largest stride of a stream, in pages (2 MiB of 4 KiB pages).
const MAX_STRIDE: i64 = 512;
/// Two faults at most this many pages apart are rarely so close by chance. (A sweep over memory
/// that is partly resident faults at the gaps.)
const NEARBY: i64 = 64;
/// First window of a stream. Reading a cluster of 16 costs twice as much as a single page (FACTS:
/// 4K 40–53 µs, 64K 104 µs), so a wrong guess costs little.
const FIRST_WINDOW: u32 = 8;
/// Most pages that the faulting thread itself reads (256 KiB).
pub const MAX_ALONG: u32 = 64;

/// Most pages that all streams together have in flight, in windows: pages read ahead must not push
/// each other out before use (twice as many pages pass through memory).
const SHARED: u32 = 4;
/// A stream without a step for this many faults is over.
const LATELY: u32 = 128;

/// A stream without a step for this many faults needs no room for its pages any more: one that does
/// much else between its pages may take some ten thousand.
const LONG_AGO: u32 = 1 << 16;
/// Faults between two looks at what streams need.
const LOOK: u32 = 64;
/// Pages in the windows of all streams: one is so far after two more steps, and four at once are no
/// chance.
const PROVEN: u32 = 4 * FIRST_WINDOW;

/// Largest window for wider strides: a plan lists such pages one by one.
const MOST_STRIDED: u32 = 64;
const _: () = assert!(MOST_STRIDED as usize <= MAX_AHEAD);
/// Largest stride at which the pages in between are read as well: a run of 64 pages costs as much
/// as 5 single pages, and at stride 4 it contains 16 useful ones.
const DENSE: i32 = 4;
/// The same in a file, where a run of 64 pages is one read and one that is skipped costs nothing
/// to drop. At stride 16 it contains 4 useful pages, and what is between is usually read, too: by
/// the next sweep, or as the rest of a row.
const DENSE_IN_FILES: i32 = 16;

/// One stream. Only the thread that has set its set's flag reads or writes it.
#[derive(Debug, Default)]
struct Stream {
    /// Hash of thread and region; 0 is a free place.
    owner: AtomicU32,
    /// Last page that faulted.
    last: AtomicU32,
    /// Stride in pages, in two's complement.
    stride: AtomicU32,
    /// The next page not requested yet, in the stream's direction.
    next: AtomicU32,
    /// Pages to have in flight; 0 while the stream is only suspected.
    window: AtomicU32,
    /// For choosing the place to reuse.
    age: AtomicU32,
    /// Waits for the store, of all threads, before its last step.
    waits: AtomicU32,
}

#[derive(Debug, Default)]
struct Set {
    busy: AtomicBool,
    streams: [Stream; WAYS],
}

/// How a fault relates to the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Part of no stream, and far from the thread's earlier faults.
    Alone,
    /// Part of no stream, but may be the start of one.
    Nearby,
    /// The next step of a stream.
    Next {
        /// Pages from one step to the next.
        stride: i32,
        /// Steps from the faulted page to the end of the pages to have in flight.
        window: u32,
        /// First page not requested before: the faulted page, or one behind it.
        from: Page,
    },
}

/// All streams.
#[derive(Debug)]
pub struct Streams {
    sets: Box<[Set]>,
    clock: AtomicU32,
    /// Faults on evicted pages.
    waits: AtomicU32,
    max_window: u32,
}

impl Streams {
    /// Streams that keep at most `max_window` pages in flight.
    #[must_use]
    pub fn new(max_window: u32) -> Self {
        Streams {
            sets: (0..SETS).map(|_| Set::default()).collect(),
            clock: AtomicU32::new(0),
            waits: AtomicU32::new(0),
            max_window: max_window.max(FIRST_WINDOW),
        }
    }

    /// Records a fault and classifies it. When another thread is using the same set, this returns
    /// [`Step::Alone`] instead of waiting.
    pub fn step(&self, fault: &Fault) -> Step {
        let owner = owner(fault);
        let set = &self.sets[owner as usize % SETS];
        if set.busy.swap(true, Ordering::Acquire) {
            return Step::Alone;
        }
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        if fault.kind == FaultKind::Refault {
            self.waits.fetch_add(1, Ordering::Relaxed);
        }
        let step = self.step_in(set, owner, fault, now);
        set.busy.store(false, Ordering::Release);
        step
    }

    fn step_in(&self, set: &Set, owner: u32, fault: &Fault, now: u32) -> Step {
        let near = |stream: &&Stream| {
            get(&stream.owner) == owner && distance(get(&stream.last), fault.page) != 0
        };
        let following = set
            .streams
            .iter()
            .filter(near)
            .find(|stream| stream.expects(fault.page));
        if let Some(stream) = following {
            put(&stream.age, now);
            return self.advance(stream, fault);
        }
        let candidate = set
            .streams
            .iter()
            .filter(near)
            .filter(|stream| get(&stream.window) == 0)
            .find(|stream| distance(get(&stream.last), fault.page).abs() <= MAX_STRIDE);
        let stream = candidate.unwrap_or_else(|| {
            let oldest = set.streams.iter().max_by_key(|s| match get(&s.owner) {
                0 => u32::MAX,
                _ => now.wrapping_sub(get(&s.age)),
            });
            oldest.expect("a set has places")
        });
        let stride = match candidate {
            Some(stream) => distance(get(&stream.last), fault.page),
            None => 0,
        };
        stream.suspect(owner, fault.page, stride, now);
        match stride.abs() {
            1..=NEARBY => Step::Nearby,
            _ => Step::Alone,
        }
    }

    fn advance(&self, stream: &Stream, fault: &Fault) -> Step {
        let page = fault.page;
        // New pages have no content to read ahead: they are only mapped with the fault, as zeros.
        let largest = match fault.kind {
            FaultKind::FirstTouch => self.max_window.min(MAX_ALONG),
            FaultKind::Refault => self.max_window,
        };
        let stride = stream.stride_pages();
        let share = match self.is_slow(stream, page) {
            true => MAX_ALONG,
            false => self.share(stream, fault),
        };
        let most = match stride.abs() {
            1 => largest.min(share),
            _ => largest.min(share).min(MOST_STRIDED),
        };
        let window = match get(&stream.window) {
            0 => FIRST_WINDOW,
            old => (old * 2).min(most),
        };
        // A fault inside the requested range: the thread is faster than the read-ahead. It reads
        // the page itself, and further pages are requested behind those under way.
        let asked = get(&stream.next);
        let from = match distance(page, asked) * stride > 0 {
            true => asked,
            false => page,
        };
        let mut horizon = offset(page, stride * i64::from(window));
        // The few additional pages would make a small read: leave them for the next step.
        let more = distance(from, horizon) / stride;
        if from != page && more > 0 && more < i64::from((window / 2).min(MAX_ALONG)) {
            horizon = from;
        }
        if distance(from, horizon) * stride > 0 {
            put(&stream.next, horizon);
        }
        put(&stream.window, window);
        put(&stream.last, page);
        Step::Next {
            stride: i32::try_from(stride).unwrap_or(1),
            // At the first pages of all there is less than a stride before the faulted one.
            window: u32::try_from(distance(page, horizon) / stride)
                .unwrap_or(window)
                .max(1),
            from,
        }
    }

    /// Whether the program waited for the store more often than `stream` went on by a page since its
    /// last step: then few pages ahead are enough, and each more takes the room of one that is waited for.
    fn is_slow(&self, stream: &Stream, page: Page) -> bool {
        let now = get(&self.waits);
        let waits = now.wrapping_sub(get(&stream.waits));
        put(&stream.waits, now);
        let steps = distance(get(&stream.last), page) / stream.stride_pages();
        i64::from(waits) > steps.max(1)
    }

    /// Pages that `stream`, which faulted, may have in flight: an equal share. Where several
    /// streams go through one region in the same direction, the last gets more and the others less,
    /// so that it catches up: from then on one of them reads for all.
    fn share(&self, stream: &Stream, fault: &Fault) -> u32 {
        let now = get(&stream.age);
        let (mut running, mut before, mut behind) = (0, false, false);
        for other in self.sets.iter().flat_map(|set| &set.streams) {
            if !other.stepped_within(LATELY, now) {
                continue;
            }
            running += 1;
            let last = get(&other.last);
            if fault.region.contains(last) && get(&other.stride) == get(&stream.stride) {
                let lead = distance(fault.page, last) * stream.stride_pages().signum();
                before |= lead > 0;
                // Streams within one window of each other count as together.
                behind |= lead < -i64::from(self.max_window * 2);
            }
        }
        let equal = (self.max_window * SHARED / running.max(1)).max(FIRST_WINDOW);
        match (before, behind) {
            (_, true) => equal.min(MAX_ALONG),
            (true, false) => self.max_window,
            (false, false) => equal,
        }
    }

    /// Pages in the windows of streams under way, which faults in no order are not taken for; 0 for
    /// none. Told now and then, since all of them are looked at.
    #[must_use]
    pub fn under_way(&self) -> Option<u32> {
        let now = get(&self.clock);
        if !now.is_multiple_of(LOOK) {
            return None;
        }
        let (mut all, mut largest, mut lately) = (0, 0, 0);
        for stream in self.sets.iter().flat_map(|set| &set.streams) {
            if !stream.stepped_within(LONG_AGO, now) {
                continue;
            }
            let window = get(&stream.window);
            all += window;
            largest = largest.max(window);
            if stream.stepped_within(LATELY, now) {
                lately += window;
            }
        }
        // Most places hold the past of a stream that went on in another region.
        let is_proven = all >= PROVEN.min(self.max_window);
        Some(if is_proven { lately.max(largest) } else { 0 })
    }

    /// Forgets all streams (the child of a fork has other threads).
    pub fn forget(&self) {
        for set in &self.sets {
            set.busy.store(false, Ordering::Release);
            set.streams.iter().for_each(|stream| put(&stream.owner, 0));
        }
    }
}

impl Stream {
    fn stride_pages(&self) -> i64 {
        i64::from(get(&self.stride).cast_signed())
    }

    /// Whether the stream made a step within so many faults, `now` being the current time on their
    /// clock.
    fn stepped_within(&self, faults: u32, now: u32) -> bool {
        get(&self.owner) != 0 && get(&self.window) != 0 && now.wrapping_sub(get(&self.age)) < faults
    }

    /// Whether a fault at `page` continues this stream: from its last fault up to a little behind
    /// the requested pages. (Resident pages do not fault, so a stream may jump.)
    fn expects(&self, page: Page) -> bool {
        let stride = self.stride_pages();
        if stride == 0 {
            return false;
        }
        let done = distance(get(&self.last), page) * stride.signum();
        let asked = distance(get(&self.last), get(&self.next)) * stride.signum();
        let slack = i64::from(get(&self.window)).max(2) * stride.abs();
        done > 0 && done <= asked.max(0) + slack && done % stride.abs() == 0
    }

    fn suspect(&self, owner: u32, page: Page, stride: i64, now: u32) {
        put(&self.owner, owner);
        put(&self.last, page);
        put(
            &self.stride,
            i32::try_from(stride).unwrap_or(0).cast_unsigned(),
        );
        put(&self.next, offset(page, stride));
        put(&self.window, 0);
        put(&self.age, now);
    }
}

fn get(cell: &AtomicU32) -> u32 {
    cell.load(Ordering::Relaxed)
}

fn put(cell: &AtomicU32, value: u32) {
    cell.store(value, Ordering::Relaxed);
}

fn distance(from: Page, to: Page) -> i64 {
    i64::from(to) - i64::from(from)
}

fn offset(page: Page, by: i64) -> Page {
    u32::try_from((i64::from(page) + by).max(0)).unwrap_or(u32::MAX)
}

fn owner(fault: &Fault) -> u32 {
    // Fibonacci hashing; never zero.
    let key = fault.thread.wrapping_mul(0x9e37_79b1)
        ^ u32::from(fault.region_id).wrapping_mul(0x85eb_ca6b);
    (key ^ key >> 15) | 1 << 31
}

/// Pages of a window that the faulting thread reads itself.
fn along(fault: &Fault, window: u32) -> u32 {
    match fault.kind {
        FaultKind::FirstTouch => window,
        FaultKind::Refault => window.min(MAX_ALONG),
    }
}

/// Fills `plan` for a step of a stream: the first pages with the fault, the rest ahead.
pub fn plan_step(fault: &Fault, step: Step, plan: &mut Plan) {
    let Step::Next {
        stride,
        window,
        from,
    } = step
    else {
        return;
    };
    let page = fault.page;
    let densest = match fault.in_file {
        true => DENSE_IN_FILES,
        false => DENSE,
    };
    let dense = fault.kind == FaultKind::Refault && stride.abs() <= densest;
    let (stride, window) = match dense {
        true => (stride.signum(), window * stride.unsigned_abs()),
        false => (stride, window),
    };
    let mine = along(fault, window);
    match stride {
        1 => {
            plan.along = run(page, mine).clipped(fault.region);
            let first = plan.along.end().max(from);
            let count = (page + window).saturating_sub(first);
            plan.read_ahead(run(first, count).clipped(fault.region));
        }
        -1 => {
            plan.along = run_down(page, mine).clipped(fault.region);
            let end = plan.along.first.min(from + 1);
            let first = (page + 1).saturating_sub(window);
            plan.read_ahead(run(first, end.saturating_sub(first)).clipped(fault.region));
        }
        _ => {
            let done = distance(page, from) / i64::from(stride);
            for step in done.max(1)..i64::from(window) {
                let page = offset(page, i64::from(stride) * step);
                if !fault.region.contains(page) || !plan.read_ahead(run(page, 1)) {
                    break;
                }
            }
        }
    }
}

fn run(first: Page, count: u32) -> Span {
    Span { first, count }
}

/// `count` pages that end with `last`.
fn run_down(last: Page, count: u32) -> Span {
    let first = (last + 1).saturating_sub(count);
    run(first, last + 1 - first)
}

/// Fills `plan` for a step with only the pages that are read with the fault.
pub fn plan_cluster(fault: &Fault, step: Step, plan: &mut Plan) {
    if let Step::Next { stride, window, .. } = step {
        plan.along = match stride {
            1 => run(fault.page, window),
            -1 => run_down(fault.page, window),
            _ => return,
        }
        .clipped(fault.region);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::FaultKind;

    const REGION: Span = Span {
        first: 0,
        count: 1 << 20,
    };

    fn fault(page: Page, thread: u32) -> Fault {
        Fault {
            page,
            region: REGION,
            region_id: 1,
            thread,
            kind: FaultKind::Refault,
            write: false,
            in_file: false,
        }
    }

    /// Accesses `pages`, faulting on those not planned before; returns the number of faults.
    fn faults(streams: &Streams, thread: u32, pages: impl Iterator<Item = Page>) -> usize {
        let mut planned = std::collections::HashSet::new();
        let mut faults = 0;
        for page in pages {
            if planned.contains(&page) {
                continue;
            }
            faults += 1;
            let mut plan = Plan::only(page);
            let fault = fault(page, thread);
            plan_step(&fault, streams.step(&fault), &mut plan);
            for span in plan.ahead().iter().chain([&plan.along]) {
                planned.extend(span.first..span.end());
            }
        }
        faults
    }

    #[test]
    fn a_stream_of_a_gigabyte_faults_a_thousand_times() {
        let streams = Streams::new(256);
        let count = faults(&streams, 1, 0..1 << 18);
        assert!((1000..1100).contains(&count), "{count}");
    }

    #[test]
    fn backward_and_strided_streams_are_found() {
        let streams = Streams::new(256);
        let backward = faults(&streams, 1, (0..10_000).rev());
        assert!(backward < 100, "{backward}");
        let strided = faults(&Streams::new(256), 1, (0..100_000).step_by(7));
        assert!(strided < 100_000 / 7 / 20, "{strided}");
    }

    #[test]
    fn four_streams_of_one_thread_are_told_apart() {
        let streams = Streams::new(64);
        let pages = (0..2000).flat_map(|i| [i, 100_000 + i, 200_000 + i, 300_000 + i]);
        let count = faults(&streams, 1, pages);
        assert!(count < 400, "{count}");
    }

    #[test]
    fn random_faults_are_alone() {
        let streams = Streams::new(256);
        let mut state = 1u64;
        let mut planned = 0;
        for _ in 0..10_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let page = u32::try_from(state >> 44).expect("20 bits");
            planned += usize::from(streams.step(&fault(page, 1)) != Step::Alone);
        }
        assert!(planned < 20, "{planned}");
    }

    #[test]
    fn a_fault_inside_the_window_asks_only_for_what_is_behind_it() {
        let streams = Streams::new(256);
        for page in 0..3 {
            streams.step(&fault(page, 1));
        }
        let step = |page| streams.step(&fault(page, 1));
        let next = |window, from| Step::Next {
            stride: 1,
            window,
            from,
        };
        // Page 2 requested pages up to 9.
        assert_eq!(step(10), next(16, 10));
        assert_eq!(step(12), next(32, 26));
        assert_eq!(step(14), next(64, 44));
        assert_eq!(step(16), next(128, 78));
        let mut plan = Plan::only(16);
        plan_step(&fault(16, 1), next(128, 78), &mut plan);
        assert_eq!(plan.along, run(16, MAX_ALONG));
        assert_eq!(plan.ahead(), [run(80, 64)]);
    }

    #[test]
    fn small_strides_are_read_as_runs() {
        let streams = Streams::new(256);
        let mut planned = Vec::new();
        for page in (0..40).step_by(2) {
            let mut plan = Plan::only(page);
            plan_step(&fault(page, 1), streams.step(&fault(page, 1)), &mut plan);
            planned.extend([&plan.along].into_iter().chain(plan.ahead()).copied());
        }
        assert!((4..40).all(|page| planned.iter().any(|span| span.contains(page))));
        let first = Fault {
            kind: FaultKind::FirstTouch,
            ..fault(4, 1)
        };
        let mut plan = Plan::only(4);
        let step = Step::Next {
            stride: 2,
            window: 8,
            from: 4,
        };
        plan_step(&first, step, &mut plan);
        assert_eq!(plan.along, run(4, 1), "zeros between are of no use");
    }

    #[test]
    fn wider_strides_are_read_as_runs_in_files() {
        let planned = |in_file| {
            let streams = Streams::new(256);
            let mut planned = std::collections::HashSet::new();
            for page in (0..400).step_by(8) {
                let mut plan = Plan::only(page);
                let fault = Fault {
                    in_file,
                    ..fault(page, 1)
                };
                plan_step(&fault, streams.step(&fault), &mut plan);
                planned.extend(
                    plan.ahead()
                        .iter()
                        .chain([&plan.along])
                        .flat_map(|s| s.first..s.end()),
                );
            }
            planned
        };
        let (in_file, elsewhere) = (planned(true), planned(false));
        assert!((16..400).all(|page| in_file.contains(&page)));
        assert!(elsewhere.iter().all(|page| page % 8 == 0));
    }

    #[test]
    fn a_thread_that_catches_up_asks_for_whole_reads() {
        let streams = Streams::new(256);
        let ahead = |page| {
            let mut plan = Plan::only(page);
            let fault = fault(page, 1);
            plan_step(&fault, streams.step(&fault), &mut plan);
            plan.ahead().to_vec()
        };
        // Windows of 8, 16, ... 256.
        [0, 1, 2, 10, 26, 58, 122]
            .iter()
            .for_each(|page| drop(ahead(*page)));
        assert_eq!(ahead(250), [run(314, 192)]);
        assert_eq!(ahead(260), []);
        assert_eq!(ahead(313), []);
        assert_eq!(ahead(314), [run(506, 64)]);
    }

    #[test]
    fn of_several_threads_in_one_region_the_last_asks_for_most() {
        let streams = Streams::new(256);
        let mut next: Vec<Page> = (0..8).map(|thread| thread * 10_000).collect();
        let mut windows = [0; 8];
        for _ in 0..12 {
            for (thread, next) in (1..).zip(&mut next) {
                let fault = fault(*next, thread);
                let step = streams.step(&fault);
                if let Step::Next { window, .. } = step {
                    windows[thread as usize - 1] = window;
                }
                let mut plan = Plan::only(fault.page);
                plan_step(&fault, step, &mut plan);
                let end = plan.ahead().last().map_or(plan.along.end(), |s| s.end());
                *next = end;
            }
        }
        assert_eq!(windows[0], 256);
        assert!(
            windows[1..].iter().all(|&window| window == 64),
            "{windows:?}"
        );
    }

    #[test]
    fn plans_stay_inside_the_region() {
        let region = Span {
            first: 10,
            count: 20,
        };
        for (page, stride) in [(25, 1), (14, -1), (20, 3)] {
            let fault = Fault {
                region,
                ..fault(page, 1)
            };
            let mut plan = Plan::only(page);
            plan_step(
                &fault,
                Step::Next {
                    stride,
                    window: 64,
                    from: page,
                },
                &mut plan,
            );
            assert!(plan.along.contains(page));
            for span in plan.ahead().iter().chain([&plan.along]) {
                assert_eq!(span.clipped(region), *span, "stride {stride}");
            }
        }
    }

    #[test]
    fn new_pages_come_in_smaller_windows_than_pages_that_are_read() {
        let last_window = |kind| {
            let streams = Streams::new(1024);
            let mut window = 0;
            let mut page = 0;
            for _ in 0..12 {
                let fault = Fault {
                    kind,
                    ..fault(page, 1)
                };
                if let Step::Next { window: of, .. } = streams.step(&fault) {
                    window = of;
                }
                page += window.max(1);
            }
            window
        };
        assert_eq!(last_window(FaultKind::FirstTouch), MAX_ALONG);
        assert_eq!(last_window(FaultKind::Refault), 1024);
    }
}
