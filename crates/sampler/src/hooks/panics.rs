//! Nothing here panics on purpose. If it does nevertheless, the process ends with a signal.

use core::panic::PanicInfo;

#[panic_handler]
fn panicked(_: &PanicInfo) -> ! {
    // SAFETY: takes nothing, and does not return.
    unsafe { libc::abort() }
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
