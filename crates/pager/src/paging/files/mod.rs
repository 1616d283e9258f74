//! Files that the program maps to read: managed like anonymous memory, with the file as the store.
//!
//! ```text
//!   Empty ──read──▶ File ──dropped──▶ Left          in the file alone: Empty and Left
//!                     ▲                 │
//!                     └──────read───────┘
//! ```
//!
//! The kernel's mapping is replaced by anonymous memory without write access, so a page of it is
//! always the same as in the file. To keep that true, each file is under a lease: the kernel tells
//! before anyone opens it for writing or truncates it, and lets them wait until the range is the
//! kernel's own mapping again ([`give_back`]). The same happens wherever this memory would not
//! behave like a mapped file: new access rights, moves, children of forks, errors of the device.

pub mod adopt;
mod fault;
pub mod give_back;

use super::Pager;
use crate::sync::Lock;
use crate::sys::{self, files as file, files::Status};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Largest number of mappings managed at a time: each takes a descriptor.
pub const MOST: usize = 64;

/// No mapping.
const FREE: u32 = 0;
/// A mapping that is about to be managed.
const NEW: u32 = 1;
/// Pages are read.
const GOOD: u32 = 2;
/// The kernel's mapping is about to take over; nothing is read any more.
const CONDEMNED: u32 = 3;

/// A mapping of a file.
#[derive(Debug)]
struct Entry {
    /// [`FREE`], [`NEW`], [`GOOD`] or [`CONDEMNED`].
    state: AtomicU32,
    /// An open file description of the pager's own, which has the lease.
    file: AtomicI32,
    /// What is added to an address to get the offset in the file, modulo 2⁶⁴.
    shift: AtomicU64,
    /// Whether the program wanted to share it.
    is_shared: AtomicBool,
    /// Whether reads go through the page cache, because the file system has no direct ones.
    is_cached: AtomicBool,
    /// The file's status when the lease began.
    place: [AtomicU64; 2],
    bytes: AtomicU64,
    modified: [AtomicI64; 2],
}

/// All mappings of files that are managed.
#[derive(Debug)]
pub struct Files {
    entries: [Entry; MOST],
    /// Least size of a mapping to manage, in bytes; 0 if none is managed.
    pub least: AtomicU64,
    /// Number of entries that are not free.
    used: AtomicU32,
    /// The thread that learns when a lease must end; 0 if there is none yet.
    watcher: AtomicU32,
    /// Held while a mapping comes under management and while the watcher works: before the lock of
    /// the regions.
    pub(super) adopting: Lock,
}

impl Entry {
    const fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            file: AtomicI32::new(-1),
            shift: AtomicU64::new(0),
            is_shared: AtomicBool::new(false),
            is_cached: AtomicBool::new(false),
            place: [const { AtomicU64::new(0) }; 2],
            bytes: AtomicU64::new(0),
            modified: [const { AtomicI64::new(0) }; 2],
        }
    }

    fn is(&self, state: u32) -> bool {
        self.state.load(Ordering::SeqCst) == state
    }

    fn file(&self) -> i32 {
        self.file.load(Ordering::Relaxed)
    }

    fn note(&self, status: &Status) {
        for (place, now) in self.place.iter().zip(status.place) {
            place.store(now, Ordering::Relaxed);
        }
        for (place, now) in self.modified.iter().zip(status.modified) {
            place.store(now, Ordering::Relaxed);
        }
        self.bytes.store(status.bytes, Ordering::Relaxed);
    }

    /// The file's status when the lease began.
    fn noted(&self) -> Status {
        Status {
            place: self.place.each_ref().map(|one| one.load(Ordering::Relaxed)),
            bytes: self.bytes.load(Ordering::Relaxed),
            modified: self
                .modified
                .each_ref()
                .map(|one| one.load(Ordering::Relaxed)),
            is_regular: true,
        }
    }

    fn offset(&self, address: u64) -> u64 {
        address.wrapping_add(self.shift.load(Ordering::Relaxed))
    }

    /// Reads the pages at `address`, with zeros behind the file's end. Returns whether these are the
    /// bytes of the file that was mapped, as it was then.
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let offset = self.offset(address);
        let noted = self.noted();
        let rest = noted.bytes.saturating_sub(offset);
        let wanted = usize::try_from(rest).unwrap_or(usize::MAX).min(bytes.len());
        if wanted == 0 || !self.is(GOOD) {
            return false;
        }
        let Some(got) = self.fetch(offset, bytes) else {
            return false;
        };
        bytes[wanted..].fill(0);
        // Looked at after the read: a writer changes the time before it changes the bytes. It also
        // shows a descriptor that the program has closed, past libc, and used for another file.
        got >= wanted && file::status(self.file()) == Some(noted)
    }

    fn fetch(&self, offset: u64, bytes: &mut [u8]) -> Option<usize> {
        let own = self.file();
        loop {
            let cached = self.is_cached.load(Ordering::Relaxed);
            match file::read_at(own, offset, bytes) {
                Err(libc::EINVAL) if !cached => {
                    file::read_through_cache(own);
                    self.is_cached.store(true, Ordering::Relaxed);
                }
                Err(_) => return None,
                Ok(got) => {
                    if cached {
                        file::drop_cached(own, offset, bytes.len() as u64);
                    }
                    return Some(got);
                }
            }
        }
    }
}

impl Files {
    /// No mapping.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: [const { Entry::new() }; MOST],
            least: AtomicU64::new(0),
            used: AtomicU32::new(0),
            watcher: AtomicU32::new(0),
            adopting: Lock::new(),
        }
    }

    /// The entry with this number, which is from 1 to [`MOST`].
    fn entry(&self, number: u16) -> &Entry {
        let index = usize::from(number).wrapping_sub(1);
        &self.entries[index % MOST]
    }

    fn numbered(&self) -> impl Iterator<Item = (u16, &Entry)> {
        (1..).zip(&self.entries)
    }

    /// Whether any mapping of a file is managed.
    #[inline]
    #[must_use]
    pub fn are_in_use(&self) -> bool {
        self.used.load(Ordering::Relaxed) != 0
    }

    /// The descriptors in use; -1 for the others.
    #[must_use]
    pub fn descriptors(&self) -> [i32; MOST] {
        match self.are_in_use() {
            true => core::array::from_fn(|index| self.entries[index].file()),
            false => [-1; MOST],
        }
    }

    /// Frees an entry that no region refers to.
    fn close(&self, entry: &Entry) {
        let own = entry.file.swap(-1, Ordering::Relaxed);
        // The kernel's mapping of the file keeps the description, and with it the lease.
        file::end_lease(own);
        sys::close(own);
        entry.state.store(FREE, Ordering::SeqCst);
        self.used.fetch_sub(1, Ordering::Relaxed);
    }

    /// Nothing is to be read from this file any more: the watcher hands its mappings to the kernel.
    fn condemn(&self, number: u16) {
        let state = &self.entry(number).state;
        let done = state.compare_exchange(GOOD, CONDEMNED, Ordering::SeqCst, Ordering::Relaxed);
        if done.is_ok() {
            file::notify(self.watcher.load(Ordering::SeqCst));
        }
    }

    /// Waits a little, holding nothing, for the end of a condemned entry.
    fn await_end(&self, number: u16) {
        const MOST_NS: u64 = 5_000_000;
        sys::futex_wait(&self.entry(number).state, CONDEMNED, Some(MOST_NS));
    }

    /// This thread is the watcher from now on.
    pub fn watch(&self) {
        self.watcher.store(sys::thread_id(), Ordering::SeqCst);
        sys::futex_wake(&self.watcher, i32::MAX);
    }

    /// In the child of a fork, which has left all files to the kernel. Its descriptors share the
    /// parent's leases, so it must not end them.
    pub(super) fn forked(&self) {
        for entry in &self.entries {
            sys::close(entry.file.swap(-1, Ordering::Relaxed));
            entry.state.store(FREE, Ordering::Relaxed);
        }
        self.used.store(0, Ordering::Relaxed);
        self.watcher.store(0, Ordering::Relaxed);
        self.adopting.reset();
    }
}

impl Default for Files {
    fn default() -> Self {
        Self::new()
    }
}

impl Pager {
    /// Whether `address` is in a managed file.
    #[must_use]
    pub(super) fn is_of_file(&self, address: u64) -> bool {
        let region = self.regions.find(address);
        self.files.are_in_use() && region.is_some_and(|region| region.kind.file != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PAGE_BYTES;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    /// An entry for `file`, whose byte at `shift` is at address 0.
    fn entry(file: &std::fs::File, shift: u64) -> Entry {
        let entry = Entry::new();
        let own = file.as_raw_fd();
        entry.file.store(own, Ordering::Relaxed);
        entry.shift.store(shift, Ordering::Relaxed);
        entry.is_cached.store(true, Ordering::Relaxed);
        entry.note(&file::status(own).expect("it is open"));
        entry.state.store(GOOD, Ordering::SeqCst);
        entry
    }

    #[test]
    fn the_last_page_ends_in_zeros_and_a_changed_file_is_not_read() {
        let mut file = tempfile::tempfile().unwrap();
        let written: Vec<u8> = (0..3 * PAGE_BYTES / 2).map(|at| at as u8 | 1).collect();
        file.write_all(&written).unwrap();
        let entry = entry(&file, 0);
        let mut bytes = vec![7; 2 * PAGE_BYTES];
        assert!(entry.read(0, &mut bytes));
        let (contents, zeros) = bytes.split_at(written.len());
        assert!(contents == written && zeros.iter().all(|byte| *byte == 0));
        assert!(entry.read(PAGE_BYTES as u64, &mut bytes[..PAGE_BYTES]));
        assert_eq!(bytes[0], written[PAGE_BYTES]);
        assert!(!entry.read(2 * PAGE_BYTES as u64, &mut bytes), "behind it");
        file.write_all(&[1]).unwrap();
        assert!(!entry.read(0, &mut bytes), "it has grown");
    }

    #[test]
    fn another_file_under_the_same_number_is_not_read() {
        let mut files = [(); 2].map(|()| tempfile::tempfile().unwrap());
        for file in &mut files {
            file.write_all(&[1; PAGE_BYTES]).unwrap();
        }
        let entry = entry(&files[0], 0);
        let mut bytes = vec![0; PAGE_BYTES];
        assert!(entry.read(0, &mut bytes));
        entry.file.store(files[1].as_raw_fd(), Ordering::Relaxed);
        assert!(!entry.read(0, &mut bytes));
    }

    #[test]
    fn a_condemned_entry_is_not_read() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; PAGE_BYTES]).unwrap();
        let entry = entry(&file, 0);
        entry.state.store(CONDEMNED, Ordering::SeqCst);
        assert!(!entry.read(0, &mut [0; PAGE_BYTES]));
    }
}
