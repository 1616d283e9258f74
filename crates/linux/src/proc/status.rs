//! `/proc/PID/status` (proc_pid_status(5), fs/proc/array.c and task_mmu.c of Linux 6.18).

use crate::pseudo_file::{Result, malformed};
use pagewise_model::units::Bytes;
use std::path::Path;

/// The parts of `/proc/PID/status` that Pagewise uses. Sizes are zero for kernel threads and
/// zombies, which have no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Process id in the reader's namespace.
    pub pid: i32,
    /// Parent.
    pub parent: i32,
    /// Effective user.
    pub user: u32,
    /// Process id in each nested PID namespace, outermost first.
    pub namespace_pids: Vec<i32>,
    /// Largest virtual size so far (`VmPeak`).
    pub peak_size: Bytes,
    /// Largest resident set so far (`VmHWM`).
    pub peak_rss: Bytes,
    /// Resident set (`VmRSS`).
    pub rss: Bytes,
    /// Resident anonymous memory.
    pub rss_anonymous: Bytes,
    /// Resident pages of files.
    pub rss_file: Bytes,
    /// Resident shared memory.
    pub rss_shared: Bytes,
    /// Locked memory.
    pub locked: Bytes,
    /// Page tables (`VmPTE`).
    pub page_tables: Bytes,
    /// Swapped out.
    pub swap: Bytes,
    /// hugetlb pages.
    pub hugetlb: Bytes,
    /// Whether huge pages are allowed for the process; unknown before Linux 5.0.
    pub thp_enabled: Option<bool>,
    /// Threads.
    pub threads: u32,
    /// Effective capabilities, bit by number.
    pub capabilities: u64,
    /// Whether execve cannot give the process new privileges.
    pub no_new_privileges: bool,
    /// 0 none, 1 strict, 2 filter.
    pub seccomp: u8,
}

pub(super) fn parse_status(text: &str, path: &Path) -> Result<Status> {
    let mut status = Status::default();
    for (at, line) in (1..).zip(text.lines()) {
        let Some((key, value)) = line.split_once(':') else {
            return Err(malformed(path, at, "key: value", line));
        };
        let expected = status.set(key, value.trim());
        expected.map_err(|expected| malformed(path, at, expected, line))?;
    }
    Ok(status)
}

impl Status {
    /// Parses one line; on failure returns what was expected.
    fn set(&mut self, key: &str, value: &str) -> std::result::Result<(), &'static str> {
        match key {
            "Pid" => self.pid = number(value)?,
            "PPid" => self.parent = number(value)?,
            "Uid" => self.user = number(value.split_whitespace().nth(1).unwrap_or_default())?,
            "NSpid" => {
                self.namespace_pids = value
                    .split_whitespace()
                    .map(number)
                    .collect::<std::result::Result<_, _>>()?;
            }
            "VmPeak" => self.peak_size = kilobytes(value)?,
            "VmHWM" => self.peak_rss = kilobytes(value)?,
            "VmRSS" => self.rss = kilobytes(value)?,
            "RssAnon" => self.rss_anonymous = kilobytes(value)?,
            "RssFile" => self.rss_file = kilobytes(value)?,
            "RssShmem" => self.rss_shared = kilobytes(value)?,
            "VmLck" => self.locked = kilobytes(value)?,
            "VmPTE" => self.page_tables = kilobytes(value)?,
            "VmSwap" => self.swap = kilobytes(value)?,
            "HugetlbPages" => self.hugetlb = kilobytes(value)?,
            "THP_enabled" => self.thp_enabled = Some(number::<u8>(value)? != 0),
            "Threads" => self.threads = number(value)?,
            "CapEff" => {
                self.capabilities =
                    u64::from_str_radix(value, 16).map_err(|_| "a hexadecimal mask")?;
            }
            "NoNewPrivs" => self.no_new_privileges = number::<u8>(value)? != 0,
            "Seccomp" => self.seccomp = number(value)?,
            _ => {}
        }
        Ok(())
    }

    /// Whether the effective set contains capability `number` of include/uapi/linux/capability.h.
    #[must_use]
    pub fn has_capability(&self, number: u32) -> bool {
        self.capabilities
            .checked_shr(number)
            .is_some_and(|bits| bits & 1 == 1)
    }
}

fn number<T: std::str::FromStr>(word: &str) -> std::result::Result<T, &'static str> {
    word.parse().map_err(|_| "a number")
}

/// `   3060 kB`: the kernel's kB are 1024 bytes.
pub(super) fn kilobytes(value: &str) -> std::result::Result<Bytes, &'static str> {
    let digits = value.trim().strip_suffix(" kB");
    let count: u64 = digits
        .and_then(|digits| digits.trim().parse().ok())
        .ok_or("a size in kB")?;
    Ok(Bytes(count.saturating_mul(1024)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `cat /proc/self/status`, Linux 6.18, shortened; NSpid as in a nested namespace.
    const TEXT: &str = "Name:\tcat\nState:\tR (running)\nPid:\t18972\nPPid:\t18970\n\
        Uid:\t1000\t1001\t0\t0\nNSpid:\t18972\t12\nVmPeak:\t    3060 kB\nVmLck:\t       4 kB\n\
        VmHWM:\t    1760 kB\nVmRSS:\t    1756 kB\nRssAnon:\t     112 kB\nRssFile:\t    1648 kB\n\
        RssShmem:\t       8 kB\nVmPTE:\t      48 kB\nVmSwap:\t      16 kB\n\
        HugetlbPages:\t       0 kB\nTHP_enabled:\t1\nThreads:\t3\n\
        CapEff:\t0000004000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";

    #[test]
    fn reads_sizes_in_kibibytes() {
        let status = parse_status(TEXT, Path::new("status")).unwrap();
        assert_eq!(status.peak_rss, Bytes(1760 << 10));
        assert_eq!(status.page_tables, Bytes(48 << 10));
        assert_eq!(status.rss_anonymous, Bytes(112 << 10));
        assert_eq!(status.swap, Bytes(16 << 10));
        assert_eq!((status.user, status.threads), (1001, 3));
        assert_eq!(status.namespace_pids, [18972, 12]);
        assert_eq!(status.thp_enabled, Some(true));
        assert!(status.no_new_privileges && status.seccomp == 2);
        assert!(status.has_capability(38) && !status.has_capability(21));
    }

    #[test]
    fn a_wrong_unit_is_named_with_its_line() {
        let text = TEXT.replace("  48 kB", "  48 MB");
        let error = parse_status(&text, Path::new("/proc/1/status")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/proc/1/status:14: expected a size in kB, found \"VmPTE:\\t      48 MB\""
        );
    }
}
