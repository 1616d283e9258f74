//! This process's threads, as listed in /proc/self/task.

use super::{call3, close, errno, open, open_at};
use core::ffi::CStr;

/// A thread that has ended, but whose id remains until others have ended (fs/proc/array.c).
const ZOMBIE: u8 = b'Z';
/// The same just before it disappears.
const DEAD: u8 = b'X';
/// A worker of an io_uring of this process (include/linux/sched.h, PF_IO_WORKER): the kernel
/// creates and ends it as needed, and ends with the last thread of the process.
const IO_WORKER: u64 = 0x10;

const FOLDER: &CStr = c"/proc/self/task";

/// Number of threads, including those that have ended but are still listed; needs no descriptor.
/// `None` if /proc cannot be read.
#[must_use]
pub fn listed() -> Option<u64> {
    // SAFETY: zeros are a valid `stat`, which lives through the call, as does the constant path.
    let links = unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        let (path, place) = (FOLDER.as_ptr() as usize, &raw mut status as usize);
        match call3(libc::SYS_stat, path, place, 0) {
            0 => status.st_nlink,
            _ => return None,
        }
    };
    // Two links of the folder itself, and one for each thread (fs/proc/base.c, proc_task_getattr).
    Some(links.saturating_sub(2))
}

/// Number of threads that run code of the program or of ours; `None` if /proc cannot be read.
#[must_use]
pub fn running() -> Option<u64> {
    let folder = open(FOLDER, libc::O_RDONLY | libc::O_DIRECTORY);
    let folder = i32::try_from(folder).ok().filter(|folder| *folder >= 0)?;
    let mut entries = [0_u8; 2048];
    let mut count = 0;
    let message = loop {
        // SAFETY: the kernel writes at most the length of the buffer.
        let read = unsafe {
            let place = entries.as_mut_ptr() as usize;
            call3(libc::SYS_getdents64, folder as usize, place, entries.len())
        };
        match usize::try_from(read) {
            Ok(0) => break Some(count),
            Ok(bytes) => count += running_among(folder, &entries[..bytes.min(entries.len())]),
            Err(_) => break None,
        }
    };
    close(folder);
    message
}

/// The number of running threads among the entries of a block of getdents64(2).
fn running_among(folder: i32, mut entries: &[u8]) -> u64 {
    let mut count = 0;
    // An inode and an offset of 8 bytes each, the length of the entry, its type, its name.
    while let Some((&low, &high)) = entries.get(16).zip(entries.get(17)) {
        let length = usize::from(u16::from_le_bytes([low, high]));
        let Some((entry, rest)) = entries.split_at_checked(length.max(20)) else {
            break;
        };
        let name = entry[19..].split(|byte| *byte == 0).next().unwrap_or(&[]);
        if name.first().is_some_and(u8::is_ascii_digit) {
            count += u64::from(does_run(folder, name));
        }
        entries = rest;
    }
    count
}

/// Whether thread `name` runs; one that has ended meanwhile does not. One that cannot be checked
/// (for example, because no descriptor is left) counts as running.
fn does_run(folder: i32, name: &[u8]) -> bool {
    let mut path = [0_u8; 32];
    let file = b"/stat\0";
    let Some(place) = path.get_mut(..name.len() + file.len()) else {
        return true;
    };
    place[..name.len()].copy_from_slice(name);
    place[name.len()..].copy_from_slice(file);
    let Ok(path) = CStr::from_bytes_with_nul(place) else {
        return true;
    };
    let stat = open_at(folder, path, libc::O_RDONLY);
    let Some(stat) = i32::try_from(stat).ok().filter(|stat| *stat >= 0) else {
        return errno(stat) != libc::ENOENT;
    };
    let mut line = [0_u8; 256];
    // SAFETY: the kernel writes at most the length of the buffer.
    let read = unsafe {
        let place = line.as_mut_ptr() as usize;
        call3(libc::SYS_read, stat as usize, place, line.len())
    };
    close(stat);
    match usize::try_from(read) {
        Ok(bytes) => says_running(&line[..bytes.min(line.len())]),
        Err(_) => errno(read) != libc::ESRCH,
    }
}

/// Whether a line of `stat` (proc_pid_stat(5)) belongs to a running thread; an invalid line counts
/// as such, since it is worse to end a process too early than too late.
fn says_running(line: &[u8]) -> bool {
    // The name is in parentheses and may contain anything, including parentheses.
    let Some(end) = line.iter().rposition(|byte| *byte == b')') else {
        return !line.is_empty();
    };
    let mut fields = line[end + 1..].split(|byte| *byte == b' ').skip(1);
    let state = fields.next().and_then(|field| field.first().copied());
    // After the state: four numbers of processes and terminals, a group, and the flags.
    let flags = fields.nth(5).map(number).unwrap_or(0);
    !matches!(state, Some(ZOMBIE | DEAD)) && flags & IO_WORKER == 0
}

fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0_u64, |sum, digit| {
        let digit = u64::from(digit.wrapping_sub(b'0'));
        sum.wrapping_mul(10).wrapping_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_and_zombies_do_not_run() {
        let line = |state: &str, flags: u64| {
            format!("77 (a ) b) {state} 1 77 77 0 -1 {flags} 12 0 0 0").into_bytes()
        };
        assert!(says_running(&line("S", 0x0040_0040)));
        assert!(says_running(&line("R", 0)));
        assert!(!says_running(&line("Z", 0x40)));
        assert!(!says_running(&line("S", 0x0040_0010)));
        assert!(!says_running(b""));
        assert!(says_running(b"what is this"));
    }

    #[test]
    fn a_thread_more_is_counted() {
        let stop = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| stop.wait());
            // Other tests' threads may come and go next to these two.
            assert!(running().unwrap() >= 2);
            assert!(listed().unwrap() >= 2);
            stop.wait();
        });
    }
}
