//! How pages are numbered.
//!
//! Managed memory is numbered by chunks of address space, in the order in which they come into use
//! ([`crate::paging::numbers`]). A page's number consists of its chunk's number and its index in
//! the chunk, so numbers are dense, and neighbours inside a chunk are neighbours in memory.

/// Base-2 logarithm of the page size. The pager runs only on x86-64, where the architecture fixes
/// it; the start checks it against the kernel's value (`AT_PAGESZ`).
pub const PAGE_SHIFT: u32 = 12;
/// Bytes in a page.
pub const PAGE_BYTES: usize = 1 << PAGE_SHIFT;
const _: () = assert!(PAGE_BYTES as u64 == pagewise_wire::PAGE_BYTES);
/// Base-2 logarithm of the pages in a whole chunk, which is 1 GiB.
pub const CHUNK_SHIFT: u32 = 18;
/// Pages in a whole chunk.
pub const CHUNK_PAGES: u32 = 1 << CHUNK_SHIFT;
/// Base-2 logarithm of the bytes in a whole chunk.
pub const CHUNK_BYTES_SHIFT: u32 = PAGE_SHIFT + CHUNK_SHIFT;

/// The number of a managed page.
pub type Page = u32;

/// `address` rounded down to a page.
#[must_use]
pub const fn page_floor(address: u64) -> u64 {
    address & !(PAGE_BYTES as u64 - 1)
}

/// `address` rounded up to a page; saturates at the top of the address space.
#[must_use]
pub const fn page_ceil(address: u64) -> u64 {
    page_floor(address.saturating_add(PAGE_BYTES as u64 - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_to_pages() {
        assert_eq!(page_floor(0x1fff), 0x1000);
        assert_eq!(page_ceil(0x1001), 0x2000);
        assert_eq!(page_ceil(0x1000), 0x1000);
        assert_eq!(page_ceil(u64::MAX), page_floor(u64::MAX));
    }
}
