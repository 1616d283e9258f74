//! Reads and writes: of one or several buffers, at the file position or at an offset.

use super::kept::{buffer, forward, parts, raw};
use crate::intercept::libc_answer;
use crate::sys::Answer;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// `read(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, to: *mut c_void, count: usize) -> isize {
    let (bytes, pin) = buffer(to as usize, count, true);
    if pin.is_none() {
        return forward!(
            c"read",
            (fd, to, count),
            fn(c_int, *mut c_void, usize) -> isize
        );
    }
    libc_answer(cancellable(
        libc::SYS_read,
        [fd as usize, to as usize, bytes, 0, 0, 0],
    ))
}

/// `write(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, from: *const c_void, count: usize) -> isize {
    let (bytes, pin) = buffer(from as usize, count, false);
    if pin.is_none() {
        return forward!(
            c"write",
            (fd, from, count),
            fn(c_int, *const c_void, usize) -> isize
        );
    }
    let mut done = 0;
    // Programs expect a write to a file to be complete: the rest follows.
    let mut answer = cancellable(
        libc::SYS_write,
        [fd as usize, from as usize, bytes, 0, 0, 0],
    );
    drop(pin);
    while answer > 0 && done + (answer as usize) < count {
        done += answer as usize;
        let next = from as usize + done;
        let (bytes, _pin) = buffer(next, count - done, false);
        answer = cancellable(libc::SYS_write, [fd as usize, next, bytes, 0, 0, 0]);
    }
    match (done, answer) {
        (0, answer) => libc_answer(answer),
        (done, answer) => done as isize + answer.max(0),
    }
}

/// The address of libc's flag for a single-threaded process (glibc 2.32).
static SINGLE_THREADED: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// Looks up what the functions below need.
pub fn prepare() {
    // SAFETY: dlsym looks up a constant name.
    let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    SINGLE_THREADED.store(place.cast(), Ordering::Relaxed);
}

/// Makes the call as in libc's cancellation points: the thread may be cancelled while it waits.
fn cancellable(number: i64, arguments: [usize; 6]) -> Answer {
    unsafe extern "C" {
        fn pthread_setcanceltype(new: c_int, old: *mut c_int) -> c_int;
    }
    const ASYNCHRONOUS: c_int = 1;
    let single = SINGLE_THREADED.load(Ordering::Relaxed);
    // SAFETY: libc's own variable.
    if !single.is_null() && unsafe { single.read_volatile() } != 0 {
        return raw(number, arguments);
    }
    let mut former = 0;
    // SAFETY: the former type lives through both calls.
    unsafe {
        pthread_setcanceltype(ASYNCHRONOUS, &raw mut former);
        let answer = raw(number, arguments);
        pthread_setcanceltype(former, &raw mut former);
        answer
    }
}

/// The function to which libc's `read` jumps if faults raise SIGBUS: stdio calls `read` inside
/// libc.
pub unsafe extern "C" fn inner_read(fd: c_int, to: *mut c_void, count: usize) -> isize {
    let (bytes, _pin) = buffer(to as usize, count, true);
    libc_answer(cancellable(
        libc::SYS_read,
        [fd as usize, to as usize, bytes, 0, 0, 0],
    ))
}

/// The function to which libc's `write` then jumps. Its callers continue after a partial write.
pub unsafe extern "C" fn inner_write(fd: c_int, from: *const c_void, count: usize) -> isize {
    let (bytes, _pin) = buffer(from as usize, count, false);
    libc_answer(cancellable(
        libc::SYS_write,
        [fd as usize, from as usize, bytes, 0, 0, 0],
    ))
}

/// The function to which libc's `pread` then jumps.
pub unsafe extern "C" fn inner_pread(fd: c_int, to: *mut c_void, count: usize, at: i64) -> isize {
    let (bytes, _pin) = buffer(to as usize, count, true);
    libc_answer(cancellable(
        libc::SYS_pread64,
        [fd as usize, to as usize, bytes, at as usize, 0, 0],
    ))
}

/// The function to which libc's `pwrite` then jumps.
pub unsafe extern "C" fn inner_pwrite(
    fd: c_int,
    from: *const c_void,
    count: usize,
    at: i64,
) -> isize {
    let (bytes, _pin) = buffer(from as usize, count, false);
    libc_answer(cancellable(
        libc::SYS_pwrite64,
        [fd as usize, from as usize, bytes, at as usize, 0, 0],
    ))
}

macro_rules! at_offset {
    ($(#[$doc:meta])* $name:ident, $alias:ident, $text:literal, $call:expr, $pointer:ty, $write:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, at: $pointer, count: usize, offset: i64) -> isize {
            let (bytes, pin) = buffer(at as usize, count, $write);
            if pin.is_none() {
                return forward!($text, (fd, at, count, offset), fn(c_int, $pointer, usize, i64) -> isize);
            }
            libc_answer(cancellable($call, [fd as usize, at as usize, bytes, offset as usize, 0, 0]))
        }

        /// The same under its other name.
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $alias(fd: c_int, at: $pointer, count: usize, offset: i64) -> isize {
            // SAFETY: the caller's arguments.
            unsafe { $name(fd, at, count, offset) }
        }
    };
}

at_offset!(
    /// `pread(2)`.
    pread, pread64, c"pread", libc::SYS_pread64, *mut c_void, true
);
at_offset!(
    /// `pwrite(2)`.
    pwrite, pwrite64, c"pwrite", libc::SYS_pwrite64, *const c_void, false
);

pub type List = *const libc::iovec;

macro_rules! scattered {
    ($(#[$doc:meta])* $name:ident, $text:literal, $call:expr, $write:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, list: List, count: c_int) -> isize {
            match parts(list, usize::try_from(count).unwrap_or(0), $write) {
                None => forward!($text, (fd, list, count), fn(c_int, List, c_int) -> isize),
                Some(kept) => libc_answer(cancellable(
                    $call,
                    [fd as usize, kept.list.as_ptr() as usize, kept.count, 0, 0, 0],
                )),
            }
        }
    };
}

scattered!(
    /// `readv(2)`.
    readv, c"readv", libc::SYS_readv, true
);
scattered!(
    /// `writev(2)`.
    writev, c"writev", libc::SYS_writev, false
);

macro_rules! scattered_at_offset {
    ($(#[$doc:meta])* $name:ident, $alias:ident, $text:literal, $call:expr, $write:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, list: List, count: c_int, offset: i64) -> isize {
            match parts(list, usize::try_from(count).unwrap_or(0), $write) {
                None => forward!($text, (fd, list, count, offset), fn(c_int, List, c_int, i64) -> isize),
                Some(kept) => libc_answer(cancellable(
                    $call,
                    [fd as usize, kept.list.as_ptr() as usize, kept.count, offset as usize, 0, 0],
                )),
            }
        }

        /// The same under its other name.
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $alias(fd: c_int, list: List, count: c_int, offset: i64) -> isize {
            // SAFETY: the caller's arguments.
            unsafe { $name(fd, list, count, offset) }
        }
    };
}

scattered_at_offset!(
    /// `preadv(2)`.
    preadv, preadv64, c"preadv", libc::SYS_preadv, true
);
scattered_at_offset!(
    /// `pwritev(2)`.
    pwritev, pwritev64, c"pwritev", libc::SYS_pwritev, false
);

macro_rules! scattered_with_flags {
    ($(#[$doc:meta])* $name:ident, $alias:ident, $text:literal, $call:expr, $write:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, list: List, count: c_int, offset: i64, flags: c_int) -> isize {
            match parts(list, usize::try_from(count).unwrap_or(0), $write) {
                None => forward!(
                    $text,
                    (fd, list, count, offset, flags),
                    fn(c_int, List, c_int, i64, c_int) -> isize
                ),
                // The kernel takes the offset in two registers, of which 64 bits need only the
                // first.
                Some(kept) => libc_answer(cancellable(
                    $call,
                    [fd as usize, kept.list.as_ptr() as usize, kept.count, offset as usize, 0, flags as usize],
                )),
            }
        }

        /// The same under its other name.
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $alias(fd: c_int, list: List, count: c_int, offset: i64, flags: c_int) -> isize {
            // SAFETY: the caller's arguments.
            unsafe { $name(fd, list, count, offset, flags) }
        }
    };
}

scattered_with_flags!(
    /// `preadv2(2)`.
    preadv2, preadv64v2, c"preadv2", libc::SYS_preadv2, true
);
scattered_with_flags!(
    /// `pwritev2(2)`.
    pwritev2, pwritev64v2, c"pwritev2", libc::SYS_pwritev2, false
);
