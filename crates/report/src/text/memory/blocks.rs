//! Who holds memory: groups of blocks, and what grew between two looks.

use super::super::columns::{Column, Row, named};
use super::super::page::Page;
use super::{row_name, signed};
use crate::visible::visible;
use pagewise_model::memory::{BlockChange, BlockGroup, Growth, MemoryMoment, MemoryRow};
use pagewise_model::quantity::{count, percent};
use pagewise_model::units::{Bytes, Estimate, Nanos};

/// Most groups of blocks shown; JSON has all.
const MOST_GROUPS: usize = 12;

/// Who holds what is in use, and what pins free space.
pub fn holders(page: &mut Page, moment: &MemoryMoment) {
    let blocks = moment.groups(|process| &process.blocks);
    let total = blocks.iter().map(|group| group.bytes.value).sum::<f64>();
    if total < LEAST_HELD {
        return;
    }
    let heads = named("blocks", &["bytes", "±", "share", "about"]);
    groups(page, "In use, by type or size of block", &heads, &blocks);
    let pins = moment.groups(|process| &process.pins);
    let pinned = pins.iter().map(|group| group.bytes.value).sum::<f64>();
    if pinned >= LEAST_HELD.max(total / 20.0) {
        let heads = named(
            "smallest block on the page",
            &["pinned", "±", "share", "pages"],
        );
        groups(page, "What holds pages with free space", &heads, &pins);
    }
}

/// What the blocks to which no pointer leads are.
pub fn leaks(page: &mut Page, moment: &MemoryMoment) {
    let leaked = moment.groups(|process| match &process.leaks {
        Some(check) => &check.groups,
        None => &[],
    });
    let total = leaked.iter().map(|group| group.bytes.value).sum::<f64>();
    if total >= LEAST_LEAKED {
        let heads = named("blocks", &["bytes", "±", "share", "about"]);
        groups(page, "Leaked, by type or size of block", &heads, &leaked);
    }
}

/// Bytes in blocks from which it is worth showing who has them.
const LEAST_HELD: f64 = (1 << 20) as f64;

/// The same of leaked ones: a few blocks that a library never frees are a note.
const LEAST_LEAKED: f64 = (64 << 10) as f64;

fn groups(page: &mut Page, title: &str, heads: &[Column<'_>], groups: &[BlockGroup]) {
    let total = groups.iter().map(|group| group.bytes.value).sum::<f64>();
    let rows = groups.iter().take(MOST_GROUPS).map(|group| {
        let error = (group.bytes.high - group.bytes.low) / 2.0;
        Row::new([
            group_name(group),
            bytes(group.bytes.value).to_string(),
            bytes(error).to_string(),
            percent(group.bytes.value / total.max(1.0)),
            count(rounded(group.count)),
        ])
    });
    page.table(title, heads, rows);
    page.more(groups.len(), MOST_GROUPS);
}

fn bytes(value: f64) -> Bytes {
    Bytes(rounded(value))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast saturates, and estimates are not negative"
)]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

fn group_name(group: &BlockGroup) -> String {
    let allocator = group.allocator.name();
    let size = match group.size.low == group.size.high {
        true => group.size.low.to_string(),
        false => format!("{}–{}", group.size.low, group.size.high),
    };
    match &group.object {
        Some(object) => format!("{} ({allocator}, {size})", visible(object)),
        None => format!("{allocator}, {size}"),
    }
}

/// Most rows that grew, or groups of blocks, that are shown; JSON has all.
const MOST_CHANGES: usize = 12;

/// What grew between two looks.
pub fn growth(page: &mut Page, growth: &Growth) {
    let per_hour = |added: f64| {
        growth.elapsed_ns.map_or_else(String::new, |elapsed| {
            let hours = elapsed as f64 / 3600e9;
            signed(added / hours.max(f64::MIN_POSITIVE))
        })
    };
    let rows = growth.rows.iter().take(MOST_CHANGES).map(|change| {
        let added = change.added() as f64;
        let row = MemoryRow {
            allocator: change.allocator,
            part: change.part,
            ..MemoryRow::new(change.kind)
        };
        Row::new([
            row_name(&row),
            change.before.to_string(),
            change.after.to_string(),
            signed(added),
            per_hour(added),
        ])
    });
    let title = growth.elapsed_ns.map_or_else(
        || "What grew from the first look to the second".to_owned(),
        |elapsed| format!("What grew in {}", Nanos(elapsed)),
    );
    let heads = named("what", &["before", "after", "added", "per hour"]);
    page.table(&title, &heads, rows);
    page.more(growth.rows.len(), MOST_CHANGES);
    // Of the others, the draws do not tell whether they changed at all.
    let sure = |change: &&BlockChange| change.added.low > 0.0 || change.added.high < 0.0;
    let changed: Vec<&BlockChange> = growth.blocks.iter().filter(sure).collect();
    let blocks = changed.iter().take(MOST_CHANGES).map(|change| {
        let Estimate { value, low, high } = change.added;
        Row::new([
            group_name(&change.group),
            signed(value),
            signed((high - low) / 2.0)
                .trim_start_matches('+')
                .to_owned(),
            per_hour(value),
        ])
    });
    let heads = named("blocks", &["added", "±", "per hour"]);
    page.table("Blocks in use that grew", &heads, blocks);
    page.more(changed.len(), MOST_CHANGES);
}
