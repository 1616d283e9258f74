//! Stores: where evicted pages are kept.
//!
//! Slots are reference-counted, because after a fork parent and child own the same contents. A
//! store's data about slots on disk is in memory that processes share, and is never locked: a
//! process that is killed leaves no lock behind. Methods run in fault handlers and on threads
//! unknown to libc: no allocation, no lock of std, no thread-local storage, no panic.

pub mod checksum;
pub mod cipher;
pub mod codec;
pub mod device;
pub mod disk;
pub mod memory;
pub mod owners;
pub mod patience;
pub mod pool;
pub mod reserve;
pub mod ring;
pub mod slots;
pub mod transfer;
pub mod worth;

#[cfg(test)]
mod tests;

use crate::inject::{self, Injected};
use crate::page::PAGE_BYTES;
use alloc::boxed::Box;
use cipher::Cipher;
use device::Device;
use disk::Disk;
use memory::Compressed;
use owners::Owners;
use pool::Pool;
use slots::Slots;

pub use transfer::StoreError;

/// Where a page is kept; 0 is not a slot.
pub type Slot = u32;

/// Number of bits of a slot.
pub const SLOT_BITS: u32 = 28;
/// Largest number of descriptors that a store has in use.
pub const DESCRIPTORS: usize = 9;
/// Slots with this bit are in compressed memory, the others on disk.
pub const IN_MEMORY: Slot = 1 << (SLOT_BITS - 1);

/// Which of the slots could not be read, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Its index in the call's `slots`.
    pub place: usize,
    /// What went wrong.
    pub why: StoreError,
}

/// Room used and left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Pages kept.
    pub pages: u64,
    /// Pages that can be kept in all.
    pub capacity: u64,
    /// Bytes of memory used for it in this process (compressed pages, tables): counted in the
    /// budget.
    pub memory_bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Pages that consist of one repeated word, and take no room except their entry.
    pub same_filled: u64,
}

/// Keeps pages.
pub trait Store: Send + Sync {
    /// Its name, as shown in statistics.
    fn name(&self) -> &'static str;

    /// Writes the pages in `bytes` (whole pages) and puts a slot with one reference for each into
    /// `slots`. Neighbours in one call get neighbouring slots as far as there is room, so that they
    /// can be read together: sort pages by address. Page-aligned bytes are written with direct I/O.
    ///
    /// # Errors
    /// When a page could not be stored; then no slot is taken.
    fn write(&self, bytes: &[u8], slots: &mut [Slot]) -> Result<(), StoreError>;

    /// Writes as [`Store::write`] does, but to the slowest part of the store: pages that will be read
    /// in order, ahead of their use, or that have not been used for long.
    ///
    /// # Errors
    /// As [`Store::write`].
    fn write_below(&self, bytes: &[u8], slots: &mut [Slot]) -> Result<(), StoreError> {
        self.write(bytes, slots)
    }

    /// Whether pages of sweeps are better packed as well: there is room, and waits are saved.
    fn packs_swept(&self) -> bool {
        false
    }

    /// Whether [`Store::lift`] may take a page that is evicted now. Asked once for each.
    fn lifts(&self) -> bool {
        false
    }

    /// A page that is evicted although its slot is valid: another slot, from which it returns sooner,
    /// if there is room. The caller releases the old one.
    fn lift(&self, _page: &[u8; PAGE_BYTES]) -> Option<Slot> {
        None
    }

    /// The thread of this number has waited for the page in `slot`, which was read in so many
    /// nanoseconds and is not yet released; nothing was read ahead of it.
    fn returned(&self, _slot: Slot, _thread: u32, _ns: u64) {}

    /// How many of the pages that are not below are to be moved there now. Asked once for each.
    fn surplus(&self) -> usize {
        0
    }

    /// Whether the page in `slot` is one of these. The caller has locked the page.
    fn is_stale(&self, _slot: Slot) -> bool {
        false
    }

    /// Writes the pages in the slots `from` below, through `bytes`, and puts their new slots into
    /// `to`. The caller releases the old ones.
    ///
    /// # Errors
    /// As [`Store::write`]; the old slots are valid.
    fn move_down(
        &self,
        _from: &[Slot],
        _bytes: &mut [u8],
        _to: &mut [Slot],
    ) -> Result<(), StoreError> {
        Err(StoreError::Full)
    }

    /// Reads `slots` one after another into `bytes` (a page for each) and checks them.
    ///
    /// # Errors
    /// When a page cannot be read back as it was written.
    fn read(&self, slots: &[Slot], bytes: &mut [u8]) -> Result<(), ReadError>;

    /// Whether reading both slots together costs less than reading them in two faults.
    fn together(&self, first: Slot, second: Slot) -> bool;

    /// Adds a reference (before a fork).
    ///
    /// # Errors
    /// [`StoreError::Full`] when a slot has the maximum number of references, and
    /// [`StoreError::Unowned`] when it has none.
    fn retain(&self, slot: Slot) -> Result<(), StoreError>;

    /// Removes a reference. The last one frees the slot.
    fn release(&self, slot: Slot);

    /// Whether a page that was read and not yet written should keep its slot, so that it can be
    /// evicted again without being written: right for disk, wasteful for compressed memory.
    fn keep_copy(&self, slot: Slot) -> bool;

    /// Room used and left.
    fn usage(&self) -> Usage;

    /// This process has `share` of `whole` of the run's budget: the store's memory, as far as it
    /// has a choice, is limited to the same part.
    fn hold_to(&self, _share: u64, _whole: u64) {}

    /// Descriptors in use, -1 for none: to be protected from the program's `close`.
    fn descriptors(&self) -> [i32; DESCRIPTORS] {
        [-1; DESCRIPTORS]
    }

    /// Transfers will follow: opens what they need. Called once in a process, before there are
    /// pages to write, and in the child of a fork before its first transfer.
    fn prepare(&self) {}

    /// A fork is coming: references retained from now on are the child's. It `inherits` this process's
    /// descriptors, unless both share one table of them.
    fn expect_child(&self, _inherits: bool) {}

    /// The fork failed: nobody else releases what was taken for the child.
    fn forget_child(&self) {}

    /// Then releases a reference that was taken for the child.
    fn release_of_child(&self, slot: Slot) {
        self.release(slot);
    }

    /// How many slots without [`IN_MEMORY`] others would free if this process ended now; `None` where
    /// none would be. As many as its pages own while nothing is being written.
    fn noted(&self) -> Option<u64> {
        None
    }

    /// Frees the slots of processes that are gone. Returns the number of references.
    fn reclaim(&self) -> u64 {
        0
    }

    /// Whether others free what this process holds once it is gone, however it goes.
    fn is_outlived(&self) -> bool {
        true
    }

    /// A fork is coming: waits until no thread is inside a critical section, and keeps them out.
    fn before_fork(&self) {}

    /// The fork is over, seen from the parent.
    fn after_fork_parent(&self) {}

    /// The fork is over, seen from the child. Compressed pages were copied with their memory, so
    /// their references must not have been increased for the child; only slots without
    /// [`IN_MEMORY`] need [`Store::retain`], which ignores the others.
    fn after_fork_child(&self) {}
}

/// The parts of a store. The command creates file and shared memory before the program starts, so
/// that every process of the run uses the same.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The store's file or block device, unlinked or private to the user.
    pub file: i32,
    /// Bytes that it may take there.
    pub file_bytes: u64,
    /// Memory shared by all processes of the run, zero at first, [`shared_bytes`] long.
    pub shared: *mut u8,
}

/// The options of a store.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Processors whose time the process may use.
    pub processors: u32,
    /// Bytes of memory that compressed pages may take (all but `disk`).
    pub memory_bytes: u64,
    /// Key of this run, to encrypt data on disk.
    pub key: Option<[u8; 32]>,
    /// Faults to inject, for tests ([`crate::inject`]).
    pub faults: Option<&'a str>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            processors: u32::MAX,
            memory_bytes: 0,
            key: None,
            faults: None,
        }
    }
}

/// Pages in `bytes`.
#[must_use]
pub const fn pages_in(bytes: &[u8]) -> usize {
    bytes.len() / PAGE_BYTES
}

/// Bytes of shared memory that a store of `pages` pages on disk needs for its tables: a reference
/// count and a checksum for each, a bit for each process that owns it, and a page for the rest.
#[must_use]
pub const fn shared_bytes(pages: u64) -> u64 {
    owners_at(pages) + owners::shared_bytes(pages.next_multiple_of(8))
}

/// Offset of the table of owners in the shared memory.
const fn owners_at(pages: u64) -> u64 {
    PAGE_BYTES as u64 + (pages.next_multiple_of(8) * 5).next_multiple_of(8)
}

/// Why a store cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// No such name.
    Unknown,
    /// The description of faults to inject is malformed.
    Faults,
    /// No address space for compressed pages, or none were allowed.
    Memory,
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Unknown => "unknown store; there are disk, compressed, tiered and auto",
            Self::Faults => inject::FORM,
            Self::Memory => "no memory for compressed pages",
        })
    }
}

/// The store called `name` in `place`. Called once, at start; takes memory.
///
/// # Errors
/// When there is no such store, or it cannot be created with these options.
///
/// # Safety
/// `place` must be as its fields describe, and live as long as the process.
pub unsafe fn open(
    name: &str,
    place: Place,
    options: &Options<'_>,
) -> Result<Box<dyn Store>, OpenError> {
    let disk = || -> Result<Disk, OpenError> {
        let injected = match options.faults {
            Some(text) => Some(Injected::parse(text).ok_or(OpenError::Faults)?),
            None => None,
        };
        let pages = (place.file_bytes / PAGE_BYTES as u64).min(u64::from(IN_MEMORY) - 8);
        let pages = u32::try_from(pages).unwrap_or(IN_MEMORY - 8) / 8 * 8;
        // SAFETY: the caller guarantees the shared memory, which has room for both tables.
        let (slots, owners) = unsafe {
            let behind = usize::try_from(owners_at(u64::from(pages))).unwrap_or(usize::MAX);
            let owners = place.shared.add(behind);
            (
                Slots::new(place.shared, pages),
                Owners::new(owners, pages, place.file),
            )
        };
        let cipher = options.key.as_ref().map(Cipher::new);
        let device = Device::new(place.file, pages, options.processors, injected);
        Ok(Disk::new(device, slots, owners, cipher))
    };
    let pool = || Pool::new(options.memory_bytes).ok_or(OpenError::Memory);
    Ok(match name {
        "disk" => Box::new(disk()?),
        "compressed" => Box::new(Compressed::new(pool()?, None)),
        "tiered" => Box::new(Compressed::new(pool()?, Some(disk()?))),
        "auto" => Box::new(Compressed::judging(pool()?, disk()?)),
        _ => return Err(OpenError::Unknown),
    })
}
