//! `compressed`: pages packed in memory; those that do not pack go to the disk below.

use crate::page::PAGE_BYTES;
use crate::store::checksum::checksum;
use crate::store::codec::{Codec, pack, unpack};
use crate::store::disk::{BOUNCE_PAGES, Disk};
use crate::store::pool::{MAX_OBJECT, Pool};
use crate::store::{IN_MEMORY, ReadError, Slot, Store, StoreError, Usage, pages_in};
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes before the packed ones: checksum (4), length (2), codec (1), zero (1).
const HEAD: usize = 8;
/// A page that does not shrink to three quarters is not worth the CPU time of unpacking it.
const WORTH: usize = 3072 - HEAD;
const _: () = assert!(HEAD + PAGE_BYTES <= MAX_OBJECT);

/// Compressed memory, with or without a disk below.
#[derive(Debug)]
pub struct Compressed {
    pool: Pool,
    below: Option<Disk>,
    same_filled: AtomicU64,
}

impl Compressed {
    /// Packs pages into `pool`; what does not pack or fit goes to `below`.
    #[must_use]
    pub const fn new(pool: Pool, below: Option<Disk>) -> Self {
        Compressed {
            pool,
            below,
            same_filled: AtomicU64::new(0),
        }
    }

    fn put(&self, page: &[u8; PAGE_BYTES]) -> Option<Slot> {
        let mut packed = [0; WORTH];
        let (codec, bytes) = match pack(page, &mut packed) {
            Some((codec, used)) => (codec, packed.get(..used)?),
            // Without a disk below, there is no other place for it.
            None if self.below.is_none() => (Codec::Plain, page.as_slice()),
            None => return None,
        };
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&checksum(page, 0).to_le_bytes());
        head[4..6].copy_from_slice(&u16::try_from(bytes.len()).ok()?.to_le_bytes());
        head[6] = codec as u8;
        let number = self.pool.put(head, bytes)?;
        if codec == Codec::Same {
            self.same_filled.fetch_add(1, Ordering::Relaxed);
        }
        Some(number | IN_MEMORY)
    }

    fn get(&self, slot: Slot, page: &mut [u8; PAGE_BYTES]) -> Option<()> {
        let (sum, length, codec, packed) = self.parts(slot)?;
        let whole = unpack(codec, packed.get(..length)?, page);
        (whole && checksum(page, 0) == sum).then_some(())
    }

    fn parts(&self, slot: Slot) -> Option<(u32, usize, Codec, &[u8])> {
        let bytes = self.pool.get(slot & !IN_MEMORY)?;
        let (head, packed) = bytes.split_first_chunk::<HEAD>()?;
        let [a, b, c, d, low, high, codec, _] = *head;
        let sum = u32::from_le_bytes([a, b, c, d]);
        let length = usize::from(u16::from_le_bytes([low, high]));
        Some((sum, length, Codec::from_number(codec)?, packed))
    }

    fn write_pages(&self, bytes: &[u8], slots: &mut [Slot]) -> Result<(), StoreError> {
        let pages = bytes.as_chunks::<PAGE_BYTES>().0;
        let pages = pages
            .chunks(BOUNCE_PAGES)
            .zip(slots.chunks_mut(BOUNCE_PAGES));
        for (pages, slots) in pages {
            for (page, slot) in pages.iter().zip(slots.iter_mut()) {
                *slot = self.put(page).unwrap_or(0);
            }
            self.write_below(pages, slots)?;
        }
        Ok(())
    }

    /// Writes the pages without a slot, which did not pack or fit, to the disk, all at once.
    fn write_below(
        &self,
        pages: &[[u8; PAGE_BYTES]],
        slots: &mut [Slot],
    ) -> Result<(), StoreError> {
        let left = slots.iter().filter(|slot| **slot == 0).count();
        if left == 0 {
            return Ok(());
        }
        let below = self.below.as_ref().ok_or(StoreError::Full)?;
        if left == pages.len() {
            return below.write(pages.as_flattened(), slots);
        }
        let mut taken = [0; BOUNCE_PAGES];
        let taken = taken.get_mut(..left).ok_or(StoreError::Full)?;
        let chosen = pages.iter().zip(slots.iter());
        let chosen = chosen.filter(|(_, slot)| **slot == 0).map(|(page, _)| page);
        below.write_scattered(chosen, taken)?;
        let places = slots.iter_mut().filter(|slot| **slot == 0);
        places.zip(taken).for_each(|(place, slot)| *place = *slot);
        Ok(())
    }

    fn read_run(
        &self,
        slots: &[Slot],
        bytes: &mut [u8],
        start: usize,
        end: usize,
    ) -> Result<(), ReadError> {
        let damaged = ReadError {
            place: start,
            why: StoreError::Damaged,
        };
        let below = self.below.as_ref().ok_or(damaged)?;
        let part = bytes
            .get_mut(start * PAGE_BYTES..end * PAGE_BYTES)
            .ok_or(damaged)?;
        below
            .read(slots.get(start..end).ok_or(damaged)?, part)
            .map_err(|error| ReadError {
                place: error.place + start,
                ..error
            })
    }
}

const fn in_memory(slot: Slot) -> bool {
    slot & IN_MEMORY != 0
}

impl Store for Compressed {
    fn name(&self) -> &'static str {
        if self.below.is_some() {
            "tiered"
        } else {
            "compressed"
        }
    }

    fn write(&self, bytes: &[u8], slots: &mut [Slot]) -> Result<(), StoreError> {
        let slots = slots.get_mut(..pages_in(bytes)).ok_or(StoreError::Full)?;
        slots.fill(0);
        let written = self.write_pages(bytes, slots);
        if written.is_err() {
            slots
                .iter()
                .filter(|slot| **slot != 0)
                .for_each(|slot| self.release(*slot));
            slots.fill(0);
        }
        written
    }

    fn read(&self, slots: &[Slot], bytes: &mut [u8]) -> Result<(), ReadError> {
        let mut place = 0;
        while let Some(slot) = slots.get(place) {
            let end = place
                + slots[place..]
                    .iter()
                    .take_while(|slot| !in_memory(**slot))
                    .count();
            if end > place {
                self.read_run(slots, bytes, place, end)?;
                place = end;
                continue;
            }
            let page = bytes.as_chunks_mut::<PAGE_BYTES>().0.get_mut(place);
            let read = page.and_then(|page| self.get(*slot, page));
            read.ok_or(ReadError {
                place,
                why: StoreError::Damaged,
            })?;
            place += 1;
        }
        Ok(())
    }

    fn together(&self, first: Slot, second: Slot) -> bool {
        match (in_memory(first), in_memory(second)) {
            // Unpacking is cheaper than a fault.
            (true, true) => true,
            (false, false) => self
                .below
                .as_ref()
                .is_some_and(|disk| disk.together(first, second)),
            _ => false,
        }
    }

    fn retain(&self, slot: Slot) -> Result<(), StoreError> {
        match &self.below {
            Some(below) if !in_memory(slot) => below.retain(slot),
            _ => Ok(()),
        }
    }

    fn release(&self, slot: Slot) {
        if !in_memory(slot) {
            if let Some(below) = &self.below {
                below.release(slot);
            }
            return;
        }
        if self
            .parts(slot)
            .is_some_and(|(_, _, codec, _)| codec == Codec::Same)
        {
            self.same_filled.fetch_sub(1, Ordering::Relaxed);
        }
        self.pool.free(slot & !IN_MEMORY);
    }

    fn expect_child(&self) {
        self.below.iter().for_each(Store::expect_child);
    }

    fn release_of_child(&self, slot: Slot) {
        if let Some(below) = self.below.as_ref().filter(|_| !in_memory(slot)) {
            below.release_of_child(slot);
        }
    }

    fn forget_child(&self) {
        self.below.iter().for_each(Store::forget_child);
    }

    fn reclaim(&self) -> u64 {
        self.below.as_ref().map_or(0, Store::reclaim)
    }

    fn keep_copy(&self, slot: Slot) -> bool {
        !in_memory(slot)
    }

    fn usage(&self) -> Usage {
        let below = self.below.as_ref().map(Store::usage).unwrap_or_default();
        Usage {
            pages: below.pages + self.pool.objects(),
            capacity: below.capacity,
            memory_bytes: below.memory_bytes + self.pool.bytes_used(),
            same_filled: self.same_filled.load(Ordering::Relaxed),
            ..below
        }
    }

    /// Only if there is a disk for what does not fit.
    fn hold_to(&self, share: u64, whole: u64) {
        if self.below.is_some() {
            self.pool.hold_to(share, whole);
        }
    }

    fn prepare(&self) {
        self.below.iter().for_each(Store::prepare);
    }

    fn descriptors(&self) -> [i32; 8] {
        self.below.as_ref().map_or([-1; 8], Store::descriptors)
    }

    fn before_fork(&self) {
        self.pool.lock_all();
        self.below.iter().for_each(Store::before_fork);
    }

    fn after_fork_parent(&self) {
        self.below.iter().for_each(Store::after_fork_parent);
        self.pool.unlock_all();
    }

    fn after_fork_child(&self) {
        self.below.iter().for_each(Store::after_fork_child);
        self.pool.unlock_all();
    }
}
