//! `/proc`, read into types with units.
//!
//! Every reader is a method of a [`ProcRoot`], so that tests run on folders that they write. A
//! process may end at any moment: its files then give `None`, never an error. Nothing is cached.
//!
//! The parser is our own: `/proc/PID/stat` is read ten times per second for every process of the
//! observed tree, and only the fields that Pagewise uses are converted.

mod allocators;
mod contention;
mod elf;
mod family;
mod kept;
mod kernel_threads;
mod libc_version;
mod listening;
mod looks;
mod maps;
mod numa_maps;
mod pressure;
mod reading;
pub mod runtime;
mod sampler;
mod sampler_options;
mod smaps;
mod stat;
mod status;
mod system;
mod task_log;
mod tree;

pub use crate::pseudo_file::{Error, Result};
pub use allocators::{allocators, allocators_in};
pub use contention::{ContentionReading, ContentionWatch};
pub use family::family;
pub use kept::Kept;
pub use kernel_threads::KernelThreadWatch;
pub use libc_version::glibc_version;
pub use listening::{is_listened_on, listening_ports};
pub use looks::WaitSampler;
pub use maps::MapsEntry;
pub use numa_maps::NumaMaps;
pub(crate) use pressure::memory_pressure_at;
pub use pressure::{PressureStall, StallTimes};
pub use sampler::Sampler;
pub use sampler_options::{SHORTEST_INTERVAL, SamplerOptions};
pub use smaps::{Residency, SmapsEntry, region_kind, residency_by_region};
pub use stat::{Stat, Statm};
pub use status::Status;
pub use system::{Counters, SwapDevice};
pub use task_log::Scheduled;
pub use tree::{ProcessReading, Tree, TreeReading};

use crate::pseudo_file::{self, malformed};
use crate::sys::machine;
use pagewise_model::units::Nanos;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mounted procfs, or a folder that looks like one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcRoot {
    folder: PathBuf,
    page_size: u64,
    ticks_per_second: u64,
}

impl Default for ProcRoot {
    fn default() -> Self {
        Self::at("/proc")
    }
}

impl ProcRoot {
    /// A procfs at `folder`, from a machine with this machine's page size and tick rate.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            page_size: machine::page_size(),
            ticks_per_second: machine::ticks_per_second(),
        }
    }

    /// Path of a file below the root.
    #[must_use]
    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.join(relative)
    }

    /// Path of a process's file.
    #[must_use]
    pub fn process_path(&self, pid: i32, file: &str) -> PathBuf {
        let mut path = self.folder.join(pid.to_string());
        path.push(file);
        path
    }

    /// `/proc/PID/stat`: counters, sizes, state. About 3 µs.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable or malformed.
    pub fn stat(&self, pid: i32) -> Result<Option<Stat>> {
        self.stat_at(&self.process_path(pid, "stat"))
    }

    /// `/proc/PID/task/TID/stat`: fault counters and CPU time of one thread.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable or malformed.
    pub fn task_stat(&self, pid: i32, tid: i32) -> Result<Option<Stat>> {
        self.stat_at(&self.process_path(pid, &format!("task/{tid}/stat")))
    }

    fn stat_at(&self, path: &Path) -> Result<Option<Stat>> {
        let text = pseudo_file::text(path)?.filter(|text| !text.is_empty());
        text.map(|text| stat::parse_stat(&text, path, self.page_size, self.ticks_per_second))
            .transpose()
    }

    /// `/proc/PID/task/TID/wchan`: the kernel function in which a thread sleeps; `None` if it runs,
    /// or if we may not see it (`ptrace(2)` rules). About 2 µs.
    #[must_use]
    pub fn sleeps_in(&self, pid: i32, tid: i32) -> Option<String> {
        let path = self.process_path(pid, &format!("task/{tid}/wchan"));
        let name = pseudo_file::setting(&path)?;
        (!name.is_empty() && name != "0").then_some(name)
    }

    /// Where a thread's stack is in use, from `/proc/PID/task/TID/syscall`; `None` while it runs, or
    /// if we may not see it.
    #[must_use]
    pub fn stack_pointer(&self, pid: i32, tid: i32) -> Option<u64> {
        let path = self.process_path(pid, &format!("task/{tid}/syscall"));
        let text = pseudo_file::setting(&path)?;
        // The last two words: stack pointer and instruction.
        let pointer = text.rsplit(' ').nth(1)?.strip_prefix("0x")?;
        u64::from_str_radix(pointer, 16).ok()
    }

    /// Kind of the file that a thread's current system call has as its first argument: `socket`,
    /// `pipe`, `terminal` or `file`; `None` if there is no such file, or the call is not visible.
    #[must_use]
    pub fn call_is_about(&self, pid: i32, tid: i32) -> Option<&'static str> {
        let path = self.process_path(pid, &format!("task/{tid}/syscall"));
        let text = pseudo_file::setting(&path)?;
        let argument = text.split(' ').nth(1)?.strip_prefix("0x")?;
        let descriptor = u32::from_str_radix(argument, 16).ok()?;
        let path = self.process_path(pid, &format!("fd/{descriptor}"));
        let target = pseudo_file::link(&path).ok()??;
        let target = target.to_str()?;
        Some(match target {
            _ if target.starts_with("socket:") => "socket",
            _ if target.starts_with("pipe:") => "pipe",
            _ if target.starts_with("/dev/pts/") || target.starts_with("/dev/tty") => "terminal",
            _ => "file",
        })
    }

    /// `/proc/PID/task/TID/schedstat`: how long a thread ran, was ready to run without a CPU, and
    /// how often it ran. `None` after it was waited for, or if the kernel does not count it.
    #[must_use]
    pub fn scheduled(&self, pid: i32, tid: i32) -> Option<Scheduled> {
        let path = self.process_path(pid, &format!("task/{tid}/schedstat"));
        let text = pseudo_file::setting(&path)?;
        let mut numbers = text.split(' ').map(str::parse);
        Some(Scheduled {
            run: Nanos(numbers.next()?.ok()?),
            ready: Nanos(numbers.next()?.ok()?),
            turns: numbers.next()?.ok()?,
        })
    }

    /// `/proc/PID/statm`: sizes only.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable or malformed.
    pub fn statm(&self, pid: i32) -> Result<Option<Statm>> {
        self.of_process(pid, "statm", |text, path| {
            stat::parse_statm(text, path, self.page_size)
        })
    }

    /// `/proc/PID/status`: resident set by kind, swap, page tables, privileges.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable or malformed.
    pub fn status(&self, pid: i32) -> Result<Option<Status>> {
        self.of_process(pid, "status", status::parse_status)
    }

    /// `/proc/PID/maps`. Needs the same user or `CAP_SYS_PTRACE`.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable or malformed.
    pub fn maps(&self, pid: i32) -> Result<Option<Vec<MapsEntry>>> {
        self.of_process(pid, "maps", maps::parse_maps)
    }

    /// `/proc/PID/smaps_rollup`: resident memory, summed over all mappings. Costs the kernel about
    /// 2 ms per 512 MiB of resident 4 KiB pages, and holds the process's `mmap_lock` for reading.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable or malformed.
    pub fn smaps_rollup(&self, pid: i32) -> Result<Option<Residency>> {
        let mut entries = self
            .of_process(pid, "smaps_rollup", smaps::parse_smaps)?
            .unwrap_or_default();
        Ok(entries.pop().map(|entry| entry.residency))
    }

    /// `/proc/PID/smaps`: resident memory, mapping by mapping. As costly as
    /// [`smaps_rollup`](Self::smaps_rollup), plus some hundred bytes of text for each mapping.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable or malformed.
    pub fn smaps(&self, pid: i32) -> Result<Option<Vec<SmapsEntry>>> {
        self.of_process(pid, "smaps", smaps::parse_smaps)
    }

    /// Threads of a process, by number.
    #[must_use]
    pub fn tasks(&self, pid: i32) -> Vec<i32> {
        numbered(&self.process_path(pid, "task"))
    }

    /// All visible processes, by number.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        numbered(&self.folder)
    }

    /// Children of a process, from `task/TID/children` of each of its threads.
    ///
    /// # Errors
    /// [`Error`] when a list is unreadable or malformed.
    pub fn children(&self, pid: i32) -> Result<Vec<i32>> {
        let mut children = Vec::new();
        for tid in self.tasks(pid) {
            let path = self.process_path(pid, &format!("task/{tid}/children"));
            for word in pseudo_file::text(&path)?
                .unwrap_or_default()
                .split_whitespace()
            {
                let child = word.parse();
                children.push(child.map_err(|_| malformed(&path, 1, "a process id", word))?);
            }
        }
        Ok(children)
    }

    /// Threads that run or wait for a CPU, the caller among them (fourth field of `/proc/loadavg`).
    #[must_use]
    pub fn runnable(&self) -> Option<usize> {
        let text = pseudo_file::text(&self.path("loadavg")).ok()??;
        let (runnable, _) = text.split_ascii_whitespace().nth(3)?.split_once('/')?;
        runnable.parse().ok()
    }

    /// The number of the newest process or thread (last field of `/proc/loadavg`). While it stays
    /// the same, nothing was forked in this PID namespace.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable or malformed.
    pub fn newest_task(&self) -> Result<Option<i32>> {
        let path = self.path("loadavg");
        let Some(text) = pseudo_file::text(&path)? else {
            return Ok(None);
        };
        let word = text.split_whitespace().nth(4).unwrap_or_default();
        let newest = word.parse();
        newest
            .map(Some)
            .map_err(|_| malformed(&path, 1, "a process id as fifth word", word))
    }

    /// Clock ticks since boot, from `/proc/uptime`: the clock of [`Stat::start_ticks`].
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable or malformed.
    pub fn uptime_ticks(&self) -> Result<Option<u64>> {
        let path = self.path("uptime");
        let Some(text) = pseudo_file::text(&path)? else {
            return Ok(None);
        };
        let word = text.split_whitespace().next().unwrap_or_default();
        let seconds: f64 = word
            .parse()
            .map_err(|_| malformed(&path, 1, "seconds since boot", word))?;
        let nanos = Nanos::from_secs_f64(seconds).0;
        Ok(Some(nanos / (1_000_000_000 / self.ticks_per_second)))
    }

    /// Name of the process (`TASK_COMM_LEN`: at most 15 bytes).
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable.
    pub fn comm(&self, pid: i32) -> Result<Option<String>> {
        self.of_process(pid, "comm", |text, _| {
            Ok(text.trim_end_matches('\n').to_string())
        })
    }

    /// Arguments, the program's name first; empty for a kernel thread or a zombie.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable.
    pub fn cmdline(&self, pid: i32) -> Result<Option<Vec<OsString>>> {
        let bytes = pseudo_file::bytes(&self.process_path(pid, "cmdline"))?;
        Ok(bytes.map(|bytes| {
            zero_terminated(&bytes)
                .map(|word| OsString::from_vec(word.to_vec()))
                .collect()
        }))
    }

    /// Environment at the start of the program, in order. A program that writes over its own
    /// environment (`setproctitle`) shows what it wrote.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable.
    pub fn environ(&self, pid: i32) -> Result<Option<Vec<(String, String)>>> {
        let bytes = pseudo_file::bytes(&self.process_path(pid, "environ"))?;
        Ok(bytes.map(|bytes| zero_terminated(&bytes).filter_map(variable).collect()))
    }

    /// Path of the program, as the process's own mount namespace names it. A file that was
    /// replaced ends in ` (deleted)`.
    ///
    /// # Errors
    /// [`Error`] when the link is unreadable.
    pub fn exe(&self, pid: i32) -> Result<Option<PathBuf>> {
        pseudo_file::link(&self.process_path(pid, "exe"))
    }

    /// Lines of `/proc/PID/cgroup`: hierarchy's controllers (empty for v2) and path.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable.
    pub fn cgroups(&self, pid: i32) -> Result<Option<Vec<(String, String)>>> {
        self.of_process(pid, "cgroup", |text, path| {
            let lines = (1..).zip(text.lines());
            lines
                .map(|(at, line)| cgroup_line(line, at, path))
                .collect()
        })
    }

    fn of_process<T>(
        &self,
        pid: i32,
        file: &str,
        parse: impl FnOnce(&str, &Path) -> Result<T>,
    ) -> Result<Option<T>> {
        let path = self.process_path(pid, file);
        let text = pseudo_file::text(&path)?;
        text.map(|text| parse(&text, &path)).transpose()
    }
}

/// `4:memory:/path`, of cgroups(7).
fn cgroup_line(line: &str, at: usize, path: &Path) -> Result<(String, String)> {
    let mut parts = line.splitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(controllers), Some(place)) => {
            Ok((controllers.to_string(), place.to_string()))
        }
        _ => Err(malformed(path, at, "id:controllers:path", line)),
    }
}

fn numbered(folder: &Path) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut numbers: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

fn zero_terminated(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(|&byte| byte == 0)
        .filter(|word| !word.is_empty())
}

fn variable(word: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(word);
    let (name, value) = text.split_once('=')?;
    Some((name.to_string(), value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_very_process() {
        let proc = ProcRoot::default();
        let me = i32::try_from(std::process::id()).unwrap();
        let stat = proc.stat(me).unwrap().unwrap();
        let status = proc.status(me).unwrap().unwrap();
        let statm = proc.statm(me).unwrap().unwrap();
        assert_eq!((stat.pid, status.pid), (me, me));
        assert_eq!(stat.parent, status.parent);
        assert!(stat.minor_faults > 0 && stat.threads >= 1);
        assert!(statm.resident.0 > 0 && statm.size >= statm.resident);
        assert!(proc.tasks(me).contains(&me));
        assert!(proc.processes().contains(&me));
        assert_eq!(
            proc.exe(me).unwrap(),
            Some(std::env::current_exe().unwrap())
        );
        let maps = proc.maps(me).unwrap().unwrap();
        let here: fn() = reads_this_very_process;
        let code = u64::try_from(here as usize).unwrap();
        let mine = maps.iter().find(|entry| entry.contains(code)).unwrap();
        assert!(mine.is_executable() && mine.inode > 0);
        let pss = proc.smaps_rollup(me).unwrap().unwrap().pss;
        let by_mapping = proc.smaps(me).unwrap().unwrap();
        assert!(pss.0 > 0 && by_mapping.len() + 8 > maps.len());
    }

    #[test]
    fn a_process_that_is_gone_is_no_error() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        child.wait().unwrap();
        let proc = ProcRoot::default();
        assert!(proc.stat(pid).unwrap().is_none());
        assert!(proc.status(pid).unwrap().is_none());
        assert!(proc.maps(pid).unwrap().is_none());
        assert!(proc.smaps_rollup(pid).unwrap().is_none());
        assert!(proc.environ(pid).unwrap().is_none());
        assert!(proc.exe(pid).unwrap().is_none());
        assert!(proc.children(pid).unwrap().is_empty());
        assert!(proc.cgroups(pid).unwrap().is_none());
    }

    #[test]
    fn lists_a_child() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let children = ProcRoot::default().children(me).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(children.contains(&pid));
    }

    #[test]
    fn environment_values_may_hold_equal_signs() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("7")).unwrap();
        let environ = b"GLIBC_TUNABLES=glibc.malloc.arena_max=1\0BARE\0A=\0".as_slice();
        std::fs::write(folder.path().join("7/environ"), environ).unwrap();
        let read = ProcRoot::at(folder.path()).environ(7).unwrap().unwrap();
        let expected = [("GLIBC_TUNABLES", "glibc.malloc.arena_max=1"), ("A", "")];
        assert_eq!(read, expected.map(|(n, v)| (n.to_string(), v.to_string())));
    }

    #[test]
    fn a_malformed_cgroup_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("7")).unwrap();
        std::fs::write(folder.path().join("7/cgroup"), "0::/a:b\nnonsense\n").unwrap();
        let error = ProcRoot::at(folder.path()).cgroups(7).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("7/cgroup:2: expected id:controllers:path")
        );
    }
}
