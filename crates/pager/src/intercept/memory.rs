//! Calls that change the address space.

use super::file_mappings::{self, MADV_POPULATE_READ, MADV_POPULATE_WRITE};
use super::locks::{self, mlock, mlock2, mlockall, munlock, munlockall};
use super::{address_space, libc_answer, set_errno};
use crate::mapped_files;
use crate::page::{PAGE_BYTES, page_ceil, page_floor};
use crate::paging::PAGER;
use crate::paging::adopt::Purpose;
use crate::paging::scan;
use crate::sys::{self, Answer, call3, call6, maps, thread};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

fn is_ok(answer: Answer) -> bool {
    !(answer < 0 && answer > -4096)
}

/// Whether a mapping with these flags may be managed.
fn is_plain(flags: c_int, fd: c_int) -> bool {
    let wanted = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let unwanted = libc::MAP_STACK | libc::MAP_GROWSDOWN | libc::MAP_HUGETLB | libc::MAP_SHARED;
    flags & wanted == wanted && flags & unwanted == 0 && fd == -1
}

/// `mmap(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let flags = mapped_files::flags_of(flags);
    let call = |flags: c_int| {
        // SAFETY: the program's own call.
        unsafe {
            call6(
                libc::SYS_mmap,
                address as usize,
                length,
                protection as usize,
                flags as usize,
                fd as usize,
                offset as usize,
            )
        }
    };
    if !PAGER.is_started() {
        let answer = call(flags);
        if is_ok(answer) {
            mapped_files::advise(answer as usize, length, protection, fd);
        }
        return libc_answer(answer) as *mut c_void;
    }
    if locks::refuses(length as u64, protection) {
        set_errno(libc::EAGAIN);
        return libc::MAP_FAILED;
    }
    let managed = file_mappings::may_be_managed(length, protection, flags, fd);
    // Filled at once, a mapping would exceed the budget before it is known.
    let filled = is_plain(flags, fd) && flags & (libc::MAP_POPULATE | libc::MAP_LOCKED) != 0;
    let call = || match filled || managed {
        true => call(flags & !(libc::MAP_POPULATE | libc::MAP_LOCKED)),
        false => call(flags),
    };
    let start = address as u64;
    let end = page_ceil(start.saturating_add(length as u64));
    let replaces = flags & libc::MAP_FIXED != 0 && PAGER.regions.touches(start, end, false);
    let change = (flags & libc::MAP_FIXED != 0).then(|| PAGER.changes.enter());
    let answer = match replaces {
        true => PAGER.vacating(start, end, call),
        false => call(),
    };
    drop(change);
    address_space::explain(answer, length as u64);
    if is_ok(answer) && is_plain(flags, fd) {
        let start = answer as u64;
        let end = page_ceil(start + length as u64);
        match protection {
            libc::PROT_NONE => PAGER.reserve(start, end),
            _ => PAGER.adopt(start, end, purpose(length, protection)),
        }
        if filled {
            fill(answer as *mut c_void, length, protection, flags);
        }
    }
    let answer = match is_ok(answer) && managed {
        true => file_mappings::manage(answer, length, flags, fd, offset),
        false => answer,
    };
    if is_ok(answer) {
        let start = answer as u64;
        locks::follow(start, page_ceil(start + length as u64), protection);
        if !PAGER.has_file(start, start + 1) {
            mapped_files::advise(answer as usize, length, protection, fd);
        }
    }
    libc_answer(answer) as *mut c_void
}

/// Allocators request the address space of their arenas without access, or in smaller pieces.
fn purpose(length: usize, protection: c_int) -> Purpose {
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    let large = length as u64 >= PAGER.taking.smallest_array.load(Ordering::Relaxed);
    match large && protection & writable == writable {
        true => Purpose::Array,
        false => Purpose::Allocator,
    }
}

/// The effect of `MAP_POPULATE` and `MAP_LOCKED` beyond the mapping. The first is only advice,
/// which managed memory need not follow; neither makes `mmap` fail.
fn fill(start: *mut c_void, length: usize, protection: c_int, flags: c_int) {
    let end = page_ceil(start as u64 + length as u64);
    // SAFETY: the mapping was made by the caller.
    unsafe {
        if flags & libc::MAP_LOCKED != 0 {
            mlock(start, length);
        } else if !PAGER.regions.touches(start as u64, end, true) {
            let advice = match protection & libc::PROT_WRITE {
                0 => MADV_POPULATE_READ,
                _ => MADV_POPULATE_WRITE,
            };
            sys::advise(start as u64, end, advice);
        }
    }
}

/// The same function under its other name.
///
/// # Safety
/// As for [`mmap`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's arguments.
    unsafe { mmap(address, length, protection, flags, fd, offset) }
}

/// `munmap(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    // SAFETY: the program's own call.
    let call = || unsafe { call3(libc::SYS_munmap, address as usize, length, 0) };
    let start = address as u64;
    let end = page_ceil(start.saturating_add(length as u64));
    let known = PAGER.is_started() && PAGER.regions.touches(start, end, false);
    let change = PAGER.changes.enter();
    let answer = match known {
        true => PAGER.vacating(start, end, call),
        false => call(),
    };
    drop(change);
    libc_answer(answer) as c_int
}

/// `mremap(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    address: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    target: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's arguments.
    unsafe { detoured_mremap(address, old, new, flags, target) }
}

/// The function to which libc's own `mremap` jumps. It is variadic in C, where the fifth argument
/// arrives in the same register; without `MREMAP_FIXED` it is not read.
pub unsafe extern "C" fn detoured_mremap(
    address: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    target: *mut c_void,
) -> *mut c_void {
    let call = |flags: c_int| {
        // SAFETY: the program's own call.
        unsafe {
            call6(
                libc::SYS_mremap,
                address as usize,
                old,
                new,
                flags as usize,
                target as usize,
                0,
            )
        }
    };
    // With a length of 0 a second mapping of the file is wanted.
    file_mappings::before_change(address, old.max(1));
    if flags & libc::MREMAP_FIXED != 0 {
        file_mappings::before_change(target, new);
    }
    let start = address as u64;
    let (old_end, fixed) = (
        page_ceil(start.saturating_add(old as u64)),
        flags & libc::MREMAP_FIXED != 0,
    );
    let length = page_ceil(new as u64);
    let target = fixed.then_some(target as u64);
    let overlaps = |to: u64| to < old_end && start < to.saturating_add(length);
    // The kernel refuses these; they must not lock a page twice.
    let all = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    let refused = start != page_floor(start)
        || old_end <= start
        || flags & !all != 0
        || target.is_some_and(overlaps);
    let known = PAGER.is_started()
        && !refused
        && (PAGER.regions.touches(start, old_end, false)
            || target
                .is_some_and(|to| PAGER.regions.touches(to, to.saturating_add(length), false)));
    // A second mapping of shared memory (a length of 0) replaces what is at its place as well.
    let replaces = refused && target.is_some() && PAGER.is_started();
    let change = PAGER.changes.enter();
    let answer = match known {
        false if replaces => {
            let to = target.unwrap_or(0);
            PAGER.vacating(to, to.saturating_add(length), || call(flags))
        }
        true if locks::holds(start) => {
            let old_bytes = old_end - start;
            let remap = || PAGER.remapping(start, old_bytes, length, target, flags, call);
            locks::remapping(start, old_end, length, remap)
        }
        true => PAGER.remapping(start, old_end - start, length, target, flags, call),
        false => call(flags),
    };
    drop(change);
    address_space::explain(answer, new.saturating_sub(old) as u64);
    libc_answer(answer) as *mut c_void
}

/// `madvise(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int {
    let call = |advice: c_int| {
        // SAFETY: the program's own call, or a weaker one.
        unsafe { call3(libc::SYS_madvise, address as usize, length, advice as usize) }
    };
    let start = address as u64;
    let end = page_ceil(start.saturating_add(length as u64));
    let forks = matches!(
        advice,
        libc::MADV_DONTFORK | libc::MADV_DOFORK | libc::MADV_WIPEONFORK | libc::MADV_KEEPONFORK
    );
    // The treatment of memory in children, and guards, must also be recorded for memory that may be
    // managed later.
    let stays = forks || matches!(advice, MADV_GUARD_INSTALL | MADV_GUARD_REMOVE);
    let known = PAGER.is_started() && PAGER.regions.touches(start, end, !stays);
    let refused = start != page_floor(start)
        || start
            .checked_add(length as u64)
            .is_none_or(|end| end > u64::MAX - PAGE_BYTES as u64);
    if !known || refused {
        return libc_answer(call(mapped_files::in_place_of(length, advice))) as c_int;
    }
    if let Some(answer) = file_mappings::advised(start, end, advice) {
        return answer;
    }
    let advise = |advice: c_int| {
        // SAFETY: parts of the program's own call, or of a weaker one.
        move |start: u64, end: u64| unsafe { sys::advise(start, end, advice) }
    };
    let answer = match advice {
        // Given back lazily or at once: the program may see either, but a page that is still in the
        // store must not come back after the program has seen it as zero.
        libc::MADV_DONTNEED | libc::MADV_FREE => {
            PAGER.emptying(start, end, advise(libc::MADV_DONTNEED), advise(advice))
        }
        MADV_DONTNEED_LOCKED => PAGER.emptying(start, end, advise(advice), advise(advice)),
        MADV_GUARD_INSTALL => PAGER.guarding(start, end, || {
            PAGER.emptying(start, end, advise(advice), advise(advice))
        }),
        MADV_GUARD_REMOVE => PAGER.unguarding(start, end, || call(advice)),
        libc::MADV_PAGEOUT => {
            PAGER.page_out(start, end);
            0
        }
        // The kernel would find missing pages and fail.
        MADV_POPULATE_READ | MADV_POPULATE_WRITE if PAGER.raises(start, end) => {
            PAGER.populate(start, end);
            match call(advice) {
                // A page that has left again is no reason.
                FAULT if !PAGER.regions.has_guards(start, end) => 0,
                answer => answer,
            }
        }
        // Pages must remain base pages that are managed individually.
        libc::MADV_HUGEPAGE | libc::MADV_MERGEABLE | MADV_COLLAPSE => 0,
        _ if forks => PAGER.advising_fork(start, end, advice, || call(advice)),
        _ => call(advice),
    };
    libc_answer(answer) as c_int
}

/// `shmat(2)`, which with `SHM_REMAP` replaces other memory.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shmat(
    segment: c_int,
    address: *const c_void,
    flags: c_int,
) -> *mut c_void {
    let (place, more) = (address as usize, flags as usize);
    // SAFETY: the program's own call.
    let call = || unsafe { call3(libc::SYS_shmat, segment as usize, place, more) };
    let answer = match flags & libc::SHM_REMAP != 0 && PAGER.is_started() {
        true => {
            let _change = PAGER.changes.enter();
            // SAFETY: zeros are a valid structure, which lives through the call.
            let bytes = unsafe {
                let mut about: libc::shmid_ds = core::mem::zeroed();
                let into = &raw mut about as usize;
                call3(
                    libc::SYS_shmctl,
                    segment as usize,
                    libc::IPC_STAT as usize,
                    into,
                );
                about.shm_segsz as u64
            };
            let start = page_floor(place as u64);
            let end = page_ceil(start.saturating_add(bytes));
            PAGER.vacating(start, end, call)
        }
        false => call(),
    };
    libc_answer(answer) as *mut c_void
}

/// Drop locked pages as well (Linux 5.18).
const MADV_DONTNEED_LOCKED: c_int = 24;
/// Make huge pages now (Linux 6.1).
const MADV_COLLAPSE: c_int = 25;
/// Drop, and let every touch raise SIGSEGV (Linux 6.13).
const MADV_GUARD_INSTALL: c_int = 102;
/// Let touches through again.
const MADV_GUARD_REMOVE: c_int = 103;
const FAULT: Answer = -(libc::EFAULT as Answer);

/// One of these calls made through `syscall(2)`; `None` if `number` is a different one.
///
/// # Safety
/// As for the call.
pub(super) unsafe fn by_number(number: i64, arguments: [usize; 6]) -> Option<i64> {
    let [a, b, c, d, e, f] = arguments;
    let place = a as *mut c_void;
    // SAFETY: the caller's arguments.
    let answer = unsafe {
        match number {
            libc::SYS_mmap => mmap(place, b, c as c_int, d as c_int, e as c_int, f as i64) as i64,
            libc::SYS_munmap => i64::from(munmap(place, b)),
            libc::SYS_mremap => detoured_mremap(place, b, c, d as c_int, e as *mut c_void) as i64,
            libc::SYS_madvise => i64::from(madvise(place, b, c as c_int)),
            libc::SYS_mprotect => i64::from(file_mappings::mprotect(place, b, c as c_int)),
            libc::SYS_pkey_mprotect => i64::from(file_mappings::pkey_mprotect(
                place, b, c as c_int, d as c_int,
            )),
            libc::SYS_remap_file_pages => i64::from(file_mappings::remap_file_pages(
                place, b, c as c_int, d, e as c_int,
            )),
            libc::SYS_mlock => i64::from(mlock(place, b)),
            libc::SYS_mlock2 => i64::from(mlock2(place, b, c as u32)),
            libc::SYS_munlock => i64::from(munlock(place, b)),
            libc::SYS_mlockall => i64::from(mlockall(a as c_int)),
            libc::SYS_munlockall => i64::from(munlockall()),
            libc::SYS_shmat => shmat(a as c_int, b as *const c_void, c as c_int) as i64,
            _ => return None,
        }
    };
    Some(answer)
}

/// Bytes from which memory that was there before the pager is managed: what is smaller belongs to
/// libraries, libc among them, and is no reason to start threads as soon as a program starts.
const LEAST_PRESENT: u64 = 4 << 20;

/// Pages of data before the pager has mapped anything; for [`adopt_present`].
pub fn data_before() -> u64 {
    scan::data_pages().unwrap_or(u64::MAX)
}

/// Memory that was there before the pager is managed as well: arrays of the program's and its
/// libraries' `.bss`, and what an allocator has mapped when it was loaded.
pub fn adopt_present(data_before: u64) {
    if data_before < LEAST_PRESENT / PAGE_BYTES as u64 {
        return;
    }
    // What libc keeps for the first thread may be in such memory, and the pager's own data is.
    let spared = [thread::pointer(), core::ptr::from_ref(&PAGER) as u64];
    let (mut found, mut count) = ([const { 0..0 }; 64], 0);
    maps::each_data(|range| {
        let large = range.end - range.start >= LEAST_PRESENT;
        if large && !spared.iter().any(|address| range.contains(address)) {
            found[count] = range;
            count += 1;
        }
        count < found.len()
    });
    for range in &found[..count] {
        PAGER.adopt(range.start, range.end, Purpose::Allocator);
    }
}
