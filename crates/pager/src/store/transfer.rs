//! Transfers between memory and the store's file, and how they fail.

use crate::page::PAGE_BYTES;
use crate::sys;

/// What a transfer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

/// One transfer of consecutive pages.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// Page offset in the file.
    pub at: u32,
    /// Memory: `pages` pages.
    pub memory: *mut u8,
    /// Number of pages.
    pub pages: u32,
}

impl Transfer {
    /// Bytes to transfer.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.pages as usize * PAGE_BYTES
    }

    /// Byte offset in the file.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.at as u64 * PAGE_BYTES as u64
    }
}

/// Largest number of transfers in one call.
pub const MAX_TRANSFERS: usize = 64;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// No room.
    Full,
    /// The device or file failed with this `errno`.
    Io(i32),
    /// Fewer bytes were transferred than requested.
    Short,
    /// The bytes are not those that were written.
    Damaged,
    /// Nobody owns the slot, so that it may get, or have got, another page.
    Unowned,
}

/// The error for a negative answer of the kernel.
pub fn error(answer: isize) -> StoreError {
    match sys::errno(answer) {
        libc::ENOSPC | libc::EDQUOT => StoreError::Full,
        errno => StoreError::Io(errno),
    }
}
