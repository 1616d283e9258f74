//! The head of every comparison: the two sides.

use super::page::{Ink, Page};
use crate::visible::{named, visible};
use pagewise_model::side::{SettingChange, Side};

/// Both sides: each with its name, command, totals in words, and host.
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

pub(super) fn setting_line(setting: &SettingChange) -> String {
    let value = |value: &Option<String>| match value {
        Some(value) => visible(value).into_owned(),
        None => "absent".to_owned(),
    };
    format!(
        "{}: {} in A, {} in B",
        visible(&setting.name),
        value(&setting.a),
        value(&setting.b)
    )
}
