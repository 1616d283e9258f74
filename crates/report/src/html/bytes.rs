//! Columns of numbers, and their encoding as text inside a page.
//!
//! A column is a sequence of variable-length numbers (seven bits per byte, lowest first), deflated.
//! All columns of a page are concatenated in one element, as text: thirteen bits become two out of
//! 91 characters that have no meaning in HTML. That takes 1.23 characters per byte, while base64
//! takes 1.33.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use std::io::{self, Write};

/// Bytes of a column that are deflated at once.
const PIECE: usize = 64 << 10;

/// Level of compression. Of a page of 3.7 M samples, 6 takes 5 % more CPU time in all and 2 % less
/// room, 7 a fifth more and 3 % less.
const LEVEL: u32 = 4;

/// Position of a column among a page's bytes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Column(usize, usize);

/// The bytes of all columns of a page.
#[derive(Debug, Default)]
pub(super) struct Columns(Vec<u8>);

impl Columns {
    /// Adds a column.
    pub(super) fn add(&mut self, numbers: impl Iterator<Item = u64>) -> io::Result<Column> {
        let mut bytes = Vec::with_capacity(PIECE + 10);
        let from = self.0.len();
        let mut deflate = DeflateEncoder::new(std::mem::take(&mut self.0), Compression::new(LEVEL));
        for mut number in numbers {
            while number >= 0x80 {
                bytes.push(number.to_le_bytes()[0] | 0x80);
                number >>= 7;
            }
            bytes.push(number.to_le_bytes()[0]);
            if bytes.len() >= PIECE {
                deflate.write_all(&bytes)?;
                bytes.clear();
            }
        }
        deflate.write_all(&bytes)?;
        self.0 = deflate.finish()?;
        Ok(Column(from, self.0.len() - from))
    }

    /// Characters of the columns as text, at most.
    pub(super) fn characters(&self) -> usize {
        self.0.len() * 16 / 13 + 4
    }

    /// Appends all columns as text.
    pub(super) fn write(&self, text: &mut String) {
        /// Every visible ASCII character except `"`, `&` and `<`.
        const DIGITS: &[u8; 91] = b"!#$%'()*+,-./0123456789:;=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
        let (mut held, mut bits) = (0_u32, 0);
        let mut put = |value: u32| {
            text.push(char::from(DIGITS[(value / 91) as usize]));
            text.push(char::from(DIGITS[(value % 91) as usize]));
        };
        for &byte in &self.0 {
            held |= u32::from(byte) << bits;
            bits += 8;
            if bits >= 13 {
                put(held & 0x1fff);
                held >>= 13;
                bits -= 13;
            }
        }
        if bits > 0 {
            put(held);
        }
    }
}

/// Small signed numbers as unsigned ones, in the order 0, -1, 1, -2, 2…
pub(super) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_text(columns: Columns) -> String {
        let mut text = String::new();
        columns.write(&mut text);
        assert!(text.len() <= columns.characters());
        text
    }

    #[test]
    fn bytes_become_visible_characters_that_html_leaves_alone() {
        let bytes: Vec<u8> = (0..=255).chain(0..=99).collect();
        let text = as_text(Columns(bytes.clone()));
        assert!(
            text.bytes()
                .all(|c| c.is_ascii_graphic() && !b"\"&<".contains(&c))
        );
        assert_eq!(text.len(), (bytes.len() * 8).div_ceil(13) * 2);
        // 8191 is 90 times 91 and 1.
        assert_eq!(as_text(Columns(vec![0xff, 0x1f])), "~#!!");
    }

    #[test]
    fn signs_fold_into_small_numbers() {
        assert_eq!([0, -1, 1, -2, i64::MIN].map(zigzag), [0, 1, 2, 3, u64::MAX]);
    }
}
