//! What a machine allows, for a person.

use super::Style;
use pagewise_model::capability::{Availability, Capability, Check};

/// How text is laid out.
struct Look {
    width: usize,
    colours: bool,
}

impl Look {
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
            "run.",
        ],
    ),
    ("Confinement", &["pid_namespace", "sandbox"]),
];

/// What works, what does not, what follows and what to do.
#[must_use]
pub fn render(check: &Check, width: usize, style: Style) -> String {
    let found = &check.capabilities;
    let look = &Look {
        width: width.clamp(40, 120),
        colours: style.color,
    };
    let mut text = format!("{}\n", summary(found, &check.kernel));
    for (heading, prefixes) in GROUPS {
        let belongs = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let members: Vec<_> = found.iter().filter(|one| belongs(&one.name)).collect();
        text += &section(heading, &members, look);
    }
    let others: Vec<_> = found.iter().filter(|one| !is_grouped(&one.name)).collect();
    if !others.is_empty() {
        text += &section("Others", &others, look);
    }
    text
}

/// Documents of other versions may hold more.
fn is_grouped(name: &str) -> bool {
    let mut prefixes = GROUPS.iter().flat_map(|(_, prefixes)| *prefixes);
    prefixes.any(|prefix| name.starts_with(prefix))
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
    use pagewise_model::capability::CHECK_VERSION;
    use pagewise_model::document::Kind;

    fn capability(name: &str, state: Availability) -> Capability {
        Capability {
            name: name.to_string(),
            state,
            finding: "what was found".to_string(),
            consequence: "What follows.".to_string(),
            remedy: Some("sudo sysctl x=1".to_string()),
        }
    }

    fn rendered(capabilities: &[Capability], width: usize) -> String {
        let check = Check {
            kind: Kind::Check,
            schema_version: CHECK_VERSION,
            kernel: "6.18".to_string(),
            capabilities: capabilities.to_vec(),
        };
        let plain = Style {
            color: false,
            unicode: true,
        };
        render(&check, width, plain)
    }

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
        assert_eq!(rendered(&found, 80), expected);
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
}
