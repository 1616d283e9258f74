//! Lines of a piece that depend on what came before it.

use super::super::line::{Call, Content, Line, Tail};
use super::super::names::{Absorbed, NameId};
use std::ops::Range;

/// What has to be replayed, in the order of the lines.
pub(super) enum Entry {
    /// The line itself.
    Line(Stored),
    /// The first call of a task that was read without what came before.
    First(Stored),
    /// A task ran on the CPU whose lines have been read.
    Ran(u32),
}

/// A line whose text is stored elsewhere.
pub(super) struct Stored {
    /// The line's number in the piece.
    pub at: u32,
    line: Line<'static>,
    text: Range<usize>,
}

/// Entries with their texts.
#[derive(Default)]
pub(super) struct Waiting {
    pub entries: Vec<Entry>,
    pub texts: Vec<u8>,
}

impl Waiting {
    pub fn clear(&mut self) {
        self.entries.clear();
        self.texts.clear();
    }

    pub fn store(&mut self, at: u32, line: &Line<'_>) -> Stored {
        let (content, text) = match line.content {
            Content::Leaf(call) => (Content::Leaf(Call { args: &[], ..call }), call.args),
            Content::Open(call) => (Content::Open(Call { args: &[], ..call }), call.args),
            Content::Event(text) => (Content::Event(&[]), text),
            Content::Note(text) => (Content::Note(&[]), text),
            Content::Close(tail) => (Content::Close(tail), &[][..]),
            Content::Switch { cpu, from, to } => (Content::Switch { cpu, from, to }, &[][..]),
            Content::Lost { cpu, events } => (Content::Lost { cpu, events }, &[][..]),
            Content::IrqEnter => (Content::IrqEnter, &[][..]),
            Content::IrqExit
            | Content::BufferStarted { .. }
            | Content::Overruns(_)
            | Content::Decoration
            | Content::Unknown => (Content::Decoration, &[][..]),
        };
        let start = self.texts.len();
        self.texts.extend_from_slice(text);
        Stored {
            at,
            line: Line {
                content,
                time: line.time,
                cpu: line.cpu,
                pid: line.pid,
                depth: line.depth,
                span: line.span,
            },
            text: start..self.texts.len(),
        }
    }
}

impl Stored {
    /// The line as it was, with the names' ids in the whole text.
    pub fn line<'a>(&self, texts: &'a [u8], ids: &Absorbed) -> Line<'a> {
        let text = texts.get(self.text.clone()).unwrap_or_default();
        let whole = |call: Call<'_>| Call {
            name: NameId(ids.id(call.name.0)),
            args: text,
            returned: call.returned,
        };
        let content = match self.line.content {
            Content::Leaf(call) => Content::Leaf(whole(call)),
            Content::Open(call) => Content::Open(whole(call)),
            Content::Event(_) => Content::Event(text),
            Content::Note(_) => Content::Note(text),
            Content::Close(tail) => Content::Close(renamed(tail, ids)),
            other => other,
        };
        Line {
            content,
            ..self.line
        }
    }
}

/// The end of a call with the name's id in the whole text.
pub(super) fn renamed(tail: Tail, ids: &Absorbed) -> Tail {
    Tail {
        name: tail.name.map(|name| NameId(ids.id(name.0))),
        ..tail
    }
}
