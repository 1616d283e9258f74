//! What kind of file this is, by its first bytes: the one table of all inputs.
//!
//! A new input format adds one line to the table.

use super::{folded, function_graph, perf_script};

/// Formats that are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// perf.data as `perf record -o FILE` writes it ([`super::perf_data`]).
    PerfDataFile,
    /// perf.data as `perf record -o -` writes it into a pipe ([`super::perf_data`]).
    PerfDataPipe,
    /// trace.dat as `trace-cmd record` writes it ([`super::trace_dat`]).
    TraceDat,
    /// Our compact file of memory accesses ([`super::memory_trace`]).
    MemoryTrace,
    /// Faults of a paged run, as `pagewise run --record-faults` writes them.
    PagingTrace,
    /// JSON, as `--json` of each command writes it ([`pagewise_model::answer`]).
    Document,
    /// A function_graph trace as text ([`super::function_graph`]).
    FunctionGraph,
    /// Text of `perf script` ([`super::perf_script`]).
    PerfScript,
    /// Folded stacks ([`super::folded`]).
    Folded,
    /// Something compressed by gzip; sniff the decompressed bytes again.
    Gzip,
    /// Something compressed by zstd; sniff the decompressed bytes again.
    Zstd,
}

/// Checks the first bytes of a file.
type Detector = fn(&[u8]) -> bool;

const DETECTORS: [(Format, Detector); 12] = [
    // PERFILE2 and the size of a header: 16 in a pipe. Files of the other byte order and of the
    // format's first version count as perf.data, too, so that its reader can explain why it refuses
    // them.
    (Format::PerfDataPipe, |head| {
        head.starts_with(b"PERFILE2\x10\0\0\0\0\0\0\0")
    }),
    (Format::PerfDataFile, |head| {
        let magics: [&[u8]; 3] = [b"PERFILE2", b"2ELIFREP", b"PERFFILE"];
        magics.iter().any(|magic| head.starts_with(magic))
    }),
    (Format::TraceDat, |head| {
        head.starts_with(super::trace_dat::MAGIC)
    }),
    (Format::MemoryTrace, |head| {
        head.starts_with(super::memory_trace::MAGIC)
    }),
    (Format::PagingTrace, |head| head.starts_with(b"PWFAULTS")),
    // RFC 1952, section 2.3.1: two magic bytes, and deflate as the only method.
    (Format::Gzip, |head| head.starts_with(b"\x1f\x8b\x08")),
    // RFC 8878, sections 3.1.1 and 3.1.2: a frame, or a skippable frame before one.
    (Format::Zstd, |head| {
        head.starts_with(b"\x28\xb5\x2f\xfd")
            || (head.get(1..4) == Some(b"\x2a\x4d\x18")
                && head.first().is_some_and(|b| b & 0xf0 == 0x50))
    }),
    (Format::Document, |head| {
        head.trim_ascii_start().starts_with(b"{")
    }),
    // Texts have no magic bytes: their first lines decide, the strictest format first.
    (Format::FunctionGraph, function_graph::looks_like),
    (Format::PerfScript, perf_script::looks_like),
    (Format::Folded, folded::looks_like),
    (Format::FunctionGraph, function_graph::looks_like_events),
];

/// Bytes from the start of a file that [`sniff`] needs to recognise each format …
pub const HEAD: usize = 16 << 10;
/// … and that [`packed`] needs to recognise compression.
pub const PACKED_HEAD: usize = 16;

/// Whether a file that begins with these bytes is compressed, and by what.
#[must_use]
pub fn packed(head: &[u8]) -> Option<Format> {
    let packers = [Format::Gzip, Format::Zstd];
    let mut packed = DETECTORS.iter().filter(|(one, _)| packers.contains(one));
    packed
        .find(|(_, knows)| knows(head))
        .map(|(format, _)| *format)
}

/// The format of a file that begins with these bytes; `None` where no detector matches.
#[must_use]
pub fn sniff(head: &[u8]) -> Option<Format> {
    let known = DETECTORS.iter().find(|(_, knows)| knows(head));
    known.map(|(format, _)| *format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_is_known_by_its_head() {
        assert_eq!(
            sniff(b"PERFILE2\x68\0\0\0\0\0\0\0"),
            Some(Format::PerfDataFile)
        );
        assert_eq!(
            sniff(b"PERFILE2\x10\0\0\0\0\0\0\0"),
            Some(Format::PerfDataPipe)
        );
        assert_eq!(
            sniff(b"2ELIFREP\0\0\0\0\0\0\0\x10"),
            Some(Format::PerfDataFile)
        );
        assert_eq!(sniff(b"\x17\x08\x44tracing7\0"), Some(Format::TraceDat));
        assert_eq!(sniff(b"PWMTRACE\x01"), Some(Format::MemoryTrace));
        assert_eq!(sniff(b"PWFAULTS\x01"), Some(Format::PagingTrace));
        assert_eq!(sniff(b"\n {\"kind\": \"run\""), Some(Format::Document));
        let trace = b" 0)   0.052 us    |  down_read_trylock();\n";
        assert_eq!(sniff(trace), Some(Format::FunctionGraph));
        let samples = b"app 7 1.000000: 10 cycles: \n\tffffffff81000000 f+0x1 (x)\n\n";
        assert_eq!(sniff(samples), Some(Format::PerfScript));
        assert_eq!(sniff(b"main;f 3\nmain;g 4\n"), Some(Format::Folded));
        assert_eq!(sniff(b"\x1f\x8b\x08\0"), Some(Format::Gzip));
        assert_eq!(sniff(b"\x28\xb5\x2f\xfd\x24"), Some(Format::Zstd));
        assert_eq!(sniff(b"\x5a\x2a\x4d\x18"), Some(Format::Zstd));
    }

    #[test]
    fn others_are_not_known() {
        for head in [
            &b""[..],
            b"PERF",
            b"\x7fELF",
            b"1 -1 2 -1 -2\n",
            b"\x1f\x8b",
        ] {
            assert_eq!(sniff(head), None);
        }
    }
}
