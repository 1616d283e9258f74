//! Who holds memory: the call stacks that allocated what is live, and their parts.

use super::super::columns::{Row, named};
use super::super::page::{Ink, Page, chain};
use super::signed;
use crate::visible::visible;
use pagewise_model::memory::{Held, HeldStack, Holders, ProcessHolders, StackChange, holder};
use pagewise_model::quantity::{counted, percent};
use pagewise_model::units::{Bytes, Estimate, Nanos};

/// Stacks of a process that are shown; JSON and exports have all.
const MOST_STACKS: usize = 8;
/// Processes that are shown.
const MOST_PROCESSES: usize = 3;
/// Live bytes from which a process's stacks are worth showing.
const LEAST_HELD: f64 = (1 << 20) as f64;
/// Columns for the names of a stack's frames, beside its indent.
pub(super) const INDENT: usize = 6;

/// The stacks of the processes that held most.
pub fn holders(page: &mut Page, holders: &Holders) {
    let is_worth = |process: &&ProcessHolders| process.peak.bytes.value >= LEAST_HELD;
    let worth: Vec<&ProcessHolders> = holders.processes.iter().filter(is_worth).collect();
    for process in worth.iter().take(MOST_PROCESSES) {
        stacks(page, process, worth.len() > 1);
    }
    if worth.len() > MOST_PROCESSES {
        page.more(worth.len(), MOST_PROCESSES);
    }
    if worth.is_empty() && !holders.processes.is_empty() {
        page.heading("Who holds it");
        let line = "Less than 1 MiB was live in any process at its peak.";
        page.indented(2, Ink::Plain, line);
        page.gap();
    }
}

fn stacks(page: &mut Page, process: &ProcessHolders, is_one_of_many: bool) {
    let whose = match is_one_of_many {
        true => format!(" in {} ({})", visible(&process.program), process.pid),
        false => String::new(),
    };
    let peak = process.peak.bytes.value;
    let room = page.width.saturating_sub(INDENT);
    let rows = process.stacks.iter().take(MOST_STACKS).map(|stack| {
        Row::new([
            place(process, stack),
            bytes(stack.peak.bytes.value),
            range(stack.peak.bytes, peak),
            bytes(stack.end.bytes.value),
            bytes(stack.allocated.bytes.value),
        ])
        .with_below(chain(&names(process, stack), room))
    });
    let title = format!(
        "Who held the {} that were live at the peak{whose}, after {}",
        bytes(peak),
        Nanos(process.peak_ns)
    );
    let heads = named(
        "allocated by",
        &["at the peak", "share (95 %)", "at the end", "ever"],
    );
    page.table(&title, &heads, rows);
    page.more(process.stacks.len(), MOST_STACKS);
    let Held { bytes: end, .. } = process.end;
    let line = format!(
        "{} of {} allocated in all; live at the end: {}.",
        counted(process.samples, "sample"),
        bytes(process.allocated.bytes.value),
        bytes(end.value)
    );
    page.indented(2, Ink::Faint, &line);
    page.gap();
}

/// The share of the whole, as far as the samples tell.
pub(super) fn range(of: Estimate, whole: f64) -> String {
    let whole = whole.max(1.0);
    let [low, high] = [of.low, of.high].map(|end| percent((end / whole).min(1.0)));
    format!("{low} – {high}")
}

/// The function that allocated the blocks.
fn place(process: &ProcessHolders, stack: &HeldStack) -> String {
    let known = |&frame: &u32| process.functions.get(frame as usize);
    holder(stack.frames.iter().filter_map(known)).map_or_else(
        || "[no stack]".to_owned(),
        |one| visible(&one.name).into_owned(),
    )
}

/// What grew and shrank, by stack.
pub fn changes(page: &mut Page, changes: &[StackChange]) {
    let room = page.width.saturating_sub(INDENT);
    let rows = changes.iter().take(MOST_STACKS).map(|change| {
        let names = change.frames.iter().rev();
        Row::new([
            visible(&change.place()).into_owned(),
            bytes(change.before.value),
            bytes(change.after.value),
            signed(change.added.value),
            bytes((change.added.high - change.added.low) / 2.0),
        ])
        .with_below(chain(
            &names.map(|one| one.name.clone()).collect::<Vec<_>>(),
            room,
        ))
    });
    let heads = named("allocated by", &["before", "after", "added", "±"]);
    page.table("Call stacks that hold more or less", &heads, rows);
    page.more(changes.len(), MOST_STACKS);
}

/// Outermost first.
fn names(process: &ProcessHolders, stack: &HeldStack) -> Vec<String> {
    let known = |&frame: &u32| Some(process.functions.get(frame as usize)?.name.clone());
    stack.frames.iter().rev().filter_map(known).collect()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast saturates, and estimates are not negative"
)]
pub(super) fn bytes(value: f64) -> String {
    Bytes(value.round() as u64).to_string()
}
