//! Threads that read pages ahead of their use.

use crate::paging::{Pager, read_ahead};
use crate::sys::thread;

/// Number of threads: enough to keep a disk busy while some of them copy what they have read.
const THREADS: usize = 4;

/// Starts them.
pub fn start(pager: &'static Pager) -> bool {
    let argument = core::ptr::from_ref(pager) as usize;
    (0..THREADS).all(|_| thread::start(run, argument))
}

extern "C" fn run(pager: usize) -> ! {
    // SAFETY: published: `start` passed a reference that lives forever.
    let pager = unsafe { &*(pager as *const Pager) };
    loop {
        read_ahead::read_ahead(pager, pager.ahead.take());
    }
}
