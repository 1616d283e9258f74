//! What each thread has of its own: the bytes until its next sample.
//!
//! In the static block of thread-local storage (`initial-exec`), which all threads of libc have from their
//! start: no call, no allocation. Rust's stable language has no such variables without std.

use crate::draw;
use crate::sys;
use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .tbss.pagewise_sampler_thread,\"awT\",@nobits",
    ".globl pagewise_sampler_thread",
    ".hidden pagewise_sampler_thread",
    ".type pagewise_sampler_thread, @tls_object",
    ".size pagewise_sampler_thread, 24",
    ".balign 8",
    "pagewise_sampler_thread:",
    ".zero 24",
    ".popsection",
);

/// Offsets in the variable: bytes until the next sample, state of the random generator (0 before the
/// thread's first call), whether the thread is inside the sampler.
const COUNTDOWN: usize = 0;
const RANDOM: usize = 8;
const BUSY: usize = 16;

/// Reads a word of the thread's.
#[inline(always)]
fn get<const AT: usize>() -> u64 {
    let value;
    // SAFETY: reads the thread's own variable.
    unsafe {
        asm!("mov {0}, qword ptr [rip + pagewise_sampler_thread@GOTTPOFF]",
             "mov {0}, qword ptr fs:[{0} + {at}]",
             out(reg) value, at = const AT, options(nostack, preserves_flags, readonly));
    }
    value
}

/// Writes a word of the thread's.
#[inline(always)]
fn set<const AT: usize>(value: u64) {
    // SAFETY: writes the thread's own variable.
    unsafe {
        asm!("mov {0}, qword ptr [rip + pagewise_sampler_thread@GOTTPOFF]",
             "mov qword ptr fs:[{0} + {at}], {1}",
             out(reg) _, in(reg) value, at = const AT, options(nostack, preserves_flags));
    }
}

/// Counts allocated bytes. Whether the next sample may be among them: then nothing is counted yet, and
/// [`chosen`] decides.
#[inline(always)]
pub fn count(bytes: usize) -> bool {
    let left = get::<COUNTDOWN>();
    let is_due = left <= bytes as u64;
    if !is_due {
        set::<COUNTDOWN>(left - bytes as u64);
    }
    is_due
}

/// Whether a sample is among these bytes; if so, draws how far the next one is. `seed` makes the state
/// of a thread's generator before its first draw.
pub fn chosen(bytes: usize, period: u64, seed: impl FnOnce() -> u64) -> bool {
    let mut random = get::<RANDOM>();
    let mut left = get::<COUNTDOWN>();
    let is_first = random == 0;
    if is_first {
        random = seed() | 1;
        left = draw::gap(draw::next(&mut random), period) as u64;
    }
    let is_chosen = left <= bytes as u64;
    left = match is_chosen {
        true => draw::gap(draw::next(&mut random), period) as u64,
        false => left - bytes as u64,
    };
    // 0 would begin anew.
    set::<RANDOM>(random.max(1));
    set::<COUNTDOWN>(left);
    is_chosen
}

/// Random bits of this thread.
pub fn random() -> u64 {
    let mut random = get::<RANDOM>();
    if random == 0 {
        return sys::random();
    }
    let bits = draw::next(&mut random);
    set::<RANDOM>(random.max(1));
    bits
}

/// Marks the thread as inside the sampler while this lives; `None` if it was already: the sampler's own
/// calls, or a signal handler's in the middle of it, are not sampled.
pub fn enter() -> Option<Inside> {
    if get::<BUSY>() != 0 {
        return None;
    }
    set::<BUSY>(1);
    Some(Inside)
}

/// See [`enter`].
pub struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        set::<BUSY>(0);
    }
}
