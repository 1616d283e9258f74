//! A function_graph trace, as text or trace.dat.

use crate::bytes;
use anyhow::Result;
use pagewise_formats::function_graph::{self, Cores, Sink, Summary};
use pagewise_formats::trace_dat::TraceDat;
use pagewise_linux::sys::mapped_file::MappedFile;
use std::io::Read;
use std::num::NonZero;
use std::ops::Range;
use std::path::Path;

/// Bytes of a mapped file that stay mapped behind the current position: threads still read them.
const KEPT: usize = 16 << 20;

/// Maximum number of threads that read a trace. Its calls are processed by one thread at a time, so
/// more would wait for one another.
const MOST_THREADS: usize = 8;

fn cores() -> Cores {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    Cores::new(cores.min(MOST_THREADS))
}

/// A function_graph trace.
pub enum Trace {
    /// The kernel's text, or trace-cmd report's.
    Text(Box<dyn Read + Send>),
    /// The same in a file that is not compressed.
    Mapped(MappedFile),
    /// trace.dat.
    Dat(MappedFile),
}

impl Trace {
    /// The text of a file, mapped if possible, or of an input that is already being read.
    pub fn of_text(input: Box<dyn Read + Send>, path: &Path) -> Self {
        // Files of tracefs report a size of 0, and can't be mapped.
        let mapped = bytes::mapped(path).ok().flatten();
        match mapped.filter(|file| !file.is_empty()) {
            Some(file) => Self::Mapped(file),
            None => Self::Text(input),
        }
    }

    /// Passes the trace's complete calls to `sink`.
    ///
    /// # Errors
    /// If reading fails, or the description of records in trace.dat is invalid.
    pub fn read(self, sink: &mut (impl Sink + Send)) -> Result<Summary> {
        match self {
            Self::Text(input) => Ok(function_graph::read_on(cores(), input, sink)?),
            Self::Mapped(text) => {
                let window = |next: Range<usize>| {
                    text.release(next.start.saturating_sub(KEPT));
                    text.expect(next);
                };
                Ok(function_graph::read_memory_on(
                    cores(),
                    &text,
                    window,
                    sink,
                )?)
            }
            Self::Dat(bytes) => Ok(TraceDat::parse(&bytes)?.read(sink)),
        }
    }
}
