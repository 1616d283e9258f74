//! Reads the compact file.

use super::pages::{Run, decode};
use super::{
    Accesses, Batch, Error, MAGIC, MOST_PAYLOAD, Mapping, Summary, VERSION, VERSION_BY_PAGE, varint,
};
use std::io::{self, BufRead, Read};

pub fn read(input: impl BufRead, take: &mut dyn FnMut(&Batch<'_>)) -> Result<Summary, Error> {
    let mut reader = Reader {
        input,
        offset: 0,
        payload: Vec::new(),
        addresses: Vec::new(),
        runs: Vec::new(),
        summary: Summary::default(),
    };
    reader.head()?;
    while let Some(kind) = reader.block()? {
        reader.payload(kind, take)?;
    }
    Ok(reader.summary)
}

struct Reader<R> {
    input: R,
    /// Bytes before the current payload.
    offset: u64,
    payload: Vec<u8>,
    addresses: Vec<u64>,
    runs: Vec<Run>,
    summary: Summary,
}

impl<R: BufRead> Reader<R> {
    fn spoilt(&self, what: impl Into<String>) -> Error {
        Error::Spoilt {
            offset: self.offset,
            what: what.into(),
        }
    }

    fn head(&mut self) -> Result<(), Error> {
        let mut head = [0; MAGIC.len() + 1];
        let found = fill(&mut self.input, &mut head)?;
        if found < head.len() || &head[..MAGIC.len()] != MAGIC {
            return Err(self.spoilt("expected \"PWMTRACE\" and a version"));
        }
        let found = head[MAGIC.len()];
        if ![VERSION, VERSION_BY_PAGE].contains(&found) {
            return Err(Error::Version { found });
        }
        self.offset = head.len() as u64;
        Ok(())
    }

    /// Reads the next block's payload; `None` at the end, also inside a block that was cut short.
    fn block(&mut self) -> Result<Option<u8>, Error> {
        let Some(kind) = self.byte()? else {
            return Ok(None);
        };
        if self.summary.is_complete {
            return Err(self.spoilt("more follows the end of the trace"));
        }
        let mut length = Vec::new();
        let length = loop {
            let Some(byte) = self.byte()? else {
                return Ok(None);
            };
            length.push(byte);
            if byte < 0x80 || length.len() > 9 {
                break varint::take(&mut length.as_slice());
            }
        };
        let Some(length) = length.filter(|&length| length <= MOST_PAYLOAD) else {
            return Err(self.spoilt("a block's length exceeds 16 MiB"));
        };
        self.payload.clear();
        let read = self
            .input
            .by_ref()
            .take(length)
            .read_to_end(&mut self.payload)?;
        if (read as u64) < length {
            return Ok(None);
        }
        Ok(Some(kind))
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let found = fill(&mut self.input, &mut byte)?;
        self.offset += found as u64;
        Ok((found == 1).then_some(byte[0]))
    }

    fn payload(&mut self, kind: u8, take: &mut dyn FnMut(&Batch<'_>)) -> Result<(), Error> {
        let payload = std::mem::take(&mut self.payload);
        let result = match kind {
            1 => self.accesses(&payload, take),
            2 => self.mapping(&payload),
            3 => {
                let note = String::from_utf8_lossy(&payload).into_owned();
                self.summary.notes.push(note);
                Ok(())
            }
            4 => self.pages(&payload, take),
            127 => self.end(&payload),
            _ => {
                self.summary.unknown += 1;
                Ok(())
            }
        };
        self.offset += payload.len() as u64;
        self.payload = payload;
        result
    }

    fn accesses(
        &mut self,
        mut bytes: &[u8],
        take: &mut dyn FnMut(&Batch<'_>),
    ) -> Result<(), Error> {
        let head = || "expected thread, instructions and a number of accesses";
        let bytes = &mut bytes;
        let (Some(thread), Some(instructions), Some(count)) = (
            varint::take(bytes),
            varint::take(bytes),
            varint::take(bytes),
        ) else {
            return Err(self.spoilt(head()));
        };
        if count > bytes.len() as u64 {
            return Err(self.spoilt(format!(
                "{count} accesses can't be in {} bytes",
                bytes.len()
            )));
        }
        let mut addresses = std::mem::take(&mut self.addresses);
        addresses.clear();
        let (mut value, mut writes) = (0_u64, 0_u64);
        for index in 0..count {
            let Some(delta) = varint::take(bytes) else {
                return Err(self.spoilt(format!("access {index} of {count} is cut off")));
            };
            value = value.wrapping_add(varint::unzigzag(delta));
            writes += value & 1;
            addresses.push((value as i64 >> 1) as u64);
        }
        if !bytes.is_empty() {
            return Err(self.spoilt(format!("{} bytes too many after accesses", bytes.len())));
        }
        self.count(instructions, count, writes);
        take(&Batch {
            thread,
            instructions,
            accesses: Accesses::Addresses(&addresses),
        });
        self.addresses = addresses;
        Ok(())
    }

    fn count(&mut self, instructions: u64, accesses: u64, writes: u64) {
        self.summary.accesses += accesses;
        self.summary.writes += writes;
        self.summary.instructions = self.summary.instructions.saturating_add(instructions);
    }

    fn pages(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(&Batch<'_>)) -> Result<(), Error> {
        let rest = &mut bytes;
        let (Some(thread), Some(instructions), Some(accesses), Some(writes)) = (
            varint::take(rest),
            varint::take(rest),
            varint::take(rest),
            varint::take(rest),
        ) else {
            return Err(self.spoilt("expected thread, instructions, accesses and writes"));
        };
        self.runs.clear();
        let Some(found) = decode(rest, &mut self.runs) else {
            return Err(self.spoilt("a page's record is cut off"));
        };
        if found != accesses || writes > accesses {
            return Err(self.spoilt(format!(
                "the block declares {accesses} accesses, {writes} of them writes, and holds {found}"
            )));
        }
        self.count(instructions, accesses, writes);
        take(&Batch {
            thread,
            instructions,
            accesses: Accesses::Pages(&self.runs),
        });
        Ok(())
    }

    fn mapping(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let rest = &mut bytes;
        let (Some(start), Some(length), Some(flags)) =
            (varint::take(rest), varint::take(rest), varint::take(rest))
        else {
            return Err(self.spoilt("expected a mapping's start, length and flags"));
        };
        self.summary.mappings.push(Mapping {
            start,
            bytes: length,
            is_anonymous: flags & 1 == 1,
            name: String::from_utf8_lossy(rest).into_owned(),
        });
        Ok(())
    }

    fn end(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let (Some(accesses), Some(dropped)) = (varint::take(&mut bytes), varint::take(&mut bytes))
        else {
            return Err(self.spoilt("expected counts of accesses at the end"));
        };
        if accesses != self.summary.accesses {
            let found = self.summary.accesses;
            return Err(self.spoilt(format!(
                "the end declares {accesses} accesses, {found} were found"
            )));
        }
        self.summary.dropped += dropped;
        self.summary.is_complete = true;
        Ok(())
    }
}

/// Reads until `buffer` is full or the input ends. Returns the number of bytes.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
