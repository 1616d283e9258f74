//! The library's own memory: never the program's malloc, never managed, allocated only at the
//! start. A test with [`crate::inject`] ensures that nothing allocates later, in particular in a
//! handler.

use crate::paging::fatal;
use crate::sys;
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether an allocation ends the process.
static SEALED: AtomicBool = AtomicBool::new(false);

/// Whether the kernel has given no memory.
static FAILED: AtomicBool = AtomicBool::new(false);

fn failed() -> *mut u8 {
    FAILED.store(true, Ordering::Relaxed);
    core::ptr::null_mut()
}

/// Whether an allocation has failed: the cause of the panic that follows.
pub fn has_failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// From now on, no allocation is allowed.
pub fn seal() {
    SEALED.store(true, Ordering::Release);
}

/// Takes memory from the kernel, and gives back only large blocks: small ones live as long as the
/// process, except scraps of text at the start.
struct Bump {
    next: AtomicUsize,
    end: AtomicUsize,
}

/// Bytes taken at a time.
const PART: usize = 256 << 10;

/// Whether such a block is a mapping of its own.
fn is_own_mapping(layout: Layout) -> bool {
    layout.size() >= PART / 4 || layout.align() > 4096
}

#[global_allocator]
static ALLOCATOR: Bump = Bump {
    next: AtomicUsize::new(0),
    end: AtomicUsize::new(0),
};

// SAFETY: `alloc` returns each address once: large blocks are mappings of their own, small ones are
// cut off a part by a compare-and-swap of `next` that cannot pass `end` unseen (a new part is
// published with `end` first, and is elsewhere, so a stale pair never fits).
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if SEALED.load(Ordering::Relaxed) {
            SEALED.store(false, Ordering::Relaxed);
            fatal::say(format_args!(
                "{} bytes are allocated after the start",
                layout.size()
            ));
            sys::signals::die_by(libc::SIGABRT);
        }
        if is_own_mapping(layout) {
            return sys::map(layout.size()).unwrap_or_else(failed);
        }
        loop {
            let next = self.next.load(Ordering::Acquire);
            let start = next.next_multiple_of(layout.align());
            let end = self.end.load(Ordering::Acquire);
            let fits = next != 0 && start + layout.size() <= end && end - next <= PART;
            if fits {
                let after = start + layout.size();
                let taken =
                    self.next
                        .compare_exchange(next, after, Ordering::AcqRel, Ordering::Acquire);
                if taken.is_ok() {
                    return start as *mut u8;
                }
                continue;
            }
            let Some(part) = sys::map(PART) else {
                return failed();
            };
            let part = part as usize;
            self.end.store(part + PART, Ordering::Release);
            self.next.store(part, Ordering::Release);
        }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if is_own_mapping(layout) {
            // SAFETY: `alloc` mapped it for this layout, and its owner no longer uses it.
            unsafe { sys::unmap(place, layout.size()) };
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // Fresh from the kernel, and returned only once: zero. SAFETY: as for `alloc`.
        unsafe { self.alloc(layout) }
    }
}
