//! Reads bytes of known address from front to back.

/// What is left to read.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub bytes: &'a [u8],
    /// Address of the first one.
    pub address: u64,
}

/// An entry of `.eh_frame`.
pub(super) struct Entry<'a> {
    /// Address of its second word, from which functions count back to their common entry.
    pub start: u64,
    /// That word: 0 for a common entry.
    pub kind: u32,
    /// What follows.
    pub body: Cursor<'a>,
}

impl<'a> Cursor<'a> {
    pub fn skip(&mut self, bytes: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(bytes).ok()?..)?;
        self.address = self.address.wrapping_add(bytes);
        Some(())
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let array = *self.bytes.first_chunk()?;
        self.skip(N as u64)?;
        Some(array)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn leb(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub fn signed_leb(&mut self) -> Option<i64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let above = 64 - 7 - shift;
                return Some(value << above >> above);
            }
        }
        None
    }

    /// A number in this encoding (`DW_EH_PE_*`), as it stands there.
    pub fn unsigned(&mut self, encoding: u8) -> Option<u64> {
        Some(match encoding & 0xf {
            0x0 | 0x4 | 0xc => u64::from_le_bytes(self.array()?),
            0x2 => u16::from_le_bytes(self.array()?).into(),
            0x3 => self.u32()?.into(),
            0xa => i64::from(i16::from_le_bytes(self.array()?)) as u64,
            0xb => i64::from(i32::from_le_bytes(self.array()?)) as u64,
            _ => return None,
        })
    }

    /// An address in this encoding: absolute, or relative to its own place.
    pub fn pointer(&mut self, encoding: u8) -> Option<u64> {
        let here = self.address;
        let value = self.unsigned(encoding)?;
        match encoding & 0xf0 {
            0x00 => Some(value),
            0x10 => Some(here.wrapping_add(value)),
            _ => None,
        }
    }

    /// The entry that starts here; `None` for the end mark, and for entries of 4 GiB.
    pub fn entry(&mut self) -> Option<Entry<'a>> {
        let length = match self.u32()? {
            0 | u32::MAX => return None,
            length => length as usize,
        };
        let mut body = Cursor {
            bytes: self.bytes.get(..length)?,
            address: self.address,
        };
        self.skip(length as u64)?;
        let start = body.address;
        let kind = body.u32()?;
        Some(Entry { start, kind, body })
    }
}
