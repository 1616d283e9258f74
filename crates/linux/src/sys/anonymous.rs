//! Anonymous memory of our own, and of a child process, for trials of huge pages.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;
use std::ptr;

/// Page sizes to request for a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// `MADV_HUGEPAGE`.
    Huge,
    /// `MADV_NOHUGEPAGE`.
    Base,
}

/// Anonymous private memory, zeroed, aligned to a huge page.
#[derive(Debug)]
pub struct Anonymous {
    mapped: *mut libc::c_void,
    mapped_length: usize,
    start: *mut u64,
    words: usize,
}

// SAFETY: the value owns the memory, which is reached only through borrows of the value.
unsafe impl Send for Anonymous {}

impl Anonymous {
    /// Maps `length` bytes (a multiple of 8) at a multiple of `alignment` (a power of two).
    ///
    /// # Errors
    /// `ENOMEM`; `EINVAL` if the kernel has no huge pages.
    pub fn map(length: usize, alignment: usize, pages: Pages) -> io::Result<Self> {
        let mapped_length = length + alignment;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing
        // that exists.
        let mapped = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped_length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let skip = mapped.align_offset(alignment);
        let this = Self {
            mapped,
            mapped_length,
            // SAFETY: the mapping is `alignment` bytes longer than `length`, so the aligned start
            // and the `length` bytes behind it lie inside.
            start: unsafe { mapped.byte_add(skip) }.cast(),
            words: length / 8,
        };
        match this.advise(0, length, pages) {
            Ok(()) => Ok(this),
            // If the kernel has no huge pages, base pages need no advice.
            Err(_) if pages == Pages::Base => Ok(this),
            Err(error) => Err(error),
        }
    }

    /// Requests a page size for `length` bytes from byte `from` on, both multiples of a base page,
    /// before they are touched.
    ///
    /// # Errors
    /// `EINVAL` if the kernel has no huge pages.
    ///
    /// # Panics
    /// If the range lies outside.
    pub fn advise(&self, from: usize, length: usize, pages: Pages) -> io::Result<()> {
        assert!(from + length <= self.words * 8, "a range of this memory");
        let advice = match pages {
            Pages::Huge => libc::MADV_HUGEPAGE,
            Pages::Base => libc::MADV_NOHUGEPAGE,
        };
        // SAFETY: the range was checked to lie in our own mapping; neither advice changes content.
        let advised = unsafe { libc::madvise(self.start.byte_add(from).cast(), length, advice) };
        match advised {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Puts `length` bytes from byte `from` on into huge pages, whatever the machine's settings
    /// (`MADV_COLLAPSE`, Linux 6.1).
    ///
    /// # Errors
    /// The kernel's refusal.
    ///
    /// # Panics
    /// If the range lies outside.
    pub fn collapse(&self, from: usize, length: usize) -> io::Result<()> {
        const MADV_COLLAPSE: libc::c_int = 25;
        assert!(from + length <= self.words * 8, "a range of this memory");
        // SAFETY: as in `advise`; the kernel copies the content to where it is then mapped.
        let status =
            unsafe { libc::madvise(self.start.byte_add(from).cast(), length, MADV_COLLAPSE) };
        match status {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Address of the first word.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// The memory.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        // SAFETY: `start` points to `words` readable words of a mapping that lives as long as
        // `self`, is zeroed by the kernel, and is written only through `words_mut`.
        unsafe { std::slice::from_raw_parts(self.start, self.words) }
    }

    /// The memory, writable.
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as in `words`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.words) }
    }
}

impl Drop for Anonymous {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it any more.
        unsafe { libc::munmap(self.mapped, self.mapped_length) };
    }
}

/// A child process that has written memory and sleeps. Dropping it ends the child.
#[derive(Debug)]
pub struct Holder {
    pid: i32,
    address: u64,
    /// Closed on drop (and if we die): the child then exits.
    _open: PipeWriter,
}

impl Holder {
    /// Forks a child that maps `length` bytes at a multiple of `alignment`, requests `pages` and
    /// writes a word into each `page`.
    ///
    /// # Errors
    /// `EAGAIN`, `ENOMEM`, or [`io::ErrorKind::UnexpectedEof`] when the child could not map.
    pub fn start(length: usize, alignment: usize, page: usize, pages: Pages) -> io::Result<Self> {
        let (wait, open) = io::pipe()?;
        let (mut message, tell) = io::pipe()?;
        // SAFETY: the child makes plain system calls only and writes to its own new mapping until
        // it exits, so locks that other threads held at the fork do not matter.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        if pid == 0 {
            // SAFETY: this is the child of a fork.
            unsafe { hold(&wait, &open, &tell, length, alignment, page, pages) }
        }
        drop((wait, tell));
        let mut holder = Self {
            pid,
            address: 0,
            _open: open,
        };
        let mut address = [0; 8];
        message.read_exact(&mut address)?;
        holder.address = u64::from_ne_bytes(address);
        Ok(holder)
    }

    /// The child's id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Start of its memory.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // SAFETY: the child is ours and not yet waited for, so its id names no other process.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, ptr::null_mut(), 0);
        }
    }
}

/// The child's side. Calls: close, mmap, madvise, write, read, _exit.
///
/// # Safety
/// Only in the child of a fork.
unsafe fn hold(
    wait: &PipeReader,
    open: &PipeWriter,
    tell: &PipeWriter,
    length: usize,
    alignment: usize,
    page: usize,
    pages: Pages,
) -> ! {
    // SAFETY: system calls on descriptors that the fork duplicated; the writes stay inside the
    // new mapping, which is `alignment` longer than `length`.
    unsafe {
        libc::close(open.as_raw_fd());
        let mapped = libc::mmap(
            ptr::null_mut(),
            length + alignment,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if mapped == libc::MAP_FAILED {
            libc::_exit(1);
        }
        let start = mapped.byte_add(mapped.align_offset(alignment));
        let advice = match pages {
            Pages::Huge => libc::MADV_HUGEPAGE,
            Pages::Base => libc::MADV_NOHUGEPAGE,
        };
        libc::madvise(start, length, advice);
        for at in (0..length).step_by(page) {
            start.byte_add(at).cast::<usize>().write_volatile(at + 1);
        }
        let address = start as u64;
        libc::write(tell.as_raw_fd(), (&raw const address).cast(), 8);
        let mut byte = 0_u8;
        libc::read(wait.as_raw_fd(), (&raw mut byte).cast(), 1);
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_zero_and_ours() {
        let mut memory = Anonymous::map(1 << 21, 1 << 21, Pages::Base).unwrap();
        assert_eq!(memory.address() % (1 << 21), 0);
        assert!(memory.words().iter().all(|&word| word == 0));
        memory.words_mut()[7] = 9;
        assert_eq!(memory.words()[7], 9);
    }

    #[test]
    fn a_holder_writes_its_pages() {
        let holder = Holder::start(1 << 21, 1 << 21, 4096, Pages::Base).unwrap();
        let mut word = [0; 8];
        let second_page = holder.address() + 4096;
        match super::super::page_map::read_memory(holder.pid(), second_page, &mut word) {
            Ok(()) => assert_eq!(u64::from_ne_bytes(word), 4097),
            Err(error) => skipped!("the child's memory cannot be read: {error}"),
        }
    }
}
