//! System calls on buffers whose faults raise SIGBUS: brought in first and kept through the call.
//!
//! Calls that may move less than was asked for (read, write and their kin) are cut to what can be
//! kept; their callers have to cope with that anyway. Memory whose faults go to handler threads
//! passes untouched: there the kernel waits for them by itself. What is not listed here fails with
//! EFAULT on a missing page, which is why SIGBUS is not the default.

use super::{forks, libc_answer, memory};
use crate::core::PAGER;
use crate::core::pins::Pin;
use crate::start;
use crate::sys::{Answer, call6};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use pagewise_wire::shared::capability;

/// Whether any region can need this: without one nothing needs to be looked at.
fn is_needed() -> bool {
    let used = PAGER.signals_used.load(Ordering::Relaxed);
    PAGER.is_started() && (used || !PAGER.can(capability::MOVE))
}

/// Keeps a buffer; what of its length can be kept.
fn buffer(start: usize, bytes: usize, write: bool) -> (usize, Option<Pin<'static>>) {
    if !is_needed() || !PAGER.raises(start as u64, (start as u64).saturating_add(bytes as u64)) {
        return (bytes, None);
    }
    let bytes = bytes.min(PAGER.most_pinned() as usize);
    (bytes, PAGER.pin(start as u64, bytes as u64, write))
}

/// Keeps all of a structure or a whole message.
fn whole(start: usize, bytes: usize, write: bool) -> Option<Pin<'static>> {
    match is_needed() && start != 0 {
        true => PAGER.pin(start as u64, bytes as u64, write),
        false => None,
    }
}

/// Keeps a string: up to its end, at most a path's length.
fn text(start: *const c_char) -> Option<Pin<'static>> {
    if !is_needed() || start.is_null() {
        return None;
    }
    // SAFETY: the program's own string, which the system call would read as well; faults on the way
    // are served as any other.
    let length = unsafe { libc::strnlen(start, libc::PATH_MAX as usize) };
    PAGER.pin(start as u64, length as u64 + 1, false)
}

/// Parts of a scattered buffer, with pins.
struct Parts {
    pins: [Option<Pin<'static>>; 16],
    list: [libc::iovec; 16],
    count: usize,
}

/// Keeps the parts of a scattered buffer; more than 16, or more than can be kept, are left out of a
/// call that may be partial.
fn parts(list: *const libc::iovec, count: usize, write: bool) -> Option<Parts> {
    if !is_needed() || count == 0 || list.is_null() {
        return None;
    }
    // SAFETY: the program's own list, which the system call would read as well.
    let list = unsafe { core::slice::from_raw_parts(list, count) };
    let raises = list.iter().any(|part| {
        let start = part.iov_base as u64;
        PAGER.raises(start, start.saturating_add(part.iov_len as u64))
    });
    if !raises {
        return None;
    }
    let mut kept = Parts {
        pins: [const { None }; 16],
        list: [libc::iovec {
            iov_base: core::ptr::null_mut(),
            iov_len: 0,
        }; 16],
        count: 0,
    };
    for part in list.iter().take(16) {
        let (bytes, pin) = buffer(part.iov_base as usize, part.iov_len, write);
        kept.pins[kept.count] = pin;
        kept.list[kept.count] = libc::iovec {
            iov_base: part.iov_base,
            iov_len: bytes,
        };
        kept.count += 1;
        if bytes < part.iov_len {
            break;
        }
    }
    Some(kept)
}

/// libc's own function, or where a buffer has to be kept, the system call itself. Cancellation
/// points of libc stay such for all programs that do not use SIGBUS.
macro_rules! forward {
    ($name:literal, ($($argument:expr),*), fn($($type:ty),*) -> $answer:ty) => {
        super::signals::next!($name, fn($($type),*) -> $answer, $($argument),*)
    };
}

fn raw(number: i64, arguments: [usize; 6]) -> Answer {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the program's own call, on buffers that are kept.
    unsafe { call6(number, a, b, c, d, e, f) }
}

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
    libc_answer(raw(
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
    // Programs expect a write to a file to be whole: the rest follows.
    let mut answer = raw(
        libc::SYS_write,
        [fd as usize, from as usize, bytes, 0, 0, 0],
    );
    drop(pin);
    while answer > 0 && done + (answer as usize) < count {
        done += answer as usize;
        let next = from as usize + done;
        let (bytes, _pin) = buffer(next, count - done, false);
        answer = raw(libc::SYS_write, [fd as usize, next, bytes, 0, 0, 0]);
    }
    match (done, answer) {
        (0, answer) => libc_answer(answer),
        (done, answer) => done as isize + answer.max(0),
    }
}

/// Where libc says whether there is only one thread (glibc 2.32).
static SINGLE_THREADED: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// Finds what the functions below need.
pub fn prepare() {
    // SAFETY: dlsym looks a constant name up.
    let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    SINGLE_THREADED.store(place.cast(), Ordering::Relaxed);
}

/// Makes the call as libc makes its cancellation points: the thread may be cancelled while it waits.
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

/// What libc's `read` jumps to where faults raise SIGBUS: stdio calls it inside libc.
pub unsafe extern "C" fn inner_read(fd: c_int, to: *mut c_void, count: usize) -> isize {
    let (bytes, _pin) = buffer(to as usize, count, true);
    libc_answer(cancellable(
        libc::SYS_read,
        [fd as usize, to as usize, bytes, 0, 0, 0],
    ))
}

/// What libc's `write` jumps to there. Its callers go on after a part.
pub unsafe extern "C" fn inner_write(fd: c_int, from: *const c_void, count: usize) -> isize {
    let (bytes, _pin) = buffer(from as usize, count, false);
    libc_answer(cancellable(
        libc::SYS_write,
        [fd as usize, from as usize, bytes, 0, 0, 0],
    ))
}

/// What libc's `pread` jumps to there.
pub unsafe extern "C" fn inner_pread(fd: c_int, to: *mut c_void, count: usize, at: i64) -> isize {
    let (bytes, _pin) = buffer(to as usize, count, true);
    libc_answer(cancellable(
        libc::SYS_pread64,
        [fd as usize, to as usize, bytes, at as usize, 0, 0],
    ))
}

/// What libc's `pwrite` jumps to there.
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
            libc_answer(raw($call, [fd as usize, at as usize, bytes, offset as usize, 0, 0]))
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

type List = *const libc::iovec;

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
                Some(kept) => libc_answer(raw(
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
                Some(kept) => libc_answer(raw(
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

/// `recv(2)`: a datagram is taken from the queue once, so the buffer is whole or not kept at all.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(fd: c_int, to: *mut c_void, count: usize, flags: c_int) -> isize {
    let _pin = whole(to as usize, count, true);
    forward!(
        c"recv",
        (fd, to, count, flags),
        fn(c_int, *mut c_void, usize, c_int) -> isize
    )
}

/// `recvfrom(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    to: *mut c_void,
    count: usize,
    flags: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> isize {
    let _pin = whole(to as usize, count, true);
    let _address = whole(address as usize, size_of::<libc::sockaddr_storage>(), true);
    forward!(
        c"recvfrom",
        (fd, to, count, flags, address, length),
        fn(c_int, *mut c_void, usize, c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> isize
    )
}

/// `send(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(fd: c_int, from: *const c_void, count: usize, flags: c_int) -> isize {
    let _pin = whole(from as usize, count, false);
    forward!(
        c"send",
        (fd, from, count, flags),
        fn(c_int, *const c_void, usize, c_int) -> isize
    )
}

/// `sendto(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    from: *const c_void,
    count: usize,
    flags: c_int,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> isize {
    let _pin = whole(from as usize, count, false);
    let _address = whole(address as usize, length as usize, false);
    forward!(
        c"sendto",
        (fd, from, count, flags, address, length),
        fn(c_int, *const c_void, usize, c_int, *const libc::sockaddr, libc::socklen_t) -> isize
    )
}

/// Keeps everything that a message points to.
fn message(message: *const libc::msghdr, write: bool) -> [Option<Pin<'static>>; 20] {
    let mut pins = [const { None }; 20];
    if !is_needed() || message.is_null() {
        return pins;
    }
    // SAFETY: the program's own message, which the system call would read as well.
    let (message, list) = unsafe {
        let message = &*message;
        let count = match message.msg_iov.is_null() {
            true => 0,
            false => message.msg_iovlen,
        };
        let empty = core::ptr::NonNull::dangling().as_ptr();
        let list = if count == 0 { empty } else { message.msg_iov };
        (
            message,
            core::slice::from_raw_parts(list.cast_const(), count),
        )
    };
    pins[0] = whole(
        core::ptr::from_ref(message) as usize,
        size_of::<libc::msghdr>(),
        true,
    );
    pins[1] = whole(
        message.msg_name as usize,
        message.msg_namelen as usize,
        write,
    );
    pins[2] = whole(message.msg_control as usize, message.msg_controllen, write);
    pins[3] = whole(message.msg_iov as usize, size_of_val(list), false);
    for (pin, part) in pins[4..].iter_mut().zip(list) {
        *pin = whole(part.iov_base as usize, part.iov_len, write);
    }
    pins
}

/// `recvmsg(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, to: *mut libc::msghdr, flags: c_int) -> isize {
    let _pins = message(to, true);
    forward!(
        c"recvmsg",
        (fd, to, flags),
        fn(c_int, *mut libc::msghdr, c_int) -> isize
    )
}

/// `sendmsg(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, from: *const libc::msghdr, flags: c_int) -> isize {
    let _pins = message(from, false);
    forward!(
        c"sendmsg",
        (fd, from, flags),
        fn(c_int, *const libc::msghdr, c_int) -> isize
    )
}

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

type Path = *const c_char;

/// `open(2)`. The mode, where there is one, comes in the third argument's register.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: Path, flags: c_int, mode: u32) -> c_int {
    let _pin = text(path);
    forward!(c"open", (path, flags, mode), fn(Path, c_int, u32) -> c_int)
}

/// `open(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: Path, flags: c_int, mode: u32) -> c_int {
    let _pin = text(path);
    forward!(
        c"open64",
        (path, flags, mode),
        fn(Path, c_int, u32) -> c_int
    )
}

/// `openat(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(folder: c_int, path: Path, flags: c_int, mode: u32) -> c_int {
    let _pin = text(path);
    forward!(
        c"openat",
        (folder, path, flags, mode),
        fn(c_int, Path, c_int, u32) -> c_int
    )
}

macro_rules! status_of_path {
    ($name:ident, $text:literal) => {
        /// `stat(2)` and its kin.
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: Path, to: *mut libc::stat) -> c_int {
            let _path = text(path);
            let _to = whole(to as usize, size_of::<libc::stat>(), true);
            forward!($text, (path, to), fn(Path, *mut libc::stat) -> c_int)
        }
    };
}
status_of_path!(stat, c"stat");
status_of_path!(stat64, c"stat64");
status_of_path!(lstat, c"lstat");

/// `fstat(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstat(fd: c_int, to: *mut libc::stat) -> c_int {
    let _to = whole(to as usize, size_of::<libc::stat>(), true);
    forward!(c"fstat", (fd, to), fn(c_int, *mut libc::stat) -> c_int)
}

/// `access(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn access(path: Path, mode: c_int) -> c_int {
    let _pin = text(path);
    forward!(c"access", (path, mode), fn(Path, c_int) -> c_int)
}

/// `process_vm_readv(2)`, as far as this process is concerned.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn process_vm_readv(
    process: c_int,
    local: List,
    local_count: usize,
    remote: List,
    remote_count: usize,
    flags: usize,
) -> isize {
    let own = process as u32 == crate::sys::process_id();
    let _local = parts(local, local_count, true);
    let _remote = own.then(|| parts(remote, remote_count, false));
    forward!(
        c"process_vm_readv",
        (process, local, local_count, remote, remote_count, flags),
        fn(c_int, List, usize, List, usize, usize) -> isize
    )
}

/// `syscall(2)`: what this library must know of goes the way of libc's functions; futexes, which
/// libc has no function for, and what reads or writes one buffer are kept.
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
    if let Some(answer) = unsafe { memory::by_number(number, [a, b, c, d, e, f]) } {
        return answer;
    }
    if let Some(answer) = forks::by_number(number, [a, b, c, d, e, f]) {
        return libc_answer(answer) as i64;
    }
    if matches!(number, libc::SYS_io_uring_setup | libc::SYS_io_setup) && PAGER.is_started() {
        start::say_refused(&PAGER);
    }
    let _pin = match number {
        // The kernel looks for the page as for writing.
        libc::SYS_futex => whole(a, 4, true),
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => whole(b, c, true),
        libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => whole(b, c, false),
        libc::SYS_getrandom => whole(a, b, true),
        _ => None,
    };
    libc_answer(raw(number, [a, b, c, d, e, f])) as i64
}
