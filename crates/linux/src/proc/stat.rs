//! `/proc/PID/stat` and `statm` (proc_pid_stat(5), fs/proc/array.c of Linux 6.18).

use crate::pseudo_file::{Result, malformed};
use pagewise_model::units::{Bytes, Nanos};
use std::path::Path;

/// Figures of `/proc/PID/stat` for a process with all its threads (for one thread when read below
/// `task/`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Process or thread id.
    pub pid: i32,
    /// Name, at most 15 bytes; may contain spaces and parentheses.
    pub comm: String,
    /// `R`, `S`, `D`, `Z` (ended, not yet waited for), `T`, `t`, `X`, `I`.
    pub state: char,
    /// Whether it has started to exit (`PF_EXITING`): freeing its memory may take long.
    pub is_ending: bool,
    /// Parent.
    pub parent: i32,
    /// Minor faults of all threads, ended ones included.
    pub minor_faults: u64,
    /// Minor faults of children that were waited for, with their own waited-for children.
    pub children_minor_faults: u64,
    /// Major faults.
    pub major_faults: u64,
    /// Major faults of children that were waited for.
    pub children_major_faults: u64,
    /// CPU time in user mode, in steps of a clock tick (10 ms).
    pub user: Nanos,
    /// CPU time in the kernel, in steps of a clock tick.
    pub system: Nanos,
    /// User time of children that were waited for.
    pub children_user: Nanos,
    /// System time of children that were waited for.
    pub children_system: Nanos,
    /// Threads.
    pub threads: u32,
    /// Clock ticks between boot and the start of the process. Together with the pid it identifies a
    /// process permanently, as pids are reused.
    pub start_ticks: u64,
    /// Virtual size.
    pub vsize: Bytes,
    /// Resident set. The kernel batches this count per CPU: it may be a few hundred KiB off.
    pub rss: Bytes,
}

impl Stat {
    /// Whether the process still runs: neither a zombie nor dead.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// `/proc/PID/statm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statm {
    /// Virtual size.
    pub size: Bytes,
    /// Resident set.
    pub resident: Bytes,
    /// Resident file and shared memory pages.
    pub shared: Bytes,
    /// Data and stack, virtual.
    pub data: Bytes,
}

/// include/linux/sched.h, the same since Linux 2.6.
const EXITING: u64 = 0x4;

/// Parses the one line. The name ends at the *last* closing parenthesis.
pub(super) fn parse_stat(text: &str, path: &Path, page: u64, ticks_per_s: u64) -> Result<Stat> {
    let whole = || malformed(path, 1, "pid (name) state and 22 numbers", text);
    let open = text.find('(').ok_or_else(whole)?;
    let close = text.rfind(')').filter(|&at| at > open).ok_or_else(whole)?;
    let mut fields = Fields {
        words: text[close + 1..].split_ascii_whitespace(),
        path,
        text,
    };
    let pid = text[..open].trim().parse().map_err(|_| whole())?;
    let state = fields.next()?.chars().next().ok_or_else(whole)?;
    let parent = fields.number()?;
    fields.skip(4)?; // group, session, terminal, terminal's group
    let flags: u64 = fields.number()?;
    let [minor, children_minor, major, children_major] = fields.four()?;
    let [user, system, children_user, children_system] = fields.four()?;
    fields.skip(2)?; // priority, nice
    let threads = fields.number()?;
    fields.skip(1)?; // itrealvalue, always 0
    let [start_ticks, vsize, rss_pages] = [fields.number()?, fields.number()?, fields.signed()?];
    let time = |ticks: u64| Nanos(ticks.saturating_mul(1_000_000_000 / ticks_per_s));
    Ok(Stat {
        pid,
        comm: text[open + 1..close].to_string(),
        state,
        is_ending: flags & EXITING != 0,
        parent,
        minor_faults: minor,
        children_minor_faults: children_minor,
        major_faults: major,
        children_major_faults: children_major,
        user: time(user),
        system: time(system),
        children_user: time(children_user),
        children_system: time(children_system),
        threads,
        start_ticks,
        vsize: Bytes(vsize),
        rss: Bytes(rss_pages.saturating_mul(page)),
    })
}

pub(super) fn parse_statm(text: &str, path: &Path, page: u64) -> Result<Statm> {
    let mut fields = Fields {
        words: text.split_ascii_whitespace(),
        path,
        text,
    };
    let mut pages = || -> Result<Bytes> { Ok(Bytes(fields.signed()?.saturating_mul(page))) };
    let (size, resident, shared) = (pages()?, pages()?, pages()?);
    let (_code, _library) = (pages()?, pages()?);
    Ok(Statm {
        size,
        resident,
        shared,
        data: pages()?,
    })
}

struct Fields<'a> {
    words: std::str::SplitAsciiWhitespace<'a>,
    path: &'a Path,
    text: &'a str,
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<&'a str> {
        let missing = || malformed(self.path, 1, "more fields", self.text);
        self.words.next().ok_or_else(missing)
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T> {
        let word = self.next()?;
        word.parse()
            .map_err(|_| malformed(self.path, 1, "a number", word))
    }

    fn four(&mut self) -> Result<[u64; 4]> {
        Ok([
            self.number()?,
            self.number()?,
            self.number()?,
            self.number()?,
        ])
    }

    /// A count that the kernel may show below zero for a moment, because it sums per-CPU parts.
    fn signed(&mut self) -> Result<u64> {
        let count: i64 = self.number()?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.next()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `cat /proc/PID/stat` of a process renamed by `prctl(PR_SET_NAME, "a) R (b c")`,
    /// Linux 6.18.
    const AWKWARD: &str = "42 (a) R (b c) S 7 42 42 0 -1 4194304 100 2000 3 40 5 6 70 80 20 0 9 \
                           0 171753 3133440 412 18446744073709551615 1 1 0 0 0 0\n";

    fn parse(text: &str) -> Result<Stat> {
        parse_stat(text, Path::new("/proc/42/stat"), 4096, 100)
    }

    #[test]
    fn names_may_hold_spaces_and_parentheses() {
        let stat = parse(AWKWARD).unwrap();
        assert_eq!((stat.comm.as_str(), stat.state), ("a) R (b c", 'S'));
        assert_eq!((stat.pid, stat.parent, stat.threads), (42, 7, 9));
        assert_eq!((stat.minor_faults, stat.children_minor_faults), (100, 2000));
        assert_eq!((stat.major_faults, stat.children_major_faults), (3, 40));
        assert_eq!(stat.user, Nanos(50_000_000));
        assert_eq!(stat.children_system, Nanos(800_000_000));
        assert_eq!(
            (stat.vsize, stat.rss),
            (Bytes(3_133_440), Bytes(412 * 4096))
        );
        assert_eq!(stat.start_ticks, 171_753);
    }

    #[test]
    fn a_cut_line_names_the_file() {
        let error = parse("42 (sh) S 7 42").unwrap_err().to_string();
        assert!(error.starts_with("/proc/42/stat:1: expected more fields"));
        assert!(parse("42 )sh(").is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn every_prefix_of_a_line_is_an_error_or_a_value_never_a_panic() {
        let complete = (0..AWKWARD.len()).filter(|&end| parse(&AWKWARD[..end]).is_ok());
        let shortest = complete.min().unwrap();
        assert!(
            AWKWARD[..shortest].ends_with(" 4"),
            "rss is the last field read"
        );
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let stat = parse(&AWKWARD.replace(" S 7", " Z 7")).unwrap();
        assert!(!stat.is_alive());
    }

    #[test]
    fn a_process_that_gives_back_what_it_had_is_ending() {
        let flags = |flags: &str| {
            let line = AWKWARD.split_inclusive(' ').collect::<Vec<_>>();
            let at = line.iter().position(|word| *word == "S ").unwrap() + 6;
            let (before, after) = (line[..at].concat(), line[at + 1..].concat());
            parse(&format!("{before}{flags} {after}"))
                .unwrap()
                .is_ending
        };
        // PF_EXITING, with PF_WQ_WORKER and others.
        assert!(flags("4194308") && !flags("4194304"));
    }

    #[test]
    fn statm_is_in_pages() {
        let statm = parse_statm("765 440 412 5 0 90 0\n", Path::new("statm"), 4096).unwrap();
        assert_eq!(statm.size, Bytes(765 * 4096));
        assert_eq!(statm.data, Bytes(90 * 4096));
    }
}
