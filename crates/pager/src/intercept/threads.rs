//! Every thread gets an alternate stack, so that a SIGBUS needs no room on the thread's own stack.

use super::signals::next;
use super::{endings, given};
use crate::page::{PAGE_BYTES, page_ceil, page_floor};
use crate::paging::PAGER;
use crate::sys::{self, entry, signals::Blocked, thread};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

/// Bytes: a signal frame with AVX-512 state, and the core.
const STACK_BYTES: usize = 64 << 10;

/// The key whose destructor gives the stack back; `u32::MAX` without one.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Creates what [`pthread_create`] needs, and the stack of the first thread.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: the destructor lives as long as the process.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(give_back)) } == 0 {
        KEY.store(key, Ordering::Release);
    }
    if let Some(place) = sys::map(STACK_BYTES) {
        use_stack(place.cast());
    }
}

fn use_stack(place: *mut c_void) {
    let stack = libc::stack_t {
        ss_sp: place,
        ss_flags: 0,
        ss_size: STACK_BYTES,
    };
    // SAFETY: the memory is this thread's from here on, and nothing else uses it.
    unsafe { libc::sigaltstack(&raw const stack, core::ptr::null_mut()) };
}

/// The kernel writes to a stack without anyone's touch, for a signal or for its own bookkeeping of
/// threads, and ends the process where that raises SIGBUS: a stack in such memory is left to the kernel.
fn leave_to_kernel(start: u64, bytes: u64) {
    let (start, end) = (page_floor(start), start.saturating_add(bytes));
    if PAGER.is_started() && end < u64::MAX - PAGE_BYTES as u64 && PAGER.raises(start, end) {
        PAGER.cede_to_kernel(start, page_ceil(end));
    }
}

/// A thread is about to use this stack for signals. What cannot be read is left to the kernel to refuse.
pub(super) fn given_stack(new: *const libc::stack_t) {
    if new.is_null() || !given::is_readable(new as usize, size_of::<libc::stack_t>()) {
        return;
    }
    // SAFETY: the program's own structure, which can be read.
    let stack = unsafe { new.read_unaligned() };
    if stack.ss_flags & libc::SS_DISABLE == 0 {
        leave_to_kernel(stack.ss_sp as u64, stack.ss_size as u64);
    }
}

/// `sigaltstack(2)`.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    given_stack(new);
    next!(
        c"sigaltstack",
        fn(*const libc::stack_t, *mut libc::stack_t) -> c_int,
        new,
        old
    )
}

unsafe extern "C" fn give_back(place: *mut c_void) {
    endings::prepare();
    let none = libc::stack_t {
        ss_sp: core::ptr::null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    let mut present = none;
    // SAFETY: the thread ends, and the stack is disabled only if it is still the one in use; the
    // program may have set its own. No handler runs on it here: a thread on it cannot end.
    unsafe {
        libc::sigaltstack(core::ptr::null(), &raw mut present);
        if present.ss_sp == place {
            libc::sigaltstack(&raw const none, core::ptr::null_mut());
        }
        sys::unmap(place.cast(), STACK_BYTES);
    }
}

/// What a new thread needs; stored at the start of its alternate stack.
#[repr(C)]
struct Begin {
    body: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
}

extern "C" fn begin(place: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` wrote it there; a signal frame may overwrite it only afterwards.
    let Begin { body, argument } = unsafe { place.cast::<Begin>().read() };
    // SAFETY: the key was made before; its value is this thread's stack.
    unsafe { libc::pthread_setspecific(KEY.load(Ordering::Acquire), place) };
    use_stack(place);
    entry::guard_thread();
    body(argument)
}

/// `pthread_create(3)`.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    created: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    body: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    type Body = extern "C" fn(*mut c_void) -> *mut c_void;
    type Attributes = *const libc::pthread_attr_t;
    thread::program_starts_one();
    let (mut stack, mut bytes) = (core::ptr::null_mut(), 0);
    let (stack_at, bytes_at) = (&raw mut stack, &raw mut bytes);
    // SAFETY: the program's own attributes; without a stack of its own, no memory is named.
    let named = !attributes.is_null()
        && unsafe { libc::pthread_attr_getstack(attributes, stack_at, bytes_at) } == 0;
    if named {
        leave_to_kernel(stack as u64, bytes as u64);
    }
    let place = match PAGER.is_started() && KEY.load(Ordering::Acquire) != u32::MAX {
        true => sys::map(STACK_BYTES),
        false => None,
    };
    let Some(place) = place else {
        return next!(
            c"pthread_create",
            fn(*mut libc::pthread_t, Attributes, Body, *mut c_void) -> c_int,
            created,
            attributes,
            body,
            argument
        );
    };
    // SAFETY: a new mapping, large enough.
    unsafe { place.cast::<Begin>().write(Begin { body, argument }) };
    let answer = next!(
        c"pthread_create",
        fn(*mut libc::pthread_t, Attributes, Body, *mut c_void) -> c_int,
        created,
        attributes,
        begin,
        place.cast()
    );
    if answer != 0 {
        let _quiet = Blocked::new();
        // SAFETY: no thread came to use it.
        unsafe { sys::unmap(place, STACK_BYTES) };
    }
    answer
}
