//! Text without allocation.

use core::fmt::{self, Write};

/// A line being put together without allocation; text that does not fit is cut off.
#[derive(Debug)]
pub struct Line {
    bytes: [u8; 512],
    length: usize,
}

impl Line {
    /// An empty line.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: [0; 512],
            length: 0,
        }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.length += count;
        Ok(())
    }
}
