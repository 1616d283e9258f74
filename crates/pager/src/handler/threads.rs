//! Handler threads: faults read from the userfaultfd.
//!
//! One thread reads at a time (all of them in `read` would all be woken by each fault). What needs
//! no disk it resolves itself and reads on; before it turns to what does, it lets the next thread
//! read. So a fault is never handed over, and waking the next reader is off the fault's path.

use crate::core::Pager;
use crate::core::resolve::{self, Fault};
use crate::sys::uffd::{EVENT_PAGEFAULT, Message, flag};
use crate::sys::{Lock, thread};

/// Threads: faults that may wait for the disk at a time.
const THREADS: usize = 8;

static READER: Lock = Lock::new();

/// Starts them, where the kernel lets a process handle its own faults so.
pub fn start(pager: &'static Pager) -> bool {
    if !pager.by_handler.is_open() {
        return true;
    }
    let argument = core::ptr::from_ref(pager) as usize;
    (0..THREADS).all(|_| thread::start(run, argument))
}

extern "C" fn run(pager: usize) -> ! {
    // SAFETY: `start` passed a reference that lives for ever.
    let pager = unsafe { &*(pager as *const Pager) };
    loop {
        READER.acquire();
        let fault = read_until_slow(pager);
        READER.release();
        resolve_one(pager, fault);
    }
}

/// Resolves what is quick; the first fault that is not.
fn read_until_slow(pager: &Pager) -> Fault {
    loop {
        let mut message = [Message::default()];
        if pager.by_handler.read(&mut message) == 0 || message[0].event != EVENT_PAGEFAULT {
            continue;
        }
        let [message] = message;
        let fault = Fault {
            address: message.address,
            write: message.flags & (flag::WRITE | flag::WP) != 0,
            protected: message.flags & flag::WP != 0,
            thread: message.thread,
        };
        if resolve::is_slow(pager, fault.address) {
            return fault;
        }
        resolve_one(pager, fault);
    }
}

fn resolve_one(pager: &Pager, fault: Fault) {
    if resolve::resolve(pager, fault) == resolve::Outcome::Foreign {
        // Given back by the program while its fault was on the way here: let the thread find out.
        let page = crate::page::page_floor(fault.address);
        pager
            .by_handler
            .wake(page, page + crate::page::PAGE_BYTES as u64);
    }
}

/// In the child of a fork nobody reads.
pub fn forked() {
    READER.reset();
}
