//! Little-endian fields with the position of each, so that an error can report it.

use super::error::ReadError;

/// A reading position in the file, or in a section that was unpacked.
#[derive(Clone, Debug)]
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Set for unpacked sections: where in the file they begin.
    section: Option<u64>,
}

impl<'a> Input<'a> {
    /// The file itself from `offset` on.
    pub fn file(bytes: &'a [u8], offset: u64, what: &'static str) -> Result<Self, ReadError> {
        let at = usize::try_from(offset).ok();
        let at = at.filter(|at| *at <= bytes.len());
        let at = at.ok_or(ReadError::Cut { what, offset })?;
        Ok(Self {
            bytes,
            at,
            section: None,
        })
    }

    /// A section's bytes; the section begins at `offset` of the file.
    pub fn section(bytes: &'a [u8], offset: u64) -> Self {
        Self {
            bytes,
            at: 0,
            section: Some(offset),
        }
    }

    pub fn offset(&self) -> u64 {
        self.section.unwrap_or(self.at as u64)
    }

    pub fn take(&mut self, count: u64, what: &'static str) -> Result<&'a [u8], ReadError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = usize::try_from(count).ok().and_then(|n| rest.get(..n));
        let taken = taken.ok_or(ReadError::Cut {
            what,
            offset: self.offset(),
        })?;
        self.at += taken.len();
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ReadError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8, ReadError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub fn u16(&mut self, what: &'static str) -> Result<u16, ReadError> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32, ReadError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub fn u64(&mut self, what: &'static str) -> Result<u64, ReadError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// The text up to the next zero byte, which is skipped.
    pub fn c_string(&mut self, what: &'static str) -> Result<&'a [u8], ReadError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = memchr::memchr(0, rest).ok_or(ReadError::Cut {
            what,
            offset: self.offset(),
        })?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    /// Text that follows its eight-byte length.
    pub fn sized(&mut self, what: &'static str) -> Result<&'a [u8], ReadError> {
        let size = self.u64(what)?;
        self.take(size, what)
    }

    /// Bytes that are required here.
    pub fn expect(&mut self, word: &[u8], what: &'static str) -> Result<(), ReadError> {
        let offset = self.offset();
        match self.take(word.len() as u64, what)? == word {
            true => Ok(()),
            false => Err(ReadError::Malformed { what, offset }),
        }
    }
}
