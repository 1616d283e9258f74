//! Writes the compact file.

use super::pages::Encoder;
use super::{Error, MAGIC, Mapping, VERSION, VERSION_BY_PAGE, varint};
use std::io::Write;

/// Number of accesses in a block.
const BLOCK: usize = 1 << 16;

/// Writes a trace while it is recorded.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    thread: u64,
    instructions: u64,
    count: u64,
    writes: u64,
    previous: u64,
    deltas: Vec<u8>,
    /// Present if blocks are by page.
    pages: Option<Encoder>,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// When writing fails.
    pub fn new(out: W) -> Result<Self, Error> {
        Self::start(out, VERSION, None)
    }

    /// Starts a file that records pages of 4 KiB, not addresses.
    ///
    /// # Errors
    /// When writing fails.
    pub fn by_page(out: W) -> Result<Self, Error> {
        Self::start(out, VERSION_BY_PAGE, Some(Encoder::new()))
    }

    fn start(mut out: W, version: u8, pages: Option<Encoder>) -> Result<Self, Error> {
        out.write_all(MAGIC)?;
        out.write_all(&[version])?;
        Ok(Self {
            out,
            thread: 0,
            instructions: 0,
            count: 0,
            writes: 0,
            previous: 0,
            deltas: Vec::new(),
            pages,
            written: 0,
        })
    }

    /// Adds an access of `thread`.
    ///
    /// # Errors
    /// When writing fails or the address is not canonical.
    pub fn access(&mut self, thread: u64, address: u64, is_write: bool) -> Result<(), Error> {
        let is_canonical = (address >> 63) == ((address >> 62) & 1);
        if !is_canonical || self.pages.is_some() && !Encoder::holds(address) {
            return Err(Error::Address { address });
        }
        if thread != self.thread || self.count as usize >= BLOCK {
            self.flush()?;
            self.thread = thread;
        }
        self.count += 1;
        self.writes += u64::from(is_write);
        if let Some(pages) = &mut self.pages {
            pages.access(address);
            return Ok(());
        }
        let value = (address << 1) | u64::from(is_write);
        let delta = value.wrapping_sub(self.previous);
        varint::put(&mut self.deltas, varint::zigzag(delta));
        self.previous = value;
        Ok(())
    }

    /// Adds instructions that the thread of the last access executed.
    pub fn instructions(&mut self, executed: u64) {
        self.instructions += executed;
    }

    /// Adds a mapping.
    ///
    /// # Errors
    /// When writing fails.
    pub fn mapping(&mut self, mapping: &Mapping) -> Result<(), Error> {
        self.flush()?;
        let mut payload = Vec::new();
        varint::put(&mut payload, mapping.start);
        varint::put(&mut payload, mapping.bytes);
        varint::put(&mut payload, u64::from(mapping.is_anonymous));
        payload.extend_from_slice(mapping.name.as_bytes());
        self.block(2, &payload)
    }

    /// Adds a note.
    ///
    /// # Errors
    /// When writing fails.
    pub fn note(&mut self, text: &str) -> Result<(), Error> {
        self.flush()?;
        self.block(3, text.as_bytes())
    }

    /// Ends the file; `dropped` accesses were left out.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(mut self, dropped: u64) -> Result<W, Error> {
        self.flush()?;
        let mut payload = Vec::new();
        varint::put(&mut payload, self.written);
        varint::put(&mut payload, dropped);
        self.block(127, &payload)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.count == 0 && self.instructions == 0 {
            return Ok(());
        }
        let mut payload = Vec::with_capacity(self.deltas.len() + 16);
        varint::put(&mut payload, self.thread);
        varint::put(&mut payload, self.instructions);
        varint::put(&mut payload, self.count);
        let kind = match &mut self.pages {
            Some(pages) => {
                varint::put(&mut payload, self.writes);
                payload.append(&mut pages.finish());
                4
            }
            None => {
                payload.append(&mut self.deltas);
                1
            }
        };
        self.written += self.count;
        (self.count, self.writes) = (0, 0);
        (self.instructions, self.previous) = (0, 0);
        self.block(kind, &payload)
    }

    fn block(&mut self, kind: u8, payload: &[u8]) -> Result<(), Error> {
        let mut head = vec![kind];
        varint::put(&mut head, payload.len() as u64);
        self.out.write_all(&head)?;
        self.out.write_all(payload)?;
        Ok(())
    }
}
