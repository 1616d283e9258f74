//! The columns in front of the call text, found by their shape.
//!
//! Every column is an option of the tracer, so nothing is assumed present:
//!
//! ```text
//!    63.821548 |   0)     bash-1     |  ...1. | + 11.766 us   |      } /* __alloc_pages */
//!    time          cpu    task          flags    duration        call text
//!
//!  redis-benchmark-196   [000]   139.378346: funcgraph_exit:   + 11.472 us  |          }
//!  task                  cpu     time                          duration       call text
//! ```
//!
//! Finding them byte by byte is slow, but lines of one trace look alike: the position of the
//! columns is kept as a [`Layout`], and the next line is read at the same offsets if the separators
//! are there, too.

use super::line::Span;
use super::number;
use memchr::{memchr, memmem};

/// The header of a trace: what its lines do not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The tracer: `function_graph`.
    pub tracer: Option<String>,
    /// The kernel's release, where the header contains it (latency format).
    pub kernel: Option<String>,
    /// There is a column with flags of the interrupt and preemption state (latency format).
    pub latency_format: bool,
    /// Times are relative to the start of a latency trace.
    pub relative_time: bool,
}

impl Header {
    /// Whether lines mean the same under both.
    pub(super) fn reads_like(&self, other: &Self) -> bool {
        self.latency_format == other.latency_format && self.relative_time == other.relative_time
    }

    /// Takes in a line that begins with `#`.
    pub(super) fn note(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        if let Some(tracer) = text.strip_prefix("# tracer: ") {
            self.tracer = Some(tracer.trim().to_owned());
        }
        if let Some((_, kernel)) = text.split_once(" latency trace v1.1.5 on ") {
            self.kernel = Some(kernel.trim().to_owned());
        }
        self.latency_format |= text.contains("=> irqs-off");
        self.relative_time |= text.contains("REL TIME");
    }
}

/// The columns of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Columns {
    pub time: Option<u64>,
    pub cpu: Option<u32>,
    pub pid: Option<u32>,
    pub span: Option<Span>,
    /// Where the call text begins, indentation included.
    pub call: usize,
    /// There is an interrupt arrow in the duration column.
    pub arrow: Option<Arrow>,
    /// The line is an event of another tracer (`trace-cmd report` has no comments for them).
    pub event: bool,
    /// The positions of the columns.
    pub layout: Layout,
    /// Something about this line forbids reading the next one at the same offsets.
    pub irregular: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrow {
    Enter,
    Exit,
}

/// The positions of the columns of a line; offsets in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Offset of the point of the time; 0 without a time.
    pub dot: usize,
    /// The columns of CPU and task, the bytes that identify the running task; empty without both.
    pub who: (usize, usize),
    /// Offset of the duration's first digit and of the bar after it; 0 without durations.
    pub number: usize,
    pub bar: usize,
    /// Offset of the call text.
    pub call: usize,
}

/// Reads the columns of a line of the kernel's own text.
pub(super) fn kernel(line: &[u8], header: &Header) -> Option<Columns> {
    let mut columns = Columns::default();
    let mut at = absolute_time(line, &mut columns);
    at = relative_time(line, at, header, &mut columns);
    let who = at;
    at = cpu(line, at, &mut columns);
    at = task(line, at, &mut columns);
    columns.layout.who = (who, at);
    at = flags(line, at, header);
    at = duration(line, at, &mut columns)?;
    columns.call = at;
    columns.layout.call = at;
    Some(columns)
}

fn blanks(line: &[u8], at: usize) -> usize {
    let rest = line.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|&&b| b == b' ').count()
}

/// `%5lu.%06lu |  `
fn absolute_time(line: &[u8], columns: &mut Columns) -> usize {
    let start = blanks(line, 0);
    let Some((time, len)) = seconds(&line[start..]) else {
        return 0;
    };
    let end = start + len;
    if line.get(end..end + 2) != Some(b" |") {
        return 0;
    }
    columns.time = Some(time);
    columns.layout.dot = end - 7;
    end + 2
}

/// `63.821548` in nanoseconds; nine decimals are read, too (`trace-cmd report -t`).
pub(super) fn seconds(text: &[u8]) -> Option<(u64, usize)> {
    let (whole, len) = number::digits(text)?;
    let decimals = text.get(len..)?.strip_prefix(b".")?;
    let (fraction, places) = number::digits(decimals)?;
    let scale = match places {
        6 => 1000,
        9 => 1,
        _ => return None,
    };
    let time = whole
        .checked_mul(1_000_000_000)?
        .checked_add(fraction * scale)?;
    Some((time, len + 1 + places))
}

/// `%4llu us |  `, the column REL TIME of latency tracers.
fn relative_time(line: &[u8], at: usize, header: &Header, columns: &mut Columns) -> usize {
    let start = blanks(line, at);
    let Some((micros, len)) = number::digits(&line[start..]) else {
        return at;
    };
    let end = start + len;
    if !header.relative_time || line.get(end..end + 5) != Some(b" us |") {
        return at;
    }
    columns.time = columns.time.or(micros.checked_mul(1000));
    columns.irregular = true;
    end + 5
}

/// ` 0) `
fn cpu(line: &[u8], at: usize, columns: &mut Columns) -> usize {
    let start = blanks(line, at);
    let Some((cpu, len)) = number::digits(&line[start..]) else {
        return at;
    };
    if line.get(start + len) != Some(&b')') {
        return at;
    }
    columns.cpu = u32::try_from(cpu).ok();
    start + len + 1
}

/// ` bash-1 | `: seven characters of the command name, which may contain anything, a dash and the
/// thread id, centred.
fn task(line: &[u8], at: usize, columns: &mut Columns) -> usize {
    let rest = line.get(at..).unwrap_or_default();
    for bar in memchr::memchr_iter(b'|', rest).take_while(|&bar| bar < 40) {
        let field = &rest[..bar];
        let Some(trimmed) = field.strip_suffix(b" ").map(<[u8]>::trim_ascii) else {
            continue;
        };
        if let Some(pid) = pid_behind_name(trimmed) {
            columns.pid = Some(pid);
            return at + bar + 1;
        }
    }
    at
}

/// The id of `comm-123`.
pub(super) fn pid_behind_name(text: &[u8]) -> Option<u32> {
    let dash = memchr::memrchr(b'-', text)?;
    let (pid, len) = number::digits(&text[dash + 1..])?;
    if dash + 1 + len != text.len() {
        return None;
    }
    u32::try_from(pid).ok()
}

const FLAG_CHARACTERS: &[u8] = b".dDXBbnNpPlLhHsSzZaf*0123456789";

/// ` ...1. | ` (five to eight characters), on 4.18 four characters without the bar.
fn flags(line: &[u8], at: usize, header: &Header) -> usize {
    let start = blanks(line, at);
    let rest = &line[start..];
    let len = rest
        .iter()
        .take_while(|b| FLAG_CHARACTERS.contains(b))
        .count();
    let followed_by_bar = rest.get(len..len + 2) == Some(b" |");
    let known = (3..=10).contains(&len) && followed_by_bar;
    let bare = len == 4 && header.latency_format && rest.get(4) == Some(&b' ');
    match (known, bare) {
        (true, _) => start + len + 2,
        (_, true) => start + len,
        _ => at,
    }
}

/// `+ 11.766 us   |  `, blanks and the bar, an interrupt arrow, or no such column at all.
fn duration(line: &[u8], at: usize, columns: &mut Columns) -> Option<usize> {
    let mut start = blanks(line, at);
    let rest = line.get(start..)?;
    if let [b'$' | b'@' | b'*' | b'#' | b'!' | b'+', b' ', ..] = rest {
        start = blanks(line, start + 1);
    }
    if let Some((span, len)) = number::duration(&line[start..]) {
        let bar = blanks(line, start + len);
        if line.get(bar) == Some(&b'|') {
            columns.span = Some(span);
            columns.layout.number = start;
            columns.layout.bar = bar;
            return Some(after_bar(line, bar));
        }
    }
    if rest.first() == Some(&b'|') && rest.get(1).is_none_or(|&b| b == b' ') {
        columns.irregular = true;
        return Some(after_bar(line, start));
    }
    columns.arrow = arrow(rest);
    if columns.arrow.is_some() {
        columns.irregular = true;
        return Some(line.len());
    }
    Some(if at == 0 {
        0
    } else {
        at + usize::from(line.get(at) == Some(&b' '))
    })
}

/// Two blanks follow the bar; the call's own indentation comes after them.
fn after_bar(line: &[u8], bar: usize) -> usize {
    (bar + 3).min(line.len())
}

fn arrow(rest: &[u8]) -> Option<Arrow> {
    let text = rest.trim_ascii();
    let text = text.strip_suffix(b"|").unwrap_or(text).trim_ascii_end();
    match text {
        b"==========>" => Some(Arrow::Enter),
        b"<==========" => Some(Arrow::Exit),
        _ => None,
    }
}

/// Reads the columns of a line of `trace-cmd report`: ` comm-pid [cpu] flags time: event: …`.
pub(super) fn report(line: &[u8]) -> Option<Columns> {
    let mut columns = Columns::default();
    let bracket = task_end(line, &mut columns)?;
    let close = bracket + memchr(b']', &line[bracket..])?;
    let (cpu, len) = number::digits(&line[bracket + 1..])?;
    if bracket + 1 + len != close {
        return None;
    }
    columns.cpu = u32::try_from(cpu).ok();
    columns.layout.who = (0, close + 1);
    let time_end = report_time(line, close + 1, &mut columns)?;
    report_event(line, time_end, columns)
}

/// The task column ends at the bracket of the CPU; the name may also contain brackets.
fn task_end(line: &[u8], columns: &mut Columns) -> Option<usize> {
    let start = blanks(line, 0);
    for open in memmem::find_iter(line, b" [") {
        if let Some(pid) = pid_behind_name(line.get(start..open)?.trim_ascii_end()) {
            columns.pid = Some(pid);
            return Some(open + 1);
        }
    }
    None
}

/// The time is the first word that ends in a colon; a word of flags may come before it.
fn report_time(line: &[u8], at: usize, columns: &mut Columns) -> Option<usize> {
    let mut start = blanks(line, at);
    for _ in 0..2 {
        if let Some((time, len)) = seconds(&line[start..])
            && line.get(start + len) == Some(&b':')
        {
            columns.time = Some(time);
            let micros = memchr(b'.', &line[start..])? + start;
            let six_places = start + len - micros == 7;
            columns.layout.dot = micros;
            columns.irregular |= !six_places;
            return Some(start + len + 1);
        }
        start = blanks(line, start + memchr(b' ', &line[start..])?);
    }
    None
}

fn report_event(line: &[u8], at: usize, mut columns: Columns) -> Option<Columns> {
    let mut start = blanks(line, at);
    if line.get(start..start + 2) == Some(b"(+") {
        start = blanks(line, start + memchr(b')', &line[start..])? + 1);
    }
    let rest = &line[start..];
    let is_call = rest.starts_with(b"funcgraph_entry:") || rest.starts_with(b"funcgraph_exit:");
    columns.call = start;
    columns.event = !is_call;
    columns.irregular |= !is_call;
    if is_call {
        let colon = start + memchr(b':', rest)? + 1;
        columns.call = duration(line, colon, &mut columns)?;
        columns.layout.call = columns.call;
    }
    Some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call_of(line: &str) -> (Columns, &str) {
        let columns = kernel(line.as_bytes(), &Header::default()).expect("a line of a trace");
        (columns, &line[columns.call..])
    }

    #[test]
    fn columns_of_every_combination_of_options() {
        let full = "   63.821548 |   0)     bash-1     |  ...1. | + 11.766 us   |      } /* f */";
        let (columns, call) = call_of(full);
        assert_eq!(columns.time, Some(63_821_548_000));
        assert_eq!((columns.cpu, columns.pid), (Some(0), Some(1)));
        assert_eq!(
            columns.span,
            Some(Span {
                ns: 11_766,
                tick: 1
            })
        );
        assert_eq!(call, "    } /* f */");
        for (line, cpu, pid, ns, text) in [
            (
                " 0)   0.670 us    |  f();",
                Some(0),
                None,
                Some(670),
                "f();",
            ),
            (" 0)               |  f() {", Some(0), None, None, "f() {"),
            (
                " 11)  mt anon-198   |               |    f() {",
                Some(11),
                Some(198),
                None,
                "  f() {",
            ),
            (
                "   71.533529 |   0)     bash-1     |   f();",
                Some(0),
                Some(1),
                None,
                "  f();",
            ),
            (
                "   73.865529 |      bash-1     |   0.670 us    |  f();",
                None,
                Some(1),
                Some(670),
                "f();",
            ),
            ("  f();", None, None, None, "  f();"),
            ("f() {", None, None, None, "f() {"),
            (
                "   1)    <idle>-0    | $ 1000000 us  |  } /* f */",
                Some(1),
                Some(0),
                Some(1_000_000_000),
                "} /* f */",
            ),
            (
                " 0)  a|b-c - -17   | # 12321.24 us |    f();",
                Some(0),
                Some(17),
                Some(12_321_240),
                "  f();",
            ),
            (
                " 0) + 29. 90 us   |  f();",
                Some(0),
                None,
                Some(29_090),
                "f();",
            ),
        ] {
            let (columns, call) = call_of(line);
            assert_eq!((columns.cpu, columns.pid), (cpu, pid), "{line}");
            assert_eq!(columns.span.map(|s| s.ns), ns, "{line}");
            assert_eq!(call, text, "{line}");
        }
    }

    #[test]
    fn flags_of_linux_4_18_have_no_bar() {
        let header = Header {
            latency_format: true,
            ..Header::default()
        };
        let line = b"   12.345678 |   0)     bash-1     | d..1   0.670 us    |  f();";
        let columns = kernel(line, &header).expect("a line");
        assert_eq!(columns.span.map(|s| s.ns), Some(670));
        assert_eq!(&line[columns.call..], b"f();");
    }

    #[test]
    fn relative_times_need_the_header() {
        let header = Header {
            relative_time: true,
            ..Header::default()
        };
        let line = b"  12 us |   0)   0.670 us    |  f();";
        let columns = kernel(line, &header).expect("a line");
        assert_eq!((columns.time, columns.cpu), (Some(12_000), Some(0)));
        assert_eq!(columns.span.map(|s| s.ns), Some(670));
    }

    #[test]
    fn arrows_of_interrupts() {
        assert_eq!(call_of(" 0)   ==========> |").0.arrow, Some(Arrow::Enter));
        let line = "   87.702230 |   0)     bash-1     |   <========== |";
        assert_eq!(call_of(line).0.arrow, Some(Arrow::Exit));
    }

    #[test]
    fn lines_of_trace_cmd() {
        let text = " redis-benchmark-196   [000]   139.378346: funcgraph_entry:        0.670 us   |  mutex_unlock();";
        let columns = report(text.as_bytes()).expect("a line");
        assert_eq!(columns.time, Some(139_378_346_000));
        assert_eq!((columns.cpu, columns.pid), (Some(0), Some(196)));
        assert_eq!(&text[columns.call..], "mutex_unlock();");
        let text = "  kworker/0:1 [x]-17  [003] d..2   139.378346123: (+12) funcgraph_exit:       + 11.472 us  |          }";
        let columns = report(text.as_bytes()).expect("a line");
        assert_eq!(columns.time, Some(139_378_346_123));
        assert_eq!(&text[columns.call..], "        }");
        let text = "            bash-1     [000]    10.000001: sched_switch:         bash:1 [120] R ==> wl:7 [120]";
        let columns = report(text.as_bytes()).expect("a line");
        assert!(columns.event);
        assert!(text[columns.call..].starts_with("sched_switch: "));
    }
}
