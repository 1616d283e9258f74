//! The memory cgroup of a process, as far as it is one's own.

use pagewise_linux::memcg::{MemoryCgroup, Version};
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::pseudo_file;
use pagewise_model::memory::CgroupMemory;
use pagewise_model::units::Bytes;
use std::path::Path;

/// What the kernel counts for the memory cgroup of `pid`; `None` at the root, which counts the whole
/// machine.
pub fn read(proc: &ProcRoot, pid: i32) -> Option<CgroupMemory> {
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
    let shared = stat.count("shmem");
    let (anonymous, files) = match is_v1 {
        true => (stat.count("total_rss"), stat.count("total_cache")),
        false => (stat.count("anon"), stat.count("file")),
    };
    Some(CgroupMemory {
        charged: now.usage?,
        limit: cgroup.limit().ok().flatten(),
        anonymous: Bytes(anonymous),
        page_cache: Bytes(files.saturating_sub(shared)),
        page_cache_before: None,
        shared: Bytes(shared),
        kernel: match is_v1 {
            true => number("memory.kmem.usage_in_bytes"),
            false => stat.get("kernel").map(Bytes),
        },
        swapped: match is_v1 {
            true => stat.get("total_swap").map(Bytes),
            false => number("memory.swap.current"),
        },
        stalled: pseudo_file::setting(&cgroup.folder.join("memory.pressure"))
            .and_then(|text| stalled(&text)),
    })
}

/// `avg10` of the line `some avg10=0.12 avg60=… total=…`, in per cent
/// (Documentation/accounting/psi.rst), as a share.
fn stalled(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let average = some
        .split(' ')
        .find_map(|word| word.strip_prefix("avg10="))?;
    Some(average.parse::<f64>().ok()? / 100.0)
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

#[cfg(test)]
mod tests {
    use super::stalled;

    #[test]
    fn the_share_of_stalls_is_that_of_some_task() {
        let text = "some avg10=12.50 avg60=1.00 avg300=0.10 total=7\n\
                    full avg10=3.00 avg60=0.00 avg300=0.00 total=2\n";
        assert_eq!(stalled(text), Some(0.125));
        assert_eq!(stalled("full avg10=3.00"), None);
    }
}
