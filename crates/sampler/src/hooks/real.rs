//! The functions that the program would call without us: those of the next library that has them.

use crate::{sampling, thread};
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Memalign = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;
type Usable = unsafe extern "C" fn(*mut c_void) -> usize;
type Close = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Their addresses. Those of the first four are never null: before they are known, they lead to functions
/// that look for all.
pub(super) struct Real {
    malloc: AtomicPtr<c_void>,
    calloc: AtomicPtr<c_void>,
    realloc: AtomicPtr<c_void>,
    free: AtomicPtr<c_void>,
    posix_memalign: AtomicPtr<c_void>,
    aligned_alloc: AtomicPtr<c_void>,
    memalign: AtomicPtr<c_void>,
    valloc: AtomicPtr<c_void>,
    pvalloc: AtomicPtr<c_void>,
    usable: AtomicPtr<c_void>,
    dlclose: AtomicPtr<c_void>,
}

pub(super) static REAL: Real = Real {
    malloc: AtomicPtr::new(first_malloc as *mut c_void),
    calloc: AtomicPtr::new(first_calloc as *mut c_void),
    realloc: AtomicPtr::new(first_realloc as *mut c_void),
    free: AtomicPtr::new(first_free as *mut c_void),
    posix_memalign: AtomicPtr::new(null_mut()),
    aligned_alloc: AtomicPtr::new(null_mut()),
    memalign: AtomicPtr::new(null_mut()),
    valloc: AtomicPtr::new(null_mut()),
    pvalloc: AtomicPtr::new(null_mut()),
    usable: AtomicPtr::new(null_mut()),
    dlclose: AtomicPtr::new(null_mut()),
};

/// The function at an address that was found, as what it is.
macro_rules! known {
    ($of:expr, $type:ty) => {{
        let at = $of.load(Ordering::Relaxed);
        // SAFETY: the address of a function of that name, which has this type, or null.
        unsafe { transmute::<*mut c_void, Option<$type>>(at) }
    }};
}

/// The same where the program may call it first of all.
macro_rules! found {
    ($of:expr, $type:ty) => {{
        if $of.load(Ordering::Relaxed).is_null() {
            find_all();
        }
        known!($of, $type)
    }};
}

impl Real {
    #[inline(always)]
    pub unsafe fn malloc(&self, size: usize) -> *mut c_void {
        match known!(self.malloc, Malloc) {
            // SAFETY: the caller's call.
            Some(malloc) => unsafe { malloc(size) },
            None => null_mut(),
        }
    }

    #[inline(always)]
    pub unsafe fn calloc(&self, count: usize, size: usize) -> *mut c_void {
        match known!(self.calloc, Calloc) {
            // SAFETY: the caller's call.
            Some(calloc) => unsafe { calloc(count, size) },
            None => null_mut(),
        }
    }

    #[inline(always)]
    pub unsafe fn realloc(&self, block: *mut c_void, size: usize) -> *mut c_void {
        match known!(self.realloc, Realloc) {
            // SAFETY: the caller's call.
            Some(realloc) => unsafe { realloc(block, size) },
            None => null_mut(),
        }
    }

    #[inline(always)]
    pub unsafe fn free(&self, block: *mut c_void) {
        if let Some(free) = known!(self.free, Free) {
            // SAFETY: the caller's call.
            unsafe { free(block) }
        }
    }

    pub unsafe fn posix_memalign(&self, to: *mut *mut c_void, align: usize, size: usize) -> c_int {
        match found!(self.posix_memalign, Memalign) {
            // SAFETY: the caller's call.
            Some(real) => unsafe { real(to, align, size) },
            None => libc::ENOMEM,
        }
    }

    pub unsafe fn aligned_alloc(&self, align: usize, size: usize) -> *mut c_void {
        match found!(self.aligned_alloc, Calloc) {
            // SAFETY: the caller's call.
            Some(real) => unsafe { real(align, size) },
            None => null_mut(),
        }
    }

    pub unsafe fn memalign(&self, align: usize, size: usize) -> *mut c_void {
        match found!(self.memalign, Calloc) {
            // SAFETY: the caller's call.
            Some(real) => unsafe { real(align, size) },
            None => null_mut(),
        }
    }

    pub unsafe fn valloc(&self, size: usize) -> *mut c_void {
        match found!(self.valloc, Malloc) {
            // SAFETY: the caller's call.
            Some(real) => unsafe { real(size) },
            None => null_mut(),
        }
    }

    pub unsafe fn pvalloc(&self, size: usize) -> *mut c_void {
        match found!(self.pvalloc, Malloc) {
            // SAFETY: the caller's call.
            Some(real) => unsafe { real(size) },
            None => null_mut(),
        }
    }

    /// The bytes that a block has room for; `None` if the allocator does not tell.
    #[inline(always)]
    pub unsafe fn usable(&self, block: *mut c_void) -> Option<usize> {
        let usable = known!(self.usable, Usable)?;
        // SAFETY: the caller's block.
        Some(unsafe { usable(block) })
    }

    pub unsafe fn dlclose(&self, library: *mut c_void) -> c_int {
        match found!(self.dlclose, Close) {
            // SAFETY: the caller's call.
            Some(real) => unsafe { real(library) },
            None => -1,
        }
    }
}

/// Finds all functions. While it does, its own thread gets no memory: `dlsym(3)` does without.
#[cold]
fn find_all() {
    let Some(inside) = thread::enter() else {
        return;
    };
    // Those that all allocators have first: to find none of the others takes memory for a message.
    let first = [
        (&REAL.malloc, c"malloc"),
        (&REAL.calloc, c"calloc"),
        (&REAL.realloc, c"realloc"),
        (&REAL.free, c"free"),
    ];
    let addresses = first.map(|(_, name)| next(name));
    for ((place, _), address) in first.into_iter().zip(addresses) {
        if !address.is_null() {
            place.store(address, Ordering::Release);
        }
    }
    let others = [
        (&REAL.posix_memalign, c"posix_memalign"),
        (&REAL.aligned_alloc, c"aligned_alloc"),
        (&REAL.memalign, c"memalign"),
        (&REAL.valloc, c"valloc"),
        (&REAL.pvalloc, c"pvalloc"),
        (&REAL.usable, c"malloc_usable_size"),
        (&REAL.dlclose, c"dlclose"),
    ];
    for (place, name) in others {
        place.store(next(name), Ordering::Release);
    }
    sampling::prepare(REAL.malloc.load(Ordering::Relaxed) as u64);
    // One that is found takes back the error about one that is not, which the program did not make.
    // dlerror(3) would translate it, which needs a lock that a first call inside setlocale(3) holds.
    next(c"free");
    drop(inside);
}

/// The function of this name behind this library.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a name that ends with NUL.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

unsafe extern "C" fn first_malloc(size: usize) -> *mut c_void {
    find_all();
    match REAL.malloc.load(Ordering::Relaxed) == first_malloc as *mut c_void {
        true => null_mut(),
        // SAFETY: the caller's call.
        false => unsafe { REAL.malloc(size) },
    }
}

unsafe extern "C" fn first_calloc(count: usize, size: usize) -> *mut c_void {
    find_all();
    match REAL.calloc.load(Ordering::Relaxed) == first_calloc as *mut c_void {
        true => null_mut(),
        // SAFETY: the caller's call.
        false => unsafe { REAL.calloc(count, size) },
    }
}

unsafe extern "C" fn first_realloc(block: *mut c_void, size: usize) -> *mut c_void {
    find_all();
    match REAL.realloc.load(Ordering::Relaxed) == first_realloc as *mut c_void {
        true => null_mut(),
        // SAFETY: the caller's call.
        false => unsafe { REAL.realloc(block, size) },
    }
}

unsafe extern "C" fn first_free(block: *mut c_void) {
    find_all();
    if REAL.free.load(Ordering::Relaxed) != first_free as *mut c_void {
        // SAFETY: the caller's call.
        unsafe { REAL.free(block) }
    }
}
