//! Page sizes taken back, for a person.

use super::Style;
use crate::visible::visible;
use pagewise_model::huge_undo::HugeUndo;
use std::fmt::Write;

/// A line or two about each process.
#[must_use]
pub fn render(undo: &HugeUndo, _width: usize, _style: Style) -> String {
    let mut text = String::new();
    if undo.processes.is_empty() {
        text += "Nothing to take back.\n";
    }
    for one in &undo.processes {
        let (pid, comm) = (one.pid, visible(&one.comm));
        if one.settings + one.settings_left > 0 {
            let _ = writeln!(
                text,
                "Settings of the machine by {comm} ({pid}): {} are as they were; {} were written \
                 by somebody else since and left",
                one.settings, one.settings_left
            );
        }
        let _ = match one.running {
            false => writeln!(
                text,
                "{comm} ({pid}) has ended: its page sizes went with it"
            ),
            true => writeln!(
                text,
                "{comm} ({pid}): {} slots have their first page size again, verified in the page \
                 map; {} were given back by the program; {} could not be changed",
                one.restored, one.gone, one.refused
            ),
        };
    }
    text
}
