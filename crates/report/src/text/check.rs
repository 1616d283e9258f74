//! The capabilities of a machine, for a person.

use super::Style;
use super::page::{Ink, Page};
use super::wrap::columns;
use super::wrap::wrap;
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::capability::{Availability, Capability, Check};

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

/// What works, what does not, the consequences and the remedies, as text of at most `width`
/// columns.
#[must_use]
pub fn render(document: &Document<Check>, width: usize, style: Style) -> String {
    let check = &document.evidence;
    let found = &check.capabilities;
    let mut page = Page::new(width, style);
    page.indented(0, Ink::Strong, &visible(&document.verdict));
    for (heading, prefixes) in GROUPS {
        let belongs = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        section(&mut page, heading, found, belongs);
    }
    section(&mut page, "Others", found, |name| !is_grouped(name));
    page.finish()
}

/// Documents of other versions may contain further groups.
fn is_grouped(name: &str) -> bool {
    let mut prefixes = GROUPS.iter().flat_map(|(_, prefixes)| *prefixes);
    prefixes.any(|prefix| name.starts_with(prefix))
}

fn section(page: &mut Page, heading: &str, found: &[Capability], belongs: impl Fn(&str) -> bool) {
    let mut members = found.iter().filter(|one| belongs(&one.name)).peekable();
    if members.peek().is_some() {
        page.heading(heading);
    }
    for member in members {
        entry(page, member);
    }
}

/// Columns before the finding: two blanks, the mark, a blank, the name.
const INDENT: usize = 27;

/// A working capability takes one line; others also get consequences and a remedy.
fn entry(page: &mut Page, capability: &Capability) {
    let (mark, ink) = match capability.state {
        Availability::Available => ("✓", Ink::Good),
        Availability::Limited => ("~", Ink::Caution),
        Availability::Missing => ("✗", Ink::Bad),
    };
    let name = visible(&capability.name);
    let mut before = format!("  {} {name:<22} ", page.paint(ink, mark));
    if columns(&name) > INDENT - 5 {
        page.line(&before);
        before = " ".repeat(INDENT);
    }
    for line in wrap(&visible(&capability.finding), page.width - INDENT) {
        page.line(&format!("{before}{line}"));
        before = " ".repeat(INDENT);
    }
    if capability.state != Availability::Available {
        page.indented(INDENT, Ink::Faint, &visible(&capability.consequence));
        if let Some(remedy) = &capability.remedy {
            page.indented(INDENT, Ink::Code, &format!("→ {}", visible(remedy)));
        }
    }
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

    fn rendered(capabilities: &[Capability], width: usize) -> String {
        let check = Check {
            kernel: "6.18".to_string(),
            capabilities: capabilities.to_vec(),
        };
        render(&Document::new(check), width, Style::PLAIN)
    }

    #[test]
    fn what_works_takes_one_line_and_what_does_not_says_what_to_do() {
        let found = [
            capability("perf.software", Availability::Available),
            capability("psi", Availability::Missing),
        ];
        let expected = "\
Linux 6.18: 1 of 2 available, 0 partial, 1 missing.

Faults and code
  ✓ perf.software          what was found

Memory
  ✗ psi                    what was found
                           What follows.
                           → sudo sysctl x=1
";
        assert_eq!(rendered(&found, 80), expected);
    }
}
