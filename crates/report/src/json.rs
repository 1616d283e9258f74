//! Every JSON document that Pagewise prints: one line, with a newline at its end. `docs/schema`
//! describes the content, which a test verifies.

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};
use std::io::{self, Write};

/// A document on one line, with a newline at the end. Characters that control terminals or change
/// the direction of text are escaped: names of functions and programs are untrusted.
///
/// # Errors
/// Only if a figure could not be written, which the model's types rule out: its maps have string
/// keys and its numbers are finite or become `null`.
pub fn to_string(document: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::new();
    document.serialize(&mut Serializer::with_formatter(&mut bytes, Escaping))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(|error| serde_json::Error::io(io::Error::other(error)))
}

/// The compact form, with characters escaped that a terminal would act on.
struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, steering)) = rest.char_indices().find(|(_, c)| steers(*c)) {
            CompactFormatter.write_string_fragment(out, &rest[..at])?;
            write!(out, "\\u{:04x}", u32::from(steering))?;
            rest = &rest[at + steering.len_utf8()..];
        }
        CompactFormatter.write_string_fragment(out, rest)
    }
}

/// DEL, C1 control characters, and direction marks; JSON itself escapes the others. All fit into
/// four hexadecimal digits.
fn steers(c: char) -> bool {
    matches!(
        c,
        '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_one_line_without_blanks() {
        let text = to_string(&serde_json::json!({"a": [1, {"b": "c\nd"}]})).expect("JSON");
        assert_eq!(text, "{\"a\":[1,{\"b\":\"c\\nd\"}]}\n");
    }

    #[test]
    fn what_steers_a_terminal_is_escaped_and_reads_back() {
        let name = "a\u{9b}31m\u{202e}b\u{7f}é\u{1b}[0m";
        let text = to_string(&name).expect("JSON");
        assert_eq!(text, "\"a\\u009b31m\\u202eb\\u007fé\\u001b[0m\"\n");
        let back: String = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back, name);
    }
}
