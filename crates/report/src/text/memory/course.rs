//! The memory of a run over time.

use super::super::columns::{Row, named};
use super::super::page::Page;
use pagewise_model::memory::{Memory, MemoryKind, MemoryPoint, MemoryWhen};
use pagewise_model::units::{Bytes, Nanos};

/// Most moments shown; JSON has all.
const MOST: u64 = 10;
/// Fewer looks than this show no course.
const LEAST: usize = 3;

/// Columns, and what is in each.
const LAYERS: [(&str, &[MemoryKind]); 4] = [
    ("in use", &[MemoryKind::Live]),
    (
        "freed",
        &[
            MemoryKind::FreedKept,
            MemoryKind::Reserve,
            MemoryKind::Cached,
        ],
    ),
    ("pinned", &[MemoryKind::Pinned]),
    ("zeros", &[MemoryKind::HugeBloat]),
];

/// What looks at a run saw, at about equal distances.
pub fn over_time(page: &mut Page, memory: &Memory) {
    let all = points(memory);
    let (Some(last), true) = (all.last(), all.len() >= LEAST) else {
        return;
    };
    let mut shown: Vec<&MemoryPoint> = Vec::new();
    for step in 1..=MOST {
        let until = last.elapsed_ns / MOST * step;
        let is_last = step == MOST;
        let point = all.iter().rfind(|one| is_last || one.elapsed_ns <= until);
        shown.extend(point.filter(|one| shown.last() != Some(one)));
    }
    let rows = shown.into_iter().map(|point| {
        let layers = LAYERS.map(|(_, kinds)| kinds.iter().map(|kind| point.bytes(*kind)).sum());
        let rest = point.resident.0.saturating_sub(layers.iter().sum());
        let cells = [
            Nanos(point.elapsed_ns).to_string(),
            point.resident.to_string(),
        ];
        let layers = layers.into_iter().chain([rest]).map(bytes);
        Row::new(cells.into_iter().chain(layers).collect::<Vec<_>>())
    });
    let names: Vec<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    let heads: Vec<&str> = ["resident"]
        .into_iter()
        .chain(names)
        .chain(["other"])
        .collect();
    page.table("Over time", &named("after", &heads), rows);
}

/// All looks, the one at the end among them.
fn points(memory: &Memory) -> Vec<MemoryPoint> {
    let end = memory
        .moments
        .iter()
        .find(|one| one.when == MemoryWhen::End);
    let end = end.and_then(|one| Some(MemoryPoint::new(one, one.elapsed_ns?)));
    let until = end.as_ref().map_or(u64::MAX, |end| end.elapsed_ns);
    let before = memory.course.iter().filter(|one| one.elapsed_ns <= until);
    before.cloned().chain(end).collect()
}

/// No figure where there is nothing.
fn bytes(number: u64) -> String {
    match number {
        0 => String::new(),
        _ => Bytes(number).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Style;
    use pagewise_model::memory::{MemoryFinding, MemoryLayer};

    #[test]
    fn a_run_is_shown_at_equal_distances_by_layer() {
        let point = |ms: u64, mib: u64| MemoryPoint {
            elapsed_ns: ms * 1_000_000,
            resident: Bytes((mib + 1) << 20),
            layers: vec![
                MemoryLayer {
                    kind: MemoryKind::Live,
                    bytes: Bytes(mib << 20),
                },
                MemoryLayer {
                    kind: MemoryKind::Program,
                    bytes: Bytes(1 << 20),
                },
            ],
        };
        let memory = Memory {
            finding: MemoryFinding::default(),
            moments: Vec::new(),
            course: (1..=40).map(|step| point(step * 50, step)).collect(),
            growth: None,
            holders: None,
            touched: Vec::new(),
        };
        let mut page = Page::new(100, Style::PLAIN);
        over_time(&mut page, &memory);
        let text = page.finish();
        let lines: Vec<&str> = text.trim().lines().collect();
        assert_eq!(lines.len(), 12, "{text}");
        assert_eq!(
            lines[2].split_whitespace().collect::<Vec<_>>().join(" "),
            "200 ms 5.00 MiB 4.00 MiB 1.00 MiB"
        );
        assert!(lines[11].trim_start().starts_with("2.00 s"), "{text}");
    }
}
