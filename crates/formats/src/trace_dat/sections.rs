//! Version 7: options contain the offsets of sections, and sections may be packed.
//!
//! ```text
//! behind the page size: packing\0, its version\0, offset of the first options u64
//! section:  id u16, flags u16 (1: packed), description u32, size u64, bytes
//! packed:   packed size u32, size u32, bytes
//! options:  each id u16, size u32, bytes; id 0 holds the offset of further ones or 0
//! buffer:   offset u64, name\0, clock\0, page size u32, CPUs u32, each CPU u32, offset u64, size u64
//! data:     pages, or packed: number of chunks u32, each packed size u32, size u32, bytes
//! ```

use super::error::ReadError;
use super::input::Input;
use super::meta::{Buffer, CpuData, Meta, is_latency_text, option};
use super::packing::Packing;
use std::borrow::Cow;

const PACKED: u16 = 1;
/// Bytes of the number of chunks before the chunks of a CPU.
const CHUNK_COUNT: u64 = 4;
/// Largest number of option sections in a file; a loop of them would never end.
const MOST_OPTION_SECTIONS: usize = 1 << 12;

/// A section's bytes, unpacked.
struct Section<'a> {
    offset: u64,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Meta<'a> {
    /// Reads version 7 after the page size.
    pub fn read_v7(&mut self, file: &'a [u8], mut at: Input<'a>) -> Result<(), ReadError> {
        let packing = Packing::from_name(at.c_string("the name of the packing")?)?;
        at.c_string("the version of the packing")?;
        let mut next = at.u64("the place of the options")?;
        let mut seen = 0;
        let mut is_text = false;
        while next != 0 {
            seen += 1;
            if seen > MOST_OPTION_SECTIONS {
                let (what, offset) = ("the chain of options", next);
                return Err(ReadError::Malformed { what, offset });
            }
            next = self.options_v7(file, next, packing, &mut is_text)?;
        }
        match self.buffers.is_empty() && is_text {
            true => Err(is_latency_text()),
            false => Ok(()),
        }
    }

    /// Reads a section of options. Returns the offset of the next one, or 0.
    fn options_v7(
        &mut self,
        file: &'a [u8],
        offset: u64,
        packing: Packing,
        is_text: &mut bool,
    ) -> Result<u64, ReadError> {
        let options = section(file, offset, option::DONE, packing)?;
        let mut at = Input::section(&options.bytes, offset);
        loop {
            let id = at.u16("an option")?;
            let size = at.u32("the size of an option")?;
            let value = at.take(size.into(), "an option")?;
            let mut inside = Input::section(value, offset);
            match id {
                option::DONE => return inside.u64("the place of further options"),
                option::BUFFER => self.buffer(file, &mut inside, packing)?,
                option::BUFFER_TEXT => *is_text = true,
                option::HEADER_INFO
                | option::FTRACE_EVENTS
                | option::EVENT_FORMATS
                | option::KALLSYMS
                | option::CMDLINES => {
                    let place = inside.u64("the place of a section")?;
                    self.section(&section(file, place, id, packing)?, id)?;
                }
                _ => self.option(id, value)?,
            }
        }
    }

    fn section(&mut self, section: &Section<'_>, id: u16) -> Result<(), ReadError> {
        let mut at = Input::section(&section.bytes, section.offset);
        match id {
            option::HEADER_INFO => self.header_info(&mut at),
            option::FTRACE_EVENTS => self.ftrace_formats(&mut at),
            option::EVENT_FORMATS => self.event_formats(&mut at),
            option::KALLSYMS => self.kallsyms(&mut at),
            _ => self.command_lines(&mut at),
        }
    }

    fn buffer(
        &mut self,
        file: &'a [u8],
        at: &mut Input<'_>,
        packing: Packing,
    ) -> Result<(), ReadError> {
        let section = at.u64("the place of a buffer")?;
        at.c_string("the name of a buffer")?;
        let clock = at.c_string("the clock of a buffer")?;
        let page_size = at.u32("the page size of a buffer")?;
        let cpus = at.u32("the number of CPUs")?;
        let (flags, _) = section_head(file, section, option::BUFFER)?;
        let packed = (flags & PACKED != 0).then_some(packing);
        let mut buffer = Buffer {
            page_size: page_size_of(page_size, section)?,
            cpus: Vec::new(),
        };
        for _ in 0..cpus {
            let cpu = at.u32("a CPU of a buffer")?;
            let offset = at.u64("the place of a CPU's data")?;
            let size = at.u64("the size of a CPU's data")?;
            // The stated size leaves out the number of chunks.
            let size = match (size, packed) {
                (0, _) | (_, None) => size,
                (size, Some(_)) => size.saturating_add(CHUNK_COUNT),
            };
            let data = CpuData::new(file, cpu, (offset, size));
            buffer.cpus.push(CpuData { packed, ..data });
        }
        let has_data = buffer.cpus.iter().any(|cpu| !cpu.bytes.is_empty());
        match self.buffers.is_empty() && has_data {
            true => {
                self.clock.name(clock);
                self.buffers.push(buffer);
            }
            false => self.other_buffers += u64::from(has_data),
        }
        Ok(())
    }
}

/// The size of a page in bytes, if it is valid: 4 KiB to 64 KiB, and more where the buffer's
/// sub-buffers were enlarged (`buffer_subbuf_size_kb`, since 6.8).
pub(super) fn page_size_of(size: u32, offset: u64) -> Result<usize, ReadError> {
    let what = "the page size";
    match (4096..=64 << 20).contains(&size) {
        true => Ok(size as usize),
        false => Err(ReadError::Malformed { what, offset }),
    }
}

/// Flags of a section and where its bytes are, with their size.
fn section_head<'a>(
    file: &'a [u8],
    offset: u64,
    id: u16,
) -> Result<(u16, (Input<'a>, u64)), ReadError> {
    let mut at = Input::file(file, offset, "a section")?;
    let found = at.u16("a section")?;
    if found != id {
        let what = "the number of a section";
        return Err(ReadError::Malformed { what, offset });
    }
    let flags = at.u16("a section")?;
    at.u32("a section")?;
    let size = at.u64("the size of a section")?;
    Ok((flags, (at, size)))
}

fn section(file: &[u8], offset: u64, id: u16, packing: Packing) -> Result<Section<'_>, ReadError> {
    let (flags, (mut at, size)) = section_head(file, offset, id)?;
    let body = at.take(size, "a section")?;
    if flags & PACKED == 0 {
        let bytes = Cow::Borrowed(body);
        return Ok(Section { offset, bytes });
    }
    let mut inside = Input::section(body, offset);
    let packed = inside.u32("a packed section")?;
    let size = inside.u32("a packed section")?;
    let packed = inside.take(packed.into(), "a packed section")?;
    let mut bytes = Vec::new();
    let what = "a packed section";
    packing
        .unpack(packed, size, &mut bytes)
        .map_err(|_| ReadError::Malformed { what, offset })?;
    let bytes = Cow::Owned(bytes);
    Ok(Section { offset, bytes })
}
