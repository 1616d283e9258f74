//! Another process's memory, read in large pieces and only where pages are present.

use pagewise_linux::sys::machine::page_size;
use pagewise_linux::sys::page_map::read_memory;
use pagewise_model::memory::{PageRun, PageState, Presence, Unread};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Where memory comes from.
pub trait Source {
    /// Copies bytes from `address`.
    ///
    /// # Errors
    /// If not all of them can be read.
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()>;
}

/// The memory of a process, read through `/proc/PID/mem`, or by process_vm_readv(2), which takes half
/// the time, where all pages are the process's own: pages that forks share would be copied by it.
#[derive(Debug)]
pub struct ProcessSource {
    pid: i32,
    memory: io::Result<File>,
    entries: Option<File>,
    /// Pages of which it is known.
    known: RefCell<Own>,
}

/// Whose pages are, from the page `first` on.
#[derive(Debug, Default)]
struct Own {
    first: u64,
    entries: Vec<u8>,
}

/// Bytes from which it is worth finding out whose the pages are.
const MANY: usize = 16 << 10;
/// Pages whose owner is looked up at once: few enough that next to nothing changes while they are read.
const AT_ONCE: usize = 512;
/// Bits of an entry of `/proc/PID/pagemap`: in memory, and mapped by nobody else.
const OWN: u64 = 1 << 63 | 1 << 56;

impl ProcessSource {
    /// The memory of process `pid`. If it may not be read, each reading says so.
    #[must_use]
    pub fn open(pid: i32) -> Self {
        Self {
            pid,
            memory: File::open(format!("/proc/{pid}/mem")),
            entries: File::open(format!("/proc/{pid}/pagemap")).ok(),
            known: RefCell::default(),
        }
    }

    /// Whether all these pages are in memory and nobody else's.
    fn are_own(&self, address: u64, length: usize) -> bool {
        let page = page_size();
        let first = address / page;
        let behind = (address + length as u64).div_ceil(page);
        let mut known = self.known.borrow_mut();
        if !known.has(first, behind) {
            known.read(self.entries.as_ref(), first);
        }
        known.are_own(first, behind)
    }
}

impl Own {
    fn has(&self, first: u64, behind: u64) -> bool {
        self.first <= first && behind <= self.first + self.entries.len() as u64 / 8
    }

    fn read(&mut self, file: Option<&File>, first: u64) {
        self.first = first;
        self.entries.resize(8 * AT_ONCE, 0);
        let got = file.and_then(|file| file.read_at(&mut self.entries, 8 * first).ok());
        self.entries.truncate(got.unwrap_or(0) / 8 * 8);
    }

    fn are_own(&self, first: u64, behind: u64) -> bool {
        let entries = self.entries.chunks_exact(8);
        let within =
            |one: u64| usize::try_from(one.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let mut wanted = entries.take(within(behind)).skip(within(first));
        self.has(first, behind)
            && wanted.all(|entry| {
                let entry = u64::from_le_bytes(entry.try_into().unwrap_or_default());
                entry & OWN == OWN
            })
    }
}

impl Source for ProcessSource {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        let memory = match &self.memory {
            Ok(file) => file,
            Err(error) => {
                return Err(error
                    .raw_os_error()
                    .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error));
            }
        };
        if into.len() >= MANY
            && self.are_own(address, into.len())
            && read_memory(self.pid, address, into).is_ok()
        {
            return Ok(());
        }
        memory.read_exact_at(into, address)
    }
}

/// Why an address was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hole {
    /// No page is there, as far as is known.
    Absent,
    /// The page is swapped out.
    Swapped,
    /// The kernel did not let us.
    Refused,
}

impl Hole {
    /// The hole behind a failed reading.
    #[allow(clippy::needless_pass_by_value, reason = "it maps errors")]
    pub(super) fn from_error(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES | libc::ESRCH) => Self::Refused,
            _ => Self::Absent,
        }
    }
}

impl From<Hole> for Unread {
    /// What must be present and is not has gone meanwhile.
    fn from(hole: Hole) -> Self {
        match hole {
            Hole::Absent => Self::Changed,
            Hole::Swapped => Self::Swapped,
            Hole::Refused => Self::NotAllowed,
        }
    }
}

/// Bytes of the first piece that is read, and of the largest. Pieces double while reading goes on
/// from one to the next. The largest stays in a core's cache: with 1 MiB, reading takes twice as long.
const PIECES: (u64, u64) = (4096, 64 << 10);

/// A process's memory, with the piece that was read last.
pub struct Image<'a> {
    source: &'a dyn Source,
    presence: &'a Presence,
    page: u64,
    /// Room for a piece, of which the first `length` bytes are the last piece.
    piece: Vec<u8>,
    length: usize,
    start: u64,
    /// Size of the next piece, if reading goes on behind the last.
    next: u64,
    /// Bytes read in all.
    read: u64,
}

impl<'a> Image<'a> {
    /// The memory behind `source`, with these pages of `page` bytes.
    #[must_use]
    pub fn new(source: &'a dyn Source, presence: &'a Presence, page: u64) -> Self {
        Self {
            source,
            presence,
            page,
            piece: Vec::new(),
            length: 0,
            start: 0,
            next: PIECES.0,
            read: 0,
        }
    }

    /// The eight bytes at `address`, which must be a multiple of eight.
    ///
    /// # Errors
    /// [`Hole`].
    pub fn word(&mut self, address: u64) -> Result<u64, Hole> {
        if let Some(word) = self.kept(address) {
            return Ok(word);
        }
        self.fill(address)?;
        self.kept(address).ok_or(Hole::Absent)
    }

    /// The eight bytes at `address` at this moment, whatever was read before.
    ///
    /// # Errors
    /// [`Hole`].
    pub fn now(&self, address: u64) -> Result<u64, Hole> {
        let [word] = self.now_all(address)?;
        Ok(word)
    }

    /// The words from `address` on, read at once and not kept: for places in no order.
    ///
    /// # Errors
    /// [`Hole`].
    pub fn now_all<const N: usize>(&self, address: u64) -> Result<[u64; N], Hole> {
        let run = self.presence.at(address).ok_or(Hole::Absent)?;
        if run.state == PageState::Swapped {
            return Err(Hole::Swapped);
        }
        let bytes = 8 * N;
        if run.end - address < bytes as u64 {
            return Err(Hole::Absent);
        }
        let mut words = [[0; 8]; N];
        self.source
            .read(address, words.as_flattened_mut())
            .map_err(Hole::from_error)?;
        Ok(words.map(u64::from_le_bytes))
    }

    /// Reads `length` bytes from `start` on at once, if they are all present: for words that follow
    /// each other in no order.
    pub fn load(&mut self, start: u64, length: u64) {
        if length >= 8 && self.kept(start).is_some() && self.kept(start + length - 8).is_some() {
            return;
        }
        let has_all = |run: PageRun| run.state != PageState::Swapped && start + length <= run.end;
        if self.presence.at(start).is_some_and(has_all) {
            self.read_piece(start, length).ok();
        }
    }

    /// Forgets what was read, because it may have changed.
    pub fn forget(&mut self) {
        self.length = 0;
    }

    /// The pages that are present.
    #[must_use]
    pub fn presence(&self) -> &'a Presence {
        self.presence
    }

    /// Where the memory comes from.
    #[must_use]
    pub fn source(&self) -> &'a dyn Source {
        self.source
    }

    /// Bytes in a page.
    #[must_use]
    pub fn page(&self) -> u64 {
        self.page
    }

    /// Bytes that were read so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// The eight bytes at `address`, if the piece that was read last has them.
    #[must_use]
    pub fn kept(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let read = self.piece.get(..self.length)?;
        let bytes = read.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn fill(&mut self, address: u64) -> Result<(), Hole> {
        let run = self.presence.at(address).ok_or(Hole::Absent)?;
        if run.state == PageState::Swapped {
            return Err(Hole::Swapped);
        }
        let base = address / self.page * self.page;
        let behind = self.start + self.length as u64;
        self.next = match base == behind && self.length > 0 {
            true => (self.next * 2).min(PIECES.1),
            false => PIECES.0.max(self.page),
        };
        let length = self.next.min(run.end - base);
        self.read_piece(base, length)
    }

    fn read_piece(&mut self, start: u64, length: u64) -> Result<(), Hole> {
        let wanted = usize::try_from(length).map_err(|_| Hole::Absent)?;
        // Grown once: filling it with zeros for each piece would cost more than reading it.
        if self.piece.len() < wanted {
            self.piece.resize(wanted, 0);
        }
        self.start = start;
        self.length = 0;
        self.source
            .read(start, &mut self.piece[..wanted])
            .map_err(Hole::from_error)?;
        self.length = wanted;
        self.read += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word is its own address; notes what was read.
    struct Counting(RefCell<Vec<(u64, usize)>>);

    impl Source for Counting {
        fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
            self.0.borrow_mut().push((address, into.len()));
            for (word, place) in into.chunks_exact_mut(8).zip(0_u64..) {
                word.copy_from_slice(&(address + 8 * place).to_le_bytes());
            }
            Ok(())
        }
    }

    #[test]
    fn loading_what_was_read_reads_nothing_again() {
        let run = PageRun {
            start: 0x10000,
            end: 0x40_0000,
            state: PageState::Anonymous,
        };
        let presence = Presence::new(vec![run]);
        let source = Counting(RefCell::default());
        let mut image = Image::new(&source, &presence, 4096);
        for pool in (0x10000..0x20_0000).step_by(0x4000) {
            assert_eq!(image.word(pool), Ok(pool));
            image.load(pool, 0x4000);
            assert_eq!(image.word(pool + 0x3ff8), Ok(pool + 0x3ff8));
        }
        // Each byte once, and at most a piece more.
        assert!(image.bytes_read() < 0x20_0000 + (2 << 20));
    }

    #[test]
    fn pages_that_are_absent_or_swapped_are_never_read() {
        let run = |start, end, state| PageRun { start, end, state };
        let presence = Presence::new(vec![
            run(0x10000, 0x14000, PageState::Anonymous),
            run(0x14000, 0x15000, PageState::Swapped),
            run(0x16000, 0x17000, PageState::Anonymous),
        ]);
        let source = Counting(RefCell::default());
        let mut image = Image::new(&source, &presence, 4096);
        for address in (0x10000..0x18000).step_by(8) {
            let expected = match address {
                0x14000..0x15000 => Err(Hole::Swapped),
                0x15000..0x16000 | 0x17000.. => Err(Hole::Absent),
                _ => Ok(address),
            };
            assert_eq!(image.word(address), expected, "{address:x}");
        }
        let read = source.0.into_inner();
        // One page, then two at once, then the last of the run.
        let expected = [
            (0x10000, 0x1000),
            (0x11000, 0x2000),
            (0x13000, 0x1000),
            (0x16000, 0x1000),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn a_range_is_own_only_if_all_of_it_is_known_to_be() {
        let entry = |is_own: bool| if is_own { OWN } else { 1 << 63 };
        let entries = [true, true, false, true].map(|one| entry(one).to_le_bytes());
        let known = Own {
            first: 10,
            entries: entries.concat(),
        };
        let are_own = |first, behind| known.are_own(first, behind);
        assert!(are_own(10, 12) && are_own(13, 14));
        assert!(!are_own(10, 13) && !are_own(12, 13));
        // What is not known belongs to nobody.
        assert!(!are_own(9, 11) && !are_own(13, 15) && !Own::default().are_own(0, 1));
    }
}
