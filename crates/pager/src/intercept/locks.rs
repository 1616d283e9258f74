//! Memory that the program locks: it remains resident, as far as the budget allows.
//!
//! The kernel is called range by range, never for all memory at once: that would fill the pager's
//! own tables, which are mostly unused address space, and new mappings before they are counted in
//! the budget.

use super::{libc_answer, set_errno};
use crate::page::{PAGE_BYTES, page_ceil, page_floor};
use crate::paging::PAGER;
use crate::sys::maps::{self, Mapping};
use crate::sys::{Answer, call3};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

/// New mappings are not locked.
const FREE: u32 = 0;
/// New mappings are locked and filled.
const FILLED: u32 = 1;
/// New mappings are locked page by page as they are touched.
const ON_FAULT: u32 = 2;

/// How new mappings are treated since `mlockall(MCL_FUTURE)`.
static FUTURE: AtomicU32 = AtomicU32::new(FREE);

fn failed(answer: Answer) -> bool {
    answer < 0 && answer > -4096
}

/// Refused if less than an eighth of the room for managed pages would remain: locked pages are
/// never evicted.
pub(super) fn too_much_to_lock(start: u64, end: u64) -> bool {
    let known = PAGER.is_started() && PAGER.regions.touches(start, end, true);
    known && is_too_much(end - start)
}

fn is_too_much(more_bytes: u64) -> bool {
    PAGER.refresh_limit();
    let room = PAGER.budget.limit() * PAGE_BYTES as u64;
    PAGER.locked_bytes() + more_bytes > room - room / 8
}

/// Locks `[start, end)` in the pager and in the kernel, and fills it unless `on_fault`.
fn lock(mapping: Mapping, on_fault: bool) -> Answer {
    let Mapping { start, end, .. } = mapping;
    let listed = PAGER.regions.touches(start, end, false);
    let fills = mapping.accessible && !on_fault;
    if listed {
        // Locked first, so that pages brought in are not evicted again.
        PAGER.set_locked(start, end, true);
    }
    if fills {
        let managed = PAGER.regions.managed(start, end);
        managed.for_each(|region| PAGER.populate(region.start, region.end));
    }
    // First whether it may be locked at all; then it is filled as far as possible, as in
    // `mlockall`.
    let answer = in_kernel(start, end, libc::MLOCK_ONFAULT);
    if failed(answer) {
        if listed {
            PAGER.set_locked(start, end, false);
        }
    } else if fills {
        in_kernel(start, end, 0);
    }
    answer
}

fn in_kernel(start: u64, end: u64, flags: u32) -> Answer {
    let (start, bytes) = (start as usize, (end - start) as usize);
    // SAFETY: requested by the program; changes no contents.
    unsafe { call3(libc::SYS_mlock2, start, bytes, flags as usize) }
}

/// `mlock(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock(address: *const c_void, length: usize) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { mlock2(address, length, 0) }
}

/// `mlock2(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock2(address: *const c_void, length: usize, flags: u32) -> c_int {
    let start = page_floor(address as u64);
    let end = page_ceil((address as u64).saturating_add(length as u64));
    if too_much_to_lock(start, end) {
        set_errno(libc::ENOMEM);
        return -1;
    }
    let known = PAGER.is_started() && PAGER.regions.touches(start, end, false);
    if known {
        PAGER.set_locked(start, end, true);
        PAGER.populate(start, end);
    }
    // SAFETY: the program's own call.
    let answer = unsafe { call3(libc::SYS_mlock2, address as usize, length, flags as usize) };
    if failed(answer) && known {
        PAGER.set_locked(start, end, false);
    }
    libc_answer(answer) as c_int
}

/// `munlock(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munlock(address: *const c_void, length: usize) -> c_int {
    // SAFETY: the program's own call.
    let answer = unsafe { call3(libc::SYS_munlock, address as usize, length, 0) };
    let start = page_floor(address as u64);
    let end = page_ceil((address as u64).saturating_add(length as u64));
    if !failed(answer) && PAGER.is_started() && PAGER.regions.touches(start, end, false) {
        PAGER.set_locked(start, end, false);
    }
    libc_answer(answer) as c_int
}

/// `mlockall(2)`: ENOMEM if the budget has no room for what would have to stay resident.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    let all = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
    let valid = flags & !all == 0 && flags & (libc::MCL_CURRENT | libc::MCL_FUTURE) != 0;
    if !PAGER.is_started() || !valid {
        // SAFETY: the program's own call.
        return libc_answer(unsafe { call3(libc::SYS_mlockall, flags as usize, 0, 0) }) as c_int;
    }
    let on_fault = flags & libc::MCL_ONFAULT != 0;
    let locked = match flags & libc::MCL_CURRENT {
        // Locking nothing shows whether this process may lock.
        0 => match in_kernel(0, 0, 0) {
            answer if failed(answer) => Err(answer),
            _ => Ok(()),
        },
        _ => lock_present(on_fault),
    };
    if let Err(answer) = locked {
        return libc_answer(answer) as c_int;
    }
    let future = match flags & libc::MCL_FUTURE {
        0 => FREE,
        _ if on_fault => ON_FAULT,
        _ => FILLED,
    };
    FUTURE.store(future, Ordering::SeqCst);
    0
}

/// `munlockall(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munlockall() -> c_int {
    FUTURE.store(FREE, Ordering::SeqCst);
    if PAGER.is_started() {
        PAGER.set_locked(0, u64::MAX, false);
    }
    // SAFETY: the program's own call.
    libc_answer(unsafe { call3(libc::SYS_munlockall, 0, 0, 0) }) as c_int
}

/// Locks what is mapped now, or nothing.
fn lock_present(on_fault: bool) -> Result<(), Answer> {
    const NO_ROOM: Answer = -(libc::ENOMEM as Answer);
    if !fits(on_fault) {
        return Err(NO_ROOM);
    }
    let mut refused = None;
    let message = maps::each(|mapping| {
        let answer = lock(mapping, on_fault);
        refused = failed(answer).then_some((mapping.start, answer));
        refused.is_none()
    });
    let (behind, answer) = match refused {
        None if message => return Ok(()),
        None => (u64::MAX, NO_ROOM),
        Some(refused) => refused,
    };
    maps::each(|mapping| {
        let is_ours = mapping.start < behind;
        if is_ours {
            // SAFETY: locked above.
            unsafe {
                munlock(
                    mapping.start as *const c_void,
                    (mapping.end - mapping.start) as usize,
                )
            };
        }
        is_ours
    });
    Err(answer)
}

/// Whether all accessible memory may stay resident: managed memory within seven eighths of its
/// room, and everything together within the same part of the budget. Memory that is filled only on
/// faults counts if it is managed.
fn fits(on_fault: bool) -> bool {
    let (mut all, mut managed) = (0, 0);
    let message = maps::each(|mapping| {
        if mapping.accessible {
            let parts = PAGER.regions.managed(mapping.start, mapping.end);
            managed += parts.map(|part| part.end - part.start).sum::<u64>();
            all += mapping.end - mapping.start;
        }
        true
    });
    PAGER.refresh_limit();
    let room = PAGER.budget.limit() * PAGE_BYTES as u64;
    let total = PAGER.measured.total_bytes.load(Ordering::Relaxed);
    message && managed <= room - room / 8 && (on_fault || all <= total - total / 8)
}

/// Whether a new mapping of this many bytes would have to be locked, but there is no room for it.
pub(super) fn refuses(bytes: u64, protection: c_int) -> bool {
    let locks = FUTURE.load(Ordering::Relaxed) != FREE && protection != libc::PROT_NONE;
    locks && PAGER.is_started() && is_too_much(bytes)
}

/// `[start, end)` has been mapped; locks it if the program wants all new memory locked.
pub(super) fn follow(start: u64, end: u64, protection: c_int) {
    let future = FUTURE.load(Ordering::Relaxed);
    if future == FREE || !PAGER.is_started() {
        return;
    }
    let accessible = protection != libc::PROT_NONE;
    let mapping = Mapping {
        start,
        end,
        accessible,
    };
    lock(mapping, future == ON_FAULT);
}

/// Whether the memory at `address` is known to be locked.
pub(super) fn holds(address: u64) -> bool {
    let region = PAGER.regions.find(address);
    region.is_some_and(|region| region.kind.locked)
}

/// Runs `call`, which moves or resizes the locked `[start, end)` to `length` bytes. The kernel
/// would fill the new part before it is known to the pager: it is locked afterwards.
pub(super) fn remapping(
    start: u64,
    end: u64,
    length: u64,
    call: impl FnOnce() -> Answer,
) -> Answer {
    let grown = length.saturating_sub(end - start);
    if grown > 0 && is_too_much(grown) {
        return -(libc::EAGAIN as Answer);
    }
    // SAFETY: locked until now, and again below.
    unsafe { call3(libc::SYS_munlock, start as usize, (end - start) as usize, 0) };
    let answer = call();
    let (start, end) = match failed(answer) {
        true => (start, end),
        false => (answer as u64, answer as u64 + length),
    };
    let accessible = true;
    lock(
        Mapping {
            start,
            end,
            accessible,
        },
        false,
    );
    answer
}

/// Locks are not inherited.
pub(super) fn forked() {
    FUTURE.store(FREE, Ordering::Relaxed);
}
