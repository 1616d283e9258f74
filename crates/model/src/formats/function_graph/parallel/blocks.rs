//! Blocks of whole lines from a stream, or from memory.

use super::super::parser::LONGEST_LINE;
use memchr::{memchr, memrchr};
use std::io::{self, Read};
use std::ops::Range;

/// A text cut behind newlines.
pub(super) trait Source {
    /// The next lines, in `space` where they have to be copied; `None` behind the last.
    fn next<'s>(&mut self, space: &'s mut Vec<u8>) -> io::Result<Option<(Block, &'s [u8])>>
    where
        Self: 's;
}

/// A text in memory. `window` is told now and then which bytes come next; those before them are
/// done with, but for the last [`WINDOW`].
pub(super) struct Memory<'t, W> {
    text: &'t [u8],
    size: usize,
    /// Where the next block begins.
    at: usize,
    /// What a stream would have been read up to.
    read: usize,
    window: W,
    announced: usize,
    number: u64,
    at_end: bool,
}

/// Bytes that are announced at once.
pub(super) const WINDOW: usize = 4 << 20;

impl<'t, W: FnMut(Range<usize>)> Memory<'t, W> {
    pub fn new(text: &'t [u8], size: usize, window: W) -> Self {
        Self {
            text,
            size: size.max(1),
            at: 0,
            read: 0,
            window,
            announced: 0,
            number: 0,
            at_end: false,
        }
    }

    /// Where the next block ends: where one of a stream does. `None` at the end.
    fn end(&mut self) -> Option<usize> {
        self.read += self.size;
        if let Some(end) = memrchr(b'\n', self.text.get(self.at..self.read)?) {
            return Some(self.at + end + 1);
        }
        loop {
            let begun = self.read;
            self.read += self.size;
            if let Some(end) = memchr(b'\n', self.text.get(begun..self.read)?) {
                return Some(begun + end + 1);
            }
        }
    }
}

impl<W: FnMut(Range<usize>)> Source for Memory<'_, W> {
    fn next<'s>(&mut self, _: &'s mut Vec<u8>) -> io::Result<Option<(Block, &'s [u8])>>
    where
        Self: 's,
    {
        if self.at_end {
            return Ok(None);
        }
        let len = self.text.len();
        if self.read + self.size > self.announced && self.announced < len {
            let to = len.min(self.announced + WINDOW.max(self.size));
            (self.window)(self.announced..to);
            self.announced = to;
        }
        let end = self.end();
        let text = &self.text[self.at..end.unwrap_or(len)];
        self.at_end = end.is_none();
        self.at += text.len();
        let number = self.number;
        self.number += 1;
        let block = Block {
            number,
            is_last: self.at_end,
            left_out: 0,
        };
        Ok(Some((block, text)))
    }
}

/// A stream.
pub(super) struct Blocks<R> {
    input: R,
    size: usize,
    /// The begin of the next block's first line.
    rest: Vec<u8>,
    number: u64,
    at_end: bool,
}

/// One block, but for its text.
pub(super) struct Block {
    pub number: u64,
    pub is_last: bool,
    /// Bytes of overlong lines that are not in the text.
    pub left_out: u64,
}

impl<R: Read> Blocks<R> {
    pub fn new(input: R, size: usize) -> Self {
        Self {
            input,
            size: size.max(1),
            rest: Vec::new(),
            number: 0,
            at_end: false,
        }
    }

    fn fill_block(&mut self, text: &mut Vec<u8>) -> io::Result<Option<Block>> {
        if self.at_end {
            return Ok(None);
        }
        text.clear();
        text.append(&mut self.rest);
        self.fill(text, self.size)?;
        let mut left_out = 0;
        while !self.at_end {
            if let Some(end) = memrchr(b'\n', text) {
                self.rest.extend_from_slice(&text[end + 1..]);
                text.truncate(end + 1);
                break;
            }
            // One line is longer than the block: as much of it as shows that it is too long.
            if text.len() > LONGEST_LINE + 1 {
                left_out += (text.len() - LONGEST_LINE - 1) as u64;
                text.truncate(LONGEST_LINE + 1);
            }
            let begun = text.len();
            self.fill(text, self.size)?;
            if !self.at_end
                && let Some(end) = memchr(b'\n', &text[begun..])
            {
                let end = begun + end;
                self.rest.extend_from_slice(&text[end + 1..]);
                text.truncate(end + 1);
                break;
            }
        }
        let number = self.number;
        self.number += 1;
        Ok(Some(Block {
            number,
            is_last: self.at_end,
            left_out,
        }))
    }

    fn fill(&mut self, text: &mut Vec<u8>, more: usize) -> io::Result<()> {
        let wanted = more as u64;
        // Nothing is read behind an error.
        self.at_end = true;
        let got = self.input.by_ref().take(wanted).read_to_end(text)?;
        self.at_end = (got as u64) < wanted;
        Ok(())
    }
}

impl<R: Read> Source for Blocks<R> {
    fn next<'s>(&mut self, space: &'s mut Vec<u8>) -> io::Result<Option<(Block, &'s [u8])>>
    where
        Self: 's,
    {
        let block = self.fill_block(space)?;
        Ok(block.map(|block| (block, &space[..])))
    }
}
