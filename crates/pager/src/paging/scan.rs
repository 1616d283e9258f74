//! What the kernel shows about pages: `/proc/self/pagemap`, and bytes that the program may not
//! read.
//!
//! An ordinary user's process that is not to be dumped (`PR_SET_DUMPABLE`) may not open these files of its
//! own after a fork. Then `mincore(2)` tells what is resident, and bytes are read as the program may.

use super::PAGER;
use crate::page::PAGE_BYTES;
use crate::sys::{self, Answer};
use core::sync::atomic::{AtomicI32, Ordering};

/// The state of a page in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Not present.
    Absent,
    /// Present in this process only.
    Alone,
    /// Present in another process as well.
    Shared,
    /// In the kernel's swap, or unknown.
    Unknown,
}

static PAGEMAP: AtomicI32 = AtomicI32::new(-1);
static MEMORY: AtomicI32 = AtomicI32::new(-1);
static STATM: AtomicI32 = AtomicI32::new(-1);
static MAPS: AtomicI32 = AtomicI32::new(-1);
static MAPS_OF_EVICTIONS: AtomicI32 = AtomicI32::new(-1);

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const EXCLUSIVE: u64 = 1 << 56;
/// A page of a file, or of shared anonymous memory (Documentation/admin-guide/mm/pagemap.rst).
const OF_FILE: u64 = 1 << 61;

/// All that are kept open.
static KEPT: [&AtomicI32; 5] = [&PAGEMAP, &MEMORY, &STATM, &MAPS, &MAPS_OF_EVICTIONS];

/// In the child of a fork these are the parent's.
pub fn forked() {
    for file in KEPT {
        sys::close(file.swap(-1, Ordering::Relaxed));
    }
}

/// The descriptors in use, -1 for those not needed so far.
#[must_use]
pub fn descriptors() -> [i32; 5] {
    KEPT.map(|file| file.load(Ordering::Relaxed))
}

/// The descriptor of `path`, opened when it is first needed, and kept: each opening takes the
/// lowest free number for a moment, which the program may expect to get. A process that shares this memory,
/// but is no thread, opens none: it may have descriptors of its own, and in this process the same number
/// would be nothing, or another file.
fn opened(file: &AtomicI32, path: &core::ffi::CStr) -> i32 {
    let there = file.load(Ordering::Relaxed);
    if there >= 0 || PAGER.is_of_relative() {
        return there;
    }
    let answer = sys::open(path, libc::O_RDONLY);
    let own = sys::high(i32::try_from(answer).unwrap_or(-1)).max(-1);
    match file.compare_exchange(-1, own, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => own,
        // Another thread was faster.
        Err(there) => {
            sys::close(own);
            there
        }
    }
}

fn pagemap() -> i32 {
    opened(&PAGEMAP, c"/proc/self/pagemap")
}

/// `/proc/self/maps`, for the one thread that pages out files.
#[must_use]
pub fn maps() -> i32 {
    opened(&MAPS, c"/proc/self/maps")
}

/// The same file, for whoever holds the lock of evictions.
#[must_use]
pub fn maps_of_evictions() -> i32 {
    opened(&MAPS_OF_EVICTIONS, c"/proc/self/maps")
}

/// Resident pages of this process, and those of them that belong to files or shared memory (second
/// and third field of `/proc/self/statm`).
#[must_use]
pub fn resident_pages() -> Option<[u64; 2]> {
    let [_, all, of_files, ..] = statm()?;
    Some([all, of_files])
}

/// Pages of private mappings that can be written, and of the stack (sixth field of
/// `/proc/self/statm`).
#[must_use]
pub fn data_pages() -> Option<u64> {
    let [.., data] = statm()?;
    Some(data)
}

/// The first six fields of `/proc/self/statm` (fs/proc/array.c, `proc_pid_statm`).
/// Bytes of address space that this process uses.
#[must_use]
pub fn address_space_bytes() -> Option<u64> {
    let [all, ..] = statm()?;
    Some(all * PAGE_BYTES as u64)
}

fn statm() -> Option<[u64; 6]> {
    let mut text = [0_u8; 128];
    let file = opened(&STATM, c"/proc/self/statm");
    let count = usize::try_from(read_at(file, text.as_mut_ptr(), text.len(), 0)).ok()?;
    let mut words = core::str::from_utf8(&text[..count]).ok()?.split(' ');
    let mut fields = [0; 6];
    for field in &mut fields {
        *field = words.next()?.parse().ok()?;
    }
    Some(fields)
}

/// The pages from `start` on, one for each entry of `pages`: whether it is resident and belongs to
/// its mapping's file. [`None`] for one that is not resident, `Some(false)` for one of this process
/// alone, in memory or in swap.
pub fn of_file(start: u64, pages: &mut [Option<bool>]) {
    let mut entries = [0_u64; 128];
    let starts = (start..).step_by(entries.len() * PAGE_BYTES);
    for (address, pages) in starts.zip(pages.chunks_mut(entries.len())) {
        let message = read_entries(address, &mut entries[..pages.len()]);
        // What is not told is left alone.
        entries[message..].fill(SWAPPED);
        for (page, entry) in pages.iter_mut().zip(entries) {
            *page = match entry & (PRESENT | SWAPPED) {
                0 => None,
                PRESENT => Some(entry & OF_FILE != 0),
                _ => Some(false),
            };
        }
    }
}

/// Reads the entries of the pages from `address` on; returns how many the kernel told.
fn read_entries(address: u64, entries: &mut [u64]) -> usize {
    if pagemap() < 0 {
        return read_residence(address, entries);
    }
    let (into, bytes) = (entries.as_mut_ptr().cast(), size_of_val(entries));
    let answer = read_at(pagemap(), into, bytes, address / PAGE_BYTES as u64 * 8);
    usize::try_from(answer).unwrap_or(0) / 8
}

/// The same without the file: a resident page may be shared, and another one may be in the kernel's swap.
fn read_residence(address: u64, entries: &mut [u64]) -> usize {
    let mut resident = [0_u8; 256];
    let resident = &mut resident[..entries.len().min(256)];
    // SAFETY: live argument: a byte for each page.
    let answer = unsafe {
        let bytes = resident.len() * PAGE_BYTES;
        let place = resident.as_mut_ptr() as usize;
        sys::call3(libc::SYS_mincore, address as usize, bytes, place)
    };
    if answer != 0 {
        return 0;
    }
    for (entry, resident) in entries.iter_mut().zip(&*resident) {
        *entry = match resident & 1 {
            0 => SWAPPED,
            _ => PRESENT,
        };
    }
    resident.len()
}

fn read_at(file: i32, bytes: *mut u8, count: usize, offset: u64) -> Answer {
    // SAFETY: live argument: callers provide a buffer of `count` bytes that lives through the call.
    unsafe {
        sys::call6(
            libc::SYS_pread64,
            file as usize,
            bytes as usize,
            count,
            offset as usize,
            0,
            0,
        )
    }
}

/// Checks the pages from `start` on, one for each entry of `looks`.
pub fn look(start: u64, looks: &mut [Look]) {
    let mut entries = [0_u64; 128];
    let starts = (start..).step_by(entries.len() * PAGE_BYTES);
    for (address, looks) in starts.zip(looks.chunks_mut(entries.len())) {
        let message = read_entries(address, &mut entries[..looks.len()]);
        entries[message..].fill(SWAPPED);
        for (look, entry) in looks.iter_mut().zip(entries) {
            *look = match entry & (PRESENT | SWAPPED | EXCLUSIVE) {
                PRESENT => Look::Shared,
                all if all & PRESENT != 0 => Look::Alone,
                all if all & SWAPPED != 0 => Look::Unknown,
                _ => Look::Absent,
            };
        }
    }
}

/// Whether the page at `address` is certainly in memory.
pub fn is_present(address: u64) -> bool {
    let mut look = [Look::Unknown];
    self::look(address, &mut look);
    matches!(look, [Look::Alone | Look::Shared])
}

/// Calls `found` for each page of `[start, end)` that is present.
pub fn present(start: u64, end: u64, mut found: impl FnMut(u64)) {
    let mut entries = [0_u64; 256];
    let mut address = start;
    while address < end {
        let wanted = ((end - address) as usize / PAGE_BYTES).min(entries.len());
        let count = read_entries(address, &mut entries[..wanted]);
        for (entry, place) in entries[..count].iter().zip(0_u64..) {
            if entry & PRESENT != 0 {
                found(address + place * PAGE_BYTES as u64);
            }
        }
        address += (count.max(1) * PAGE_BYTES) as u64;
    }
}

/// Copies the page at `address`, whatever its protection, to `bytes`. Returns whether that
/// succeeded.
pub fn copy(address: u64, bytes: &mut [u8]) -> bool {
    let count = bytes.len();
    let memory = opened(&MEMORY, c"/proc/self/mem");
    match memory < 0 {
        true => copy_resident(address, bytes),
        false => read_at(memory, bytes.as_mut_ptr(), count, address) == count as isize,
    }
}

/// The same without the file: of pages that are resident and may be read. The call would wait for others.
fn copy_resident(address: u64, bytes: &mut [u8]) -> bool {
    let mut entries = [0; 128];
    let entries = &mut entries[..bytes.len() / PAGE_BYTES];
    let message = read_residence(address, entries);
    if message < entries.len() || entries.iter().any(|entry| *entry != PRESENT) {
        return false;
    }
    let to = [bytes.as_mut_ptr() as usize, bytes.len()];
    let from = [address as usize, bytes.len()];
    // SAFETY: live arguments: one `struct iovec` for each side, and the caller's buffer.
    let answer = unsafe {
        sys::call6(
            libc::SYS_process_vm_readv,
            sys::process_id() as usize,
            to.as_ptr() as usize,
            1,
            from.as_ptr() as usize,
            1,
            0,
        )
    };
    answer == bytes.len() as isize
}
