//! The file or block device: whole pages at page offsets, one transfer at a time.
//!
//! A single transfer uses `pread64`/`pwrite64` (when sleeping, io_uring is no faster: 47 µs were
//! measured for both); several at once go through a `Ring`, and one after another if the kernel
//! denies rings. A small read for which a thread waits also goes through a ring if a CPU is free,
//! because the thread can then poll for its end instead of being woken (see
//! [`crate::store::patience`]).
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "system calls take and give machine words; the pager runs on 64 bits alone"
)]

use crate::inject::Injected;
use crate::store::patience::Patience;
use crate::store::reserve::Reserve;
use crate::store::ring::Rings;
use crate::store::transfer::{Operation, StoreError, Transfer, error};
use crate::sys;

/// A file with its rings.
#[derive(Debug)]
pub struct Device {
    file: i32,
    rings: Rings,
    patience: Patience,
    injected: Option<Injected>,
    reserve: Reserve,
    /// Whether file size limits apply to it.
    is_limited: bool,
}

impl Device {
    /// The open file `file`, of which `pages` pages may be used, by programs that may use this many
    /// `processors`.
    #[must_use]
    pub fn new(file: i32, pages: u32, processors: u32, injected: Option<Injected>) -> Self {
        Device {
            file,
            patience: Patience::new(processors),
            rings: Rings::new(),
            injected,
            reserve: Reserve::new(file, pages),
            is_limited: sys::is_regular(file),
        }
    }

    /// Descriptors in use.
    pub fn descriptors(&self) -> [i32; 8] {
        let mut all = [-1; 8];
        all[0] = self.file;
        for (place, ring) in all[1..].iter_mut().zip(self.rings.descriptors()) {
            *place = ring;
        }
        all
    }

    /// Creates the rings.
    pub fn prepare(&self) {
        self.rings.prepare();
    }

    /// No rings in the child of a fork for now: those of the parent belong to the parent.
    pub fn forked(&self) {
        self.patience.forked();
        self.rings.forked();
    }

    /// Reads or writes all of `transfers` (at most [`MAX_TRANSFERS`](super::transfer::MAX_TRANSFERS)); on failure returns which
    /// one.
    ///
    /// # Safety
    /// The memory of each transfer belongs to the caller for the whole call.
    pub unsafe fn transfer(
        &self,
        operation: Operation,
        transfers: &[Transfer],
    ) -> Result<(), (usize, StoreError)> {
        if operation == Operation::Write {
            self.check_limit(transfers)?;
            self.reserve.cover(self.file, transfers);
        }
        // Counted until the end of this function, asleep or not.
        let waiting = match (operation, transfers) {
            (Operation::Read, [one]) if one.pages <= Patience::PAGES => Some(self.patience.begin()),
            _ => None,
        };
        let waiting = waiting.as_ref().filter(|waiting| waiting.looks_out());
        if self.injected.is_none() && (waiting.is_some() || transfers.len() > 1) {
            // SAFETY: the caller guarantees the memory.
            let done = unsafe {
                self.rings
                    .transfer(self.file, operation, transfers, waiting)
            };
            if let Some(result) = done {
                return result;
            }
        }
        for (place, transfer) in transfers.iter().enumerate() {
            // SAFETY: the caller guarantees the memory.
            unsafe { self.one(operation, transfer) }.map_err(|why| (place, why))?;
        }
        Ok(())
    }

    /// The kernel answers a write beyond the file size limit, which a program may lower at any
    /// time, with SIGXFSZ: that would kill a program merely because its pages are evicted.
    fn check_limit(&self, transfers: &[Transfer]) -> Result<(), (usize, StoreError)> {
        if !self.is_limited {
            return Ok(());
        }
        let most = sys::largest_file().unwrap_or(u64::MAX);
        let end = |one: &Transfer| one.offset() + one.bytes() as u64;
        match transfers.iter().position(|one| end(one) > most) {
            None => Ok(()),
            Some(place) => Err((place, StoreError::Io(libc::EFBIG))),
        }
    }

    /// # Safety
    /// As for [`Device::transfer`].
    unsafe fn one(&self, operation: Operation, transfer: &Transfer) -> Result<(), StoreError> {
        // SAFETY: the caller guarantees the memory.
        let plain = || unsafe { transfer_at(self.file, operation, transfer) };
        match &self.injected {
            // SAFETY: likewise.
            Some(injected) => unsafe { injected.transfer(operation, transfer, plain) },
            None => plain(),
        }
    }
}

/// Transfers all bytes, continuing after a short count.
///
/// # Safety
/// The memory of the transfer belongs to the caller for the whole call.
unsafe fn transfer_at(
    file: i32,
    operation: Operation,
    transfer: &Transfer,
) -> Result<(), StoreError> {
    let number = match operation {
        Operation::Read => libc::SYS_pread64,
        Operation::Write => libc::SYS_pwrite64,
    };
    let mut done = 0;
    while done < transfer.bytes() {
        // SAFETY: within the caller's memory.
        let answer = unsafe {
            sys::call6(
                number,
                file as usize,
                transfer.memory as usize + done,
                transfer.bytes() - done,
                transfer.offset() as usize + done,
                0,
                0,
            )
        };
        match answer {
            0 => return Err(StoreError::Short),
            count if count > 0 => done += count.unsigned_abs(),
            failed if failed == -(libc::EINTR as isize) => {}
            failed => return Err(error(failed)),
        }
    }
    Ok(())
}
