//! Where versions of mimalloc have the parts of a segment and of a page's descriptor.

/// A segment of the usual size, and what starts of segments are a multiple of.
pub(super) const SEGMENT: u64 = 32 << 20;
pub(super) const SLICE: u64 = 64 << 10;
pub(super) const SLICES: u64 = SEGMENT / SLICE;

/// Places of a range of versions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// In the segment: slices in all, in its head, and with descriptors; the first descriptor.
    pub slices: u64,
    pub head: u64,
    pub entries: u64,
    pub first: u64,
    /// From one descriptor to the next.
    pub stride: u64,
    /// Parts of a descriptor that moved.
    pub page: Page,
}

/// Parts of a descriptor: list of free blocks at 16 in all.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// Blocks in use and their size are one word; where the blocks start follows from their size.
    Old,
    /// They have words of their own.
    New,
}

/// 2.0.7 to 2.1.2, to 2.1.7, and from 2.1.9 on.
pub(super) const LAYOUTS: [Layout; 3] = [
    Layout {
        slices: 224,
        head: 232,
        entries: 248,
        first: 264,
        stride: 80,
        page: Page::Old,
    },
    Layout {
        slices: 224,
        head: 232,
        entries: 248,
        first: 264,
        stride: 96,
        page: Page::New,
    },
    Layout {
        slices: 248,
        head: 256,
        entries: 272,
        first: 288,
        stride: 96,
        page: Page::New,
    },
];

/// From the start of a page's slices to its first block, by the size of blocks, in 2.0.9 and 2.1.2.
pub(super) fn starts(block: u64) -> [u64; 2] {
    let first = if (8..=1024).contains(&block) { 384 } else { 0 };
    let second = match block {
        0..=64 => 3 * block,
        65..=512 => block,
        _ => 0,
    };
    [first, second]
}
