//! The kernel's text as it arrives: parsed once for what the capture needs.

use super::choice::Census;
use pagewise_formats::function_graph::{
    Builder, CallTree, Counts, Line, Names, Parser, Sink, Span, Tail,
};
use pagewise_traces::fault_paths::Collector;

/// Results from the text of one or more stretches.
#[derive(Default)]
pub struct Reading {
    parser: Parser,
    builder: Builder,
    sink: Both,
}

/// The faults, and the functions in them.
#[derive(Default)]
struct Both {
    faults: Collector,
    census: Option<Census>,
}

impl Sink for Both {
    fn tree(&mut self, tree: &CallTree, names: &Names) {
        self.faults.tree(tree, names);
        if let Some(census) = &mut self.census {
            census.tree(tree, names);
        }
    }

    fn bare_close(&mut self, tail: Tail, depth: u32, span: Option<Span>) {
        self.faults.bare_close(tail, depth, span);
    }

    fn event(&mut self, line: &Line<'_>, text: &[u8]) {
        self.faults.event(line, text);
    }
}

impl Reading {
    /// A reading that also counts the functions called, until [`Reading::take_census`].
    pub fn with_census() -> Self {
        Self {
            sink: Both {
                census: Some(Census::default()),
                ..Both::default()
            },
            ..Self::default()
        }
    }

    /// Takes text, cut at any place.
    pub fn feed(&mut self, text: &[u8]) {
        let (builder, sink) = (&mut self.builder, &mut self.sink);
        self.parser
            .feed(text, |line, names| builder.line(line, names, sink));
    }

    /// Drops open calls, because the next stretch is not read here.
    pub fn pause(&mut self) {
        self.builder.finish();
    }

    /// Whether enough calls were counted to decide.
    pub fn is_census_enough(&self) -> bool {
        self.sink.census.as_ref().is_none_or(Census::is_enough)
    }

    /// The census of functions; `None` after the first call.
    pub fn take_census(&mut self) -> Option<Census> {
        self.sink.census.take()
    }

    /// The faults.
    pub fn faults(&self) -> &Collector {
        &self.sink.faults
    }

    /// Counts of what was read.
    pub fn counts(&self) -> Counts {
        self.parser.counts()
    }
}
