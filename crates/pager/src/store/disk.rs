//! `disk`: pages in a file or on a block device.

use alloc::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use alloc::boxed::Box;
use core::cell::UnsafeCell;

use crate::page::PAGE_BYTES;
use crate::store::checksum::checksum;
use crate::store::cipher::Cipher;
use crate::store::device::Device;
use crate::store::owners::Owners;
use crate::store::slots::Slots;
use crate::store::transfer::{MAX_TRANSFERS, Operation, Transfer};
use crate::store::{DESCRIPTORS, IN_MEMORY, ReadError, Slot, Store, StoreError, Usage, pages_in};
use crate::sync::Lock;

/// Slots that are at most this far apart are read together: 16 pages cost twice as much as one.
const TOGETHER: u32 = 16;
/// Number of pages that go through the bounce buffer at a time.
pub const BOUNCE_PAGES: usize = 64;

/// Memory for bytes that must be changed (encrypted) or gathered before they are written.
#[derive(Debug)]
#[repr(C, align(4096))]
struct Bounce {
    pages: UnsafeCell<[[u8; PAGE_BYTES]; BOUNCE_PAGES]>,
    lock: Lock,
}

// SAFETY: `pages` is touched only by the thread that holds `lock`.
unsafe impl Sync for Bounce {}

impl Bounce {
    /// Zeros as allocated: pages that are never used take no memory.
    fn new() -> Box<Self> {
        let layout = Layout::new::<Self>();
        // SAFETY: zeros are valid for the pages and for an open lock; the memory is of this layout,
        // and belongs to nothing else.
        unsafe {
            let place = alloc_zeroed(layout);
            if place.is_null() {
                handle_alloc_error(layout);
            }
            Box::from_raw(place.cast())
        }
    }
}

/// Pages on disk.
#[derive(Debug)]
pub struct Disk {
    device: Device,
    slots: Slots,
    owners: Owners,
    cipher: Option<Cipher>,
    bounce: Box<Bounce>,
}

impl Disk {
    /// A store over `device` with the tables `slots` and `owners`.
    #[must_use]
    pub fn new(device: Device, slots: Slots, owners: Owners, cipher: Option<Cipher>) -> Self {
        Disk {
            device,
            slots,
            owners,
            cipher,
            bounce: Bounce::new(),
        }
    }

    /// Writes `pages`, as many as `slots` has entries (at most [`BOUNCE_PAGES`]), to newly taken
    /// slots.
    pub fn write_scattered<'a>(
        &self,
        pages: impl Iterator<Item = &'a [u8; PAGE_BYTES]>,
        slots: &mut [Slot],
    ) -> Result<(), StoreError> {
        self.take(slots)?;
        let written = self.write_through_bounce(pages, slots);
        if written.is_err() {
            slots.iter().for_each(|slot| self.release(*slot));
            slots.fill(0);
        }
        written
    }

    fn take(&self, slots: &mut [Slot]) -> Result<(), StoreError> {
        match self.slots.take(slots) {
            // Slots left by killed processes are freed before anything fails.
            Err(StoreError::Full) if self.reclaim() > 0 => self.slots.take(slots)?,
            answer => answer?,
        }
        slots.iter().for_each(|slot| self.owners.note(*slot));
        Ok(())
    }

    fn write_through_bounce<'a>(
        &self,
        pages: impl Iterator<Item = &'a [u8; PAGE_BYTES]>,
        slots: &[Slot],
    ) -> Result<(), StoreError> {
        self.with_bounce(|places| {
            for ((place, page), slot) in places.iter_mut().zip(pages).zip(slots) {
                self.slots.set_sum(*slot, checksum(page, *slot));
                *place = *page;
                if let Some(cipher) = &self.cipher {
                    cipher.encrypt(*slot, place);
                }
            }
            self.write_runs(places.as_mut_ptr().cast(), slots)
        })
    }

    fn write_taken(&self, bytes: &[u8], slots: &[Slot]) -> Result<(), StoreError> {
        let pages = bytes.as_chunks::<PAGE_BYTES>().0;
        let aligned = bytes.as_ptr().addr().is_multiple_of(PAGE_BYTES);
        if self.cipher.is_none() && aligned {
            for (page, slot) in pages.iter().zip(slots) {
                self.slots.set_sum(*slot, checksum(page, *slot));
            }
            return self.write_runs(bytes.as_ptr().cast_mut(), slots);
        }
        let parts = pages.chunks(BOUNCE_PAGES).zip(slots.chunks(BOUNCE_PAGES));
        parts
            .into_iter()
            .try_for_each(|(pages, slots)| self.write_through_bounce(pages.iter(), slots))
    }

    /// Writes the pages from `memory` on, with a transfer for each run of neighbouring slots.
    fn write_runs(&self, memory: *mut u8, slots: &[Slot]) -> Result<(), StoreError> {
        self.transfer_runs(Operation::Write, memory, slots)
            .map_err(|error| error.why)
    }

    fn transfer_runs(
        &self,
        operation: Operation,
        memory: *mut u8,
        slots: &[Slot],
    ) -> Result<(), ReadError> {
        let mut batch = [Transfer {
            at: 0,
            memory,
            pages: 0,
        }; MAX_TRANSFERS];
        let (mut place, mut batch_start) = (0, 0);
        while place < slots.len() {
            let mut count = 0;
            while let (Some(entry), Some(slot)) = (batch.get_mut(count), slots.get(place)) {
                let run = run_length(&slots[place..]);
                let memory = memory.wrapping_add(place * PAGE_BYTES);
                *entry = Transfer {
                    at: *slot,
                    memory,
                    pages: run,
                };
                count += 1;
                place += run as usize;
            }
            let transfers = batch.get(..count).unwrap_or(&[]);
            // SAFETY: `memory` has a page for each slot, and is borrowed from this store's caller
            // or is the bounce buffer held by this thread. A write only reads it.
            unsafe { self.device.transfer(operation, transfers) }.map_err(|(which, why)| {
                let before: u32 = transfers.iter().take(which).map(|one| one.pages).sum();
                ReadError {
                    place: batch_start + before as usize,
                    why,
                }
            })?;
            batch_start = place;
        }
        Ok(())
    }

    fn with_bounce<R>(&self, work: impl FnOnce(&mut [[u8; PAGE_BYTES]; BOUNCE_PAGES]) -> R) -> R {
        let _held = self.bounce.lock.hold();
        // SAFETY: this thread holds the lock.
        work(unsafe { &mut *self.bounce.pages.get() })
    }

    fn check(&self, slots: &[Slot], bytes: &mut [u8]) -> Result<(), ReadError> {
        let pages = bytes.as_chunks_mut::<PAGE_BYTES>().0;
        for (place, (slot, page)) in slots.iter().zip(pages).enumerate() {
            if let Some(cipher) = &self.cipher {
                cipher.decrypt(*slot, page);
            }
            if self.slots.sum(*slot) != Some(checksum(page, *slot)) {
                return Err(ReadError {
                    place,
                    why: StoreError::Damaged,
                });
            }
        }
        Ok(())
    }

    fn read_unaligned(&self, slots: &[Slot], bytes: &mut [u8]) -> Result<(), ReadError> {
        let parts = slots
            .chunks(BOUNCE_PAGES)
            .zip(bytes.chunks_mut(BOUNCE_PAGES * PAGE_BYTES));
        for (part, (slots, bytes)) in parts.enumerate() {
            self.with_bounce(|pages| {
                self.transfer_runs(Operation::Read, pages.as_mut_ptr().cast(), slots)?;
                bytes.copy_from_slice(pages.as_flattened().get(..bytes.len()).unwrap_or(&[]));
                Ok(())
            })
            .map_err(|error: ReadError| ReadError {
                place: error.place + part * BOUNCE_PAGES,
                ..error
            })?;
        }
        Ok(())
    }
}

/// Length of the run of neighbouring slots at the start of `slots`.
fn run_length(slots: &[Slot]) -> u32 {
    let pairs = slots.windows(2).take_while(|pair| pair[1] == pair[0] + 1);
    u32::try_from(pairs.count() + 1).unwrap_or(1)
}

impl Store for Disk {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn write(&self, bytes: &[u8], slots: &mut [Slot]) -> Result<(), StoreError> {
        let slots = slots.get_mut(..pages_in(bytes)).ok_or(StoreError::Full)?;
        self.take(slots)?;
        let written = self.write_taken(bytes, slots);
        if written.is_err() {
            slots.iter().for_each(|slot| self.release(*slot));
            slots.fill(0);
        }
        written
    }

    fn read(&self, slots: &[Slot], bytes: &mut [u8]) -> Result<(), ReadError> {
        let wrong = |slot: &Slot| *slot == 0 || u64::from(*slot) > self.slots.capacity();
        if let Some(place) = slots.iter().position(wrong) {
            return Err(ReadError {
                place,
                why: StoreError::Damaged,
            });
        }
        let Some(bytes) = bytes.get_mut(..slots.len() * PAGE_BYTES) else {
            return Err(ReadError {
                place: 0,
                why: StoreError::Short,
            });
        };
        if bytes.as_ptr().addr().is_multiple_of(PAGE_BYTES) {
            self.transfer_runs(Operation::Read, bytes.as_mut_ptr(), slots)?;
        } else {
            self.read_unaligned(slots, bytes)?;
        }
        self.check(slots, bytes)
    }

    fn together(&self, first: Slot, second: Slot) -> bool {
        first.abs_diff(second) <= TOGETHER
    }

    fn retain(&self, slot: Slot) -> Result<(), StoreError> {
        self.slots.retain(slot)?;
        self.owners.note_for_child(slot);
        Ok(())
    }

    fn release(&self, slot: Slot) {
        self.owners.forget(slot);
        self.slots.release(slot);
    }

    fn prepare(&self) {
        self.device.prepare();
    }

    fn expect_child(&self, inherits: bool) {
        self.reclaim();
        self.owners.expect_child(inherits);
    }

    fn release_of_child(&self, slot: Slot) {
        self.slots.release(slot);
    }

    fn forget_child(&self) {
        self.owners.forget_child();
    }

    fn is_outlived(&self) -> bool {
        self.owners.has_place()
    }

    fn noted(&self) -> Option<u64> {
        self.owners.noted(self.slots.extent())
    }

    fn reclaim(&self) -> u64 {
        self.owners.reclaim(|slot| self.slots.release(slot))
    }

    fn keep_copy(&self, _slot: Slot) -> bool {
        true
    }

    fn usage(&self) -> Usage {
        let pages = self.slots.taken();
        Usage {
            pages,
            capacity: self.slots.capacity().min(u64::from(IN_MEMORY) - 1),
            // Table entries of slots in the file's extent: their pages have been touched.
            memory_bytes: self.slots.extent() * 5 + size_of::<Bounce>() as u64,
            disk_bytes: pages * PAGE_BYTES as u64,
            same_filled: 0,
        }
    }

    fn descriptors(&self) -> [i32; DESCRIPTORS] {
        let mut all = [-1; DESCRIPTORS];
        all[..8].copy_from_slice(&self.device.descriptors());
        all[7..].copy_from_slice(&self.owners.descriptors());
        all
    }

    fn before_fork(&self) {
        self.bounce.lock.acquire();
    }

    fn after_fork_parent(&self) {
        self.bounce.lock.release();
        self.owners.part();
    }

    fn after_fork_child(&self) {
        self.bounce.lock.release();
        self.device.forked();
        self.owners.forked();
    }
}
