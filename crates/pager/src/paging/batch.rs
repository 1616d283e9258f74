//! Batches of locked pages.

use super::Pager;
use crate::page::Page;
use crate::sync::Word;

/// Largest number of pages in a batch.
pub const BATCH: usize = 128;

/// Pages with their words, locked.
pub(super) struct List {
    pages: [(Page, Word); BATCH],
    count: usize,
}

impl List {
    pub(super) const fn new() -> Self {
        Self {
            pages: [(0, Word::EMPTY); BATCH],
            count: 0,
        }
    }

    pub(super) fn push(&mut self, page: Page, word: Word) {
        self.pages[self.count] = (page, word);
        self.count += 1;
    }

    pub(super) fn all(&self) -> &[(Page, Word)] {
        &self.pages[..self.count]
    }
}

/// `page` stays in memory.
pub(super) fn keep(pager: &Pager, page: Page, word: Word) {
    pager.policy().kept(page);
    pager.table.unlock(page, word);
}

/// Whether all bytes (a multiple of 64) are zero.
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    bytes
        .chunks_exact(64)
        .all(|line| line.iter().fold(0, |sum, byte| sum | byte) == 0)
}
