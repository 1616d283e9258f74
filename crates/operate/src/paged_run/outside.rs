//! Memory outside the budget: programs that are not managed, and processes that grew too large,
//! with the reason. This is reported without a request.

use super::figures::Figures;
use pagewise_linux::process::share_memory;
use pagewise_model::units::Bytes;
use pagewise_wire::shared::Unmanaged;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// Time between two looks at the sizes of processes, doubling from the first to the last value.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// Maximum number of processes and threads of a run that are examined.
const MOST: usize = 256;
const KIB: u64 = 1024;

/// A process's sizes when it was largest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    pub name: String,
    pub resident: u64,
    /// By kind of memory, and the managed part of the anonymous memory.
    pub anonymous: u64,
    pub file: u64,
    pub shared: u64,
    pub managed: Option<u64>,
}

/// The pager's report on a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Managed {
    /// Resident managed memory; `None` for a process without figures.
    Bytes(Option<u64>),
    /// All of its pages are or were kept in memory for `--fill`.
    Held,
}

/// Reads the sizes of the run's processes from time to time, through `/proc`.
#[derive(Debug)]
pub struct Sizes {
    pause: Duration,
    due: Instant,
    peaks: BTreeMap<u32, Peak>,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            pause: PAUSES.0,
            due: Instant::now() + PAUSES.0,
            peaks: BTreeMap::new(),
        }
    }
}

impl Sizes {
    /// Time until the next look is due.
    pub fn patience(&self, most: Duration) -> Duration {
        most.min(self.due.saturating_duration_since(Instant::now()))
    }

    /// Examines the processes from `root` down, if it is time; `managed_of` returns the pager's report on
    /// a process, and is called only for those that exceed `budget`.
    pub fn look(&mut self, root: u32, budget: u64, managed_of: impl Fn(u32) -> Managed) {
        if Instant::now() < self.due {
            return;
        }
        self.pause = (self.pause * 2).min(PAUSES.1);
        self.due = Instant::now() + self.pause;
        for pid in tree(root) {
            let Some(mut now) = size(pid) else {
                continue;
            };
            let known = self.peaks.get(&pid).map_or(0, |known| known.resident);
            if now.resident <= known {
                continue;
            }
            if has_passed(now.resident, budget) {
                match managed_of(pid) {
                    Managed::Bytes(bytes) => now.managed = bytes,
                    Managed::Held => continue,
                }
            }
            self.peaks.insert(pid, now);
        }
    }

    /// The process that exceeded `budget` by most.
    pub fn largest(&self, budget: u64) -> Option<(u32, &Peak)> {
        let passed = self
            .peaks
            .iter()
            .filter(|(_, one)| has_passed(one.resident, budget));
        passed
            .max_by_key(|(_, one)| one.resident)
            .map(|(pid, one)| (*pid, one))
    }
}

/// Whether this many bytes are more than the budget plus a tenth.
pub fn has_passed(resident: u64, budget: u64) -> bool {
    resident > budget + budget / 10
}

/// The processes from `root` down, as far as the kernel lists children (`CONFIG_PROC_CHILDREN`), but for
/// those that have their parent's memory (vfork, posix_spawn): that counts once.
pub fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![(root, None)];
    let mut next = 0;
    while let Some(&(pid, _)) = found.get(next).filter(|_| found.len() < MOST) {
        next += 1;
        let threads = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for thread in threads.take(MOST) {
            let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = text.split_whitespace();
            found.extend(
                children
                    .filter_map(|one| one.parse::<u32>().ok())
                    .map(|child| (child, Some(pid))),
            );
        }
    }
    let owns = |(pid, parent): (u32, Option<u32>)| {
        let shared = parent.is_some_and(|parent| share_memory(parent, pid));
        (!shared).then_some(pid)
    };
    found.into_iter().filter_map(owns).collect()
}

/// Current sizes of process `pid`; `None` if it has ended.
pub fn size(pid: u32) -> Option<Peak> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    peak(&text)
}

/// The name of process `pid`.
pub fn name(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(text.trim_end().to_owned())
}

/// The sizes in `/proc/PID/status`; `None` for a process that has ended.
fn peak(status: &str) -> Option<Peak> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_prefix(':').map(str::trim)
    };
    let bytes = |name: &str| {
        let number = field(name)?.strip_suffix(" kB")?.trim();
        number.parse::<u64>().ok()?.checked_mul(KIB)
    };
    Some(Peak {
        name: field("Name")?.to_owned(),
        resident: bytes("VmRSS")?,
        anonymous: bytes("RssAnon")?,
        file: bytes("RssFile")?,
        shared: bytes("RssShmem")?,
        managed: None,
    })
}

/// Text if the budget was exceeded, with the cause where a look at the process shows it; `largest` is from
/// wait4(2), which misses no moment, and knows no parts.
pub fn passed(sizes: &Sizes, budget: u64, largest: u64) -> Option<String> {
    let more = |seen: u64| has_passed(largest, budget.max(seen));
    match sizes.largest(budget) {
        Some((pid, peak)) => Some(format!(
            "{} (process {pid}) exceeded --memory {}: {} resident, of which {}{}",
            peak.name,
            Bytes(budget),
            Bytes(peak.resident),
            parts(peak, budget),
            match more(peak.resident) {
                true => format!("; between two looks {} in a process", Bytes(largest)),
                false => String::new(),
            }
        )),
        None if more(0) => Some(format!(
            "a process exceeded --memory {}: {} resident for a moment between two looks, so by what is not known \
             (pages copied after a fork, files, shared memory, stacks, or pieces below --min-region)",
            Bytes(budget),
            Bytes(largest)
        )),
        None => None,
    }
}

/// The relevant parts of a process, largest first: those of at least a twentieth of the budget.
fn parts(peak: &Peak, budget: u64) -> String {
    let managed = peak.managed.map(|bytes| bytes.min(peak.anonymous));
    let other = peak.anonymous - managed.unwrap_or(0);
    let words = match managed {
        Some(_) => "not managed (stacks, pieces below --min-region)",
        None => "anonymous memory",
    };
    let all = [
        (
            peak.shared,
            "shared memory (memfd, shm), which is not managed",
        ),
        (
            peak.file,
            "file pages (--files manages files that are mapped to be read)",
        ),
        (other, words),
        (
            managed.unwrap_or(0),
            "managed (held by the kernel, copied after forks faster than evicted, or the store is full)",
        ),
    ];
    let mut all: Vec<_> = all
        .into_iter()
        .filter(|(bytes, _)| *bytes > budget / 20)
        .collect();
    all.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let words: Vec<_> = all
        .into_iter()
        .map(|(bytes, what)| format!("{} {what}", Bytes(bytes)))
        .collect();
    words.join(", ")
}

/// The programs that ran, or would have run, outside the budget.
pub fn unmanaged(figures: &Figures) -> Option<String> {
    let mut words: Vec<_> = figures
        .unmanaged
        .iter()
        .map(|one| {
            let often = if one.count > 1 {
                format!(", {} times", one.count)
            } else {
                String::new()
            };
            format!("{} ({}{often})", one.name, reason(one.reason))
        })
        .collect();
    if figures.more_unmanaged > 0 {
        words.push(format!("{} more", figures.more_unmanaged));
    }
    (!words.is_empty())
        .then(|| format!("not managed, and outside the budget: {}", words.join(", ")))
}

/// Mappings of files that became ordinary ones while they were in use.
pub fn changed_files(figures: &Figures) -> Option<String> {
    let which = match figures.sum_files(|all| all.changed) {
        0 => return None,
        1 => "a mapping".to_owned(),
        count => format!("{count} mappings"),
    };
    Some(format!(
        "{which} of --files became ordinary: the file was opened for writing or truncated, or could not be read"
    ))
}

fn reason(code: u32) -> &'static str {
    let all = [
        (Unmanaged::Static, "linked statically"),
        (Unmanaged::WordSize, "not a 64-bit program"),
        (Unmanaged::OtherLibc, "linked with another libc"),
        (Unmanaged::Privileged, "set-user-ID"),
        (Unmanaged::Cleared, "started without this environment"),
        (Unmanaged::Failed, "the pager could not start in it"),
        (Unmanaged::Go, "a Go program"),
    ];
    let known = all.into_iter().find(|(one, _)| *one as u32 == code);
    known.map_or("for an unknown reason", |(_, words)| words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_by_kind() {
        let text = "Name:\tjava\nVmRSS:\t  300 kB\nRssAnon:\t 100 kB\nRssFile:\t 50 kB\nRssShmem:\t 150 kB\n";
        let peak = peak(text).expect("it is whole");
        assert_eq!((peak.resident, peak.shared), (300 * KIB, 150 * KIB));
        assert!(super::peak("Name:\tgone\nState:\tZ (zombie)\n").is_none());
    }

    #[test]
    fn a_child_with_memory_of_its_own_is_counted() {
        use std::os::unix::process::CommandExt;
        let me = std::process::id();
        assert_eq!(tree(me)[0], me);
        let mut own = std::process::Command::new("cat");
        own.stdin(std::process::Stdio::piped()).process_group(0);
        let mut child = own.spawn().expect("cat");
        assert!(tree(me).contains(&child.id()), "it has memory of its own");
        assert!(!share_memory(me, child.id()));
        drop(child.stdin.take());
        child.wait().expect("it ends");
    }

    #[test]
    fn what_passed_the_budget_is_told_largest_first() {
        let peak = Peak {
            name: "java".to_owned(),
            resident: 900 << 20,
            anonymous: 200 << 20,
            file: 2 << 20,
            shared: 698 << 20,
            managed: Some(150 << 20),
        };
        let files = Peak {
            file: 500 << 20,
            ..peak.clone()
        };
        assert!(parts(&files, 350 << 20).contains("500 MiB file pages (--files"));
        let sizes = Sizes {
            peaks: [(7, peak)].into(),
            ..Sizes::default()
        };
        let text = passed(&sizes, 350 << 20, 0).expect("it passed");
        let at = |word: &str| {
            text.find(word)
                .unwrap_or_else(|| panic!("{word} in {text}"))
        };
        assert!(at("698 MiB shared memory") < at("150 MiB managed"));
        assert!(at("150 MiB managed") < at("50.0 MiB not managed"), "{text}");
        assert!(!text.contains("file pages"), "{text}");
        assert_eq!(passed(&Sizes::default(), 350 << 20, 360 << 20), None);
        assert!(text.contains("900 MiB resident, of which"), "{text}");
        // The parts are those of the look: what wait4 counted beyond it has none.
        let text = passed(&sizes, 350 << 20, 1200 << 20).expect("it passed");
        assert!(text.contains("900 MiB resident, of which"), "{text}");
        assert!(
            text.ends_with("between two looks 1.17 GiB in a process"),
            "{text}"
        );
        let text = passed(&Sizes::default(), 350 << 20, 400 << 20).expect("it passed");
        assert!(text.contains("by what is not known"), "{text}");
    }
}
