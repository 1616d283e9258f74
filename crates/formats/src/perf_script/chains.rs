//! Call chains as blocks of text, each parsed once.
//!
//! Addresses of callers repeat from sample to sample; that of the innermost frame mostly does not.
//! So the text after the first line is looked up as a whole. If it is new, each of its lines is
//! looked up without its address, since another process has the same functions at other addresses;
//! only lines that are new themselves are parsed.
//!
//! With many stacks, each look-up waits for memory. So samples are looked up in batches, one kind
//! of look-up for all of them before the next: the processor then waits for many at a time.

use super::blocks::split_line;
use super::frame;
use crate::profile_text::{Known, Spellings, Stacks, TextKey};
use memchr::memchr_iter;
use pagewise_model::profile::{Frame, FrameId, NodeId, StackTree};

/// Frames and stacks, and the texts from which they came.
pub(super) struct Chains {
    spellings: Spellings,
    /// Frames by their lines without addresses: places of calls, of which there are few.
    lines: Known<FrameId>,
    pub stacks: Stacks,
    /// Callers by their lines, and by the bytes of their frames' numbers.
    callers: Known<NodeId>,
    functions: Known<NodeId>,
    /// Stacks that were extended recently: callers, the called function, and both together.
    extended: Box<[(NodeId, FrameId, NodeId)]>,
    chain: Vec<FrameId>,
    numbers: Vec<u8>,
}

/// How many extended stacks are remembered, in 192 KiB.
const EXTENDED: usize = 1 << 14;

/// The text of a call chain, and what was known about it when it was looked up.
#[derive(Clone, Copy)]
pub(super) struct Chain<'t> {
    pub text: &'t [u8],
    innermost: &'t [u8],
    innermost_key: TextKey,
    callers: &'t [u8],
    callers_key: TextKey,
    known_innermost: Option<FrameId>,
    known_callers: Option<NodeId>,
    known: Option<NodeId>,
}

impl Default for Chains {
    fn default() -> Self {
        Self {
            spellings: Spellings::default(),
            lines: Known::default(),
            stacks: Stacks::default(),
            callers: Known::default(),
            functions: Known::default(),
            extended: vec![Default::default(); EXTENDED].into(),
            chain: Vec::new(),
            numbers: Vec::new(),
        }
    }
}

impl Chains {
    /// A chain's lines, innermost first.
    #[inline]
    pub fn chain<'t>(&self, text: &'t [u8]) -> Chain<'t> {
        let (first, callers) = split_line(text);
        let innermost = frame::text(first);
        let (function, object) = frame::around_offset(innermost);
        Chain {
            text,
            innermost,
            innermost_key: self.spellings.key_of_parts(function, object),
            callers,
            callers_key: self.callers.key(callers),
            known_innermost: None,
            known_callers: None,
            known: None,
        }
    }

    /// Looks up what is known about these chains.
    pub fn look_up(&self, chains: &mut [Chain<'_>]) {
        for chain in &mut *chains {
            chain.known_callers = match chain.callers.is_empty() {
                true => Some(NodeId::ROOT),
                false => self.callers.find(chain.callers_key),
            };
        }
        for chain in &mut *chains {
            chain.known_innermost = self.spellings.find(chain.innermost_key);
        }
        for chain in chains {
            if let (Some(callers), Some(called)) = (chain.known_callers, chain.known_innermost) {
                chain.known = self.known_extended(callers, called);
            }
        }
    }

    /// The stack of a chain that was looked up; `None` if some of its lines are not lines of
    /// frames.
    #[inline]
    pub fn stack(&mut self, chain: &Chain<'_>) -> Option<NodeId> {
        if chain.known.is_some() {
            return chain.known;
        }
        let innermost = match chain.known_innermost {
            Some(frame) => frame,
            None => self.frame_of_key(chain.innermost, chain.innermost_key),
        };
        let callers = match chain.known_callers {
            Some(node) => node,
            None => self.callers(chain)?,
        };
        Some(self.extended(callers, innermost))
    }

    fn known_extended(&self, callers: NodeId, called: FrameId) -> Option<NodeId> {
        let (of, by, both) = self.extended[place_of(callers, called)];
        // The root is not an extended stack: it marks an empty entry.
        match (of, by) == (callers, called) && both != NodeId::ROOT {
            true => Some(both),
            false => self.stacks.tree.known_child(callers, called),
        }
    }

    /// The stack of these callers and the function that they called.
    fn extended(&mut self, callers: NodeId, called: FrameId) -> NodeId {
        let both = self.stacks.tree.child(callers, called);
        self.extended[place_of(callers, called)] = (callers, called, both);
        both
    }

    /// Callers that were not known when they were looked up.
    #[cold]
    fn callers(&mut self, chain: &Chain<'_>) -> Option<NodeId> {
        if let Some(node) = self.callers.find(chain.callers_key) {
            return Some(node);
        }
        self.chain.clear();
        self.numbers.clear();
        for line in lines(chain.callers) {
            if line.first() != Some(&b'\t') {
                return None;
            }
            let frame = self.frame(line);
            self.chain.push(frame);
            self.numbers.extend_from_slice(&frame.0.to_le_bytes());
        }
        let key = self.functions.key(&self.numbers);
        let node = match self.functions.find(key) {
            Some(node) => node,
            None => {
                let node = self.stacks.intern(self.chain.iter().rev().copied());
                self.functions.add(key, node);
                node
            }
        };
        self.callers.add(chain.callers_key, node);
        Some(node)
    }

    /// The frame of a line.
    #[inline]
    pub fn frame(&mut self, line: &[u8]) -> FrameId {
        let text = frame::text(line);
        let key = self.lines.key(text);
        match self.lines.find(key) {
            Some(frame) => frame,
            None => self.new_line(text, key),
        }
    }

    #[cold]
    fn new_line(&mut self, text: &[u8], key: TextKey) -> FrameId {
        let (function, object) = frame::around_offset(text);
        let spelling = self.spellings.key_of_parts(function, object);
        let frame = self.frame_of_key(text, spelling);
        self.lines.add(key, frame);
        frame
    }

    /// The frame of an inlined call, as a line behind it says.
    pub fn inlined(&mut self, frame: FrameId) -> FrameId {
        self.spellings.table.inlined(frame)
    }

    fn frame_of_key(&mut self, text: &[u8], key: TextKey) -> FrameId {
        self.spellings.frame_of_key(key, || frame::read(text))
    }

    /// The frames and stacks that were found.
    pub fn into_parts(self) -> (Vec<Frame>, StackTree) {
        (self.spellings.table.into_frames(), self.stacks.tree)
    }
}

/// Where an extended stack is remembered.
#[inline]
fn place_of(callers: NodeId, called: FrameId) -> usize {
    let mixed = callers.0.wrapping_mul(0x9e37_79b1) ^ called.0.wrapping_mul(0x85eb_ca6b);
    (mixed >> 16) as usize % EXTENDED
}

/// The lines of a text, without anything after its last newline.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let ends = memchr_iter(b'\n', text).chain([text.len()]);
    let mut start = 0;
    ends.map(move |end| {
        let line = &text[start..end];
        start = end + 1;
        line
    })
}
