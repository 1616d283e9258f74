//! Lines out of order: stretches that a file repeats, and other places where time goes back.
//!
//! The file `trace` of kernels up to 4.18 goes back a little on each read: `s_start()` counts lines
//! where `s_next()` counts events (`kernel/trace/trace.c`), and a leaf is one line for two events.
//! Lines are printed again, up to the last one and beyond; the first line of a repeat may be the
//! end of a leaf.
//!
//! So where time goes back, lines are held until the last line from before occurs again: then they
//! were a repeat and are dropped. If it does not occur, they are read as they are. A repeat of only
//! the last line, as at the end of the file, is recognised because no task can do the same thing
//! twice in a row.

use super::line::{Content, Line};

/// Largest number of lines in a repeat. A read of `trace` fills a page of at most 64 KiB.
const LONGEST_REPEAT: u64 = 4096;

/// What identifies a line when it occurs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub time: u64,
    pub cpu: u32,
    pid: Option<u32>,
    depth: u32,
    ns: Option<u64>,
    kind: u8,
    /// Whether the next line of the same task cannot be equal to this one.
    is_single: bool,
}

impl Key {
    /// `None` for a line without a time.
    #[inline]
    pub fn from_line(line: &Line<'_>) -> Option<Self> {
        let kind = match line.content {
            Content::Leaf(_) => 0,
            Content::Open(_) => 1,
            Content::Close(_) => 2,
            _ => 3,
        };
        let ns = line.span.map(|span| span.ns);
        Some(Self {
            time: line.time?,
            cpu: line.cpu.unwrap_or(0),
            pid: line.pid,
            depth: line.depth,
            ns,
            kind,
            is_single: line.cpu.is_some() && is_single(kind, ns),
        })
    }
}

/// After a call begins the depth changes, and before one ends, too. Two leaves may well look alike,
/// unless they take longer than the last digit of their times.
#[inline]
fn is_single(kind: u8, ns: Option<u64>) -> bool {
    matches!(kind, 1 | 2) || kind == 0 && ns.is_some_and(|ns| ns >= 1000)
}

/// The order of the lines so far, against which the next one is judged.
#[derive(Clone, Default)]
pub(super) struct Order {
    first: Option<Key>,
    last: Option<Key>,
    /// Each CPU's first and last time, except that of the last line, which is the last of its CPU.
    times: Vec<(u32, u64, u64)>,
    /// Lines since time went back, or task switches that may belong to such lines.
    held: Vec<u8>,
    lines: u64,
    is_back: bool,
    /// Whether a task switch was read as in text without times.
    was_untimed: bool,
    /// How often time has gone back without a repeat.
    pub went_back: u64,
}

/// Whether a line directly after the last one is that same line again.
#[inline]
fn is_again(last: Key, key: Key) -> bool {
    key.is_single && key == last
}

/// What to do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is in order.
    Next,
    /// It was added to the held lines.
    Held,
    /// It is the last line again: all held lines were a repeat, this one included.
    Repeat,
    /// The held lines, this one included, are not a repeat.
    NoRepeat,
}

impl Order {
    /// Takes a line that comes in order while nothing is held: nearly every one.
    #[inline]
    pub fn is_next(&mut self, key: Key) -> bool {
        match self.last {
            Some(last) if last.time <= key.time && self.held.is_empty() && !is_again(last, key) => {
                match last.cpu == key.cpu {
                    true => self.last = Some(key),
                    false => self.take(key),
                }
                true
            }
            _ => false,
        }
    }

    /// Decides about a line that may be out of order.
    #[cold]
    pub fn judge(&mut self, key: Key, line: &[u8]) -> Verdict {
        let Some(last) = self.last else {
            self.take(key);
            return Verdict::Next;
        };
        if self.held.is_empty() && is_again(last, key) {
            self.hold(line);
            return Verdict::Repeat;
        }
        if !self.is_back {
            if last.time <= key.time {
                self.take(key);
                return Verdict::Next;
            }
            self.is_back = true;
        }
        self.hold(line);
        if key == last {
            return Verdict::Repeat;
        }
        match key.time > last.time || self.lines >= LONGEST_REPEAT {
            true => Verdict::NoRepeat,
            false => Verdict::Held,
        }
    }

    /// Whether lines have had times, so that going back would show. A piece that had none when this was
    /// asked fits only behind text that had none either.
    pub fn knows_times(&mut self) -> bool {
        self.was_untimed |= self.last.is_none();
        self.last.is_some()
    }

    /// Takes a line as the last one.
    pub fn take(&mut self, key: Key) {
        if let Some(last) = self.last
            && last.cpu != key.cpu
        {
            self.note(last);
        }
        let same = self.last.filter(|last| last.cpu == key.cpu);
        let before = same.map(|last| last.time).or(self.last_of(key.cpu));
        self.went_back += u64::from(before.is_some_and(|before| before > key.time));
        if before.is_none() {
            self.times.push((key.cpu, key.time, key.time));
        }
        self.first = self.first.or(Some(key));
        self.last = Some(key);
    }

    fn note(&mut self, last: Key) {
        match self.times.iter_mut().find(|times| times.0 == last.cpu) {
            Some(times) => times.2 = last.time,
            None => self.times.push((last.cpu, last.time, last.time)),
        }
    }

    fn last_of(&self, cpu: u32) -> Option<u64> {
        let times = self.times.iter().find(|times| times.0 == cpu);
        times.map(|times| times.2)
    }

    /// Whether lines without a time have to wait for those held.
    pub fn is_back(&self) -> bool {
        self.is_back
    }

    pub fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    pub fn hold(&mut self, line: &[u8]) {
        self.held.extend_from_slice(line);
        self.held.push(b'\n');
        self.lines += 1;
    }

    /// Releases the held lines: their text and their number.
    pub fn release(&mut self) -> (Vec<u8>, u64) {
        self.is_back = false;
        (
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.lines),
        )
    }

    /// Whether a piece of the text that was read separately would have been read in the same way
    /// after this.
    pub fn is_before(&self, piece: &Self) -> bool {
        let is_later = match (piece.first, self.last) {
            (Some(first), Some(last)) => last.time <= first.time && !is_again(last, first),
            _ => true,
        };
        let agree_on_times = self.last.is_none() || !piece.was_untimed;
        self.held.is_empty() && is_later && agree_on_times
    }

    /// Continues after a piece that was read separately. Returns how often time went back where the
    /// piece begins.
    pub fn append(&mut self, piece: Self) -> u64 {
        if let Some(last) = self.last {
            self.note(last);
        }
        let mut back = 0;
        for &(cpu, first, last) in &piece.times {
            back += u64::from(self.last_of(cpu).is_some_and(|before| before > first));
            match self.times.iter_mut().find(|times| times.0 == cpu) {
                Some(times) => times.2 = last,
                None => self.times.push((cpu, first, last)),
            }
        }
        self.first = self.first.or(piece.first);
        self.last = piece.last.or(self.last);
        self.held = piece.held;
        self.lines = piece.lines;
        self.is_back = piece.is_back;
        back
    }
}
