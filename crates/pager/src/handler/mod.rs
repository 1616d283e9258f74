//! How faults reach the core: two ways behind one door, [`crate::core::resolve::resolve`].
//!
//! * [`threads`]: a few threads of the pager read faults from the userfaultfd. Slower, and the
//!   slower the more threads fault; but faults that the kernel takes on the program's behalf (in
//!   `read`, `futex`, …) arrive as well, so every system call simply works.
//! * [`signal`]: the faulting thread gets a SIGBUS and does the work itself. Fast, and it scales;
//!   but a system call that touches a missing page fails with EFAULT.
//!
//! Beside them work the evictor and the threads that read ahead, all asleep while nothing faults, and
//! the observer where the run shows figures.

pub mod ahead;
pub mod evictor;
pub mod observer;
pub mod signal;
pub mod threads;

use crate::core::Pager;
use core::sync::atomic::{AtomicBool, Ordering};

static RUNNING: AtomicBool = AtomicBool::new(false);

/// Starts the helpers, once in a process. Allocates nothing, so that it may be called inside
/// `malloc`.
pub fn start(pager: &'static Pager) -> bool {
    if RUNNING.swap(true, Ordering::AcqRel) {
        return true;
    }
    evictor::start(pager) && ahead::start(pager) && threads::start(pager) && observer::start(pager)
}

/// The child of a fork has no helpers.
pub fn forked() {
    RUNNING.store(false, Ordering::Release);
    ahead::forked();
    threads::forked();
}
