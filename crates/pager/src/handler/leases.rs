//! The thread that the kernel tells when somebody is to change a mapped file.

use crate::paging::Pager;
use crate::sys::{files, thread};

/// Nanoseconds between looks without a notice: should one get lost, who waits to open the file does
/// not wait for long.
const MOST_NS: u64 = 1_000_000_000;

/// Starts it.
pub fn start(pager: &'static Pager) -> bool {
    thread::start(run, core::ptr::from_ref(pager) as usize)
}

extern "C" fn run(pager: usize) -> ! {
    // SAFETY: published: `start` passed a reference that lives forever.
    let pager = unsafe { &*(pager as *const Pager) };
    pager.files.watch();
    loop {
        files::await_notice(MOST_NS);
        pager.follow_files();
    }
}
