//! Jumps in libc's own functions.
//!
//! malloc reaches the kernel through libc's `mmap`, `munmap`, `mremap`, `madvise`, `mprotect` and `brk` without
//! going through the symbol table, but at the same addresses. The functions are replaced entirely:
//! the new ones make the system call themselves, so no instruction of the old ones ever runs again
//! and none has to be moved. Each function is first checked to be the known wrapper of its system
//! call.

use super::libc_code::{self, function, of_libc, patch};
use super::{file_mappings, heap, memory, process};
use crate::page::{page_ceil, page_floor};
use crate::paging::{Pager, fatal};
use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use pagewise_wire::shared::{Delivery, capability};

/// Bytes of `jmp [rip]` and its target.
const JUMP: usize = 14;
/// Bytes in which the system call must be found. musl has more checks before it.
const WINDOW: usize = if cfg!(target_env = "musl") { 96 } else { 64 };

/// Functions to replace if faults raise SIGBUS, because stdio calls them inside libc.
fn inner_table() -> [(&'static CStr, i64, usize); 4] {
    use super::shim;
    [
        (
            c"read",
            libc::SYS_read,
            shim::inner_read as *const () as usize,
        ),
        (
            c"write",
            libc::SYS_write,
            shim::inner_write as *const () as usize,
        ),
        (
            c"pread64",
            libc::SYS_pread64,
            shim::inner_pread as *const () as usize,
        ),
        (
            c"pwrite64",
            libc::SYS_pwrite64,
            shim::inner_pwrite as *const () as usize,
        ),
    ]
}

/// Functions to replace: libc's name, the system call, ours.
fn table() -> [(&'static CStr, i64, usize); 8] {
    [
        (c"mmap", libc::SYS_mmap, memory::mmap as *const () as usize),
        (
            c"munmap",
            libc::SYS_munmap,
            memory::munmap as *const () as usize,
        ),
        (
            c"mremap",
            libc::SYS_mremap,
            memory::detoured_mremap as *const () as usize,
        ),
        (
            c"madvise",
            libc::SYS_madvise,
            memory::madvise as *const () as usize,
        ),
        (c"brk", libc::SYS_brk, heap::brk as *const () as usize),
        (
            c"mprotect",
            libc::SYS_mprotect,
            file_mappings::mprotect as *const () as usize,
        ),
        (
            c"execve",
            libc::SYS_execve,
            process::execve as *const () as usize,
        ),
        (
            c"_Exit",
            libc::SYS_exit_group,
            process::_exit as *const () as usize,
        ),
    ]
}

/// Replaces the functions that can be replaced. musl's `brk` always fails. Any other failure is
/// reported; malloc's own mappings are then not managed. Returns whether libc's `exit` ends in ours.
pub fn install(pager: &Pager) -> bool {
    let (mut all, mut exits) = (true, false);
    for (name, number, ours) in table() {
        let place: *mut u8 = of_libc(name).cast();
        let replaced = !place.is_null() && is_wrapper(place, number) && replace(place, ours);
        exits |= replaced && name == c"_Exit";
        if replaced && name == c"mremap" {
            note_unused(place as u64, number);
        }
        let spared = [c"execve", c"_Exit"].contains(&name);
        all &= replaced || spared || (cfg!(target_env = "musl") && name == c"brk");
    }
    if pager.choices.delivery.load(Ordering::Relaxed) & 0xff == Delivery::Signal as u32 {
        install_inner();
    }
    if all {
        pager.add_capability(capability::LIBC_DETOUR);
    } else {
        fatal::say(format_args!(
            "this libc's memory functions are not as expected: memory that malloc maps internally is not managed"
        ));
    }
    exits
}

/// Code of libc that never runs again, from the first to behind the last byte: the rest of its
/// `mremap`, which is long.
static UNUSED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Notes the rest of the function at `place`, of which the first bytes are replaced: its length is that
/// of its symbol, and where that is not known (musl), it has at least what comes before its system call.
fn note_unused(place: u64, number: i64) {
    let bytes = match cfg!(target_env = "musl") {
        false => function(c"mremap").map_or(0, <[u8]>::len),
        // SAFETY: these bytes have been looked at by `is_wrapper`.
        true => unsafe { core::slice::from_raw_parts(place as *const u8, WINDOW) }
            .windows(5)
            .position(|window| window[0] == 0xb8 && window[1..] == (number as u32).to_le_bytes())
            .unwrap_or(0),
    };
    UNUSED[0].store(place + JUMP as u64, Ordering::Relaxed);
    UNUSED[1].store(place + bytes.max(JUMP) as u64, Ordering::Relaxed);
}

/// Code of libc that never runs again.
pub(super) fn unused() -> Range<u64> {
    let [start, end] = UNUSED.each_ref().map(|bound| bound.load(Ordering::Relaxed));
    start..end
}

/// Replaces the functions that stdio calls inside libc. musl's stdio makes its own system calls.
pub(super) fn install_inner() {
    if cfg!(target_env = "musl") {
        fatal::say(format_args!(
            "musl's stdio on large arrays can fail with EFAULT by SIGBUS; --delivery fd serves it"
        ));
        return;
    }
    for (name, number, ours) in inner_table() {
        let place: *mut u8 = of_libc(name).cast();
        let replaced = !place.is_null() && is_wrapper(place, number) && replace(place, ours);
        if !replaced {
            fatal::say(format_args!(
                "this libc's {name:?} is not as expected: stdio on large arrays can fail with \
                 EFAULT by SIGBUS; --delivery fd serves it"
            ));
        }
    }
}

/// Whether the function at `place` loads the number of its system call and makes it.
fn is_wrapper(place: *const u8, number: i64) -> bool {
    // SAFETY: a function of libc is in a mapped text segment; the window is cut at the end of the
    // page.
    let code = unsafe {
        let room = page_ceil(place as u64 + 1) - place as u64;
        core::slice::from_raw_parts(place, WINDOW.min(room as usize).max(JUMP))
    };
    let load = (number as u32).to_le_bytes();
    // glibc's `_Exit` keeps the number in another register at first.
    let register = match number {
        libc::SYS_exit_group => 0xf8,
        _ => 0xff,
    };
    let found = match number {
        // Compilers produce a zero with `xor eax, eax`.
        0 => code.windows(2).position(|window| window == [0x31, 0xc0]),
        _ => code
            .windows(5)
            .position(|window| window[0] & register == 0xb8 && window[1..] == load),
    };
    let Some(at) = found else {
        return false;
    };
    let call = code[at..]
        .windows(2)
        .position(|window| window == [0x0f, 0x05]);
    // A return in the first bytes would mean a function shorter than the jump.
    call.is_some() && !code[..JUMP].contains(&0xc3)
}

fn replace(place: *mut u8, ours: usize) -> bool {
    let mut jump = [0_u8; JUMP];
    jump[..2].copy_from_slice(&[0xff, 0x25]);
    jump[6..].copy_from_slice(&(ours as u64).to_le_bytes());
    patch(place, &jump)
}

/// Runs `work` while libc's code is writable from the first to the last function of [`table`]: one
/// change of the mapping for all patches, most of which are there.
pub(super) fn while_writable(work: impl FnOnce()) {
    let places = table().map(|(name, ..)| of_libc(name));
    let found = || places.iter().filter(|place| !place.is_null());
    let first = found().map(|place| page_floor(*place as u64)).min();
    let last = found()
        .map(|place| page_ceil(*place as u64 + JUMP as u64))
        .max();
    libc_code::while_writable(first.unwrap_or(0), last.unwrap_or(0), work);
}
