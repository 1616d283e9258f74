//! The program's calls: each does what the real function does, and samples.

mod panics;
mod real;

use crate::{sampling, thread};
use core::ffi::{c_int, c_void};
use real::REAL;

/// Whether a block of this size is to be sampled: only if the thread is not inside the sampler.
#[cold]
#[inline(never)]
fn is_chosen(size: usize) -> bool {
    let inside = thread::enter();
    inside.is_some() && sampling::is_chosen(size)
}

/// Records a new block that was chosen, and returns it.
#[inline(always)]
fn recorded(block: *mut c_void, size: usize) -> *mut c_void {
    recorded_growth(block, size, size)
}

/// The same of a block that got so many more bytes.
#[inline(always)]
fn recorded_growth(block: *mut c_void, size: usize, grown: usize) -> *mut c_void {
    if !block.is_null()
        && let Some(_inside) = thread::enter()
    {
        sampling::record(block as u64, size, grown);
    }
    block
}

/// Forgets a block that is about to be freed and may be a sampled one.
#[cold]
#[inline(never)]
fn forget(block: *mut c_void) -> Option<crate::live::Block> {
    let _inside = thread::enter()?;
    sampling::forget(block as u64)
}

/// `malloc(3)`
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    if thread::count(size) {
        return chosen_malloc(size);
    }
    // SAFETY: the caller's call.
    unsafe { REAL.malloc(size) }
}

#[cold]
#[inline(never)]
fn chosen_malloc(size: usize) -> *mut c_void {
    let is_chosen = is_chosen(size);
    // SAFETY: takes any size.
    let block = unsafe { REAL.malloc(size) };
    match is_chosen {
        true => recorded(block, size),
        false => block,
    }
}

/// `calloc(3)`
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // Of a product that is too large, the real function says so.
    let bytes = count.saturating_mul(size);
    if thread::count(bytes) {
        return chosen_calloc(count, size);
    }
    // SAFETY: the caller's call.
    unsafe { REAL.calloc(count, size) }
}

#[cold]
#[inline(never)]
fn chosen_calloc(count: usize, size: usize) -> *mut c_void {
    let bytes = count.saturating_mul(size);
    let is_chosen = is_chosen(bytes);
    // SAFETY: takes any sizes.
    let block = unsafe { REAL.calloc(count, size) };
    match is_chosen {
        true => recorded(block, bytes),
        false => block,
    }
}

/// `free(3)`
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if sampling::may_hold(block as u64) {
        forget(block);
    }
    // SAFETY: the caller's call.
    unsafe { REAL.free(block) }
}

/// `realloc(3)`: what a block grows by is as likely to be sampled as a new block of that size; then
/// all of it counts for the caller. One that was sampled stays so.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        // SAFETY: the same by definition.
        return unsafe { malloc(size) };
    }
    // SAFETY: the caller's block.
    let before = unsafe { REAL.usable(block) };
    let known = match sampling::may_hold(block as u64) {
        true => forget(block),
        false => None,
    };
    // SAFETY: the caller's call.
    let moved = unsafe { REAL.realloc(block, size) };
    if moved.is_null() {
        // As it was, unless the size 0 freed it.
        if let Some(known) = known.filter(|_| size > 0) {
            keep(block, known, known.size as usize);
        }
        return moved;
    }
    // SAFETY: a block of the allocator's.
    let after = unsafe { REAL.usable(moved) };
    let grown = match (before, after) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => size,
    };
    if grown > 0 && thread::count(grown) && is_chosen(grown) {
        return recorded_growth(moved, size, grown);
    }
    if let Some(known) = known {
        keep(moved, known, size);
    }
    moved
}

#[cold]
#[inline(never)]
fn keep(block: *mut c_void, known: crate::live::Block, size: usize) {
    if let Some(_inside) = thread::enter() {
        sampling::keep(block as u64, known, size);
    }
}

/// `posix_memalign(3)`
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(to: *mut *mut c_void, align: usize, size: usize) -> c_int {
    let is_chosen = thread::count(size) && is_chosen(size);
    // SAFETY: the caller's call.
    let answer = unsafe { REAL.posix_memalign(to, align, size) };
    if is_chosen && answer == 0 {
        // SAFETY: the function wrote it.
        recorded(unsafe { *to }, size);
    }
    answer
}

/// `aligned_alloc(3)`
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's call.
    sampled(size, || unsafe { REAL.aligned_alloc(align, size) })
}

/// `memalign(3)`
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's call.
    sampled(size, || unsafe { REAL.memalign(align, size) })
}

/// `valloc(3)`
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's call.
    sampled(size, || unsafe { REAL.valloc(size) })
}

/// `pvalloc(3)`
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's call.
    sampled(size, || unsafe { REAL.pvalloc(size) })
}

#[inline(always)]
fn sampled(size: usize, real: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let is_chosen = thread::count(size) && is_chosen(size);
    let block = real();
    match is_chosen {
        true => recorded(block, size),
        false => block,
    }
}

/// `free_sized` of C23
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut c_void, _: usize) {
    // SAFETY: a block may as well be freed without its size.
    unsafe { free(block) }
}

/// `free_aligned_sized` of C23
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut c_void, _: usize, _: usize) {
    // SAFETY: as above.
    unsafe { free(block) }
}

/// `dlclose(3)`
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(library: *mut c_void) -> c_int {
    // SAFETY: the caller's call.
    let answer = unsafe { REAL.dlclose(library) };
    sampling::library_closed();
    answer
}
