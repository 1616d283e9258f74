//! Records page events to a file (`pagewise run --record-faults`): a buffer in one process of the
//! run, filled by atomic indices and written out in parts. The recorded process is the first one
//! with a fault on managed memory, not a shell or wrapper before it.

use crate::page::Page;
use crate::sys;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use pagewise_wire::trace::{Event, Header, Record};

/// Number of records in the buffer: 1 MiB.
const PLACES: u64 = 1 << 16;
/// Number of records written out at a time.
const PART: u64 = PLACES / 4;

static FILE: AtomicI32 = AtomicI32::new(-1);
/// Nothing is recorded.
const OFF: u32 = 0;
/// The first fault starts a recording.
const PENDING: u32 = 1;
const ON: u32 = 2;
static STATE: AtomicU32 = AtomicU32::new(OFF);
/// Pages of the budget, for the header.
static BUDGET: AtomicU64 = AtomicU64::new(0);
static BUFFER: AtomicPtr<[AtomicU64; 2]> = AtomicPtr::new(core::ptr::null_mut());
static NEXT: AtomicU64 = AtomicU64::new(0);
static DONE: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// Records into `file` from the first fault on.
pub fn prepare(file: i32, budget_pages: u64) {
    FILE.store(file, Ordering::Relaxed);
    BUDGET.store(budget_pages, Ordering::Relaxed);
    STATE.store(PENDING, Ordering::Release);
}

/// Whether events are recorded.
#[inline]
fn is_on() -> bool {
    STATE.load(Ordering::Relaxed) == ON
}

/// Starts, if a file was prepared and no other process of the run has started. Only one thread
/// does; events of others are not recorded meanwhile.
fn begin() {
    let pending = STATE.compare_exchange(PENDING, OFF, Ordering::AcqRel, Ordering::Relaxed);
    if pending.is_err() || !is_empty() {
        return;
    }
    let header = Header {
        magic: pagewise_wire::trace::MAGIC,
        version: pagewise_wire::trace::VERSION,
        page_bytes: crate::page::PAGE_BYTES as u32,
        budget_pages: BUDGET.load(Ordering::Relaxed),
        pid: sys::process_id(),
        reserved: 0,
    };
    let Some(place) = sys::map(PLACES as usize * size_of::<Record>()) else {
        return;
    };
    // SAFETY: the header lives through the call; it has no padding (its size is asserted).
    unsafe {
        let from = &raw const header as usize;
        let file = descriptor() as usize;
        sys::call3(libc::SYS_write, file, from, size_of::<Header>());
    }
    BUFFER.store(place.cast(), Ordering::Release);
    STATE.store(ON, Ordering::Release);
}

/// Whether nothing was recorded to the file yet.
fn is_empty() -> bool {
    // SAFETY: plain arguments.
    let end = unsafe {
        let file = descriptor() as usize;
        sys::call3(libc::SYS_lseek, file, 0, libc::SEEK_END as usize)
    };
    end == 0
}

/// The file's descriptor, or -1.
#[must_use]
pub fn descriptor() -> i32 {
    FILE.load(Ordering::Relaxed)
}

/// Records one event.
#[inline]
pub fn record(page: Page, event: Event) {
    if is_on() {
        put(Record::new(sys::now_ns(), u64::from(page), event));
    }
}

/// Regions that were described in the trace: one bit each.
static DESCRIBED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Records the fault of a missing page, with its region and thread; the region itself is recorded
/// before its first fault, so that another run can find the page again.
#[inline]
pub fn fault(fault: &pagewise_policy::Fault) {
    if STATE.load(Ordering::Relaxed) == PENDING {
        begin();
    }
    if !is_on() {
        return;
    }
    let region = fault.region_id & 0xfff;
    let bit = 1 << (region % 64);
    let at = |page: u32, event| {
        Record::new(sys::now_ns(), u64::from(page), event)
            .in_region(region)
            .by_thread(fault.thread)
    };
    if DESCRIBED[usize::from(region / 64)].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        put(at(fault.region.first, Event::Region));
        put(at(fault.region.count, Event::RegionPages));
        if fault.in_file {
            put(at(fault.region.first, Event::RegionOfFile));
        }
    }
    let first = fault.kind == pagewise_policy::FaultKind::FirstTouch;
    put(at(
        fault.page,
        match (first, fault.write) {
            (true, false) => Event::FirstRead,
            (true, true) => Event::FirstWrite,
            (false, false) => Event::Refault,
            (false, true) => Event::RefaultWrite,
        },
    ));
}

fn put(record: Record) {
    let index = NEXT.fetch_add(1, Ordering::Relaxed);
    let place = index % PLACES;
    let part = (place / PART) as usize;
    // A part is free again once it has been written out; the counter then is a multiple of PART.
    let turn = index / PLACES;
    while DONE[part].load(Ordering::Acquire) / (PART + 1) < turn {
        core::hint::spin_loop();
    }
    let bytes = record.to_bytes();
    let word = |from: usize| u64::from_le_bytes(core::array::from_fn(|i| bytes[from + i]));
    // SAFETY: the buffer has PLACES records, and lives forever.
    let target = unsafe { &*BUFFER.load(Ordering::Relaxed).add(place as usize) };
    target[0].store(word(0), Ordering::Relaxed);
    target[1].store(word(8), Ordering::Relaxed);
    // Counts to PART for the records of this turn, and one more when they are written.
    let full = DONE[part].fetch_add(1, Ordering::AcqRel) + 1;
    if full % (PART + 1) == PART {
        write_out(part as u64 * PART, PART);
        DONE[part].fetch_add(1, Ordering::Release);
    }
}

fn write_out(first: u64, count: u64) {
    let bytes = size_of::<Record>();
    // SAFETY: the part is complete, and nothing writes to it until it is counted as written.
    unsafe {
        let from = BUFFER.load(Ordering::Relaxed).add(first as usize);
        let length = count as usize * bytes;
        sys::call3(
            libc::SYS_write,
            descriptor() as usize,
            from as usize,
            length,
        );
    }
}

/// Writes out what is left, when the process ends.
pub fn finish() {
    if STATE.swap(OFF, Ordering::AcqRel) != ON {
        return;
    }
    let next = NEXT.load(Ordering::Acquire);
    let start = next / PART * PART;
    write_out(start % PLACES, next - start);
}

/// The child of a fork does not continue its parent's recording: its pages are not its parent's.
pub fn adjust_after_fork() {
    let _ = STATE.compare_exchange(ON, OFF, Ordering::Relaxed, Ordering::Relaxed);
}
