//! What the text formats of profiles have in common: lines from a stream, and names and stacks
//! met again and again.

use crate::loss::{LossKind, Losses};
use crate::profile::{Frame, FrameId, FrameTable, NodeId, StackTree};
use memchr::{memchr, memrchr};
use rustc_hash::FxHashMap;
use std::io::{self, Read};

use super::function_graph::Names;

/// Bytes read at a time.
const CHUNK: usize = 1 << 18;
/// A line longer than this is none of a profile.
const LONGEST_LINE: usize = 16 << 20;

/// Hands each line of a stream to `visit`, without its newline. Memory is a chunk, or the longest
/// line; bytes of lines beyond [`LONGEST_LINE`] are counted as malformed records.
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

/// Frames by their spelling in the text, each read once.
#[derive(Default)]
pub(super) struct Spellings {
    texts: Names,
    frames: Vec<FrameId>,
    pub table: FrameTable,
}

impl Spellings {
    /// The frame that is spelled so; `read` makes it the first time.
    #[inline]
    pub fn frame(&mut self, text: &[u8], read: impl FnOnce(&[u8]) -> Frame) -> FrameId {
        match self.texts.find(text) {
            Some(id) => self.frames[id.index()],
            None => self.add(text, read),
        }
    }

    #[cold]
    fn add(&mut self, text: &[u8], read: impl FnOnce(&[u8]) -> Frame) -> FrameId {
        let frame = self.table.intern(read(text));
        let id = self.texts.intern(text);
        if id.index() == self.frames.len() {
            self.frames.push(frame);
        }
        frame
    }
}

/// Stacks, with the last one at hand: the next mostly begins like it.
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

/// Numbers by text, such as threads and events.
pub(super) struct Numbers<V> {
    numbers: FxHashMap<Box<[u8]>, u32>,
    pub values: Vec<V>,
    last: Option<(Box<[u8]>, u32)>,
}

impl<V> Default for Numbers<V> {
    fn default() -> Self {
        Self {
            numbers: FxHashMap::default(),
            values: Vec::new(),
            last: None,
        }
    }
}

impl<V> Numbers<V> {
    /// The number of what is spelled so; `read` makes it the first time.
    #[inline]
    pub fn of(&mut self, text: &[u8], read: impl FnOnce(&[u8]) -> V) -> u32 {
        match &self.last {
            Some((last, number)) if **last == *text => *number,
            _ => self.search(text, read),
        }
    }

    fn search(&mut self, text: &[u8], read: impl FnOnce(&[u8]) -> V) -> u32 {
        let number = match self.numbers.get(text) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
                self.values.push(read(text));
                self.numbers.insert(text.into(), number);
                number
            }
        };
        self.last = Some((text.into(), number));
        number
    }
}

/// Text of a file, whatever its bytes: what is no UTF-8 is replaced, control characters too.
pub(super) fn plain(text: &[u8]) -> Box<str> {
    let text = String::from_utf8_lossy(text);
    match text.contains(|c: char| c.is_control()) {
        true => text.replace(|c: char| c.is_control(), "\u{fffd}").into(),
        false => text.into_owned().into(),
    }
}
