//! A help text on a terminal.

use super::Style;
use super::page::{Ink, Page};

/// Columns before a line of code, which is never broken, so that it can be copied.
const CODE: usize = 4;
/// Additional indent of continuation lines.
const HANG: usize = 4;

/// Plain text in lines of at most `width` columns, clamped to 60–200.
#[must_use]
pub fn render(text: &str, width: usize, style: Style) -> String {
    let mut page = Page::new(width, style);
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        match indent >= CODE || line.is_empty() {
            true => page.line(line),
            false => page.hanging_lines(indent, indent + HANG, Ink::Plain, line.trim_start()),
        }
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_broken_between_words_and_code_is_left_whole() {
        let code = format!("    pagewise {}", "x".repeat(80));
        let text = format!(
            "Heading\n\n- A sentence that is longer than the width of the page, and has 12 µs.\n{code}\n"
        );
        let expected = format!(
            "Heading\n\n- A sentence that is longer than the width of the page, and\n    has 12 µs.\n{code}\n"
        );
        assert_eq!(render(&text, 66, Style::PLAIN), expected);
    }
}
