//! Properties of our standard output.

use crate::standard_output::{StandardOutput, standard_output};
use pagewise_report::border::{Border, Content, passed};
use pagewise_report::text::{Style, in_ascii};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

/// Columns if unknown, as for a file or a pipe.
const USUAL_WIDTH: usize = 100;

/// When text is coloured (`--color`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    Always,
    Never,
}

static COLOUR: OnceLock<Colour> = OnceLock::new();

/// Sets when text is coloured, once, at the start.
pub fn set_colour(when: Colour) {
    // A second call would be a mistake in `main`; the first one counts.
    let _ = COLOUR.set(when);
}

/// Columns of the terminal on standard output; for a file or a pipe `COLUMNS`.
pub fn width() -> usize {
    let measured = match io::stdout().is_terminal() {
        true => columns(),
        false => None,
    };
    let stated = || std::env::var("COLUMNS").ok()?.parse().ok();
    measured
        .or_else(stated)
        .filter(|&columns| columns > 0)
        .unwrap_or(USUAL_WIDTH)
}

/// Columns of the terminal on standard output, otherwise on standard error; `None` if there is
/// none, or its size is unknown.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout())
        .or_else(|_| rustix::termios::tcgetwinsize(io::stderr()))
        .ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Standard output for JSON or text, filtered so that nothing from a recording can control a
/// terminal.
pub fn output(json: bool) -> Border<StandardOutput> {
    let content = match json {
        true => Content::Json,
        false if style().color => Content::Coloured,
        false => Content::Text,
    };
    Border::new(standard_output(), content)
}

/// Prints a document, as JSON or as text for people.
///
/// # Errors
/// If it cannot be written.
pub fn present<D: Serialize>(
    document: &D,
    as_json: bool,
    text: fn(&D, usize, Style) -> String,
) -> anyhow::Result<()> {
    match as_json {
        true => print_json(document),
        false => print(&text(document, width(), style())),
    }
}

/// Prints a document as JSON.
///
/// # Errors
/// When it cannot be written.
pub fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    let mut out = output(true);
    out.write_all(pagewise_report::json::to_string(document)?.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints text for people.
///
/// # Errors
/// When it cannot be written.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = output(false);
    out.write_all(displayable(text).as_bytes())?;
    Ok(out.flush()?)
}

/// Writes lines to standard error, names in them made safe.
pub fn tell(text: &str) {
    let broken;
    let room = match io::stderr().is_terminal() {
        true => rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col.into()),
        false => 0,
    };
    let text = match room {
        0 => text,
        room => {
            broken = between_words(text, room);
            &broken
        }
    };
    // If standard error cannot be written, that is no reason to stop.
    let _ = writeln!(
        io::stderr(),
        "{}",
        passed(&displayable(text), Content::Text)
    );
}

/// Text whose lines have at most `room` columns, but for longer words: a path or a command is still
/// one to copy. Lines that begin with a space are laid out already.
fn between_words(text: &str, room: usize) -> String {
    let mut broken = String::new();
    for (at, line) in text.split('\n').enumerate() {
        broken.push_str(if at > 0 { "\n" } else { "" });
        if line.starts_with(' ') {
            broken.push_str(line);
            continue;
        }
        let mut used = 0;
        for (at, word) in line.split(' ').enumerate() {
            let columns = word.chars().count();
            let (space, taken) = match at {
                0 => ("", 0),
                _ if used + 1 + columns > room => ("\n", 0),
                _ => (" ", used + 1),
            };
            broken.push_str(space);
            broken.push_str(word);
            used = taken + columns;
        }
    }
    broken
}

/// In ASCII where the locale shows no more.
fn displayable(text: &str) -> Cow<'_, str> {
    match style().unicode {
        true => Cow::Borrowed(text),
        false => Cow::Owned(in_ascii(text)),
    }
}

/// A listener that prints progress to standard error; silent if `quiet`.
pub fn progress(quiet: bool) -> impl Fn(&str) {
    move |what| {
        if !quiet {
            tell(&format!("pagewise: {what}"));
        }
    }
}

/// Colours only on a terminal that supports them; characters beyond ASCII unless the locale shows
/// that they cannot be displayed.
pub fn style() -> Style {
    Style {
        color: match COLOUR.get().copied().unwrap_or_default() {
            Colour::Auto => io::stdout().is_terminal() && has_colours(),
            Colour::Always => true,
            Colour::Never => false,
        },
        unicode: shows_unicode(|name| std::env::var(name).ok()),
    }
}

/// Whether the environment allows colours on a terminal: `NO_COLOR` (no-color.org), `CLICOLOR=0`
/// (bixense.com/clicolors), `TERM=dumb`.
pub fn has_colours() -> bool {
    has_colours_by(|name| std::env::var(name).ok())
}

fn has_colours_by(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("NO_COLOR").is_none_or(|value| value.is_empty())
        && variable("CLICOLOR").as_deref() != Some("0")
        && !is_dumb(variable("TERM").as_deref())
}

/// Whether a terminal of this name supports no escape sequences.
fn is_dumb(term: Option<&str>) -> bool {
    term == Some("dumb")
}

/// Whether a line on standard error can be overwritten: on a terminal that is not dumb.
pub fn rewrites_lines() -> bool {
    io::stderr().is_terminal() && !is_dumb(std::env::var("TERM").ok().as_deref())
}

/// The first of these variables that is set determines the locale (locale(7)). If none is set, most
/// current terminals show UTF-8 nevertheless; `C` and `POSIX` ask for ASCII.
fn shows_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty());
    locale.is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
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
    fn messages_are_broken_between_words() {
        let text = "pagewise: a/path/of/many/folders is one\n  as  laid out, however long\n\nend";
        let broken =
            "pagewise: a/path/of/many/folders\nis one\n  as  laid out, however long\n\nend";
        assert_eq!(
            between_words(text, 20),
            "pagewise:\n".to_owned() + &broken[10..]
        );
        assert_eq!(between_words(text, 34), broken);
        assert_eq!(between_words(text, 80), text);
    }

    #[test]
    fn the_c_locale_asks_for_ascii() {
        let with = |name: &'static str, value: &'static str| {
            shows_unicode(|asked| (asked == name).then(|| value.to_owned()))
        };
        assert!(with("LANG", "C.UTF-8") && with("LC_ALL", "de_DE.utf8") && with("LANG", ""));
        assert!(!with("LANG", "C") && !with("LC_ALL", "POSIX") && !with("LC_CTYPE", "de_DE"));
    }
}
