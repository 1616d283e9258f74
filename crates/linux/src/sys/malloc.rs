//! Blocks straight from the C library's `malloc(3)`, or from a library that replaces it.

use pagewise_model::units::Nanos;
use std::ptr::NonNull;

/// A block from `malloc`, freed when dropped. Rust's own allocator is bypassed, so that a preloaded
/// allocator is measured.
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    size: usize,
}

impl Block {
    /// A block of `size` bytes; `None` if there is no memory.
    #[must_use]
    pub fn new(size: usize) -> Option<Self> {
        // SAFETY: malloc takes any size; a null result is checked for.
        let start = unsafe { libc::malloc(size) };
        NonNull::new(start.cast()).map(|start| Self { start, size })
    }

    /// Writes one byte in each `step` bytes and the last byte; the compiler cannot remove the
    /// writes.
    pub fn touch(&mut self, step: usize) {
        for offset in (0..self.size)
            .step_by(step.max(1))
            .chain(self.size.checked_sub(1))
        {
            // SAFETY: `offset` is below `size`, the length of this block, which only this value can
            // reach.
            unsafe { self.start.as_ptr().add(offset).write_volatile(1) }
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `start` came from malloc in `new` and is freed once, here.
        unsafe { libc::free(self.start.as_ptr().cast()) }
    }
}

/// Returns free memory at the top of the heap to the kernel, so that earlier use does not matter.
/// Does nothing outside glibc.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes an integer and has no requirements.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Minor and major faults of this process so far.
#[must_use]
pub fn own_faults() -> u64 {
    // SAFETY: a `rusage` is plain numbers, for which zero is valid; the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    u64::try_from(usage.ru_minflt + usage.ru_majflt).unwrap_or(0)
}

/// CPU time of this process so far, all threads.
#[must_use]
pub fn own_cpu() -> Nanos {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the out-pointer is to a live local; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Nanos(part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec))
}

/// Bytes in a page.
#[must_use]
pub fn page_size() -> usize {
    // SAFETY: sysconf takes an integer.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size)
        .ok()
        .filter(|size| *size > 0)
        .unwrap_or(4096)
}

/// Version of the glibc in use, such as `2.36`; `None` with another C library or if it is linked
/// statically, in which case no library can be preloaded.
#[must_use]
pub fn glibc_version() -> Option<String> {
    #[cfg(all(target_env = "gnu", not(target_feature = "crt-static")))]
    {
        // SAFETY: returns a pointer to a constant NUL-terminated string.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        Some(version.to_string_lossy().into_owned())
    }
    #[cfg(not(all(target_env = "gnu", not(target_feature = "crt-static"))))]
    None
}
