//! Virtual memory, huge pages, the cgroup's limits, swap, the C library.

use super::{Machine, Settings};
use crate::hugepages;
use crate::memcg::{MemoryCgroup, Version};
use crate::proc::glibc_version;
use crate::pseudo_file::names;
use std::path::PathBuf;

/// Physical memory in bytes, 0 where unknown.
pub(super) fn total(machine: &Machine) -> u64 {
    let meminfo = machine.proc.meminfo().ok().flatten();
    meminfo.map_or(0, |meminfo| meminfo.count("MemTotal"))
}

pub(super) fn virtual_memory(machine: &Machine, settings: &mut Settings) {
    settings.folder("vm", &machine.proc.path("sys/vm"));
    settings.folder("ksm", &machine.sys.join("kernel/mm/ksm"));
    settings.folder("lru_gen", &machine.sys.join("kernel/mm/lru_gen"));
    // -1 if no balloon driver requests reports of free pages (mm/page_reporting.c).
    let reporting = machine.sys.join("module/page_reporting/parameters");
    settings.files("page_reporting", &reporting, &["page_reporting_order"]);
    let zswap = machine.sys.join("module/zswap/parameters");
    settings.files(
        "zswap",
        &zswap,
        &["enabled", "compressor", "max_pool_percent"],
    );
}

pub(super) fn huge_pages(machine: &Machine, settings: &mut Settings) {
    if let Some(thp) = hugepages::transparent(&machine.sys) {
        settings.note("thp.enabled", Some(thp.enabled));
        settings.note("thp.defrag", thp.defrag);
        settings.note("thp.shmem_enabled", thp.shmem_enabled);
        settings.note(
            "thp.use_zero_page",
            thp.use_zero_page.map(|on| on.to_string()),
        );
        settings.note("thp.pmd_size", thp.pmd_size.map(|size| size.0.to_string()));
        let khugepaged = machine
            .sys
            .join("kernel/mm/transparent_hugepage/khugepaged");
        settings.folder("thp.khugepaged", &khugepaged);
        for size in thp.sizes {
            let name = format!("thp.{}kB.enabled", size.size.0 >> 10);
            settings.note(name, Some(size.enabled));
        }
    }
    for pool in hugepages::pools(&machine.sys) {
        let prefix = format!("hugetlb.{}kB", pool.size.0 >> 10);
        settings.note(format!("{prefix}.total"), Some(pool.total.to_string()));
        settings.count(format!("{prefix}.free"), Some(pool.free.to_string()));
        settings.note(
            format!("{prefix}.overcommit"),
            Some(pool.overcommit.to_string()),
        );
    }
}

/// Limits of the cgroup of Pagewise, which a command that it starts inherits.
pub(super) fn cgroup(machine: &Machine, settings: &mut Settings) {
    let Ok(own_pid) = i32::try_from(std::process::id()) else {
        return;
    };
    let mount = machine.sys.join("fs/cgroup");
    let Ok(Some(cgroup)) = MemoryCgroup::of_process(&machine.proc, &mount, own_pid) else {
        return;
    };
    let version = match cgroup.version {
        Version::V1 => "1",
        Version::V2 => "2",
    };
    settings.note("cgroup.version", Some(version));
    let limit = cgroup.limit().ok();
    let words = limit.map(|limit| limit.map_or("none".to_string(), |limit| limit.0.to_string()));
    settings.note("cgroup.memory.limit", words);
}

pub(super) fn swap(machine: &Machine, settings: &mut Settings) {
    for device in machine.proc.swaps().unwrap_or_default() {
        let words = format!(
            "{}, {}, priority {}",
            device.kind, device.size, device.priority
        );
        settings.note(format!("swap.{}", device.path), Some(words));
    }
}

/// Version of the GNU C library that programs on this machine load by default.
pub(super) fn c_library(machine: &Machine, settings: &mut Settings) {
    let version = library_folders(machine)
        .into_iter()
        .find_map(|folder| glibc_version(&folder.join("libc.so.6")));
    settings.note("libc.glibc", version);
}

/// `/lib64`, `/lib` and their subfolders named after an architecture, as on Debian.
fn library_folders(machine: &Machine) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for top in ["lib64", "lib", "usr/lib64", "usr/lib"] {
        let top = machine.root.join(top);
        let inner = names(&top).into_iter();
        let own_architecture = format!("{}-linux-gnu", std::env::consts::ARCH);
        folders.extend(
            inner
                .filter(|name| name.starts_with(&own_architecture))
                .map(|name| top.join(name)),
        );
        folders.push(top);
    }
    folders
}
