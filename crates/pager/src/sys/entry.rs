//! The instruction with which the pager enters the kernel, and the kernel's switch that reports calls
//! made by any other (Syscall User Dispatch, Linux 5.11; Documentation/admin-guide/syscall-user-dispatch.rst).
//!
//! The kernel exempts one range of code. That is libc's, whose calls of interest the pager replaces, so
//! the pager's own instruction must lie in that range as well. Until it does, the one below is used.

use core::arch::global_asm;
use core::ffi::c_void;
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

// Only rax, rcx and r11 change. In a child with another stack, the word at its top is the place where
// execution continues.
global_asm!(
    ".globl pagewise_enter",
    ".hidden pagewise_enter",
    ".type pagewise_enter, @function",
    "pagewise_enter:",
    "syscall",
    "ret",
    ".size pagewise_enter, . - pagewise_enter",
);

unsafe extern "C" {
    fn pagewise_enter();
}

/// `syscall` and `ret`.
pub const ENTER: [u8; 3] = [0x0f, 0x05, 0xc3];

/// Where these two instructions are.
pub static ENTRY: AtomicPtr<c_void> = AtomicPtr::new(pagewise_enter as *const () as *mut c_void);

/// The exempt code; the length is 0 before [`exempt`].
pub static EXEMPT_START: AtomicU64 = AtomicU64::new(0);
/// See [`EXEMPT_START`].
pub static EXEMPT_BYTES: AtomicU64 = AtomicU64::new(0);

/// `PR_SET_SYSCALL_USER_DISPATCH` (linux/prctl.h).
pub const SET_DISPATCH: usize = 59;
/// `PR_SYS_DISPATCH_ON`.
pub const DISPATCH_ON: usize = 1;

/// Uses the two instructions at `entry` from now on, and exempts `code`, which contains them.
pub fn exempt(code: &Range<u64>, entry: u64) {
    ENTRY.store(entry as *mut c_void, Ordering::Release);
    EXEMPT_START.store(code.start, Ordering::Relaxed);
    EXEMPT_BYTES.store(code.end - code.start, Ordering::Release);
}

/// From now on, each call that this thread makes by another instruction raises SIGSYS instead. Children
/// and new threads start without. Returns whether the kernel can do that; nothing happens before
/// [`exempt`].
pub fn guard_thread() -> bool {
    let bytes = EXEMPT_BYTES.load(Ordering::Acquire) as usize;
    let start = EXEMPT_START.load(Ordering::Relaxed) as usize;
    // SAFETY: plain arguments: without a selector, the kernel reads no memory of this process.
    bytes == 0
        || unsafe {
            super::call6(
                libc::SYS_prctl,
                SET_DISPATCH,
                DISPATCH_ON,
                start,
                bytes,
                0,
                0,
            ) == 0
        }
}
