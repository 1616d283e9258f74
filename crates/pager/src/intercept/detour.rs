//! Jumps in libc's own functions.
//!
//! malloc reaches the kernel through libc's `mmap`, `munmap`, `mremap`, `madvise`, `mprotect` and `brk` without
//! going through the symbol table, but at the same addresses. The functions are replaced entirely:
//! the new ones make the system call themselves, so no instruction of the old ones ever runs again
//! and none has to be moved. Each function is first checked to be the known wrapper of its system
//! call.

use super::{file_mappings, heap, memory, process};
use crate::page::{page_ceil, page_floor};
use crate::paging::{Pager, fatal};
use crate::sys::call3;
use core::ffi::{CStr, c_void};
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
    if pager.delivery.load(Ordering::Relaxed) & 0xff == Delivery::Signal as u32 {
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

/// libc's own function or variable `name`: allocators and profilers may define one of that name in front
/// of it, as tcmalloc does `mmap`, but without libc's version. Null if there is none. Where it is found,
/// nothing is allocated: the program's malloc may not work before `main`.
#[cfg(not(target_env = "musl"))]
pub(super) fn of_libc(name: &CStr) -> *mut c_void {
    let version = match name == c"_Fork" {
        true => c"GLIBC_2.34",
        false => c"GLIBC_2.2.5",
    };
    // SAFETY: looks up a constant name after this library.
    unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()) }
}

/// musl's symbols have no versions.
#[cfg(target_env = "musl")]
pub(super) fn of_libc(name: &CStr) -> *mut c_void {
    // SAFETY: looks up a constant name after this library.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
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

/// The code of libc's function `name`, with the length given by its symbol.
#[cfg(not(target_env = "musl"))]
pub(super) fn function(name: &CStr) -> Option<&'static [u8]> {
    /// `RTLD_DL_SYMENT` of dlfcn.h.
    const WITH_SYMBOL: i32 = 1;
    unsafe extern "C" {
        fn dladdr1(
            place: *const core::ffi::c_void,
            found: *mut libc::Dl_info,
            extra: *mut *const libc::Elf64_Sym,
            flags: i32,
        ) -> i32;
    }
    let place = of_libc(name);
    // SAFETY: both results are in this frame, and the symbol is in libc, which remains mapped.
    unsafe {
        let mut found: libc::Dl_info = core::mem::zeroed();
        let mut symbol = core::ptr::null();
        let known = !place.is_null()
            && dladdr1(place, &raw mut found, &raw mut symbol, WITH_SYMBOL) != 0
            && !symbol.is_null();
        known.then(|| core::slice::from_raw_parts(place as *const u8, (*symbol).st_size as usize))
    }
}

/// The code at the start of libc's function `name`: musl does not record its length. The code after
/// a fork contains no other fork.
#[cfg(target_env = "musl")]
pub(super) fn function(name: &CStr) -> Option<&'static [u8]> {
    /// Half of musl 1.2.3's `_Fork`, which has its system call at byte 66.
    const BYTES: usize = 128;
    let place = of_libc(name);
    // SAFETY: neither the function nor libc's text, which remains mapped, ends within these bytes.
    unsafe { (!place.is_null()).then(|| core::slice::from_raw_parts(place as *const u8, BYTES)) }
}

/// Pages of libc's code that are currently writable.
static WRITABLE: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Runs `work` while libc's code is writable from the first to the last function of [`table`]: one
/// change of the mapping for all patches, most of which are there.
pub(super) fn while_writable(work: impl FnOnce()) {
    let places = table().map(|(name, ..)| of_libc(name));
    let found = || places.iter().filter(|place| !place.is_null());
    let first = found().map(|place| page_floor(*place as u64)).min();
    let last = found()
        .map(|place| page_ceil(*place as u64 + JUMP as u64))
        .max();
    let (start, end) = (first.unwrap_or(0), last.unwrap_or(0));
    let opened = start < end && protect(start, end, libc::PROT_WRITE);
    if opened {
        WRITABLE[0].store(start, Ordering::Relaxed);
        WRITABLE[1].store(end, Ordering::Relaxed);
    }
    work();
    if opened {
        WRITABLE[1].store(0, Ordering::Relaxed);
        protect(start, end, 0);
    }
}

/// Makes libc's code, or the pager's beside it, readable and executable, and adds the protection in `more`.
pub(super) fn protect(start: u64, end: u64, more: i32) -> bool {
    let protection = libc::PROT_READ | libc::PROT_EXEC | more;
    let (start, bytes) = (start as usize, (end - start) as usize);
    // SAFETY: the pages are libc's text, and executable before, while and after.
    unsafe { call3(libc::SYS_mprotect, start, bytes, protection as usize) == 0 }
}

/// `jmp` from `from` to `to`; `None` if that is too far.
pub(super) fn jump(from: u64, to: u64) -> Option<[u8; 5]> {
    let distance = to.cast_signed() - (from + 5).cast_signed();
    let mut jump = [0xe9, 0, 0, 0, 0];
    jump[1..].copy_from_slice(&i32::try_from(distance).ok()?.to_le_bytes());
    Some(jump)
}

/// Writes `code` over libc's at `place`; returns whether the kernel allowed it.
pub(super) fn patch(place: *mut u8, code: &[u8]) -> bool {
    let start = page_floor(place as u64);
    let end = page_ceil(place as u64 + code.len() as u64);
    let [from, to] = WRITABLE
        .each_ref()
        .map(|bound| bound.load(Ordering::Relaxed));
    let is_writable = from <= start && end <= to;
    if !is_writable && !protect(start, end, libc::PROT_WRITE) {
        return false;
    }
    // SAFETY: the pages are writable now, the process has one thread of the program (this runs
    // before `main`), and no thread of the pager.
    unsafe { core::ptr::copy_nonoverlapping(code.as_ptr(), place, code.len()) };
    if !is_writable {
        protect(start, end, 0);
    }
    true
}
