//! The minimal part of io_uring that transfers need: submit all, wait for all.
//!
//! No kernel polling thread: on busy cores it starves (402 IOPS measured against 39 k). A ring is
//! used by one thread at a time; a thread that finds all of them in use does without. Layouts as in
//! `include/uapi/linux/io_uring.h`, Linux 5.6 (`IORING_OP_READ` and `_WRITE`).
#![expect(
    clippy::cast_sign_loss,
    reason = "system calls take and give machine words; the pager runs on 64 bits alone"
)]

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use crate::store::patience::Waiting;
use crate::store::transfer::{MAX_TRANSFERS, Operation, StoreError, Transfer, error};
use crate::sys;

/// Set if a test denies rings, as a container's filter does.
pub static DENIED: AtomicBool = AtomicBool::new(false);

const RINGS: usize = 6;
const OP_READ: u8 = 22;
const OP_WRITE: u8 = 23;
const ENTER_GETEVENTS: usize = 1;
const SETUP_COOPERATIVE: u32 = 1 << 8;
const SETUP_TASKRUN_FLAG: u32 = 1 << 9;
/// In the submission ring's flags: completions wait for the thread to enter the kernel.
const SUBMISSION_TASKRUN: u32 = 1 << 2;
const FEATURE_SINGLE_MMAP: u32 = 1;
const OFFSET_ENTRIES: usize = 0x1000_0000;
/// Errors after which the same call is repeated.
const INTERRUPTED: isize = libc::EINTR as isize;
const AGAIN: isize = libc::EAGAIN as isize;
const BUSY: isize = libc::EBUSY as isize;

/// `struct io_sqring_offsets`.
#[derive(Debug, Default, Clone, Copy)]
#[repr(C)]
struct SubmissionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: [u32; 3],
}

/// `struct io_cqring_offsets`.
#[derive(Debug, Default, Clone, Copy)]
#[repr(C)]
struct CompletionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    overflow: u32,
    entries: u32,
    flags: u32,
    reserved: [u32; 3],
}

/// `struct io_uring_params`.
#[derive(Debug, Default, Clone, Copy)]
#[repr(C)]
struct Parameters {
    submission_entries: u32,
    completion_entries: u32,
    flags: u32,
    thread_cpu: u32,
    thread_idle: u32,
    features: u32,
    queue: u32,
    reserved: [u32; 3],
    submission: SubmissionOffsets,
    completion: CompletionOffsets,
}

/// `struct io_uring_sqe`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Entry {
    operation: u8,
    flags: u8,
    priority: u16,
    file: i32,
    offset: u64,
    address: u64,
    length: u32,
    operation_flags: u32,
    user_data: u64,
    rest: [u64; 3],
}

/// `struct io_uring_cqe`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

const _: () = assert!(size_of::<Parameters>() == 120);
const _: () = assert!(size_of::<Entry>() == 64);
const _: () = assert!(size_of::<Completion>() == 16);

/// The mapped parts of one ring.
#[derive(Debug, Clone, Copy)]
struct Mapped {
    file: i32,
    rings: *mut u8,
    entries: *mut Entry,
    bytes: usize,
    submission: SubmissionOffsets,
    completion: CompletionOffsets,
}

#[derive(Debug)]
struct Ring {
    /// Also set while the ring is not created yet.
    busy: AtomicBool,
    mapped: UnsafeCell<Option<Mapped>>,
    /// Its descriptor, -1 for none: readable without taking the ring.
    file: AtomicI32,
}

/// A few rings, used by any thread.
#[derive(Debug)]
pub struct Rings {
    rings: [Ring; RINGS],
    /// The process that made them, and alone uses them. For a slow transfer the kernel may start a worker,
    /// which counts as a thread of the process that asked for it and ends after it, with 0: a process that
    /// shares this memory and ends by `exit(2)`, as a thread does, would lose its status (Linux 6.18).
    owner: AtomicU32,
}

// SAFETY: the contents of a ring's cell are accessed only by the thread that set its `busy` flag,
// or while no other thread exists (`forked`).
unsafe impl Sync for Rings {}
// SAFETY: the mappings belong to the process, not to a thread.
unsafe impl Send for Rings {}

impl Default for Rings {
    fn default() -> Self {
        Self::new()
    }
}

impl Rings {
    /// No rings yet.
    #[must_use]
    pub fn new() -> Self {
        let ring = || Ring {
            busy: AtomicBool::new(true),
            mapped: UnsafeCell::new(None),
            file: AtomicI32::new(-1),
        };
        Rings {
            rings: core::array::from_fn(|_| ring()),
            owner: AtomicU32::new(0),
        }
    }

    /// Creates rings of [`MAX_TRANSFERS`] entries; none if the kernel denies them. Once in a
    /// process.
    pub fn prepare(&self) {
        self.owner.store(sys::process_id(), Ordering::Relaxed);
        for ring in &self.rings {
            // SAFETY: the ring is busy since `new` or `forked`, and only this call ends that.
            let place = unsafe { &mut *ring.mapped.get() };
            if let Some(parents) = place.take() {
                tear_down(&parents);
            }
            *place = set_up();
            let file = place.map_or(-1, |mapped| mapped.file);
            ring.file.store(file, Ordering::Relaxed);
            ring.busy.store(false, Ordering::Release);
        }
    }

    /// Whether the kernel granted rings.
    pub fn any(&self) -> bool {
        self.descriptors()[0] >= 0
    }

    /// Their descriptors, -1 for none.
    pub fn descriptors(&self) -> [i32; RINGS] {
        core::array::from_fn(|number| self.rings[number].file.load(Ordering::Relaxed))
    }

    /// The rings are the parent's: they are not used until [`Rings::prepare`] creates others. For
    /// the only thread of a child.
    pub fn forked(&self) {
        for ring in &self.rings {
            ring.busy.store(true, Ordering::Relaxed);
        }
    }

    /// Does all transfers at once, polling for the end as long as `waiting` allows. `None` if no
    /// ring is free, or they are another process's.
    ///
    /// # Safety
    /// The memory of each transfer belongs to the caller for the whole call.
    pub unsafe fn transfer(
        &self,
        file: i32,
        operation: Operation,
        transfers: &[Transfer],
        waiting: Option<&Waiting<'_>>,
    ) -> Option<Result<(), (usize, StoreError)>> {
        let is_owner = self.owner.load(Ordering::Relaxed) == sys::process_id();
        if transfers.len() > MAX_TRANSFERS || !is_owner {
            return None;
        }
        let ring = self
            .rings
            .iter()
            .find(|ring| !ring.busy.swap(true, Ordering::Acquire))?;
        // SAFETY: the flag makes the cell ours.
        let mapped = unsafe { *ring.mapped.get() };
        // SAFETY: the caller guarantees the memory, the flag the ring.
        let result =
            mapped.map(|mapped| unsafe { mapped.transfer(file, operation, transfers, waiting) });
        ring.busy.store(false, Ordering::Release);
        result
    }
}

impl Mapped {
    /// # Safety
    /// `offset` must be one that the kernel returned for this ring.
    unsafe fn word(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel's offsets are inside the mapping, aligned to four bytes.
        unsafe { &*self.rings.add(offset as usize).cast() }
    }

    /// # Safety
    /// As for [`Rings::transfer`]; the ring must belong to the caller.
    unsafe fn transfer(
        &self,
        file: i32,
        operation: Operation,
        transfers: &[Transfer],
        waiting: Option<&Waiting<'_>>,
    ) -> Result<(), (usize, StoreError)> {
        // SAFETY: the ring belongs to the caller, and entries and array have room for all
        // transfers.
        unsafe { self.submit(file, operation, transfers) };
        let (mut submitted, mut done) = (0, 0);
        if let Some(waiting) = waiting {
            // SAFETY: submits what was put into the ring above.
            let answer = unsafe { self.enter(transfers.len(), 0, 0) };
            submitted = usize::try_from(answer).unwrap_or(0);
            // SAFETY: the ring belongs to the caller.
            unsafe { self.look_out(submitted, waiting) };
        }
        let mut expected = transfers.len();
        let mut first_error = None;
        while done < expected {
            let left = expected - submitted;
            // SAFETY: submits what was put into the ring above.
            let answer = unsafe { self.enter(left, expected - done, ENTER_GETEVENTS) };
            match -answer {
                count if count <= 0 => submitted += count.unsigned_abs().min(left),
                INTERRUPTED | AGAIN | BUSY => {}
                _ => {
                    // Entries that the kernel has not taken must not be taken later; for those that
                    // it has taken, the memory must remain.
                    first_error.get_or_insert((submitted, error(answer)));
                    // SAFETY: the ring belongs to the caller, and the kernel reads it only in
                    // `enter`.
                    unsafe { self.take_back(left) };
                    expected = submitted;
                    sys::futex_wait(&AtomicU32::new(0), 0, Some(50_000));
                }
            }
            // SAFETY: the ring belongs to the caller.
            done += unsafe { self.reap(transfers, &mut first_error) };
        }
        // Short counts (none on a healthy disk) are treated as errors: in either case the caller's
        // page is lost or must be written again.
        first_error.map_or(Ok(()), Err)
    }

    /// `io_uring_enter(2)`.
    ///
    /// # Safety
    /// The ring must belong to the caller; what is submitted must be as [`Rings::transfer`]
    /// requires.
    unsafe fn enter(&self, submit: usize, complete: usize, flags: usize) -> isize {
        let file = self.file as usize;
        // SAFETY: the caller guarantees what was put into the ring.
        unsafe {
            sys::call6(
                libc::SYS_io_uring_enter,
                file,
                submit,
                complete,
                flags,
                0,
                0,
            )
        }
    }

    /// Polls for `count` completions as long as `waiting` allows.
    ///
    /// # Safety
    /// The ring must belong to the caller.
    unsafe fn look_out(&self, count: usize, waiting: &Waiting<'_>) {
        // SAFETY: offsets of this ring.
        let (flags, head, tail) = unsafe {
            (
                self.word(self.submission.flags),
                self.word(self.completion.head).load(Ordering::Relaxed),
                self.word(self.completion.tail),
            )
        };
        while (tail.load(Ordering::Acquire).wrapping_sub(head) as usize) < count {
            if flags.load(Ordering::Acquire) & SUBMISSION_TASKRUN != 0 {
                // SAFETY: only lets the kernel post finished transfers.
                unsafe { self.enter(0, 0, ENTER_GETEVENTS) };
            }
            for _ in 0..8 {
                core::hint::spin_loop();
            }
            if !waiting.looks_out() {
                return;
            }
        }
    }

    unsafe fn submit(&self, file: i32, operation: Operation, transfers: &[Transfer]) {
        // SAFETY: offsets of this ring; entries and array have MAX_TRANSFERS places.
        unsafe {
            let mask = self.word(self.submission.ring_mask).load(Ordering::Relaxed);
            let tail = self.word(self.submission.tail);
            let start = tail.load(Ordering::Relaxed);
            for (number, transfer) in (0u32..).zip(transfers) {
                let place = start.wrapping_add(number) & mask;
                self.entries.add(place as usize).write(Entry {
                    operation: if operation == Operation::Read {
                        OP_READ
                    } else {
                        OP_WRITE
                    },
                    flags: 0,
                    priority: 0,
                    file,
                    offset: transfer.offset(),
                    address: transfer.memory as u64,
                    length: transfer.pages << crate::page::PAGE_SHIFT,
                    operation_flags: 0,
                    user_data: u64::from(number),
                    rest: [0; 3],
                });
                self.word(self.submission.array + place * 4)
                    .store(place, Ordering::Relaxed);
            }
            let count = u32::try_from(transfers.len()).unwrap_or(0);
            tail.store(start.wrapping_add(count), Ordering::Release);
        }
    }

    unsafe fn take_back(&self, count: usize) {
        // SAFETY: offset of this ring.
        let tail = unsafe { self.word(self.submission.tail) };
        tail.fetch_sub(u32::try_from(count).unwrap_or(0), Ordering::Release);
    }

    unsafe fn reap(
        &self,
        transfers: &[Transfer],
        first_error: &mut Option<(usize, StoreError)>,
    ) -> usize {
        // SAFETY: offsets of this ring.
        unsafe {
            let mask = self.word(self.completion.ring_mask).load(Ordering::Relaxed);
            let head = self.word(self.completion.head);
            let start = head.load(Ordering::Relaxed);
            let end = self.word(self.completion.tail).load(Ordering::Acquire);
            let count = end.wrapping_sub(start);
            for number in 0..count {
                let place = (start.wrapping_add(number) & mask) as usize;
                let entries = self.rings.add(self.completion.entries as usize);
                let completion = *entries.cast::<Completion>().add(place);
                let which = usize::try_from(completion.user_data).unwrap_or(0);
                let wanted = transfers.get(which).map_or(0, Transfer::bytes);
                let failure = match completion.result {
                    result if result < 0 => Some(error(result as isize)),
                    result if result.unsigned_abs() as usize != wanted => Some(StoreError::Short),
                    _ => None,
                };
                if let Some(failure) = failure {
                    first_error.get_or_insert((which, failure));
                }
            }
            head.store(end, Ordering::Release);
            count as usize
        }
    }
}

/// A ring that reports completions by a flag instead of interrupting the thread (Linux 5.19), or
/// one that does not.
fn set_up() -> Option<Mapped> {
    if DENIED.load(Ordering::Relaxed) {
        return None;
    }
    set_up_with(SETUP_COOPERATIVE | SETUP_TASKRUN_FLAG).or_else(|| set_up_with(0))
}

fn set_up_with(flags: u32) -> Option<Mapped> {
    let mut parameters = Parameters {
        flags,
        ..Parameters::default()
    };
    // SAFETY: `parameters` is a whole io_uring_params.
    let file = unsafe {
        sys::call3(
            libc::SYS_io_uring_setup,
            MAX_TRANSFERS,
            core::ptr::from_mut(&mut parameters) as usize,
            sys::seccomp::OWN,
        )
    };
    let file = i32::try_from(file).ok().filter(|file| *file >= 0)?;
    let file = sys::high(file);
    let (submission, completion) = (parameters.submission, parameters.completion);
    let submission_end = submission.array + parameters.submission_entries * 4;
    let completion_end = completion.entries + parameters.completion_entries * 16;
    let bytes = submission_end.max(completion_end) as usize;
    let rings = map(file, 0, bytes).filter(|_| parameters.features & FEATURE_SINGLE_MMAP != 0);
    let entries = map(file, OFFSET_ENTRIES, MAX_TRANSFERS * size_of::<Entry>());
    let (Some(rings), Some(entries)) = (rings, entries) else {
        sys::close(file);
        return None;
    };
    Some(Mapped {
        file,
        rings,
        entries: entries.cast(),
        bytes,
        submission,
        completion,
    })
}

fn map(file: i32, offset: usize, bytes: usize) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let answer = unsafe {
        sys::call6(
            libc::SYS_mmap,
            0,
            bytes,
            protection as usize,
            flags as usize,
            file as usize,
            offset,
        )
    };
    (!(-4095..=0).contains(&answer)).then_some(answer as *mut u8)
}

fn tear_down(ring: &Mapped) {
    // SAFETY: mappings and descriptor are this ring's own, and nothing uses it any more.
    unsafe {
        sys::call3(libc::SYS_munmap, ring.rings as usize, ring.bytes, 0);
        sys::call3(
            libc::SYS_munmap,
            ring.entries as usize,
            MAX_TRANSFERS * size_of::<Entry>(),
            0,
        );
        sys::call3(libc::SYS_close, ring.file as usize, 0, 0);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn only_who_made_the_rings_uses_them() {
        let rings = Rings::new();
        rings.prepare();
        let transfer = || {
            // SAFETY: there is nothing to transfer.
            unsafe { rings.transfer(-1, Operation::Read, &[], None) }
        };
        assert_eq!(transfer().is_some(), rings.any());
        rings.owner.fetch_add(1, Ordering::Relaxed);
        assert!(transfer().is_none());
    }
}
