//! The environment of this process, as it started.

use alloc::borrow::ToOwned;
use alloc::ffi::CString;
use alloc::string::String;
use core::ffi::CStr;

/// The value of the variable `name`, if there is one and it is text. Allocates: only for the start, while
/// nothing changes the environment.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    // SAFETY: the C library returns null, or text that lives until the variable is changed.
    let value = unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    };
    value?.to_str().ok().map(ToOwned::to_owned)
}
