//! Leaks: snapshots of a process's memory, in which blocks are searched that no pointer leads to.
//!
//! A small process is stopped for one snapshot. A large one runs on: its registers and the ends of its
//! stacks are read while it is stopped for a moment, its memory while it runs. A pointer that moves
//! meanwhile can be missed, so only what is leaked in several snapshots counts.

use super::look::{LONGEST_STOP, Timed, name_blocks, pages};
use super::mappings;
use pagewise_heaps::{Image, ProcessSource, Source, readers, words};
use pagewise_linux::proc::{Kept, MapsEntry, ProcRoot};
use pagewise_linux::process::{ThreadRegisters, registers, while_stopped};
use pagewise_linux::sys::machine::page_size;
use pagewise_memory::{DrawnBlock, Graph, LiveBlocks, Unreached, groups};
use pagewise_model::memory::{ByteRange, LeakCheck, LeaksUnknown, Presence};
use pagewise_model::units::Bytes;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Snapshots of a process that runs on, and the pause between them.
const SNAPSHOTS: u64 = 3;
const PAUSE: Duration = Duration::from_millis(200);
/// A snapshot that took longer while the process ran does not fit into a stop.
const MAY_FIT: Duration = Duration::from_millis(60);
/// Bytes below a stack pointer that a function may use (the red zone of x86-64).
const RED_ZONE: u64 = 128;

/// Searches for leaked blocks of a process; `at_exit`, if it stands still and is about to exit. Returns
/// what was found, and for how long the process was stopped.
pub fn check(proc: &ProcRoot, pid: i32, at_exit: bool) -> (LeakCheck, Duration) {
    let found = match at_exit {
        true => standing(proc, pid),
        false => running(proc, pid),
    };
    match found {
        Ok(found) => (found.in_figures(proc, pid), found.stopped),
        Err(why) => (LeakCheck::unknown(why), Duration::ZERO),
    }
}

/// What was found.
struct Found {
    /// The blocks that no pointer leads to.
    unreached: Unreached,
    /// Bytes and number of the blocks that were searched.
    searched: (u64, u64),
    /// Threads whose caches were not seen.
    unseen_caches: u64,
    /// Snapshots, and whether the process was stopped for it.
    snapshots: u64,
    was_stopped: bool,
    /// For how long it was stopped at most.
    stopped: Duration,
}

impl Found {
    /// With the names of what is leaked.
    fn in_figures(&self, proc: &ProcRoot, pid: i32) -> LeakCheck {
        let unreached = &self.unreached;
        let (least, all, most) = unreached.bytes(self.unseen_caches);
        let owner = |block| unreached.allocator(block);
        let drawn = unreached.drawn().into_iter();
        let mut drawn: Vec<_> = drawn
            .map(|draw| DrawnBlock { draw, object: None })
            .collect();
        name_blocks(proc, pid, drawn.iter_mut(), owner);
        LeakCheck {
            unknown: None,
            searched: Bytes(self.searched.0),
            blocks: self.searched.1,
            leaked: ByteRange {
                low: Bytes(least),
                high: Bytes(most),
            },
            leaked_blocks: unreached.blocks().len() as u64,
            snapshots: self.snapshots,
            was_stopped: self.was_stopped,
            groups: groups(&drawn, owner, all),
        }
    }
}

/// Searches the process while it runs, or stopped for a moment.
fn running(proc: &ProcRoot, pid: i32) -> Result<Found, LeaksUnknown> {
    let started = Instant::now();
    let (first, longest) = beside(proc, pid)?;
    let took = started.elapsed();
    if took < MAY_FIT
        && !first.unreached.is_empty()
        && let Ok((Ok(snapshot), stopped)) = while_stopped(proc, pid, LONGEST_STOP, |_| {
            let source = Timed::open(pid);
            Snapshot::new(proc, pid, &threads(proc, pid)?).taken(&source)
        })
    {
        return Ok(snapshot.found(1, true, stopped.max(longest)));
    }
    let (mut last, mut longest) = (first, longest);
    for _ in 1..SNAPSHOTS {
        if last.unreached.is_empty() {
            break;
        }
        sleep(PAUSE);
        let (next, stopped) = beside(proc, pid)?;
        longest = longest.max(stopped);
        last = Taken {
            unreached: next.unreached.and(&last.unreached),
            ..next
        };
    }
    Ok(last.found(SNAPSHOTS, false, longest))
}

/// Searches a process that is about to exit, and stands still.
fn standing(proc: &ProcRoot, pid: i32) -> Result<Found, LeaksUnknown> {
    let taken = Snapshot::new(proc, pid, &[]).taken(&ProcessSource::open(pid))?;
    Ok(taken.found(1, true, Duration::ZERO))
}

/// A snapshot beside the process, and for how long that was stopped.
fn beside(proc: &ProcRoot, pid: i32) -> Result<(Taken, Duration), LeaksUnknown> {
    let stop = while_stopped(proc, pid, LONGEST_STOP, |_| threads(proc, pid));
    let (threads, stopped) = stop.map_err(|_| LeaksUnknown::NotAllowed)?;
    let taken = Snapshot::new(proc, pid, &threads?).taken(&ProcessSource::open(pid))?;
    Ok((taken, stopped))
}

/// The registers of all threads, which are stopped.
fn threads(proc: &ProcRoot, pid: i32) -> Result<Vec<ThreadRegisters>, LeaksUnknown> {
    let tasks = proc.tasks(pid).into_iter();
    let all: Result<Vec<_>, _> = tasks.map(registers).collect();
    all.map_err(|_| LeaksUnknown::NotAllowed)
}

/// A snapshot to be taken.
struct Snapshot<'a> {
    proc: &'a ProcRoot,
    pid: i32,
    threads: &'a [ThreadRegisters],
}

/// A snapshot that was taken.
struct Taken {
    unreached: Unreached,
    searched: (u64, u64),
    unseen_caches: u64,
}

impl Taken {
    fn found(self, snapshots: u64, was_stopped: bool, stopped: Duration) -> Found {
        Found {
            unreached: self.unreached,
            searched: self.searched,
            unseen_caches: self.unseen_caches,
            snapshots,
            was_stopped,
            stopped,
        }
    }
}

impl<'a> Snapshot<'a> {
    fn new(proc: &'a ProcRoot, pid: i32, threads: &'a [ThreadRegisters]) -> Self {
        Self { proc, pid, threads }
    }

    fn taken(&self, source: &dyn Source) -> Result<Taken, LeaksUnknown> {
        let maps = self.proc.maps(self.pid).ok().flatten();
        let maps = maps.ok_or(LeaksUnknown::Unreadable)?;
        let kept = self.proc.kept(self.pid).ok_or(LeaksUnknown::NotAllowed)?;
        if kept.is_more {
            return Err(LeaksUnknown::InKernel);
        }
        let presence = pages(self.proc, self.pid, &maps, mappings::may_hold_pointers);
        let presence = presence.map_err(|_| LeaksUnknown::NotAllowed)?;
        let (mut graph, caches) = self.blocks(&maps, source)?;
        let searched = graph.size();
        if searched.1 == 0 {
            return Err(LeaksUnknown::NoHeap);
        }
        self.roots(&mut graph, &kept);
        for entry in maps.iter().filter(|one| mappings::may_hold_pointers(one)) {
            self.pointers(&mut graph, entry, source, &presence)?;
        }
        let threads = self.proc.tasks(self.pid).len() as u64;
        let unreached = graph.into_unreached().ok_or(LeaksUnknown::TooMany)?;
        Ok(Taken {
            unreached,
            searched,
            unseen_caches: threads.saturating_sub(caches),
        })
    }

    /// The blocks in use, and how many caches of threads were seen.
    fn blocks(
        &self,
        maps: &[MapsEntry],
        source: &dyn Source,
    ) -> Result<(Graph, u64), LeaksUnknown> {
        let presence = pages(self.proc, self.pid, maps, mappings::is_private_and_writable);
        let presence = presence.map_err(|_| LeaksUnknown::NotAllowed)?;
        let mut image = Image::new(source, &presence, page_size() as u64);
        let mut live = LiveBlocks::default();
        let (mut cached, mut caches) = (Vec::new(), 0);
        for reader in readers() {
            let read = reader.read(maps, &mut image, &mut live);
            live.are_of(read.heaps.first().map(|facts| facts.heap.allocator));
            cached.extend(read.cached);
            caches += read.caches;
        }
        let graph = live.into_graph(cached).ok_or(LeaksUnknown::TooMany)?;
        Ok((graph, caches))
    }

    fn roots(&self, graph: &mut Graph, kept: &Kept) {
        let registers = self.threads.iter().flat_map(|thread| &thread.words);
        for word in registers.chain(&kept.words) {
            graph.root(*word);
        }
    }

    /// The words of a mapping. Code made at run time holds addresses at any place.
    fn pointers(
        &self,
        graph: &mut Graph,
        entry: &MapsEntry,
        source: &dyn Source,
        presence: &Presence,
    ) -> Result<(), LeaksUnknown> {
        let range = (self.first_used(entry), entry.mapping.end);
        let is_code = entry.is_executable();
        // Of other files, only pages that differ from them count.
        let files = mappings::is_shared_and_writable(entry);
        let (swapped, failed) = words(source, presence, range, files, &mut |start, bytes| {
            graph.memory(start, bytes);
            if is_code {
                for word in bytes.windows(8) {
                    graph.root(u64::from_le_bytes(word.try_into().unwrap_or_default()));
                }
            }
        });
        match (swapped, failed) {
            (0, 0) => Ok(()),
            (0, _) if entry.file().is_some() => Ok(()),
            (0, _) => Err(LeaksUnknown::Unreadable),
            _ => Err(LeaksUnknown::Swapped),
        }
    }

    /// Where a mapping's words start to count: those of the main thread's stack that it has left do not.
    fn first_used(&self, entry: &MapsEntry) -> u64 {
        let start = entry.mapping.start;
        let pointers = self.threads.iter().map(|one| one.stack_pointer);
        match pointers.filter(|sp| entry.contains(*sp)).min() {
            Some(lowest) if &*entry.mapping.path == "[stack]" => {
                (lowest.saturating_sub(RED_ZONE) / 8 * 8).max(start)
            }
            _ => start,
        }
    }
}
