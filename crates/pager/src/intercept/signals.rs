//! SIGBUS and SIGSYS belong to the pager; the program's handler, mask and action for them are kept
//! separately.
//!
//! The other signals are passed to libc unchanged. A mask that contains one of the two would end the
//! program at its next fault, or its next call past libc, so both are removed on the way.

use super::{given, libc_answer};
use crate::handler::signal;
use crate::paging::PAGER;
use crate::sys::call6;
use crate::sys::signals::{self, KernelAction};
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};

/// libc's function behind one of ours, looked up once.
pub struct Next(&'static CStr, AtomicUsize);

impl Next {
    /// libc's function `name`.
    pub const fn new(name: &'static CStr) -> Self {
        Self(name, AtomicUsize::new(0))
    }

    /// Its address.
    pub fn address(&self) -> usize {
        let known = self.1.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        // SAFETY: dlsym looks up a constant name after this library.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.0.as_ptr()) } as usize;
        self.1.store(found, Ordering::Relaxed);
        found
    }
}

/// Calls libc's function of this name and type.
macro_rules! next {
    ($name:literal, fn($($type:ty),*) -> $answer:ty, $($argument:expr),*) => {{
        static NEXT: $crate::intercept::signals::Next =
            $crate::intercept::signals::Next::new($name);
        let address = NEXT.address();
        // SAFETY: libc's function of this name has this type; the arguments are the caller's.
        unsafe {
            let function: unsafe extern "C" fn($($type),*) -> $answer =
                core::mem::transmute(address);
            function($($argument),*)
        }
    }};
}
pub(super) use next;

/// `sigaction(2)`.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    number: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    if !signal::is_ours(number) {
        // While its handler runs, neither of the two must be blocked.
        // SAFETY: the program's own structure, or null.
        let own = unsafe { new.as_ref().copied() }.map(|own| libc::sigaction {
            sa_mask: without(&raw const own.sa_mask).unwrap_or(own.sa_mask),
            ..own
        });
        return next!(
            c"sigaction",
            fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int,
            number,
            own.as_ref().map_or(core::ptr::null(), core::ptr::from_ref),
            old
        );
    }
    let former = signal::remembered(number);
    // SAFETY: the program's own structures; libc's starts with the handler, and its mask starts with
    // the 64 bits that the kernel knows.
    unsafe {
        if let Some(new) = new.as_ref() {
            signal::remember(
                number,
                &KernelAction {
                    handler: new.sa_sigaction,
                    flags: new.sa_flags as u64,
                    restorer: 0,
                    mask: (&raw const new.sa_mask).cast::<signals::Set>().read(),
                },
            );
        }
        if let Some(old) = old.as_mut() {
            old.sa_sigaction = former.handler;
            old.sa_flags = former.flags as c_int;
            (&raw mut old.sa_mask)
                .cast::<signals::Set>()
                .write(former.mask);
        }
    }
    0
}

/// `signal(2)`, with BSD semantics as in glibc.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(number: c_int, handler: usize) -> usize {
    if !signal::is_ours(number) {
        return next!(c"signal", fn(c_int, usize) -> usize, number, handler);
    }
    let former = signal::remembered(number);
    signal::remember(
        number,
        &KernelAction {
            handler,
            flags: libc::SA_RESTART as u64,
            restorer: 0,
            mask: 0,
        },
    );
    former.handler
}

macro_rules! other_signal {
    ($(#[$doc:meta])* $name:ident, $text:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(number: c_int, handler: usize) -> usize {
            /// For `sigset`: blocks the signal instead, which these never are.
            const HOLD: usize = 2;
            if !signal::is_ours(number) {
                return next!($text, fn(c_int, usize) -> usize, number, handler);
            }
            if handler == HOLD {
                return signal::remembered(number).handler;
            }
            // SAFETY: the caller's arguments.
            unsafe { signal(number, handler) }
        }
    };
}

other_signal!(
    /// `sigset(3)`.
    sigset, c"sigset"
);
other_signal!(
    /// `ssignal(3)`.
    ssignal, c"ssignal"
);
other_signal!(
    /// `sysv_signal(3)`.
    sysv_signal, c"sysv_signal"
);
other_signal!(
    /// The same under the name to which headers turn it.
    __sysv_signal, c"__sysv_signal"
);

/// One of these calls made through `syscall(2)`; `None` if `number` is a different one, or is about
/// other signals, or what it points to cannot be read.
///
/// # Safety
/// As for the call.
pub(super) unsafe fn by_number(number: i64, arguments: [usize; 6]) -> Option<i64> {
    let [a, b, c, bytes, ..] = arguments;
    let readable = |place: usize, bytes: usize| place == 0 || given::is_readable(place, bytes);
    if !PAGER.is_started() || bytes != size_of::<signals::Set>() {
        return None;
    }
    match number {
        libc::SYS_rt_sigaction if signal::is_ours(a as c_int) => {
            let number = a as c_int;
            let [new, old] = [b, c].map(|place| place as *mut KernelAction);
            if ![b, c]
                .iter()
                .all(|&one| readable(one, size_of::<KernelAction>()))
            {
                return None;
            }
            let former = signal::remembered(number);
            // SAFETY: the program's own structures, which can be read.
            unsafe {
                if let Some(new) = new.as_ref() {
                    signal::remember(number, new);
                }
                if !old.is_null() {
                    old.write(former);
                }
            }
            Some(0)
        }
        libc::SYS_rt_sigaction if b != 0 && readable(b, size_of::<KernelAction>()) => {
            // SAFETY: the program's own structure, which can be read.
            let mut own = unsafe { (b as *const KernelAction).read_unaligned() };
            own.mask &= !signal::ours();
            let place = &raw const own as usize;
            // SAFETY: the program's own call; the structure lives through it.
            let answer = unsafe { call6(number, a, place, c, bytes, 0, 0) };
            Some(libc_answer(answer) as i64)
        }
        libc::SYS_rt_sigprocmask if b != 0 && readable(b, bytes) => {
            // SAFETY: this many bytes can be read.
            let mask = unsafe { (b as *const signals::Set).read_unaligned() };
            let mask = mask & !signal::ours();
            let place = &raw const mask as usize;
            // SAFETY: the program's own call; the mask lives through it.
            let answer = unsafe { call6(number, a, place, c, bytes, 0, 0) };
            Some(libc_answer(answer) as i64)
        }
        _ => None,
    }
}

/// A mask without the pager's signals.
fn without(mask: *const libc::sigset_t) -> Option<libc::sigset_t> {
    // SAFETY: the program's own set, or null.
    let mut mask = unsafe { mask.as_ref().copied() }?;
    // SAFETY: this function's own set, which starts with the 64 bits that the kernel knows.
    unsafe { *(&raw mut mask).cast::<signals::Set>() &= !signal::ours() };
    Some(mask)
}

fn pointer(mask: &Option<libc::sigset_t>) -> *const libc::sigset_t {
    mask.as_ref().map_or(core::ptr::null(), core::ptr::from_ref)
}

/// `sigprocmask(2)`.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    let mask = without(set);
    next!(
        c"sigprocmask",
        fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int,
        how,
        pointer(&mask),
        old
    )
}

/// `pthread_sigmask(3)`.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    let mask = without(set);
    next!(
        c"pthread_sigmask",
        fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int,
        how,
        pointer(&mask),
        old
    )
}

/// `sigsuspend(2)`: handlers that run meanwhile have this mask.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigsuspend(set: *const libc::sigset_t) -> c_int {
    let mask = without(set);
    next!(
        c"sigsuspend",
        fn(*const libc::sigset_t) -> c_int,
        pointer(&mask)
    )
}

/// `ppoll(2)`.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    files: *mut libc::pollfd,
    count: libc::nfds_t,
    limit: *const libc::timespec,
    set: *const libc::sigset_t,
) -> c_int {
    let mask = without(set);
    next!(
        c"ppoll",
        fn(*mut libc::pollfd, libc::nfds_t, *const libc::timespec, *const libc::sigset_t) -> c_int,
        files,
        count,
        limit,
        pointer(&mask)
    )
}

/// `pselect(2)`.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut libc::fd_set,
    write: *mut libc::fd_set,
    error: *mut libc::fd_set,
    limit: *const libc::timespec,
    set: *const libc::sigset_t,
) -> c_int {
    type Sets = *mut libc::fd_set;
    let mask = without(set);
    next!(
        c"pselect",
        fn(c_int, Sets, Sets, Sets, *const libc::timespec, *const libc::sigset_t) -> c_int,
        count,
        read,
        write,
        error,
        limit,
        pointer(&mask)
    )
}

/// `epoll_pwait(2)`.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    file: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    limit: c_int,
    set: *const libc::sigset_t,
) -> c_int {
    let mask = without(set);
    next!(
        c"epoll_pwait",
        fn(c_int, *mut libc::epoll_event, c_int, c_int, *const libc::sigset_t) -> c_int,
        file,
        events,
        most,
        limit,
        pointer(&mask)
    )
}
