//! Addresses that the kernel keeps for a process, which may be the only ones of a block: the data of
//! `epoll_ctl(2)` (`/proc/PID/fdinfo/N`, `ep_show_fdinfo` of fs/eventpoll.c), and the values of timers
//! (`/proc/PID/timers`).

use super::ProcRoot;
use crate::pseudo_file;

/// What the kernel keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Words that may be addresses.
    pub words: Vec<u64>,
    /// There is more that cannot be seen: requests of io_uring.
    pub is_more: bool,
}

impl ProcRoot {
    /// What the kernel keeps for a process; `None` if it may not be seen.
    #[must_use]
    pub fn kept(&self, pid: i32) -> Option<Kept> {
        let mut kept = Kept::default();
        let folder = self.process_path(pid, "fd");
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            let Ok(Some(target)) = pseudo_file::link(&entry.path()) else {
                continue;
            };
            match target.to_str() {
                Some("anon_inode:[io_uring]") => kept.is_more = true,
                Some("anon_inode:[eventpoll]") => {
                    let name = entry.file_name();
                    let info = self.process_path(pid, "fdinfo").join(name);
                    let text = pseudo_file::setting(&info).unwrap_or_default();
                    kept.words.extend(text.lines().filter_map(epoll_data));
                }
                _ => {}
            }
        }
        let timers = pseudo_file::setting(&self.process_path(pid, "timers"));
        let timers = timers.unwrap_or_default();
        kept.words.extend(timers.lines().filter_map(timer_value));
        Some(kept)
    }
}

/// `data` of a line such as `tfd:        5 events:       19 data: 55d0c0ffee10  pos:0 ino:61 sdev:7`.
fn epoll_data(line: &str) -> Option<u64> {
    let (_, data) = line.strip_prefix("tfd:")?.split_once("data:")?;
    u64::from_str_radix(data.split_whitespace().next()?, 16).ok()
}

/// The value of a line such as `signal: 34/000055d0c0ffee10`.
fn timer_value(line: &str) -> Option<u64> {
    let (_, value) = line.strip_prefix("signal:")?.split_once('/')?;
    u64::from_str_radix(value.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_epoll_and_timers_are_found() {
        let line = "tfd:        5 events:       19 data:     55d0c0ffee10  pos:0 ino:61 sdev:7";
        assert_eq!(epoll_data(line), Some(0x55d0_c0ff_ee10));
        assert_eq!(epoll_data("flags:\t02"), None);
        assert_eq!(
            timer_value("signal: 34/000055d0c0ffee10"),
            Some(0x55d0_c0ff_ee10)
        );
        assert_eq!(timer_value("notify: signal/pid.2634"), None);
    }
}
