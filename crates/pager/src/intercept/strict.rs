//! Strict mode of seccomp: the thread may read, write, return from signals and end, and is killed for any
//! other call. The kernel ends the process with its last thread, which is one of the pager's; so a
//! thread of the pager looks whether there is another.

use crate::paging::PAGER;
use crate::sys::{self, Answer, call3, signals, thread};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// `SECCOMP_MODE_STRICT` (linux/seccomp.h).
pub(super) const MODE: usize = 1;
/// `SECCOMP_SET_MODE_STRICT`.
pub(super) const SET_STRICT: usize = 0;

/// Nanoseconds between two looks.
const LOOK_NS: u64 = 20_000_000;
/// No thread has ended by itself.
const KILLED: u64 = u64::MAX;

/// Threads in this mode, by where libc's data about them are: they may not ask for their number.
static THREADS: [AtomicU64; 32] = [const { AtomicU64::new(0) }; 32];
/// With what the last one of them ended.
static STATUS: AtomicU64 = AtomicU64::new(KILLED);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Runs `call`, with which this thread enters the mode.
pub(super) fn entering(call: impl FnOnce() -> Answer) -> Answer {
    if !PAGER.is_started() {
        return call();
    }
    let own = thread::pointer();
    let enters = |place: &&AtomicU64| {
        let free = place.compare_exchange(0, own, Ordering::AcqRel, Ordering::Relaxed);
        free.is_ok()
    };
    let place = THREADS.iter().find(enters);
    let watched = IS_WATCHED.swap(true, Ordering::AcqRel) || thread::start(watch, 0);
    if place.is_none() || !watched {
        return -(libc::EINVAL as Answer);
    }
    let answer = call();
    if let Some(place) = place.filter(|_| answer < 0) {
        place.store(0, Ordering::Release);
    }
    answer
}

/// This thread ends with `status`: by the call that it may make, if it is in this mode.
pub(super) fn end(status: usize) {
    let own = thread::pointer();
    if THREADS.iter().all(|one| one.load(Ordering::Acquire) != own) {
        return;
    }
    STATUS.store(status as u64, Ordering::Release);
    loop {
        // SAFETY: ends the thread.
        unsafe { call3(libc::SYS_exit, status, 0, 0) };
    }
}

/// In the child of a fork no thread is in this mode.
pub(super) fn forked() {
    for one in &THREADS {
        one.store(0, Ordering::Relaxed);
    }
    IS_WATCHED.store(false, Ordering::Relaxed);
}

extern "C" fn watch(_: usize) -> ! {
    let never = AtomicU32::new(0);
    while !thread::are_gone() {
        sys::futex_wait(&never, 0, Some(LOOK_NS));
    }
    match STATUS.load(Ordering::Acquire) {
        KILLED => signals::die_by(libc::SIGKILL),
        status => sys::end(status as usize),
    }
}
