//! How faults reach the core: two ways with one entry point, [`crate::paging::resolve::resolve`].
//!
//! * [`threads`]: a few threads of the pager read faults from the userfaultfd. This is slower,
//!   increasingly so the more threads fault; but faults that the kernel takes on the program's
//!   behalf (in `read`, `futex`, …) arrive as well, so every system call simply works.
//! * [`signal`]: the faulting thread gets a SIGBUS and does the work itself. This is fast and
//!   scales; but a system call that touches a missing page fails with EFAULT.
//!
//! The evictor and the threads that read ahead run next to them, all asleep while nothing faults,
//! and so does the observer if the run shows figures, and [`leases`] while files are mapped; the child of a fork may have a [`warden`],
//! and a process with many file pages a [`trimmer`]. A
//! program has none of these threads before its first memory comes under management, and the child
//! of a fork only one handler thread before its first fault: most programs never own that much
//! memory, and most children soon become another program.

pub mod ahead;
pub mod crash;
pub mod evictor;
pub mod leases;
pub mod observer;
pub mod signal;
pub mod threads;
pub mod trimmer;
mod vigil;
pub mod warden;

use crate::paging::Pager;
use crate::paging::own_threads::Above;
use crate::sys::thread;

/// The functions with which the core starts threads.
pub static ABOVE: Above = Above {
    start,
    start_first: |pager| threads::start_first(pager) && warden::start(pager),
    start_watcher: leases::start,
    forget: || {
        threads::forked();
        trimmer::forked();
    },
};

fn start(pager: &'static Pager) -> Result<(), &'static str> {
    let started = match () {
        () if !evictor::start(pager) => Err("evictor"),
        () if !ahead::start(pager) => Err("thread that reads ahead"),
        () if !threads::start(pager) => Err("handler threads"),
        () if !observer::start(pager) => Err("observer"),
        () => Ok(()),
    };
    // In the child of a fork: its warden, and a trimmer, which may not have been needed here.
    thread::spare(2);
    started
}
