//! Handler threads: faults read from the userfaultfd.
//!
//! Only one thread reads at a time (if all of them were in `read`, each fault would wake them all).
//! It resolves faults that need no disk itself and reads on; before it turns to one that does, it
//! lets the next thread read, so that a fault is never handed over. If only one thread of the
//! program faults, which cannot fault again meanwhile, the reader handles that fault itself as
//! well: waking the next reader takes a tenth of the time in which one page is read. The handler
//! also spins for such a thread's next fault, as long as that pays: see [`vigil`](super::vigil).

use super::vigil::VIGIL;
use crate::paging::Pager;
use crate::paging::resolve::{self, Fault};
use crate::sync::Lock;
use crate::sys::thread;
use crate::sys::uffd::{EVENT_PAGEFAULT, Message, flag};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Number of threads, and of faults that may wait for the disk at a time.
const THREADS: usize = 8;

/// Number of consecutive faults of one thread after which the handler spins for its next one.
const ALIKE: u32 = 32;

static READER: Lock = Lock::new();
/// Number of threads started.
static STARTED: AtomicUsize = AtomicUsize::new(0);
/// The thread that faulted last, and its number of consecutive faults. Only the reader counts.
static LAST: AtomicU32 = AtomicU32::new(0);
static IN_A_ROW: AtomicU32 = AtomicU32::new(0);

/// Starts them, if the kernel lets a process handle its own faults in this way.
pub fn start(pager: &'static Pager) -> bool {
    start_up_to(THREADS, pager)
}

/// Starts the one that reads the first fault.
pub fn start_first(pager: &'static Pager) -> bool {
    start_up_to(1, pager)
}

fn start_up_to(count: usize, pager: &'static Pager) -> bool {
    if !pager.uffds.by_handler.is_open() {
        return true;
    }
    let argument = core::ptr::from_ref(pager) as usize;
    let there = STARTED.swap(count, Ordering::Relaxed);
    (there..count).all(|_| thread::start(run, argument))
}

extern "C" fn run(pager: usize) -> ! {
    // SAFETY: published: `start` passed a reference that lives forever.
    let pager = unsafe { &*(pager as *const Pager) };
    loop {
        READER.acquire();
        let fault = read_until_slow(pager);
        READER.release();
        resolve_one(pager, fault);
    }
}

/// Resolves quick faults. Returns the first one that is not.
fn read_until_slow(pager: &Pager) -> Fault {
    let mut was_alone = false;
    loop {
        let mut message = [Message::default()];
        // The evictor has a better use for the CPU.
        let seen = was_alone
            && !pager.budget.is_evicting()
            && VIGIL.keep(|| match pager.budget.is_evicting() {
                true => Err(libc::EBUSY),
                false => pager.uffds.by_handler.read_now(&mut message[0]),
            });
        let read = seen || pager.uffds.by_handler.read(&mut message) != 0;
        if !read || message[0].event != EVENT_PAGEFAULT {
            continue;
        }
        let [message] = message;
        let fault = Fault {
            address: message.address,
            write: message.flags & (flag::WRITE | flag::WP) != 0,
            protected: message.flags & flag::WP != 0,
            thread: message.thread,
        };
        let alone = is_alone(fault.thread) && resolve::only_reads(pager, fault.address);
        if !alone && resolve::is_slow(pager, fault.address) {
            return fault;
        }
        was_alone = alone;
        resolve_one(pager, fault);
    }
}

/// Whether no other thread has faulted lately. A thread that does so now waits for at most one
/// read.
fn is_alone(thread: u32) -> bool {
    let before = LAST.swap(thread, Ordering::Relaxed);
    let row = match before == thread {
        true => IN_A_ROW.load(Ordering::Relaxed).saturating_add(1),
        false => 0,
    };
    IN_A_ROW.store(row, Ordering::Relaxed);
    row >= ALIKE
}

fn resolve_one(pager: &Pager, fault: Fault) {
    #[cfg(debug_assertions)]
    crate::paging::rule::check(pager, fault.thread, fault.address);
    if resolve::resolve(pager, fault) == resolve::Outcome::Foreign {
        // The program gave the memory back while its fault was on the way here: let the thread
        // retry.
        let page = crate::page::page_floor(fault.address);
        pager
            .uffds
            .by_handler
            .wake(page, page + crate::page::PAGE_BYTES as u64);
    }
}

/// In the child of a fork no thread reads.
pub fn forked() {
    READER.reset();
    STARTED.store(0, Ordering::Relaxed);
    IN_A_ROW.store(0, Ordering::Relaxed);
}
