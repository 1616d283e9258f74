//! One trace read on several cores, with exactly the result of [`super::read`].
//!
//! ```text
//! input ─ pieces of whole lines ─┬─ parse, build ─┐   in turn:
//!                                ├─ parse, build ─┼─▶ join the borders, hand trees to the sink
//!                                └─ parse, build ─┘
//! ```
//!
//! Each thread takes the next piece, reads it as far as its lines do not depend on what came before
//! ([`piece`]), and waits for its turn. In its turn it replays the lines that do depend on it on
//! the one builder that has seen everything before, hands over what is still open at the end, and
//! passes complete calls on in the order in which they end. Sinks need not know that several cores
//! are at work: they are called in turn, too, so their time limits the gain.
//!
//! Memory use is one piece with its calls per thread.

mod piece;
mod waiting;

use super::builder::{Builder, Sink};
use super::columns::Header;
use super::names::{Absorbed, Names};
use super::order::Order;
use super::parser::{Counts, LONGEST_LINE, Parser};
use super::settling::Settling;
use super::{Summary, summary};
use crate::text::blocks::Lines;
use crate::text::{BLOCK, Memory, Shared, Source, Stream, on_threads};
use piece::Piece;
use std::hint;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Of a longer line, the parser gets only enough to see that it is too long.
const LINES: Lines = Lines {
    longest: LONGEST_LINE,
};

/// How a trace is read on several cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// Threads that read; with one thread this is [`super::read`].
    pub threads: usize,
    /// Bytes of a piece.
    pub piece: usize,
}

impl Cores {
    /// This many threads, and pieces of 256 KiB.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            piece: BLOCK,
        }
    }
}

/// Reads a whole trace on several cores; `sink` gets the same calls, and the summary contains the
/// same data, as with [`super::read`].
///
/// # Errors
/// When reading fails. Malformed text is not an error; it is counted.
pub fn read_on(
    cores: Cores,
    input: impl Read + Send,
    sink: &mut (impl Sink + Send),
) -> io::Result<Summary> {
    read_source(cores, Stream::new(input, cores.piece, LINES), sink)
}

/// The same for a text in memory, such as a mapped file, which is not copied. `window` is called
/// now and then with the bytes that will be read next; bytes four MiB or more before them will not
/// be read again, unless some thread is late.
pub fn read_memory_on(
    cores: Cores,
    text: &[u8],
    window: impl FnMut(Range<usize>) + Send,
    sink: &mut (impl Sink + Send),
) -> io::Result<Summary> {
    read_source(cores, Memory::new(text, cores.piece, LINES, window), sink)
}

fn read_source(
    cores: Cores,
    source: impl Source + Send,
    sink: &mut (impl Sink + Send),
) -> io::Result<Summary> {
    if cores.threads <= 1 {
        return read_on_one(source, sink);
    }
    let input = Shared::new(source);
    let turn = Turn {
        next: AtomicU64::new(0),
        state: Mutex::new(State {
            asleep: 0,
            builder: Builder::new(),
            names: Names::default(),
            header: Header::default(),
            counts: Counts::default(),
            order: Order::default(),
            sink: Settling::new(sink),
        }),
        passed: Condvar::new(),
    };
    let work = || Worker::default().run(&input, &turn);
    on_threads(cores.threads, work)?;
    let mut state = turn.state.into_inner().unwrap_or_else(|e| e.into_inner());
    state.builder.finish();
    state.sink.finish(&state.names);
    Ok(Summary {
        names: state.names,
        counts: state.counts,
        incomplete: state.builder.incomplete().clone(),
    })
}

/// Reads a whole stream on one core.
pub(super) fn read_stream(input: impl Read, sink: &mut impl Sink) -> io::Result<Summary> {
    read_on_one(Stream::new(input, BLOCK, LINES), sink)
}

fn read_on_one(mut source: impl Source, sink: &mut impl Sink) -> io::Result<Summary> {
    let (mut parser, mut builder) = (Parser::new(), Builder::new());
    let mut sink = Settling::new(sink);
    let mut space = Vec::new();
    while let Some((block, text)) = source.next(&mut space)? {
        parser.forget_columns();
        parser.count_bytes(block.left_out);
        parser.feed(text, |line, names| builder.line(line, names, &mut sink));
    }
    parser.finish(|line, names| builder.line(line, names, &mut sink));
    sink.finish(parser.names());
    Ok(summary(parser, builder))
}

/// What has been seen of the text up to a border, and which piece is next.
struct Turn<'s, S> {
    /// The piece whose turn it is; changed by who holds `state`.
    next: AtomicU64,
    state: Mutex<State<'s, S>>,
    passed: Condvar,
}

/// How often a thread looks whether it is its turn before it sleeps: some 20 µs, in which most turns
/// come. Sleeping and being woken takes longer than that.
const LOOKS: usize = 400;

struct State<'s, S> {
    /// Threads that sleep until their turn.
    asleep: usize,
    builder: Builder,
    names: Names,
    header: Header,
    counts: Counts,
    order: Order,
    sink: Settling<'s, S>,
}

impl<'s, S: Sink> Turn<'s, S> {
    /// Waits for the turn of a piece. A thread that panics never passes its turn on; the others
    /// then stop, too.
    fn wait(&self, piece: u64) -> Option<MutexGuard<'_, State<'s, S>>> {
        let is_next = || self.next.load(Ordering::Acquire) == piece;
        for _ in 0..LOOKS {
            if is_next() {
                break;
            }
            hint::spin_loop();
        }
        let mut state = self.state.lock().ok()?;
        while !is_next() {
            state.asleep += 1;
            state = self.passed.wait(state).ok()?;
            state.asleep -= 1;
        }
        Some(state)
    }

    fn pass(&self, state: MutexGuard<'_, State<'s, S>>) {
        self.next.fetch_add(1, Ordering::Release);
        let is_awaited = state.asleep > 0;
        drop(state);
        if is_awaited {
            self.passed.notify_all();
        }
    }
}

#[derive(Default)]
struct Worker {
    parser: Parser,
    piece: Piece,
    absorbed: Absorbed,
}

impl Worker {
    fn run<S: Sink>(mut self, input: &Shared<impl Source>, turn: &Turn<'_, S>) -> io::Result<()> {
        let mut header = Header::default();
        let mut space = Vec::new();
        while let Some((block, text)) = input.next(&mut space)? {
            self.parse(text, header.clone(), None, block.is_last);
            let Some(mut state) = turn.wait(block.number) else {
                return Ok(());
            };
            let is_behind = state.order.is_before(self.parser.order());
            let is_alike = header.reads_like(&state.header);
            let is_again = !is_behind || !is_alike || self.piece.has_parted(&state.builder);
            if is_again {
                // A stretch that the text repeats crosses the border, the header was completed in a
                // piece before, when this one was already under way, or lines turn out to belong to
                // other tasks. The names and tasks found in the first attempt are then wrong, and
                // what is known of names is stored by their ids.
                (self.parser, self.absorbed) = Default::default();
                self.piece = Piece::in_turn();
                let order = std::mem::take(&mut state.order);
                self.parse(text, state.header.clone(), Some(order), block.is_last);
                state.order = self.parser.order().clone();
                state.order.went_back = 0;
            } else {
                state.counts.times_back += state.order.append(self.parser.order().clone());
            }
            state.counts.bytes += block.left_out;
            self.join(&mut state);
            header = self.parser.header().clone();
            state.header = header.clone();
            turn.pass(state);
            if is_again {
                self.piece = Piece::default();
            }
        }
        Ok(())
    }

    fn parse(&mut self, text: &[u8], header: Header, behind: Option<Order>, is_last: bool) {
        self.parser.restart(header);
        if let Some(order) = behind {
            self.parser.follow(order);
        }
        self.piece.restart();
        let piece = &mut self.piece;
        self.parser
            .feed(text, |line, names| piece.line(line, names));
        if is_last {
            self.parser.finish(|line, names| piece.line(line, names));
        }
        self.piece.end();
    }

    fn join<S: Sink>(&mut self, state: &mut State<'_, S>) {
        state.names.absorb(self.parser.names(), &mut self.absorbed);
        state.counts.add(&self.parser.counts());
        self.piece.join(
            &mut state.builder,
            &state.names,
            &self.absorbed,
            &mut state.sink,
        );
    }
}
