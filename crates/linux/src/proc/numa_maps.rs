//! `/proc/PID/numa_maps` (numa(7), `show_numa_map` in fs/proc/task_mmu.c, Linux 5.10 to 6.18): on
//! which NUMA nodes the pages of a process are.

use super::ProcRoot;
use crate::pseudo_file::{Result, malformed};
use pagewise_model::numa::OnNode;
use pagewise_model::units::Bytes;
use std::collections::BTreeMap;
use std::path::Path;

/// Pages of a process by node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumaMaps {
    /// Nodes with pages of it, by number.
    pub nodes: Vec<OnNode>,
    /// Policy of most of its memory; empty if it has none.
    pub policy: String,
}

impl ProcRoot {
    /// `/proc/PID/numa_maps`, added up. The kernel visits each page: about 26 ns per resident page of
    /// 4 KiB (1 GiB on Linux 6.18), with the process's `mmap_lock` held for reading. Needs the same
    /// user or `CAP_SYS_PTRACE`.
    ///
    /// # Errors
    /// [`Error`](super::Error) when the file is unreadable or malformed.
    pub fn numa_maps(&self, pid: i32) -> Result<Option<NumaMaps>> {
        self.of_process(pid, "numa_maps", parse)
    }
}

/// Files behind memory that programs share or request in huge pages (mm/shmem.c, ipc/shm.c,
/// fs/hugetlbfs): nothing on a disk.
const MEMORY_FILES: [&str; 5] = [
    "/dev/zero",
    "/dev/shm/",
    "/memfd:",
    "/SYSV",
    "/anon_hugepage",
];

fn parse(text: &str, path: &Path) -> Result<NumaMaps> {
    let mut nodes: BTreeMap<u32, OnNode> = BTreeMap::new();
    let mut policies: BTreeMap<&str, Bytes> = BTreeMap::new();
    for (at, line) in (1..).zip(text.lines()) {
        let wrong = || malformed(path, at, "address policy [name=value…]", line);
        let mapping = Mapping::parse(line).ok_or_else(wrong)?;
        for &(node, pages) in &mapping.pages {
            let size = pages.checked_mul(mapping.page_size);
            let size = Bytes(size.ok_or_else(wrong)?);
            let on = nodes.entry(node).or_default();
            on.node = node;
            if mapping.is_file {
                on.files += size;
            } else {
                on.memory += size;
                *policies.entry(mapping.policy).or_default() += size;
            }
        }
    }
    let most = policies.into_iter().max_by_key(|(_, size)| *size);
    Ok(NumaMaps {
        nodes: nodes.into_values().collect(),
        policy: most.map_or_else(String::new, |(policy, _)| policy.to_owned()),
    })
}

/// One line.
struct Mapping<'a> {
    policy: &'a str,
    is_file: bool,
    /// Pages by node.
    pages: Vec<(u32, u64)>,
    /// Bytes of a page: mappings of hugetlb count huge ones, all others base pages.
    page_size: u64,
}

impl<'a> Mapping<'a> {
    /// `7f0a3c000000 bind:0 anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4`. Blanks in names of files
    /// are written as `\040`, those of the policies "weighted interleave" and "prefer (many)" are not.
    fn parse(line: &'a str) -> Option<Self> {
        let (address, rest) = line.split_once(' ')?;
        u64::from_str_radix(address, 16).ok()?;
        let words = |from: &'a str| from.split(' ').filter(|word| !word.is_empty());
        let policy = match words(rest).next()? {
            first @ ("weighted" | "prefer") => {
                let second = words(rest).nth(1)?;
                rest.get(..first.len() + 1 + second.len())?
            }
            first => first,
        };
        let mut found = Self {
            policy,
            is_file: false,
            pages: Vec::new(),
            page_size: 0,
        };
        for word in words(rest.get(policy.len()..)?) {
            match word.split_once('=') {
                Some(("file", name)) => {
                    found.is_file = !MEMORY_FILES.iter().any(|file| name.starts_with(file));
                }
                Some(("kernelpagesize_kB", size)) => {
                    found.page_size = size.parse::<u64>().ok()?.checked_mul(1024)?;
                }
                Some((node, pages)) if is_node(node) => {
                    let (node, pages) = (node.get(1..)?.parse().ok()?, pages.parse().ok()?);
                    found.pages.push((node, pages));
                }
                _ => {}
            }
        }
        (found.pages.is_empty() || found.page_size > 0).then_some(found)
    }
}

/// `N0`, but not a name that only starts with an N.
fn is_node(key: &str) -> bool {
    key.strip_prefix('N')
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made of lines of Linux 6.1 and 6.18; the last policies as `mpol_to_str` writes them.
    const TEXT: &str = "\
55d1c0a3b000 default file=/usr/bin/my\\040program mapped=4 mapmax=2 active=0 N0=3 N1=1 kernelpagesize_kB=4
55d1c1e1b000 default heap anon=8 dirty=8 active=0 N1=8 kernelpagesize_kB=4
7f0a3c000000 bind:0 anon=262144 dirty=262144 N0=262144 kernelpagesize_kB=4
7f0a9c000000 interleave:0-1 file=/dev/shm/x dirty=4 N0=2 N1=2 kernelpagesize_kB=4
7f0aa0000000 bind=static:1 file=/anon_hugepage\\040(deleted) huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048
7f0aa1000000 prefer (many):0-1
7f0aa2000000 weighted interleave:0-1 anon=1 dirty=1 N3=1 kernelpagesize_kB=64
7ffd0a1e0000 default stack
";

    #[test]
    fn pages_are_added_up_by_node_and_kind_of_memory() {
        let found = parse(TEXT, Path::new("numa_maps")).unwrap();
        let kib = |pages: u64| Bytes(pages * 1024);
        let on = |node, memory, files| OnNode {
            node,
            memory,
            files,
            time: None,
        };
        assert_eq!(
            found.nodes,
            [
                on(0, kib(4 * (262_144 + 2)), kib(12)),
                on(1, kib(4 * (8 + 2) + 2 * 2048), kib(4)),
                on(3, kib(64), kib(0)),
            ]
        );
        assert_eq!(found.policy, "bind:0");
        let line = TEXT.lines().nth(6).unwrap();
        assert_eq!(
            Mapping::parse(line).unwrap().policy,
            "weighted interleave:0-1"
        );
        assert_eq!(
            Mapping::parse("7f00 prefer:1 heap").unwrap().policy,
            "prefer:1"
        );
    }

    #[test]
    fn what_is_malformed_is_no_zero() {
        for wrong in [
            "7f0a3c000000",
            "zz default N0=1 kernelpagesize_kB=4",
            "7f0a3c000000 default N0=many kernelpagesize_kB=4",
            "7f0a3c000000 default N0=1",
            "7f0a3c000000 default N0=1 kernelpagesize_kB=",
            "7f0a3c000000 default N0=18446744073709551615 kernelpagesize_kB=4",
        ] {
            let text = format!("55d1c1e1b000 default heap\n{wrong}\n");
            let error = parse(&text, Path::new("numa_maps"))
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("numa_maps:2: expected address"),
                "{error}"
            );
        }
    }

    #[test]
    fn our_own_is_read_where_the_kernel_has_it() {
        let own = i32::try_from(std::process::id()).unwrap();
        let Some(found) = ProcRoot::default().numa_maps(own).unwrap() else {
            skipped!("this kernel has no numa_maps");
            return;
        };
        let memory: Bytes = found.nodes.iter().map(|one| one.memory).sum();
        let resident = ProcRoot::default().statm(own).unwrap().unwrap().resident;
        assert!(
            memory.0 > 0 && memory.0 < 2 * resident.0,
            "{memory} of {resident}"
        );
    }
}
