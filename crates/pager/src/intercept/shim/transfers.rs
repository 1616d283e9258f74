//! Reads and writes: of one or several buffers, at the file position or at an offset.

use super::kept::{buffer, forward, is_needed, raises, raw};
use crate::intercept::given;
use crate::intercept::libc_answer;
use crate::sys::{self, Answer};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// `read(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, to: *mut c_void, count: usize) -> isize {
    if !raises(to as usize, count) {
        return forward!(
            c"read",
            (fd, to, count),
            fn(c_int, *mut c_void, usize) -> isize
        );
    }
    libc_answer(transfer(
        &Transfer::new(fd, false, None),
        &[part(to as usize, count)],
        cancellable,
    ))
}

/// `write(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, from: *const c_void, count: usize) -> isize {
    if !raises(from as usize, count) {
        return forward!(
            c"write",
            (fd, from, count),
            fn(c_int, *const c_void, usize) -> isize
        );
    }
    libc_answer(transfer(
        &Transfer::new(fd, true, None),
        &[part(from as usize, count)],
        cancellable,
    ))
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
pub(super) fn cancellable(number: i64, arguments: [usize; 6]) -> Answer {
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
    libc_answer(transfer(
        &Transfer::new(fd, false, None),
        &[part(to as usize, count)],
        cancellable,
    ))
}

/// The function to which libc's `write` then jumps. Its callers continue after a partial write.
pub unsafe extern "C" fn inner_write(fd: c_int, from: *const c_void, count: usize) -> isize {
    libc_answer(transfer(
        &Transfer::new(fd, true, None),
        &[part(from as usize, count)],
        cancellable,
    ))
}

/// The function to which libc's `pread` then jumps.
pub unsafe extern "C" fn inner_pread(fd: c_int, to: *mut c_void, count: usize, at: i64) -> isize {
    libc_answer(transfer(
        &Transfer::new(fd, false, Some(at)),
        &[part(to as usize, count)],
        cancellable,
    ))
}

/// The function to which libc's `pwrite` then jumps.
pub unsafe extern "C" fn inner_pwrite(
    fd: c_int,
    from: *const c_void,
    count: usize,
    at: i64,
) -> isize {
    libc_answer(transfer(
        &Transfer::new(fd, true, Some(at)),
        &[part(from as usize, count)],
        cancellable,
    ))
}

macro_rules! at_offset {
    ($(#[$doc:meta])* $name:ident, $alias:ident, $text:literal, $pointer:ty, $write:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, at: $pointer, count: usize, offset: i64) -> isize {
            if !raises(at as usize, count) {
                return forward!($text, (fd, at, count, offset), fn(c_int, $pointer, usize, i64) -> isize);
            }
            let how = Transfer::new(fd, !$write, Some(offset));
            libc_answer(transfer(&how, &[part(at as usize, count)], cancellable))
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
    pread, pread64, c"pread", *mut c_void, true
);
at_offset!(
    /// `pwrite(2)`.
    pwrite, pwrite64, c"pwrite", *const c_void, false
);

pub type List = *const libc::iovec;

macro_rules! scattered {
    ($(#[$doc:meta])* $name:ident, $text:literal, $write:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, list: List, count: c_int) -> isize {
            match given_list(list, count) {
                None => forward!($text, (fd, list, count), fn(c_int, List, c_int) -> isize),
                Some(given) => libc_answer(transfer(&Transfer::new(fd, !$write, None), given, cancellable)),
            }
        }
    };
}

scattered!(
    /// `readv(2)`.
    readv, c"readv", true
);
scattered!(
    /// `writev(2)`.
    writev, c"writev", false
);

macro_rules! scattered_at_offset {
    ($(#[$doc:meta])* $name:ident, $alias:ident, $text:literal, $write:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, list: List, count: c_int, offset: i64) -> isize {
            match given_list(list, count) {
                None => forward!($text, (fd, list, count, offset), fn(c_int, List, c_int, i64) -> isize),
                Some(given) => {
                    libc_answer(transfer(&Transfer::new(fd, !$write, Some(offset)), given, cancellable))
                }
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
    preadv, preadv64, c"preadv", true
);
scattered_at_offset!(
    /// `pwritev(2)`.
    pwritev, pwritev64, c"pwritev", false
);

macro_rules! scattered_with_flags {
    ($(#[$doc:meta])* $name:ident, $alias:ident, $text:literal, $write:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, list: List, count: c_int, offset: i64, flags: c_int) -> isize {
            match given_list(list, count) {
                None => forward!(
                    $text,
                    (fd, list, count, offset, flags),
                    fn(c_int, List, c_int, i64, c_int) -> isize
                ),
                Some(given) => {
                    let how = Transfer { flags, ..Transfer::new(fd, !$write, Some(offset)) };
                    libc_answer(transfer(&how, given, cancellable))
                }
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
    preadv2, preadv64v2, c"preadv2", true
);
scattered_with_flags!(
    /// `pwritev2(2)`.
    pwritev2, pwritev64v2, c"pwritev2", false
);

/// A read or write of the program.
struct Transfer {
    fd: c_int,
    writes: bool,
    /// Where in the file; -1, as of the calls with flags, at its position.
    at: Option<i64>,
    flags: c_int,
}

impl Transfer {
    const fn new(fd: c_int, writes: bool, at: Option<i64>) -> Self {
        Self {
            fd,
            writes,
            at,
            flags: 0,
        }
    }

    /// Makes the call for `parts`, of which `done` bytes come after what was transferred before.
    fn make(&self, parts: &[libc::iovec], done: usize, call: Call) -> Answer {
        let (fd, list, count) = (self.fd as usize, parts.as_ptr() as usize, parts.len());
        let at = match self.at {
            Some(at) if self.flags != 0 || at < 0 => {
                let at = if at < 0 { at } else { at + done as i64 };
                let number = if self.writes {
                    libc::SYS_pwritev2
                } else {
                    libc::SYS_preadv2
                };
                return call(
                    number,
                    [fd, list, count, at as usize, 0, self.flags as usize],
                );
            }
            Some(at) => at as usize + done,
            None => 0,
        };
        let [one] = parts else {
            let number = match (self.writes, self.at.is_some()) {
                (false, false) => libc::SYS_readv,
                (true, false) => libc::SYS_writev,
                (false, true) => libc::SYS_preadv,
                (true, true) => libc::SYS_pwritev,
            };
            return call(number, [fd, list, count, at, 0, 0]);
        };
        let number = match (self.writes, self.at.is_some()) {
            (false, false) => libc::SYS_read,
            (true, false) => libc::SYS_write,
            (false, true) => libc::SYS_pread64,
            (true, true) => libc::SYS_pwrite64,
        };
        call(number, [fd, one.iov_base as usize, one.iov_len, at, 0, 0])
    }
}

type Call = fn(i64, [usize; 6]) -> Answer;

const fn part(start: usize, bytes: usize) -> libc::iovec {
    libc::iovec {
        iov_base: start as *mut c_void,
        iov_len: bytes,
    }
}

/// The list, if a part of it has to be pinned.
fn given_list<'a>(list: List, count: c_int) -> Option<&'a [libc::iovec]> {
    /// Largest number of parts that the kernel accepts in a call (`UIO_MAXIOV`).
    const MOST: usize = 1024;
    let count = usize::try_from(count)
        .ok()
        .filter(|count| (1..=MOST).contains(count))?;
    if !is_needed() || !given::is_readable(list as usize, count * size_of::<libc::iovec>()) {
        return None;
    }
    // SAFETY: the program's own list, which is readable.
    let list = unsafe { core::slice::from_raw_parts(list, count) };
    let raised = list
        .iter()
        .any(|one| raises(one.iov_base as usize, one.iov_len));
    let listed = raises(list.as_ptr() as usize, size_of_val(list));
    (raised || listed).then_some(list)
}

/// Reads or writes as much as can be pinned, and the rest of it after that where Linux would go on: in a
/// regular file, and when writing.
fn transfer(how: &Transfer, list: &[libc::iovec], call: Call) -> Answer {
    const PARTS: usize = 16;
    const ATTEMPTS: usize = 3;
    const FAULT: Answer = -(libc::EFAULT as Answer);
    let (mut done, mut index, mut skipped) = (0_usize, 0, 0);
    loop {
        let mut pins = [const { None }; PARTS];
        let mut parts = [part(0, 0); PARTS];
        let (mut count, mut asked) = (0, 0_usize);
        let mut cut = false;
        for (turn, one) in list.iter().enumerate().skip(index).take(PARTS) {
            let skip = if turn == index { skipped } else { 0 };
            let (start, bytes) = (one.iov_base as usize + skip, one.iov_len - skip);
            let (most, pin) = buffer(start, bytes, !how.writes);
            parts[count] = part(start, most);
            pins[count] = pin;
            (count, asked) = (count + 1, asked + most);
            cut = most < bytes;
            if cut {
                break;
            }
        }
        cut |= index + count < list.len();
        let mut answer = how.make(&parts[..count], done, call);
        for _ in 0..ATTEMPTS {
            if answer != FAULT {
                break;
            }
            answer = how.make(&parts[..count], done, call);
        }
        drop(pins);
        let Ok(bytes) = usize::try_from(answer) else {
            return if done > 0 { done as Answer } else { answer };
        };
        done += bytes;
        let goes_on = how.writes || sys::is_regular(how.fd);
        if bytes < asked || !cut || !goes_on {
            return done as Answer;
        }
        let mut left = bytes;
        while index < list.len() && left >= list[index].iov_len - skipped {
            left -= list[index].iov_len - skipped;
            (index, skipped) = (index + 1, 0);
        }
        skipped += left;
        if index == list.len() {
            return done as Answer;
        }
    }
}

/// A read or write by its number; `None` if it is another call, or nothing has to be pinned.
pub fn transfer_by_number(number: i64, arguments: [usize; 6]) -> Option<Answer> {
    let [fd, place, count, at, _, flags] = arguments;
    let (writes, offset, is_list) = match number {
        libc::SYS_read => (false, None, false),
        libc::SYS_write => (true, None, false),
        libc::SYS_pread64 => (false, Some(at as i64), false),
        libc::SYS_pwrite64 => (true, Some(at as i64), false),
        libc::SYS_readv => (false, None, true),
        libc::SYS_writev => (true, None, true),
        libc::SYS_preadv | libc::SYS_preadv2 => (false, Some(at as i64), true),
        libc::SYS_pwritev | libc::SYS_pwritev2 => (true, Some(at as i64), true),
        _ => return None,
    };
    let flagged = matches!(number, libc::SYS_preadv2 | libc::SYS_pwritev2);
    let how = Transfer {
        flags: if flagged { flags as c_int } else { 0 },
        ..Transfer::new(fd as c_int, writes, offset)
    };
    if is_list {
        let list = given_list(place as List, count as c_int)?;
        return Some(transfer(&how, list, raw));
    }
    raises(place, count).then(|| transfer(&how, &[part(place, count)], raw))
}
