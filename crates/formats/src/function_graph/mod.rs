//! The text of the function_graph tracer, kernels 3.x to 6.18 and later, and of
//! `trace-cmd report`.
//!
//! [`Parser`] turns bytes into [`Line`]s, [`Builder`] turns lines into complete [`CallTree`]s.
//! Both stream: memory is one tree per task with an open call. [`read`] joins them, [`read_on`]
//! does so on several cores.
//!
//! Deliberately absent: regular expressions, text decoding and allocation per line.

mod builder;
mod call;
mod columns;
mod interrupts;
mod line;
mod marks;
mod names;
mod number;
mod order;
mod parallel;
mod parser;
mod scheduling;
mod settling;
mod switch;
mod task;
mod tree;

pub use builder::{Builder, LARGEST_TREE, Sink};
pub use columns::Header;
pub use interrupts::is_interrupt;
pub use line::{Call, Content, Line, Span, Tail};
pub use names::{NameId, Names, base_name};
pub use parallel::{Cores, read_memory_on, read_on};
pub use parser::{Counts, Parser};
pub(crate) use settling::Settling;
pub use tree::{CallTree, Detail, Node, OffCpu, Wait};

use pagewise_model::loss::Losses;
use std::io::{self, Read};

/// The contents of a trace apart from its trees.
#[derive(Default)]
pub struct Summary {
    /// The functions found.
    pub names: Names,
    /// What was read and what could not be.
    pub counts: Counts,
    /// Calls left out, by cause.
    pub incomplete: Losses,
}

/// Reads a whole trace; complete calls go to `sink` in the order in which they end.
///
/// # Errors
/// When reading fails. Malformed text is not an error; it is counted.
pub fn read(input: impl Read, sink: &mut impl Sink) -> io::Result<Summary> {
    parallel::read_stream(input, sink)
}

/// Reads a whole trace from memory, without copying it; see [`read`].
pub fn read_bytes(text: &[u8], sink: &mut impl Sink) -> Summary {
    let mut parser = Parser::new();
    let mut builder = Builder::new();
    let mut sink = Settling::new(sink);
    parser.feed(text, |line, names| builder.line(line, names, &mut sink));
    parser.finish(|line, names| builder.line(line, names, &mut sink));
    sink.finish(parser.names());
    summary(parser, builder)
}

fn summary(parser: Parser, mut builder: Builder) -> Summary {
    builder.finish();
    Summary {
        counts: parser.counts(),
        incomplete: builder.incomplete().clone(),
        names: parser.into_names(),
    }
}

/// Whether the beginning of a file looks like this text: its first lines contain calls and hardly
/// anything unknown.
#[must_use]
pub fn looks_like(head: &[u8]) -> bool {
    let mut calls = 0_usize;
    let mut unknown = 0_usize;
    Parser::new().feed(head, |line, _| match line.content {
        Content::Leaf(_) | Content::Open(_) | Content::Close(_) => calls += 1,
        Content::Unknown => unknown += 1,
        _ => {}
    });
    let named = memchr::memmem::find(head, b"# tracer: function_graph").is_some();
    named || calls > 0 && unknown * 4 <= calls
}

/// Whether the beginning of a file looks like a trace of events without calls, as the tracer `nop`
/// writes it: there is nothing about faults in it, but it can be said what there is.
#[must_use]
pub fn looks_like_events(head: &[u8]) -> bool {
    let mut events = 0_usize;
    let mut unknown = 0_usize;
    Parser::new().feed(head, |line, _| match line.content {
        Content::Event(_) if line.pid.is_some() && line.time.is_some() => events += 1,
        Content::Decoration => {}
        _ => unknown += 1,
    });
    memchr::memmem::find(head, b"# tracer: nop").is_some() || events > 0 && unknown * 4 <= events
}

#[cfg(test)]
mod tests {
    use super::looks_like;

    #[test]
    fn traces_are_told_from_other_text() {
        for text in [
            "# tracer: function_graph\n#\n",
            "CPU:0 [LOST 12 EVENTS]\n 0)   0.670 us    |  f();\n",
            "mutex_unlock();\nhandle_mm_fault() {\n",
            "cpus=1\n bash-1   [000]   139.378346: funcgraph_entry:        0.670 us   |  f();\n",
        ] {
            assert!(looks_like(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "a b c\nd e f\n",
            "1 -1 2 -1 -2\n",
            "main;f;g 12\n",
            "PERFILE2\0\0\n",
        ] {
            assert!(!looks_like(text.as_bytes()), "{text}");
        }
    }
}
