//! A text cut into blocks of whole samples: as it comes in a stream, or where it lies in memory.

use super::header;
use memchr::{memchr, memmem, memrchr};
use std::io::{self, Read};

/// Bytes that are read at a time. Blocks that stay in the processor's cache are read faster.
pub const BLOCK: usize = 256 << 10;
/// A sample longer than this is none.
const LONGEST_SAMPLE: usize = 64 << 20;

/// Where blocks come from.
pub(super) trait Source {
    /// The next block, which may have to be put into `buffer`; `None` at the end.
    fn next<'b>(&mut self, buffer: &'b mut Vec<u8>) -> io::Result<Option<(Block, &'b [u8])>>
    where
        Self: 'b;
}

/// Blocks of a text in memory.
pub(super) struct InMemory<'t, F> {
    text: &'t [u8],
    at: usize,
    size: usize,
    next: usize,
    /// Told now and then how much will not be needed any more.
    release: F,
    released: usize,
}

/// Bytes of a mapped file that may count as memory in use.
const IN_USE: usize = 8 << 20;

impl<'t, F: FnMut(usize)> InMemory<'t, F> {
    pub fn new(text: &'t [u8], size: usize, release: F) -> Self {
        Self {
            text,
            at: 0,
            size: size.max(1),
            next: 0,
            release,
            released: 0,
        }
    }
}

impl<F: FnMut(usize)> Source for InMemory<'_, F> {
    fn next<'b>(&mut self, _: &'b mut Vec<u8>) -> io::Result<Option<(Block, &'b [u8])>>
    where
        Self: 'b,
    {
        if self.at - self.released > IN_USE {
            self.released = self.at;
            // Other threads may still be at the blocks before.
            (self.release)(self.at - IN_USE / 2);
        }
        let (rest, mut left_out, mut size) = (&self.text[self.at..], false, self.size);
        if rest.is_empty() {
            return Ok(None);
        }
        let end = loop {
            if size >= rest.len() {
                break rest.len();
            }
            match cut(&rest[..size], 0) {
                Some(end) => break end,
                None if size > LONGEST_SAMPLE => {
                    left_out = true;
                    break next_sample(rest).unwrap_or(rest.len());
                }
                None => size *= 2,
            }
        };
        self.at += end;
        let number = self.next;
        self.next += 1;
        let text = if left_out { &[] } else { &rest[..end] };
        Ok(Some((Block { number, left_out }, text)))
    }
}

/// Blocks of a stream.
pub(super) struct Blocks<R> {
    input: R,
    size: usize,
    /// Read, but not of the block before: the beginning of the next one.
    begun: Vec<u8>,
    /// A sample longer than this is left out.
    longest: usize,
    next: usize,
}

/// What a block is beside its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Its place among all.
    pub number: usize,
    /// Whether something too long was left out before it.
    pub left_out: bool,
}

impl<R: Read> Blocks<R> {
    pub fn new(input: R, size: usize) -> Self {
        Self {
            input,
            size: size.max(1),
            begun: Vec::new(),
            longest: LONGEST_SAMPLE,
            next: 0,
        }
    }

    /// Replaces `text` by the next block; `None` at the end.
    fn fill(&mut self, text: &mut Vec<u8>) -> io::Result<Option<Block>> {
        text.clear();
        text.append(&mut self.begun);
        let (mut left_out, mut want) = (false, self.size);
        loop {
            let known = text.len();
            let got = self.read(want, text)?;
            let end = match cut(text, known) {
                _ if got == 0 => text.len(),
                Some(end) => end,
                None if text.len() > self.longest => {
                    left_out = true;
                    self.skip(text)?;
                    want = self.size;
                    continue;
                }
                // Twice as much each time: looking for the cut stays linear.
                None => {
                    want = text.len().max(self.size);
                    continue;
                }
            };
            if end == 0 && !left_out {
                return Ok(None);
            }
            self.begun.extend_from_slice(&text[end..]);
            text.truncate(end);
            let number = self.next;
            self.next += 1;
            return Ok(Some(Block { number, left_out }));
        }
    }

    fn read(&mut self, bytes: usize, text: &mut Vec<u8>) -> io::Result<usize> {
        let mut part = (&mut self.input).take(bytes as u64);
        part.read_to_end(text)
    }

    /// Leaves out what comes before the next sample, reading on as far as it takes.
    fn skip(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        loop {
            // What was read last may be the beginning of a first line.
            let partial = memrchr(b'\n', text).unwrap_or(0);
            text.drain(..partial);
            if self.read(self.size, text)? == 0 {
                text.clear();
                return Ok(());
            }
            if let Some(start) = next_sample(text) {
                text.drain(..start);
                return Ok(());
            }
            if text.len() > self.longest {
                text.clear();
            }
        }
    }
}

impl<R: Read> Source for Blocks<R> {
    fn next<'b>(&mut self, buffer: &'b mut Vec<u8>) -> io::Result<Option<(Block, &'b [u8])>>
    where
        Self: 'b,
    {
        let block = self.fill(buffer)?;
        Ok(block.map(|block| (block, buffer.as_slice())))
    }
}

/// Where the first sample begins, of which the line before is there.
fn next_sample(text: &[u8]) -> Option<usize> {
    let mut start = memchr(b'\n', text)? + 1;
    loop {
        let line = &text[start..start + memchr(b'\n', &text[start..])?];
        if line.is_empty() {
            return Some(start + 1);
        }
        if line[0] != b'\t' && header::parse(line).is_some() {
            return Some(start);
        }
        start += line.len() + 1;
    }
}

/// Where the last sample of `text` begins, so that what is before can be read alone: behind a
/// blank line, else at a first line. The first `known` bytes hold no blank line.
fn cut(text: &[u8], known: usize) -> Option<usize> {
    let from = known.saturating_sub(1).min(text.len());
    if let Some(at) = memmem::rfind(&text[from..], b"\n\n") {
        return Some(from + at + 2);
    }
    // The last line may not be whole.
    let mut end = memrchr(b'\n', text)?;
    loop {
        let start = memrchr(b'\n', &text[..end])? + 1;
        let line = &text[start..end];
        if line.first() != Some(&b'\t') && header::parse(line).is_some() {
            return Some(start);
        }
        end = start - 1;
    }
}

/// The text up to the first blank line, and what follows that line.
#[inline]
pub(super) fn split_at_blank<'t>(
    blank: &memmem::Finder<'_>,
    text: &'t [u8],
) -> (&'t [u8], &'t [u8]) {
    match blank.find(text) {
        Some(at) => (&text[..at], &text[at + 2..]),
        None => (text.strip_suffix(b"\n").unwrap_or(text), &[]),
    }
}

/// The first line without its newline, and what follows.
#[inline]
pub(super) fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b'\n', text) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut source: impl Source) -> (Vec<String>, usize) {
        let (mut buffer, mut all, mut left_out) = (Vec::new(), Vec::new(), 0);
        while let Some((at, text)) = source.next(&mut buffer).expect("memory is readable") {
            assert_eq!(at.number, all.len());
            all.push(String::from_utf8(text.to_vec()).expect("the text is ASCII"));
            left_out += usize::from(at.left_out);
        }
        (all, left_out)
    }

    #[test]
    fn blocks_end_where_samples_do() {
        let text = "a 1 1.000000: x:\n\tf\n\nb 1 2.000000: x:\n\tf\nc 1 3.000000: x:\n\tg\n\t";
        for size in 1..=text.len() + 1 {
            let in_memory = InMemory::new(text.as_bytes(), size, |_| ());
            for (blocks, left_out) in [all(Blocks::new(text.as_bytes(), size)), all(in_memory)] {
                assert_eq!((blocks.concat().as_str(), left_out), (text, 0));
                for block in &blocks[1..] {
                    assert!(block.starts_with(['b', 'c']), "{size}: {block:?}");
                }
            }
        }
        assert_eq!(all(Blocks::new(&b""[..], 9)), (Vec::new(), 0));
        assert_eq!(all(InMemory::new(b"", 9, |_| ())), (Vec::new(), 0));
    }

    #[test]
    fn a_sample_without_an_end_is_left_out() {
        let endless = format!("a 1 1.000000: x:\n{}", "\tf\n".repeat(100));
        let rest = "b 1 2.000000: x:\n\tf\n\n";
        for between in ["\n", ""] {
            for size in 1..40 {
                let text = [&endless, between, rest].concat();
                let mut blocks = Blocks::new(text.as_bytes(), size);
                blocks.longest = 60;
                let (all, left_out) = all(blocks);
                assert_eq!((all.concat().as_str(), left_out), (rest, 1), "{size}");
            }
        }
    }
}
