//! Files about the whole machine: `vmstat`, `meminfo`, `stat`, `swaps`.

use super::ProcRoot;
use super::status::kilobytes;
use crate::pseudo_file::{self, Result, malformed};
use pagewise_model::run::RunCost;
use pagewise_model::units::{Bytes, Nanos};
use std::collections::BTreeMap;
use std::path::Path;

/// Named counters, as in `/proc/vmstat` and a cgroup's `memory.stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// A counter; 0 if this kernel has none of that name.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// A counter, or `None` if this kernel has none of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Sum of all counters whose names start with `prefix`: per-zone counters of older kernels.
    #[must_use]
    pub fn sum_of(&self, prefix: &str) -> u64 {
        let named = self.0.range(prefix.to_string()..);
        named
            .take_while(|(name, _)| name.starts_with(prefix))
            .map(|(_, count)| count)
            .sum()
    }

    /// What each counter has grown by since `before`; those that were not there then are absent.
    #[must_use]
    pub fn growth(&self, before: &Self) -> BTreeMap<String, u64> {
        let both = self.0.iter().filter_map(|(name, now)| {
            let grown = now.saturating_sub(before.get(name)?);
            Some((name.clone(), grown))
        });
        both.collect()
    }

    /// Parses lines of `name number`.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self> {
        (1..)
            .zip(text.lines())
            .map(|(at, line)| counter(line).ok_or_else(|| malformed(path, at, "name number", line)))
            .collect::<Result<_>>()
            .map(Self)
    }
}

fn counter(line: &str) -> Option<(String, u64)> {
    let (name, number) = line.split_once(' ')?;
    Some((name.to_string(), number.trim().parse().ok()?))
}

/// One line of `/proc/swaps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapDevice {
    /// Device or file.
    pub path: String,
    /// `partition` or `file`.
    pub kind: String,
    /// Size.
    pub size: Bytes,
    /// In use.
    pub used: Bytes,
    /// Higher is used first.
    pub priority: i32,
}

impl ProcRoot {
    /// Cost of all processes since boot: CPU time of `/proc/stat`, faults of `/proc/vmstat`.
    ///
    /// # Errors
    /// [`Error`](super::Error) when a file is unreadable or malformed.
    pub fn machine_cost(&self) -> Result<Option<RunCost>> {
        let ticks = self.of_machine("stat", |text, path| {
            let line = text.lines().next().unwrap_or_default();
            cpu_ticks(line).ok_or_else(|| malformed(path, 1, "cpu and seven numbers", line))
        })?;
        let (Some((user, system)), Some(vmstat)) = (ticks, self.vmstat()?) else {
            return Ok(None);
        };
        let time = |ticks: u64| Nanos(ticks * (1_000_000_000 / self.ticks_per_second.max(1)));
        let major = vmstat.count("pgmajfault");
        Ok(Some(RunCost {
            user: time(user),
            system: time(system),
            minor_faults: vmstat.count("pgfault").saturating_sub(major),
            major_faults: major,
            ..RunCost::default()
        }))
    }

    /// `/proc/vmstat`: virtual memory events since boot, in pages or times.
    ///
    /// # Errors
    /// [`Error`](super::Error) when the file is unreadable or malformed.
    pub fn vmstat(&self) -> Result<Option<Counters>> {
        self.of_machine("vmstat", Counters::parse)
    }

    /// `/proc/meminfo`, in bytes (counts of huge pages stay counts).
    ///
    /// # Errors
    /// [`Error`](super::Error) when the file is unreadable or malformed.
    pub fn meminfo(&self) -> Result<Option<Counters>> {
        self.of_machine("meminfo", |text, path| {
            let lines = (1..).zip(text.lines());
            let parsed = lines.map(|(at, line)| {
                meminfo_line(line).ok_or_else(|| malformed(path, at, "Name: number [kB]", line))
            });
            parsed.collect::<Result<_>>().map(Counters)
        })
    }

    /// `/proc/swaps`; empty without swap.
    ///
    /// # Errors
    /// [`Error`](super::Error) when the file is unreadable or malformed.
    pub fn swaps(&self) -> Result<Vec<SwapDevice>> {
        let devices = self.of_machine("swaps", |text, path| {
            let lines = (1..).zip(text.lines()).skip(1);
            lines
                .map(|(at, line)| {
                    swap_line(line).ok_or_else(|| malformed(path, at, "five columns", line))
                })
                .collect()
        })?;
        Ok(devices.unwrap_or_default())
    }

    fn of_machine<T>(
        &self,
        file: &str,
        parse: impl FnOnce(&str, &Path) -> Result<T>,
    ) -> Result<Option<T>> {
        let path = self.path(file);
        let text = pseudo_file::text(&path)?;
        text.map(|text| parse(&text, &path)).transpose()
    }
}

/// Ticks in programs and in the kernel, interrupts included, of the first line of `/proc/stat`
/// (proc_stat(5): user, nice, system, idle, iowait, irq, softirq, …; guests count as user).
fn cpu_ticks(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_whitespace();
    if words.next() != Some("cpu") {
        return None;
    }
    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = numbers[..] else {
        return None;
    };
    Some((user + nice, system + irq + softirq))
}

fn meminfo_line(line: &str) -> Option<(String, u64)> {
    let (name, value) = line.split_once(':')?;
    let number = match kilobytes(value) {
        Ok(bytes) => bytes.0,
        Err(_) => value.trim().parse().ok()?,
    };
    Some((name.to_string(), number))
}

fn swap_line(line: &str) -> Option<SwapDevice> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [path, kind, size, used, priority] = words[..] else {
        return None;
    };
    let kibibytes = |word: &str| Some(Bytes(word.parse::<u64>().ok()?.checked_mul(1024)?));
    Some(SwapDevice {
        path: path.to_string(),
        kind: kind.to_string(),
        size: kibibytes(size)?,
        used: kibibytes(used)?,
        priority: priority.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(file: &str, text: &str) -> (tempfile::TempDir, ProcRoot) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(file), text).unwrap();
        let root = ProcRoot::at(folder.path());
        (folder, root)
    }

    #[test]
    fn older_kernels_count_reclaim_by_zone() {
        let text = "pgscan_direct_dma 1\npgscan_direct_normal 20\npgscan_file 7\npswpin 3\n";
        let (_folder, root) = root("vmstat", text);
        let vmstat = root.vmstat().unwrap().unwrap();
        assert_eq!(vmstat.sum_of("pgscan_direct"), 21);
        assert_eq!((vmstat.count("pswpin"), vmstat.count("thp_split")), (3, 0));
        assert_eq!(vmstat.get("thp_split"), None);
    }

    #[test]
    fn meminfo_is_in_bytes_except_counts() {
        let (_folder, root) = root("meminfo", "MemTotal:  12 kB\nHugePages_Total:       5\n");
        let meminfo = root.meminfo().unwrap().unwrap();
        assert_eq!(meminfo.count("MemTotal"), 12 * 1024);
        assert_eq!(meminfo.count("HugePages_Total"), 5);
    }

    #[test]
    fn swap_devices_are_in_kibibytes() {
        let text = "Filename Type Size Used Priority\n/dev/zram0 partition 1024 8 -2\n";
        let (_folder, root) = root("swaps", text);
        let device = &root.swaps().unwrap()[0];
        assert_eq!((device.size, device.used), (Bytes::MIB, Bytes(8192)));
        assert_eq!((device.path.as_str(), device.priority), ("/dev/zram0", -2));
    }

    #[test]
    fn the_machine_s_use_is_of_all_processes_and_interrupts() {
        let (folder, root) = root("stat", "cpu  10 1 5 900 7 2 3 0 4 0\ncpu0 1 1 1\n");
        std::fs::write(folder.path().join("vmstat"), "pgfault 50\npgmajfault 8\n").unwrap();
        let cost = root.machine_cost().unwrap().unwrap();
        let tick = 1_000_000_000 / root.ticks_per_second;
        assert_eq!((cost.user.0, cost.system.0), (11 * tick, 10 * tick));
        assert_eq!((cost.minor_faults, cost.major_faults), (42, 8));
        std::fs::write(folder.path().join("stat"), "cpu  10 1\n").unwrap();
        assert!(root.machine_cost().is_err());
    }

    #[test]
    fn a_bad_counter_names_its_line() {
        let (_folder, root) = root("vmstat", "pswpin 3\npswpout many\n");
        let error = root.vmstat().unwrap_err().to_string();
        assert!(error.ends_with("vmstat:2: expected name number, found \"pswpout many\""));
    }
}
