//! Who touched the resident memory first.

use super::super::columns::{Row, named};
use super::super::page::{Ink, Page, chain};
use super::stacks::{INDENT, bytes, range};
use crate::visible::visible;
use pagewise_model::memory::{Memory, TouchedMemory, TouchedStack};
use pagewise_model::quantity::counted;

/// Looks at processes that are shown.
const MOST_LOOKS: usize = 2;

/// The stacks that made most of the private memory, at most so many of each process.
pub fn touched(page: &mut Page, memory: &Memory, most: usize) {
    for process in memory.touched.iter().take(MOST_LOOKS) {
        let is_one = memory.touched.iter().all(|one| one.pid == process.pid);
        stacks(page, process, most, !is_one);
    }
}

fn stacks(page: &mut Page, process: &TouchedMemory, most: usize, is_one_of_many: bool) {
    let total = process.resident.0 as f64;
    let room = page.width.saturating_sub(INDENT);
    let rows = process.stacks.iter().take(most).map(|stack| {
        let names = process.functions_of(stack).rev();
        let names: Vec<String> = names.map(|one| one.name.clone()).collect();
        Row::new([
            place(stack),
            bytes(stack.bytes.value),
            range(stack.bytes, total),
        ])
        .with_below(chain(&names, room))
    });
    let whose = match is_one_of_many {
        true => format!(" of {} ({})", visible(&process.name), process.pid),
        false => String::new(),
    };
    let title = format!(
        "Who first touched the {} of private memory{whose} {}, after {}",
        process.resident,
        if process.is_peak {
            "at the largest look"
        } else {
            "later"
        },
        process.elapsed_ns
    );
    page.table(
        &title,
        &named("touched by", &["memory", "share (95 %)"]),
        rows,
    );
    page.more(process.stacks.len(), most);
    let mut line = format!(
        "From {} on pages that were in memory at that look.",
        counted(process.samples, "recorded fault")
    );
    if process.unseen.0 > 0 {
        line.push_str(&format!(
            " {} were touched before the recording, or without a fault or a call stack.",
            process.unseen
        ));
    }
    page.indented(2, Ink::Faint, &line);
    page.gap();
}

/// The function that touched the pages for itself.
fn place(stack: &TouchedStack) -> String {
    match stack.culprit.is_empty() {
        true => "[no stack]".to_owned(),
        false => visible(&stack.culprit).into_owned(),
    }
}
