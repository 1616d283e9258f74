//! Lines that are not calls: headers, rules, losses, task switches.

use super::columns::pid_behind_name;
use super::line::Content;
use super::number;
use memchr::memmem;
use pagewise_model::trace_note;

/// The meaning of a line that is not a call; `None` when it must be a call.
pub(super) fn parse(line: &[u8]) -> Option<Content<'_>> {
    let text = line.trim_ascii();
    match text.first() {
        None => Some(Content::Decoration),
        Some(b'#') if text.starts_with(trace_note::MARK.as_bytes()) => Some(Content::Note(text)),
        Some(b'#') => Some(buffer_started(text).unwrap_or(Content::Decoration)),
        Some(b'-') if text.iter().all(|&b| b == b'-') => Some(Content::Decoration),
        Some(b'(') => overruns(text),
        Some(b'C') => lost(text),
        Some(b'c' | b'v') => report_preamble(text),
        Some(_) => switch(text),
    }
}

/// `##### CPU 1 buffer started ####`
fn buffer_started(text: &[u8]) -> Option<Content<'_>> {
    let rest = text.strip_prefix(b"##### CPU ")?;
    let (cpu, len) = number::digits(rest)?;
    rest.get(len..)?.strip_prefix(b" buffer started")?;
    Some(Content::BufferStarted {
        cpu: u32::try_from(cpu).ok()?,
    })
}

/// `(Overruns: 0)`
fn overruns(text: &[u8]) -> Option<Content<'_>> {
    let rest = text.strip_prefix(b"(Overruns: ")?;
    let (count, len) = number::digits(rest)?;
    (rest.get(len..)? == b")").then_some(Content::Overruns(count))
}

/// `CPU:0 [LOST 2512 EVENTS]`, `CPU:0 [2512 EVENTS DROPPED]`, `CPU:0 [EVENTS DROPPED]` and
/// `CPU 1 is empty`.
fn lost(text: &[u8]) -> Option<Content<'_>> {
    if text.starts_with(b"CPU ") && text.ends_with(b" is empty") {
        return Some(Content::Decoration);
    }
    let rest = text.strip_prefix(b"CPU:")?;
    let (cpu, len) = number::digits(rest)?;
    let inside = rest
        .get(len..)?
        .trim_ascii()
        .strip_prefix(b"[")?
        .strip_suffix(b"]")?;
    let is_loss = memmem::find(inside, b"EVENTS").is_some()
        && (inside.starts_with(b"LOST") || inside.ends_with(b"DROPPED"));
    let count = inside
        .split(|&b| b == b' ')
        .find_map(|word| number::digits(word).filter(|&(_, len)| len == word.len()));
    is_loss.then_some(Content::Lost {
        cpu: u32::try_from(cpu).ok(),
        events: count.map(|(events, _)| events),
    })
}

/// `cpus=2` and `version = 7` at the head of `trace-cmd report`.
fn report_preamble(text: &[u8]) -> Option<Content<'_>> {
    let rest = text
        .strip_prefix(b"cpus=")
        .or_else(|| text.strip_prefix(b"version = "))?;
    let (_, len) = number::digits(rest)?;
    (len == rest.len()).then_some(Content::Decoration)
}

/// ` 0)     bash-1     =>     wl-343    `
fn switch(text: &[u8]) -> Option<Content<'_>> {
    let (cpu, len) = number::digits(text)?;
    let rest = text.get(len..)?.strip_prefix(b")")?.trim_ascii();
    memmem::find_iter(rest, b" => ").find_map(|at| {
        let from = pid_behind_name(rest[..at].trim_ascii())?;
        let to = pid_behind_name(rest[at + 4..].trim_ascii())?;
        Some(Content::Switch {
            cpu: u32::try_from(cpu).ok(),
            from,
            to,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_every_spelling() {
        let of = |cpu, events| {
            Some(Content::Lost {
                cpu: Some(cpu),
                events,
            })
        };
        assert_eq!(parse(b"CPU:0 [LOST 2512 EVENTS]"), of(0, Some(2512)));
        assert_eq!(parse(b"CPU:12 [2512 EVENTS DROPPED]"), of(12, Some(2512)));
        assert_eq!(parse(b"CPU:1 [EVENTS DROPPED]"), of(1, None));
        assert_eq!(parse(b"CPU:x [LOST 1 EVENTS]"), None);
    }

    #[test]
    fn switches_with_odd_names() {
        let switch = Some(Content::Switch {
            cpu: Some(1),
            from: 198,
            to: 0,
        });
        assert_eq!(parse(b" 1)  mt anon-198   =>    <idle>-0    "), switch);
        assert_eq!(parse(b" 1)  a => b-198   =>    <idle>-0    "), switch);
        assert_eq!(parse(b" 1)  a => b   =>    <idle>-0    "), None);
    }

    #[test]
    fn decoration_and_marks() {
        for line in [
            "",
            "# tracer: function_graph",
            " ------------------------------------------",
            "cpus=1",
            "version = 7",
            "CPU 3 is empty",
        ] {
            assert_eq!(parse(line.as_bytes()), Some(Content::Decoration), "{line}");
        }
        assert_eq!(
            parse(b"##### CPU 1 buffer started ####"),
            Some(Content::BufferStarted { cpu: 1 })
        );
        assert_eq!(parse(b" (Overruns: 3)"), Some(Content::Overruns(3)));
        assert_eq!(parse(b"clear_page_erms();"), None);
        assert_eq!(parse(b"vm_normal_page() {"), None);
        assert_eq!(parse(b"   12.3 |   0)     bash-1 "), None);
    }
}
