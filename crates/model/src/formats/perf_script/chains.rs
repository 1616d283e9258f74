//! Call chains as blocks of text, each read once.
//!
//! Addresses of callers repeat from sample to sample, that of the innermost frame mostly does not.
//! So the text behind the first line is looked up as a whole, and only lines of a text that is
//! new are read one by one.

use super::blocks::split_line;
use super::frame;
use crate::formats::profile_text::{Known, Spellings, Stacks, TextKey};
use crate::profile::{Frame, FrameId, NodeId, StackTree};

/// Frames and stacks, and the texts that led to them.
pub(super) struct Chains {
    spellings: Spellings,
    pub stacks: Stacks,
    callers: Known<NodeId>,
    /// Stacks that were extended lately: callers, whom they called, both.
    extended: Box<[(NodeId, FrameId, NodeId)]>,
    chain: Vec<FrameId>,
}

/// How many extended stacks are remembered, in 192 KiB.
const EXTENDED: usize = 1 << 14;

impl Default for Chains {
    fn default() -> Self {
        Self {
            spellings: Spellings::default(),
            stacks: Stacks::default(),
            callers: Known::default(),
            extended: vec![Default::default(); EXTENDED].into(),
            chain: Vec::new(),
        }
    }
}

impl Chains {
    /// The stack of a chain's lines, innermost first; `None` if not all are lines of frames.
    #[inline]
    pub fn stack(&mut self, text: &[u8]) -> Option<NodeId> {
        let (first, callers) = split_line(text);
        let innermost = self.frame(first);
        if callers.is_empty() {
            return Some(self.extended(NodeId::ROOT, innermost));
        }
        let key = self.callers.key(callers);
        let node = match self.callers.find(key) {
            Some(node) => node,
            None => self.read(callers, key)?,
        };
        Some(self.extended(node, innermost))
    }

    /// The stack of these callers and the function that they called.
    #[inline]
    fn extended(&mut self, callers: NodeId, called: FrameId) -> NodeId {
        let mixed = callers.0.wrapping_mul(0x9e37_79b1) ^ called.0.wrapping_mul(0x85eb_ca6b);
        let place = &mut self.extended[(mixed >> 16) as usize % EXTENDED];
        let &mut (of, by, both) = place;
        // The root is no extended stack: where it stands, nothing was remembered.
        if (of, by) == (callers, called) && both != NodeId::ROOT {
            return both;
        }
        let both = self.stacks.tree.child(callers, called);
        *place = (callers, called, both);
        both
    }

    #[cold]
    fn read(&mut self, callers: &[u8], key: TextKey) -> Option<NodeId> {
        self.chain.clear();
        let mut rest = callers;
        while !rest.is_empty() {
            let (line, after) = split_line(rest);
            if line.first() != Some(&b'\t') {
                return None;
            }
            let frame = self.frame(line);
            self.chain.push(frame);
            rest = after;
        }
        let node = self.stacks.intern(self.chain.iter().rev().copied());
        self.callers.add(key, node);
        Some(node)
    }

    /// The frame of a line.
    #[inline]
    pub fn frame(&mut self, line: &[u8]) -> FrameId {
        let text = frame::text(line);
        let (function, object) = frame::around_offset(text);
        self.spellings
            .frame_of_parts(function, object, || frame::read(text))
    }

    /// The frames and stacks that were met.
    pub fn into_parts(self) -> (Vec<Frame>, StackTree) {
        (self.spellings.table.into_frames(), self.stacks.tree)
    }
}
