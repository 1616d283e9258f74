//! `pagewise check`: what this machine allows, what is missing, how to get it.

use crate::terminal;
use anyhow::Result;
use clap::Args as ClapArgs;
use pagewise_linux::{capability, proc::ProcRoot, pseudo_file};
use pagewise_model::capability::{Availability, Capability};
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  pagewise check                      what works here, what does not
  pagewise check --json | jq '.capabilities[] | select(.state != \"available\")'
  sudo pagewise check                 the same with root's rights";

/// Options of `pagewise check`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// Print JSON (schema: pagewise help check.json)
    #[arg(long)]
    json: bool,
}

/// Version of docs/schema/check.json.
const CHECK_VERSION: u32 = 1;

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    kernel: &'a str,
    capabilities: &'a [Capability],
}

/// Tries everything and prints what was found. A missing capability is no failure.
///
/// # Errors
/// When the result cannot be printed.
pub fn run(args: &Args) -> Result<ExitCode> {
    let found = capability::capabilities();
    let release = ProcRoot::default().path("sys/kernel/osrelease");
    let kernel = pseudo_file::setting(&release).unwrap_or_else(|| "unknown".to_string());
    let mut out = terminal::output(args.json);
    match args.json {
        true => print_json(&mut out, &kernel, &found)?,
        false => write!(out, "{}", text(&found, &kernel, &Look::of_output()))?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn print_json(out: &mut impl Write, kernel: &str, capabilities: &[Capability]) -> Result<()> {
    let document = Document {
        schema_version: CHECK_VERSION,
        kernel,
        capabilities,
    };
    Ok(out.write_all(pagewise_report::json::to_string(&document)?.as_bytes())?)
}

/// How text is laid out.
struct Look {
    width: usize,
    colours: bool,
}

impl Look {
    /// As suits standard output: its width and colours on a terminal, plain otherwise.
    fn of_output() -> Self {
        Self {
            width: terminal::width().clamp(40, 120),
            colours: terminal::style().color,
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        match self.colours {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }
}

/// Headings by the first part of the capabilities' names.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Faults and code", &["perf.", "kernel.symbols"]),
    ("Kernel tracing", &["tracefs", "tracepoints.", "ftrace."]),
    (
        "Memory",
        &[
            "psi",
            "proc.",
            "userfaultfd",
            "io_uring",
            "process_madvise",
            "memcg",
            "thp",
            "limits.",
        ],
    ),
    ("Confinement", &["pid_namespace", "sandbox"]),
];

fn text(found: &[Capability], kernel: &str, look: &Look) -> String {
    let mut text = format!("{}\n", summary(found, kernel));
    let mut shown = 0;
    for (heading, prefixes) in GROUPS {
        let belongs = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let members: Vec<_> = found.iter().filter(|one| belongs(&one.name)).collect();
        shown += members.len();
        text += &section(heading, &members, look);
    }
    debug_assert_eq!(shown, found.len(), "each capability is in one group");
    text
}

fn section(heading: &str, members: &[&Capability], look: &Look) -> String {
    let entries: String = members.iter().map(|one| entry(one, look)).collect();
    format!("\n{}\n{entries}", look.paint("1", heading))
}

fn summary(found: &[Capability], kernel: &str) -> String {
    let count = |state| found.iter().filter(|one| one.state == state).count();
    format!(
        "Linux {kernel}: {} of {} work, {} in part, {} missing.",
        count(Availability::Available),
        found.len(),
        count(Availability::Limited),
        count(Availability::Missing)
    )
}

/// Columns before the finding: two blanks, the mark, a blank, the name.
const INDENT: usize = 27;

/// What works takes a line; what does not also tells what follows and what to do.
fn entry(capability: &Capability, look: &Look) -> String {
    let mark = match capability.state {
        Availability::Available => look.paint("32", "✓"),
        Availability::Limited => look.paint("33", "~"),
        Availability::Missing => look.paint("31", "✗"),
    };
    let finding = wrapped(&capability.finding, look.width);
    let mut text = format!("  {mark} {:<22} {finding}\n", capability.name);
    if capability.state != Availability::Available {
        let blank = " ".repeat(INDENT);
        let consequence = wrapped(&capability.consequence, look.width);
        text += &format!("{blank}{}\n", look.paint("2", &consequence));
        if let Some(remedy) = &capability.remedy {
            let remedy = wrapped(&format!("→ {remedy}"), look.width);
            text += &format!("{blank}{}\n", look.paint("36", &remedy));
        }
    }
    text
}

/// Breaks `text` at blanks, so that it fits between the indent and `width`; a word that does not fit
/// alone, behind a slash or anywhere.
fn wrapped(text: &str, width: usize) -> String {
    let room = width.saturating_sub(INDENT).max(20);
    let mut result = String::new();
    let mut used = 0;
    for mut word in text.split(' ') {
        while word.chars().count() > room {
            if used > 0 {
                result.push('\n');
                result.push_str(&" ".repeat(INDENT));
            }
            let end = word
                .char_indices()
                .nth(room)
                .map_or(word.len(), |(at, _)| at);
            let end = word[..end].rfind('/').map_or(end, |slash| slash + 1);
            result.push_str(&word[..end]);
            used = room;
            word = &word[end..];
        }
        let length = word.chars().count();
        if used > 0 && used + 1 + length > room {
            result.push('\n');
            result.push_str(&" ".repeat(INDENT));
            used = 0;
        } else if used > 0 {
            result.push(' ');
            used += 1;
        }
        result.push_str(word);
        used += length;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capability(name: &str, state: Availability) -> Capability {
        Capability {
            name: name.to_string(),
            state,
            finding: "what was found".to_string(),
            consequence: "What follows.".to_string(),
            remedy: Some("sudo sysctl x=1".to_string()),
        }
    }

    const PLAIN: Look = Look {
        width: 80,
        colours: false,
    };

    #[test]
    fn what_works_takes_one_line_and_what_does_not_tells_what_to_do() {
        let found = [
            capability("perf.software", Availability::Available),
            capability("psi", Availability::Missing),
        ];
        let expected = "\
Linux 6.18: 1 of 2 work, 0 in part, 1 missing.

Faults and code
  ✓ perf.software          what was found

Kernel tracing

Memory
  ✗ psi                    what was found
                           What follows.
                           → sudo sysctl x=1

Confinement
";
        assert_eq!(text(&found, "6.18", &PLAIN), expected);
    }

    #[test]
    fn every_capability_is_in_exactly_one_group() {
        for found in capability::capabilities() {
            let belongs = |prefixes: &&[&str]| prefixes.iter().any(|p| found.name.starts_with(p));
            let groups = GROUPS
                .iter()
                .filter(|(_, prefixes)| belongs(prefixes))
                .count();
            assert_eq!(groups, 1, "{}", found.name);
        }
    }

    #[test]
    fn a_path_that_is_wider_than_the_terminal_is_broken_behind_a_slash() {
        let text = wrapped(
            "cannot read /sys/kernel/tracing/available_tracers: closed",
            60,
        );
        let blank = " ".repeat(INDENT);
        let lines = [
            "cannot read",
            "/sys/kernel/tracing/",
            "available_tracers: closed",
        ];
        assert_eq!(text, lines.join(&format!("\n{blank}")));
        let text = wrapped(&"x".repeat(100), 60);
        assert!(text.lines().all(|line| line.trim().len() <= 60 - INDENT));
        assert_eq!(text.matches('x').count(), 100);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [60, 80, 120] {
            let look = Look {
                width,
                colours: false,
            };
            let text = text(&capability::capabilities(), "6.18", &look);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width, "{widest} of {width}:\n{text}");
        }
    }
}
