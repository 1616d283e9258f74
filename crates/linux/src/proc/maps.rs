//! `/proc/PID/maps` (proc_pid_maps(5), fs/proc/task_mmu.c of Linux 6.18).

use crate::pseudo_file::{Result, malformed};
use pagewise_model::address_space::Mapping;
use std::path::Path;

/// One line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapsEntry {
    /// Address range, protection, flags, path. Anonymous memory is named `//anon`, as in perf's
    /// `PERF_RECORD_MMAP2`, so that live and recorded mappings look alike.
    pub mapping: Mapping,
    /// Major and minor number of the file's device; 0, 0 for none.
    pub device: (u32, u32),
    /// Inode of the file; 0 for none.
    pub inode: u64,
}

impl MapsEntry {
    /// Whether the range contains `address`.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        (self.mapping.start..self.mapping.end).contains(&address)
    }

    /// Whether code in it can be executed.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.mapping.protection & libc::PROT_EXEC.cast_unsigned() != 0
    }

    /// Path of the mapped file; `None` for anonymous memory and pseudo paths such as `[stack]`.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        let path = &*self.mapping.path;
        (path.starts_with('/') && path != ANONYMOUS).then_some(path)
    }
}

/// perf's name of anonymous memory.
const ANONYMOUS: &str = "//anon";

pub(super) fn parse_maps(text: &str, path: &Path) -> Result<Vec<MapsEntry>> {
    let mut entries = Vec::new();
    for (at, line) in (1..).zip(text.lines()) {
        let entry = parse_line(line);
        let entry = entry.ok_or_else(|| malformed(path, at, "start-end rwxp … [path]", line))?;
        push(&mut entries, entry, |one| one);
    }
    Ok(entries)
}

/// Adds a mapping, once: the kernel writes a page of text at a time, and a mapping that grew between two of
/// them (a heap) again behind itself, with the same start (`m_start` in fs/proc/task_mmu.c of Linux 6.18).
pub(super) fn push<T>(entries: &mut Vec<T>, entry: T, of: impl Fn(&T) -> &MapsEntry) {
    let start = |one: &T| of(one).mapping.start;
    entries.pop_if(|last| start(last) == start(&entry));
    entries.push(entry);
}

/// `563d604a3000-563d604a9000 r-xp 00002000 fe:00 247278    /usr/bin/head`
pub(super) fn parse_line(line: &str) -> Option<MapsEntry> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let offset = words.next()?;
    let (major, minor) = words.next()?.split_once(':')?;
    let inode = words.next()?;
    let name = words.next().map_or("", str::trim_start);
    Some(MapsEntry {
        mapping: Mapping {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            file_offset: u64::from_str_radix(offset, 16).ok()?,
            protection: protection(permissions)?,
            flags: flags(permissions, name)?,
            path: if name.is_empty() { ANONYMOUS } else { name }.into(),
            build_id: None,
            file: None,
        },
        device: (
            u32::from_str_radix(major, 16).ok()?,
            u32::from_str_radix(minor, 16).ok()?,
        ),
        inode: inode.parse().ok()?,
    })
}

fn protection(permissions: &str) -> Option<u32> {
    let letters = permissions.get(..3)?.chars();
    let bits = [libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC];
    let set = letters.zip(bits).filter(|(letter, _)| *letter != '-');
    Some(set.fold(0, |all, (_, bit)| all | bit.cast_unsigned()))
}

fn flags(permissions: &str, name: &str) -> Option<u32> {
    let sharing = match permissions.get(3..4)? {
        "p" => libc::MAP_PRIVATE,
        "s" => libc::MAP_SHARED,
        _ => return None,
    };
    let anonymous = if name.starts_with('/') {
        0
    } else {
        libc::MAP_ANONYMOUS
    };
    Some((sharing | anonymous).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `/proc/PID/maps` of several programs, Linux 6.18.
    const TEXT: &str = "\
563d604a3000-563d604a9000 r-xp 00002000 fe:00 247278                     /usr/bin/head
55e0c9e1b000-55e0c9e3c000 rw-p 00000000 00:00 0                          [heap]
7f0a3c000000-7f0a3c021000 rw-p 00000000 00:00 0 
7f0a3e000000-7f0a3e021000 rw-s 00000000 00:01 2052                       /memfd:a b (deleted)
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    #[test]
    fn reads_every_kind_of_line() {
        let maps = parse_maps(TEXT, Path::new("maps")).unwrap();
        let head = &maps[0];
        assert_eq!(head.mapping.start, 0x563d_604a_3000);
        assert_eq!(head.mapping.file_offset, 0x2000);
        assert_eq!((head.device, head.inode), ((0xfe, 0), 247_278));
        assert!(head.is_executable() && head.file() == Some("/usr/bin/head"));
        let names: Vec<_> = maps.iter().map(|entry| &*entry.mapping.path).collect();
        assert_eq!(
            names[1..],
            ["[heap]", "//anon", "/memfd:a b (deleted)", "[vsyscall]"]
        );
        let heap = &maps[1].mapping;
        assert_eq!(heap.protection, 3);
        assert_eq!(heap.flags, 0x22, "private and anonymous");
        assert_eq!(maps[3].mapping.flags, 1, "shared");
        assert_eq!(maps[2].file(), None);
        assert!(maps[4].contains(0xffff_ffff_ff60_0fff));
    }

    #[test]
    fn a_heap_that_grew_while_it_was_written_is_one_mapping() {
        let heap = TEXT.lines().nth(1).unwrap();
        let grown = heap.replace("55e0c9e3c000", "55e0c9f00000");
        let text = TEXT.replace(heap, &format!("{heap}\n{grown}"));
        let maps = parse_maps(&text, Path::new("maps")).unwrap();
        assert_eq!(maps.len(), 5);
        assert_eq!(maps[1].mapping.end, 0x55e0_c9f0_0000);
    }

    #[test]
    fn a_broken_line_is_named() {
        let text = TEXT.replace("rw-s", "rw");
        let error = parse_maps(&text, Path::new("maps")).unwrap_err();
        assert!(error.to_string().starts_with("maps:4: expected start-end"));
    }
}
