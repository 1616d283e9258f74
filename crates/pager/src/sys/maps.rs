//! The address space, as listed in `/proc/self/maps` (fs/proc/task_mmu.c, `show_map_vma`), and the
//! parts of it that belong to the pager.

use super::{call6, close, open};
use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// Number of the pager's own mappings that are distinguished. It creates fewer than fifty before
/// the program runs; later ones are small: the alternate stack of each thread.
const OWN: usize = 128;
/// Bytes at the start of a line, with its range and its protection.
const HEAD: usize = 48;
/// Bytes of a line up to where any path or name begins, and a few more.
const NAMED_HEAD: usize = 128;
/// Bytes of a line with a path of any length that can be opened.
const LINE: usize = libc::PATH_MAX as usize + 128;

static RANGES: [[AtomicU64; 2]; OWN] = [const { [AtomicU64::new(0), AtomicU64::new(0)] }; OWN];

/// A mapping of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address past it.
    pub end: u64,
    /// Whether any access is allowed: a mere reservation needs no memory.
    pub accessible: bool,
}

/// A mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMapping<'a> {
    /// First address.
    pub start: u64,
    /// First address past it.
    pub end: u64,
    /// Whether its file system is on a device: that of a file in memory has major number 0, as have
    /// some on disks (overlayfs, btrfs, NFS).
    pub on_device: bool,
    /// Whether no page of the file can become the process's own: it is shared, or may not be written.
    pub is_view: bool,
    /// The file's inode; with the path, it tells the file from others.
    pub inode: u64,
    /// The path, ended by a zero. The kernel writes a line feed in it as `\\012`, and appends
    /// ` (deleted)` where the file has been removed.
    pub path: &'a CStr,
}

/// Records that `[start, end)` belongs to the pager.
pub(super) fn note_own(start: u64, end: u64) {
    let free = |range: &&[AtomicU64; 2]| {
        let [_, behind] = range;
        behind
            .compare_exchange(0, end, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    };
    if let Some([first, _]) = RANGES.iter().find(free) {
        first.store(start, Ordering::Relaxed);
    }
}

/// Records that the mapping at `start` is gone.
pub(super) fn forget_own(start: u64) {
    let known = RANGES
        .iter()
        .find(|[first, _]| first.load(Ordering::Relaxed) == start);
    if let Some([first, behind]) = known {
        first.store(0, Ordering::Relaxed);
        behind.store(0, Ordering::Relaxed);
    }
}

/// Bytes of address space that the pager has for itself.
#[must_use]
pub fn own_bytes() -> u64 {
    let own = RANGES.iter().map(|range| {
        let [start, end] = range.each_ref().map(|bound| bound.load(Ordering::Relaxed));
        end.saturating_sub(start)
    });
    own.sum()
}

/// Whether the pager has memory of its own in `[start, end)`. The kernel merges such neighbours
/// into one mapping, but never with mappings of the program.
fn holds_own(start: u64, end: u64) -> bool {
    RANGES.iter().any(|[first, behind]| {
        let own = first.load(Ordering::Relaxed);
        own != 0 && own < end && start < behind.load(Ordering::Relaxed)
    })
}

/// Calls `found` for each mapping of the program, in order; `false` if the kernel does not list
/// them, or `found` stops.
pub fn each(mut found: impl FnMut(Mapping) -> bool) -> bool {
    all_lines::<HEAD>(|line| match parse(line) {
        Some(mapping) if !holds_own(mapping.start, mapping.end) => found(mapping),
        _ => true,
    })
}

/// As [`each`], for the ranges of private memory that can be read and written and is of no file:
/// zeros behind a program's data (`.bss`), what an allocator has mapped, and the heap; no stacks.
pub fn each_data(mut found: impl FnMut(Range<u64>) -> bool) -> bool {
    all_lines::<NAMED_HEAD>(|line| match parse_data(line) {
        Some(range) if !holds_own(range.start, range.end) => found(range),
        _ => true,
    })
}

/// Whether the memory at `address` can be written as well as executed. `file` as in [`each_file`].
pub fn is_writable_code(file: i32, address: u64) -> bool {
    let mut is_both = false;
    lines::<HEAD>(file, |line| {
        let found = core::str::from_utf8(line).ok().and_then(range_of);
        let at = found.filter(|(start, end, _)| (*start..*end).contains(&address));
        is_both |= at.is_some_and(|(_, _, rest)| rest.starts_with("rwx"));
        at.is_none()
    });
    is_both
}

/// Calls `found` for the line of the mapping at `address`, of whomever it is, and tells whether there is one.
pub fn at(address: u64, mut found: impl FnMut(&[u8])) -> bool {
    let mut is_there = false;
    all_lines::<NAMED_HEAD>(|line| {
        let text = line.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let range = range_of(text);
        is_there = range.is_some_and(|(start, end, _)| (start..end).contains(&address));
        if is_there {
            found(line);
        }
        !is_there
    });
    is_there
}

/// [`lines`] of all mappings.
fn all_lines<const MOST: usize>(found: impl FnMut(&[u8]) -> bool) -> bool {
    let file = open(c"/proc/self/maps", libc::O_RDONLY);
    let Some(file) = i32::try_from(file).ok().filter(|file| *file >= 0) else {
        return false;
    };
    let message = lines::<MOST>(file, found);
    close(file);
    message
}

/// Calls `found` for each mapping of a file, in order; `false` if the kernel does not list them,
/// or `found` stops. `file` is /proc/self/maps, in use by this thread alone: from a place where
/// another one has read, the kernel goes on by counting bytes, which change.
pub fn each_file(file: i32, mut found: impl FnMut(FileMapping<'_>) -> bool) -> bool {
    lines::<LINE>(file, |line| parse_file(line).is_none_or(&mut found))
}

/// Calls `found` for the first `MOST - 1` bytes of each line, and a zero behind them.
fn lines<const MOST: usize>(file: i32, mut found: impl FnMut(&[u8]) -> bool) -> bool {
    let mut text = [0_u8; 4096];
    let (mut line, mut length) = ([0_u8; MOST], 0);
    let (mut well, mut offset) = (true, 0);
    while well {
        // SAFETY: the buffer lives through the call.
        let read = unsafe {
            let place = text.as_mut_ptr() as usize;
            call6(
                libc::SYS_pread64,
                file as usize,
                place,
                text.len(),
                offset,
                0,
                0,
            )
        };
        let Ok(count @ 1..) = usize::try_from(read) else {
            well = read == 0;
            break;
        };
        offset += count;
        for &byte in &text[..count] {
            if byte != b'\n' {
                if length < MOST - 1 {
                    line[length] = byte;
                    length += 1;
                }
                continue;
            }
            line[length] = 0;
            well = well && found(&line[..=length]);
            length = 0;
        }
    }
    well
}

/// The range at the start of a line, and what follows it; `None` for mappings in the kernel's half
/// (`[vsyscall]`).
fn range_of(line: &str) -> Option<(u64, u64, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    (end < 1 << 63).then_some((start, end, rest))
}

/// `START-END PROTECTION …`
fn parse(line: &[u8]) -> Option<Mapping> {
    let (start, end, rest) = range_of(core::str::from_utf8(line).ok()?)?;
    Some(Mapping {
        start,
        end,
        accessible: !rest.starts_with("---"),
    })
}

/// `START-END PROTECTION OFFSET DEVICE INODE [NAME]`, and a zero.
fn parse_data(line: &[u8]) -> Option<Range<u64>> {
    // A name that is cut off may end within a character.
    let text = line.utf8_chunks().next()?.valid();
    let (start, end, rest) = range_of(text)?;
    let mut words = rest.trim_end_matches('\0').split_ascii_whitespace();
    let (protection, inode, name) = (words.next()?, words.nth(2)?, words.next());
    let is_plain = name.is_none_or(|name| name == "[heap]" || name.starts_with("[anon:"));
    (protection == "rw-p" && inode == "0" && is_plain).then_some(start..end)
}

/// `START-END PROTECTION OFFSET DEVICE INODE PATH`, and a zero. `None` without a path.
fn parse_file(line: &[u8]) -> Option<FileMapping<'_>> {
    let slash = line.iter().position(|byte| *byte == b'/')?;
    let (head, path) = line.split_at(slash);
    let (start, end, rest) = range_of(core::str::from_utf8(head).ok()?)?;
    let mut words = rest.split_ascii_whitespace();
    let protection = words.next()?.as_bytes();
    let device = words.nth(1)?;
    let inode = words.next()?.parse().ok()?;
    Some(FileMapping {
        start,
        end,
        on_device: !device.starts_with("00:"),
        is_view: protection.get(1) == Some(&b'-') || protection.get(3) == Some(&b's'),
        inode,
        path: CStr::from_bytes_until_nul(path).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_the_kernels_half_is_left_out() {
        let of = |text: &str| parse(text.as_bytes());
        let wanted = Mapping {
            start: 0x7f00_1000,
            end: 0x7f00_3000,
            accessible: true,
        };
        assert_eq!(of("7f001000-7f003000 r--p 00000000 00:00 0"), Some(wanted));
        let closed = of("7f001000-7f003000 ---p 00000000 00:00 0").expect("a line");
        assert!(!closed.accessible);
        assert_eq!(of("ffffffffff600000-ffffffffff601000 --xp 0"), None);
        assert_eq!(of("nonsense"), None);
    }

    #[test]
    fn data_is_private_and_of_no_file() {
        let of = |text: &str| parse_data(format!("7f001000-7f003000 {text}\0").as_bytes());
        let wanted = Some(0x7f00_1000..0x7f00_3000);
        assert_eq!(of("rw-p 00000000 00:00 0 "), wanted);
        assert_eq!(of("rw-p 00000000 00:00 0           [heap]"), wanted);
        assert_eq!(of("rw-p 00000000 00:00 0           [anon: a b]"), wanted);
        assert_eq!(of("rw-p 00000000 00:00 0           [stack]"), None);
        assert_eq!(of("rw-s 00000000 00:00 0 "), None);
        assert_eq!(of("rwxp 00000000 00:00 0 "), None);
        assert_eq!(
            of("rw-p 00002000 fe:01 4711       /usr/lib/libc.so.6"),
            None
        );
        assert_eq!(of("rw-p 00000000 00:00"), None);
    }

    #[test]
    fn files_are_told_by_their_paths() {
        let line = b"7f001000-7f003000 r-xp 00002000 fe:01 4711          /a b/lib.so\0";
        let wanted = FileMapping {
            start: 0x7f00_1000,
            end: 0x7f00_3000,
            on_device: true,
            is_view: true,
            inode: 4711,
            path: c"/a b/lib.so",
        };
        assert_eq!(parse_file(line), Some(wanted));
        let line = b"7f001000-7f003000 rw-s 00000000 00:01 12 /memfd:a (deleted)\0";
        assert!(parse_file(line).is_some_and(|one| !one.on_device && one.inode == 12));
        let is_view = |protection: &str| {
            let line = format!("7f001000-7f003000 {protection} 00000000 fe:01 12 /a\0");
            parse_file(line.as_bytes()).map(|one| one.is_view)
        };
        assert_eq!(is_view("rw-s"), Some(true));
        assert_eq!(is_view("rw-p"), Some(false));
        assert_eq!(is_view("rwxp"), Some(false));
        assert_eq!(is_view("r--p"), Some(true));
        assert_eq!(
            parse_file(b"7f001000-7f003000 rw-p 00000000 00:00 0\0"),
            None
        );
        assert_eq!(
            parse_file(b"7f001000-7f003000 rw-p 00000000 00:00 0 [heap]\0"),
            None
        );
        // This program is among the mapped ones.
        let mut own = false;
        let file = i32::try_from(open(c"/proc/self/maps", libc::O_RDONLY)).expect("a descriptor");
        assert!(each_file(file, |one| {
            own |= (one.start..one.end).contains(&(parse_file as *const () as u64));
            true
        }));
        close(file);
        assert!(own);
    }
}
