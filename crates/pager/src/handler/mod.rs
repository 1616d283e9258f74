//! How faults reach the core: two ways behind one door, [`crate::paging::resolve::resolve`].
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

use crate::paging::Pager;
use crate::paging::own_threads::Above;

/// What the core starts threads by.
pub static ABOVE: Above = Above {
    start,
    start_first: |pager| threads::start_first(pager) && warden::start(pager),
    forget: threads::forked,
};

fn start(pager: &'static Pager) -> bool {
    evictor::start(pager) && ahead::start(pager) && threads::start(pager) && observer::start(pager)
}
