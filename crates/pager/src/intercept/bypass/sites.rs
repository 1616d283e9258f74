//! libc's own calls, where faults raise SIGBUS: they are reported as well, so that those on missing pages
//! can be served. Most need not be: a call without pointers, or one that has done nothing when it answers
//! EFAULT. For these, the place in libc jumps to a piece of exempt code that makes the call, and that goes
//! back to the place, and so to the report, after EFAULT alone.

use super::arguments;
use crate::intercept::libc_code;
use crate::page::PAGE_BYTES;
use crate::sys::{self, entry};
use core::ffi::c_void;
use core::ops::Range;

/// Bytes of a piece.
const BYTES: usize = 32;
/// Pieces for which there is room; glibc 2.36 has 462 places.
const MOST: usize = 640;
/// Bytes for the pager's own entry and for calls that continue elsewhere, before the pieces.
const OTHERS: usize = PAGE_BYTES;

/// Calls with pointers that can be repeated after EFAULT: they look at all that they are given before they
/// change anything, or tell what is, or leave what they could not tell where it was. Not among them is
/// what takes something out of a queue, and what answers with a former value that it has replaced.
const REPEATABLE: &[i64] = &[
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_fstat,
    libc::SYS_lstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_access,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_chmod,
    libc::SYS_fchmodat,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_fchownat,
    libc::SYS_truncate,
    libc::SYS_utimensat,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_poll,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_ctl,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_times,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrusage,
    libc::SYS_getrlimit,
    libc::SYS_getitimer,
    libc::SYS_timer_gettime,
    libc::SYS_timerfd_gettime,
    libc::SYS_getgroups,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getcpu,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_sendto,
    libc::SYS_futex,
    libc::SYS_pipe,
    libc::SYS_pipe2,
    libc::SYS_socketpair,
    libc::SYS_getrandom,
    libc::SYS_rt_sigpending,
    libc::SYS_inotify_add_watch,
    libc::SYS_fcntl,
    libc::SYS_pread64,
    libc::SYS_mincore,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_memfd_create,
];

/// Makes the exempt code for libc's `code`: room for the pager's entry and for `returns` first, then the
/// pieces; and has libc's places jump to them. `None` if there is no memory near libc.
pub(super) fn lead_away(code: &Range<u64>) -> Option<Range<u64>> {
    let bytes = (OTHERS + MOST * BYTES).next_multiple_of(PAGE_BYTES);
    let block = sys::map(bytes)? as u64;
    let near = |place: u64| i32::try_from(place.cast_signed() - block.cast_signed()).is_ok();
    if !near(code.start) || !near(code.end) || !near(block + bytes as u64) {
        return None;
    }
    let whole = crate::page::page_floor(code.start)..crate::page::page_ceil(code.end);
    if !libc_code::protect(whole.start, whole.end, libc::PROT_WRITE) {
        return None;
    }
    // SAFETY: the block was just mapped, and nothing else uses it.
    unsafe {
        (block as *mut [u8; 3]).write(entry::ENTER);
    }
    let mut next = block + OTHERS as u64;
    let end = block + bytes as u64;
    // SAFETY: libc's code, which can be read and written now; this process has one thread here.
    let text = unsafe {
        core::slice::from_raw_parts_mut(code.start as *mut u8, (code.end - code.start) as usize)
    };
    let mut at = 0;
    while let Some(found) = find_call(text, at) {
        at = found + 2;
        if next + BYTES as u64 > end {
            break;
        }
        let Some((start, number)) = loaded(text, found) else {
            continue;
        };
        let place = code.start + start as u64;
        let load = &text[start..found];
        let Some(piece) = piece(next, place, load) else {
            continue;
        };
        if number != libc::SYS_rt_sigreturn
            && !arguments::has_none(number)
            && !REPEATABLE.contains(&number)
        {
            continue;
        }
        let Some(jump) = libc_code::jump(place, next) else {
            continue;
        };
        // SAFETY: the piece is in the block.
        unsafe { (next as *mut [u8; BYTES]).write(piece) };
        text[start..start + jump.len()].copy_from_slice(&jump);
        next += BYTES as u64;
    }
    libc_code::protect(whole.start, whole.end, 0);
    libc_code::protect(block, end, 0).then_some(block..end)
}

/// The next `syscall` in `text` from `from` on.
fn find_call(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let (place, bytes) = (rest.as_ptr().cast::<c_void>(), rest.len());
    // SAFETY: both ranges can be read.
    let found = unsafe { libc::memmem(place, bytes, [0x0f_u8, 0x05].as_ptr().cast(), 2) };
    (!found.is_null()).then(|| found as usize - text.as_ptr() as usize)
}

/// Where `mov eax, NUMBER` (or `mov rax, NUMBER`) starts right before the call, and the number.
fn loaded(text: &[u8], call: usize) -> Option<(usize, i64)> {
    const MOST_NUMBER: u32 = 512;
    let number = u32::from_le_bytes(text.get(call.checked_sub(4)?..call)?.try_into().ok()?);
    let short = call.checked_sub(5)?;
    let start = match text[short] {
        0xb8 => short,
        0xc0 if text.get(call.checked_sub(7)?..short)? == [0x48, 0xc7] => call - 7,
        _ => return None,
    };
    (number < MOST_NUMBER).then_some((start, i64::from(number)))
}

/// At `at`: the load, `syscall`, `cmp rax, -EFAULT`, `jne` behind the place, the load, `jmp` to its `syscall`.
fn piece(at: u64, place: u64, load: &[u8]) -> Option<[u8; BYTES]> {
    let call = place + load.len() as u64;
    let mut code = [0xcc_u8; BYTES];
    let mut length = 0;
    let mut add = |bytes: &[u8]| {
        code[length..length + bytes.len()].copy_from_slice(bytes);
        length += bytes.len();
        at + length as u64
    };
    add(load);
    let now = add(&[0x0f, 0x05, 0x48, 0x83, 0xf8, 0xf2]);
    let back = i32::try_from((call + 2).cast_signed() - (now + 6).cast_signed()).ok()?;
    add(&[0x0f, 0x85]);
    add(&back.to_le_bytes());
    let now = add(load);
    let again = libc_code::jump(now, call)?;
    add(&again);
    Some(code)
}
