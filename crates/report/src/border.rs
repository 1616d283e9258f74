//! The last filter before a terminal, a pipe or a text file: escape sequences in names from a
//! recording end here, wherever the names came from.
//!
//! Names are made visible where they are laid out ([`crate::visible`]), since otherwise they would
//! break lines and columns. This filter catches the places that forgot to do so, and keeps JSON
//! exact: in JSON such a character is escaped, so that a reader gets the original name.

use crate::visible::{escape, is_active};
use std::io::{self, Write};

/// The kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Lines of text.
    Text,
    /// Lines of text with Pagewise's own colours (`ESC [ … m`).
    Coloured,
    /// JSON, which has such characters only inside strings.
    Json,
}

/// A writer that removes everything a terminal acts on, except line breaks and tabs.
pub struct Border<W: Write> {
    out: W,
    content: Content,
    /// The start of an incomplete character, line break or colour sequence.
    partial: Vec<u8>,
}

impl<W: Write> Border<W> {
    /// Filters `content` on its way to `out`.
    pub fn new(out: W, content: Content) -> Self {
        Self {
            out,
            content,
            partial: Vec::new(),
        }
    }

    /// Nothing follows: writes the incomplete sequence as it is.
    fn end(&mut self) -> io::Result<()> {
        let partial = std::mem::take(&mut self.partial);
        let mut shown = String::new();
        for c in String::from_utf8_lossy(&partial).chars() {
            put(c, self.content, &mut shown);
        }
        self.out.write_all(shown.as_bytes())
    }
}

impl<W: Write> Write for Border<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.partial.is_empty() && is_plain(bytes) {
            return self.out.write(bytes);
        }
        self.partial.extend_from_slice(bytes);
        let mut shown = String::with_capacity(self.partial.len() + 16);
        let taken = take(&self.partial, self.content, &mut shown);
        self.partial.drain(..taken);
        self.out.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end()?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Border<W> {
    fn drop(&mut self) {
        // A caller that needs the error calls `flush`.
        let _ = self.end();
    }
}

/// Whether all of it may pass as it is. All bytes are looked at, many at a time.
fn is_plain(bytes: &[u8]) -> bool {
    let plain = |byte: u8| byte.wrapping_sub(b' ') <= b'~' - b' ' || matches!(byte, b'\n' | b'\t');
    bytes.iter().fold(true, |all, &byte| all & plain(byte))
}

/// `text` after the filter.
#[must_use]
pub fn passed(text: &str, content: Content) -> String {
    let mut shown = String::with_capacity(text.len());
    let taken = take(text.as_bytes(), content, &mut shown);
    for c in text[taken..].chars() {
        put(c, content, &mut shown);
    }
    shown
}

/// Appends the filtered `bytes` to `shown`, up to an incomplete sequence; returns the bytes used.
fn take(bytes: &[u8], content: Content, shown: &mut String) -> usize {
    let mut taken = 0;
    for chunk in bytes.utf8_chunks() {
        let end = taken + chunk.valid().len();
        while taken < end {
            let rest = &chunk.valid()[chunk.valid().len() - (end - taken)..];
            let Some(length) = step(rest, content, shown) else {
                // A sequence is incomplete only at the end of the bytes.
                if end == bytes.len() {
                    return taken;
                }
                taken += put_first(rest, content, shown);
                continue;
            };
            taken += length;
        }
        let invalid = chunk.invalid();
        if !invalid.is_empty() {
            if taken + invalid.len() == bytes.len() && is_start(invalid) {
                return taken;
            }
            shown.push('\u{fffd}');
            taken += invalid.len();
        }
    }
    taken
}

/// Whether these bytes may be the start of a character.
fn is_start(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Filters the first item of `rest`; returns its bytes, or `None` if it is incomplete.
fn step(rest: &str, content: Content, shown: &mut String) -> Option<usize> {
    let second = rest.as_bytes().get(1);
    if content != Content::Json && rest.starts_with('\r') {
        if *second? != b'\n' {
            return Some(put_first(rest, content, shown));
        }
        shown.push_str("\r\n");
        return Some(2);
    }
    if content == Content::Coloured && rest.starts_with('\u{1b}') {
        if *second? != b'[' {
            return Some(put_first(rest, content, shown));
        }
        let end = rest
            .bytes()
            .skip(2)
            .position(|byte| !matches!(byte, b'0'..=b'9' | b';'))?
            + 2;
        if rest.as_bytes()[end] != b'm' {
            return Some(put_first(rest, content, shown));
        }
        shown.push_str(&rest[..=end]);
        return Some(end + 1);
    }
    Some(put_first(rest, content, shown))
}

fn put_first(rest: &str, content: Content, shown: &mut String) -> usize {
    let first = rest.chars().next();
    first
        .inspect(|&c| put(c, content, shown))
        .map_or(0, char::len_utf8)
}

fn put(c: char, content: Content, shown: &mut String) {
    match c {
        '\n' | '\t' => shown.push(c),
        c if !is_active(c) => shown.push(c),
        c if content == Content::Json => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        }
        c => escape(c, shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name with every kind of character that must not pass.
    const NAME: &str =
        "a\u{1b}]0;x\u{7}\u{9b}31mb\u{202e}c\u{2066}d\u{61c}e\u{200f}\u{7f}\r\u{feff}\u{e0041}é";

    fn written(pieces: &[&[u8]], content: Content) -> String {
        let mut out = Vec::new();
        let mut border = Border::new(&mut out, content);
        pieces
            .iter()
            .for_each(|piece| border.write_all(piece).unwrap());
        border.flush().unwrap();
        drop(border);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_that_a_terminal_acts_on_passes_however_it_is_cut() {
        for content in [Content::Text, Content::Coloured, Content::Json] {
            let whole = written(&[NAME.as_bytes()], content);
            assert!(!whole.chars().any(is_active), "{whole:?}");
            assert!(whole.contains('é'));
            for at in 0..NAME.len() {
                let (before, behind) = NAME.as_bytes().split_at(at);
                assert_eq!(written(&[before, behind], content), whole, "{at}");
            }
            let bytes: Vec<&[u8]> = NAME.as_bytes().chunks(1).collect();
            assert_eq!(written(&bytes, content), whole);
            assert_eq!(passed(NAME, content), whole);
        }
    }

    #[test]
    fn json_keeps_the_very_name() {
        let json = serde_json::to_string(NAME).unwrap();
        let passed = written(&[json.as_bytes()], Content::Json);
        assert!(passed.contains("\\u009b31m"), "{passed}");
        assert_eq!(serde_json::from_str::<String>(&passed).unwrap(), NAME);
    }

    #[test]
    fn lines_tabs_and_our_own_colours_pass() {
        let text = "a\tb\r\nc\n\u{1b}[1;31mred\u{1b}[0m\n";
        assert_eq!(passed(text, Content::Coloured), text);
        let plain = "a\tb\r\nc\n\\u{1b}[1;31mred\\u{1b}[0m\n";
        assert_eq!(passed(text, Content::Text), plain);
        assert_eq!(passed("\u{1b}[2J", Content::Coloured), "\\u{1b}[2J");
        assert_eq!(
            written(&[b"a\xff\xfeb\xc3"], Content::Text),
            "a\u{fffd}\u{fffd}b\u{fffd}"
        );
    }
}
