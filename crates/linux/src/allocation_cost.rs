//! What an allocator does with memory that is taken, touched and given back again and again:
//! faults, CPU time and system calls per round, measured in this process.

use crate::sys::malloc::{self, Block};
use crate::sys::perf_event::{self, EventFd};
use crate::tracefs::Tracefs;
use perf_event_open_sys::bindings::{PERF_TYPE_TRACEPOINT, perf_event_attr};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub use malloc::{glibc_version, page_size};

/// Blocks that are taken together and given back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes in one block.
    pub size: usize,
    /// Number of blocks.
    pub blocks: usize,
}

/// What rounds cost, once the allocator has settled.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Rounds measured.
    pub rounds: u32,
    /// Faults in all rounds.
    pub faults: u64,
    /// CPU time of all rounds, including the touching.
    pub cpu_ns: u64,
    /// Calls by name in all rounds; `None` if tracepoints cannot be counted.
    pub calls: Option<BTreeMap<String, u64>>,
}

/// `malloc` returned no block of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malloc returned no block of {0} bytes")]
pub struct NoMemory(pub usize);

/// Rounds before measuring: glibc's threshold adapts at the first free, caches fill at the second.
const WARM_UP: u32 = 4;
/// Minimum and maximum number of rounds measured.
const ROUNDS: (u32, u32) = (4, 20_000);
/// System calls by which allocators take memory and give it back.
const CALLS: [&str; 5] = ["brk", "mmap", "munmap", "madvise", "mremap"];

/// Takes, touches and gives back `shape` for about `spend` of time.
///
/// From the first warm-up round on, nothing else is allocated: a small allocation in between may be
/// cut from the freed block and make the allocator take another (jemalloc does).
///
/// # Errors
/// [`NoMemory`].
pub fn measure(shape: Shape, spend: Duration) -> Result<Measurement, NoMemory> {
    let page = page_size();
    let mut blocks = Vec::with_capacity(shape.blocks);
    let counters = open_counters();
    let mut calls_before = Vec::with_capacity(CALLS.len());
    malloc::trim();
    // The first pass also brings in the code and the library pages that counting itself touches.
    let mut pass = |least, most| -> Result<_, NoMemory> {
        calls_before.clear();
        calls_before.extend(counters.iter().flatten().map(|(_, event)| count(event)));
        let (faults, cpu, started) = (malloc::own_faults(), malloc::own_cpu(), Instant::now());
        let mut rounds = 0;
        while rounds < least || (rounds < most && started.elapsed() < spend) {
            round(shape, page, &mut blocks)?;
            rounds += 1;
        }
        let (faults, cpu) = (malloc::own_faults() - faults, malloc::own_cpu() - cpu);
        Ok((rounds, faults, cpu))
    };
    pass(WARM_UP, WARM_UP)?;
    let (rounds, faults, cpu) = pass(ROUNDS.0, ROUNDS.1)?;
    Ok(Measurement {
        rounds,
        faults,
        cpu_ns: cpu.0,
        calls: counters.map(|counters| since(&calls_before, &counters)),
    })
}

fn round(shape: Shape, page: usize, blocks: &mut Vec<Block>) -> Result<(), NoMemory> {
    for _ in 0..shape.blocks {
        let mut block = Block::new(shape.size).ok_or(NoMemory(shape.size))?;
        block.touch(page);
        blocks.push(block);
    }
    blocks.clear();
    Ok(())
}

/// Counters of this thread's memory calls; `None` if any of them cannot be opened (no privilege, no
/// tracefs): a partial count would mislead.
fn open_counters() -> Option<Vec<(&'static str, EventFd)>> {
    let tracefs = Tracefs::find().ok()?;
    CALLS
        .into_iter()
        .map(|call| Some((call, open_counter(&tracefs, call)?)))
        .collect()
}

fn open_counter(tracefs: &Tracefs, call: &str) -> Option<EventFd> {
    let point = tracefs
        .tracepoint("syscalls", &format!("sys_enter_{call}"))
        .ok()??;
    let mut attr = perf_event_attr::default();
    attr.type_ = PERF_TYPE_TRACEPOINT;
    attr.config = point.id;
    attr.read_format = perf_event::read_format(false);
    perf_event::open(&mut attr, 0, -1, None).ok()
}

/// Calls since `before`, by name; those that never happened are left out.
fn since(before: &[u64], counters: &[(&'static str, EventFd)]) -> BTreeMap<String, u64> {
    let new = counters
        .iter()
        .zip(before)
        .map(|((call, event), before)| ((*call).to_owned(), count(event).saturating_sub(*before)));
    new.filter(|(_, count)| *count > 0).collect()
}

fn count(event: &EventFd) -> u64 {
    event.read().map_or(0, |reading| reading.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_beyond_glibcs_largest_threshold_fault_anew_each_round() {
        // 32 MiB is DEFAULT_MMAP_THRESHOLD_MAX (malloc/malloc.c), which the dynamic threshold
        // never passes.
        if glibc_version().is_none() {
            skipped!("not glibc");
            return;
        }
        let size = 48 << 20;
        let found = measure(Shape { size, blocks: 1 }, Duration::ZERO).unwrap();
        let pages = u64::try_from(size / page_size()).unwrap();
        let per_round = found.faults / u64::from(found.rounds);
        // With huge pages in place of small ones, a round needs only a few faults.
        assert!(per_round >= pages || per_round >= pages / 512, "{found:?}");
        assert!(found.cpu_ns > 0);
        if let Some(calls) = found.calls {
            assert_eq!(calls.get("mmap"), Some(&u64::from(found.rounds)));
            assert_eq!(calls.get("munmap"), Some(&u64::from(found.rounds)));
        }
    }

    #[test]
    fn no_memory_is_an_error() {
        let size = usize::MAX / 4;
        assert_eq!(
            measure(Shape { size, blocks: 1 }, Duration::ZERO),
            Err(NoMemory(size))
        );
    }
}
