//! Mappings of files that the pager can manage.

use super::set_errno;
use crate::page::page_ceil;
use crate::paging::PAGER;
use crate::paging::files::adopt::{Adopted, Mapping};
use crate::sys::{self, Answer, call3};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use pagewise_policy::Role;

/// Prefault, and prefault writable (Linux 5.14).
pub(super) const MADV_POPULATE_READ: c_int = 22;
pub(super) const MADV_POPULATE_WRITE: c_int = 23;

/// Flags beside private or shared that change nothing about the mapping's contents. What replaces
/// other memory (`MAP_FIXED`) is left out, as that must happen in one step.
const PLAIN: c_int = libc::MAP_POPULATE
    | libc::MAP_NONBLOCK
    | libc::MAP_NORESERVE
    | libc::MAP_FIXED_NOREPLACE
    | libc::MAP_32BIT
    | libc::MAP_DENYWRITE
    | libc::MAP_EXECUTABLE;

/// Whether a mapping made with these arguments may be managed.
pub(super) fn may_be_managed(length: usize, protection: c_int, flags: c_int, fd: c_int) -> bool {
    let least = PAGER.files.least.load(Ordering::Relaxed);
    let large = least != 0 && length as u64 >= least;
    let sharing = flags & libc::MAP_TYPE;
    let known = [
        libc::MAP_PRIVATE,
        libc::MAP_SHARED,
        libc::MAP_SHARED_VALIDATE,
    ];
    large
        && fd >= 0
        && protection == libc::PROT_READ
        && known.contains(&sharing)
        && flags & !(libc::MAP_TYPE | PLAIN) == 0
}

/// Manages the mapping at `answer` if its file allows that; otherwise it stays as it is, filled if
/// the program wanted that.
pub(super) fn manage(
    answer: Answer,
    length: usize,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> Answer {
    let start = answer as u64;
    let end = page_ceil(start + length as u64);
    let mapping = Mapping {
        start,
        bytes: length as u64,
        file: fd,
        offset: offset.cast_unsigned(),
        is_shared: flags & libc::MAP_TYPE != libc::MAP_PRIVATE,
    };
    let fills = flags & libc::MAP_POPULATE != 0;
    match PAGER.manage_file(&mapping) {
        Adopted::Managed if fills => PAGER.prefetch(start, end),
        Adopted::Left if fills => {
            // SAFETY: the program wanted the mapping, which was just made, to be filled.
            unsafe { sys::advise(start, end, MADV_POPULATE_READ) };
        }
        Adopted::Managed | Adopted::Left => {}
        Adopted::Lost => {
            // SAFETY: the program does not know the mapping yet.
            unsafe { call3(libc::SYS_munmap, start as usize, (end - start) as usize, 0) };
            return -(libc::ENOMEM as Answer);
        }
    }
    answer
}

/// Before a call that may give `[address, address + length)` other access rights or another place.
pub(super) fn before_change(address: *mut c_void, length: usize) {
    if PAGER.is_started() {
        let start = address as u64;
        PAGER.give_back_files(start, page_ceil(start.saturating_add(length as u64)));
    }
}

/// `mprotect(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(address: *mut c_void, length: usize, protection: c_int) -> c_int {
    if protection != libc::PROT_READ {
        before_change(address, length);
    }
    let number = protection as usize;
    let answer = {
        let _change = PAGER.changes.enter();
        // SAFETY: the program's own call.
        unsafe { call3(libc::SYS_mprotect, address as usize, length, number) }
    };
    opened(address, length, protection, answer);
    super::libc_answer(answer) as c_int
}

/// After a change of the protection that was answered so.
fn opened(address: *mut c_void, length: usize, protection: c_int, answer: Answer) {
    if answer == 0 && protection != libc::PROT_NONE {
        let start = address as u64;
        PAGER.open_up(start, page_ceil(start.saturating_add(length as u64)));
    }
}

/// `pkey_mprotect(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pkey_mprotect(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    key: c_int,
) -> c_int {
    before_change(address, length);
    let change = PAGER.changes.enter();
    // SAFETY: the program's own call.
    let answer = unsafe {
        sys::call6(
            libc::SYS_pkey_mprotect,
            address as usize,
            length,
            protection as usize,
            key as usize,
            0,
            0,
        )
    };
    drop(change);
    opened(address, length, protection, answer);
    super::libc_answer(answer) as c_int
}

/// `remap_file_pages(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remap_file_pages(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    page: usize,
    flags: c_int,
) -> c_int {
    before_change(address, length);
    // SAFETY: the program's own call.
    let answer = unsafe {
        sys::call6(
            libc::SYS_remap_file_pages,
            address as usize,
            length,
            protection as usize,
            page,
            flags as usize,
            0,
        )
    };
    super::libc_answer(answer) as c_int
}

/// The answer to an advice that mapped files take differently from other memory; `None` for any
/// other.
pub(super) fn advised(start: u64, end: u64, advice: c_int) -> Option<c_int> {
    if !PAGER.has_file(start, end) {
        return None;
    }
    match advice {
        libc::MADV_FREE | libc::MADV_WIPEONFORK | MADV_POPULATE_WRITE => {
            set_errno(libc::EINVAL);
            Some(-1)
        }
        // The others tell policies nothing that they do not see.
        libc::MADV_RANDOM | libc::MADV_NORMAL => {
            let role = match advice {
                libc::MADV_RANDOM => Role::Random,
                _ => Role::Normal,
            };
            PAGER.hint(start, end, role);
            Some(0)
        }
        libc::MADV_WILLNEED => {
            PAGER.prefetch(start, end);
            Some(0)
        }
        _ => None,
    }
}
