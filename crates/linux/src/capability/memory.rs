//! Memory: pressure, page maps, userfaultfd, cgroups, huge pages, limits.

use super::trial::{Machine, words};
use super::{available, limited, missing, with_remedy};
use crate::hugepages;
use crate::memcg::{MemoryCgroup, Version};
use crate::proc::PressureStall;
use crate::pseudo_file;
use crate::sys::probe;
use pagewise_model::capability::Capability;
use pagewise_model::units::Bytes;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

pub(super) fn capabilities(machine: &Machine) -> Vec<Capability> {
    let pagemap = File::open(machine.proc.path("self/pagemap"));
    let mut all = vec![
        pressure(machine),
        smaps_rollup(machine),
        pagemap_scan(&pagemap.and_then(|file| probe::pagemap_scan(&file))),
        userfaultfd(&probe::userfaultfd(false), &probe::userfaultfd(true)),
        system_call(
            "io_uring",
            &probe::io_uring(),
            "User-level paging reads and writes its store in batches.",
            "User-level paging reads and writes its store with plain system calls.",
            Some(
                "sudo sysctl kernel.io_uring_disabled=0; in a container: a seccomp profile that \
                  lets io_uring_setup pass",
            ),
        ),
        system_call(
            "process_madvise",
            &probe::process_madvise(),
            "Memory of a running process can be advised from outside.",
            "Huge pages of a running process cannot be controlled from outside.",
            None,
        ),
        memory_cgroup(machine),
        huge_pages(machine),
        locked_memory(machine),
    ];
    all.extend(userfaultfd_features(&probe::userfaultfd_features()));
    all
}

/// A feature of userfaultfd: the end of its name, its bit (linux/userfaultfd.h), the kernel that
/// introduced it, the consequence if it is present, and if it is missing.
type Feature = (&'static str, u64, &'static str, &'static str, &'static str);

const FEATURES: [Feature; 4] = [
    (
        "wp",
        1 << 0,
        "5.7",
        "Clean pages are distinguished from dirty ones.",
        "User-level paging does not work.",
    ),
    (
        "sigbus",
        1 << 7,
        "4.14",
        "Faults can be served by the faulting thread (run --delivery sigbus).",
        "Faults are served only by handler threads.",
    ),
    (
        "move",
        1 << 16,
        "6.8",
        "Pages are moved out, not copied, and pages that a device writes to are recognised.",
        "Pages are copied out, which is slower, and pages that a device writes to are not recognised: \
         do not page programs that use io_uring.",
    ),
    (
        "cont",
        1 << 10,
        "5.14",
        "Nothing depends on it: only private memory is paged.",
        "Nothing depends on it: only private memory is paged.",
    ),
];

/// The features of userfaultfd; empty if the kernel has no userfaultfd.
pub(super) fn userfaultfd_features(found: &io::Result<u64>) -> Vec<Capability> {
    let Ok(found) = found else {
        return Vec::new();
    };
    let entry = |&(name, bit, since, with, without): &Feature| {
        let name = format!("userfaultfd.{name}");
        match found & bit {
            0 => limited(&name, format!("not offered (needs Linux {since})"), without),
            _ => available(&name, "offered", with),
        }
    };
    FEATURES.iter().map(entry).collect()
}

pub(super) fn pressure(machine: &Machine) -> Capability {
    let name = "psi";
    let without =
        "The time that programs stall for memory is unknown; reclaim is counted by vmstat.";
    match machine.proc.memory_pressure() {
        Ok(PressureStall::Counted(_)) => available(
            name,
            "/proc/pressure/memory is readable",
            "The time that programs stall for memory is part of the timeline.",
        ),
        Ok(PressureStall::OffAtBoot) => with_remedy(
            missing(name, "built in, but off at boot", without),
            "add psi=1 to the kernel's command line and reboot",
        ),
        Ok(PressureStall::NotBuiltIn) => missing(
            name,
            "this kernel was built without it (CONFIG_PSI)",
            without,
        ),
        Err(error) => missing(name, error.to_string(), without),
    }
}

pub(super) fn smaps_rollup(machine: &Machine) -> Capability {
    let name = "proc.smaps_rollup";
    let without = "Proportional set size is not part of the timeline.";
    match pseudo_file::text(&machine.proc.path("self/smaps_rollup")) {
        Ok(Some(_)) => available(
            name,
            "readable for your own processes",
            "Proportional set size is part of the timeline.",
        ),
        Ok(None) => missing(name, "this kernel has none (before Linux 4.14)", without),
        Err(error) => missing(name, error.to_string(), without),
    }
}

pub(super) fn pagemap_scan(tried: &io::Result<()>) -> Capability {
    let name = "proc.pagemap_scan";
    match tried {
        Ok(()) => available(
            name,
            "the PAGEMAP_SCAN ioctl answers",
            "Written pages are found in one call.",
        ),
        Err(error) => limited(
            name,
            format!("PAGEMAP_SCAN: {} (needs Linux 6.7)", words(error)),
            "Written pages are found by reading the page map, which is slower.",
        ),
    }
}

pub(super) fn userfaultfd(full: &io::Result<()>, user_mode: &io::Result<()>) -> Capability {
    let name = "userfaultfd";
    let remedy = "sudo sysctl vm.unprivileged_userfaultfd=1, or run as root";
    match (full, user_mode) {
        (Ok(()), _) => available(
            name,
            "also handles faults taken inside the kernel",
            "User-level paging works for every program.",
        ),
        (Err(error), Ok(())) => with_remedy(
            limited(
                name,
                format!("only for faults in user mode: {}", words(error)),
                "User-level paging fails where the program hands paged memory to system calls.",
            ),
            remedy,
        ),
        (Err(_), Err(error)) => with_remedy(
            missing(name, words(error), "User-level paging does not work."),
            remedy,
        ),
    }
}

fn system_call(
    name: &str,
    tried: &io::Result<()>,
    with: &str,
    without: &str,
    remedy: Option<&str>,
) -> Capability {
    match tried {
        Ok(()) => available(name, "the system call works", with),
        Err(error) => Capability {
            remedy: remedy.map(str::to_string),
            ..missing(name, words(error), without)
        },
    }
}

pub(super) fn memory_cgroup(machine: &Machine) -> Capability {
    let name = "memcg";
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mount = machine.sys.join("fs/cgroup");
    let cgroup = match MemoryCgroup::of_process(&machine.proc, &mount, own) {
        Ok(Some(cgroup)) => cgroup,
        Ok(None) => {
            return missing(
                name,
                "no memory controller is mounted below /sys/fs/cgroup",
                "Memory of the cgroup and hits of its limit are not part of the timeline.",
            );
        }
        Err(error) => {
            return missing(name, error.to_string(), "The cgroup's memory is unknown.");
        }
    };
    let version = match cgroup.version {
        Version::V1 => 1,
        Version::V2 => 2,
    };
    let limit = match cgroup.limit() {
        Ok(Some(limit)) => format!("limit {limit}"),
        Ok(None) => "no limit".to_string(),
        Err(error) => error.to_string(),
    };
    let finding = format!("version {version}, {limit}");
    match can_be_written(&cgroup.folder.join("cgroup.procs")) {
        true => available(
            name,
            format!("{finding}, writable"),
            "The cgroup's memory is part of the timeline, and runs can be given a limit.",
        ),
        false => with_remedy(
            limited(
                name,
                format!("{finding}, read-only"),
                "The cgroup's memory is part of the timeline, but runs cannot be given a limit.",
            ),
            "run as root, or let systemd delegate: systemd-run --user --scope -p Delegate=yes …",
        ),
    }
}

/// Opening for writing changes nothing.
fn can_be_written(path: &Path) -> bool {
    OpenOptions::new().write(true).open(path).is_ok()
}

pub(super) fn huge_pages(machine: &Machine) -> Capability {
    let name = "thp";
    let remedy = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
    let Some(thp) = hugepages::transparent(&machine.sys) else {
        return missing(
            name,
            "this kernel has no transparent huge pages",
            "Advice with huge pages (glibc.malloc.hugetlb=1) does nothing here.",
        );
    };
    let defrag = thp.defrag.as_deref().unwrap_or("unknown");
    let finding = format!("enabled is {}, defrag is {defrag}", thp.enabled);
    match thp.enabled.as_str() {
        "never" => with_remedy(
            missing(
                name,
                finding,
                "Advice with huge pages (glibc.malloc.hugetlb=1) does nothing here.",
            ),
            remedy,
        ),
        "madvise" => available(
            name,
            finding,
            "Programs get huge pages where they or their allocator request them.",
        ),
        _ => available(
            name,
            finding,
            "Programs get huge pages wherever they fit; they may cost memory.",
        ),
    }
}

/// Without privileges, perf's rings may lock at most kernel.perf_event_mlock_kb (516 KiB by
/// default) on top of the limit of locked memory.
const COMFORTABLE_LOCK: Bytes = Bytes(8 << 20);

pub(super) fn locked_memory(machine: &Machine) -> Capability {
    let name = "limits.memlock";
    let text = pseudo_file::setting(&machine.proc.path("self/limits")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    let with = "Recording can use large ring buffers.";
    match soft.map(|word| (word, word.parse::<u64>())) {
        None => limited(
            name,
            "not in /proc/self/limits",
            "Recording uses small ring buffers.",
        ),
        Some(("unlimited", _)) => available(name, "unlimited", with),
        Some((_, Ok(bytes))) if Bytes(bytes) >= COMFORTABLE_LOCK => {
            available(name, Bytes(bytes).to_string(), with)
        }
        Some((word, parsed)) => with_remedy(
            limited(
                name,
                parsed.map_or(word.to_string(), |bytes| Bytes(bytes).to_string()),
                "Recording uses small ring buffers; bursts of faults may be lost, and are counted.",
            ),
            "ulimit -l unlimited, or run as root",
        ),
    }
}
