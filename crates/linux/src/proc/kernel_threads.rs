//! CPU time of the kernel's own threads that manage memory: they work beside a program, on the same
//! CPUs.

use super::ProcRoot;
use crate::pseudo_file;
use pagewise_model::kernel_threads::KernelThread;
use pagewise_model::units::Nanos;
use std::thread::JoinHandle;

/// Beginnings of their names (mm/khugepaged.c, mm/ksm.c, mm/vmscan.c, mm/compaction.c,
/// mm/damon/core.c).
const NAMES: [&str; 5] = ["khugepaged", "ksmd", "kswapd", "kcompactd", "kdamond"];
/// The parent of all kernel threads, and its name (kernel/kthread.c).
const PARENT: i32 = 2;
const PARENT_NAME: &str = "kthreadd";

/// A thread, and its CPU time since boot.
type Reading = (i32, String, Nanos);

/// Measures from a moment on what they use.
#[derive(Debug)]
pub struct KernelThreadWatch(Option<JoinHandle<Vec<Reading>>>);

impl KernelThreadWatch {
    /// Starts now. On a machine of many CPUs there are thousands of kernel threads, so they are
    /// looked through on a thread of its own.
    #[must_use]
    pub fn begin() -> Self {
        let reader = std::thread::Builder::new().name("pagewise-kernel".to_owned());
        Self(reader.spawn(|| ProcRoot::default().kernel_threads()).ok())
    }

    /// What those that used any used since then, the busiest first. Empty where the kernel threads
    /// cannot be seen, as in a container.
    #[must_use]
    pub fn stop(&mut self) -> Vec<KernelThread> {
        let before = self.0.take().and_then(|reader| reader.join().ok());
        let proc = ProcRoot::default();
        let used = before.unwrap_or_default().into_iter();
        let mut used: Vec<KernelThread> = used
            .filter_map(|(pid, name, before)| {
                let cpu = proc.scheduled(pid, pid)?.run - before;
                (cpu.0 > 0).then_some(KernelThread { name, cpu })
            })
            .collect();
        used.sort_by(|a, b| b.cpu.cmp(&a.cpu).then_with(|| a.name.cmp(&b.name)));
        used
    }
}

impl ProcRoot {
    fn kernel_threads(&self) -> Vec<Reading> {
        let name = |pid: i32| pseudo_file::setting(&self.process_path(pid, "comm"));
        if name(PARENT).as_deref() != Some(PARENT_NAME) {
            return Vec::new();
        }
        let children = self.process_path(PARENT, &format!("task/{PARENT}/children"));
        let children = pseudo_file::setting(&children).unwrap_or_default();
        let pids = children.split(' ').filter_map(|pid| pid.parse().ok());
        let manages = |name: &str| NAMES.iter().any(|one| name.starts_with(one));
        pids.filter_map(|pid| {
            let name = name(pid).filter(|name| manages(name))?;
            Some((pid, name, self.scheduled(pid, pid)?.run))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn those_that_manage_memory_are_found_among_kthreadds_children() {
        let root = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("2/comm", "kthreadd\n");
        put("2/task/2/children", "3 31 32 ");
        for (pid, name) in [(3, "rcu_gp"), (31, "khugepaged"), (32, "kswapd0")] {
            put(&format!("{pid}/comm"), &format!("{name}\n"));
            put(&format!("{pid}/task/{pid}/schedstat"), "700 20 3\n");
        }
        let expected = [
            (31, "khugepaged".to_owned(), Nanos(700)),
            (32, "kswapd0".to_owned(), Nanos(700)),
        ];
        assert_eq!(ProcRoot::at(root.path()).kernel_threads(), expected);
        // In a container, process 2 is something else.
        put("2/comm", "nginx\n");
        assert!(ProcRoot::at(root.path()).kernel_threads().is_empty());
    }
}
