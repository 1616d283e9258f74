//! What a program asks of its mappings, changed by the user: `PAGEWISE_FILES` contains the advice for each
//! mapping of a file, in place of the program's own; `PAGEWISE_POPULATE=off` takes MAP_POPULATE out of its
//! calls of mmap. Works without the pager.

use crate::sys::{call3, environment};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The variable.
const VARIABLE: &str = "PAGEWISE_FILES";
/// Whether mmap populates what the program asks it to (`off`: pages come when they are touched).
const POPULATE: &str = "PAGEWISE_POPULATE";
/// Values of the first, with the advice for each (`madvise(2)`).
const VALUES: [(&str, c_int); 4] = [
    ("random", libc::MADV_RANDOM),
    ("sequential", libc::MADV_SEQUENTIAL),
    ("will-need", libc::MADV_WILLNEED),
    ("populate", MADV_POPULATE_READ),
];
/// Linux 5.14.
const MADV_POPULATE_READ: c_int = 22;
/// The kernel starts to read no more than one window of read-ahead per call (force_page_cache_ra()
/// in mm/readahead.c), whatever was requested: at least 128 KiB in common configurations.
const WINDOW: usize = 128 << 10;
/// Smaller mappings are read at once anyway.
const LEAST_BYTES: usize = 1 << 20;
const NONE: i32 = -1;

static ADVICE: AtomicI32 = AtomicI32::new(NONE);
static POPULATES: AtomicBool = AtomicBool::new(true);

/// Reads the user's settings. An invalid value is reported and ignored.
pub fn prepare() {
    match environment::variable(POPULATE).as_deref() {
        None | Some("on") => {}
        Some("off") => POPULATES.store(false, Ordering::Relaxed),
        Some(wish) => {
            crate::paging::fatal::say(format_args!("{POPULATE}={wish}: it must be on or off"))
        }
    }
    let Some(wish) = environment::variable(VARIABLE) else {
        return;
    };
    match advice_named(&wish) {
        Some(advice) => ADVICE.store(advice, Ordering::Relaxed),
        None => crate::paging::fatal::say(format_args!(
            "{VARIABLE}={wish}: it must be random, sequential, will-need or populate"
        )),
    }
}

fn advice_named(wish: &str) -> Option<c_int> {
    let found = VALUES.iter().find(|(name, _)| *name == wish);
    found.map(|&(_, advice)| advice)
}

/// Gives the requested advice for a new mapping of a file. The kernel is free to follow it; code is
/// left unchanged.
pub fn advise(start: usize, length: usize, protection: c_int, fd: c_int) {
    advise_as(
        ADVICE.load(Ordering::Relaxed),
        start,
        length,
        protection,
        fd,
    );
}

/// The flags of a call of mmap without MAP_POPULATE, if the user wishes so: it is a hint, which never makes the
/// call fail (mmap(2)).
pub fn flags_of(flags: c_int) -> c_int {
    without_populating(POPULATES.load(Ordering::Relaxed), flags)
}

fn without_populating(populates: bool, flags: c_int) -> c_int {
    match populates {
        true => flags,
        false => flags & !libc::MAP_POPULATE,
    }
}

/// What is passed to the kernel in place of the program's own advice: the user's, where both are about how
/// far to read ahead.
pub fn in_place_of(length: usize, advice: c_int) -> c_int {
    replaced(ADVICE.load(Ordering::Relaxed), length, advice)
}

fn replaced(wish: i32, length: usize, advice: c_int) -> c_int {
    let of_reading = matches!(
        advice,
        libc::MADV_NORMAL | libc::MADV_RANDOM | libc::MADV_SEQUENTIAL
    );
    match wish {
        NONE => advice,
        _ if !of_reading || length < LEAST_BYTES => advice,
        libc::MADV_RANDOM | libc::MADV_SEQUENTIAL => wish,
        // These have read what they could when the file was mapped.
        _ => libc::MADV_NORMAL,
    }
}

fn advise_as(advice: c_int, start: usize, length: usize, protection: c_int, fd: c_int) {
    if advice == NONE || fd < 0 || length < LEAST_BYTES || protection & libc::PROT_EXEC != 0 {
        return;
    }
    let step = match advice {
        libc::MADV_WILLNEED => WINDOW,
        _ => length,
    };
    for at in (0..length).step_by(step) {
        let here = step.min(length - at);
        // SAFETY: the mapping was just made, and this advice changes no byte of it.
        unsafe { call3(libc::SYS_madvise, start + at, here, advice as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::time::{Duration, Instant};

    const READ: c_int = libc::PROT_READ;

    /// Maps this many bytes of `file` with the advice `wish` while `look` examines them.
    fn mapped<T>(
        file: &File,
        bytes: usize,
        protection: c_int,
        wish: &str,
        look: impl FnOnce(*mut libc::c_void) -> T,
    ) -> T {
        let fd = file.as_raw_fd();
        let advice = advice_named(wish).unwrap_or(NONE);
        let (nowhere, shared) = (core::ptr::null_mut(), libc::MAP_SHARED);
        // SAFETY: a new mapping of a file, unmapped below.
        let start = unsafe { libc::mmap(nowhere, bytes, protection, shared, fd, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        advise_as(advice, start as usize, bytes, protection, fd);
        let found = look(start);
        // SAFETY: mapped above, and nothing has a reference into it.
        unsafe { libc::munmap(start, bytes) };
        found
    }

    /// The kernel's data on such a mapping: its flags, and its resident KiB (proc_pid_smaps(5)).
    fn said(file: &File, bytes: usize, protection: c_int, wish: &str) -> (String, u64) {
        let (start, smaps) = mapped(file, bytes, protection, wish, |start| {
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            (start as usize, smaps)
        });
        let begin = format!("{start:x}-");
        let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&begin));
        let mut after = |name: &str| {
            let line = lines.find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].trim().to_owned()
        };
        let resident = after("Rss:");
        let resident = resident.trim_end_matches(" kB").parse().unwrap();
        (after("VmFlags:"), resident)
    }

    #[test]
    fn large_file_mappings_get_the_requested_advice() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 << 20).unwrap();
        let large = 2 << 20;
        let has = |wish, flag: &str| {
            let (flags, _) = said(&file, large, READ, wish);
            flags.split(' ').any(|one| one == flag)
        };
        assert!(has("random", "rr") && !has("random", "sr"));
        assert!(has("sequential", "sr") && !has("sequential", "rr"));
        assert!(!has("will-need", "rr") && !has("no wish", "rr") && !has("no wish", "sr"));
        assert_eq!(said(&file, large, READ, "populate").1, 2 << 10);
        assert_eq!(said(&file, large, READ, "no wish").1, 0);
        let small = said(&file, LEAST_BYTES / 2, READ, "random").0;
        let code = said(&file, large, READ | libc::PROT_EXEC, "random").0;
        assert!(
            !small.contains("rr") && !code.contains("rr"),
            "{small} {code}"
        );
    }

    #[test]
    fn populating_is_left_out_on_request_alone() {
        let plain = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let asked = plain | libc::MAP_POPULATE;
        assert_eq!(without_populating(true, asked), asked);
        assert_eq!(without_populating(false, asked), plain);
        assert_eq!(without_populating(false, plain), plain);
    }

    #[test]
    fn the_programs_own_advice_on_reading_ahead_gives_way() {
        let large = LEAST_BYTES;
        let of = |wish: &str, advice| replaced(advice_named(wish).unwrap_or(NONE), large, advice);
        for own in [libc::MADV_NORMAL, libc::MADV_RANDOM, libc::MADV_SEQUENTIAL] {
            assert_eq!(of("random", own), libc::MADV_RANDOM);
            assert_eq!(of("sequential", own), libc::MADV_SEQUENTIAL);
            assert_eq!(of("populate", own), libc::MADV_NORMAL);
            assert_eq!(of("will-need", own), libc::MADV_NORMAL);
            assert_eq!(of("no wish", own), own);
            assert_eq!(replaced(libc::MADV_RANDOM, large - 1, own), own);
        }
        for other in [
            libc::MADV_DONTNEED,
            libc::MADV_WILLNEED,
            libc::MADV_DONTFORK,
        ] {
            assert_eq!(of("random", other), other);
        }
    }

    #[test]
    fn all_of_a_file_is_read_that_will_be_needed() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes = 24 << 20;
        file.write_all(&vec![1; bytes]).unwrap();
        file.sync_all().unwrap();
        // SAFETY: advice on an open file.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        let in_memory = |start| {
            let mut pages = vec![0_u8; bytes / 4096];
            // SAFETY: one byte per page of the mapping.
            let known = unsafe { libc::mincore(start, bytes, pages.as_mut_ptr()) };
            assert_eq!(known, 0);
            pages.iter().filter(|&&page| page & 1 == 1).count()
        };
        mapped(&file, bytes, READ, "will-need", |start| {
            let until = Instant::now() + Duration::from_secs(20);
            while in_memory(start) < bytes / 4096 {
                assert!(Instant::now() < until, "{} pages", in_memory(start));
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    }
}
