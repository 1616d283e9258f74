//! Threads that read pages ahead of their use.

use crate::core::Pager;
use crate::core::resolve;
use crate::sys::{self, Lock, thread};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use pagewise_policy::Span;
use pagewise_wire::shared::Delivery;

/// Threads: enough to keep a disk busy beside the faults.
const THREADS: usize = 2;
/// Spans that may wait. More are not worth reading: what is far behind is no longer ahead.
const PLACES: usize = 64;

static QUEUE: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
static HEAD: AtomicU32 = AtomicU32::new(0);
static TAIL: AtomicU32 = AtomicU32::new(0);
static TAKING: Lock = Lock::new();

/// Starts them.
pub fn start(pager: &'static Pager) -> bool {
    let argument = core::ptr::from_ref(pager) as usize;
    (0..THREADS).all(|_| thread::start(run, argument))
}

/// Asks for `span`; forgotten where too much waits already.
pub fn push(_pager: &Pager, span: Span, _delivery: Delivery) {
    if span.count == 0 {
        return;
    }
    let head = HEAD.load(Ordering::Relaxed);
    let tail = TAIL.load(Ordering::Relaxed);
    if head.wrapping_sub(tail) as usize >= PLACES {
        return;
    }
    if HEAD
        .compare_exchange(
            head,
            head.wrapping_add(1),
            Ordering::SeqCst,
            Ordering::Relaxed,
        )
        .is_err()
    {
        return;
    }
    let value = u64::from(span.first) << 32 | u64::from(span.count);
    QUEUE[head as usize % PLACES].store(value, Ordering::Release);
    sys::futex_wake(&HEAD, 1);
}

fn take() -> Span {
    let _taking = TAKING.hold();
    loop {
        let tail = TAIL.load(Ordering::Relaxed);
        let head = HEAD.load(Ordering::SeqCst);
        if head == tail {
            sys::futex_wait(&HEAD, head, None);
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
        resolve::bring(pager, take());
    }
}

/// In the child of a fork nothing waits.
pub fn forked() {
    TAIL.store(HEAD.load(Ordering::Relaxed), Ordering::Relaxed);
    for place in &QUEUE {
        place.store(0, Ordering::Relaxed);
    }
    TAKING.reset();
}
