//! Little-endian fields from bytes that may end too early.

/// A reading position. Every method gives `None` where the bytes end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    /// As [`Self::take`], for a count stated in a file.
    #[inline]
    pub fn take_u64(&mut self, count: u64) -> Option<&'a [u8]> {
        self.take(usize::try_from(count).ok()?)
    }

    /// `count` fields of `size` bytes each.
    #[inline]
    pub fn take_array(&mut self, count: u64, size: u64) -> Option<&'a [u8]> {
        self.take_u64(count.checked_mul(size)?)
    }

    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*head))
    }

    #[inline]
    pub fn i32(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }

    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }

    /// The text up to the next zero byte, which is skipped.
    pub fn c_string(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }

    /// `struct perf_header_string`: a length, and text padded with zeros to it.
    pub fn header_string(&mut self) -> Option<String> {
        let length = self.u32()?;
        let text = until_zero(self.take(length as usize)?);
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// The text before the first zero byte.
pub(super) fn until_zero(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

/// The little-endian word at `offset`.
#[inline]
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let word = bytes.get(offset..)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}

/// The little-endian half word at `offset`.
#[inline]
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let word = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_le_bytes(*word))
}
