//! What each mapping of a process is for.

use pagewise_linux::proc::{MapsEntry, Residency, SmapsEntry, region_kind};
use pagewise_memory::{MappingFacts, MappingKind};
use pagewise_model::findings::RegionKind;
use pagewise_model::units::Bytes;
use std::collections::BTreeSet;

/// Largest gap below a stack (`pthread_attr_setguardsize(3)`): a page by default, 64 KiB on some
/// machines.
const LARGEST_GUARD: u64 = 64 << 10;

/// Stacks that are smaller may be used whole.
const SMALLEST_BLOCK: Bytes = Bytes(128 << 10);

/// The mappings, in which threads have these stack pointers.
pub fn facts(smaps: &[SmapsEntry], stack_pointers: &[u64]) -> Vec<MappingFacts> {
    let code: BTreeSet<&str> = smaps
        .iter()
        .filter(|one| one.entry.is_executable())
        .filter_map(|one| one.entry.file())
        .collect();
    let mut before: Option<(&MapsEntry, MappingKind)> = None;
    let mut found = Vec::with_capacity(smaps.len());
    for one in smaps {
        let has_stack = stack_pointers.iter().any(|sp| one.entry.contains(*sp));
        let kind = match kind(&one.entry, before, &code, has_stack) {
            MappingKind::Stack if !has_stack && is_block(one) => MappingKind::Anonymous,
            kind => kind,
        };
        before = Some((&one.entry, kind));
        let residency = &one.residency;
        found.push(MappingFacts {
            start: one.entry.mapping.start,
            end: one.entry.mapping.end,
            kind,
            resident: residency.rss,
            proportional: residency.pss,
            swapped: residency.swap,
            zeros: Bytes(0),
        });
    }
    found
}

fn kind(
    entry: &MapsEntry,
    before: Option<(&MapsEntry, MappingKind)>,
    code: &BTreeSet<&str>,
    has_stack: bool,
) -> MappingKind {
    let follows = before.filter(|(other, _)| other.mapping.end == entry.mapping.start);
    match region_kind(entry) {
        RegionKind::Stack => MappingKind::Stack,
        RegionKind::SharedAnonymous if is_java_heap(entry) => MappingKind::Anonymous,
        RegionKind::SharedAnonymous | RegionKind::Hugetlb => MappingKind::Shared,
        RegionKind::FilePrivate | RegionKind::FileShared => {
            let is_code = entry.file().is_some_and(|file| {
                code.contains(file) || file.ends_with(".so") || file.contains(".so.")
            });
            match is_code {
                true => MappingKind::Program,
                false => MappingKind::File,
            }
        }
        RegionKind::Heap => MappingKind::Anonymous,
        RegionKind::Anonymous if has_stack => MappingKind::Stack,
        RegionKind::Anonymous => match follows {
            // Variables without initial values go on behind a library's data.
            Some((other, MappingKind::Program)) if is_writable(entry) && is_writable(other) => {
                MappingKind::Program
            }
            Some((other, _)) if is_guard(other) && is_writable(entry) => MappingKind::Stack,
            _ => MappingKind::Anonymous,
        },
        _ => MappingKind::Special,
    }
}

/// Whether a collector of Java has its heap there, which it maps several times (ZGC before JDK 21): nobody else
/// shares it.
fn is_java_heap(entry: &MapsEntry) -> bool {
    let file = entry.mapping.path.rsplit(['/', ':']).next();
    file.is_some_and(|name| name.starts_with("java_heap"))
}

/// Whether all pages behind a guard are in memory, by the program's own doing: some allocators guard each
/// block. A stack is used from its upper end, and hardly ever to the last page.
fn is_block(one: &SmapsEntry) -> bool {
    let Residency {
        size, rss, swap, ..
    } = one.residency;
    let is_locked = one.flags.iter().any(|flag| flag == "lo");
    let is_main_stack = region_kind(&one.entry) == RegionKind::Stack;
    !is_main_stack && !is_locked && size >= SMALLEST_BLOCK && rss + swap >= size
}

/// Whether the mapping is inaccessible and as small as what protects the end of a stack.
fn is_guard(entry: &MapsEntry) -> bool {
    let mapping = &entry.mapping;
    mapping.protection == 0 && mapping.end - mapping.start <= LARGEST_GUARD
}

fn is_writable(entry: &MapsEntry) -> bool {
    entry.mapping.protection & libc::PROT_WRITE.cast_unsigned() != 0
}

/// Whether the mapping may hold a heap or an allocator's variables.
pub fn is_private_and_writable(entry: &MapsEntry) -> bool {
    let is_shared = entry.mapping.flags & libc::MAP_SHARED.cast_unsigned() != 0;
    !is_shared && is_writable(entry) && !entry.mapping.path.starts_with("[v")
}

/// Whether the mapping may hold objects or what describes their types.
pub fn may_hold_objects(entry: &MapsEntry) -> bool {
    let is_readable = entry.mapping.protection & libc::PROT_READ.cast_unsigned() != 0;
    let is_file = entry.file().is_some() && is_readable && !entry.is_executable();
    is_file || is_private_and_writable(entry)
}

/// Whether the mapping may hold pointers to blocks: all memory but code from files and devices.
pub fn may_hold_pointers(entry: &MapsEntry) -> bool {
    let is_text = entry.file().is_some() && entry.is_executable();
    let is_device = entry.file().is_some_and(|file| {
        file.starts_with("/dev/")
            && !file.starts_with("/dev/shm/")
            && !file.starts_with("/dev/zero")
    });
    !is_text && !is_device && !entry.mapping.path.starts_with("[v")
}

/// Whether what the program writes there goes to a file, or to memory that it shares.
pub fn is_shared_and_writable(entry: &MapsEntry) -> bool {
    entry.mapping.flags & libc::MAP_SHARED.cast_unsigned() != 0 && is_writable(entry)
}

/// Whether anything lies above 4 GiB, where a 64-bit process has at least its stack.
pub fn is_64_bit(maps: &[MapsEntry]) -> bool {
    maps.iter()
        .map(|one| &one.mapping)
        .any(|mapping| mapping.start >= 1 << 32 && &*mapping.path != "[vsyscall]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_linux::proc::ProcRoot;
    use std::fs;

    const LITTLE: &str = "Rss: 4 kB\nPss: 4 kB\nSwap: 0 kB";

    /// What the mappings of a process with these lines of maps and smaps are for.
    fn kinds(lines: &[(&str, &str)]) -> Vec<MappingKind> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("7")).unwrap();
        let smaps: String = lines
            .iter()
            .map(|(line, residency)| format!("{line}\n{residency}\n"))
            .collect();
        fs::write(folder.path().join("7/smaps"), smaps).unwrap();
        let smaps = ProcRoot::at(folder.path()).smaps(7).unwrap().unwrap();
        facts(&smaps, &[]).iter().map(|one| one.kind).collect()
    }

    #[test]
    fn a_java_heap_in_shared_memory_is_memory_of_the_program() {
        let lines = [
            "040000000000-040001000000 rw-s 00000000 00:01 2052 /memfd:java_heap (deleted)",
            "080000000000-080001000000 rw-s 00000000 00:1c 9 /dev/shm/java_heap.0 (deleted)",
            "7f0000000000-7f0001000000 rw-s 00000000 00:01 2053 /memfd:cache (deleted)",
        ];
        let expected = [
            MappingKind::Anonymous,
            MappingKind::Anonymous,
            MappingKind::Shared,
        ];
        assert_eq!(kinds(&lines.map(|line| (line, LITTLE))), expected);
    }

    #[test]
    fn what_is_full_behind_a_guard_is_a_block_and_no_stack() {
        let guard = |at: &str| format!("{at}000000-{at}001000 ---p 00000000 00:00 0");
        let behind = |at: &str| format!("{at}001000-{at}041000 rw-p 00000000 00:00 0");
        let full = "Size: 256 kB\nRss: 248 kB\nSwap: 8 kB\nVmFlags: rd wr mr mw me ac";
        let locked = "Size: 256 kB\nRss: 256 kB\nVmFlags: rd wr mr mw me lo ac";
        let used = "Size: 256 kB\nRss: 252 kB\nVmFlags: rd wr mr mw me ac";
        let lines = [("7f0000", full), ("7f0100", locked), ("7f0200", used)];
        let texts = lines.map(|(at, residency)| (guard(at), behind(at), residency));
        let both = texts
            .iter()
            .flat_map(|(guard, behind, residency)| [(&**guard, LITTLE), (&**behind, *residency)]);
        let found = kinds(&both.collect::<Vec<_>>());
        let behind: Vec<MappingKind> = found.into_iter().skip(1).step_by(2).collect();
        let expected = [
            MappingKind::Anonymous,
            MappingKind::Stack,
            MappingKind::Stack,
        ];
        assert_eq!(behind, expected);
    }
}
