//! Threads that read pages ahead of their use.

use crate::core::Pager;
use crate::core::bring;
use crate::core::scratch::BUFFER_PAGES;
use crate::sync::Lock;
use crate::sys::{self, thread};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use pagewise_policy::Span;

/// Threads: enough to keep a disk busy beside the faults.
const THREADS: usize = 2;
/// Spans that may wait. More are not worth reading: what is far behind is no longer ahead.
const PLACES: usize = 512;

static QUEUE: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
static HEAD: AtomicU32 = AtomicU32::new(0);
static TAIL: AtomicU32 = AtomicU32::new(0);
static TAKING: Lock = Lock::new();
/// Whether the thread that holds [`TAKING`] sleeps until something is asked for.
static ASLEEP: AtomicU32 = AtomicU32::new(0);

/// Starts them.
pub fn start(pager: &'static Pager) -> bool {
    let argument = core::ptr::from_ref(pager) as usize;
    (0..THREADS).all(|_| thread::start(run, argument))
}

/// Asks for `span`, in pieces that are read at once, so that several threads share the work;
/// forgotten where too much waits already.
pub fn push(span: Span) {
    let most = BUFFER_PAGES as u32;
    let pieces = (span.first..span.end()).step_by(BUFFER_PAGES);
    for first in pieces {
        let count = most.min(span.end() - first);
        if !push_piece(Span { first, count }) {
            return;
        }
    }
}

fn push_piece(span: Span) -> bool {
    let value = u64::from(span.first) << 32 | u64::from(span.count);
    loop {
        let head = HEAD.load(Ordering::Relaxed);
        let tail = TAIL.load(Ordering::Relaxed);
        if head.wrapping_sub(tail) as usize >= PLACES {
            return false;
        }
        let next = head.wrapping_add(1);
        let won = HEAD.compare_exchange(head, next, Ordering::SeqCst, Ordering::Relaxed);
        if won.is_ok() {
            QUEUE[head as usize % PLACES].store(value, Ordering::Release);
            if ASLEEP.load(Ordering::SeqCst) != 0 {
                sys::futex_wake(&HEAD, 1);
            }
            return true;
        }
    }
}

fn take() -> Span {
    let _taking = TAKING.hold();
    loop {
        let tail = TAIL.load(Ordering::Relaxed);
        let head = HEAD.load(Ordering::SeqCst);
        if head == tail {
            ASLEEP.store(1, Ordering::SeqCst);
            if HEAD.load(Ordering::SeqCst) == head {
                sys::futex_wait(&HEAD, head, None);
            }
            ASLEEP.store(0, Ordering::SeqCst);
            continue;
        }
        // Between the count and the value lie a few instructions of the asking thread.
        let value = QUEUE[tail as usize % PLACES].swap(0, Ordering::Acquire);
        if value == 0 {
            core::hint::spin_loop();
            continue;
        }
        TAIL.store(tail.wrapping_add(1), Ordering::Release);
        return Span {
            first: (value >> 32) as u32,
            count: value as u32,
        };
    }
}

extern "C" fn run(pager: usize) -> ! {
    // SAFETY: `start` passed a reference that lives for ever.
    let pager = unsafe { &*(pager as *const Pager) };
    loop {
        bring::bring(pager, take());
    }
}

/// In the child of a fork nothing waits.
pub fn forked() {
    TAIL.store(HEAD.load(Ordering::Relaxed), Ordering::Relaxed);
    for place in &QUEUE {
        place.store(0, Ordering::Relaxed);
    }
    TAKING.reset();
    ASLEEP.store(0, Ordering::Relaxed);
}
