//! What a forked child gives back before `execve(2)`, so that its peak is that of its program.
//!
//! The kernel carries the peak of the memory that exec replaces over to the new program (`exec_mmap`,
//! fs/exec.c), and a child starts with all private memory of its parent. Without this, no program
//! could have a smaller peak than the process that measures it.

use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::{fs, io, ptr};

/// Smaller regions stay: the C library's and the loader's own are among them.
const LEAST: usize = 256 << 10;
/// Regions released, the largest: a list on the stack, because the heap is released as well.
const MOST: usize = 64;

/// Larger pages, as arm64 may have, are multiples of it.
const PAGE: usize = 64 << 10;
const POINTER: usize = size_of::<*const c_char>();

/// Regions of private memory without a file, largest first. Unused entries are empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surplus([(usize, usize); MOST]);

impl Surplus {
    /// The regions of this process but for these strings and what `thread` uses. None where /proc is
    /// not mounted.
    pub(super) fn besides(strings: &Strings, thread: Thread) -> Self {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let regions: Vec<(usize, usize)> = maps.lines().filter_map(anonymous).collect();
        let [stack, own] = thread.keeps(&regions);
        let kept = [strings.pages(), stack, own];
        let mut regions: Vec<(usize, usize)> = regions
            .into_iter()
            .flat_map(|region| without(region, &kept))
            .filter(|&(from, to)| to - from >= LEAST)
            .collect();
        regions.sort_by_key(|&(from, to)| std::cmp::Reverse(to - from));
        let mut list = [(0, 0); MOST];
        for (entry, region) in list.iter_mut().zip(regions) {
            *entry = region;
        }
        Self(list)
    }

    /// Releases them and has the kernel count the peak anew (proc_pid_clear_refs(5)). Async-signal-safe:
    /// madvise, open, write, close.
    ///
    /// # Safety
    /// Only in the child of a fork that uses nothing in these regions any more.
    pub(super) unsafe fn release(&self) {
        for &(from, to) in self.0.iter().filter(|(from, to)| from < to) {
            let start = ptr::without_provenance_mut::<c_void>(from);
            // SAFETY: the caller no longer uses the region; other mappings in its place are copies of
            // the parent's, which this process does not use either.
            unsafe { libc::madvise(start, to - from, libc::MADV_DONTNEED) };
        }
        // SAFETY: a static path and one byte of static memory; the descriptor is this function's own.
        unsafe {
            let file = libc::open(
                c"/proc/self/clear_refs".as_ptr(),
                libc::O_WRONLY | libc::O_CLOEXEC,
            );
            if file >= 0 {
                libc::write(file, c"5".as_ptr().cast(), 1);
                libc::close(file);
            }
        }
    }
}

/// The parts of a region outside `kept`: the kernel makes one region of neighbours.
fn without(region: (usize, usize), kept: &[Range<usize>]) -> Vec<(usize, usize)> {
    let mut parts = vec![region];
    for kept in kept.iter().filter(|kept| !kept.is_empty()) {
        let around = |(from, to): (usize, usize)| {
            let below = (from, to.min(kept.start));
            let above = (from.max(kept.end), to);
            [below, above].into_iter().filter(|(from, to)| from < to)
        };
        parts = parts.into_iter().flat_map(around).collect();
    }
    parts
}

/// Addresses of what a thread uses without naming it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    /// Somewhere in the part of the stack that is in use.
    pub(super) on_stack: usize,
    /// Its `errno`, which is among its thread-local variables.
    pub(super) errno: usize,
}

impl Thread {
    /// The stack from somewhat below on to the end of its region; and what lies around `errno`.
    fn keeps(self, regions: &[(usize, usize)]) -> [Range<usize>; 2] {
        /// The child's calls take less stack, and thread-local variables less memory.
        const NEAR: usize = 128 << 10;
        let page = |address: usize| address & !(PAGE - 1);
        let holds_stack = |&&(from, to): &&(usize, usize)| (from..to).contains(&self.on_stack);
        let end = regions.iter().find(holds_stack).map_or(0, |&(_, to)| to);
        [
            page(self.on_stack.saturating_sub(NEAR))..end,
            page(self.errno.saturating_sub(NEAR))..page(self.errno.saturating_add(NEAR)),
        ]
    }
}

/// The bounds of a line of /proc/self/maps whose memory is private, writable and of no file; not a
/// stack, which its thread uses.
fn anonymous(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let name = fields.nth(3).unwrap_or("[heap]");
    if !permissions.starts_with("rw") || !permissions.ends_with('p') || name != "[heap]" {
        return None;
    }
    Some((
        usize::from_str_radix(from, 16).ok()?,
        usize::from_str_radix(to, 16).ok()?,
    ))
}

/// Strings and lists of them for `execve(2)`, in a mapping of their own, which lasts when the heap is
/// released.
pub(super) struct Strings {
    start: *mut u8,
    size: usize,
    used: usize,
}

impl Strings {
    /// Room for these strings, and for lists of this many pointers, each with its end.
    pub(super) fn with_room<'a>(
        strings: impl Iterator<Item = &'a CStr>,
        lists: &[usize],
    ) -> io::Result<Self> {
        let bytes: usize = strings.map(|text| text.to_bytes_with_nul().len()).sum();
        // One more for the end, one for the alignment.
        let pointers: usize = lists.iter().map(|length| length + 2).sum();
        let size = bytes + pointers * POINTER;
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            start: start.cast(),
            size,
            used: 0,
        })
    }

    /// The pages of the mapping.
    pub(super) fn pages(&self) -> Range<usize> {
        let start = self.start.addr();
        start..start + self.size.next_multiple_of(PAGE)
    }

    /// Copies a list of pointers, and ends it.
    pub(super) fn list(&mut self, pointers: &[*const c_char]) -> *const *const c_char {
        self.used = self.used.next_multiple_of(POINTER);
        let place = self.take((pointers.len() + 1) * POINTER);
        // SAFETY: `take` gave this many bytes of the mapping, aligned as the mapping is to a page; the
        // last pointer's are zero, as all bytes of a new mapping are.
        unsafe {
            ptr::copy_nonoverlapping(pointers.as_ptr().cast::<u8>(), place, size_of_val(pointers))
        };
        place.cast_const().cast()
    }

    /// Copies a string.
    pub(super) fn string(&mut self, text: &CStr) -> *const c_char {
        let bytes = text.to_bytes_with_nul();
        let place = self.take(bytes.len());
        // SAFETY: `take` gave this many bytes of the mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        place.cast()
    }

    fn take(&mut self, size: usize) -> *mut u8 {
        assert!(self.used + size <= self.size, "room was counted before");
        let place = self.start.wrapping_add(self.used);
        self.used += size;
        place
    }
}

impl Drop for Strings {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and its pointers are not used after it.
        unsafe { libc::munmap(self.start.cast(), self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_cut_out_of_a_region() {
        let region = (0x10_0000, 0x90_0000);
        let cut = |kept: &[Range<usize>]| without(region, kept);
        assert_eq!(cut(&[]), [region]);
        assert_eq!(cut(&[0..0x1000, 0xa0_0000..usize::MAX]), [region]);
        assert_eq!(
            cut(&[0x20_0000..0x21_0000, 0x80_0000..usize::MAX]),
            [(0x10_0000, 0x20_0000), (0x21_0000, 0x80_0000)]
        );
        // A stack that is in no region has no end.
        let none = Range {
            start: 0x20_0000,
            end: 0,
        };
        assert_eq!(cut(&[none, 0x10_0000..0x90_0000]), []);
    }

    #[test]
    fn a_thread_keeps_its_stack_to_the_end_and_what_is_around_errno() {
        let thread = Thread {
            on_stack: 0x7f00_0080_0000,
            errno: 0x7f00_4000_0000,
        };
        let regions = [(0x1000, 0x2000), (0x7f00_0000_0000, 0x7f00_0090_0000)];
        let [stack, own] = thread.keeps(&regions);
        assert_eq!(stack, 0x7f00_007e_0000..0x7f00_0090_0000);
        assert_eq!(own, 0x7f00_3ffe_0000..0x7f00_4002_0000);
        // A stack that the kernel names is in none of them.
        assert!(thread.keeps(&regions[..1])[0].is_empty());
    }

    #[test]
    fn only_private_memory_without_a_file_is_surplus() {
        let line =
            "5581c0000000-5581c0100000 rw-p 00000000 00:00 0                          [heap]";
        assert_eq!(anonymous(line), Some((0x5581_c000_0000, 0x5581_c010_0000)));
        assert!(anonymous("7f00a0000000-7f00a0100000 rw-p 00000000 00:00 0 ").is_some());
        for line in [
            "7ffc00000000-7ffc00100000 rw-p 00000000 00:00 0                          [stack]",
            "7f00a0000000-7f00a0100000 r--p 00000000 00:00 0 ",
            "7f00a0000000-7f00a0100000 rw-s 00000000 00:01 9 /dev/zero (deleted)",
            "7f00a0000000-7f00a0100000 rw-p 00000000 fe:00 77 /usr/lib/libc.so.6",
            "no line",
            "",
        ] {
            assert_eq!(anonymous(line), None, "{line}");
        }
    }
}
