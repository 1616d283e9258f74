//! Page sizes restored, for a person.

use super::Style;
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::huge_undo::HugeUndo;
use pagewise_model::quantity::counted;

/// A line or two about each process, of at most `width` columns.
#[must_use]
pub fn render(document: &Document<HugeUndo>, width: usize, style: Style) -> String {
    let undo = &document.evidence;
    let mut page = Page::new(width, style);
    page.line(&document.verdict);
    for one in &undo.processes {
        let process = format!("{} ({})", visible(&one.comm), one.pid);
        if one.settings + one.settings_left > 0 {
            let text = format!(
                "Machine settings changed by {process}: {} are restored; {} were changed by another program since and left as they are",
                one.settings, one.settings_left
            );
            page.indented(0, Ink::Plain, &text);
        }
        let text = match one.running {
            false => format!("{process} has ended, and its page sizes with it"),
            true => format!(
                "{process}: {} restored to the original page size, verified in the page map; {} released by the program; {} could not be changed",
                counted(one.restored, "slot"),
                one.gone,
                one.refused
            ),
        };
        page.indented(0, Ink::Plain, &text);
    }
    page.finish()
}
