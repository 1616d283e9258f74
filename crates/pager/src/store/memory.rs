//! `compressed`: pages packed in memory; those that do not pack go to the disk below (`tiered`), and
//! as much memory as that is worth (`auto`).

use crate::page::PAGE_BYTES;
use crate::store::checksum::checksum;
use crate::store::codec::{Codec, pack, unpack};
use crate::store::disk::{BOUNCE_PAGES, Disk};
use crate::store::pool::{HEAD, MAX_OBJECT, Pool};
use crate::store::worth::{self, Worth};
use crate::store::{DESCRIPTORS, IN_MEMORY, ReadError, Slot, Store, StoreError, Usage, pages_in};
use crate::sys;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A page that does not shrink to three quarters is not worth the CPU time of unpacking it.
const WORTH: usize = 3072 - HEAD;
const _: () = assert!(HEAD + PAGE_BYTES <= MAX_OBJECT);

/// Compressed memory, with or without a disk below.
#[derive(Debug)]
pub struct Compressed {
    pool: Pool,
    below: Option<Disk>,
    /// For `auto`.
    worth: Option<Worth>,
    /// The process's part of the pool, in parts of [`worth::WHOLE`].
    part: AtomicU32,
    same_filled: AtomicU64,
}

/// What the head of an object says: checksum (4 bytes), length (2), codec (1), zero (1), and when the
/// page left, in evictions (4).
struct Parts<'a> {
    sum: u32,
    length: usize,
    codec: Codec,
    stamp: u32,
    packed: &'a [u8],
}

impl Compressed {
    /// Packs pages into `pool`; what does not pack or fit goes to `below`.
    #[must_use]
    pub fn new(pool: Pool, below: Option<Disk>) -> Self {
        Compressed {
            pool,
            below,
            worth: None,
            part: AtomicU32::new(worth::WHOLE),
            same_filled: AtomicU64::new(0),
        }
    }

    /// Packs pages into as much of `pool` as that is worth, and leaves the others to `below`.
    #[must_use]
    pub fn judging(pool: Pool, below: Disk) -> Self {
        let store = Compressed {
            worth: Some(Worth::new()),
            ..Self::new(pool, Some(below))
        };
        store.set_room();
        store
    }

    fn put(&self, page: &[u8; PAGE_BYTES]) -> Option<Slot> {
        if let Some(worth) = &self.worth {
            if self.pool.is_full() {
                // It takes no time to pack what has no room.
                worth.refuse();
                return None;
            }
            if !worth.tries() {
                return None;
            }
        }
        let began = self.worth.as_ref().map(|_| sys::now_ns());
        let mut packed = [0; WORTH];
        let found = pack(page, &mut packed);
        if let (Some(worth), Some(began)) = (&self.worth, began) {
            worth.tried(found.is_some(), sys::now_ns() - began);
        }
        let (codec, bytes) = match found {
            Some((codec, used)) => (codec, packed.get(..used)?),
            // Without a disk below, there is no other place for it.
            None if self.below.is_none() => (Codec::Plain, page.as_slice()),
            None => return None,
        };
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&checksum(page, 0).to_le_bytes());
        head[4..6].copy_from_slice(&u16::try_from(bytes.len()).ok()?.to_le_bytes());
        head[6] = codec as u8;
        let stamp = self.worth.as_ref().map_or(0, Worth::now);
        head[8..].copy_from_slice(&stamp.to_le_bytes());
        let number = self.pool.put(head, bytes);
        if let Some(worth) = &self.worth {
            match number {
                Some(_) => worth.put(),
                None => worth.refuse(),
            }
        }
        let number = number?;
        if codec == Codec::Same {
            self.same_filled.fetch_add(1, Ordering::Relaxed);
        }
        Some(number | IN_MEMORY)
    }

    fn get(&self, slot: Slot, page: &mut [u8; PAGE_BYTES]) -> Option<()> {
        let parts = self.parts(slot)?;
        let whole = unpack(parts.codec, parts.packed.get(..parts.length)?, page);
        (whole && checksum(page, 0) == parts.sum).then_some(())
    }

    fn parts(&self, slot: Slot) -> Option<Parts<'_>> {
        let bytes = self.pool.get(slot & !IN_MEMORY)?;
        let (head, packed) = bytes.split_first_chunk::<HEAD>()?;
        let [a, b, c, d, low, high, codec, _, e, f, g, h] = *head;
        Some(Parts {
            sum: u32::from_le_bytes([a, b, c, d]),
            length: usize::from(u16::from_le_bytes([low, high])),
            codec: Codec::from_number(codec)?,
            stamp: u32::from_le_bytes([e, f, g, h]),
            packed,
        })
    }

    /// Pages have left: from time to time, how large the pool should be is judged again.
    fn judge(&self) {
        if let Some(worth) = &self.worth
            && worth.judge()
        {
            self.set_room();
        }
    }

    /// Limits the pool to the process's part, and of that to what it is worth.
    fn set_room(&self) {
        let share = self.worth.as_ref().map_or(worth::WHOLE, Worth::share);
        let part = self.part.load(Ordering::Relaxed);
        let whole = u64::from(worth::WHOLE);
        self.pool
            .hold_to(u64::from(share) * u64::from(part), whole * whole);
    }

    fn write_pages(&self, bytes: &[u8], slots: &mut [Slot]) -> Result<(), StoreError> {
        let pages = bytes.as_chunks::<PAGE_BYTES>().0;
        let pages = pages
            .chunks(BOUNCE_PAGES)
            .zip(slots.chunks_mut(BOUNCE_PAGES));
        for (pages, slots) in pages {
            for (page, slot) in pages.iter().zip(slots.iter_mut()) {
                *slot = self.put(page).unwrap_or(0);
                self.worth.iter().for_each(Worth::leaves);
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
        match (&self.below, &self.worth) {
            (None, _) => "compressed",
            (Some(_), None) => "tiered",
            (Some(_), Some(_)) => "auto",
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
        self.judge();
        written
    }

    fn write_below(&self, bytes: &[u8], slots: &mut [Slot]) -> Result<(), StoreError> {
        match (&self.below, &self.worth) {
            (Some(below), Some(_)) => below.write(bytes, slots),
            _ => self.write(bytes, slots),
        }
    }

    fn packs_swept(&self) -> bool {
        let pays = self.worth.as_ref().is_some_and(Worth::pays);
        pays && !self.pool.is_full()
    }

    fn lifts(&self) -> bool {
        let Some(worth) = self.worth.as_ref().filter(|worth| worth.packs()) else {
            return false;
        };
        worth.leaves();
        self.judge();
        let has_room = !self.pool.is_full();
        if !has_room {
            worth.refuse();
        }
        has_room
    }

    fn lift(&self, page: &[u8; PAGE_BYTES]) -> Option<Slot> {
        self.worth.as_ref().and_then(|_| self.put(page))
    }

    fn returned(&self, slot: Slot, thread: u32, ns: u64) {
        let Some(worth) = &self.worth else {
            return;
        };
        worth.waited(thread);
        match self.parts(slot).filter(|_| in_memory(slot)) {
            Some(parts) => worth.returns(parts.stamp, self.pool.bytes_used()),
            None => worth.read(ns),
        }
    }

    fn surplus(&self) -> usize {
        let Some(worth) = &self.worth else {
            return 0;
        };
        match self.pool.is_too_large() {
            true => BOUNCE_PAGES,
            false => worth.due() as usize,
        }
    }

    fn is_stale(&self, slot: Slot) -> bool {
        let (Some(worth), Some(parts)) = (&self.worth, self.parts(slot)) else {
            return false;
        };
        self.pool.is_too_large() || worth.is_old(parts.stamp, self.pool.objects())
    }

    fn move_down(
        &self,
        from: &[Slot],
        bytes: &mut [u8],
        to: &mut [Slot],
    ) -> Result<(), StoreError> {
        let below = self.below.as_ref().ok_or(StoreError::Full)?;
        for (slot, page) in from.iter().zip(bytes.as_chunks_mut::<PAGE_BYTES>().0) {
            self.get(*slot, page).ok_or(StoreError::Damaged)?;
        }
        below.write(bytes, to)
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
            .is_some_and(|parts| parts.codec == Codec::Same)
        {
            self.same_filled.fetch_sub(1, Ordering::Relaxed);
        }
        self.pool.free(slot & !IN_MEMORY);
    }

    fn expect_child(&self, inherits: bool) {
        let below = self.below.iter();
        below.for_each(|below| below.expect_child(inherits));
    }

    fn release_of_child(&self, slot: Slot) {
        if let Some(below) = self.below.as_ref().filter(|_| !in_memory(slot)) {
            below.release_of_child(slot);
        }
    }

    fn forget_child(&self) {
        self.below.iter().for_each(Store::forget_child);
    }

    fn is_outlived(&self) -> bool {
        self.below.as_ref().is_none_or(Store::is_outlived)
    }

    fn noted(&self) -> Option<u64> {
        self.below.as_ref().and_then(Store::noted)
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
            let part = u128::from(share.min(whole)) * u128::from(worth::WHOLE);
            let part = u32::try_from(part / u128::from(whole.max(1))).unwrap_or(worth::WHOLE);
            self.part.store(part, Ordering::Relaxed);
            self.set_room();
        }
    }

    fn prepare(&self) {
        self.below.iter().for_each(Store::prepare);
    }

    fn descriptors(&self) -> [i32; DESCRIPTORS] {
        let below = self.below.as_ref();
        below.map_or([-1; DESCRIPTORS], Store::descriptors)
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
