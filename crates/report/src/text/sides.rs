//! Which two are compared: the head of every comparison.

use super::page::{Ink, Page};
use crate::visible::{named, visible};
use pagewise_model::side::Side;

/// Both sides, each by its name with its command, sums in words, and its host.
pub(super) fn sides<E>(
    page: &mut Page,
    a: &Side<E>,
    b: &Side<E>,
    sums: impl Fn(&E) -> Vec<String>,
) {
    for (letter, side) in [("A", a), ("B", b)] {
        let host = match &*side.host {
            "" => String::new(),
            host => format!("host {host}"),
        };
        let subject = named(&side.subject, false);
        let parts = [subject].into_iter().chain(sums(side)).chain([host]);
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        let line = format!("{}: {}", visible(&side.name), parts.join(", "));
        page.paragraph(letter, Ink::Plain, &line);
    }
}
