//! A function's samples by line and by instruction, for a person.

use super::Style;
use super::columns::{Row, figures, words};
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::annotated::{Annotated, AnnotatedEvent};
use pagewise_model::quantity::{counted, percent, share};

/// Most instructions that are listed: those with most samples.
const INSTRUCTIONS: usize = 20;

/// What is said first.
#[must_use]
pub fn verdict(found: &Annotated) -> String {
    let message = found
        .events
        .iter()
        .filter(|event| event.with_callees > 0)
        .map(|event| {
            format!(
                "{} of {} ({})",
                percent(share(event.own, event.all)),
                event.name,
                with_callees(event)
            )
        });
    let message: Vec<String> = message.collect();
    let module = if found.module.is_empty() {
        String::new()
    } else {
        format!(" ({})", found.module)
    };
    format!("{}{module} takes {}.", found.function, message.join(", "))
}

/// What it takes with its callees, and of how many samples all that is a share.
pub(crate) fn with_callees(event: &AnnotatedEvent) -> String {
    format!(
        "{} with what it calls; {}",
        percent(share(event.with_callees, event.all)),
        counted(event.samples, "sample")
    )
}

/// Events that were sampled in the function, with their numbers.
pub(crate) fn sampled(found: &Annotated) -> Vec<(usize, &AnnotatedEvent)> {
    let events = found.events.iter().enumerate();
    events.filter(|(_, event)| event.with_callees > 0).collect()
}

/// A place as text: the file without its folders, and the line.
pub(crate) fn place(place: Option<&(String, u32)>) -> String {
    match place {
        Some((file, line)) => format!("{}:{line}", file.rsplit('/').next().unwrap_or(file)),
        None => "line not known".to_owned(),
    }
}

/// The lines in the order of the source, then the instructions with most samples.
#[must_use]
pub fn render(found: &Annotated, width: usize, style: Style) -> String {
    let mut page = Page::new(width, style);
    page.marked("● annotate", Ink::Strong, &visible(&verdict(found)));
    let events = sampled(found);
    let mut heads = vec![words("line")];
    let names: Vec<[String; 2]> = events
        .iter()
        .map(|(_, event)| [visible(&event.name).into_owned(), "with callees".to_owned()])
        .collect();
    heads.extend(names.iter().flatten().map(|name| figures(name)));
    heads.push(words("source"));
    let cell = |part: u64, event: &AnnotatedEvent| match part {
        0 => String::new(),
        part => percent(share(part, event.all)),
    };
    let rows = found.lines.iter().map(|line| {
        let mut cells = vec![visible(&place(line.place.as_ref())).into_owned()];
        for &(at, event) in &events {
            cells.push(cell(line.own[at], event));
            cells.push(cell(line.with_callees[at], event));
        }
        cells.push(visible(line.text.as_deref().unwrap_or_default().trim_end()).into_owned());
        Row::new(cells)
    });
    page.table("Lines (of all samples of an event)", &heads, rows);
    let mut hottest: Vec<_> = found.instructions.iter().collect();
    hottest.sort_by_key(|one| std::cmp::Reverse(one.own.iter().sum::<u64>()));
    hottest.truncate(INSTRUCTIONS);
    hottest.sort_by_key(|one| one.into);
    let mut heads = vec![words("instruction"), words("line")];
    heads.extend(names.iter().map(|[name, _]| figures(name)));
    let rows = hottest.into_iter().map(|one| {
        let line = visible(&place(one.place.as_ref())).into_owned();
        let mut cells = vec![format!("+{:#x}", one.into), line];
        cells.extend(events.iter().map(|&(at, event)| cell(one.own[at], event)));
        Row::new(cells)
    });
    page.table("Instructions with most samples", &heads, rows);
    page.gap();
    page.list("Notes", found.missing.iter().map(|note| visible(note)));
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::annotated::{AnnotatedInstruction, AnnotatedLine};

    #[test]
    fn lines_have_their_share_of_each_event_and_their_text() {
        let event = |name: &str, own, with_callees| AnnotatedEvent {
            name: name.to_owned(),
            all: 200,
            own,
            with_callees,
            samples: with_callees / 4,
        };
        let place = Some(("/src/a.c".to_owned(), 7));
        let found = Annotated {
            function: "fill".to_owned(),
            module: "a.out".to_owned(),
            events: vec![event("cpu-clock", 50, 100), event("cycles", 0, 0)],
            lines: vec![AnnotatedLine {
                place: place.clone(),
                text: Some("    p[i] = 1;".to_owned()),
                own: vec![50, 0],
                with_callees: vec![100, 0],
            }],
            instructions: vec![AnnotatedInstruction {
                into: 28,
                place,
                own: vec![50, 0],
            }],
            missing: None,
        };
        let text = render(&found, 100, Style::PLAIN);
        assert!(
            text.contains("fill (a.out) takes 25 % of cpu-clock (50 % with what it calls; 25"),
            "{text}"
        );
        let line = text
            .lines()
            .find(|line| line.contains("p[i] = 1;"))
            .expect("the line");
        assert!(
            line.contains("a.c:7") && line.contains("25 %") && line.contains("50 %"),
            "{line}"
        );
        assert!(text.contains("+0x1c") && !text.contains("cycles"), "{text}");
    }
}
