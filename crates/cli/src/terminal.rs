//! What our standard output can show.

use pagewise_report::border::{Border, Content, passed};
use pagewise_report::text::Style;
use serde::Serialize;
use std::io::{self, IsTerminal, StdoutLock, Write};

/// Columns where nothing tells: a file or a pipe is read at this width.
const USUAL_WIDTH: usize = 100;

/// Columns of the terminal on standard output.
pub fn width() -> usize {
    if !io::stdout().is_terminal() {
        return USUAL_WIDTH;
    }
    columns().unwrap_or(USUAL_WIDTH)
}

/// Columns of the terminal on standard output, else on standard error; `None` where there is none,
/// or it does not know.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout())
        .or_else(|_| rustix::termios::tcgetwinsize(io::stderr()))
        .ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Standard output for JSON or a text, past which nothing from a recording can drive a terminal.
pub fn output(json: bool) -> Border<StdoutLock<'static>> {
    let content = match json {
        true => Content::Json,
        false if style().color => Content::Coloured,
        false => Content::Text,
    };
    Border::new(io::stdout().lock(), content)
}

/// Prints a document: as JSON, or as the text that a person reads.
///
/// # Errors
/// When it cannot be written.
pub fn present<D: Serialize>(
    document: &D,
    as_json: bool,
    text: fn(&D, usize, Style) -> String,
) -> anyhow::Result<()> {
    let text = match as_json {
        true => pagewise_report::json::to_string(document)?,
        false => text(document, width(), style()),
    };
    let mut out = output(as_json);
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes lines to standard error, names in them made safe.
pub fn tell(text: &str) {
    // Where nobody can be told, that is no reason to stop.
    let _ = writeln!(io::stderr(), "{}", passed(text, Content::Text));
}

/// Who hears on standard error what is done meanwhile; nobody where it is to be `quiet`.
pub fn progress(quiet: bool) -> impl Fn(&str) {
    move |what| {
        if !quiet {
            tell(&format!("pagewise: {what}"));
        }
    }
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
            // Heads and rows have columns in common, but not where they start.
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

/// Colours only on a terminal that has them; characters beyond ASCII unless the locale says that
/// they cannot be shown.
pub fn style() -> Style {
    Style {
        color: io::stdout().is_terminal() && has_colours(),
        unicode: shows_unicode(),
    }
}

/// Whether the environment lets a terminal have colours: `NO_COLOR` (no-color.org), `CLICOLOR=0`
/// (bixense.com/clicolors), `TERM=dumb`.
pub fn has_colours() -> bool {
    has_colours_by(|name| std::env::var(name).ok())
}

fn has_colours_by(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("NO_COLOR").is_none_or(|value| value.is_empty())
        && variable("CLICOLOR").as_deref() != Some("0")
        && !is_dumb(variable("TERM").as_deref())
}

/// Whether a terminal of this name obeys no escape sequences.
fn is_dumb(term: Option<&str>) -> bool {
    term == Some("dumb")
}

/// Whether a line on standard error can be written over: by a terminal that is not dumb.
pub fn rewrites_lines() -> bool {
    io::stderr().is_terminal() && !is_dumb(std::env::var("TERM").ok().as_deref())
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
    fn colours_are_off_by_each_of_the_three_variables() {
        let with = |given: &'static [(&str, &str)]| {
            has_colours_by(|name| {
                let found = given.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(with(&[("TERM", "xterm-256color")]) && with(&[]));
        assert!(with(&[("NO_COLOR", ""), ("CLICOLOR", "1")]));
        for off in [[("NO_COLOR", "1")], [("CLICOLOR", "0")], [("TERM", "dumb")]] {
            let off: &'static [(&str, &str)] = Box::leak(Box::new(off));
            assert!(!with(off), "{off:?}");
        }
    }

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
