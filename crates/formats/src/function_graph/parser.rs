//! From bytes to lines: chunks in, parsed lines out; only an incomplete line is kept.

use super::call;
use super::columns::{self, Arrow, Columns, Header, Layout};
use super::line::{Content, Line};
use super::marks;
use super::names::{NameId, Names, same};
use super::number;
use super::order::{Key, Order, Verdict};
use memchr::memchr;
use serde::{Deserialize, Serialize};

/// A line longer than this is not a line of a trace.
pub(super) const LONGEST_LINE: usize = 64 << 10;

/// What was read and what could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Bytes taken in.
    pub bytes: u64,
    /// Lines, headers and rules included; for trace.dat, records.
    pub lines: u64,
    /// Calls: leaves and opens.
    pub calls: u64,
    /// Lines of no known form; for trace.dat, records of no known format.
    pub unknown_lines: u64,
    /// Bytes of an unfinished line at the end.
    pub truncated_bytes: u64,
    /// Stretches that the file repeats, as on kernels up to 4.18; they are dropped.
    #[serde(default)]
    pub repeats: u64,
    /// Their lines.
    #[serde(default)]
    pub repeated_lines: u64,
    /// Other places where a CPU's time goes back.
    #[serde(default)]
    pub times_back: u64,
    /// Events that the tracer reports as lost.
    pub lost_events: u64,
    /// Places where the tracer reports lost events.
    pub losses: u64,
    /// In trace.dat: pages, chunks and records that contradict themselves.
    pub malformed_records: u64,
    /// In trace.dat: bytes missing beyond the end of the file.
    pub missing_bytes: u64,
    /// In trace.dat: functions that are not in its list of names.
    pub unnamed_functions: u64,
    /// In trace.dat: further buffers (tracing instances), which are not read.
    pub other_buffers: u64,
}

impl Counts {
    /// Adds what was read of another part.
    pub fn add(&mut self, other: &Self) {
        let Self {
            bytes,
            lines,
            calls,
            unknown_lines,
            truncated_bytes,
            repeats,
            repeated_lines,
            times_back,
            lost_events,
            losses,
            malformed_records,
            missing_bytes,
            unnamed_functions,
            other_buffers,
        } = other;
        self.bytes += bytes;
        self.lines += lines;
        self.calls += calls;
        self.unknown_lines += unknown_lines;
        self.truncated_bytes += truncated_bytes;
        self.repeats += repeats;
        self.repeated_lines += repeated_lines;
        self.times_back += times_back;
        self.lost_events = self.lost_events.saturating_add(*lost_events);
        self.losses += losses;
        self.malformed_records += malformed_records;
        self.missing_bytes = self.missing_bytes.saturating_add(*missing_bytes);
        self.unnamed_functions += unnamed_functions;
        self.other_buffers += other_buffers;
    }
}

/// The parser of one trace. Feed it bytes in chunks of any size, then [`Parser::finish`].
#[derive(Default)]
pub struct Parser {
    header: Header,
    names: Names,
    who: WhoTable,
    layout: Option<Layout>,
    clock: Seconds,
    partial: Vec<u8>,
    skipping: bool,
    counts: Counts,
    order: Order,
}

/// CPU and task by the bytes of their columns, so that each is parsed once.
#[derive(Default)]
struct WhoTable {
    spellings: Names,
    known: Vec<(Option<u32>, Option<u32>)>,
    last: Vec<u8>,
    last_who: (Option<u32>, Option<u32>),
    is_last_known: bool,
}

/// The whole seconds of the last time, by their text.
#[derive(Default)]
struct Seconds {
    text: Vec<u8>,
    ns: u64,
}

impl Parser {
    /// A parser of a trace's own text or of `trace-cmd report`'s.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Continues with a piece of the same text, given what the header contained so far. Names are
    /// kept; counts restart at zero.
    pub(super) fn restart(&mut self, header: Header) {
        self.header = header;
        self.partial.clear();
        self.skipping = false;
        self.counts = Counts::default();
        self.order = Order::default();
        self.forget_columns();
    }

    /// Continues after lines in this order.
    pub(super) fn follow(&mut self, order: Order) {
        self.order = order;
        self.order.went_back = 0;
    }

    /// The order of the lines so far.
    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    /// Finds the columns anew. Their remembered positions and contents decide how a damaged line is
    /// read; they are forgotten from piece to piece so that the result does not depend on how much
    /// was read before.
    pub(super) fn forget_columns(&mut self) {
        self.layout = None;
        self.clock.text.clear();
        self.who.forget();
    }

    /// Counts bytes that were left out of the text.
    pub(super) fn count_bytes(&mut self, more: u64) {
        self.counts.bytes += more;
    }

    /// The function names found so far.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The function names, at the end.
    #[must_use]
    pub fn into_names(self) -> Names {
        self.names
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was read so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            times_back: self.order.went_back,
            ..self.counts
        }
    }

    /// Takes the next bytes and hands each complete line to `visit`.
    pub fn feed(&mut self, bytes: &[u8], mut visit: impl FnMut(&Line<'_>, &Names)) {
        self.counts.bytes += bytes.len() as u64;
        let mut rest = bytes;
        if !self.partial.is_empty() || self.skipping {
            rest = self.complete_partial(rest, &mut visit);
        }
        while let Some(end) = memchr(b'\n', rest) {
            if end > LONGEST_LINE {
                self.counts.unknown_lines += 1;
            } else {
                self.line(&rest[..end], &mut visit);
            }
            rest = &rest[end + 1..];
        }
        self.keep(rest);
    }

    /// Ends the input. A last line without a newline counts if it ends as a line may end; otherwise
    /// it was cut, and its bytes are counted.
    pub fn finish(&mut self, mut visit: impl FnMut(&Line<'_>, &Names)) {
        let last = std::mem::take(&mut self.partial);
        let last = last.trim_ascii_end();
        if matches!(last.last(), Some(b';' | b'{' | b'}' | b'/')) {
            self.line(last, &mut visit);
        } else {
            self.counts.truncated_bytes += last.len() as u64;
        }
        self.replay(&mut visit);
    }

    fn keep(&mut self, rest: &[u8]) {
        if self.skipping {
            return;
        }
        self.partial.extend_from_slice(rest);
        if self.partial.len() > LONGEST_LINE {
            self.partial.clear();
            self.skipping = true;
            self.counts.unknown_lines += 1;
        }
    }

    fn complete_partial<'b>(
        &mut self,
        bytes: &'b [u8],
        visit: &mut impl FnMut(&Line<'_>, &Names),
    ) -> &'b [u8] {
        let Some(end) = memchr(b'\n', bytes) else {
            self.keep(bytes);
            return &[];
        };
        if self.skipping {
            self.skipping = false;
        } else {
            let mut line = std::mem::take(&mut self.partial);
            line.extend_from_slice(&bytes[..end]);
            if line.len() > LONGEST_LINE {
                self.counts.unknown_lines += 1;
            } else {
                self.line(&line, visit);
            }
            line.clear();
            self.partial = line;
        }
        &bytes[end + 1..]
    }

    #[inline(always)]
    fn line(&mut self, line: &[u8], visit: &mut impl FnMut(&Line<'_>, &Names)) {
        self.counts.lines += 1;
        // Each line is passed on where it was built: moving it would stall on its parts.
        if let Some(parsed) = self.at_known_columns(line) {
            if let Some(key) = Key::from_line(&parsed)
                && !self.order.is_next(key)
            {
                return self.disordered(line, visit);
            }
            self.count(&parsed.content);
            visit(&parsed, &self.names);
        } else {
            self.disordered(line, visit);
        }
    }

    /// Reads a line that has an unusual form or is out of order, or that follows such a line.
    #[cold]
    fn disordered(&mut self, line: &[u8], visit: &mut impl FnMut(&Line<'_>, &Names)) {
        let parsed = self.anywhere(line);
        let verdict = match Key::from_line(&parsed) {
            Some(key) => self.order.judge(key, line),
            // A switch of tasks may already belong to a repeat, which only times show.
            None if matches!(parsed.content, Content::Switch { .. })
                && self.order.knows_times() =>
            {
                Verdict::Held
            }
            None if self.order.is_back() => Verdict::Held,
            None => Verdict::Next,
        };
        match verdict {
            Verdict::Next => {
                if Key::from_line(&parsed).is_some() && self.order.has_held() {
                    self.replay(visit);
                    return self.read_anew(line, visit);
                }
                self.count(&parsed.content);
                visit(&parsed, &self.names);
            }
            Verdict::Held if Key::from_line(&parsed).is_none() => self.order.hold(line),
            Verdict::Held => {}
            Verdict::Repeat => {
                let (_, lines) = self.order.release();
                self.counts.repeats += 1;
                self.counts.repeated_lines += lines;
            }
            Verdict::NoRepeat => self.replay(visit),
        }
    }

    /// Reads the held lines as they are.
    #[cold]
    fn replay(&mut self, visit: &mut impl FnMut(&Line<'_>, &Names)) {
        let (text, _) = self.order.release();
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            self.read_anew(&line[..line.len() - 1], visit);
        }
    }

    fn read_anew(&mut self, line: &[u8], visit: &mut impl FnMut(&Line<'_>, &Names)) {
        let parsed = self.anywhere(line);
        if let Some(key) = Key::from_line(&parsed) {
            self.order.take(key);
        }
        self.count(&parsed.content);
        visit(&parsed, &self.names);
    }

    fn count(&mut self, content: &Content<'_>) {
        match content {
            Content::Leaf(_) | Content::Open(_) => self.counts.calls += 1,
            Content::Unknown => self.counts.unknown_lines += 1,
            Content::Lost { events, .. } => {
                self.counts.losses += 1;
                let known = events.unwrap_or(0);
                self.counts.lost_events = self.counts.lost_events.saturating_add(known);
            }
            _ => {}
        }
    }

    /// Reads a line whose columns are where those of the last line were.
    #[inline(always)]
    fn at_known_columns<'a>(&mut self, line: &'a [u8]) -> Option<Line<'a>> {
        let layout = self.layout?;
        let (prologue, text) = line.split_at_checked(layout.call)?;
        let time = match layout.dot {
            0 => None,
            dot => {
                // Before the task in the kernel's text, after it in that of trace-cmd report.
                let after = if layout.who.1 < dot { layout.who.1 } else { 0 };
                Some(self.clock.time(prologue, dot, after)?)
            }
        };
        let (cpu, pid) = self.who.find(prologue.get(layout.who.0..layout.who.1)?)?;
        let mut span = None;
        if layout.number > 0 {
            if prologue.get(layout.bar..)? != b"|  " {
                return None;
            }
            // A number that begins before its column, or after it, is not read from there.
            let [b' ', field @ ..] = prologue.get(layout.number - 1..layout.bar)? else {
                return None;
            };
            if *field.first()? != b' ' {
                span = Some(number::duration(field)?.0);
            } else if !is_blank(field) {
                return None;
            }
        }
        let (depth, text) = indentation(text);
        let content = call::parse(&mut self.names, text)?;
        Some(Line {
            time,
            cpu,
            pid,
            depth,
            span,
            content,
        })
    }

    /// Reads a line of any form, and records where its columns are.
    #[cold]
    fn anywhere<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.first() == Some(&b'#') && !line.starts_with(b"#####") {
            self.header.note(line);
        }
        if let Some(content) = marks::parse(line) {
            return bare(content);
        }
        let columns = columns::report(line).or_else(|| columns::kernel(line, &self.header));
        columns
            .and_then(|columns| self.with_columns(line, columns))
            .unwrap_or_else(|| bare(Content::Unknown))
    }

    fn with_columns<'a>(&mut self, line: &'a [u8], columns: Columns) -> Option<Line<'a>> {
        let text = line.get(columns.call..)?;
        let (depth, text) = indentation(text);
        let text = text.trim_ascii_end();
        let content = match columns.arrow {
            Some(Arrow::Enter) => Content::IrqEnter,
            Some(Arrow::Exit) => Content::IrqExit,
            None if columns.event => Content::Event(text),
            None => call::parse(&mut self.names, text)?,
        };
        self.remember(line, &columns);
        Some(Line {
            time: columns.time,
            cpu: columns.cpu,
            pid: columns.pid,
            depth,
            span: columns.span,
            content,
        })
    }

    fn remember(&mut self, line: &[u8], columns: &Columns) {
        let (start, end) = columns.layout.who;
        let who = line.get(start..end).unwrap_or_default();
        self.who.note(who, (columns.cpu, columns.pid));
        if !columns.irregular && self.layout != Some(columns.layout) {
            self.layout = Some(columns.layout);
            self.clock.text.clear();
        }
    }
}

impl WhoTable {
    fn forget(&mut self) {
        if !self.known.is_empty() {
            self.spellings = Names::default();
            self.known.clear();
            self.last.clear();
            self.last_who = (None, None);
            self.is_last_known = false;
        }
    }

    #[inline]
    fn find(&mut self, text: &[u8]) -> Option<(Option<u32>, Option<u32>)> {
        if same(text, &self.last) && self.is_last_known {
            return Some(self.last_who);
        }
        let id = self.spellings.find(text)?;
        self.is_last_known = true;
        self.last_who = *self.known.get(id.index())?;
        self.last.clear();
        self.last.extend_from_slice(text);
        Some(self.last_who)
    }

    fn note(&mut self, text: &[u8], who: (Option<u32>, Option<u32>)) {
        let NameId(id) = self.spellings.intern(text);
        if id as usize == self.known.len() {
            self.known.push(who);
        }
    }
}

impl Seconds {
    /// The time with its point at `dot`, seconds before and six digits after it; it is the first
    /// word after the column that ends at `after`.
    #[inline]
    fn time(&mut self, line: &[u8], dot: usize, after: usize) -> Option<u64> {
        let (whole, rest) = line.split_at_checked(dot)?;
        let [b'.', rest @ ..] = rest else {
            return None;
        };
        let (fraction, rest) = rest.split_first_chunk::<6>()?;
        if !matches!(rest, [b' ', b'|', ..] | [b':', ..]) {
            return None;
        }
        if !same(whole, &self.text) {
            self.change(whole, after)?;
        }
        Some(self.ns + number::micros(fraction)?)
    }

    #[cold]
    fn change(&mut self, whole: &[u8], after: usize) -> Option<()> {
        let start = memchr::memrchr(b' ', whole).map_or(0, |at| at + 1);
        if whole.get(after..start)?.iter().any(|&b| b != b' ') {
            return None;
        }
        let (seconds, len) = number::digits(&whole[start..])?;
        if start + len != whole.len() {
            return None;
        }
        self.ns = seconds.checked_mul(1_000_000_000)?;
        self.text.clear();
        self.text.extend_from_slice(whole);
        Some(())
    }
}

/// A line without time and task.
fn bare(content: Content<'_>) -> Line<'_> {
    Line {
        time: None,
        cpu: None,
        pid: None,
        depth: 0,
        span: None,
        content,
    }
}

const BLANKS: u64 = u64::from_ne_bytes([b' '; 8]);

#[inline]
fn is_blank(field: &[u8]) -> bool {
    match (field.first_chunk::<8>(), field.last_chunk::<8>()) {
        (Some(first), Some(last)) if field.len() <= 16 => {
            u64::from_ne_bytes(*first) == BLANKS && u64::from_ne_bytes(*last) == BLANKS
        }
        _ => field.iter().all(|&byte| byte == b' '),
    }
}

/// The nesting (two blanks per level) and the text after it.
#[inline]
fn indentation(text: &[u8]) -> (u32, &[u8]) {
    let mut rest = text;
    let mut blanks = 0;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        let differing = u64::from_le_bytes(*word) ^ BLANKS;
        if differing != 0 {
            let here = differing.trailing_zeros() / 8;
            return ((blanks + here) / 2, &rest[here as usize..]);
        }
        blanks += 8;
        rest = after;
    }
    while let Some(after) = rest.strip_prefix(b" ") {
        blanks += 1;
        rest = after;
    }
    (blanks / 2, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_blank_where_each_byte_is() {
        for length in 0..40 {
            let blank = vec![b' '; length];
            assert!(is_blank(&blank), "{length}");
            for at in 0..length {
                let mut field = blank.clone();
                field[at] = b'x';
                assert!(!is_blank(&field), "{length} {at}");
            }
        }
    }

    /// In whatever chunks a line beyond the limit arrives, it is one unknown line, and the next is
    /// read.
    #[test]
    fn a_line_that_is_too_long_counts_once() {
        for length in [LONGEST_LINE, LONGEST_LINE + 1, 3 * LONGEST_LINE] {
            let text = format!("{}\n 0)   1.000 us    |  f();\n", "x".repeat(length));
            for chunk in [100, LONGEST_LINE - 1, LONGEST_LINE + 1, text.len()] {
                let (mut parser, mut calls) = (Parser::new(), 0);
                for part in text.as_bytes().chunks(chunk) {
                    parser.feed(part, |line, _| {
                        calls += u32::from(matches!(line.content, Content::Leaf(_)));
                    });
                }
                assert_eq!(
                    (parser.counts().unknown_lines, calls),
                    (1, 1),
                    "{length} {chunk}"
                );
            }
        }
    }
}
