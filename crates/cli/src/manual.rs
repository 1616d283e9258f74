//! `pagewise manual`: a manual page for each command.

mod facts;

use anyhow::{Context, Result};
use clap::Command;
use clap::builder::Resettable;
use clap_mangen::Man;
use facts::Entry;
use std::io::{self, Write};
use std::path::Path;

/// Writes the pages of `command` and all its subcommands into `folder`, which is created if
/// missing.
///
/// # Errors
/// If the folder can't be created or a page can't be written.
pub fn write(mut command: Command, folder: &Path) -> Result<()> {
    let cannot = || format!("cannot write manual pages into {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    command = command.disable_help_subcommand(true);
    command.build();
    pages(&command, "", folder).with_context(cannot)
}

/// Writes the pages of `command`, typed as `words` after the program's name, and of its
/// subcommands.
fn pages(command: &Command, words: &str, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        let words = format!("{words} {}", below.get_name());
        pages(below, words.trim_start(), folder)?;
    }
    let man = man(command);
    let page = page(command, words, &man)?;
    std::fs::write(folder.join(man.get_filename()), page)
}

fn man(command: &Command) -> Man {
    Man::new(command.clone().after_help(Resettable::Reset))
        .source(concat!("Pagewise ", env!("CARGO_PKG_VERSION")))
        .manual("Pagewise")
}

/// The page, with the examples unfilled: filled like prose they could not be read or copied.
fn page(command: &Command, words: &str, man: &Man) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    page.write_all(entries("FILES", facts::files(words)).as_bytes())?;
    page.write_all(entries("ENVIRONMENT", facts::environment(words)).as_bytes())?;
    if !words.is_empty() && !command.has_subcommands() {
        let statuses = facts::statuses(words).into_iter();
        page.write_all(section("EXIT STATUS", statuses).as_bytes())?;
    }
    if let Some(notes) = command.get_after_help() {
        page.write_all(examples(&notes.to_string()).as_bytes())?;
    }
    Ok(page)
}

fn entries(title: &str, entries: impl Iterator<Item = &'static Entry>) -> String {
    section(title, entries.map(|entry| (entry.name, entry.text)))
}

/// A section of names and their meanings; empty if there are none.
fn section(title: &str, rows: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let rows: String = rows
        .map(|(name, text)| format!(".TP\n.B {}\n{}\n", escaped(name), escaped(text)))
        .collect();
    match rows.is_empty() {
        true => rows,
        false => format!(".SH \"{title}\"\n{rows}"),
    }
}

/// Escapes text with a special meaning in roff: a line that starts with `.` or `'` would be taken
/// for a request.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

/// A section whose lines are kept unchanged.
fn examples(notes: &str) -> String {
    let mut section = ".SH EXAMPLES\n.nf\n".to_owned();
    for (at, line) in notes.lines().enumerate() {
        if at == 0 && line.starts_with("Example") || line.starts_with("Exit status:") {
            continue;
        }
        let line = line.strip_prefix("  ").unwrap_or(line);
        section += &escaped(line);
        section.push('\n');
    }
    section + ".fi\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_kept_line_by_line() {
        let notes = "Examples (as root):\n  x -- ./a    one\n  .b 'c\\d'\n\nKeys: q";
        let expected = ".SH EXAMPLES\n.nf\nx \\-\\- ./a    one\n\\&.b 'c\\ed'\n\nKeys: q\n.fi\n";
        assert_eq!(examples(notes), expected);
    }

    #[test]
    fn a_page_tells_its_options_and_examples_once() {
        let command = Command::new("tool")
            .about("Does it")
            .arg(clap::arg!(--fast "Faster"))
            .after_help("Examples:\n  tool --fast   now");
        let page = String::from_utf8(page(&command, "check", &man(&command)).unwrap()).unwrap();
        assert!(
            page.contains("Faster") && page.contains("\n.SH OPTIONS\n"),
            "{page}"
        );
        assert_eq!(page.matches("tool \\-\\-fast   now").count(), 1, "{page}");
        assert!(!page.contains("EXTRA"), "{page}");
    }

    #[test]
    fn a_page_tells_files_variables_and_how_it_ends() {
        let command = Command::new("record").about("Records");
        let page = String::from_utf8(page(&command, "record", &man(&command)).unwrap()).unwrap();
        let files = ".SH \"FILES\"\n.TP\n.B perf.data\nThe recording, ";
        assert!(page.contains(files), "{page}");
        assert!(page.contains("\n.SH \"ENVIRONMENT\"\n"), "{page}");
        let status = ".SH \"EXIT STATUS\"\n.TP\n.B N\nThe status of the program that ran.\n";
        assert!(page.contains(status), "{page}");
    }
}
