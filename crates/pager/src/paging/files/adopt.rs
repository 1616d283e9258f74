//! How a mapping of a file comes under management.

use super::super::adopt::Purpose;
use super::super::regions::Kind;
use super::{Entry, FREE, GOOD, NEW, Pager};
use crate::page::{PAGE_BYTES, page_ceil};
use crate::sync::Word;
use crate::sys::{self, call3, call6, files as file};
use core::sync::atomic::Ordering;
use pagewise_policy::Span;

/// A mapping that the kernel has just made for reading, at a place that was free.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Length in bytes, as the program gave it.
    pub bytes: u64,
    /// The program's descriptor.
    pub file: i32,
    /// Offset in the file.
    pub offset: u64,
    /// Whether the program wanted to share it.
    pub is_shared: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopted {
    /// Its pages up to the file's end are managed.
    Managed,
    /// It stays the kernel's.
    Left,
    /// The kernel took it away and did not restore it (no memory for mappings).
    Lost,
}

impl Pager {
    /// Manages `mapping` if its file can be leased. What lies behind the end of the file stays the
    /// kernel's: touches there raise SIGBUS.
    pub fn manage_file(&'static self, mapping: &Mapping) -> Adopted {
        let least = self.files.least.load(Ordering::Relaxed);
        if least == 0 || mapping.bytes < least || !self.is_own_process() {
            return Adopted::Left;
        }
        let _quiet = self.undisturbed();
        let _adopting = self.files.adopting.hold();
        let Some((number, end)) = self.open_entry(mapping, least) else {
            self.counters.add(|all| &all.files_left, 1);
            return Adopted::Left;
        };
        let adopted = self.replace_mapping(number, mapping.start, end);
        if adopted != Adopted::Managed {
            self.files.close(self.files.entry(number));
            self.counters.add(|all| &all.files_left, 1);
        } else if !file::is_leased(self.files.entry(number).file()) {
            self.files.condemn(number);
        }
        adopted
    }

    /// A new entry for `mapping`, with a lease on its file, and the end of its managed part.
    fn open_entry(&'static self, mapping: &Mapping, least: u64) -> Option<(u16, u64)> {
        let managed = |status: &file::Status| {
            let rest = status.bytes.saturating_sub(mapping.offset);
            let bytes = page_ceil(mapping.bytes.min(rest));
            (status.is_regular && bytes >= least).then_some(bytes)
        };
        let program = file::status(mapping.file)?;
        managed(&program)?;
        if sys::is_in_memory(mapping.file) || !self.has_watcher() {
            return None;
        }
        let (number, entry) = self.files.numbered().find(|(_, entry)| entry.is(FREE))?;
        let own = file::moved_up(file::open_again(mapping.file).ok()?)?;
        let leased = file::lease(own, self.files.watcher.load(Ordering::SeqCst));
        let status = file::status(own).filter(|now| now.place == program.place);
        let found = status.and_then(|status| managed(&status).map(|bytes| (status, bytes)));
        let (Ok(()), Some((status, bytes))) = (leased, found) else {
            file::end_lease(own);
            sys::close(own);
            return None;
        };
        entry.take(own, mapping, &status);
        self.files.used.fetch_add(1, Ordering::Relaxed);
        Some((number, mapping.start + bytes))
    }

    /// Whether somebody is told when a lease must end.
    fn has_watcher(&'static self) -> bool {
        let watcher = &self.files.watcher;
        if watcher.load(Ordering::SeqCst) != 0 {
            return true;
        }
        if !self.own_threads.start_watcher(self) {
            return false;
        }
        while watcher.load(Ordering::SeqCst) == 0 {
            sys::futex_wait(watcher, 0, None);
        }
        true
    }

    /// Puts managed memory in the place of `[start, end)`. It cannot be accessed before its faults
    /// arrive.
    fn replace_mapping(&self, number: u16, start: u64, end: u64) -> Adopted {
        let _regions = self.regions.lock.hold();
        // A fault that began with other memory at this place must not bring zeros here.
        self.forget_stale(start, end);
        if self.table.cover(start, end) {
            self.outlast_work(start, end);
            self.empty_leftovers(start, end);
        }
        if !map_nothing(start, end) {
            return Adopted::Left;
        }
        let kind = Kind {
            file: number,
            ..self.kind_for(Purpose::Array)
        };
        self.adopt_from(start, end, kind, 0);
        let managed = self.regions.find(start);
        let well = managed.is_some_and(|region| region.kind.managed && region.end == end)
            && allow_reading(start, end);
        if well {
            let entry = self.files.entry(number);
            entry.state.store(GOOD, Ordering::SeqCst);
            return Adopted::Managed;
        }
        // Nothing has been read yet.
        self.unlist(start, end);
        match self.files.entry(number).map_again(start, end) {
            true => Adopted::Left,
            false => Adopted::Lost,
        }
    }
}

impl Pager {
    /// Empties pages of `[start, end)` that a late fault has filled while their memory was being
    /// unmapped. Under the regions' lock, where nothing is listed.
    fn empty_leftovers(&self, start: u64, end: u64) {
        for address in (start..end).step_by(PAGE_BYTES) {
            let Some(page) = self.table.page_at(address) else {
                continue;
            };
            if self.table.word(page) == Word::EMPTY {
                continue;
            }
            let word = self.table.lock(page);
            if word.owns_slot() {
                self.store().release(word.slot());
            }
            self.budget.release(u64::from(word.is_resident()));
            self.distances.forget(page);
            self.policy().removed(Span {
                first: page,
                count: 1,
            });
            self.table.unlock(page, Word::EMPTY);
        }
    }
}

impl Entry {
    fn take(&self, own: i32, mapping: &Mapping, status: &file::Status) {
        let cached = file::is_cached(own);
        if cached {
            file::read_nothing_ahead(own);
        }
        self.file.store(own, Ordering::Relaxed);
        let shift = mapping.offset.wrapping_sub(mapping.start);
        self.shift.store(shift, Ordering::Relaxed);
        self.is_shared.store(mapping.is_shared, Ordering::Relaxed);
        self.is_cached.store(cached, Ordering::Relaxed);
        self.note(status);
        self.state.store(NEW, Ordering::SeqCst);
    }

    /// Puts the kernel's mapping of the file at `[start, end)`. Returns whether that succeeded; it
    /// does not if the program has closed the descriptor, past libc, and uses it for another file.
    pub(super) fn map_again(&self, start: u64, end: u64) -> bool {
        let sharing = match self.is_shared.load(Ordering::Relaxed) {
            true => libc::MAP_SHARED,
            false => libc::MAP_PRIVATE,
        };
        let now = file::status(self.file()).map(|now| now.place);
        now == Some(self.noted().place)
            && map_over(
                start,
                end,
                libc::PROT_READ,
                sharing,
                self.file(),
                self.offset(start),
            )
    }
}

fn map_nothing(start: u64, end: u64) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let mapped = map_over(start, end, libc::PROT_NONE, flags, -1, 0);
    if mapped {
        // SAFETY: as with a mapped file, a core dump has no need for these pages.
        unsafe { sys::advise(start, end, libc::MADV_DONTDUMP) };
    }
    mapped
}

fn allow_reading(start: u64, end: u64) -> bool {
    let bytes = (end - start) as usize;
    // SAFETY: memory mapped by `map_nothing`.
    unsafe {
        call3(
            libc::SYS_mprotect,
            start as usize,
            bytes,
            libc::PROT_READ as usize,
        ) == 0
    }
}

fn map_over(start: u64, end: u64, protection: i32, flags: i32, file: i32, offset: u64) -> bool {
    // SAFETY: the program's mapping of a file, replaced by memory that reads the same.
    let answer = unsafe {
        call6(
            libc::SYS_mmap,
            start as usize,
            (end - start) as usize,
            protection as usize,
            (flags | libc::MAP_FIXED) as usize,
            file as usize,
            offset as usize,
        )
    };
    debug_assert!(start.is_multiple_of(PAGE_BYTES as u64));
    answer as u64 == start
}
