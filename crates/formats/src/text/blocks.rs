//! A text cut into blocks of whole records: from a stream, or in place in memory.

use memchr::{memchr, memrchr};
use std::io::{self, Read};
use std::ops::Range;

/// How a text is cut.
pub(crate) trait Records {
    /// Where the last complete record of `text` ends; `text` starts with a record. The first
    /// `known` bytes were searched before without success.
    fn end(&self, text: &[u8], known: usize) -> Option<usize>;

    /// A record longer than this is left out, except for [`Self::kept`] of its bytes.
    fn longest(&self) -> usize;

    /// Bytes at the start of a record that is too long, from which its reader recognises it.
    fn kept(&self) -> usize;

    /// Where the left-out record ends, in a text that starts inside it.
    fn resume(&self, text: &[u8]) -> Option<usize>;

    /// How many bytes of a text in which the record does not end can be dropped.
    fn passed(&self, text: &[u8]) -> usize;
}

/// A source of blocks.
pub(crate) trait Source {
    /// The next block, in `space` if it has to be copied; `None` after the last.
    fn next<'s>(&mut self, space: &'s mut Vec<u8>) -> io::Result<Option<(Block, &'s [u8])>>
    where
        Self: 's;
}

/// A block's description apart from its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its index among all blocks.
    pub number: u64,
    /// Whether nothing follows.
    pub is_last: bool,
    /// Bytes of records too long, before or in it, that are left out of its text.
    pub left_out: u64,
}

/// Lines.
pub(crate) struct Lines {
    /// A longer line is kept only far enough to show that it is too long.
    pub longest: usize,
}

impl Records for Lines {
    #[inline]
    fn end(&self, text: &[u8], known: usize) -> Option<usize> {
        memrchr(b'\n', &text[known..]).map(|at| known + at + 1)
    }

    fn longest(&self) -> usize {
        self.longest
    }

    fn kept(&self) -> usize {
        self.longest.saturating_add(1)
    }

    fn resume(&self, text: &[u8]) -> Option<usize> {
        memchr(b'\n', text)
    }

    fn passed(&self, text: &[u8]) -> usize {
        text.len()
    }
}

/// Blocks of a text in memory, the same as those of a stream: where a text is damaged, a reader may
/// depend on where blocks end.
pub(crate) struct Memory<'t, C, W> {
    text: &'t [u8],
    records: C,
    size: usize,
    /// Where the next block starts.
    at: usize,
    /// The offset up to which a stream would have been read.
    read: usize,
    number: u64,
    at_end: bool,
    /// Called now and then with the bytes that come next; those before them are no longer needed,
    /// except the last [`WINDOW`], where other threads may still be reading.
    window: W,
    announced: usize,
}

/// Bytes that are announced at once.
pub(crate) const WINDOW: usize = 4 << 20;

impl<'t, C: Records, W: FnMut(Range<usize>)> Memory<'t, C, W> {
    pub fn new(text: &'t [u8], size: usize, records: C, window: W) -> Self {
        Self {
            text,
            records,
            size: size.max(1),
            at: 0,
            read: 0,
            number: 0,
            at_end: text.is_empty(),
            window,
            announced: 0,
        }
    }

    /// Advances by this many bytes.
    fn read(&mut self, bytes: usize) {
        self.read += bytes;
        let len = self.text.len();
        while self.read > self.announced && self.announced < len {
            let to = len.min(self.announced + WINDOW);
            (self.window)(self.announced..to);
            self.announced = to;
        }
    }

    /// Length of the next block, and whether it is only a record that is too long.
    fn next_block(&mut self) -> (usize, bool) {
        let rest = &self.text[self.at..];
        let mut more = self.size;
        loop {
            let known = self.read - self.at;
            self.read(more);
            let Some(read) = rest.get(..self.read - self.at) else {
                self.at_end = true;
                return (rest.len(), false);
            };
            if let Some(end) = self.records.end(read, known) {
                return (end, false);
            }
            more = read.len().max(self.size);
            if read.len() > self.records.longest() {
                if self.records.kept() == 0 {
                    return (self.too_long(rest), true);
                }
                // Nothing is copied, so the record may as well be kept whole.
                more = self.size;
            }
        }
    }

    /// Length of a record that is too long.
    fn too_long(&mut self, rest: &[u8]) -> usize {
        let end = self.records.resume(rest);
        self.at_end = end.is_none();
        let end = end.unwrap_or(rest.len());
        let beyond = (self.at + end).saturating_sub(self.read);
        self.read(beyond);
        end
    }
}

impl<C: Records, W: FnMut(Range<usize>)> Source for Memory<'_, C, W> {
    fn next<'s>(&mut self, _: &'s mut Vec<u8>) -> io::Result<Option<(Block, &'s [u8])>>
    where
        Self: 's,
    {
        if self.at_end {
            return Ok(None);
        }
        let start = self.at;
        let (bytes, is_too_long) = self.next_block();
        self.at += bytes;
        let block = Block {
            number: self.number,
            is_last: self.at_end,
            left_out: if is_too_long { bytes as u64 } else { 0 },
        };
        self.number += 1;
        let text = match is_too_long {
            true => &[],
            false => &self.text[start..self.at],
        };
        Ok(Some((block, text)))
    }
}

/// Blocks of a stream.
pub(crate) struct Stream<R, C> {
    input: R,
    records: C,
    size: usize,
    /// Read, but not part of the previous block: the start of the next one.
    rest: Vec<u8>,
    number: u64,
    at_end: bool,
}

impl<R: Read, C: Records> Stream<R, C> {
    pub fn new(input: R, size: usize, records: C) -> Self {
        Self {
            input,
            records,
            size: size.max(1),
            rest: Vec::new(),
            number: 0,
            at_end: false,
        }
    }

    /// Replaces `text` by the next block; `None` after the last.
    fn fill(&mut self, text: &mut Vec<u8>) -> io::Result<Option<Block>> {
        if self.at_end {
            return Ok(None);
        }
        text.clear();
        text.append(&mut self.rest);
        let (mut left_out, mut known) = (0, text.len());
        self.read(self.size, text)?;
        while !self.at_end {
            if let Some(end) = self.records.end(text, known) {
                self.rest.extend_from_slice(&text[end..]);
                text.truncate(end);
                break;
            }
            if text.len() > self.records.longest() {
                left_out += self.pass_over(text)?;
                known = 0;
            } else {
                // Twice as much each time, so that the search for the end stays linear.
                known = text.len();
                self.read(known.max(self.size), text)?;
            }
        }
        if self.number == 0 && self.at_end && left_out == 0 && text.is_empty() {
            return Ok(None);
        }
        let number = self.number;
        self.number += 1;
        Ok(Some(Block {
            number,
            is_last: self.at_end,
            left_out,
        }))
    }

    /// Leaves out a record that is too long except for its first bytes, reading on as far as
    /// necessary. Returns the number of bytes left out.
    fn pass_over(&mut self, text: &mut Vec<u8>) -> io::Result<u64> {
        let kept = self.records.kept().min(text.len());
        let mut left_out = 0;
        loop {
            let beyond = &text[kept..];
            let resumes = self.records.resume(beyond);
            let passed = match resumes {
                Some(at) => at,
                None if self.at_end || beyond.len() > self.records.longest() => beyond.len(),
                None => self.records.passed(beyond),
            };
            text.drain(kept..kept + passed);
            left_out += passed as u64;
            if resumes.is_some() || self.at_end {
                return Ok(left_out);
            }
            self.read(self.size, text)?;
        }
    }

    fn read(&mut self, bytes: usize, text: &mut Vec<u8>) -> io::Result<()> {
        let wanted = bytes as u64;
        // Nothing is read after an error.
        self.at_end = true;
        let got = self.input.by_ref().take(wanted).read_to_end(text)?;
        self.at_end = (got as u64) < wanted;
        Ok(())
    }
}

impl<R: Read, C: Records> Source for Stream<R, C> {
    fn next<'s>(&mut self, space: &'s mut Vec<u8>) -> io::Result<Option<(Block, &'s [u8])>>
    where
        Self: 's,
    {
        let block = self.fill(space)?;
        Ok(block.map(|block| (block, &space[..])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut source: impl Source) -> (Vec<Vec<u8>>, u64) {
        let (mut space, mut all, mut left_out) = (Vec::new(), Vec::new(), 0);
        let mut is_over = false;
        while let Some((block, text)) = source.next(&mut space).expect("memory is readable") {
            assert_eq!(block.number, all.len() as u64);
            assert!(!is_over, "one block is the last");
            is_over = block.is_last;
            all.push(text.to_vec());
            left_out += block.left_out;
        }
        assert!(is_over || all.is_empty());
        (all, left_out)
    }

    #[test]
    fn lines_are_whole_in_the_same_blocks_of_any_size() {
        let long = format!("a\n{}\nb\nc", "x".repeat(90));
        let texts = [
            "",
            "\n",
            "a",
            "one\ntwo\n",
            "one\ntwo\n\nthree is longer\nand",
            "a\n\n\n",
            &long,
        ];
        for text in texts.map(str::as_bytes) {
            for size in 1..text.len() + 2 {
                let lines = || Lines { longest: 1000 };
                let (stream, left_out) = all(Stream::new(text, size, lines()));
                assert_eq!((stream.concat().as_slice(), left_out), (text, 0));
                let end = stream.len().saturating_sub(1);
                assert!(stream[..end].iter().all(|block| block.ends_with(b"\n")));
                let memory = all(Memory::new(text, size, lines(), |_| ()));
                assert_eq!(memory, (stream, 0), "{size}");
            }
        }
    }

    #[test]
    fn of_a_line_that_is_too_long_as_much_is_kept_as_shows_it() {
        for end in ["", "\n", "\nlast\n"] {
            let text = format!("first\n{}{end}", "x".repeat(100));
            for size in 1..120 {
                let lines = || Lines { longest: 10 };
                let (memory, _) = all(Memory::new(text.as_bytes(), size, lines(), |_| ()));
                assert_eq!(memory.concat(), text.as_bytes());
                let (blocks, left_out) = all(Stream::new(text.as_bytes(), size, lines()));
                assert_eq!(blocks.len(), memory.len(), "{size}");
                assert!(
                    blocks
                        .iter()
                        .zip(&memory)
                        .all(|(some, all)| some.len() <= all.len())
                );
                let read = blocks.concat();
                assert_eq!(read.len() as u64 + left_out, text.len() as u64);
                let mut lines = read.split(|&byte| byte == b'\n');
                assert_eq!(lines.next(), Some(&b"first"[..]));
                let long = lines.next().expect("it stands in its place");
                assert!(long.len() > 10, "{size}");
            }
        }
    }

    #[test]
    fn each_byte_in_memory_is_announced_once_before_it_is_read() {
        let text = b"some line\n".repeat(3 * WINDOW / 10);
        let mut announced = Vec::new();
        let lines = Lines {
            longest: usize::MAX,
        };
        let (blocks, _) = all(Memory::new(&text, 1 << 20, lines, |next| {
            announced.push(next)
        }));
        assert_eq!(blocks.concat(), text);
        assert_eq!(announced.len(), 3);
        let mut at = 0;
        for next in announced {
            assert_eq!(next.start, at);
            at = next.end;
        }
        assert_eq!(at, text.len());
    }
}
