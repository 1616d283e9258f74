//! trace.dat, the file of `trace-cmd record`, versions 6 and 7 (trace-cmd.dat.v6(5) and
//! trace-cmd.dat.v7(5)): the same calls as the text of `trace-cmd report`, in nanoseconds.
//!
//! ```text
//! meta, sections   what is where: formats, function names, command names, each CPU's pages
//! stream           the records of one CPU, page by page
//! reader           the records of all CPUs by time, as lines for the one tree builder
//! ```
//!
//! Memory use is the function names and, for each CPU, one chunk of pages if they are packed; pages
//! that are not packed are read in place.
//!
//! Deliberately absent: big-endian files, files of latency tracers (text), the other buffers of
//! a file with several (counted), and arguments of calls, which need the kernel's types.

mod clock;
mod error;
mod format;
mod input;
mod kallsyms;
mod meta;
mod packing;
mod reader;
mod sections;
mod stream;

pub use error::ReadError;

use super::function_graph::{Sink, Summary};
use input::Input;
use meta::Meta;

/// The first bytes of every trace.dat.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// A file with everything read except its records.
#[derive(Debug)]
pub struct TraceDat<'a> {
    meta: Meta<'a>,
    size: u64,
}

impl<'a> TraceDat<'a> {
    /// Reads a file's description of its records.
    ///
    /// # Errors
    /// When it is not a trace.dat, is cut off before its records, or contradicts itself. Records
    /// that are damaged or missing are not an error: [`Self::read`] counts them.
    pub fn parse(file: &'a [u8]) -> Result<Self, ReadError> {
        let mut at = Input::file(file, 0, "the file")?;
        match at.take(MAGIC.len() as u64, "the file") {
            Ok(MAGIC) => {}
            _ => return Err(ReadError::NotTraceDat),
        }
        let version = at.c_string("the version")?;
        if at.u8("the byte order")? != 0 {
            return Err(ReadError::Unsupported {
                what: "a file of a big-endian machine".to_owned(),
                advice: "give the text of trace-cmd report instead",
            });
        }
        at.u8("the size of a long")?;
        let offset = at.offset();
        let page_size = sections::page_size_of(at.u32("the page size")?, offset)?;
        let mut meta = Meta::new();
        match version {
            b"6" => meta.read_v6(file, at, page_size)?,
            b"7" => meta.read_v7(file, at)?,
            other => {
                return Err(ReadError::Unsupported {
                    what: format!("version {} of trace.dat", String::from_utf8_lossy(other)),
                    advice: "give the text of trace-cmd report instead",
                });
            }
        }
        meta.clock.check()?;
        let size = file.len() as u64;
        Ok(Self { meta, size })
    }

    /// Reads all records; complete calls go to `sink` in the order in which they end.
    pub fn read(&self, sink: &mut impl Sink) -> Summary {
        let mut summary = reader::Reader::new(&self.meta).read(sink);
        summary.counts.bytes = self.size;
        summary
    }

    /// The command name of a task, as recorded by the kernel when the recording ended.
    #[must_use]
    pub fn comm(&self, pid: u32) -> Option<&str> {
        self.meta.comms.get(&pid).map(AsRef::as_ref)
    }
}
