//! Stores: where evicted pages rest.
//!
//! Slots are counted by reference, because after a fork parent and child own the same contents.
//! Whatever a store keeps about slots must therefore lie in memory that processes share
//! ([`crate::store`] methods may run in both at a time), and may not be left locked by a process
//! that was killed. Methods run in fault handlers and on threads unknown to libc: no allocation,
//! no lock of std, no thread-local storage, no panic.

use crate::page::PAGE_BYTES;

/// Where a page rests. At most [`Slot::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Slot(pub u32);

impl Slot {
    /// Bits that the page table has for a slot: 256 GiB of 4 KiB pages.
    pub const BITS: u32 = 26;
    /// The highest slot.
    pub const MAX: Self = Self((1 << Self::BITS) - 1);
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No room.
    Full,
    /// The device or file failed with this `errno`.
    Io(i32),
    /// Fewer bytes came than were written.
    Short,
    /// The bytes are not those that were written.
    Damaged,
}

/// Room taken and left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Pages kept.
    pub pages: u64,
    /// Pages that can be kept in all.
    pub capacity: u64,
    /// Bytes of memory used for it, resident in this process (compressed pages, tables).
    pub memory_bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
}

/// Keeps pages.
pub trait Store: Sync {
    /// Its name, as shown in statistics.
    fn name(&self) -> &str;

    /// Writes the pages in `bytes` (whole pages, page-aligned) and puts a slot with one reference
    /// for each into `slots`. All or nothing.
    ///
    /// # Errors
    /// When a page could not be kept; then no slot is taken.
    fn write(&self, bytes: &[u8], slots: &mut [Slot]) -> Result<(), Error>;

    /// Reads `slots` one after another into `bytes` (page-aligned, a page for each) and checks them.
    ///
    /// # Errors
    /// When a page cannot be had as it was written, with its place in `slots`.
    fn read(&self, slots: &[Slot], bytes: &mut [u8]) -> Result<(), (usize, Error)>;

    /// Whether reading both slots costs about as much as reading one.
    fn together(&self, first: Slot, second: Slot) -> bool;

    /// One reference less.
    fn release(&self, slot: Slot);

    /// One reference more (before a fork).
    ///
    /// # Errors
    /// [`Error::Full`] when a slot has all the references that it can have.
    fn share(&self, slot: Slot) -> Result<(), Error>;

    /// Room taken and left.
    fn usage(&self) -> Usage;

    /// This is the child of a fork: put in order what only the parent's threads had.
    fn forked(&self) {}
}

/// Pages in `bytes`.
#[must_use]
pub const fn pages_in(bytes: &[u8]) -> usize {
    bytes.len() / PAGE_BYTES
}

/// What a store is made of. The command line makes both before the program starts; every process
/// of the run opens the same.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The store's file: unlinked, opened for direct I/O where the file system allows.
    pub file: i32,
    /// Bytes that it may grow to.
    pub file_bytes: u64,
    /// Memory shared by all processes of the run, zero at first, [`shared_bytes`] long.
    pub shared: *mut u8,
}

/// Bytes of shared memory that a store of `pages` pages needs for its tables.
#[must_use]
pub const fn shared_bytes(pages: u64) -> u64 {
    pages
}

/// The store called `name` in `place`. Called once, at start.
#[must_use]
pub fn open(_name: &str, _place: Place) -> Option<&'static dyn Store> {
    None
}
