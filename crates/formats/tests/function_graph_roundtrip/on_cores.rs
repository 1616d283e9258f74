//! Reading on several cores passes the same data to a sink as reading on one, in the same order.

use pagewise_formats::function_graph::{
    CallTree, Cores, Line, Names, Sink, Span, Tail, read_memory_on, read_on,
};
use pagewise_model::histogram::Histogram;
use pagewise_model::trace_note::TraceNote;

/// Everything that a sink receives, in order.
#[derive(Default)]
struct Received(Vec<String>);

impl Sink for Received {
    fn tree(&mut self, tree: &CallTree, names: &Names) {
        let texts: Vec<&str> = tree.nodes.iter().map(|n| names.text(n.name())).collect();
        self.0.push(format!("{tree:?} {texts:?}"));
    }

    fn bare_close(&mut self, tail: Tail, depth: u32, span: Option<Span>) {
        self.0.push(format!("{tail:?} {depth} {span:?}"));
    }

    fn note(&mut self, note: TraceNote) {
        self.0.push(format!("{note:?}"));
    }

    fn event(&mut self, line: &Line<'_>, text: &[u8]) {
        self.0.push(format!("{line:?} {text:?}"));
    }
}

/// What a sink receives from a text that this many threads read in pieces of this many bytes, as a
/// stream or from memory, then names and counts.
fn received(text: &[u8], threads: usize, piece: usize, in_memory: bool) -> Vec<String> {
    let mut sink = Received::default();
    let cores = Cores { threads, piece };
    let mut announced = 0;
    let window = |next: std::ops::Range<usize>| {
        assert!(next.start == announced && next.end > announced);
        announced = next.end;
    };
    let summary = match in_memory {
        true => read_memory_on(cores, text, window, &mut sink),
        false => read_on(cores, text, &mut sink),
    }
    .expect("memory is readable");
    assert!(!in_memory || announced == text.len());
    let names: Vec<_> = summary
        .names
        .iter()
        .map(|(id, name)| (id, name, summary.names.module(id)))
        .collect();
    sink.0.push(format!("{names:?}"));
    sink.0
        .push(format!("{:?} {:?}", summary.counts, summary.incomplete));
    sink.0
}

/// Where reading on several cores differs from reading on one, if it does.
pub fn difference(text: &[u8], threads: usize, piece: usize) -> Option<String> {
    let latency = Histogram::default();
    let note = TraceNote::RootOnly { latency }.to_line() + "\n";
    let text = &[note.as_bytes(), text, b"\n", note.as_bytes()].concat();
    let one = received(text, 1, piece, false);
    assert_eq!(one, received(text, 1, piece, true), "a stream and memory");
    let many = received(text, threads, piece, piece.is_multiple_of(2));
    assert!(
        one.iter()
            .filter(|message| message.contains("RootOnly"))
            .count()
            == 2
    );
    let place = one.iter().zip(&many).position(|(a, b)| a != b);
    let place = place.or((one.len() != many.len()).then_some(one.len().min(many.len())))?;
    let text = String::from_utf8_lossy(text);
    let (one, many) = (one.get(place), many.get(place));
    Some(format!("on one {one:#?}\non several {many:#?}\n{text}"))
}
