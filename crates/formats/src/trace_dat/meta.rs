//! Everything in a file except the records: the parts common to both versions, in the order of
//! version 6.
//!
//! ```text
//! 23 8 68 "tracing" "6\0" | endian u8 | long size u8 | page size u32
//! "header_page\0"  size u64, text | "header_event\0" size u64, text
//! ftrace formats: count u32, each size u64 + text
//! event systems:  count u32, each name\0, count u32, each size u64 + text
//! kallsyms size u32 + text | printk formats size u32 + text | command lines size u64 + text
//! CPUs u32 | "options  \0", each id u16, size u32, bytes; id 0 ends them
//! "flyrecord\0", each CPU: offset u64, size u64
//! ```

use super::clock::Clock;
use super::error::ReadError;
use super::format::{Field, Format};
use super::input::Input;
use super::kallsyms::Symbols;
use super::packing::Packing;
use rustc_hash::FxHashMap;

/// Largest number of processors in a file; Linux is built for at most 8192.
const MOST_CPUS: u32 = 1 << 16;

/// A file's description of its records.
#[derive(Debug)]
pub(super) struct Meta<'a> {
    pub page: PageHeader,
    /// By id.
    pub formats: Vec<Option<Format>>,
    pub symbols: Symbols,
    pub comms: FxHashMap<u32, Box<str>>,
    pub clock: Clock,
    pub buffers: Vec<Buffer<'a>>,
    /// Buffers of version 6 other than the main one, which are not read.
    pub other_buffers: u64,
}

/// The offsets of the fields of a page's header (`events/header_page`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    /// Offset of the first record.
    pub data: usize,
    /// Offset and size in bytes of the length, which also contains flags.
    pub commit: (usize, usize),
}

/// One ring buffer: the main one or a tracing instance's.
#[derive(Debug)]
pub(super) struct Buffer<'a> {
    pub page_size: usize,
    pub cpus: Vec<CpuData<'a>>,
}

/// The pages of one CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuData<'a> {
    pub cpu: u32,
    pub bytes: &'a [u8],
    /// Bytes that should follow but are beyond the end of the file.
    pub missing: u64,
    /// Set if the bytes are packed chunks.
    pub packed: Option<Packing>,
}

impl<'a> CpuData<'a> {
    /// The part of the `size` bytes at `offset` that the file contains.
    pub fn new(file: &'a [u8], cpu: u32, (offset, size): (u64, u64)) -> Self {
        let len = file.len() as u64;
        let start = offset.min(len);
        let end = offset.saturating_add(size).min(len);
        let at = |place: u64| usize::try_from(place).unwrap_or(file.len());
        Self {
            cpu,
            bytes: &file[at(start)..at(end)],
            missing: size - (end - start),
            packed: None,
        }
    }
}

impl<'a> Meta<'a> {
    pub fn new() -> Self {
        Self {
            page: PageHeader {
                data: 16,
                commit: (8, 8),
            },
            formats: Vec::new(),
            symbols: Symbols::default(),
            comms: FxHashMap::default(),
            clock: Clock::default(),
            buffers: Vec::new(),
            other_buffers: 0,
        }
    }

    /// Reads version 6 after the page size.
    pub fn read_v6(
        &mut self,
        file: &'a [u8],
        mut at: Input<'a>,
        page: usize,
    ) -> Result<(), ReadError> {
        self.header_info(&mut at)?;
        self.ftrace_formats(&mut at)?;
        self.event_formats(&mut at)?;
        self.kallsyms(&mut at)?;
        let printk = at.u32("the size of the printk formats")?;
        at.take(printk.into(), "the printk formats")?;
        self.command_lines(&mut at)?;
        let offset = at.offset();
        let cpus = at.u32("the number of CPUs")?;
        if cpus > MOST_CPUS {
            let what = "the number of CPUs";
            return Err(ReadError::Malformed { what, offset });
        }
        let kind = self.options_v6(&mut at)?;
        match kind {
            b"flyrecord\0" => {}
            b"latency  \0" => return Err(is_latency_text()),
            _ => {
                let (what, offset) = ("the kind of data", at.offset());
                return Err(ReadError::Malformed { what, offset });
            }
        }
        let places = (0..cpus).map(|cpu| {
            let place = (
                at.u64("the place of a CPU's data")?,
                at.u64("the size of a CPU's data")?,
            );
            Ok(CpuData::new(file, cpu, place))
        });
        self.buffers.push(Buffer {
            page_size: page,
            cpus: places.collect::<Result<_, _>>()?,
        });
        Ok(())
    }

    /// Reads options, if any, and returns the word after them.
    fn options_v6(&mut self, at: &mut Input<'a>) -> Result<&'a [u8], ReadError> {
        let word = at.take(10, "the kind of data")?;
        if word != b"options  \0" {
            return Ok(word);
        }
        loop {
            let id = at.u16("an option")?;
            if id == option::DONE {
                return at.take(10, "the kind of data");
            }
            let size = at.u32("the size of an option")?;
            let value = at.take(size.into(), "an option")?;
            match id {
                option::BUFFER => self.other_buffers += 1,
                _ => self.option(id, value)?,
            }
        }
    }

    /// An option of the same form in both versions.
    pub fn option(&mut self, id: u16, value: &[u8]) -> Result<(), ReadError> {
        match id {
            option::TRACECLOCK => self.clock.name(value),
            option::TSC2NSEC => self.clock.scale(value),
            _ => {}
        }
        Ok(())
    }

    pub fn header_info(&mut self, at: &mut Input<'_>) -> Result<(), ReadError> {
        at.expect(b"header_page\0", "the description of a page")?;
        let offset = at.offset();
        let text = String::from_utf8_lossy(at.sized("the description of a page")?);
        // A file without the description has the usual layout.
        if !text.trim().is_empty() {
            let page = PageHeader::parse(&text);
            let what = "the description of a page";
            self.page = page.ok_or(ReadError::Malformed { what, offset })?;
        }
        at.expect(b"header_event\0", "the description of records")?;
        at.sized("the description of records")?;
        Ok(())
    }

    pub fn ftrace_formats(&mut self, at: &mut Input<'_>) -> Result<(), ReadError> {
        for _ in 0..at.u32("the number of tracer formats")? {
            self.format(at.sized("a tracer's format")?);
        }
        Ok(())
    }

    pub fn event_formats(&mut self, at: &mut Input<'_>) -> Result<(), ReadError> {
        for _ in 0..at.u32("the number of event systems")? {
            at.c_string("the name of an event system")?;
            for _ in 0..at.u32("the number of events")? {
                self.format(at.sized("an event's format")?);
            }
        }
        Ok(())
    }

    /// Adds a format; records of a format that cannot be read are counted when they occur.
    fn format(&mut self, text: &[u8]) {
        let Some(format) = Format::parse(text) else {
            return;
        };
        let id = usize::from(format.id);
        if id >= self.formats.len() {
            self.formats.resize(id + 1, None);
        }
        self.formats[id] = Some(format);
    }

    pub fn kallsyms(&mut self, at: &mut Input<'_>) -> Result<(), ReadError> {
        let size = at.u32("the size of the function names")?;
        self.symbols = Symbols::parse(at.take(size.into(), "the function names")?);
        Ok(())
    }

    /// Lines `PID NAME`.
    pub fn command_lines(&mut self, at: &mut Input<'_>) -> Result<(), ReadError> {
        let text = String::from_utf8_lossy(at.sized("the command names")?);
        for line in text.lines() {
            if let Some((pid, comm)) = line.trim_start().split_once(' ')
                && let Ok(pid) = pid.parse()
            {
                self.comms.insert(pid, comm.into());
            }
        }
        Ok(())
    }
}

impl PageHeader {
    fn parse(text: &str) -> Option<Self> {
        let format = Format::parse(format!("name: page\nID: 0\n{text}").as_bytes())?;
        let commit = format.field("commit").filter(|f| matches!(f.size, 4 | 8));
        let (commit, data): (&Field, &Field) = (commit?, format.field("data")?);
        (data.offset < 4096 && commit.offset + commit.size <= data.offset && data.offset >= 8)
            .then_some(Self {
                data: data.offset,
                commit: (commit.offset, commit.size),
            })
    }
}

pub(super) fn is_latency_text() -> ReadError {
    ReadError::Unsupported {
        what: "a file of trace-cmd's latency tracers, which holds text instead of records,".into(),
        advice: "record with trace-cmd record -p function_graph",
    }
}

/// The options that are used (`lib/trace-cmd/include/private/trace-cmd-private.h`).
pub(super) mod option {
    pub const DONE: u16 = 0;
    pub const BUFFER: u16 = 3;
    pub const TRACECLOCK: u16 = 4;
    pub const TSC2NSEC: u16 = 14;
    pub const HEADER_INFO: u16 = 16;
    pub const FTRACE_EVENTS: u16 = 17;
    pub const EVENT_FORMATS: u16 = 18;
    pub const KALLSYMS: u16 = 19;
    pub const CMDLINES: u16 = 21;
    pub const BUFFER_TEXT: u16 = 22;
}
