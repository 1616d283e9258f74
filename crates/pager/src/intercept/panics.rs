//! A panic ends the process with a line that says where and why.
//!
//! It may come in a signal handler, or on a thread of the pager, which has no thread-local storage: std's
//! way of panicking would end such a thread by SIGSEGV, without a word. Nothing here needs more than a
//! stack.

use super::allocator;
use crate::paging::fatal;
use crate::start::Refusal;
use crate::sys::{self, signals};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether the pager is about to start, so that nothing of the program is lost yet.
static STARTING: AtomicBool = AtomicBool::new(false);

/// The pager starts, or has started.
pub(super) fn starting(now: bool) {
    STARTING.store(now, Ordering::Relaxed);
}

#[panic_handler]
fn panicked(info: &PanicInfo) -> ! {
    if STARTING.load(Ordering::Relaxed) && allocator::has_failed() {
        let why = Refusal::NoMemory.words();
        fatal::say(format_args!("the program is not started: {why}"));
        sys::end(1);
    }
    let (file, line) = info
        .location()
        .map_or(("?", 0), |place| (place.file(), place.line()));
    let (thread, what) = (sys::thread_id(), info.message());
    fatal::say(format_args!(
        "an error in pagewise itself, on thread {thread}, at {file}:{line}: {what}. The program cannot continue and ends with SIGABRT; please report this line."
    ));
    signals::die_by(libc::SIGABRT)
}

// What the compiled parts of Rust's library name although nothing here unwinds. Hidden: the program may
// have its own.
core::arch::global_asm!(
    ".globl rust_eh_personality, _Unwind_Resume",
    ".hidden rust_eh_personality, _Unwind_Resume",
    ".type rust_eh_personality, @function",
    ".type _Unwind_Resume, @function",
    "rust_eh_personality:",
    "_Unwind_Resume:",
    "ud2",
    ".size rust_eh_personality, . - rust_eh_personality",
    ".size _Unwind_Resume, . - _Unwind_Resume",
);
