//! Blocks with mappings of their own: a header at the start of a page that says so, with a size of
//! whole pages. Neighbouring ones are one mapping to the kernel.

use super::super::Image;
use super::chunks::{FLAGS, IS_MAPPED};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::memory::{PageState, Tile, TileState};

/// The blocks that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    /// Each with the whole of its pages.
    pub blocks: Vec<Tile>,
    /// Their sum.
    pub bytes: u64,
}

/// Whether the mapping is private anonymous memory that can be written.
pub(crate) fn is_private_memory(entry: &MapsEntry) -> bool {
    let mapping = &entry.mapping;
    let is_shared = mapping.flags & libc::MAP_SHARED.cast_unsigned() != 0;
    let is_anonymous = &*mapping.path == "//anon" || mapping.path.starts_with("[anon:");
    is_anonymous && !is_shared && mapping.protection & libc::PROT_WRITE.cast_unsigned() != 0
}

/// The mapped blocks outside `taken`. Where the allocator's counter is known (by its place), the search
/// goes on until the sum is reached; otherwise only mappings that start with a block are followed.
pub(super) fn find(
    maps: &[MapsEntry],
    image: &mut Image<'_>,
    taken: &[(u64, u64)],
    counter: Option<u64>,
) -> Mapped {
    let mut found = Mapped::default();
    let count = |image: &Image<'_>| counter.and_then(|place| image.now(place).ok());
    let first = count(image);
    if first == Some(0) {
        return found;
    }
    let mut rest = Vec::new();
    for entry in maps.iter().filter(|entry| is_private_memory(entry)) {
        for (mut at, end) in without(entry.mapping.start, entry.mapping.end, taken) {
            while let Some(length) = block(image, at, end) {
                found.push(at, length);
                at += length;
                if at >= end {
                    break;
                }
            }
            if at < end {
                rest.push((at, end));
            }
        }
    }
    let Some(expected) = count(image) else {
        return found;
    };
    // Blocks that came meanwhile are in no mapping that is known.
    let is_steady = first == Some(expected);
    if is_steady && found.bytes < expected {
        found.search(image, &rest, expected);
    }
    if is_steady && found.bytes > expected {
        // Something looks like a block and is none.
        return Mapped::default();
    }
    found
}

/// The parts of `start..end` outside `taken`.
fn without(start: u64, end: u64, taken: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut cuts: Vec<_> = taken
        .iter()
        .filter(|range| range.0 < end && start < range.1)
        .collect();
    cuts.sort_unstable();
    let mut parts = Vec::new();
    let mut at = start;
    for cut in cuts {
        if at < cut.0 {
            parts.push((at, cut.0));
        }
        at = at.max(cut.1);
    }
    if at < end {
        parts.push((at, end));
    }
    parts
}

impl Mapped {
    fn push(&mut self, start: u64, length: u64) {
        self.bytes += length;
        self.blocks.push(Tile {
            start,
            length,
            state: TileState::Live { block: length },
        });
    }

    /// Looks at the start of each page that is present.
    fn search(&mut self, image: &mut Image<'_>, ranges: &[(u64, u64)], expected: u64) {
        let page = image.page();
        for &(start, end) in ranges {
            let mut at = start;
            let runs: Vec<_> = image.presence().within(start, end).collect();
            for run in runs
                .into_iter()
                .filter(|run| run.state != PageState::Swapped)
            {
                at = at.max(run.start);
                while at < run.end {
                    match block(image, at, end) {
                        Some(length) => {
                            self.push(at, length);
                            at += length;
                        }
                        None => at += page,
                    }
                    if self.bytes >= expected {
                        return;
                    }
                }
            }
        }
    }
}

/// Length of the block whose pages start at `at`, if there is one.
fn block(image: &mut Image<'_>, at: u64, end: u64) -> Option<u64> {
    let page = image.page();
    // An aligned block starts further back, and its header says how far.
    let mut header = at;
    while header < at + page {
        let before = image.word(header).ok()?;
        let word = image.word(header + 8).ok()?;
        let size = word & !FLAGS;
        let length = size.checked_add(header - at)?;
        if before == header - at
            && word & FLAGS == IS_MAPPED
            && size >= 16
            && length.is_multiple_of(page)
            && length > 0
            && length <= end - at
        {
            return Some(length);
        }
        header += 16;
    }
    None
}
