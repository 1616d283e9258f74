//! What the text formats of profiles have in common: lines from a stream, and names and stacks that
//! recur.

use memchr::{memchr, memrchr};
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::profile::{Frame, FrameId, FrameTable, NodeId, StackTree};
use std::io::{self, Read};

pub(super) use pagewise_model::known::{Known, TextKey};

/// Bytes read at a time.
const CHUNK: usize = 1 << 18;
/// A line longer than this does not belong to a profile.
const LONGEST_LINE: usize = 16 << 20;

/// Hands each line of a stream to `visit`, without its newline. Memory use is a chunk, or the
/// longest line; bytes of lines beyond [`LONGEST_LINE`] are counted as malformed records.
pub(super) fn lines(
    mut input: impl Read,
    losses: &mut Losses,
    mut visit: impl FnMut(&[u8], &mut Losses),
) -> io::Result<()> {
    let mut text = Vec::new();
    let mut skipping = false;
    loop {
        let kept = text.len();
        let got = input.by_ref().take(CHUNK as u64).read_to_end(&mut text)?;
        if got == 0 {
            break;
        }
        let mut rest = &text[..];
        if skipping {
            match memchr(b'\n', &text[kept..]) {
                Some(end) => rest = &text[kept + end + 1..],
                None => {
                    text.clear();
                    continue;
                }
            }
            skipping = false;
        }
        let end = memrchr(b'\n', rest).map_or(0, |end| end + 1);
        let (whole, partial) = rest.split_at(end);
        let mut whole = whole;
        while let Some(end) = memchr(b'\n', whole) {
            visit(&whole[..end], losses);
            whole = &whole[end + 1..];
        }
        let left = partial.len();
        let start = text.len() - left;
        text.drain(..start);
        if left > LONGEST_LINE {
            losses.add(LossKind::MalformedRecord, 1);
            text.clear();
            skipping = true;
        }
    }
    if !text.is_empty() {
        visit(&text, losses);
    }
    Ok(())
}

/// Frames by their spelling in the text, each parsed once.
#[derive(Default)]
pub(super) struct Spellings {
    known: Known<FrameId>,
    pub table: FrameTable,
}

impl Spellings {
    /// The frame with this spelling; `read` makes it the first time.
    #[inline]
    pub fn frame(&mut self, text: &[u8], read: impl FnOnce(&[u8]) -> Frame) -> FrameId {
        let key = self.known.key(text);
        self.frame_of_key(key, || read(text))
    }

    /// The key of a spelling in two parts.
    #[inline]
    pub fn key_of_parts(&self, first: &[u8], second: &[u8]) -> TextKey {
        self.known.key_of_parts(first, second)
    }

    /// The frame of this key, if it is known.
    #[inline]
    pub fn find(&self, key: TextKey) -> Option<FrameId> {
        self.known.find(key)
    }

    /// The frame of this key; `read` makes it the first time.
    #[inline]
    pub fn frame_of_key(&mut self, key: TextKey, read: impl FnOnce() -> Frame) -> FrameId {
        match self.known.find(key) {
            Some(frame) => frame,
            None => {
                let frame = self.table.intern(read());
                self.known.add(key, frame);
                frame
            }
        }
    }
}

/// Stacks, with the last one cached: the next usually begins like it.
#[derive(Default)]
pub(super) struct Stacks {
    pub tree: StackTree,
    last: Vec<(FrameId, NodeId)>,
}

impl Stacks {
    /// The stack of these frames, outermost first.
    pub fn intern(&mut self, outermost_first: impl Iterator<Item = FrameId>) -> NodeId {
        let mut node = NodeId::ROOT;
        for (depth, frame) in outermost_first.enumerate() {
            match self.last.get(depth) {
                Some(&(known, at)) if known == frame => node = at,
                _ => {
                    node = self.tree.child(node, frame);
                    self.last.truncate(depth);
                    self.last.push((frame, node));
                }
            }
        }
        node
    }
}

/// Text of a file with arbitrary bytes: invalid UTF-8 and control characters are replaced.
pub(super) fn plain(text: &[u8]) -> Box<str> {
    // Almost all texts are ASCII, whose bytes are tested many at a time.
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte);
    if text.iter().fold(true, |all, &byte| all & is_plain(byte))
        && let Ok(text) = std::str::from_utf8(text)
    {
        return text.into();
    }
    let text = String::from_utf8_lossy(text);
    match text.contains(|c: char| c.is_control()) {
        true => text.replace(|c: char| c.is_control(), "\u{fffd}").into(),
        false => text.into_owned().into(),
    }
}
