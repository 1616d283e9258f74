//! The time of first touches, in this process.

use pagewise_linux::sys::machine;
use pagewise_model::bench::Times;
use std::sync::Barrier;
use std::time::Instant;

/// What to touch.
#[derive(Clone, Copy, Debug)]
pub struct Touches {
    /// Threads that touch at the same time.
    pub threads: usize,
    /// Pages for each thread.
    pub pages: usize,
}

/// Bytes between two touches: a base page, whose size depends on the machine.
fn step() -> usize {
    usize::try_from(machine::page_size()).unwrap_or(1 << 16)
}

/// Touches in an order without streams, then new memory in order.
#[must_use]
pub fn measure(touches: Touches) -> Times {
    let mut times = by_each_thread(touches, touch);
    let mut in_order = by_each_thread(touches, touch_in_order);
    times.sort_unstable();
    in_order.sort_unstable();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or(0);
    Times {
        p50_ns: at(50),
        p99_ns: at(99),
        in_order_ns: in_order.get(in_order.len() / 2).copied().unwrap_or(0),
    }
}

/// Times of all threads, each on new memory of its own.
fn by_each_thread(touches: Touches, touch: fn(&mut [u8], usize, &Barrier) -> Vec<u64>) -> Vec<u64> {
    let per_thread = touches.pages * step();
    let mut memory = vec![0_u8; touches.threads * per_thread];
    let barrier = &Barrier::new(touches.threads);
    std::thread::scope(|scope| {
        let parts = memory.chunks_mut(per_thread);
        let threads: Vec<_> = parts
            .map(|part| scope.spawn(move || touch(part, touches.pages, barrier)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_default())
            .collect()
    })
}

/// Pages whose touches are timed together: several of the clusters in which they are mapped.
const RUN: usize = 256;

/// Writes to each page once, in order; returns the mean time per page for each run of pages.
fn touch_in_order(part: &mut [u8], _: usize, barrier: &Barrier) -> Vec<u64> {
    let step = step();
    barrier.wait();
    let touch_run = |pages: &mut [u8]| {
        let began = Instant::now();
        for page in pages.chunks_mut(step) {
            page[0] = 1;
        }
        nanoseconds(began) / RUN as u64
    };
    part.chunks_exact_mut(RUN * step).map(touch_run).collect()
}

fn nanoseconds(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Writes to each page once, in an order without streams, so that no page is brought in ahead.
fn touch(part: &mut [u8], pages: usize, barrier: &Barrier) -> Vec<u64> {
    let mut times = vec![0; pages];
    let step = step();
    barrier.wait();
    let mut page = 0;
    for time in &mut times {
        // A step without a common factor with the number of pages visits all of them.
        page = (page + 1_000_003) % pages;
        let began = Instant::now();
        part[page * step] = 1;
        *time = nanoseconds(began);
    }
    times
}
