//! Hints that a program can give to the pager (`pagewise_pager.h`). All are harmless without it.

use crate::page::{page_ceil, page_floor};
use crate::paging::PAGER;
use core::ffi::{c_int, c_void};
use pagewise_policy::Role;

/// The whole pages of a range; an error if none of it is managed.
fn managed(place: *const c_void, bytes: usize) -> Result<(u64, u64), c_int> {
    let start = page_floor(place as u64);
    let end = page_ceil((place as u64).saturating_add(bytes as u64));
    match PAGER.is_started() && PAGER.regions.touches(start, end, true) {
        true => Ok((start, end)),
        false => Err(libc::ENOENT),
    }
}

fn answer(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(0)
}

/// Declares the role of a range. 0, or an `errno`: ENOENT if nothing is managed, EINVAL for an
/// unknown role.
#[unsafe(no_mangle)]
pub extern "C" fn pagewise_hint(place: *const c_void, bytes: usize, role: u32) -> c_int {
    answer(managed(place, bytes).and_then(|(start, end)| {
        let role = Role::from_code(role).ok_or(libc::EINVAL)?;
        PAGER.hint(start, end, role);
        Ok(())
    }))
}

/// Reads a range ahead of its use.
#[unsafe(no_mangle)]
pub extern "C" fn pagewise_prefetch(place: *const c_void, bytes: usize) -> c_int {
    answer(managed(place, bytes).map(|(start, end)| PAGER.prefetch(start, end)))
}

/// Keeps a range resident. ENOMEM beyond half of the budget.
#[unsafe(no_mangle)]
pub extern "C" fn pagewise_pin(place: *const c_void, bytes: usize) -> c_int {
    answer(managed(place, bytes).and_then(|(start, end)| {
        if super::locks::too_much_to_lock(start, end) {
            return Err(libc::ENOMEM);
        }
        PAGER.set_locked(start, end, true);
        PAGER.populate(start, end);
        Ok(())
    }))
}

/// Ends [`pagewise_pin`].
#[unsafe(no_mangle)]
pub extern "C" fn pagewise_unpin(place: *const c_void, bytes: usize) -> c_int {
    answer(managed(place, bytes).map(|(start, end)| PAGER.set_locked(start, end, false)))
}

/// Evicts a range now; its contents stay.
#[unsafe(no_mangle)]
pub extern "C" fn pagewise_drop(place: *const c_void, bytes: usize) -> c_int {
    answer(managed(place, bytes).map(|(start, end)| PAGER.page_out(start, end)))
}
