//! What kind of file this is, by its first bytes.
//!
//! A new input format adds one line to the table.

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
    /// Something compressed by gzip; sniff again what comes out.
    Gzip,
    /// Something compressed by zstd; sniff again what comes out.
    Zstd,
}

/// Looks at the first bytes of a file.
type Detector = fn(&[u8]) -> bool;

const DETECTORS: [(Format, Detector); 6] = [
    // PERFILE2 and the size of a header: 16 in a pipe. Files of the other byte order and of the
    // format's first version are perf.data too, so that its reader can say why it refuses them.
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
    // RFC 1952, section 2.3.1: two magic bytes, and deflate as the only method.
    (Format::Gzip, |head| head.starts_with(b"\x1f\x8b\x08")),
    // RFC 8878, sections 3.1.1 and 3.1.2: a frame, or a skippable frame before one.
    (Format::Zstd, |head| {
        head.starts_with(b"\x28\xb5\x2f\xfd")
            || (head.get(1..4) == Some(b"\x2a\x4d\x18")
                && head.first().is_some_and(|b| b & 0xf0 == 0x50))
    }),
];

/// Bytes of the start of a file that [`sniff`] needs to recognise each format.
pub const HEAD: usize = 16;

/// The format of a file that begins with these bytes; `None` where no detector knows it.
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
        assert_eq!(sniff(b"\x1f\x8b\x08\0"), Some(Format::Gzip));
        assert_eq!(sniff(b"\x28\xb5\x2f\xfd\x24"), Some(Format::Zstd));
        assert_eq!(sniff(b"\x5a\x2a\x4d\x18"), Some(Format::Zstd));
    }

    #[test]
    fn others_are_not_known() {
        for head in [&b""[..], b"PERF", b"\x7fELF", b"main;f 3\n", b"\x1f\x8b"] {
            assert_eq!(sniff(head), None);
        }
    }
}
