//! System calls on buffers whose faults raise SIGBUS: brought in first and pinned during the call.
//!
//! Calls that may transfer less than requested (read, write and similar ones) are cut to what can
//! be pinned; their callers have to cope with that anyway. Memory whose faults go to handler
//! threads is passed through: the kernel waits for these by itself. Any call not listed here fails
//! with EFAULT on a missing page, which is why SIGBUS is not the default.

mod kept;
mod paths;
mod sockets;
mod transfers;

use super::{calls, libc_answer};
use core::ffi::{c_int, c_void};
pub use kept::whole;
use kept::{forward, parts, raw};
use transfers::List;

pub use transfers::{inner_pread, inner_pwrite, inner_read, inner_write, prepare};

/// `getrandom(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(to: *mut c_void, count: usize, flags: u32) -> isize {
    let _pin = whole(to as usize, count, true);
    forward!(
        c"getrandom",
        (to, count, flags),
        fn(*mut c_void, usize, u32) -> isize
    )
}

macro_rules! between_processes {
    ($(#[$doc:meta])* $name:ident, $text:literal, $arrives:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            process: c_int,
            local: List,
            local_count: usize,
            remote: List,
            remote_count: usize,
            flags: usize,
        ) -> isize {
            let own = process as u32 == crate::sys::process_id();
            let _local = parts(local, local_count, $arrives);
            let _remote = own.then(|| parts(remote, remote_count, !$arrives));
            forward!(
                $text,
                (process, local, local_count, remote, remote_count, flags),
                fn(c_int, List, usize, List, usize, usize) -> isize
            )
        }
    };
}

between_processes!(
    /// `process_vm_readv(2)`, for the buffers of this process.
    process_vm_readv, c"process_vm_readv", true
);
between_processes!(
    /// `process_vm_writev(2)`, for the buffers of this process.
    process_vm_writev, c"process_vm_writev", false
);

/// `syscall(2)`: calls that this library must see go the same way as libc's functions; buffers are
/// pinned for futexes, for which libc has no function, and for calls that read or write one buffer.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: i64,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> i64 {
    // SAFETY: the program's own call, with its arguments.
    if let Some(answer) = unsafe { calls::by_number(number, [a, b, c, d, e, f]) } {
        return libc_answer(answer) as i64;
    }
    let _pin = match number {
        // The kernel accesses the page as for writing.
        libc::SYS_futex => whole(a, 4, true),
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => whole(b, c, true),
        libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => whole(b, c, false),
        libc::SYS_getrandom => whole(a, b, true),
        _ => None,
    };
    libc_answer(raw(number, [a, b, c, d, e, f])) as i64
}
