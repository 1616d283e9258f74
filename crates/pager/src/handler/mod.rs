//! How faults reach the core: two ways behind one door, [`crate::core::resolve::resolve`].
//!
//! * [`threads`]: a few threads of the pager read faults from the userfaultfd. Slower, and the
//!   slower the more threads fault; but faults that the kernel takes on the program's behalf (in
//!   `read`, `futex`, …) arrive as well, so every system call simply works.
//! * [`signal`]: the faulting thread gets a SIGBUS and does the work itself. Fast, and it scales;
//!   but a system call that touches a missing page fails with EFAULT.
//!
//! Beside them work the evictor and the threads that read ahead, all asleep while nothing faults, and
//! the observer where the run shows figures; the child of a fork may have a [`warden`]. A program has none of them before its first memory comes
//! under management, and the child of a fork one handler thread alone before its first fault: most
//! programs never own so much, and most children soon become another program.

pub mod ahead;
pub mod evictor;
pub mod observer;
pub mod signal;
pub mod threads;
mod vigil;
pub mod warden;

use crate::core::{PAGER, Pager, discard, fatal};
use crate::start;
use crate::sync::Lock;
use crate::sys::{signals, thread};
use core::sync::atomic::{AtomicBool, Ordering};

static RUNNING: AtomicBool = AtomicBool::new(false);
/// They were to start, and something was missing.
static FAILED: AtomicBool = AtomicBool::new(false);
/// Held while they start, and through forks.
static STARTING: Lock = Lock::new();

/// What is held while they start.
#[cfg(debug_assertions)]
pub fn starting() -> &'static Lock {
    &STARTING
}

/// Starts the helpers and opens what they work with, once in a process; whether all is there. Allocates
/// nothing, so that it may be called inside `malloc`.
pub fn start(pager: &'static Pager) -> bool {
    if is_running() {
        return !FAILED.load(Ordering::Relaxed);
    }
    let _starting = STARTING.hold();
    if RUNNING.swap(true, Ordering::AcqRel) {
        return !FAILED.load(Ordering::Relaxed);
    }
    let well = start_all(pager);
    if !well {
        FAILED.store(true, Ordering::Relaxed);
        fatal::say(format_args!(
            "no userfaultfd or no threads for this process: its memory is not managed"
        ));
    }
    well
}

fn start_all(pager: &'static Pager) -> bool {
    if !start::renew_uffds(pager) || !start::open_tray(pager) {
        return false;
    }
    discard::prepare(pager);
    pager.store().prepare();
    start::tell_of_rings(pager);
    evictor::start(pager) && ahead::start(pager) && threads::start(pager) && observer::start(pager)
}

/// Whether the helpers run, or are about to.
pub fn is_running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

/// Before a fault is resolved: in the child of a fork it may be the first one.
#[inline]
pub fn ensure() {
    if !is_running() && !start(&PAGER) {
        fatal::say(format_args!(
            "the child of a fork gets no threads to manage its memory; it ends by SIGBUS"
        ));
        signals::die_by(libc::SIGBUS);
    }
}

/// A fork comes: the child shall not find them half started.
pub fn before_fork() {
    STARTING.acquire();
}

/// The fork is over, in the parent or in the child.
pub fn after_fork() {
    STARTING.release();
}

/// The child of a fork has no helpers.
pub fn forked() {
    RUNNING.store(false, Ordering::Release);
    FAILED.store(false, Ordering::Relaxed);
    ahead::forked();
    thread::forked();
    threads::forked();
}
