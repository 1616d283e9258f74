//! `pagewise manual`: a manual page for each command.

use anyhow::{Context, Result};
use clap::Command;
use clap::builder::Resettable;
use clap_mangen::Man;
use std::io::{self, Write};
use std::path::Path;

/// Writes the pages of `command` and all below it into `folder`, which is made where missing.
///
/// # Errors
/// When the folder can't be made or a page not be written.
pub fn write(mut command: Command, folder: &Path) -> Result<()> {
    let cannot = || format!("cannot write manual pages into {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    command = command.disable_help_subcommand(true);
    command.build();
    pages(&command, folder).with_context(cannot)
}

fn pages(command: &Command, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        pages(below, folder)?;
    }
    let man = man(command);
    let page = page(command, &man)?;
    std::fs::write(folder.join(man.get_filename()), page)
}

fn man(command: &Command) -> Man {
    Man::new(command.clone().after_help(Resettable::Reset))
        .source(concat!("Pagewise ", env!("CARGO_PKG_VERSION")))
        .manual("Pagewise")
}

/// The page, with the examples as they are: filled like prose they could not be read or copied.
fn page(command: &Command, man: &Man) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(notes) = command.get_after_help() {
        page.write_all(examples(&notes.to_string()).as_bytes())?;
    }
    Ok(page)
}

/// A section of lines that are kept as they are.
fn examples(notes: &str) -> String {
    let mut section = ".SH EXAMPLES\n.nf\n".to_owned();
    for (at, line) in notes.lines().enumerate() {
        if at == 0 && line.starts_with("Example") {
            continue;
        }
        let line = line.strip_prefix("  ").unwrap_or(line);
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // A line that begins so would be taken for a request.
        if line.starts_with(['.', '\'']) {
            section += "\\&";
        }
        section += &line;
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
        let page = String::from_utf8(page(&command, &man(&command)).unwrap()).unwrap();
        assert!(
            page.contains("Faster") && page.contains("\n.SH OPTIONS\n"),
            "{page}"
        );
        assert_eq!(page.matches("tool \\-\\-fast   now").count(), 1, "{page}");
        assert!(!page.contains("EXTRA"), "{page}");
    }
}
