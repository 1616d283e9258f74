//! Packed sections and chunks of version 7: zlib and zstd, as named in the header.

use super::error::ReadError;
use std::io::{self, Read};

/// Largest size in bytes that one section or chunk may unpack to; trace-cmd packs ten pages in a
/// chunk, and the names of all functions of a kernel are about ten MiB.
const LARGEST: u32 = 256 << 20;

/// How sections are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Nothing,
    Zlib,
    Zstd,
}

impl Packing {
    /// The algorithm for the name in the header.
    ///
    /// # Errors
    /// For another algorithm.
    pub fn from_name(name: &[u8]) -> Result<Self, ReadError> {
        match name {
            b"none" | b"" => Ok(Self::Nothing),
            b"zlib" => Ok(Self::Zlib),
            b"zstd" => Ok(Self::Zstd),
            other => Err(ReadError::Unsupported {
                what: format!("compression by {}", String::from_utf8_lossy(other)),
                advice: "convert the file: trace-cmd convert --compression zstd -i FILE -o NEW",
            }),
        }
    }

    /// Unpacks data that must yield `size` bytes, onto the end of `out`.
    ///
    /// # Errors
    /// For damaged bytes, another size, or a size beyond what is reasonable.
    pub fn unpack(self, packed: &[u8], size: u32, out: &mut Vec<u8>) -> io::Result<()> {
        if size > LARGEST {
            return Err(io::Error::other("it would unpack to too much"));
        }
        let before = out.len();
        let limit = u64::from(size) + 1;
        match self {
            Self::Nothing => packed.take(limit).read_to_end(out)?,
            Self::Zlib => flate2::read::ZlibDecoder::new(packed)
                .take(limit)
                .read_to_end(out)?,
            Self::Zstd => zstd::Decoder::with_buffer(packed)?
                .take(limit)
                .read_to_end(out)?,
        };
        match out.len() - before == size as usize {
            true => Ok(()),
            false => Err(io::Error::other("it unpacks to another size than it says")),
        }
    }
}
