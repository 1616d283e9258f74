//! Where the memory of processes went, for a person.

mod blocks;
mod course;
mod stacks;
mod touched;

use super::Style;
use super::columns::{Row, named};
use super::page::{Ink, Page, shorten};
use crate::settings_export::exports;
use crate::visible::visible;
use pagewise_model::advice::Advice;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::answer::Document;
use pagewise_model::memory::{
    HeapCheck, HeapPart, Held, Memory, MemoryKind, MemoryMoment, MemoryRow, MemoryVerdict,
    MemoryWhen, Unread,
};
use pagewise_model::quantity::{count, counted, percent, share};
use pagewise_model::units::{Bytes, Nanos};

/// The verdict, the fix and the account, as text of at most `width` columns.
#[must_use]
pub fn render(document: &Document<Memory>, width: usize, style: Style) -> String {
    let memory = &document.evidence;
    let mut page = Page::new(width, style);
    let program = shorten(&visible(&subject(document)), page.width.saturating_sub(11));
    let line = page.paint(Ink::Faint, &program);
    let label = page.label("pagewise");
    page.line(&format!("{label}{line}"));
    page.gap();
    let (word, ink) = mark(memory.finding.verdict);
    page.marked(word, ink, &visible(&document.verdict));
    page.gap();
    if let Some(diagnosis) = document.diagnoses.first() {
        page.paragraph("Why", Ink::Plain, &visible(&diagnosis.explanation));
        page.gap();
    }
    for (place, advice) in document.advice.iter().enumerate() {
        fix(&mut page, if place == 0 { "Fix" } else { "Or" }, advice);
    }
    if let Some(found) = &memory.growth {
        blocks::growth(&mut page, found);
        stacks::changes(&mut page, &found.stacks);
    }
    // What a first look saw is in what grew.
    let is_shown =
        |moment: &&MemoryMoment| moment.when != MemoryWhen::Before || memory.growth.is_none();
    for moment in memory.moments.iter().filter(is_shown) {
        account(&mut page, moment);
    }
    course::over_time(&mut page, memory);
    if let Some(holders) = &memory.holders {
        stacks::holders(&mut page, holders);
    }
    touched::touched(&mut page, memory, STACKS_SHOWN);
    if let Some(moment) = memory.judged() {
        blocks::leaks(&mut page, moment);
        blocks::holders(&mut page, moment);
        heaps(&mut page, moment);
        processes(&mut page, moment);
    }
    notes(&mut page, document);
    page.finish()
}

/// Stacks that touched memory, of each process; fewer beside a run's other figures.
const STACKS_SHOWN: usize = 8;
const STACKS_OF_RUN: usize = 4;
/// Rows of a run's account that are shown; `pagewise memory` has all.
const SHARES_SHOWN: u64 = 100;
/// The part of the peak (1 in so many) that a look may miss without being mentioned.
const MISSED: u64 = 20;

/// The account of memory as a part of a run's report: what it shows, and the larger rows.
pub fn of_run(page: &mut Page, memory: &Memory, most: Bytes) {
    let Some(moment) = memory.judged() else {
        return;
    };
    let verdict = pagewise_model::answer::Evidence::verdict(memory);
    let seen = moment.processes.iter().map(|one| one.resident).max();
    let missed = most - seen.unwrap_or_default();
    let title = match missed.0 > most.0 / MISSED {
        true => format!(
            "Resident memory{}: {missed} below the peak of {most}",
            after(moment)
        ),
        false => title(moment),
    };
    rows(page, &title, moment, moment.total().0 / SHARES_SHOWN);
    page.indented(2, Ink::Plain, &verdict);
    if !memory.finding.fixes.is_empty() {
        let line = "pagewise memory on the same program prints what would help.";
        page.indented(2, Ink::Faint, line);
    }
    page.gap();
    touched::touched(page, memory, STACKS_OF_RUN);
}

/// The program: its command, or the name and number of the first process.
pub(crate) fn subject(document: &Document<Memory>) -> String {
    if !document.subject.command.is_empty() {
        return document.subject.command.join(" ");
    }
    let first = document
        .evidence
        .judged()
        .and_then(|moment| moment.processes.first());
    first.map_or_else(String::new, |one| format!("{} ({})", one.name, one.pid))
}

fn mark(verdict: MemoryVerdict) -> (&'static str, Ink) {
    match verdict {
        MemoryVerdict::AllInUse | MemoryVerdict::FreedToEnd | MemoryVerdict::Cache => {
            ("● healthy", Ink::Good)
        }
        MemoryVerdict::Growth
        | MemoryVerdict::Leak
        | MemoryVerdict::Retention
        | MemoryVerdict::Fragmentation
        | MemoryVerdict::Bloat
        | MemoryVerdict::LimitTooSmall => ("● costly", Ink::Caution),
        MemoryVerdict::CannotTell => ("● unknown", Ink::Strong),
    }
}

fn fix(page: &mut Page, label: &str, advice: &Advice) {
    page.paragraph(label, Ink::Strong, &visible(&advice.headline));
    page.paragraph("", Ink::Plain, &visible(&advice.reason));
    if let Some(export) = exports(&advice.settings).first() {
        page.gap();
        page.verbatim("", &export.text);
        page.gap();
    }
    if let Some(manual) = &advice.manual {
        page.paragraph("", Ink::Plain, &visible(manual));
    }
    if let Some(caveat) = &advice.caveat {
        page.paragraph("", Ink::Plain, &format!("Note: {}", visible(caveat)));
    }
    page.gap();
}

fn account(page: &mut Page, moment: &MemoryMoment) {
    rows(page, &title(moment), moment, 0);
    if let Some(residue) = residue(moment) {
        page.indented(2, Ink::Faint, &residue);
    }
    beside(page, moment);
}

/// The rows of at least so many bytes, and their sum.
fn rows(page: &mut Page, title: &str, moment: &MemoryMoment, least: u64) {
    let total = moment.total();
    let all = moment.rows();
    let is_small = |row: &&MemoryRow| row.resident.0 + row.swapped.0 < least;
    let small: Vec<_> = all.iter().filter(is_small).collect();
    let left_out = (!small.is_empty()).then(|| {
        let resident: Bytes = small.iter().map(|row| row.resident).sum();
        let swapped: Bytes = small.iter().map(|row| row.swapped).sum();
        Row::new([
            counted(small.len() as u64, "smaller row"),
            resident.to_string(),
            percent(share(resident.0, total.0)),
            swap(swapped),
        ])
    });
    let rows = all.iter().filter(|row| !is_small(row)).map(|row| {
        Row::new([
            row_name(row),
            row.resident.to_string(),
            percent(share(row.resident.0, total.0)),
            swap(row.swapped),
        ])
    });
    let swapped = moment.processes.iter().map(|one| one.swapped).sum();
    let sum = Row::new([
        "resident, by smaps".to_owned(),
        total.to_string(),
        "100 %".to_owned(),
        swap(swapped),
    ])
    .in_ink(Ink::Strong);
    let heads = named("what", &["resident", "share", "swap"]);
    page.table(title, &heads, rows.chain(left_out).chain([sum]));
}

fn title(moment: &MemoryMoment) -> String {
    match moment.when {
        MemoryWhen::Now | MemoryWhen::Before => "Resident memory".to_owned(),
        MemoryWhen::Peak => format!("Resident memory at the peak{}", after(moment)),
        MemoryWhen::Running => format!("Resident memory while it ran{}", after(moment)),
        MemoryWhen::End => format!("Resident memory at the end{}", after(moment)),
    }
}

fn after(moment: &MemoryMoment) -> String {
    let elapsed = moment.elapsed_ns.map(Nanos);
    elapsed.map_or_else(String::new, |elapsed| format!(", after {elapsed}"))
}

/// Bytes that were added, with their sign.
fn signed(value: f64) -> String {
    let sign = if value < 0.0 { '−' } else { '+' };
    format!("{sign}{}", Bytes(Held::rounded(value.abs())))
}

/// No figure for what is not swapped.
fn swap(bytes: Bytes) -> String {
    match bytes.0 {
        0 => String::new(),
        _ => bytes.to_string(),
    }
}

/// What changed between reading smaps and the heaps, if anything.
fn residue(moment: &MemoryMoment) -> Option<String> {
    let sizes = moment
        .processes
        .iter()
        .map(|one| one.residue.unsigned_abs());
    let size: u64 = sizes.sum();
    (size > 0).then(|| {
        let part = percent(share(size, moment.total().0));
        format!(
            "The rows differ from smaps by {} ({part}): memory changed during the look.",
            Bytes(size)
        )
    })
}

fn beside(page: &mut Page, moment: &MemoryMoment) {
    let tables: Bytes = moment.processes.iter().map(|one| one.page_tables).sum();
    let mut rows = vec![Row::new(["page tables".to_owned(), tables.to_string()])];
    if let Some(cgroup) = &moment.cgroup {
        let limit = cgroup
            .limit
            .map_or_else(String::new, |limit| format!(" (limit {limit})"));
        let mut add = |name: String, bytes: Option<Bytes>| {
            rows.extend(bytes.map(|bytes| Row::new([name, bytes.to_string()])));
        };
        add(format!("memory cgroup{limit}"), Some(cgroup.charged));
        add("  anonymous".to_owned(), Some(cgroup.anonymous));
        add("  page cache".to_owned(), Some(cgroup.page_cache));
        add("  shared memory and tmpfs".to_owned(), Some(cgroup.shared));
        add("  kernel memory".to_owned(), cgroup.kernel);
        add(
            "  swapped".to_owned(),
            cgroup.swapped.filter(|bytes| bytes.0 > 0),
        );
    }
    page.table("Next to it", &named("what", &["bytes"]), rows);
}

fn row_name(row: &MemoryRow) -> String {
    let kind = match row.kind {
        MemoryKind::Live => "in use",
        MemoryKind::Cached => "freed, in caches",
        MemoryKind::FreedKept => "freed and kept",
        MemoryKind::Pinned => "free, pinned by blocks in use",
        MemoryKind::Reserve => "end of the heap, in reserve",
        MemoryKind::HugeBloat => "zeros in huge pages",
        MemoryKind::Bookkeeping => "the allocator's own data",
        MemoryKind::Stacks => "stacks",
        MemoryKind::Program => "program and libraries",
        MemoryKind::Files => "mapped files",
        MemoryKind::Shared => "shared memory",
        MemoryKind::Special => "the kernel's mappings",
        MemoryKind::NotReadable => return not_readable(row),
    };
    match (row.allocator, row.part) {
        (Some(allocator), Some(part)) => format!("{kind}: {}", part_name(allocator, part)),
        _ => kind.to_owned(),
    }
}

fn not_readable(row: &MemoryRow) -> String {
    match (row.unread, row.allocator) {
        (None | Some(Unread::NoKnownAllocator), Some(allocator)) => format!(
            "not readable: {}, or mappings of the program",
            allocator.name()
        ),
        (Some(Unread::Changed), Some(allocator)) => {
            format!("changed during the look: {}", allocator.name())
        }
        _ => format!("not readable: {}", reason(row.unread)),
    }
}

fn reason(unread: Option<Unread>) -> &'static str {
    match unread {
        None | Some(Unread::NoKnownAllocator) => "of no allocator known here",
        Some(Unread::NotAllowed) => "not allowed (ptrace)",
        Some(Unread::Changed) => "it changed during the look",
        Some(Unread::Swapped) => "swapped out",
        Some(Unread::OtherLayout) => "unknown layout",
    }
}

fn part_name(allocator: AllocatorKind, part: HeapPart) -> String {
    let allocator = allocator.name();
    let part = match part {
        HeapPart::Main => "main heap",
        HeapPart::Threads => "thread arenas",
        HeapPart::Mapped => "mapped blocks",
        HeapPart::Arenas => "arenas",
    };
    format!("{allocator} {part}")
}

/// Most heaps shown of several processes; JSON has all.
const MOST_HEAPS: usize = 24;

fn heaps(page: &mut Page, moment: &MemoryMoment) {
    let is_tree = moment.processes.len() > 1;
    let mut all: Vec<_> = moment
        .processes
        .iter()
        .flat_map(|process| process.heaps.iter().map(move |heap| (process, heap)))
        .collect();
    let most = if is_tree { MOST_HEAPS } else { all.len() };
    if is_tree {
        all.sort_by_key(|(_, heap)| std::cmp::Reverse(heap.size));
    }
    let rows = all.iter().take(most).map(|(process, heap)| {
        let mut name = part_name(heap.allocator, heap.part);
        if heap.part != HeapPart::Main {
            name = format!("{name} ({})", count(heap.count));
        }
        if is_tree {
            name = format!("{} ({}): {name}", visible(&process.name), process.pid);
        }
        Row::new([
            name,
            heap.in_use.to_string(),
            count(heap.blocks),
            heap.cached.to_string(),
            heap.free.to_string(),
            heap.reserve.to_string(),
            match heap.check {
                HeapCheck::Counter => "its own counter".to_owned(),
                HeapCheck::Filled if heap.changed.0 > 0 => format!("all but {}", heap.changed),
                HeapCheck::Filled => "no gap".to_owned(),
            },
        ])
    });
    let heads = named(
        "heap",
        &[
            "in use",
            "blocks",
            "cached",
            "free",
            "reserve",
            "checked by",
        ],
    );
    page.table("Heaps (address space, resident or not)", &heads, rows);
    page.more(all.len(), most);
}

/// Most processes shown; JSON has all.
const MOST_PROCESSES: usize = 12;

fn processes(page: &mut Page, moment: &MemoryMoment) {
    if moment.processes.len() < 2 {
        return;
    }
    let mut all: Vec<_> = moment.processes.iter().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.proportional));
    let rows = all.iter().take(MOST_PROCESSES).map(|one| {
        Row::new([
            format!("{} ({})", visible(&one.name), one.pid),
            one.proportional.to_string(),
            one.resident.to_string(),
            swap(one.swapped),
        ])
    });
    let heads = named("process", &["its share", "resident", "swap"]);
    page.table("Processes (shared pages divided)", &heads, rows);
    page.more(all.len(), MOST_PROCESSES);
}

fn notes(page: &mut Page, document: &Document<Memory>) {
    page.gap();
    if let Some(moment) = document.evidence.judged() {
        for refused in &moment.refused {
            page.paragraph("Missing", Ink::Caution, &visible(&refused.reason));
        }
        let look = Nanos(moment.look_ns);
        let processes = match moment.processes.len() {
            1 => "one process".to_owned(),
            number => format!("{number} processes"),
        };
        let stopped = moment.processes.iter().map(|one| one.stopped_ns).max();
        let harm = match stopped {
            Some(time) if time > 0 => format!("stopped for at most {}", Nanos(time)),
            _ => "nothing was stopped".to_owned(),
        };
        page.paragraph(
            "Look",
            Ink::Faint,
            &format!("{look} for {processes}; {harm}"),
        );
    }
    for note in &document.notes {
        page.paragraph("Note", Ink::Plain, &visible(note));
    }
}

#[cfg(test)]
mod tests;
