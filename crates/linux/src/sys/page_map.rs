//! `PAGEMAP_SCAN` on `/proc/PID/pagemap` (Documentation/admin-guide/mm/pagemap.rst, Linux 6.7) and
//! advice to another process (`process_madvise(2)`).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Categories of include/uapi/linux/fs.h.
pub mod category {
    /// File-backed (or shared memory), not anonymous.
    pub const FILE: u64 = 1 << 2;
    /// In memory.
    pub const PRESENT: u64 = 1 << 3;
    /// In swap.
    pub const SWAPPED: u64 = 1 << 4;
    /// The shared page of zeros.
    pub const ZERO: u64 = 1 << 5;
    /// Mapped by a PMD: a huge page to the TLB.
    pub const HUGE: u64 = 1 << 6;
}

/// A run of pages with the same categories (`struct page_region`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRun {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Bits of [`category`].
    pub categories: u64,
}

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct ScanArguments {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    output: u64,
    output_length: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

const _: () = assert!(size_of::<ScanArguments>() == 96);
const _: () = assert!(size_of::<PageRun>() == 24);

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
/// `MADV_COLLAPSE` (Linux 6.1), which older headers lack.
const MADV_COLLAPSE: libc::c_int = 25;
/// Runs requested at once: 24 KiB of output.
const RUNS: usize = 1024;

/// Populated pages in `[start, end)`, as runs in order of address.
///
/// # Errors
/// `ENOTTY` before Linux 6.7; `ESRCH` or 0 runs if the process is gone.
pub fn scan(pagemap: &File, start: u64, end: u64, found: &mut Vec<PageRun>) -> io::Result<()> {
    let mut at = start;
    let mut output = [PageRun::default(); RUNS];
    while at < end {
        let mut arguments = ScanArguments {
            size: 96,
            start: at,
            end,
            output: output.as_mut_ptr() as u64,
            output_length: RUNS as u64,
            any_of: category::PRESENT | category::SWAPPED,
            returned: category::FILE
                | category::PRESENT
                | category::SWAPPED
                | category::ZERO
                | category::HUGE,
            ..ScanArguments::default()
        };
        // SAFETY: `arguments` is the structure that this request reads and writes, of the size
        // given in the request number and its first field. `output` has room for `output_length`
        // runs; both live through the call.
        let got = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut arguments) };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        found.extend_from_slice(&output[..got.min(RUNS)]);
        if arguments.walk_end <= at {
            break;
        }
        at = arguments.walk_end;
    }
    Ok(())
}

/// Advice that can be given to another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// `MADV_COLLAPSE`: put the pages of each aligned range into one huge page.
    Collapse,
    /// `MADV_COLD`: the pages are not needed soon.
    Cold,
}

/// Advises the process behind `pidfd` about `ranges` (first address, bytes); at most 1024 of them
/// (`UIO_MAXIOV`). Returns the number of bytes advised, which the kernel counts up to the first
/// range that it refuses.
///
/// # Errors
/// The kernel's refusal of the first range (process_madvise(2)).
pub fn advise(pidfd: BorrowedFd<'_>, ranges: &[(u64, u64)], advice: Advice) -> io::Result<u64> {
    let vectors: Vec<libc::iovec> = ranges
        .iter()
        .map(|&(address, length)| libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: usize::try_from(length).unwrap_or(usize::MAX),
        })
        .collect();
    let number = match advice {
        Advice::Collapse => MADV_COLLAPSE,
        Advice::Cold => libc::MADV_COLD,
    };
    // SAFETY: the kernel reads `vectors.len()` vectors through the pointer. The addresses in them
    // belong to the other process; neither advice changes what any process reads from its memory.
    let advised = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            pidfd.as_raw_fd(),
            vectors.as_ptr(),
            vectors.len(),
            number,
            0,
        )
    };
    u64::try_from(advised).map_err(|_| io::Error::last_os_error())
}

/// Copies `into.len()` bytes from `address` in process `pid` (process_vm_readv(2)).
///
/// # Errors
/// The kernel's refusal, or [`io::ErrorKind::UnexpectedEof`] for a partly unmapped range.
pub fn read_memory(pid: i32, address: u64, into: &mut [u8]) -> io::Result<()> {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: into.len(),
    };
    // SAFETY: `local` names exactly the bytes of `into`, which is borrowed for the call; the
    // remote range is checked by the kernel.
    let got = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(got) {
        Ok(got) if got == into.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// A global variable of the test program, which tests read from outside by its symbol.
#[cfg(test)]
#[used]
// SAFETY: no other object of the test program defines a symbol of this name.
#[unsafe(no_mangle)]
pub static PAGEWISE_TEST_PROGRESS: u64 = 0x1234_5678_9abc;
