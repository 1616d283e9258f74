//! The memory cgroup of a process, of either version
//! (Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst).

pub mod temporary;

use crate::proc::{Counters, PressureStall, ProcRoot, memory_pressure_at};
use crate::pseudo_file::{self, Result, malformed};
use pagewise_model::units::Bytes;
use std::path::{Path, PathBuf};

/// Generation of the cgroup interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy for each controller.
    V1,
    /// The unified hierarchy.
    V2,
}

impl Version {
    /// The file that holds a limit.
    fn limit(self) -> &'static str {
        match self {
            Self::V1 => "memory.limit_in_bytes",
            Self::V2 => "memory.max",
        }
    }
}

/// Folder of one memory cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryCgroup {
    /// Generation.
    pub version: Version,
    /// The folder with `memory.*` files.
    pub folder: PathBuf,
    /// Top of the hierarchy as mounted here.
    top: PathBuf,
}

/// One reading of a memory cgroup. Counters are cumulative since its creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Memory charged; `None` for the root of v2, which has no such file.
    pub usage: Option<Bytes>,
    /// Times that an allocation hit the limit and had to reclaim (`memory.failcnt`, or `max` of
    /// `memory.events`).
    pub limit_hits: Option<u64>,
    /// Processes killed for lack of memory.
    pub oom_kills: Option<u64>,
    /// `memory.stat`; v1 has its own counter names.
    pub stat: Counters,
}

/// v1 shows "no limit" as the largest multiple of the page size; any value this large means no
/// limit.
const UNLIMITED_V1: u64 = i64::MAX.cast_unsigned() - (1 << 20);

impl MemoryCgroup {
    /// The memory cgroup of a process: its path is read from `proc`; `mount` is `/sys/fs/cgroup`.
    /// `None` if the process is gone or no memory controller is mounted.
    ///
    /// Inside a container the path may name a folder of the host that is not visible; the top of
    /// the mounted hierarchy is then the container's own cgroup.
    ///
    /// # Errors
    /// [`pseudo_file::Error`] when `/proc/PID/cgroup` is unreadable or malformed.
    pub fn of_process(proc: &ProcRoot, mount: &Path, pid: i32) -> Result<Option<Self>> {
        let Some(lines) = proc.cgroups(pid)? else {
            return Ok(None);
        };
        let candidates = lines.iter().filter_map(|(controllers, place)| {
            let version = generation(controllers)?;
            Some((version, hierarchy(version, mount)?, place))
        });
        Ok(candidates
            .map(|(version, top, place)| Self {
                version,
                folder: visible_folder(&top, place),
                top,
            })
            .find(Self::has_controller))
    }

    fn has_controller(&self) -> bool {
        let file = match self.version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.stat",
        };
        self.folder.join(file).exists()
    }

    /// Current usage and counters.
    ///
    /// # Errors
    /// [`pseudo_file::Error`] when a file is unreadable or malformed.
    pub fn read(&self) -> Result<MemoryUse> {
        let path = self.folder.join("memory.stat");
        let stat = pseudo_file::text(&path)?.unwrap_or_default();
        let (usage, limit_hits, oom_kills) = match self.version {
            Version::V1 => (
                self.number("memory.usage_in_bytes")?,
                self.number("memory.failcnt")?,
                self.counters("memory.oom_control")?.get("oom_kill"),
            ),
            Version::V2 => {
                let events = self.counters("memory.events")?;
                let usage = self.number("memory.current")?;
                (usage, events.get("max"), events.get("oom_kill"))
            }
        };
        Ok(MemoryUse {
            usage: usage.map(Bytes),
            limit_hits,
            oom_kills,
            stat: Counters::parse(&stat, &path)?,
        })
    }

    /// The lowest limit between this cgroup and the top, which is the effective one; `None` if
    /// there is none.
    ///
    /// # Errors
    /// [`pseudo_file::Error`] when a file is unreadable or malformed.
    pub fn limit(&self) -> Result<Option<Bytes>> {
        Ok(self.limiting()?.map(|(_, limit)| limit))
    }

    /// The folder that sets the effective limit (the innermost if several do), with the limit.
    fn limiting(&self) -> Result<Option<(PathBuf, Bytes)>> {
        let mut lowest: Option<(PathBuf, Bytes)> = None;
        for folder in self.folder.ancestors() {
            if let Some(limit) = limit_in(&folder.join(self.version.limit()))?
                && lowest.as_ref().is_none_or(|(_, low)| limit < *low)
            {
                lowest = Some((folder.to_path_buf(), limit));
            }
            if folder == self.top {
                break;
            }
        }
        Ok(lowest)
    }

    /// Stall times of this cgroup; empty in v1.
    ///
    /// # Errors
    /// [`pseudo_file::Error`] when the file is unreadable or malformed.
    pub fn pressure(&self) -> Result<PressureStall> {
        memory_pressure_at(&self.folder.join("memory.pressure"))
    }

    /// The most memory that was charged at once; `None` where the kernel does not say (version 2 before
    /// Linux 5.19).
    ///
    /// # Errors
    /// [`pseudo_file::Error`].
    pub fn peak(&self) -> Result<Option<Bytes>> {
        let file = match self.version {
            Version::V1 => "memory.max_usage_in_bytes",
            Version::V2 => "memory.peak",
        };
        Ok(self.number(file)?.map(Bytes))
    }

    /// What its processes have in swap now.
    ///
    /// # Errors
    /// [`pseudo_file::Error`].
    pub fn swap(&self) -> Result<Option<Bytes>> {
        let bytes = match self.version {
            Version::V1 => self.counters("memory.stat")?.get("total_swap"),
            Version::V2 => self.number("memory.swap.current")?,
        };
        Ok(bytes.map(Bytes))
    }

    /// Its processes.
    ///
    /// # Errors
    /// [`pseudo_file::Error`].
    pub fn processes(&self) -> Result<Vec<u32>> {
        let path = self.folder.join("cgroup.procs");
        let text = pseudo_file::text(&path)?.unwrap_or_default();
        let number = |(at, word): (usize, &str)| {
            let number = word.parse();
            number.map_err(|_| malformed(&path, at + 1, "a process id", word))
        };
        text.lines().enumerate().map(number).collect()
    }

    fn number(&self, file: &str) -> Result<Option<u64>> {
        pseudo_file::number(&self.folder.join(file))
    }

    fn counters(&self, file: &str) -> Result<Counters> {
        let path = self.folder.join(file);
        let text = pseudo_file::text(&path)?.unwrap_or_default();
        Counters::parse(&text, &path)
    }
}

/// `max` or a number of bytes.
fn limit_in(path: &Path) -> Result<Option<Bytes>> {
    let Some(text) = pseudo_file::text(path)? else {
        return Ok(None);
    };
    match text.trim() {
        "max" => Ok(None),
        word => match word.parse::<u64>() {
            Ok(bytes) => Ok((bytes < UNLIMITED_V1).then_some(Bytes(bytes))),
            Err(_) => Err(malformed(path, 1, "max or bytes", word)),
        },
    }
}

fn generation(controllers: &str) -> Option<Version> {
    match controllers {
        "" => Some(Version::V2),
        list if list.split(',').any(|name| name == "memory") => Some(Version::V1),
        _ => None,
    }
}

/// Where systemd and container engines mount the hierarchy.
fn hierarchy(version: Version, mount: &Path) -> Option<PathBuf> {
    let top = match version {
        Version::V1 => mount.join("memory"),
        Version::V2 if mount.join("cgroup.controllers").exists() => mount.to_path_buf(),
        Version::V2 => mount.join("unified"),
    };
    top.is_dir().then_some(top)
}

fn visible_folder(top: &Path, place: &str) -> PathBuf {
    let named = top.join(place.trim_start_matches('/'));
    match place.contains("/..") || !named.is_dir() {
        true => top.to_path_buf(),
        false => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Machine {
        folder: tempfile::TempDir,
    }

    impl Machine {
        fn new(cgroup_lines: &str, files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let machine = Self { folder };
            machine.write("proc/7/cgroup", cgroup_lines);
            for (path, text) in files {
                machine.write(path, text);
            }
            machine
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn cgroup(&self) -> Option<MemoryCgroup> {
            let proc = ProcRoot::at(self.folder.path().join("proc"));
            MemoryCgroup::of_process(&proc, &self.folder.path().join("cg"), 7).unwrap()
        }
    }

    #[test]
    fn version_2_takes_the_lowest_limit_above_it() {
        let machine = Machine::new(
            "0::/a/b\n",
            &[
                ("cg/cgroup.controllers", "memory\n"),
                ("cg/a/memory.max", "4096000\n"),
                ("cg/a/b/memory.max", "max\n"),
                ("cg/a/b/memory.current", "1234\n"),
                ("cg/a/b/memory.events", "low 0\nmax 17\noom_kill 1\n"),
                ("cg/a/b/memory.stat", "anon 99\nworkingset_refault_anon 5\n"),
            ],
        );
        let cgroup = machine.cgroup().unwrap();
        assert_eq!(cgroup.version, Version::V2);
        assert_eq!(cgroup.limit().unwrap(), Some(Bytes(4_096_000)));
        let now = cgroup.read().unwrap();
        assert_eq!((now.usage, now.limit_hits), (Some(Bytes(1234)), Some(17)));
        assert_eq!((now.oom_kills, now.stat.count("anon")), (Some(1), 99));
        assert_eq!(cgroup.pressure().unwrap(), PressureStall::NotBuiltIn);
    }

    #[test]
    fn version_1_beside_an_empty_unified_hierarchy() {
        let machine = Machine::new(
            "4:memory:/job\n0::/\n",
            &[
                ("cg/unified/cgroup.procs", ""),
                ("cg/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                (
                    "cg/memory/job/memory.limit_in_bytes",
                    "9223372036854771712\n",
                ),
                ("cg/memory/job/memory.usage_in_bytes", "8192\n"),
                ("cg/memory/job/memory.failcnt", "3\n"),
                ("cg/memory/job/memory.stat", "cache 1\n"),
            ],
        );
        let cgroup = machine.cgroup().unwrap();
        assert_eq!(
            (cgroup.version, cgroup.limit().unwrap()),
            (Version::V1, None)
        );
        let now = cgroup.read().unwrap();
        assert_eq!((now.usage, now.limit_hits), (Some(Bytes(8192)), Some(3)));
    }

    #[test]
    fn a_container_without_cgroup_namespace_sees_itself_at_the_top() {
        let machine = Machine::new(
            "4:memory:/docker/0123\n",
            &[
                ("cg/memory/memory.limit_in_bytes", "1048576\n"),
                ("cg/memory/memory.usage_in_bytes", "8192\n"),
            ],
        );
        let cgroup = machine.cgroup().unwrap();
        assert_eq!(cgroup.limit().unwrap(), Some(Bytes::MIB));
    }

    #[test]
    fn no_memory_controller_is_none() {
        assert!(Machine::new("0::/\n", &[("cg/x", "")]).cgroup().is_none());
    }
}
