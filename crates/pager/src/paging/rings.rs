//! Whether the program has an io_uring.

use super::Pager;
use crate::sys;
use core::fmt::Write;

/// Number of descriptors that are checked; any beyond that are assumed not to be rings.
const MOST: u32 = 4096;

/// Whether a descriptor of this process is an io_uring that is not `pager`'s.
pub fn any(pager: &Pager) -> bool {
    (0..MOST).any(|number| is_ring(number) && !pager.is_ours(number.cast_signed()))
}

fn is_ring(number: u32) -> bool {
    let mut path = sys::line::Line::new();
    let mut target = [0_u8; 32];
    let written = write!(path, "/proc/self/fd/{number}\0");
    // SAFETY: live argument: the path ends with zero, and the buffer lives through the call.
    let length = unsafe {
        sys::call3(
            libc::SYS_readlink,
            path.text().as_ptr() as usize,
            target.as_mut_ptr() as usize,
            target.len(),
        )
    };
    let length = usize::try_from(length).unwrap_or(0);
    written.is_ok() && target[..length].starts_with(b"anon_inode:[io_uring]")
}
