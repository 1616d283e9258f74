//! Sentences on lines of a width.

use std::fmt::Write;

/// Words on lines of at most `width` columns, the first after `mark`, others below it.
pub(super) fn paragraph(text: &mut String, mark: &str, words: &str, width: usize) {
    let indent = if mark.is_empty() { 0 } else { 4 };
    let mut column = indent;
    let _ = write!(text, "{:>indent$}", mark);
    let mut first = true;
    for word in words_with_units(words) {
        let length = word.chars().count();
        if !first && column + 1 + length > width {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        } else if !first {
            text.push(' ');
            column += 1;
        }
        text.push_str(&word);
        column += length;
        first = false;
    }
    text.push('\n');
}

/// Words, each number with its unit.
fn words_with_units(words: &str) -> Vec<String> {
    const UNITS: [&str; 5] = ["%", "ns", "µs", "ms", "s"];
    let is_unit =
        |word: &str| UNITS.contains(&word.trim_end_matches(|c: char| ",.;:)]".contains(c)));
    let mut all: Vec<String> = Vec::new();
    for word in words.split(' ') {
        match all.last_mut() {
            Some(last) if is_unit(word) && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => all.push(word.to_owned()),
        }
    }
    all
}
