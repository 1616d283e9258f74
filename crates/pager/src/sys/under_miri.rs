//! The system calls that Miri's tests make (`check-models miri`), implemented with functions of
//! libc: Miri has no kernel and executes no machine instructions.

use super::Answer;
use core::ptr::with_exposed_provenance_mut as pointer;

/// As the real one, for the calls supported here.
///
/// # Safety
/// As for the call itself: pointers must be valid for its use of them.
pub unsafe fn call6(
    number: i64,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> Answer {
    // SAFETY: the caller guarantees the arguments.
    unsafe {
        match number {
            libc::SYS_futex => libc::syscall(
                number,
                pointer::<u32>(a),
                b as i32,
                c as u32,
                pointer::<libc::timespec>(d),
            ) as Answer,
            libc::SYS_gettid => libc::gettid() as Answer,
            libc::SYS_mmap => {
                // Address space without a claim on swap is ordinary memory here.
                let flags = d as i32 & !libc::MAP_NORESERVE;
                let place = libc::mmap(pointer(a), b, c as i32, flags, e as i32, f as i64);
                place.expose_provenance() as Answer
            }
            libc::SYS_munmap => libc::munmap(pointer(a), b) as Answer,
            // Only this advice has a visible effect: private memory reads as zeros afterwards.
            libc::SYS_madvise if c as i32 == libc::MADV_DONTNEED => {
                pointer::<u8>(a).write_bytes(0, b);
                0
            }
            libc::SYS_madvise => 0,
            _ => panic!("Miri's tests made no system call {number} so far: it belongs here"),
        }
    }
}
