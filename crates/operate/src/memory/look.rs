//! One process: its mappings, its pages, its heaps.

use super::mappings;
use pagewise_heaps::{
    Hole, Image, Objects, Pagemap, ProcessSource, Source, Zeros, presence, readers, zeros,
};
use pagewise_linux::proc::{MapsEntry, ProcRoot, allocators_in};
use pagewise_linux::process::while_stopped;
use pagewise_linux::pseudo_file;
use pagewise_linux::sys::machine::page_size;
use pagewise_memory::{DrawnBlock, Extents, HeapsSeen, Owners, ProcessFacts, UnreadRange, account};
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{
    HeapFacts, MemoryKind, MemoryRow, PageState, Presence, ProcessMemory, Unread,
};
use pagewise_model::units::Bytes;
use std::io;
use std::time::{Duration, Instant};

/// Why a process cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It ended.
    #[error("process {0} does not exist: it has ended, or the number is wrong")]
    Gone(i32),
    /// A kernel thread, or a process that ends.
    #[error("process {0} has no memory of its own: it is a kernel thread, or has ended")]
    NoMemory(i32),
    /// Another user's.
    #[error(
        "process {pid} belongs to user {owner}, whose memory you may not see: run pagewise as that user, or as root"
    )]
    OtherUser {
        /// Process.
        pid: i32,
        /// Its effective user.
        owner: u32,
    },
    /// Our own user's, and still not visible.
    #[error(
        "the kernel does not let you see process {0}: it has changed its user, may not be dumped (prctl(2), PR_SET_DUMPABLE) or is outside of this container; run pagewise as root, outside of containers"
    )]
    NotVisible(i32),
    /// A file of `/proc` could not be read.
    #[error(transparent)]
    Proc(#[from] pseudo_file::Error),
}

/// The part of the resident memory (1 in so many) that may have changed during a look; if it is more,
/// the process is looked at again, or stopped.
const MAY_CHANGE: u64 = 100;
/// Longest time for which a process is stopped.
pub(super) const LONGEST_STOP: Duration = Duration::from_millis(40);
/// Part of it after which reading ends: letting all threads go takes time, too.
const READING: Duration = Duration::from_millis(25);
/// A look that took longer while the process ran will not fit into that.
const MAY_FIT: Duration = Duration::from_millis(100);

/// Whether a process may be stopped for a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stops {
    /// If its heaps change too fast.
    Allowed,
    /// Then they are not read.
    Never,
}

/// Whether leaked blocks are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaks {
    /// No.
    Ignored,
    /// Yes, beside the process or while it is stopped for a moment.
    Searched,
    /// Yes; the process stands still, about to exit.
    SearchedAtExit,
}

/// What a look may do, and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Whether a process may be stopped.
    pub stops: Stops,
    /// Whether leaks are searched for.
    pub leaks: Leaks,
}

impl Manner {
    /// Heaps alone.
    pub const fn new(stops: Stops) -> Self {
        Self {
            stops,
            leaks: Leaks::Ignored,
        }
    }
}

/// The account of a process, without its leaks.
///
/// # Errors
/// [`Refusal`].
pub fn process(proc: &ProcRoot, pid: i32, stops: Stops) -> Result<ProcessMemory, Refusal> {
    let mut found = None;
    let mut facts = read(proc, pid, &mut found)?;
    let mut took = Duration::ZERO;
    if has_changed(&facts) {
        let started = Instant::now();
        let second = read(proc, pid, &mut found)?;
        took = started.elapsed();
        if changed(&second) < changed(&facts) {
            facts = second;
        }
    }
    if stops == Stops::Allowed
        && has_changed(&facts)
        && took < MAY_FIT
        && let Some((heaps, stopped)) = read_stopped(proc, pid, &mut found)
    {
        facts = ProcessFacts {
            stopped: stopped.into(),
            ..mapped(proc, pid)?
        };
        heaps.put_into(&mut facts);
    }
    if facts.grown().0 > 0
        && let Ok(after) = mapped(proc, pid)
    {
        facts.settle(&after.mappings);
    }
    let found = found.unwrap_or_default();
    name_drawn(proc, &mut facts);
    facts.note_zeros(&found.runs);
    facts.huge_unsearched = Bytes(found.unsearched);
    let mut account = account(facts);
    name_unread(proc, &mut account);
    Ok(account)
}

/// Names what the drawn blocks hold.
fn name_drawn(proc: &ProcRoot, facts: &mut ProcessFacts) {
    let owners = Owners::new(&facts.heaps, &facts.extents);
    let drawn = facts.live.iter_mut().chain(&mut facts.pins);
    name_blocks(proc, facts.pid, drawn, |block| owners.owner(block));
}

/// Names what blocks of these allocators hold; without the right to look, or where the process has
/// ended, they stay without names.
pub(super) fn name_blocks<'a>(
    proc: &ProcRoot,
    pid: i32,
    drawn: impl Iterator<Item = &'a mut DrawnBlock>,
    owner: impl Fn(u64) -> Option<AllocatorKind>,
) {
    let Ok(Some(maps)) = proc.maps(pid) else {
        return;
    };
    let Ok(presence) = pages(proc, pid, &maps, mappings::may_hold_objects) else {
        return;
    };
    let source = ProcessSource::open(pid);
    let page = page_size() as u64;
    let mut objects = Objects::new(&source, &presence, &maps, page, (proc, pid));
    for one in drawn {
        if let Some(allocator) = owner(one.draw.block) {
            one.object = objects.name(allocator, one.draw.block, one.draw.size);
        }
    }
}

/// Bytes of unknown memory from which it is worth finding out who may have it.
const WORTH_A_NAME: u64 = 1 << 20;

/// Names the allocator that may have the memory that no reader knows.
fn name_unread(proc: &ProcRoot, account: &mut ProcessMemory) {
    let is_unknown = |row: &&mut MemoryRow| {
        row.kind == MemoryKind::NotReadable
            && row.unread == Some(Unread::NoKnownAllocator)
            && row.resident.0 >= WORTH_A_NAME
    };
    let Some(row) = account.rows.iter_mut().find(is_unknown) else {
        return;
    };
    let has_no_reader = |kind: &AllocatorKind| {
        !matches!(
            kind,
            AllocatorKind::Glibc | AllocatorKind::Cpython | AllocatorKind::Unknown
        )
    };
    let is_read = |kind: &AllocatorKind| account.heaps.iter().any(|heap| heap.allocator == *kind);
    let kinds = allocators_in(proc, account.pid).into_iter();
    // A language's runtime, which is last, has more than the allocator below it.
    let mut kinds = kinds.map(|one| one.kind).filter(has_no_reader);
    row.allocator = kinds.rfind(|kind| !is_read(kind));
}

/// Whether so much changed during the look that another one is worth it.
fn has_changed(facts: &ProcessFacts) -> bool {
    let resident: Bytes = facts.mappings.iter().map(|one| one.resident).sum();
    changed(facts) > resident.0 / MAY_CHANGE
}

/// Resident bytes that changed during the look.
fn changed(facts: &ProcessFacts) -> u64 {
    let ranges = facts.unread.iter();
    let ranges = ranges.filter(|range| range.why == Unread::Changed);
    let in_heaps = facts.extents.iter().map(|extent| extent.sums.changed);
    in_heaps.map(|bytes| bytes.resident).sum::<u64>()
        + ranges.map(|range| range.resident).sum::<u64>()
}

fn read(proc: &ProcRoot, pid: i32, found: &mut Option<Zeros>) -> Result<ProcessFacts, Refusal> {
    let mut facts = mapped(proc, pid)?;
    match Heaps::read(proc, pid, &ProcessSource::open(pid), found) {
        Ok(heaps) => heaps.put_into(&mut facts),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Refusal::Gone(pid)),
        Err(_) => facts.unread.push(UnreadRange::all(Unread::NotAllowed)),
    }
    let resident: Bytes = facts.mappings.iter().map(|one| one.resident).sum();
    if facts.unexplained().0 > resident.0 / MAY_CHANGE {
        // Of a process that ended meanwhile, nothing could be read.
        facts.note_changed(&mapped(proc, pid)?.mappings);
    }
    Ok(facts)
}

/// What smaps and status say.
fn mapped(proc: &ProcRoot, pid: i32) -> Result<ProcessFacts, Refusal> {
    let Some(status) = proc.status(pid)? else {
        return Err(Refusal::Gone(pid));
    };
    let smaps = match proc.smaps(pid) {
        Ok(Some(smaps)) if !smaps.is_empty() => smaps,
        Ok(Some(_)) => return Err(Refusal::NoMemory(pid)),
        Ok(None) => return Err(Refusal::Gone(pid)),
        Err(error) if error.is_permission() => return Err(not_allowed(pid, status.user)),
        Err(error) => return Err(error.into()),
    };
    Ok(ProcessFacts {
        pid,
        name: proc.comm(pid)?.unwrap_or_default(),
        page_tables: status.page_tables,
        peak_resident: Some(status.peak_rss),
        mappings: mappings::facts(&smaps, &stack_pointers(proc, pid)),
        ..ProcessFacts::default()
    })
}

fn not_allowed(pid: i32, owner: u32) -> Refusal {
    match owner == pagewise_linux::process::effective_user() {
        true => Refusal::NotVisible(pid),
        false => Refusal::OtherUser { pid, owner },
    }
}

fn stack_pointers(proc: &ProcRoot, pid: i32) -> Vec<u64> {
    let tasks = proc.tasks(pid).into_iter();
    tasks
        .filter_map(|tid| proc.stack_pointer(pid, tid))
        .collect()
}

/// Reads the heaps while the process is stopped; `None` if it may not be stopped, or there was not
/// time enough.
fn read_stopped(proc: &ProcRoot, pid: i32, found: &mut Option<Zeros>) -> Option<(Heaps, Duration)> {
    let stopped = while_stopped(proc, pid, LONGEST_STOP, |_| {
        Heaps::read(proc, pid, &Timed::open(pid), found).ok()
    });
    let (heaps, time) = stopped.ok()?;
    let is_whole = |heaps: &Heaps| !heaps.unread.iter().any(|one| one.why == Unread::Changed);
    heaps.filter(is_whole).map(|heaps| (heaps, time))
}

/// Memory that can be read until a moment.
pub(super) struct Timed {
    source: ProcessSource,
    until: Instant,
}

impl Timed {
    /// The memory of a process that was stopped just now.
    pub fn open(pid: i32) -> Self {
        Self {
            source: ProcessSource::open(pid),
            until: Instant::now() + READING,
        }
    }
}

impl Source for Timed {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        match Instant::now() < self.until {
            true => self.source.read(address, into),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// The heaps of a process.
#[derive(Default)]
struct Heaps {
    heaps: Vec<HeapFacts>,
    seen: HeapsSeen,
    unread: Vec<UnreadRange>,
}

impl Heaps {
    /// Reads them from `source`. Huge pages are searched for zeros once.
    ///
    /// # Errors
    /// If the mappings or the page map cannot be read.
    fn read(
        proc: &ProcRoot,
        pid: i32,
        source: &dyn Source,
        found: &mut Option<Zeros>,
    ) -> io::Result<Self> {
        let maps = proc.maps(pid).map_err(io::Error::other)?;
        let maps = maps.ok_or(io::ErrorKind::NotFound)?;
        let presence = pages(proc, pid, &maps, mappings::is_private_and_writable)?;
        let page = page_size() as u64;
        let unread = |reason| Self {
            unread: vec![UnreadRange::all(reason)],
            ..Self::default()
        };
        if let Err(reason) = may_read(source, &presence, page) {
            return Ok(unread(reason));
        }
        let searched = found.get_or_insert_with(|| zeros(source, &presence, page));
        if !mappings::is_64_bit(&maps) {
            return Ok(unread(Unread::OtherLayout));
        }
        let with_zeros = presence.with(&searched.runs);
        let extents = Extents::new(&with_zeros, page);
        Ok(Self::new(
            &maps,
            Image::new(source, &presence, page),
            extents,
        ))
    }

    /// Reads them with all readers.
    fn new(maps: &[MapsEntry], mut image: Image<'_>, mut extents: Extents<'_>) -> Self {
        let presence = image.presence();
        let mut found = Self::default();
        for reader in readers() {
            let read = reader.read(maps, &mut image, &mut extents);
            found.heaps.extend(read.heaps);
            found
                .unread
                .extend(read.unread.into_iter().map(|(start, end, why)| {
                    let (resident, swapped) = presence.bytes(start, end);
                    UnreadRange {
                        start,
                        end,
                        why,
                        resident,
                        swapped,
                    }
                }));
        }
        found.seen = extents.into_seen();
        found
    }

    fn put_into(self, facts: &mut ProcessFacts) {
        let drawn = |draw| DrawnBlock { draw, object: None };
        (facts.heaps, facts.unread) = (self.heaps, self.unread);
        facts.extents = self.seen.extents;
        facts.live = self.seen.live.into_iter().map(drawn).collect();
        facts.pins = self.seen.pins.into_iter().map(drawn).collect();
    }
}

/// The pages of these mappings.
pub(super) fn pages(
    proc: &ProcRoot,
    pid: i32,
    maps: &[MapsEntry],
    is_wanted: fn(&MapsEntry) -> bool,
) -> io::Result<Presence> {
    let pagemap = Pagemap::open(proc, pid)?;
    let wanted = maps.iter().filter(|one| is_wanted(one));
    let ranges: Vec<(u64, u64)> = wanted
        .map(|one| (one.mapping.start, one.mapping.end))
        .collect();
    presence(&pagemap, &ranges)
}

/// Tries one page: the kernel allows the page map to more readers than the memory itself
/// (`PTRACE_MODE_READ` and `PTRACE_MODE_ATTACH` of ptrace(2)).
fn may_read(source: &dyn Source, presence: &Presence, page: u64) -> Result<(), Unread> {
    let mut runs = presence.runs().iter();
    let Some(first) = runs.find(|run| run.state != PageState::Swapped) else {
        return Ok(());
    };
    match Image::new(source, presence, page).word(first.start) {
        Err(Hole::Refused) => Err(Unread::NotAllowed),
        _ => Ok(()),
    }
}
