//! Records packed by `perf record -z`.
//!
//! All packed records of a file are one zstd stream (tools/perf/util/zstd.c), cut wherever a ring
//! was drained: a record may begin in one and end in the next.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Bytes by which the buffer grows.
const STEP: usize = 256 << 10;
/// Largest size in bytes that one packed record may unpack to: packed records are under 64 KiB,
/// and rings of more than this are not drained in one go.
const LARGEST: usize = 256 << 20;

/// The unpacked stream. Only its part from `start` on is kept.
#[derive(Default)]
pub(super) struct Unpacked {
    decoder: Option<Decoder<'static>>,
    bytes: Vec<u8>,
    /// Offset in the stream of the first byte kept.
    start: u64,
    /// Offset in the stream of the first record that was not read yet.
    next: u64,
}

impl Unpacked {
    /// Unpacks one packed record's payload onto the end.
    ///
    /// # Errors
    /// When the stream is damaged or too large; nothing after it can be unpacked either.
    pub fn append(&mut self, packed: &[u8]) -> std::io::Result<()> {
        if self.decoder.is_none() {
            self.decoder = Some(Decoder::new()?);
        }
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        let mut input = InBuffer::around(packed);
        let before = self.bytes.len();
        loop {
            let filled = self.bytes.len();
            self.bytes.resize(filled + STEP, 0);
            let mut output = OutBuffer::around(&mut self.bytes[filled..]);
            decoder.run(&mut input, &mut output)?;
            let written = output.pos();
            self.bytes.truncate(filled + written);
            if self.bytes.len() - before > LARGEST {
                return Err(std::io::Error::other("a packed record unpacks to too much"));
            }
            if written < STEP && input.pos() == packed.len() {
                return Ok(());
            }
            if written == 0 && input.pos() < packed.len() {
                return Err(std::io::Error::other("the packed stream does not go on"));
            }
        }
    }

    /// What was unpacked and not read yet, with its offset in the stream.
    pub fn unseen(&self) -> (u64, &[u8]) {
        (self.next, self.from(self.next))
    }

    /// Records that `count` bytes of [`Self::unseen`] were read.
    pub fn advance(&mut self, count: usize) {
        self.next += count as u64;
    }

    /// The stream from `offset` on.
    pub fn from(&self, offset: u64) -> &[u8] {
        let index = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.bytes.get(index..).unwrap_or_default()
    }

    /// Drops everything before `oldest`, if that is enough to be worth moving the rest.
    pub fn forget_before(&mut self, oldest: Option<u64>) {
        let keep_from = oldest.unwrap_or(self.next).min(self.next);
        let surplus = usize::try_from(keep_from - self.start).unwrap_or(0);
        if surplus > self.bytes.len() / 2 {
            self.bytes.drain(..surplus);
            self.start = keep_from;
        }
    }
}
