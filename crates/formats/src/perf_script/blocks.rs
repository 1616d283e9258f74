//! Samples as records of a text, and the lines in them.

use super::header;
use crate::text::{Memory, Records, Stream, WINDOW};
use memchr::{memchr, memmem, memrchr};
use std::io::Read;
use std::ops::Range;

/// Text longer than this is not a sample.
const LONGEST_SAMPLE: usize = 64 << 20;

/// Texts are cut between samples.
pub(super) struct Samples {
    longest: usize,
}

impl Records for Samples {
    #[inline]
    fn end(&self, text: &[u8], known: usize) -> Option<usize> {
        cut(text, known)
    }

    fn longest(&self) -> usize {
        self.longest
    }

    fn kept(&self) -> usize {
        0
    }

    fn resume(&self, text: &[u8]) -> Option<usize> {
        next_sample(text)
    }

    fn passed(&self, text: &[u8]) -> usize {
        // The last text read may be the start of a first line.
        memrchr(b'\n', text).unwrap_or(0)
    }
}

/// Blocks of a stream.
pub(super) fn stream<R: Read>(input: R, size: usize) -> Stream<R, Samples> {
    let longest = LONGEST_SAMPLE;
    Stream::new(input, size, Samples { longest })
}

/// Blocks of a text in memory. `release` is called now and then with the number of bytes from the
/// start that are no longer needed.
pub(super) fn in_memory(
    text: &[u8],
    size: usize,
    mut release: impl FnMut(usize),
) -> Memory<'_, Samples, impl FnMut(Range<usize>)> {
    let longest = LONGEST_SAMPLE;
    Memory::new(text, size, Samples { longest }, move |next| {
        if next.start > WINDOW {
            release(next.start - WINDOW);
        }
    })
}

/// Where the first sample starts whose preceding line is in the text.
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

/// Where the last sample of `text` starts, so that the text before it can be read separately: after
/// a blank line that no frame follows, else at a first line. The first `known` bytes contain no
/// such line.
fn cut(text: &[u8], known: usize) -> Option<usize> {
    let from = known.saturating_sub(2).min(text.len());
    let ends = memmem::rfind_iter(&text[from..], b"\n\n").map(|at| from + at + 2);
    for end in ends {
        if text.get(end).is_some_and(|&next| next != b'\t') {
            return Some(end);
        }
    }
    // The last line may be incomplete.
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
    use crate::text::Source;

    fn all(mut source: impl Source) -> (Vec<String>, usize) {
        let (mut buffer, mut all, mut left_out) = (Vec::new(), Vec::new(), 0);
        while let Some((at, text)) = source.next(&mut buffer).expect("memory is readable") {
            assert_eq!(at.number, all.len() as u64);
            all.push(String::from_utf8(text.to_vec()).expect("the text is ASCII"));
            left_out += usize::from(at.left_out > 0);
        }
        (all, left_out)
    }

    #[test]
    fn blocks_end_where_samples_do() {
        let text = "a 1 1.000000: x:\n\tf\n\nb 1 2.000000: x:\n\tf\nc 1 3.000000: x:\n\tg\n\t";
        for size in 1..=text.len() + 1 {
            let in_memory = in_memory(text.as_bytes(), size, |_| ());
            for (blocks, left_out) in [all(stream(text.as_bytes(), size)), all(in_memory)] {
                assert_eq!((blocks.concat().as_str(), left_out), (text, 0));
                for block in &blocks[1..] {
                    assert!(block.starts_with(['b', 'c']), "{size}: {block:?}");
                }
            }
        }
        assert_eq!(all(stream(&b""[..], 9)), (Vec::new(), 0));
        assert_eq!(all(in_memory(b"", 9, |_| ())), (Vec::new(), 0));
    }

    #[test]
    fn a_sample_without_an_end_is_left_out() {
        let endless = format!("a 1 1.000000: x:\n{}", "\tf\n".repeat(100));
        let rest = "b 1 2.000000: x:\n\tf\n\n";
        for between in ["\n", ""] {
            for size in 1..40 {
                let text = [&endless, between, rest].concat();
                let blocks = Stream::new(text.as_bytes(), size, Samples { longest: 60 });
                let (all, left_out) = all(blocks);
                assert_eq!((all.concat().as_str(), left_out), (rest, 1), "{size}");
            }
        }
    }
}
