//! Figures of a run, read from its shared memory.

use super::samples;
use anyhow::{Context, Result};
use pagewise_analyse::paging::{Watched, heat};
use pagewise_linux::process::is_byte_locked;
use pagewise_model::paging::{Heat, RefaultDistances};
use pagewise_pager::observe::histogram::least;
use pagewise_wire::counter;
use pagewise_wire::shared::capability;
use pagewise_wire::snapshot::{self, ProcessBytes, RegionBytes};
use serde::Serialize;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// Version of docs/schema/run.json.
pub const RUN_VERSION: u32 = 3;

/// Everything that `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    pub schema_version: u32,
    pub command: Vec<String>,
    /// How the program ended: `exited` or `killed`, with status or signal.
    pub ending: String,
    pub elapsed_s: f64,
    /// Largest resident size of any process of the run, by wait4(2).
    pub max_rss_bytes: u64,
    /// The budget, and whether each process has one of its own.
    pub memory_bytes: u64,
    pub memory_is_each: bool,
    /// Most that all processes were seen to have resident at a time, shared pages counted once.
    pub together_peak_bytes: Option<u64>,
    pub policy: String,
    pub store: String,
    #[serde(flatten)]
    pub figures: Figures,
}

/// What the processes of a run have counted so far.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Programs that managed memory: each fork, and each exec.
    pub processes_total: u32,
    /// Those that have figures of their own.
    pub processes: Vec<Process>,
    pub others: Others,
    /// Of all processes together.
    pub refault_distances: RefaultDistances,
    #[serde(skip)]
    pub watched: Watched,
    #[serde(skip)]
    pub strangers: Vec<Stranger>,
    #[serde(skip)]
    pub more_strangers: u32,
}

/// A program that is not managed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    pub name: String,
    /// A [`pagewise_wire::shared::Stranger`] as a number.
    pub reason: u32,
    /// How often it was started.
    pub count: u32,
}

/// Processes without figures of their own: with those above they add up to the whole.
#[derive(Clone, Debug, Serialize)]
pub struct Others {
    /// Ended, and a later one needed their place.
    pub ended: u32,
    /// Never had one, as too many others lived.
    pub unplaced: u32,
    pub faults: Faults,
    pub pages: Pages,
    pub latency: Latency,
}

/// One process.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    pub pid: u32,
    pub name: String,
    /// Whether it lives.
    pub living: bool,
    /// Of one that does not: whether it ended by itself. Else it was killed, or became another
    /// program by exec.
    pub ended_in_order: bool,
    pub budget_bytes: u64,
    pub limit_bytes: u64,
    pub resident_bytes: u64,
    pub peak_managed_bytes: u64,
    pub unmanaged_bytes: u64,
    pub managed_bytes: u64,
    /// Size from which memory is managed now: `--min-region`, or less while much lies in smaller pieces.
    pub min_region_bytes: u64,
    /// Number of its store: forks share their parent's.
    pub store_number: u32,
    /// What that store holds on disk, for all who share it.
    pub store_disk_bytes: u64,
    /// Memory that it takes in this process.
    pub store_memory_bytes: u64,
    pub faults: Faults,
    pub pages: Pages,
    pub latency: Latency,
    pub refault_distances: RefaultDistances,
    /// Over the whole run.
    pub heat: Option<Heat>,
    /// What the surveys of the regions have taken.
    pub survey_ns: u64,
    pub capabilities: Vec<&'static str>,
    pub regions_total: u32,
    pub regions: Vec<Region>,
    /// Whether all pages are in memory for somebody outside, or have been.
    #[serde(skip)]
    pub is_held: bool,
}

/// Faults by kind and by how they arrived.
#[derive(Clone, Debug, Serialize)]
pub struct Faults {
    pub first_touches: u64,
    pub refaults: u64,
    pub first_writes: u64,
    pub spurious: u64,
    pub collisions: u64,
    pub by_signal: u64,
    pub by_handler: u64,
    pub throttled: u64,
    pub throttled_ns: u64,
}

/// Pages moved.
#[derive(Clone, Debug, Serialize)]
pub struct Pages {
    pub read: u64,
    pub prefetched: u64,
    pub written: u64,
    /// Of these, before they had to leave.
    pub written_early: u64,
    pub dropped_clean: u64,
    pub evicted: u64,
    pub eviction_batches: u64,
    pub removed: u64,
    /// Pages whose next use was to be seen, and uses that were.
    pub watched: u64,
    pub seen_used: u64,
    pub refused: u64,
    pub store_errors: u64,
}

/// Nanoseconds inside the pager.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    pub without_io: Quantiles,
    pub with_io: Quantiles,
}

/// Quantiles of a latency, exact to a bucket (a half power of two).
#[derive(Clone, Debug, Serialize)]
pub struct Quantiles {
    pub count: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
}

/// One region.
#[derive(Clone, Debug, Serialize)]
pub struct Region {
    pub start: String,
    pub bytes: u64,
    pub delivery: &'static str,
    pub why: &'static str,
    pub role: u8,
    /// Parts of one mapping have the same number; faults are those of all its parts.
    pub number: u16,
    pub faults: u64,
    pub refaults: u64,
    pub resident_pages: u64,
    pub dirty_pages: u64,
    pub evicted_pages: u64,
    /// By the last pages that were watched.
    pub heat: Option<Heat>,
    #[serde(skip)]
    pub watched: Watched,
}

impl Region {
    /// Its heat is what was `watched`.
    pub fn watch(&mut self, watched: Watched) {
        self.watched = watched;
        self.heat = heat(&watched);
    }
}

pub const PAGE_BYTES: u64 = pagewise_pager::page::PAGE_BYTES as u64;

impl Figures {
    /// Reads the run's shared memory, and who lives.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(shared: &File) -> Result<Self> {
        let mut bytes = vec![0; snapshot::BYTES];
        shared
            .read_exact_at(&mut bytes, 0)
            .context("cannot read the statistics")?;
        let locked = |place: usize| {
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            is_byte_locked(shared.as_fd(), place).unwrap_or(false)
        };
        Ok(Self::of(&bytes, locked))
    }

    /// The figures in the memory's `bytes`; `locked` says whose mark is there, by place.
    pub fn of(bytes: &[u8], locked: impl Fn(usize) -> bool) -> Self {
        let others = snapshot::others(bytes);
        let living = |place: usize, one: &ProcessBytes<'_>| match one.is_marked() {
            true => locked(place),
            false => !one.has_ended(),
        };
        let all = || {
            snapshot::processes(bytes)
                .map(|(_, one)| one)
                .chain([others])
        };
        Self {
            processes_total: snapshot::taken(bytes),
            processes: snapshot::processes(bytes)
                .map(|(place, one)| Process::of(&one, living(place, &one)))
                .collect(),
            others: Others {
                ended: snapshot::displaced(bytes),
                unplaced: snapshot::unplaced(bytes),
                faults: faults(&others),
                pages: pages(&others),
                latency: latency(&others),
            },
            watched: samples::sum(all().map(|one| samples::watched(&one))),
            refault_distances: samples::distances(all()),
            strangers: snapshot::strangers(bytes)
                .map(|(reason, count, name)| Stranger {
                    name: String::from_utf8_lossy(name).into_owned(),
                    reason,
                    count,
                })
                .collect(),
            more_strangers: snapshot::more_strangers(bytes),
        }
    }

    /// Those that live.
    pub fn living(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|one| one.living)
    }

    /// How much of what is resident is hot just now, over all processes.
    pub fn heat_now(&self) -> Option<Heat> {
        let regions = self.living().flat_map(|one| &one.regions);
        heat(&samples::sum(regions.map(|region| region.watched)))
    }

    /// A counter of faults, over all processes.
    pub fn sum_faults(&self, of: fn(&Faults) -> u64) -> u64 {
        let own = self.processes.iter().map(|one| of(&one.faults));
        own.sum::<u64>() + of(&self.others.faults)
    }

    /// A counter of pages, over all processes.
    pub fn sum_pages(&self, of: fn(&Pages) -> u64) -> u64 {
        let own = self.processes.iter().map(|one| of(&one.pages));
        own.sum::<u64>() + of(&self.others.pages)
    }

    /// What the stores hold for those who live, each counted once.
    pub fn store_bytes(&self) -> u64 {
        let mut disks = std::collections::BTreeMap::new();
        for one in self.living() {
            let most: &mut u64 = disks.entry(one.store_number).or_default();
            *most = one.store_disk_bytes.max(*most);
        }
        let memory = self.living().map(|one| one.store_memory_bytes);
        disks.into_values().sum::<u64>() + memory.sum::<u64>()
    }
}

impl Process {
    /// What its place holds.
    pub fn of(from: &ProcessBytes<'_>, living: bool) -> Self {
        Self {
            pid: from.pid(),
            name: String::from_utf8_lossy(from.name()).into_owned(),
            living,
            ended_in_order: from.has_ended(),
            budget_bytes: counter!(from, budget_bytes),
            limit_bytes: counter!(from, limit_pages) * PAGE_BYTES,
            resident_bytes: counter!(from, resident_pages) * PAGE_BYTES,
            peak_managed_bytes: counter!(from, peak_pages) * PAGE_BYTES,
            unmanaged_bytes: counter!(from, unmanaged_bytes),
            managed_bytes: counter!(from, managed_bytes),
            min_region_bytes: counter!(from, smallest_bytes),
            store_number: from.family(),
            store_disk_bytes: counter!(from, store_disk_bytes),
            store_memory_bytes: counter!(from, store_memory_bytes),
            faults: faults(from),
            pages: pages(from),
            latency: latency(from),
            refault_distances: samples::distances([*from]),
            heat: heat(&samples::watched(from)),
            survey_ns: counter!(from, survey_ns),
            capabilities: capabilities(counter!(from, capabilities)),
            regions_total: from.region_total(),
            regions: from.regions().map(|one| region(&one)).collect(),
            is_held: from.hold() != [0, 0],
        }
    }
}

fn faults(from: &ProcessBytes<'_>) -> Faults {
    Faults {
        first_touches: counter!(from, first_touches),
        refaults: counter!(from, refaults),
        first_writes: counter!(from, dirtied),
        spurious: counter!(from, spurious),
        collisions: counter!(from, collisions),
        by_signal: counter!(from, by_signal),
        by_handler: counter!(from, by_handler),
        throttled: counter!(from, throttled),
        throttled_ns: counter!(from, throttled_ns),
    }
}

fn pages(from: &ProcessBytes<'_>) -> Pages {
    Pages {
        read: counter!(from, pages_read),
        prefetched: counter!(from, pages_prefetched),
        written: counter!(from, pages_written),
        written_early: counter!(from, pages_cleaned),
        dropped_clean: counter!(from, pages_dropped),
        evicted: counter!(from, pages_evicted),
        eviction_batches: counter!(from, evictions),
        removed: counter!(from, pages_removed),
        watched: counter!(from, pages_watched),
        seen_used: counter!(from, pages_sampled),
        refused: counter!(from, refused),
        store_errors: counter!(from, store_errors),
    }
}

fn latency(from: &ProcessBytes<'_>) -> Latency {
    Latency {
        without_io: quantiles(&from.latency_fast()),
        with_io: quantiles(&from.latency_read()),
    }
}

fn quantiles(histogram: &[u64]) -> Quantiles {
    let count: u64 = histogram.iter().sum();
    let at = |share: f64| {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank among counted faults, far below 2^52"
        )]
        let rank = (count as f64 * share) as u64;
        let mut seen = 0;
        let bucket = histogram.iter().position(|here| {
            seen += here;
            seen > rank
        });
        bucket.map_or(0, least)
    };
    Quantiles {
        count,
        p50_ns: at(0.5),
        p99_ns: at(0.99),
    }
}

fn capabilities(bits: u64) -> Vec<&'static str> {
    let names = [
        (capability::KERNEL_FAULTS, "kernel_faults"),
        (capability::SIGBUS, "sigbus"),
        (capability::WRITE_PROTECT, "write_protect"),
        (capability::MOVE, "move"),
        (capability::PROCESS_MADVISE, "process_madvise"),
        (capability::LIBC_DETOUR, "libc_detour"),
        (capability::CONTINUE, "continue"),
        (capability::WRITE_PROTECT_ASYNC, "write_protect_async"),
        (capability::IO_URING, "io_uring"),
        (capability::ASYNCHRONOUS_IO, "programs_io_uring"),
    ];
    let has = |(bit, name): (u64, &'static str)| (bits & bit != 0).then_some(name);
    names.into_iter().filter_map(has).collect()
}

fn region(from: &RegionBytes<'_>) -> Region {
    let [delivery, why, role] = from.delivery();
    let [resident_pages, dirty_pages, evicted_pages] = from.pages();
    let [faults, refaults] = from.faults();
    Region {
        start: format!("{:#x}", from.start()),
        bytes: from.end().saturating_sub(from.start()),
        delivery: match delivery {
            1 => "sigbus",
            _ => "fd",
        },
        why: match why {
            0 => "default: system calls on missing pages work",
            1 => "asked for by --delivery",
            2 => "hinted by the program",
            4 => "an allocator's: libc passes parts of it to the kernel by itself",
            _ => "kernel faults need privilege (vm.unprivileged_userfaultfd)",
        },
        role,
        number: from.number(),
        faults,
        refaults,
        resident_pages,
        dirty_pages,
        evicted_pages,
        heat: heat(&samples::watched_in(from)),
        watched: samples::watched_in(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_least_of_their_bucket() {
        let mut histogram = [0; 64];
        histogram[20] = 98;
        histogram[31] = 2;
        let found = quantiles(&histogram);
        assert_eq!((found.count, found.p50_ns), (100, 1 << 10));
        assert_eq!(found.p99_ns, (1 << 15) + (1 << 14));
        assert_eq!(quantiles(&[0; 64]).p99_ns, 0);
    }

    #[test]
    fn empty_shared_memory_has_no_process() {
        for bytes in [vec![0; snapshot::BYTES], Vec::new()] {
            let figures = Figures::of(&bytes, |_| false);
            assert!(figures.processes.is_empty() && figures.store_bytes() == 0);
        }
    }

    /// A store that forks share counts once, and that of the dead not at all.
    #[test]
    fn stores_are_summed_over_the_living() {
        let bytes = vec![0; snapshot::BYTES];
        let one = Process::of(&snapshot::others(&bytes), true);
        let make = |store_number, store_disk_bytes, living| Process {
            store_number,
            store_disk_bytes,
            store_memory_bytes: 1,
            living,
            ..one.clone()
        };
        let figures = Figures {
            processes: vec![
                make(1, 100, true),
                make(1, 100, true),
                make(2, 40, true),
                make(3, 9, false),
            ],
            ..Figures::of(&bytes, |_| false)
        };
        assert_eq!(figures.store_bytes(), 100 + 40 + 3);
    }
}
