//! What `pagewise trace` writes into a trace next to the kernel's text: comment lines, which other
//! readers skip.
//!
//! ```text
//! # pagewise: {"root_only":{"latency":{…}}}
//! ```
//!
//! Notes of one kind add up, so that a capture can write them as it goes and loses nothing if it is
//! killed.

use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};

/// The start of such a line.
pub const MARK: &str = "# pagewise: ";

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TraceNote {
    /// How the capture was made; its first line.
    Capture(CaptureNote),
    /// Faults of a stretch of time in which only their roots were traced, which are not in the
    /// text: the time of a fault when the calls inside it are not traced.
    RootOnly {
        /// Their latencies in nanoseconds, without interrupts and time off the CPU.
        latency: Histogram,
    },
    /// Functions that are traced from here on.
    Functions {
        /// How many.
        count: u64,
        /// Why others are left out.
        reason: String,
    },
    /// Events that a CPU's buffer lost.
    Lost {
        /// The CPU.
        cpu: u32,
        /// How many.
        events: u64,
    },
}

/// How a capture was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureNote {
    /// The version of pagewise.
    pub version: String,
    /// The kernel's release.
    pub kernel: String,
    /// The program, with its arguments; empty when there was none.
    pub command: Vec<String>,
    /// Where call trees begin.
    pub roots: Vec<String>,
    /// Events in the same stream.
    pub events: Vec<String>,
    /// How deep calls are recorded; 0 is no limit.
    pub depth: u32,
    /// KiB of buffer for each CPU.
    pub buffer_kib: u64,
    /// Whether durations include time asleep.
    pub sleep_time: bool,
}

impl TraceNote {
    /// The line, without its newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        // It contains no maps with unusual keys and no fallible serialisers.
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{MARK}{json}")
    }

    /// The note in a line; `None` if it is not one, or of a kind from a later version.
    #[must_use]
    pub fn of_line(line: &[u8]) -> Option<Self> {
        let json = line.trim_ascii().strip_prefix(MARK.as_bytes())?;
        serde_json::from_slice(json).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_a_comment_line_and_is_read_back() {
        let mut latency = Histogram::default();
        latency.record_many(1_300, 12);
        latency.record(900_000);
        for note in [
            TraceNote::Capture(CaptureNote {
                command: vec!["a b\nc".to_owned()],
                ..CaptureNote::default()
            }),
            TraceNote::RootOnly { latency },
            TraceNote::Lost { cpu: 3, events: 7 },
        ] {
            let line = note.to_line();
            assert!(line.starts_with('#') && !line.contains('\n'), "{line}");
            assert_eq!(TraceNote::of_line(line.as_bytes()), Some(note));
        }
    }

    #[test]
    fn other_comments_are_no_notes() {
        for line in [
            "# tracer: nop",
            "# pagewise: {\"later\":{}}",
            "# pagewise: x",
            "",
        ] {
            assert_eq!(TraceNote::of_line(line.as_bytes()), None, "{line}");
        }
    }
}
