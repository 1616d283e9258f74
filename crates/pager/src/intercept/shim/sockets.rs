//! Messages: one that is taken from its queue but cannot be stored is lost, so all of its buffers
//! are pinned before the call.

use super::kept::{forward, is_needed, whole};
use super::transfers::cancellable;
use crate::intercept::given;
use crate::intercept::libc_answer;
use crate::paging::pins::Pin;
use core::ffi::{c_int, c_void};

/// `recv(2)`: a datagram is taken from the queue once, so the buffer is pinned entirely or not at
/// all.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(fd: c_int, to: *mut c_void, count: usize, flags: c_int) -> isize {
    let _pin = whole(to as usize, count, true);
    if is_needed() {
        let call = [fd as usize, to as usize, count, flags as usize, 0, 0];
        return libc_answer(cancellable(libc::SYS_recvfrom, call));
    }
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
    let _length = whole(length as usize, size_of::<libc::socklen_t>(), true);
    if is_needed() {
        let (address, length) = (address as usize, length as usize);
        let call = [
            fd as usize,
            to as usize,
            count,
            flags as usize,
            address,
            length,
        ];
        return libc_answer(cancellable(libc::SYS_recvfrom, call));
    }
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

/// The pins of a message: its own parts, and up to 16 parts of its buffer.
pub(super) type Pins = [Option<Pin<'static>>; 20];

/// A number of a `msghdr`: `size_t` in glibc, narrower in musl.
fn size(number: impl TryInto<usize>) -> usize {
    number.try_into().unwrap_or(0)
}

/// Pins everything that a message points to.
pub(super) fn message(message: *const libc::msghdr, write: bool) -> Pins {
    let mut pins = [const { None }; 20];
    let readable = |place: usize, bytes: usize| place != 0 && given::is_readable(place, bytes);
    if !is_needed() || !readable(message as usize, size_of::<libc::msghdr>()) {
        return pins;
    }
    // SAFETY: the program's own message, which is readable.
    let message = unsafe { &*message };
    let parts = size(message.msg_iovlen);
    let bytes = parts.saturating_mul(size_of::<libc::iovec>());
    let list: &[libc::iovec] = match readable(message.msg_iov as usize, bytes) {
        // SAFETY: its own list, which is readable.
        true => unsafe { core::slice::from_raw_parts(message.msg_iov, parts) },
        false => &[],
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
    pins[2] = whole(
        message.msg_control as usize,
        size(message.msg_controllen),
        write,
    );
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
    if is_needed() {
        let call = [fd as usize, to as usize, flags as usize, 0, 0, 0];
        return libc_answer(cancellable(libc::SYS_recvmsg, call));
    }
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

/// Largest number of messages of one call whose buffers are pinned; the call may handle fewer than
/// it was given.
const MESSAGES: usize = 8;

/// Several messages, if something has to be pinned: the list, and what each points to.
type Several = (Option<Pin<'static>>, [Pins; MESSAGES]);

/// Pins what several messages point to. Also returns how many of them the call may handle.
fn messages(list: *mut libc::mmsghdr, count: u32, write: bool) -> (u32, Option<Several>) {
    let kept = MESSAGES.min(count as usize);
    let bytes = kept * size_of::<libc::mmsghdr>();
    if !is_needed() || list.is_null() || !given::is_readable(list as usize, bytes) {
        return (count, None);
    }
    // The call stores each message's count of bytes there.
    let places = whole(list as usize, bytes, true);
    let mut pins = [const { [const { None }; 20] }; MESSAGES];
    for (place, pins) in pins.iter_mut().take(kept).enumerate() {
        // SAFETY: one of the program's `count` messages, which the system call would read as well.
        *pins = message(unsafe { &raw const (*list.add(place)).msg_hdr }, write);
    }
    (kept as u32, Some((places, pins)))
}

/// `recvmmsg(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    list: *mut libc::mmsghdr,
    count: u32,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    let (count, _pins) = messages(list, count, true);
    let _timeout = whole(timeout as usize, size_of::<libc::timespec>(), true);
    forward!(
        c"recvmmsg",
        (fd, list, count, flags, timeout),
        fn(c_int, *mut libc::mmsghdr, u32, c_int, *mut libc::timespec) -> c_int
    )
}

/// `sendmmsg(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(
    fd: c_int,
    list: *mut libc::mmsghdr,
    count: u32,
    flags: c_int,
) -> c_int {
    let (count, _pins) = messages(list, count, false);
    forward!(
        c"sendmmsg",
        (fd, list, count, flags),
        fn(c_int, *mut libc::mmsghdr, u32, c_int) -> c_int
    )
}
