//! The tracing-data section: formats of the tracepoints that were recorded.
//!
//! perf refuses a file that holds tracepoint samples without it. The layout is that of trace.dat
//! version 0.6 (tools/perf/util/trace-event-info.c and trace-event-read.c of Linux 6.1):
//!
//! ```text
//! 23 8 68 "tracing" "0.6\0" | endian u8 | long size u8 | page size u32
//! "header_page\0"  size u64, text
//! "header_event\0" size u64, text
//! ftrace formats:  count u32, each size u64 + text
//! event systems:   count u32, each name\0, count u32, each size u64 + text
//! kallsyms size u32 + text | printk formats size u32 + text | saved cmdlines size u64 + text
//! ```

use super::cursor::Cursor;
use std::collections::BTreeMap;

const MAGIC: &[u8] = b"\x17\x08\x44tracing0.6\0";
/// The part of [`MAGIC`] that is the same in every version.
const MAGIC_ANY_VERSION: &[u8] = MAGIC.split_at(10).0;

/// What a reader of tracepoint samples needs, as text files of tracefs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracingData {
    /// Base page size in bytes of the machine that recorded.
    pub page_size: u32,
    /// `events/header_page`.
    pub header_page: String,
    /// `events/header_event`.
    pub header_event: String,
    /// (system, event name, text of `events/SYSTEM/NAME/format`).
    pub events: Vec<(String, String, String)>,
    /// Lines of `/proc/kallsyms`, or empty; perf itself leaves it empty.
    pub kallsyms: String,
    /// Lines `PID NAME`, as tracefs `saved_cmdlines`; may be empty.
    pub saved_cmdlines: String,
}

/// A tracepoint listed in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracepointFormat {
    /// `system:name`.
    pub name: String,
    /// Text of its `format` file.
    pub format: String,
}

impl TracingData {
    /// The section's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&[0, 8]);
        out.extend_from_slice(&self.page_size.to_le_bytes());
        out.extend_from_slice(b"header_page\0");
        push_text64(&mut out, &self.header_page);
        out.extend_from_slice(b"header_event\0");
        push_text64(&mut out, &self.header_event);
        out.extend_from_slice(&0_u32.to_le_bytes());
        self.push_systems(&mut out);
        push_count(&mut out, self.kallsyms.len());
        out.extend_from_slice(self.kallsyms.as_bytes());
        out.extend_from_slice(&0_u32.to_le_bytes());
        push_text64(&mut out, &self.saved_cmdlines);
        out
    }

    fn push_systems(&self, out: &mut Vec<u8>) {
        let mut systems: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (system, _, format) in &self.events {
            systems.entry(system).or_default().push(format);
        }
        push_count(out, systems.len());
        for (system, formats) in systems {
            out.extend_from_slice(system.as_bytes());
            out.push(0);
            push_count(out, formats.len());
            for format in formats {
                push_text64(out, format);
            }
        }
    }
}

/// The tracepoints of a tracing-data section by their numeric id. Stops where the section is
/// damaged, keeping what came before.
#[must_use]
pub(super) fn tracepoints(section: &[u8]) -> BTreeMap<u64, TracepointFormat> {
    let mut found = BTreeMap::new();
    // What follows the events is not needed here, so an early end does no harm.
    let _end = read_events(&mut Cursor(section), &mut found);
    found
}

fn read_events(at: &mut Cursor<'_>, found: &mut BTreeMap<u64, TracepointFormat>) -> Option<()> {
    (at.take(10)? == MAGIC_ANY_VERSION).then_some(())?;
    at.c_string()?;
    let little_endian = at.take(1)? == [0];
    little_endian.then_some(())?;
    at.take(5)?;
    for name in ["header_page\0", "header_event\0"] {
        (at.take(name.len())? == name.as_bytes()).then_some(())?;
        sized_text(at)?;
    }
    for _ in 0..at.u32()? {
        sized_text(at)?;
    }
    for _ in 0..at.u32()? {
        let system = String::from_utf8_lossy(at.c_string()?).into_owned();
        for _ in 0..at.u32()? {
            let format = String::from_utf8_lossy(sized_text(at)?).into_owned();
            if let Some((id, name)) = id_and_name(&format) {
                let name = format!("{system}:{name}");
                found.insert(id, TracepointFormat { name, format });
            }
        }
    }
    Some(())
}

fn sized_text<'a>(at: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let size = at.u64()?;
    at.take_u64(size)
}

/// `name:` and `ID:` lines of a format file.
fn id_and_name(format: &str) -> Option<(u64, &str)> {
    let mut lines = format.lines();
    let name = lines.find_map(|line| line.strip_prefix("name:"))?.trim();
    let id = lines.find_map(|line| line.strip_prefix("ID:"))?;
    Some((id.trim().parse().ok()?, name))
}

fn push_text64(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn push_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> TracingData {
        let format = "name: mm_a\nID: 17\nformat:\n\tfield:int x;\toffset:0;\tsize:4;\tsigned:1;\n";
        TracingData {
            page_size: 4096,
            header_page: "page".into(),
            header_event: "event".into(),
            events: vec![("kmem".into(), "mm_a".into(), format.into())],
            kallsyms: String::new(),
            saved_cmdlines: "1 init\n".into(),
        }
    }

    #[test]
    fn tracepoints_are_found_by_id() {
        let found = tracepoints(&data().to_bytes());
        assert_eq!(found[&17].name, "kmem:mm_a");
        assert!(found[&17].format.contains("field:int x"));
    }

    #[test]
    fn a_cut_section_gives_what_came_before() {
        let bytes = data().to_bytes();
        for end in 0..bytes.len() {
            assert!(tracepoints(&bytes[..end]).len() <= 1);
        }
    }
}
