//! What our standard output can show.

use pagewise_report::text::Style;
use std::io::{self, IsTerminal};

/// Columns where nothing tells: a file or a pipe is read at this width.
const USUAL_WIDTH: usize = 100;

/// Columns of the terminal on standard output.
pub fn width() -> usize {
    if !io::stdout().is_terminal() {
        return USUAL_WIDTH;
    }
    crossterm::terminal::size().map_or(USUAL_WIDTH, |(columns, _)| usize::from(columns))
}

/// A report as a terminal shows it without cutting words; unchanged for a file or a pipe.
pub fn fitted(text: String) -> String {
    match io::stdout().is_terminal() {
        true => folded(&text, width()),
        false => text,
    }
}

/// Lines of at most `width` columns: rows of tables go on below at a column, so that they stay in
/// line with their heads, sentences at a blank. A figure keeps its unit.
fn folded(text: &str, width: usize) -> String {
    let mut all = String::with_capacity(text.len());
    for line in text.lines() {
        let mut rest: Vec<char> = line.chars().collect();
        let indent = rest.iter().take_while(|c| **c == ' ').count();
        let gap = |at: &usize, line: &[char]| {
            line[*at - 1] != ' ' && line[*at..].starts_with(&[' ', ' '])
        };
        let is_table = (indent + 1..rest.len()).filter(|at| gap(at, &rest)).count() >= 3;
        while rest.len() > width {
            let places = (indent + 8..=width).rev();
            let at_gap = places.clone().find(|at| is_table && gap(at, &rest));
            let at_blank = || {
                places
                    .clone()
                    .find(|at| rest[*at] == ' ' && !is_before_unit(&rest, *at))
            };
            let Some(at) = at_gap.or_else(at_blank) else {
                break;
            };
            let tail = rest.split_off(at);
            all.extend(rest.iter().copied());
            all.push('\n');
            // Heads and rows have columns in common, but not where they begin.
            let (hang, begin) = match at_gap {
                Some(_) => (6, 0),
                None => (indent + 4, 1),
            };
            rest = vec![' '; hang];
            rest.extend_from_slice(&tail[begin..]);
        }
        all.extend(rest);
        all.push('\n');
    }
    all
}

/// Whether a figure stands before this blank and its unit behind it.
fn is_before_unit(line: &[char], at: usize) -> bool {
    let unit: String = line[at + 1..]
        .iter()
        .take_while(|c| c.is_alphabetic() || **c == '%')
        .collect();
    line[at - 1].is_ascii_digit() && matches!(&*unit, "ns" | "µs" | "ms" | "s" | "%")
}

/// Colours only on a terminal and without `NO_COLOR`; characters beyond ASCII unless the locale
/// says that they cannot be shown.
pub fn style() -> Style {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    Style {
        color: io::stdout().is_terminal() && !is_set("NO_COLOR"),
        unicode: shows_unicode(),
    }
}

/// The first of these variables that is set names the locale (locale(7)). Where none is set, most
/// terminals of today show UTF-8 all the same.
fn shows_unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty());
    locale.is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8") || name == "c" || name == "posix"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_on_in_line_with_their_heads_and_figures_keep_their_units() {
        let text = "\
Kinds                       faults       p50   corrected p50  peaks
  anonymous                    317   6.80 µs         26.8 µs  6.62 µs (90 %), 15.4 µs (10 %)
A sentence that is longer than the width, and has 12 µs.
";
        let expected = "\
Kinds                       faults       p50
         corrected p50  peaks
  anonymous                    317   6.80 µs
               26.8 µs
        6.62 µs (90 %), 15.4 µs (10 %)
A sentence that is longer than the width, and has
    12 µs.
";
        assert_eq!(folded(text, 52), expected);
        assert_eq!(folded(text, 200), text);
        let unbroken = "x".repeat(300) + "\n";
        assert_eq!(folded(&unbroken, 80), unbroken);
    }
}
