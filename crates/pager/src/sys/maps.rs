//! The address space, as listed in `/proc/self/maps` (fs/proc/task_mmu.c, `show_map_vma`), and the
//! parts of it that belong to the pager.

use super::{call3, close, open};
use core::sync::atomic::{AtomicU64, Ordering};

/// Number of the pager's own mappings that are distinguished. It creates fewer than fifty before
/// the program runs; later ones are small: the alternate stack of each thread.
const OWN: usize = 128;
/// Bytes at the start of a line, with its range and its protection.
const HEAD: usize = 48;

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
    let file = open(c"/proc/self/maps", libc::O_RDONLY);
    let Some(file) = i32::try_from(file).ok().filter(|file| *file >= 0) else {
        return false;
    };
    let mut text = [0_u8; 4096];
    let (mut head, mut length) = ([0_u8; HEAD], 0);
    let mut well = true;
    while well {
        // SAFETY: the buffer lives through the call.
        let read = unsafe {
            let place = text.as_mut_ptr() as usize;
            call3(libc::SYS_read, file as usize, place, text.len())
        };
        let Ok(count @ 1..) = usize::try_from(read) else {
            well = read == 0;
            break;
        };
        for &byte in &text[..count] {
            if byte != b'\n' {
                head.get_mut(length).into_iter().for_each(|at| *at = byte);
                length += 1;
                continue;
            }
            let line = parse(&head[..length.min(HEAD)]);
            length = 0;
            let own = |one: &Mapping| holds_own(one.start, one.end);
            if let Some(mapping) = line.filter(|one| !own(one)) {
                well = well && found(mapping);
            }
        }
    }
    close(file);
    well
}

/// `START-END PROTECTION …`; `None` for mappings in the kernel's half (`[vsyscall]`).
fn parse(line: &[u8]) -> Option<Mapping> {
    let line = core::str::from_utf8(line).ok()?;
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    (end < 1 << 63).then_some(Mapping {
        start,
        end,
        accessible: !rest.starts_with("---"),
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
}
