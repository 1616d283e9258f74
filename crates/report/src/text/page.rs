//! A page of terminal text: a narrow column of labels, a wrapped body, a few inks.

use super::Style;
use super::wrap::{columns, wrap};
use crate::visible::visible;

/// Narrowest and widest page, in columns: below, tables become unreadable; above, lines get too
/// long to read.
const WIDTHS: (usize, usize) = (60, 200);
/// Width of the label column, including the gap.
pub const LABEL: usize = 11;

/// The meaning of a stretch of text; the style decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Plain,
    Strong,
    Faint,
    Good,
    Caution,
    Bad,
    Code,
}

impl Ink {
    /// SGR parameters (ECMA-48 8.3.117). Only the eight base colours, which every terminal's
    /// theme makes readable.
    fn sgr(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Good => "1;32",
            Self::Caution => "1;33",
            Self::Bad => "1;31",
            Self::Code => "36",
        }
    }
}

/// The lines written so far.
pub struct Page {
    pub width: usize,
    style: Style,
    out: String,
}

impl Page {
    /// A page of `width` columns, clamped to 60–200.
    pub fn new(width: usize, style: Style) -> Self {
        Self {
            width: width.clamp(WIDTHS.0, WIDTHS.1),
            style,
            out: String::new(),
        }
    }

    /// `text` in `ink`, if this page has colours.
    pub fn paint(&self, ink: Ink, text: &str) -> String {
        if !self.style.color || ink == Ink::Plain || text.is_empty() {
            return text.to_owned();
        }
        format!("\u{1b}[{}m{text}\u{1b}[0m", ink.sgr())
    }

    /// One line, unchanged.
    pub fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// An empty line between parts.
    pub fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// `text` wrapped in the body, `label` before its first line.
    pub fn paragraph(&mut self, label: &str, ink: Ink, text: &str) {
        self.hanging(label, "", ink, text);
    }

    /// `text` wrapped and strong, its label in `ink`.
    pub fn marked(&mut self, label: &str, ink: Ink, text: &str) {
        let padding = " ".repeat(LABEL.saturating_sub(columns(label)));
        let mut label = format!("{}{padding}", self.paint(ink, label));
        for line in wrap(text, self.width.saturating_sub(LABEL)) {
            let line = self.paint(Ink::Strong, line);
            self.line(&format!("{label}{line}"));
            label = " ".repeat(LABEL);
        }
    }

    /// `text` wrapped in the body after a bullet.
    pub fn bullet(&mut self, label: &str, text: &str) {
        self.hanging(label, "• ", Ink::Plain, text);
    }

    fn hanging(&mut self, label: &str, mark: &str, ink: Ink, text: &str) {
        let room = self.width.saturating_sub(LABEL + columns(mark));
        let mut label = self.label(label);
        let mut mark = self.paint(Ink::Faint, mark);
        for line in wrap(text, room) {
            let painted = self.paint(ink, line);
            self.line(&format!("{label}{mark}{painted}"));
            label = " ".repeat(LABEL);
            mark = if mark.is_empty() {
                mark
            } else {
                "  ".to_owned()
            };
        }
    }

    /// A line of the body that must not be wrapped, such as text to be copied.
    pub fn verbatim(&mut self, label: &str, text: &str) {
        for (index, line) in text.lines().enumerate() {
            let label = self.label(if index == 0 { label } else { "" });
            let line = self.paint(Ink::Code, &visible(line));
            self.line(&format!("{label}  {line}"));
        }
    }

    /// The label column.
    pub fn label(&self, label: &str) -> String {
        let padding = " ".repeat(LABEL.saturating_sub(columns(label)));
        format!("{}{padding}", self.paint(Ink::Strong, label))
    }

    /// `text` wrapped after `indent` columns.
    pub fn indented(&mut self, indent: usize, ink: Ink, text: &str) {
        self.hanging_lines(indent, indent, ink, text);
    }

    /// `text` wrapped, its first line after `first` columns, the others after `rest`.
    pub fn hanging_lines(&mut self, first: usize, rest: usize, ink: Ink, text: &str) {
        let mut indent = first;
        for line in wrap(text, self.width.saturating_sub(rest)) {
            let line = self.paint(ink, line);
            self.line(&format!("{:indent$}{line}", ""));
            indent = rest;
        }
    }

    /// The first `most` lines of `text` after `indent` columns.
    pub fn indented_lines(&mut self, indent: usize, most: usize, text: &str) {
        let lines = wrap(text, self.width.saturating_sub(indent));
        let cut = lines.len() > most;
        for line in lines.into_iter().take(most).chain(cut.then_some("…")) {
            let line = self.paint(Ink::Faint, line);
            self.line(&format!("{:indent$}{line}", ""));
        }
    }

    /// `text` after a dash, as one of several items below a heading.
    pub fn item(&mut self, text: &str) {
        let mut mark = "  - ";
        for line in wrap(text, self.width.saturating_sub(4)) {
            self.line(&format!("{mark}{line}"));
            mark = "    ";
        }
    }

    /// Facts or notes, `label` before the first.
    pub fn list<T: AsRef<str>>(&mut self, label: &str, items: impl IntoIterator<Item = T>) {
        for (place, item) in items.into_iter().enumerate() {
            self.bullet(if place == 0 { label } else { "" }, item.as_ref());
        }
    }

    /// The title of a table, after an empty line.
    pub fn heading(&mut self, text: &str) {
        self.gap();
        self.indented(0, Ink::Strong, text);
    }

    /// Shows how many of `total` rows were left out after the first `shown`, if any.
    pub fn more(&mut self, total: usize, shown: usize) {
        let hidden = total.saturating_sub(shown);
        if hidden > 0 {
            let line = self.paint(Ink::Faint, &format!("  … and {hidden} more"));
            self.line(&line);
        }
    }

    /// The whole page, in ASCII if the style wants it.
    pub fn finish(mut self) -> String {
        let end = self.out.trim_end_matches('\n').len() + 1;
        self.out.truncate(end);
        if self.style.unicode {
            self.out
        } else {
            in_ascii(&self.out)
        }
    }
}

/// Text for a terminal without Unicode; no byte of it is beyond ASCII.
pub fn in_ascii(text: &str) -> String {
    text.chars().map(ascii).collect()
}

/// The nearest ASCII to a character that this crate writes; anything else becomes `?`.
fn ascii(c: char) -> &'static str {
    const ASCII: &str = "\n\t\u{1b} !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
    match c {
        '×' => "x",
        '•' | '●' => "*",
        '–' | '−' | '—' => "-",
        'µ' => "u",
        '±' => "+-",
        '∞' => "inf",
        '…' => "...",
        '█' => "#",
        '▁' | '▂' | '▃' => ".",
        '▄' | '▅' => "o",
        '▆' | '▇' => "O",
        '✓' => "+",
        '✗' => "x",
        '≤' => "<=",
        '│' => "|",
        '─' => "-",
        '└' => "`",
        '·' => "|",
        '→' => "->",
        '←' => "<-",
        '“' | '”' => "\"",
        '’' => "'",
        c => ASCII
            .find(c)
            .and_then(|at| ASCII.get(at..at + 1))
            .unwrap_or("?"),
    }
}

/// `text` cut to `room` columns at its end, for Pagewise's own words.
pub fn clip(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let start: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

/// `text` cut to `room` columns in the middle, because the two ends are the most informative
/// (paths, templates).
pub fn shorten(text: &str, room: usize) -> String {
    let length = columns(text);
    if length <= room {
        return text.to_owned();
    }
    let keep = room.saturating_sub(1);
    let (head, tail) = (keep - keep / 2, keep / 2);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}…{end}")
}

/// The innermost frames of a stack (given outermost first) that fit into `room` columns, innermost
/// first.
pub fn chain(frames: &[String], room: usize) -> String {
    let mut text = String::new();
    for frame in frames.iter().rev() {
        let frame = visible(frame);
        let arrow = if text.is_empty() { "" } else { " ← " };
        if !text.is_empty() && columns(&text) + columns(arrow) + columns(&frame) + 4 > room {
            text.push_str(" ← …");
            break;
        }
        text.push_str(arrow);
        text.push_str(&shorten(&frame, room));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortening_keeps_both_ends() {
        assert_eq!(shorten("abcdefghij", 7), "abc…hij");
        assert_eq!(shorten("abc", 7), "abc");
    }

    #[test]
    fn without_unicode_every_byte_is_ascii() {
        let style = Style {
            color: true,
            unicode: false,
        };
        let mut page = Page::new(60, style);
        page.bullet("Gain", "×7.9 – größer … 3 µs");
        assert_eq!(
            page.finish(),
            "\u{1b}[1mGain\u{1b}[0m       \u{1b}[2m* \u{1b}[0mx7.9 - gr??er ... 3 us\n"
        );
    }
}
