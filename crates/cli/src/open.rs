//! The single place that opens inputs named by the user: only a file's content determines its
//! format, by a single table of formats.

use crate::fault_paths::Trace;
use crate::profile_input::Text;
use crate::{bytes, input};
use anyhow::{Context, Error, Result, anyhow};
use pagewise_formats::sniff::{Format, HEAD, sniff};
use pagewise_linux::sys::mapped_file::MappedFile;
use std::io::Read;
use std::path::Path;

/// An input that is already being read; standard input can't be opened again.
type Reader = Box<dyn Read + Send>;

/// A file by its content.
pub enum Opened {
    /// JSON.
    Document(MappedFile),
    /// A function_graph trace.
    Trace(Trace),
    /// The text of a profile.
    Profile(Text, Reader),
    /// perf.data.
    PerfData(MappedFile),
    /// Anything else, from its first byte on.
    Other(Option<Format>, Reader),
}

/// Opens a file, compressed or not, or standard input for `-`.
///
/// # Errors
/// If it can't be read.
pub fn open(path: &Path) -> Result<Opened> {
    if path.is_dir() {
        // Reports why directories are not read.
        return bytes::open(path).map(Opened::PerfData);
    }
    let (head, input) = input::peek(input::open(path)?, HEAD as u64)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(match sniff(&head) {
        Some(Format::Document) => Opened::Document(whole(input, path)?),
        Some(Format::PerfDataFile | Format::PerfDataPipe) => Opened::PerfData(whole(input, path)?),
        Some(Format::TraceDat) => Opened::Trace(Trace::Dat(whole(input, path)?)),
        Some(Format::FunctionGraph) => Opened::Trace(Trace::of_text(input, path)),
        Some(Format::PerfScript) => Opened::Profile(Text::PerfScript, input),
        Some(Format::Folded) => Opened::Profile(Text::Folded, input),
        format @ (Some(Format::MemoryTrace | Format::PagingTrace | Format::Gzip | Format::Zstd)
        | None) => Opened::Other(format, input),
    })
}

/// All bytes of an input that is already being read: a file is mapped anew, a pipe's data goes
/// through a temporary file.
pub fn whole(input: Reader, path: &Path) -> Result<MappedFile> {
    match path.is_file() {
        true => bytes::open(path),
        false => bytes::spooled(input, path),
    }
}

/// What a file is instead, and the command that reads it.
pub fn read_elsewhere(format: Format) -> Option<Error> {
    match format {
        Format::PagingTrace => Some(anyhow!(
            "this is what pagewise run --record-faults wrote: pagewise run --memory SIZE --simulate \
             FILE reads it"
        )),
        Format::MemoryTrace => Some(anyhow!(
            "this is a trace of memory accesses: pagewise huge simulate FILE reads it"
        )),
        Format::Gzip | Format::Zstd => Some(anyhow!(
            "it was packed twice: unpack it once, and give what comes out"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_command_reads_is_told_by_its_mark() {
        let told = |head: &[u8]| {
            sniff(head)
                .and_then(read_elsewhere)
                .map(|error| error.to_string())
        };
        let faults = told(&pagewise_wire::trace::MAGIC).expect("known");
        assert!(faults.contains("--simulate FILE"), "{faults}");
        let accesses = told(&pagewise_formats::memory_trace::MAGIC[..]).expect("known");
        assert!(accesses.contains("huge simulate"), "{accesses}");
        assert_eq!(told(b"main;f 3\n"), None);
    }
}
