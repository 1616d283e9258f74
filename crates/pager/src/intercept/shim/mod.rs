//! System calls on buffers whose faults raise SIGBUS: brought in first and pinned during the call.
//!
//! Reads and writes are made in parts that can be pinned. Memory whose faults go to handler threads is
//! passed through: the kernel waits for these by itself. Calls that are not listed here, and those that
//! libc makes inside, are served by their numbers (`bypass`); these functions spare frequent ones the
//! signal.

mod held;
mod kept;
mod paths;
mod sockets;
mod transfers;

use core::ffi::{c_int, c_void};
pub use held::Held;
use kept::{forward, parts};
pub use kept::{is_needed, whole};
use transfers::List;

pub use transfers::{
    inner_pread, inner_pwrite, inner_read, inner_write, prepare, transfer_by_number,
};

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
