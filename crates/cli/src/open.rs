//! The single place that opens inputs named by the user: only a file's content determines its
//! format, by a single table of formats.

use crate::fault_paths::Trace;
use crate::{bytes, foreign, input};
use anyhow::{Context, Error, Result, anyhow, bail};
use pagewise_formats::sniff::{Format, HEAD, sniff};
use pagewise_linux::sys::mapped_file::MappedFile;
use std::io::Read;
use std::path::{Path, PathBuf};

/// An input that is already being read; standard input can't be opened again.
type Reader = Box<dyn Read + Send>;

/// A kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// Output of `perf script`.
    PerfScript,
    /// Folded stacks.
    Folded,
}

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
    if let Some(folder) = folder_of_threads(path) {
        bail!(
            "it is one part of the recording {0}, which perf record --threads split into files; these are not supported: perf script -i {0} | pagewise report - reads all of it",
            folder.display()
        );
    }
    if let Some(recording) = in_kcore_folder(path) {
        return open(&recording);
    }
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
        None => match foreign::describe(&head) {
            Some(what) => bail!("{what}"),
            None => Opened::Other(None, input),
        },
        format @ Some(Format::MemoryTrace | Format::PagingTrace | Format::Gzip | Format::Zstd) => {
            Opened::Other(format, input)
        }
    })
}

/// The folder of a recording by `perf record --threads`, if this is a file in one: `data` has the
/// header, `data.0` and so on the records of a thread each.
fn folder_of_threads(path: &Path) -> Option<&Path> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix("data.");
    let is_part = name == "data"
        || number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let folder = path.parent().filter(|_| is_part)?;
    let has = |name: &str| folder.join(name).is_file();
    let is_whole = has("data") && has("data.0") && path.is_file();
    is_whole.then_some(match folder == Path::new("") {
        true => Path::new("."),
        false => folder,
    })
}

/// The recording in a folder by `perf record --kcore`, which has a copy of the kernel's code beside it.
fn in_kcore_folder(path: &Path) -> Option<PathBuf> {
    let recording = path.join("data");
    let is_split = path.join("data.0").exists();
    (path.is_dir() && recording.is_file() && !is_split).then_some(recording)
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
        let message = |head: &[u8]| {
            sniff(head)
                .and_then(read_elsewhere)
                .map(|error| error.to_string())
        };
        let faults = message(&pagewise_wire::trace::MAGIC).expect("known");
        assert!(faults.contains("--simulate FILE"), "{faults}");
        let accesses = message(&pagewise_formats::memory_trace::MAGIC[..]).expect("known");
        assert!(accesses.contains("huge simulate"), "{accesses}");
        assert_eq!(message(b"main;f 3\n"), None);
    }

    #[test]
    fn a_part_of_a_recording_by_threads_names_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("perf.data");
        std::fs::create_dir(&whole).unwrap();
        for name in ["data", "data.0", "data.1"] {
            std::fs::write(whole.join(name), b"PERFILE2").unwrap();
        }
        for name in ["data", "data.1"] {
            let error = open(&whole.join(name))
                .err()
                .expect("it is a part")
                .to_string();
            assert!(
                error.contains("--threads") && error.contains("perf.data |"),
                "{error}"
            );
        }
        let error = open(&whole).err().expect("it is in parts").to_string();
        assert!(error.contains("--threads"), "{error}");
        // The same name elsewhere means nothing.
        assert_eq!(folder_of_threads(&folder.path().join("data.1")), None);
    }

    #[test]
    fn a_folder_with_the_kernels_code_is_its_recording() {
        let folder = tempfile::tempdir().unwrap();
        let error = open(folder.path()).err().expect("it is empty");
        let error = error.to_string();
        assert!(
            error.ends_with("is a directory, not a recording"),
            "{error}"
        );
        std::fs::create_dir(folder.path().join("kcore_dir")).unwrap();
        std::fs::write(folder.path().join("data"), b"main;f 3\n").unwrap();
        let opened = open(folder.path()).expect("a recording");
        assert!(matches!(opened, Opened::Profile(Text::Folded, _)));
    }
}
