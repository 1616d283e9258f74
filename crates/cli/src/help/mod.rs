//! `pagewise help`: the reference of a command, or a guide embedded in the program.

mod markdown;

use crate::standard_output::standard_output;
use crate::terminal;
use anyhow::{Result, bail};
use clap::Command;
use flate2::read::GzDecoder;
use pagewise_report::text::Style;
use std::io::{self, Read, Write};

pub const EXAMPLES: &str = "\
Examples:
  pagewise help                all commands and topics
  pagewise help slow           the guide to a program that is slow
  pagewise help huge balance   the reference of a command
  pagewise help schema.json    the schema of what --json prints";

/// Shown on a terminal if no arguments were given.
pub const FIRST_STEPS: &str = "\
Pagewise finds out why a Linux program loses time in memory management, and fixes it.

  My program is slow               pagewise doctor --prove -- CMD
  It uses too much memory          pagewise memory -p PID
  Two hosts, or two runs, differ   pagewise diff A B
  It must run in less memory       pagewise run --memory 1G -- CMD
  Do huge pages help?              pagewise huge balance -p PID

A running process                  pagewise doctor -p PID --duration 10s
Which process?                     pagewise doctor
What this machine allows           pagewise check
A guide to the first question      pagewise help slow
All commands and topics            pagewise help
";

/// Show how to use a command, or a guide
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A command, or a topic: `pagewise help` lists both
    #[arg(value_name = "COMMAND|TOPIC")]
    words: Vec<String>,
}

struct Topic {
    name: &'static str,
    title: &'static str,
    packed: &'static [u8],
}

/// Guides, pages by subject, schemas; written by the build script.
static TOPICS: &[Topic] = &include!(concat!(env!("OUT_DIR"), "/topics.rs"));

impl Topic {
    fn named(name: &str) -> Option<&'static Self> {
        let name = name.to_lowercase();
        let name = name.strip_suffix(".md").unwrap_or(&name);
        TOPICS.iter().find(|topic| topic.name == name)
    }

    fn is_schema(&self) -> bool {
        self.name.ends_with(".json")
    }

    fn text(&self) -> io::Result<String> {
        let mut text = String::new();
        GzDecoder::new(self.packed).read_to_string(&mut text)?;
        Ok(match self.is_schema() {
            true => text,
            false => markdown::plain(&text, |name| Self::named(name).is_some()),
        })
    }
}

/// Prints the requested text.
///
/// # Errors
/// If there is no such command or topic, or the output is closed.
pub fn run(args: &Args, mut whole: Command) -> Result<()> {
    whole.build();
    let mut out = standard_output();
    let topic = match &*args.words {
        [] => {
            let topics = shown(&topics());
            write!(out, "{}\n{topics}", whole.render_long_help())?;
            return Ok(());
        }
        [word] => Topic::named(word),
        _ => None,
    };
    let command = below(&mut whole, &args.words);
    if command.is_none() && topic.is_none() {
        let words = args.words.join(" ");
        bail!("there is no command or topic {words:?}; `pagewise help` lists them");
    }
    // A word may be both.
    if let Some(command) = command {
        writeln!(out, "{}", command.render_long_help())?;
    }
    if let Some(topic) = topic {
        let text = topic.text()?;
        let text = match topic.is_schema() {
            true => text,
            false => shown(&text),
        };
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// A document rendered for our standard output.
fn shown(text: &str) -> String {
    pagewise_report::text::topic::render(text, terminal::width(), terminal::style())
}

/// Lists on standard error the processes that fault at present, if none was given.
pub fn tell_busiest() {
    let style = Style {
        color: false,
        ..terminal::style()
    };
    let found = pagewise_operate::busiest::busiest();
    let width = terminal::columns().unwrap_or(100);
    let text = pagewise_report::text::busiest::render(&found, width, style);
    terminal::tell(&format!("\n{}", text.trim_end()));
}

/// The command that `words` lead to.
fn below<'a>(command: &'a mut Command, words: &[String]) -> Option<&'a mut Command> {
    words
        .iter()
        .try_fold(command, |command, word| command.find_subcommand_mut(word))
}

fn topics() -> String {
    let (schemas, guides): (Vec<_>, Vec<_>) = TOPICS.iter().partition(|topic| topic.is_schema());
    let row = |topic: &&Topic| format!("  {:14} {}\n", topic.name, topic.title);
    let guides: String = guides.iter().map(row).collect();
    let schemas: Vec<_> = schemas.iter().map(|topic| topic.name).collect();
    let schemas = schemas.join(" ");
    format!("Topics (pagewise help TOPIC):\n{guides}\nSchema of --json: {schemas}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_of_the_first_steps_has_its_guide() {
        for name in ["slow", "memory", "differ", "less-memory", "huge-pages"] {
            let topic = Topic::named(name).unwrap_or_else(|| panic!("no topic {name}"));
            assert!(topic.text().unwrap().starts_with(topic.title), "{name}");
            assert!(topics().contains(topic.title), "{name}");
        }
    }

    #[test]
    fn the_schema_comes_out_as_it_is() {
        let documents = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
        let expected = std::fs::read_to_string(documents.join("schema.json")).unwrap();
        let topic = Topic::named("schema.json").unwrap();
        assert_eq!(topic.text().unwrap(), expected);
    }

    #[test]
    fn each_topic_that_a_topic_points_to_is_there() {
        for topic in TOPICS.iter().filter(|topic| !topic.is_schema()) {
            let text = topic.text().unwrap();
            for (_, rest) in text.match_indices("pagewise help ").map(|(at, found)| {
                let rest = &text[at + found.len()..];
                (at, rest)
            }) {
                let name = rest.split([')', ' ', '\n', '`', ',']).next().unwrap();
                let is_known = Topic::named(name).is_some() || name == "TOPIC";
                assert!(is_known, "{}: pagewise help {name}", topic.name);
            }
            assert!(!text.contains("]("), "{}: a link is left", topic.name);
        }
    }
}
