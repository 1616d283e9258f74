//! libc's own functions: where they are, and how their code is changed.

use crate::page::{page_ceil, page_floor};
use crate::sys::call3;
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

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

/// Runs `work` while the code in `[start, end)` is writable: one change of the mapping for many patches.
pub(super) fn while_writable(start: u64, end: u64, work: impl FnOnce()) {
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
