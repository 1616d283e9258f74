//! Files of other tools that Pagewise does not read, by their content: what they are, and how to get
//! what it reads.

/// What an input is that no reader knows; `None` if that is unknown. `head` is unpacked.
pub fn describe(head: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(head);
    KINDS
        .iter()
        .find(|(is, _)| is(head, &text))
        .map(|(_, what)| *what)
}

/// Whether the bytes (also as text) are of this kind, and the message.
type Kind = (fn(&[u8], &str) -> bool, &'static str);

const KINDS: [Kind; 23] = [
    (
        |bytes, _| bytes.starts_with(b"\xfd7zXZ\0"),
        "it is packed by xz: xz -dc FILE | pagewise report -",
    ),
    (
        |bytes, _| bytes.starts_with(b"BZh"),
        "it is packed by bzip2: bzip2 -dc FILE | pagewise report -",
    ),
    (
        |bytes, _| bytes.starts_with(b"\x04\x22\x4d\x18"),
        "it is packed by lz4: lz4 -dc FILE | pagewise report -",
    ),
    (
        |bytes, _| bytes.starts_with(b"PK\x03\x04"),
        "it is a zip archive: unpack it, and give the recording in it",
    ),
    (
        |bytes, _| bytes.get(257..262) == Some(b"ustar"),
        "it is a tar archive: unpack it, and give the recording in it",
    ),
    (
        |bytes, _| bytes.starts_with(b"\x7fELF"),
        "it is a program or a library: pagewise doctor -- FILE runs and observes a program",
    ),
    (
        |bytes, _| bytes.starts_with(b"PAR1"),
        "it is a Parquet table: pagewise fleet asks folders of those that pagewise wrote",
    ),
    (
        |bytes, _| bytes.starts_with(b"FLR\0"),
        "it is a Java Flight Recording: jfrconv FILE stacks.collapsed (async-profiler) makes folded stacks of it",
    ),
    (
        |_, text| text.trim_start().starts_with("<!DOCTYPE html") || text.starts_with("<html"),
        "it is an HTML page: open it in a browser; pagewise report reads recordings, and what --json printed",
    ),
    (
        |_, text| is_json(text) && text.contains("speedscope.app/file-format-schema"),
        "it is a speedscope profile: have its maker write folded stacks (py-spy record -f raw) or perf.data",
    ),
    (
        |_, text| is_json(text) && text.contains("\"linux-perf-json-version\""),
        "it is what perf data convert --to-json wrote: give the perf.data file itself",
    ),
    (
        |_, text| {
            is_json(text) && text.contains("\"traceEvents\"")
                || text.starts_with("[{\"args\"")
                || is_json(text) && text.contains("\"ph\":")
        },
        "it is a trace in Chrome's format: have its maker write folded stacks (py-spy record -f raw) or perf.data",
    ),
    (
        |_, text| {
            is_json(text) && text.contains("\"meta\"") && text.contains("\"processType\"")
                || is_json(text) && text.contains("\"meta\"") && text.contains("\"product\"")
        },
        "it is a profile for profiler.firefox.com (samply, Firefox): record with pagewise record or perf record -g instead",
    ),
    (
        |_, text| {
            is_json(text) && text.contains("\"nodes\"") && text.contains("\"callFrame\"")
                || is_json(text) && text.contains("\"timeDeltas\"")
        },
        "it is a CPU profile of V8: perf record -g -- node --perf-basic-prof PROGRAM makes a recording with JavaScript's names",
    ),
    (
        |_, text| is_version_line(text) && text.contains("\nX "),
        "it is heaptrack's data: heaptrack_print -f FILE reads it; pagewise memory --stacks -- CMD samples allocations",
    ),
    (
        |_, text| text.starts_with("@[") || text.starts_with("Attaching ") || text.contains("\n@["),
        "it is a map that bpftrace printed: stackcollapse-bpftrace.pl (FlameGraph) makes folded stacks of it",
    ),
    (
        |_, text| {
            text.lines()
                .take(20)
                .any(|line| line.starts_with(' ') && line.contains('`') && line.contains("+0x"))
        },
        "it is DTrace's output: stackcollapse.pl (FlameGraph) makes folded stacks of it",
    ),
    (
        |_, text| text.starts_with("# To display the perf.data header info"),
        "it is the text of perf report: give the perf.data file itself, or the text of perf script",
    ),
    (
        |_, text| {
            text.starts_with("# started on ")
                || text
                    .trim_start()
                    .starts_with("Performance counter stats for")
        },
        "it is the result of perf stat, which has no samples: pagewise record -- CMD or perf record -g makes a recording",
    ),
    (
        |_, text| {
            text.lines()
                .take(5)
                .any(|line| line.contains(" ms): ") && line.contains('('))
        },
        "it is the text of perf trace, which has no samples: perf record -g makes a recording",
    ),
    (
        |_, text| text.starts_with("desc: ") && text.contains("\ncmd: "),
        "it is Massif's output: ms_print reads it; pagewise memory -- CMD accounts for a program's memory",
    ),
    (
        |_, text| {
            text.starts_with("# callgrind format")
                || text.contains("\ncreator: callgrind")
                || text.starts_with("creator: callgrind")
        },
        "it is Callgrind's output: callgrind_annotate reads it; pagewise record -- CMD makes a recording",
    ),
    (
        |bytes, _| is_pprof(bytes),
        "it is a profile in pprof's format: go tool pprof -raw FILE | stackcollapse-go.pl (FlameGraph) makes folded stacks of it",
    ),
];

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// heaptrack's first line: `v`, its version and that of the format, in hexadecimal digits.
fn is_version_line(text: &str) -> bool {
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    let is_number = |word: Option<&str>| {
        word.is_some_and(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    words.next() == Some("v") && is_number(words.next()) && is_number(words.next())
}

/// A profile starts with its sample types: field 1, a message of a few bytes that itself starts with
/// field 1 or 2, an index into the texts.
fn is_pprof(bytes: &[u8]) -> bool {
    let Some([0x0a, length @ 2..=12, 0x08 | 0x10]) = bytes.first_chunk::<3>() else {
        return false;
    };
    // The next field is another sample type, or the first sample.
    matches!(bytes.get(2 + usize::from(*length)), Some(0x0a | 0x12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_tools_are_named_with_what_to_do() {
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        for (head, expected) in [
            (&b"\xfd7zXZ\0\0\x04"[..], "xz -dc"),
            (b"BZh91AY&SY", "bzip2 -dc"),
            (b"\x7fELF\x02\x01", "pagewise doctor -- FILE"),
            (&tar, "tar archive"),
            (b"v 10400 3\nX ./wl\nI 1000 5e298d\n", "heaptrack_print"),
            (
                b"@[\n    do_syscall_64+1\n, wl]: 12\n",
                "stackcollapse-bpftrace.pl",
            ),
            (b"\n    libc.so.1`malloc+0x10\n     7\n", "stackcollapse.pl"),
            (
                b"# To display the perf.data header info, please use --header\n",
                "perf report",
            ),
            (b"# started on Mon Nov 30\n\n", "perf stat"),
            (b"\n Performance counter stats for './wl':\n", "perf stat"),
            (b"     0.000 ( 0.004 ms): wl/12 brk() = 0\n", "perf trace"),
            (b"desc: (none)\ncmd: ./x\ntime_unit: i\n", "ms_print"),
            (
                b"version: 1\ncreator: callgrind-3.19\n",
                "callgrind_annotate",
            ),
            (
                b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}",
                "speedscope",
            ),
            (
                b"{\"meta\":{\"version\":29,\"product\":\"Firefox\"},\"libs\":[]}",
                "profiler.firefox.com",
            ),
            (b"{\"traceEvents\":[]}", "Chrome"),
            (b"{\"nodes\":[],\"timeDeltas\":[]}", "V8"),
            (
                b"{\n \"linux-perf-json-version\": 1,\n",
                "perf.data file itself",
            ),
            (
                b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04",
                "go tool pprof -raw",
            ),
        ] {
            let said = describe(head).unwrap_or("nothing");
            assert!(
                said.contains(expected),
                "{}: {said}",
                String::from_utf8_lossy(head)
            );
        }
        for unknown in [
            &b"hello world\n"[..],
            b"{\"a\": 1}",
            b"",
            b"\x0a\x04\x08\x01",
            b"v x\n",
        ] {
            assert_eq!(describe(unknown), None);
        }
    }
}
