//! The memory cgroup of a process, as far as it is one's own.

use pagewise_linux::memcg::{MemoryCgroup, Version};
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::pseudo_file;
use pagewise_model::memory::CgroupMemory;
use pagewise_model::units::Bytes;
use std::path::Path;

/// What the kernel counts for the memory cgroup of `pid`; `None` at the root, which counts the whole
/// machine.
pub fn of(proc: &ProcRoot, pid: i32) -> Option<CgroupMemory> {
    let cgroup = MemoryCgroup::of_process(proc, Path::new("/sys/fs/cgroup"), pid).ok()??;
    let is_v1 = cgroup.version == Version::V1;
    if is_v1 && is_root(proc, pid) {
        return None;
    }
    let now = cgroup.read().ok()?;
    let stat = &now.stat;
    let number = |file: &str| {
        let found = pseudo_file::number(&cgroup.folder.join(file)).ok()??;
        Some(Bytes(found))
    };
    let shared = stat.of("shmem");
    let (anonymous, files) = match is_v1 {
        true => (stat.of("total_rss"), stat.of("total_cache")),
        false => (stat.of("anon"), stat.of("file")),
    };
    Some(CgroupMemory {
        charged: now.usage?,
        limit: cgroup.limit().ok().flatten(),
        anonymous: Bytes(anonymous),
        page_cache: Bytes(files.saturating_sub(shared)),
        shared: Bytes(shared),
        kernel: match is_v1 {
            true => number("memory.kmem.usage_in_bytes"),
            false => stat.get("kernel").map(Bytes),
        },
        swapped: match is_v1 {
            true => stat.get("total_swap").map(Bytes),
            false => number("memory.swap.current"),
        },
    })
}

fn is_root(proc: &ProcRoot, pid: i32) -> bool {
    let lines = proc.cgroups(pid).ok().flatten().unwrap_or_default();
    let mut own = lines.iter().filter(|(controllers, _)| {
        controllers
            .split(',')
            .any(|controller| controller == "memory")
    });
    own.any(|(_, place)| place == "/")
}
