//! Hints from a Rust program to the pager, if it is loaded (feature `hints`): the counterpart of
//! the inline functions of `pagewise_pager.h`. Without the library they do nothing.
//!
//! ```no_run
//! use pagewise_pager::hints::{self, Role};
//! let edges = vec![0_u32; 1 << 28];
//! hints::declare(&edges, Role::CsrEdges).ok();
//! ```

use core::ffi::{CStr, c_int, c_void};
pub use pagewise_policy::Role;
use std::io;

/// Declares how `memory` is used.
///
/// # Errors
/// `ENOENT` if the pager manages none of it.
pub fn declare<T>(memory: &[T], role: Role) -> io::Result<()> {
    type Hint = unsafe extern "C" fn(*const c_void, usize, u32) -> c_int;
    let Some(place) = find(c"pagewise_hint") else {
        return Ok(());
    };
    // SAFETY: the pager exports a function of this type by this name; it accepts any address, and
    // does not read or write there.
    let errno = unsafe {
        let hint: Hint = core::mem::transmute(place);
        hint(memory.as_ptr().cast(), size_of_val(memory), role.code())
    };
    answer(errno)
}

/// Reads `memory` early, without waiting.
///
/// # Errors
/// As [`declare`].
pub fn read_ahead<T>(memory: &[T]) -> io::Result<()> {
    call(c"pagewise_prefetch", memory)
}

/// Reads `memory` in and keeps it resident.
///
/// # Errors
/// As [`declare`]; `ENOMEM` beyond half of the budget.
pub fn keep<T>(memory: &[T]) -> io::Result<()> {
    call(c"pagewise_pin", memory)
}

/// Ends [`keep`].
///
/// # Errors
/// As [`declare`].
pub fn let_go<T>(memory: &[T]) -> io::Result<()> {
    call(c"pagewise_unpin", memory)
}

/// Evicts `memory` now: it will not be used for long. Its contents stay.
///
/// # Errors
/// As [`declare`].
pub fn send_away<T>(memory: &[T]) -> io::Result<()> {
    call(c"pagewise_drop", memory)
}

fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym looks up a constant name.
    let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!place.is_null()).then_some(place)
}

fn call<T>(name: &CStr, memory: &[T]) -> io::Result<()> {
    type Call = unsafe extern "C" fn(*const c_void, usize) -> c_int;
    let Some(place) = find(name) else {
        return Ok(());
    };
    // SAFETY: as in `declare`; contents do not change, whatever the pager does with pages.
    let errno = unsafe {
        let call: Call = core::mem::transmute(place);
        call(memory.as_ptr().cast(), size_of_val(memory))
    };
    answer(errno)
}

fn answer(errno: c_int) -> io::Result<()> {
    match errno {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_library_hints_do_nothing() {
        let memory = vec![1_u8; 1 << 16];
        assert!(declare(&memory, Role::Hot).is_ok());
        assert!(keep(&memory).and_then(|()| let_go(&memory)).is_ok());
        assert!(
            read_ahead(&memory)
                .and_then(|()| send_away(&memory))
                .is_ok()
        );
        assert_eq!(memory, vec![1_u8; 1 << 16]);
    }
}
