//! Which pages of a process are in memory, by `PAGEMAP_SCAN` or, before Linux 6.7, by the entries of
//! `/proc/PID/pagemap` (Documentation/admin-guide/mm/pagemap.rst).

use pagewise_linux::proc::ProcRoot;
use pagewise_linux::sys::machine::page_size;
use pagewise_linux::sys::page_map::{self, category};
use pagewise_model::memory::{PageRun, PageState, Presence};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// An open page map.
#[derive(Debug)]
pub struct Pagemap {
    file: File,
}

impl Pagemap {
    /// The page map of a process.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn open(proc: &ProcRoot, pid: i32) -> io::Result<Self> {
        let file = File::open(proc.process_path(pid, "pagemap"))?;
        Ok(Self { file })
    }
}

/// Pages between the addresses of `ranges`.
///
/// # Errors
/// The kernel's refusal.
pub fn presence(pagemap: &Pagemap, ranges: &[(u64, u64)]) -> io::Result<Presence> {
    let mut runs = Vec::new();
    for &(start, end) in ranges {
        match scanned(&pagemap.file, start, end, &mut runs) {
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => {
                entries(&pagemap.file, start, end, &mut runs)?;
            }
            other => other?,
        }
    }
    Ok(Presence::new(runs))
}

fn scanned(file: &File, start: u64, end: u64, runs: &mut Vec<PageRun>) -> io::Result<()> {
    let mut found = Vec::new();
    page_map::scan(file, start, end, &mut found)?;
    runs.extend(found.iter().filter_map(|run| {
        let state = state(run.categories)?;
        Some(PageRun {
            start: run.start,
            end: run.end,
            state,
        })
    }));
    Ok(())
}

/// `None` for the page of zeros, which belongs to nobody.
fn state(categories: u64) -> Option<PageState> {
    let is = |bit| categories & bit != 0;
    match () {
        () if is(category::ZERO) => None,
        () if is(category::SWAPPED) => Some(PageState::Swapped),
        () if !is(category::PRESENT) => None,
        () if is(category::FILE) => Some(PageState::File),
        () if is(category::HUGE) => Some(PageState::HugeAnonymous),
        () => Some(PageState::Anonymous),
    }
}

/// Bits of an entry: present, swapped, of a file or shared.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const FILE: u64 = 1 << 61;
/// Entries read at once: 32 KiB.
const ENTRIES: u64 = 4096;

/// Reads one entry for each page. An entry does not tell the page of zeros, which is then taken for
/// an anonymous page.
fn entries(file: &File, start: u64, end: u64, runs: &mut Vec<PageRun>) -> io::Result<()> {
    let page = page_size();
    let mut bytes = vec![0; 8 * 4096];
    let mut number = start / page;
    let last = end / page;
    while number < last {
        let count = ENTRIES.min(last - number);
        let wanted = usize::try_from(count * 8).unwrap_or(bytes.len());
        let got = file.read_at(&mut bytes[..wanted], number * 8)?;
        for (entry, number) in bytes[..got].chunks_exact(8).zip(number..) {
            let entry = u64::from_le_bytes(entry.try_into().unwrap_or_default());
            if let Some(state) = state_of_entry(entry) {
                push(runs, number * page, page, state);
            }
        }
        if got < wanted {
            break;
        }
        number += count;
    }
    Ok(())
}

fn state_of_entry(entry: u64) -> Option<PageState> {
    match entry {
        _ if entry & SWAPPED != 0 => Some(PageState::Swapped),
        _ if entry & PRESENT == 0 => None,
        _ if entry & FILE != 0 => Some(PageState::File),
        _ => Some(PageState::Anonymous),
    }
}

fn push(runs: &mut Vec<PageRun>, start: u64, page: u64, state: PageState) {
    match runs.last_mut() {
        Some(last) if last.end == start && last.state == state => last.end += page,
        _ => runs.push(PageRun {
            start,
            end: start + page,
            state,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_say_the_same_of_our_own_pages_as_the_scan() {
        let page = usize::try_from(page_size()).unwrap();
        // More than glibc ever takes from a heap (DEFAULT_MMAP_THRESHOLD_MAX): fresh memory.
        let mut memory = vec![0_u8; 40 << 20];
        let start = memory.as_ptr() as usize;
        let first = start.next_multiple_of(page);
        // Every third page: the others stay absent, unless they are in a huge page.
        let touched: Vec<usize> = (0..60).step_by(3).map(|at| first + at * page).collect();
        for address in &touched {
            memory[address - start] = 1;
        }
        let proc = ProcRoot::default();
        let own = i32::try_from(std::process::id()).unwrap();
        let pagemap = Pagemap::open(&proc, own).unwrap();
        let (from, to) = (first as u64, (first + 60 * page) as u64);
        let mut by_entry = Vec::new();
        entries(&pagemap.file, from, to, &mut by_entry).unwrap();
        let by_entry = Presence::new(by_entry);
        assert!(touched.iter().all(|at| by_entry.at(*at as u64).is_some()));
        let mut by_scan = Vec::new();
        match scanned(&pagemap.file, from, to, &mut by_scan) {
            Ok(()) => assert_eq!(
                Presence::new(by_scan).bytes(from, to),
                by_entry.bytes(from, to)
            ),
            Err(_) => skipped!("no PAGEMAP_SCAN before Linux 6.7"),
        }
    }
}
