//! Makes text from a recording safe to show.
//!
//! Symbol names, thread names and file names come from untrusted programs. A name with an escape
//! sequence would control the terminal; one with a right-to-left override would show a different
//! text (CVE-2021-42574). Both are shown as visible escapes instead.

use pagewise_model::answer::Subject;
use pagewise_model::secrets;
use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal or a browser would act on this character instead of showing it.
#[must_use]
pub fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// `text` with every control, bidirectional and zero-width character written as `\u{…}`; newline
/// and tab become `\n` and `\t`.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_harmless = |byte: u8| (b' '..0x7f).contains(&byte);
    // Almost all texts are ASCII, whose bytes are tested many at a time.
    if text.bytes().fold(true, |all, byte| all & is_harmless(byte)) || !text.chars().any(is_active)
    {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c if is_active(c) => escape(c, &mut shown),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Writes a character as `\u{…}`.
pub(crate) fn escape(c: char, shown: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
}

/// `text` with the replacement character for everything that a browser would act on: for pages,
/// where names are text nodes.
#[must_use]
pub fn inert(text: &str) -> Cow<'_, str> {
    let acts = |c: char| is_active(c) && !matches!(c, '\n' | '\t');
    match text.contains(acts) {
        true => Cow::Owned(text.replace(acts, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// The observed subject, for a heading: `gcc -c a.c`, `process 17`, `all processes`.
#[must_use]
pub fn named(subject: &Subject, whole_machine: bool) -> String {
    let command = command_line(&subject.command);
    let pids: Vec<String> = subject.pids.iter().map(i32::to_string).collect();
    match (whole_machine, command.is_empty(), pids.as_slice()) {
        (true, true, _) => "all processes".to_owned(),
        (true, false, _) => format!("all processes, during {command}"),
        (false, false, _) => command,
        (false, true, []) => String::new(),
        (false, true, [pid]) => format!("process {pid}"),
        (false, true, pids) => format!("processes {}", pids.join(", ")),
    }
}

/// A command line as a user would type it: arguments with special characters in single quotes,
/// secrets masked.
#[must_use]
pub fn command_line(arguments: &[String]) -> String {
    secrets::masked(arguments)
        .iter()
        .map(|argument| quoted(&visible(argument)))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_overrides_become_visible() {
        assert_eq!(
            visible("a\u{1b}[31mb\u{202e}c\n\u{0}"),
            "a\\u{1b}[31mb\\u{202e}c\\n\\u{0}"
        );
    }

    #[test]
    fn ordinary_names_stay_borrowed() {
        assert!(matches!(
            visible("std::vec<größe>::push"),
            Cow::Borrowed("std::vec<größe>::push")
        ));
    }

    #[test]
    fn arguments_are_quoted_as_a_shell_needs() {
        let arguments = ["sh", "-c", "echo 'a b'", ""].map(str::to_owned);
        assert_eq!(command_line(&arguments), r"sh -c 'echo '\''a b'\''' ''");
    }
}
