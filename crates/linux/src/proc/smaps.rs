//! `/proc/PID/smaps` and `smaps_rollup` (proc_pid_smaps(5), fs/proc/task_mmu.c of Linux 6.18).

use super::maps::{MapsEntry, parse_line, push};
use super::status::kilobytes;
use crate::pseudo_file::{Result, malformed};
use pagewise_model::findings::RegionKind;
use pagewise_model::units::Bytes;
use std::collections::BTreeMap;
use std::path::Path;

/// How much of a mapping is in memory. Fields that an older kernel lacks are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// Virtual size; zero in a roll-up.
    pub size: Bytes,
    /// Resident.
    pub rss: Bytes,
    /// Resident, each page divided by the number of processes that map it.
    pub pss: Bytes,
    /// Private pages that were written.
    pub private_dirty: Bytes,
    /// Anonymous pages.
    pub anonymous: Bytes,
    /// Anonymous pages marked by `MADV_FREE` and not yet reclaimed.
    pub lazy_free: Bytes,
    /// Anonymous memory in PMD-sized huge pages.
    pub anonymous_huge: Bytes,
    /// Shared memory in PMD-sized huge pages.
    pub shared_huge: Bytes,
    /// File pages in PMD-sized huge pages.
    pub file_huge: Bytes,
    /// hugetlb pages, private and shared.
    pub hugetlb: Bytes,
    /// Swapped out.
    pub swap: Bytes,
    /// Swapped out, shared pages divided among their processes.
    pub swap_pss: Bytes,
    /// Locked.
    pub locked: Bytes,
}

/// One mapping and how much of it is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmapsEntry {
    /// The mapping.
    pub entry: MapsEntry,
    /// Page size that backs it (`KernelPageSize`).
    pub page_size: Bytes,
    /// In memory.
    pub residency: Residency,
    /// Whether the kernel allows it to be backed by huge pages.
    pub thp_eligible: bool,
    /// Two-letter flags such as `hg` (`MADV_HUGEPAGE`) and `nh` (`MADV_NOHUGEPAGE`).
    pub flags: Vec<String>,
}

impl std::ops::AddAssign for Residency {
    fn add_assign(&mut self, other: Self) {
        self.size += other.size;
        self.rss += other.rss;
        self.pss += other.pss;
        self.private_dirty += other.private_dirty;
        self.anonymous += other.anonymous;
        self.lazy_free += other.lazy_free;
        self.anonymous_huge += other.anonymous_huge;
        self.shared_huge += other.shared_huge;
        self.file_huge += other.file_huge;
        self.hugetlb += other.hugetlb;
        self.swap += other.swap;
        self.swap_pss += other.swap_pss;
        self.locked += other.locked;
    }
}

/// Sums by kind of memory.
#[must_use]
pub fn residency_by_region(entries: &[SmapsEntry]) -> BTreeMap<RegionKind, Residency> {
    let mut sums: BTreeMap<RegionKind, Residency> = BTreeMap::new();
    for entry in entries {
        let kind = match entry.flags.iter().any(|flag| flag == "ht") {
            true => RegionKind::Hugetlb,
            false => region_kind(&entry.entry),
        };
        *sums.entry(kind).or_default() += entry.residency;
    }
    sums
}

/// Kind of memory, as far as one line of `maps` shows it: blocks and arenas of an allocator are
/// [`RegionKind::Anonymous`] here.
#[must_use]
pub fn region_kind(entry: &MapsEntry) -> RegionKind {
    let shared = entry.mapping.flags & libc::MAP_SHARED.cast_unsigned() != 0;
    match &*entry.mapping.path {
        "[heap]" => RegionKind::Heap,
        path if path.starts_with("[stack") => RegionKind::Stack,
        path if path.starts_with("[anon_shmem") || is_shared_memory(path) => {
            RegionKind::SharedAnonymous
        }
        "//anon" => RegionKind::Anonymous,
        path if path.starts_with("[anon") => RegionKind::Anonymous,
        path if path.starts_with("/anon_hugepage") => RegionKind::Hugetlb,
        path if path.starts_with('/') && shared => RegionKind::FileShared,
        path if path.starts_with('/') => RegionKind::FilePrivate,
        _ => RegionKind::Unknown,
    }
}

/// memfd, System V segments, shared anonymous memory (`/dev/zero`), POSIX shared memory.
fn is_shared_memory(path: &str) -> bool {
    ["/memfd:", "/SYSV", "/dev/zero", "/dev/shm/"]
        .iter()
        .any(|prefix| path.starts_with(prefix))
}

pub(super) fn parse_smaps(text: &str, path: &Path) -> Result<Vec<SmapsEntry>> {
    let mut entries: Vec<SmapsEntry> = Vec::new();
    for (at, line) in (1..).zip(text.lines()) {
        if let Some(entry) = header(line) {
            push(&mut entries, entry, |one| &one.entry);
            continue;
        }
        let entry = entries.last_mut();
        let set = entry.ok_or("a mapping").and_then(|entry| entry.set(line));
        set.map_err(|expected| malformed(path, at, expected, line))?;
    }
    Ok(entries)
}

fn header(line: &str) -> Option<SmapsEntry> {
    let starts_hex = line.starts_with(|c: char| c.is_ascii_digit() || ('a'..='f').contains(&c));
    starts_hex
        .then(|| parse_line(line))
        .flatten()
        .map(|entry| SmapsEntry {
            entry,
            page_size: Bytes(0),
            residency: Residency::default(),
            thp_eligible: false,
            flags: Vec::new(),
        })
}

impl SmapsEntry {
    fn set(&mut self, line: &str) -> std::result::Result<(), &'static str> {
        let (key, value) = line.split_once(':').ok_or("key: value")?;
        let residency = &mut self.residency;
        let size = match key {
            "KernelPageSize" => &mut self.page_size,
            "Size" => &mut residency.size,
            "Rss" => &mut residency.rss,
            "Pss" => &mut residency.pss,
            "Private_Dirty" => &mut residency.private_dirty,
            "Anonymous" => &mut residency.anonymous,
            "LazyFree" => &mut residency.lazy_free,
            "AnonHugePages" => &mut residency.anonymous_huge,
            "ShmemPmdMapped" => &mut residency.shared_huge,
            "FilePmdMapped" => &mut residency.file_huge,
            "Private_Hugetlb" | "Shared_Hugetlb" => &mut residency.hugetlb,
            "Swap" => &mut residency.swap,
            "SwapPss" => &mut residency.swap_pss,
            "Locked" => &mut residency.locked,
            "THPeligible" => {
                self.thp_eligible = value.trim() == "1";
                return Ok(());
            }
            "VmFlags" => {
                self.flags = value.split_whitespace().map(str::to_string).collect();
                return Ok(());
            }
            _ => return Ok(()),
        };
        *size += kilobytes(value)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `/proc/PID/smaps` of a C program, Linux 6.18, without the lines that are not read.
    const TEXT: &str = "\
55e0c9e1b000-55e0c9e3c000 rw-p 00000000 00:00 0                          [heap]
Size:                132 kB
KernelPageSize:        4 kB
Rss:                  20 kB
Pss:                  10 kB
Anonymous:            20 kB
AnonHugePages:         0 kB
Private_Hugetlb:       0 kB
Swap:                  8 kB
THPeligible:           1
VmFlags: rd wr mr mw me ac hg 
7f0a3c000000-7f0a3c400000 rw-s 00000000 00:0f 11                         /anon_hugepage (deleted)
KernelPageSize:     2048 kB
Rss:                   0 kB
Shared_Hugetlb:     2048 kB
Private_Hugetlb:    2048 kB
VmFlags: rd wr sh mr mw me ms de ht 
7f0a3e000000-7f0a3e021000 r--p 00000000 fe:00 5                          /usr/lib/libc.so.6
Rss:                 100 kB
Pss:                  25 kB
";

    #[test]
    fn sums_by_kind_of_memory() {
        let entries = parse_smaps(TEXT, Path::new("smaps")).unwrap();
        assert!(entries[0].thp_eligible && entries[0].flags.contains(&"hg".to_string()));
        assert_eq!(entries[1].page_size, Bytes(2 << 20));
        let sums = residency_by_region(&entries);
        assert_eq!(sums[&RegionKind::Heap].pss, Bytes(10 << 10));
        assert_eq!(sums[&RegionKind::Heap].swap, Bytes(8 << 10));
        assert_eq!(sums[&RegionKind::Hugetlb].hugetlb, Bytes(4 << 20));
        assert_eq!(sums[&RegionKind::FilePrivate].rss, Bytes(100 << 10));
        assert_eq!(sums.len(), 3);
    }

    #[test]
    fn a_heap_that_is_written_twice_counts_once() {
        let later = TEXT.split_once("7f0a3c000000").unwrap().0;
        let later = later.replace("Rss:                  20", "Rss:                 140");
        let text = TEXT.replacen("7f0a3c000000", &format!("{later}7f0a3c000000"), 1);
        let entries = parse_smaps(&text, Path::new("smaps")).unwrap();
        let resident: Vec<u64> = entries
            .iter()
            .map(|one| one.residency.rss.0 >> 10)
            .collect();
        assert_eq!(resident, [140, 0, 100]);
    }

    #[test]
    fn numbers_before_any_mapping_are_an_error() {
        let error = parse_smaps("Rss: 1 kB\n", Path::new("smaps")).unwrap_err();
        assert!(error.to_string().starts_with("smaps:1: expected a mapping"));
    }
}
