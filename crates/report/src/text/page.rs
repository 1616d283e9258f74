//! A page of terminal text: a narrow column of labels, a body that wraps, a few inks.

use super::Style;
use crate::visible::visible;

/// Columns that labels take, gap included.
pub const LABEL: usize = 11;

/// What a stretch of text means; the style decides what that looks like.
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

/// Columns that `text` takes, one per character: names in scripts with wide characters shift a
/// table's right edge, no more.
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Lines under way.
pub struct Page {
    pub width: usize,
    style: Style,
    out: String,
}

impl Page {
    pub fn new(width: usize, style: Style) -> Self {
        Self {
            width,
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

    /// One line as it is.
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

    /// `text` wrapped in the body behind a bullet.
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

    /// A line of the body that must not be wrapped, as text to be copied.
    pub fn verbatim(&mut self, label: &str, text: &str) {
        for (index, line) in text.lines().enumerate() {
            let label = self.label(if index == 0 { label } else { "" });
            let line = self.paint(Ink::Code, line);
            self.line(&format!("{label}  {line}"));
        }
    }

    /// The label column.
    pub fn label(&self, label: &str) -> String {
        let padding = " ".repeat(LABEL.saturating_sub(columns(label)));
        format!("{}{padding}", self.paint(Ink::Strong, label))
    }

    /// The title of a table, after an empty line.
    pub fn heading(&mut self, text: &str) {
        self.gap();
        let heading = self.paint(Ink::Strong, text);
        self.line(&heading);
    }

    /// How many of `total` rows are not among the `shown` first, where any are.
    pub fn more(&mut self, total: usize, shown: usize) {
        let hidden = total.saturating_sub(shown);
        if hidden > 0 {
            let line = self.paint(Ink::Faint, &format!("  … and {hidden} more"));
            self.line(&line);
        }
    }

    /// The whole page, in ASCII if the style wants it.
    pub fn finish(self) -> String {
        if self.style.unicode {
            self.out
        } else {
            self.out.chars().map(ascii).collect::<String>()
        }
    }
}

/// The nearest ASCII to a character that this crate writes; anything else becomes `?`.
fn ascii(c: char) -> &'static str {
    const ASCII: &str = "\n\u{1b} !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
    match c {
        '×' => "x",
        '•' | '●' => "*",
        '–' | '−' | '—' => "-",
        'µ' => "u",
        '±' => "+-",
        '∞' => "inf",
        '…' => "...",
        '█' => "#",
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

/// Breaks at spaces so that no line is longer than `room`; a longer word is broken where it must.
pub fn wrap(text: &str, room: usize) -> Vec<&str> {
    let room = room.max(1);
    let mut lines = Vec::new();
    let mut rest = text.trim();
    while columns(rest) > room {
        let hard = rest
            .char_indices()
            .nth(room)
            .map_or(rest.len(), |(at, _)| at);
        let reach = hard + rest[hard..].chars().next().map_or(0, char::len_utf8);
        let soft = last_break(&rest[..reach]);
        let (line, remainder) = rest.split_at(soft.unwrap_or(hard));
        lines.push(line.trim_end());
        rest = remainder.trim_start();
    }
    lines.push(rest);
    lines
}

/// `text` in lines of at most `width` columns: `first` before the first of them, `rest` before the
/// others.
pub fn hanging(text: &str, first: &str, rest: &str, width: usize) -> String {
    let indent = columns(first).max(columns(rest));
    let mut out = String::new();
    for (number, line) in wrap(text, width.saturating_sub(indent))
        .into_iter()
        .enumerate()
    {
        out.push_str(if number == 0 { first } else { rest });
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The last space to break at: not within `99.5 %`.
fn last_break(text: &str) -> Option<usize> {
    let is_break = |&at: &usize| at > 0 && !text[at..].starts_with(" %");
    let mut spaces = text.rmatch_indices(' ').map(|(at, _)| at);
    spaces.find(is_break)
}

/// `text` cut to `room` columns at its end, for words of ours.
pub fn clip(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let start: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

/// `text` cut to `room` columns in the middle, where the two ends tell most (paths, templates).
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

/// The innermost frames of a stack (told outermost first) that fit into `room` columns, innermost
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
    fn wrapping_keeps_words_and_width() {
        assert_eq!(wrap("the quick brown fox", 9), ["the quick", "brown fox"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("größe µm", 5), ["größe", "µm"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("now 99 % of it", 7), ["now", "99 % of", "it"]);
    }

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
