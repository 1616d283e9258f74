//! Blocks of whole lines from a stream.

use super::super::parser::LONGEST_LINE;
use memchr::{memchr, memrchr};
use std::io::{self, Read};

/// The input, cut behind newlines.
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

    /// Fills `text` with the next lines; `None` behind the last.
    pub fn next(&mut self, text: &mut Vec<u8>) -> io::Result<Option<Block>> {
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
