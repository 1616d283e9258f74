//! The first line of a sample in `perf script`'s text.
//!
//! ```text
//! comm  pid/tid [cpu] flags  seconds.fraction:  period event:modifiers:  text of the event
//! ```
//!
//! Every column except the command name and one id is an option (`-F`), and a command name may
//! contain anything: blanks, colons, brackets, digits, or nothing. So the columns that have a
//! distinct shape are searched first; the name is the text before them.

/// The columns of a sample's first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    /// Command name and ids as printed.
    pub task: &'a [u8],
    pub cpu: Option<u16>,
    /// Nanoseconds; negative times are dropped.
    pub time: Option<u64>,
    pub period: Option<u64>,
    /// Name with modifiers.
    pub event: Option<&'a [u8]>,
    /// What follows the event: a tracepoint's text, or the address of a sample without a chain.
    pub rest: &'a [u8],
}

impl<'a> Header<'a> {
    /// Whether it has a column of an unmistakable shape.
    pub fn is_anchored(&self) -> bool {
        self.cpu.is_some() || self.time.is_some()
    }

    /// The text of a record other than a sample, if this is one.
    pub fn task_event(&self) -> Option<&'a [u8]> {
        let is_named = self
            .event
            .is_some_and(|event| event.starts_with(b"PERF_RECORD_"));
        match self.event {
            Some(event) if is_named => Some(event),
            Some(_) => None,
            None => task_event(self.rest),
        }
    }
}

/// The text of a record other than a sample: perf prints its type first (`perf_event__fprintf`,
/// tools/perf/util/event.c).
pub(super) fn task_event(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii();
    text.starts_with(b"PERF_RECORD_").then_some(text)
}

/// Reads a first line; `None` if it is not one.
#[inline]
pub(super) fn parse(line: &[u8]) -> Option<Header<'_>> {
    usual(line).or_else(|| any(line))
}

/// Reads what perf prints by default when the command's name is ordinary, with the same result as
/// [`any`]; `None` for everything else.
#[inline]
fn usual(line: &[u8]) -> Option<Header<'_>> {
    // A colon before the bracket could be that of an event.
    let bracket = memchr::memchr2(b']', b':', line)?;
    let (before, cpu) = line[..bracket].split_last_chunk::<4>()?;
    let &[b'[', cpu @ ..] = cpu else { return None };
    let task = before.strip_suffix(b" ")?.trim_ascii();
    if !ends_in_ids(task) {
        return None;
    }
    let rest = line[bracket..].strip_prefix(b"] ")?.trim_ascii_start();
    let (seconds, rest) = number(rest)?;
    let (fraction, after) = number(rest.strip_prefix(b".")?)?;
    let scale = match rest.len() - after.len() {
        7 => 1000,
        10 => 1,
        _ => return None,
    };
    let rest = after.strip_prefix(b": ")?;
    let start = rest.iter().position(|&b| b != b' ')?;
    let rest = &rest[start..];
    let (period, rest) = match number(rest) {
        Some((period, [b' ', rest @ ..])) => (Some(period), rest),
        _ => (None, rest),
    };
    let end = rest.iter().position(|&b| b == b' ' || b == b'\t');
    let end = end.unwrap_or(rest.len());
    let name = rest[..end].strip_suffix(b":")?;
    if rest.get(end) == Some(&b'\t') || name.is_empty() {
        return None;
    }
    Some(Header {
        task,
        cpu: Some(u16::try_from(digits(&cpu)?).ok()?),
        time: Some(
            seconds
                .checked_mul(1_000_000_000)?
                .checked_add(fraction * scale)?,
        ),
        period,
        event: Some(name.strip_suffix(b":").unwrap_or(name)),
        rest: rest[end..].trim_ascii(),
    })
}

/// Whether a task ends in a blank and `123` or `123/456`, and has no tabs.
#[inline]
fn ends_in_ids(task: &[u8]) -> bool {
    let (mut digits, mut has_slash) = (0, false);
    for (at, byte) in task.iter().enumerate().rev() {
        match byte {
            b'0'..=b'9' => digits += 1,
            _ if !(1..=10).contains(&digits) => return false,
            b'/' if !has_slash => (digits, has_slash) = (0, true),
            b' ' => return !task[..at].contains(&b'\t'),
            _ => return false,
        }
    }
    false
}

/// The digits that a text begins with, at most eighteen, and what follows.
#[inline]
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (at, byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (1..=18).contains(&at).then_some((value, &text[at..]));
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    None
}

/// Reads a first line with any combination of columns.
fn any(line: &[u8]) -> Option<Header<'_>> {
    let mut header = Header {
        task: &[],
        cpu: None,
        time: None,
        period: None,
        event: None,
        rest: &[],
    };
    let mut words = Words { line, at: 0 };
    // The name begins the line and is at least one word, unless it is empty.
    let first = words.next()?;
    let mut task_end = ids(line, first).then_some(first.1);
    // Without CPU and time, the last of two numbers is the period.
    let mut before = None;
    let mut anchored = false;
    while let Some(word) = words.next() {
        let text = &line[word.0..word.1];
        if let Some(cpu) = cpu(text)
            && task_end.is_some()
        {
            (header.cpu, anchored) = (Some(cpu), true);
        } else if let Some(time) = time(text)
            && task_end.is_some()
        {
            header.time = time;
            event(line, word.1, &mut header);
            anchored = true;
            break;
        } else if anchored {
            // Flags of the interrupt state are between CPU and time; otherwise the event follows.
            if text.ends_with(b":") || text.iter().all(u8::is_ascii_digit) {
                event(line, word.0, &mut header);
                break;
            }
        } else if ids(line, word) {
            before = task_end.filter(|&end| line[end..word.0].trim_ascii().is_empty());
            task_end = Some(word.1);
        } else if let Some(end) = task_end.filter(|_| text.ends_with(b":"))
            && line[end..word.0].trim_ascii().is_empty()
        {
            task_end = before.or(task_end);
            event(line, task_end?, &mut header);
            break;
        }
    }
    header.task = line.get(..task_end?)?.trim_ascii();
    (anchored || header.event.is_some()).then_some(header)
}

struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl Words<'_> {
    /// Where the next word begins and ends.
    fn next(&mut self) -> Option<(usize, usize)> {
        let blank = |b: &u8| *b == b' ' || *b == b'\t';
        let rest = self.line.get(self.at..)?;
        let start = self.at + rest.iter().position(|b| !blank(b))?;
        let len = self.line[start..].iter().position(blank);
        let end = len.map_or(self.line.len(), |len| start + len);
        self.at = end;
        Some((start, end))
    }
}

/// `123`, `-1` or `123/456`.
fn ids(line: &[u8], (start, end): (usize, usize)) -> bool {
    let number = |text: &[u8]| {
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        !digits.is_empty() && digits.len() <= 10 && digits.iter().all(u8::is_ascii_digit)
    };
    let text = &line[start..end];
    match memchr::memchr(b'/', text) {
        Some(slash) => number(&text[..slash]) && number(&text[slash + 1..]),
        None => number(text),
    }
}

/// `[003]`
fn cpu(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// `12345.678901:` with six or nine decimals; the inner `None` is a time before zero.
fn time(text: &[u8]) -> Option<Option<u64>> {
    let text = text.strip_suffix(b":")?;
    let (text, negative) = match text.strip_prefix(b"-") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let dot = memchr::memchr(b'.', text)?;
    let (whole, fraction) = (digits(&text[..dot])?, &text[dot + 1..]);
    let scale = match fraction.len() {
        3 => 1_000_000,
        6 => 1000,
        9 => 1,
        _ => return None,
    };
    let ns = whole.checked_mul(1_000_000_000)?;
    let ns = ns.checked_add(digits(fraction)? * scale)?;
    Some((!negative).then_some(ns))
}

pub(super) fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    let mut value = 0_u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// The optional period and the event's name, which ends in a colon before a blank or the end.
#[inline]
fn event<'a>(line: &'a [u8], from: usize, header: &mut Header<'a>) {
    let mut words = Words { line, at: from };
    let Some(mut word) = words.next() else { return };
    if let Some(period) = digits(&line[word.0..word.1]) {
        header.period = Some(period);
        match words.next() {
            Some(next) => word = next,
            None => return,
        }
    }
    if let Some(name) = line[word.0..word.1].strip_suffix(b":") {
        header.event = Some(name.strip_suffix(b":").unwrap_or(name));
        header.rest = line[word.1..].trim_ascii();
    } else {
        header.rest = line[word.0..].trim_ascii();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line, and its task, CPU, time, period and event.
    type Case<'a> = (
        &'a str,
        &'a str,
        Option<u16>,
        Option<u64>,
        Option<u64>,
        Option<&'a str>,
    );

    /// Lines that are almost usual.
    const ODD: [&str; 14] = [
        "a 1 [000] 1.000000:   5  cycles:",
        "a 1 [000] 1.000000:   5 cycles",
        "a 1 [000] 1.000000:   5",
        "a 1 [000] 1.000000: 55 66 cycles:",
        "a 1 [000] 1.000000: cycles:\tx",
        "a 1 [000] 1.000000: \tcycles: x",
        "a 1 [000] 1.000000:  :",
        "a 1 [000] 1.000000: 99999999999999999999 cycles:",
        "a\t1 [000] 1.000000: 5 cycles:",
        "a 1\t[000] 1.000000: 5 cycles:",
        "a 1 [000]1.000000: 5 cycles:",
        "a 1 [000]  1.000000000: 5 cycles:u: 12 f (x)",
        "a 12345678901 [000] 1.000000: 5 cycles:",
        "a 1 2 [000] 99999999999999999.000000: 5 cycles:",
    ];

    #[test]
    fn every_variant_of_the_columns() {
        let cases: &[Case<'_>] = &[
            (
                "swapper     0 [001] 12345.678901:     250000 cpu-clock:pppH: ",
                "swapper     0",
                Some(1),
                Some(12_345_678_901_000),
                Some(250_000),
                Some("cpu-clock:pppH"),
            ),
            (
                "redis 12/13 [000]   1.000000001: cycles: ",
                "redis 12/13",
                Some(0),
                Some(1_000_000_001),
                None,
                Some("cycles"),
            ),
            (
                "a b:c 7 8.000001: 1 sched:sched_switch: prev_comm=x",
                "a b:c 7",
                None,
                Some(8_000_001_000),
                Some(1),
                Some("sched:sched_switch"),
            ),
            (
                ":-1    -1 [000] 5.000000:  10 cycles:",
                ":-1    -1",
                Some(0),
                Some(5_000_000_000),
                Some(10),
                Some("cycles"),
            ),
            (
                "   42 [000] 5.000000:  10 cycles:",
                "42",
                Some(0),
                Some(5_000_000_000),
                Some(10),
                Some("cycles"),
            ),
            (
                "Web 3 [x] 99 [002] d..1. 7.000000: cycles:",
                "Web 3 [x] 99",
                Some(2),
                Some(7_000_000_000),
                None,
                Some("cycles"),
            ),
            (
                "perf 17 cycles:u: ",
                "perf 17",
                None,
                None,
                None,
                Some("cycles:u"),
            ),
            (
                "perf 17   5 cycles:u: ",
                "perf 17",
                None,
                None,
                Some(5),
                Some("cycles:u"),
            ),
            (
                "old 1 [000] -3.000000: 1 cycles:",
                "old 1",
                Some(0),
                None,
                Some(1),
                Some("cycles"),
            ),
            (
                "x 1 [000] 3.000000: ",
                "x 1",
                Some(0),
                Some(3_000_000_000),
                None,
                None,
            ),
        ];
        let usual_ones = cases
            .iter()
            .filter(|case| usual(case.0.as_bytes()).is_some());
        assert_eq!(usual_ones.count(), 2, "lines of perf by default");
        for line in ODD {
            if let Some(header) = usual(line.as_bytes()) {
                assert_eq!(any(line.as_bytes()), Some(header), "{line}");
            }
        }
        for &(line, task, cpu, time, period, event) in cases {
            let header = parse(line.as_bytes()).expect(line);
            assert_eq!(header.task, task.as_bytes(), "{line}");
            assert_eq!(
                (header.cpu, header.time, header.period),
                (cpu, time, period),
                "{line}"
            );
            assert_eq!(header.event, event.map(str::as_bytes), "{line}");
            assert_eq!(any(line.as_bytes()), Some(header), "{line}");
        }
        for line in [
            "",
            "hello",
            "ffffffff81 f+0x1 ([kernel])",
            "a b c",
            "main;f 12",
        ] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }
}
