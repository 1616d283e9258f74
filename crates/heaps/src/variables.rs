//! Where a program or library keeps its variables.

use pagewise_linux::proc::MapsEntry;

/// Most bytes of address space that are searched in a file's data.
const MOST: u64 = 32 << 20;

/// Writable data of mapped files that pass `is_wanted`, with the anonymous memory behind them, in
/// which variables without initial values go on.
pub(super) fn writable_data(
    maps: &[MapsEntry],
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    for (entry, next) in maps.iter().zip(maps.iter().skip(1).map(Some).chain([None])) {
        let is_wanted = entry.file().is_some_and(&is_wanted);
        if !is_wanted || !is_writable(entry) {
            continue;
        }
        let (start, mut end) = (entry.mapping.start, entry.mapping.end);
        if let Some(next) = next
            && next.file().is_none()
            && next.mapping.start == end
            && is_writable(next)
        {
            end = next.mapping.end;
        }
        ranges.push((start, end.min(start.saturating_add(MOST))));
    }
    ranges
}

fn is_writable(entry: &MapsEntry) -> bool {
    entry.mapping.protection & libc::PROT_WRITE.cast_unsigned() != 0
}
