//! Figures of a run, read from its shared memory.

use super::PAGE_BYTES;
use super::samples;
use anyhow::{Context, Result};
use pagewise_faults::paging::{Watched, heat};
use pagewise_linux::process::is_byte_locked;
use pagewise_model::paged_run::{
    FaultLatency, FilesPaged, OtherProcesses, PagedProcess, PagedRegion, PagesMoved, PagingFaults,
    Quantiles,
};
use pagewise_model::paging::{Heat, RefaultDistances};
use pagewise_wire::counter;
use pagewise_wire::histogram::least;
use pagewise_wire::shared::capability;
use pagewise_wire::snapshot::{self, ProcessBytes, RegionBytes};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// Counts of a run's processes so far.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Programs that managed memory: each fork, and each exec.
    pub processes_total: u32,
    /// Processes with figures of their own.
    pub processes: Vec<PagedProcess>,
    /// Processes whose pages all are or were kept in memory for `--fill`.
    pub held: BTreeSet<u32>,
    /// Processes without figures of their own.
    pub others: OtherProcesses,
    /// Of all processes together.
    pub refault_distances: RefaultDistances,
    /// Pages watched over the whole run.
    pub watched: Watched,
    /// Pages watched recently, in living processes.
    pub watched_of_late: Watched,
    /// Programs that are not managed.
    pub unmanaged: Vec<UnmanagedProgram>,
    /// Number of further ones.
    pub more_unmanaged: u32,
}

/// A program that is not managed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmanagedProgram {
    /// Its name.
    pub name: String,
    /// A [`pagewise_wire::shared::Unmanaged`] as a number.
    pub reason: u32,
    /// How often it was started.
    pub count: u32,
}

impl Figures {
    /// Reads the run's shared memory, and which processes are alive.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(shared: &File) -> Result<Self> {
        let mut bytes = vec![0; snapshot::BYTES];
        shared
            .read_exact_at(&mut bytes, 0)
            .context("cannot read the statistics")?;
        let locked = |place: usize| {
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            is_byte_locked(shared.as_fd(), place).unwrap_or(false)
        };
        Ok(Self::new(&bytes, locked))
    }

    /// The figures in the memory's `bytes`; `locked` returns whether the lock of a place is still
    /// taken.
    pub fn new(bytes: &[u8], locked: impl Fn(usize) -> bool) -> Self {
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
        let held = |one: &ProcessBytes<'_>| (one.hold() != [0, 0]).then(|| one.pid());
        let of_late = snapshot::processes(bytes)
            .filter(|(place, one)| living(*place, one))
            .flat_map(|(_, one)| {
                one.regions()
                    .map(|region| samples::watched_in(&region))
                    .collect::<Vec<_>>()
            });
        Self {
            processes_total: snapshot::taken(bytes),
            processes: snapshot::processes(bytes)
                .map(|(place, one)| process(&one, living(place, &one)))
                .collect(),
            held: snapshot::processes(bytes)
                .filter_map(|(_, one)| held(&one))
                .collect(),
            watched_of_late: samples::sum(of_late),
            others: OtherProcesses {
                ended: snapshot::displaced(bytes),
                unplaced: snapshot::unplaced(bytes),
                faults: faults(&others),
                pages: pages(&others),
                latency: latency(&others),
                files: files(&others),
            },
            watched: samples::sum(all().map(|one| samples::watched(&one))),
            refault_distances: samples::distances(all()),
            unmanaged: snapshot::unmanaged(bytes)
                .map(|(reason, count, name)| UnmanagedProgram {
                    name: String::from_utf8_lossy(name).into_owned(),
                    reason,
                    count,
                })
                .collect(),
            more_unmanaged: snapshot::more_unmanaged(bytes),
        }
    }

    /// Processes that are alive.
    pub fn living(&self) -> impl Iterator<Item = &PagedProcess> {
        self.processes.iter().filter(|one| one.living)
    }

    /// Share of resident memory that is hot at present, over all processes.
    pub fn heat_now(&self) -> Option<Heat> {
        heat(&self.watched_of_late)
    }

    /// A counter of faults, over all processes.
    pub fn sum_faults(&self, of: fn(&PagingFaults) -> u64) -> u64 {
        let own = self.processes.iter().map(|one| of(&one.faults));
        own.sum::<u64>() + of(&self.others.faults)
    }

    /// A counter of mapped files, over all processes.
    pub fn sum_files(&self, of: fn(&FilesPaged) -> u64) -> u64 {
        let own = self.processes.iter().map(|one| of(&one.files));
        own.sum::<u64>() + of(&self.others.files)
    }

    /// A counter of pages, over all processes.
    pub fn sum_pages(&self, of: fn(&PagesMoved) -> u64) -> u64 {
        let own = self.processes.iter().map(|one| of(&one.pages));
        own.sum::<u64>() + of(&self.others.pages)
    }

    /// Contents of the stores of living processes, each store counted once.
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

/// The figures at a process's place.
fn process(from: &ProcessBytes<'_>, living: bool) -> PagedProcess {
    PagedProcess {
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
        files: files(from),
        refault_distances: samples::distances([*from]),
        heat: heat(&samples::watched(from)),
        survey_ns: counter!(from, survey_ns),
        capabilities: capabilities(counter!(from, capabilities)),
        regions_total: from.region_total(),
        regions: mappings(from),
    }
}

fn faults(from: &ProcessBytes<'_>) -> PagingFaults {
    PagingFaults {
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

fn pages(from: &ProcessBytes<'_>) -> PagesMoved {
    PagesMoved {
        read: counter!(from, pages_read),
        prefetched: counter!(from, pages_prefetched),
        written: counter!(from, pages_written),
        written_early: counter!(from, pages_cleaned),
        dropped_clean: counter!(from, pages_dropped),
        evicted: counter!(from, pages_evicted),
        eviction_batches: counter!(from, evictions),
        removed: counter!(from, pages_removed),
        watched: counter!(from, pages_watched),
        seen_used: counter!(from, pages_seen_used),
        refused: counter!(from, refused),
        store_errors: counter!(from, store_errors),
    }
}

fn files(from: &ProcessBytes<'_>) -> FilesPaged {
    FilesPaged {
        managed_bytes: counter!(from, file_bytes),
        pages_read: counter!(from, file_pages_read),
        refaults: counter!(from, file_refaults),
        changed: counter!(from, files_changed),
        left: counter!(from, files_left),
        paged_out: counter!(from, file_pages_out),
        came_back: counter!(from, file_pages_back),
        kept: counter!(from, file_pages_kept),
    }
}

fn latency(from: &ProcessBytes<'_>) -> FaultLatency {
    FaultLatency {
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

fn capabilities(bits: u64) -> Vec<String> {
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
    let has = |(bit, name): (u64, &'static str)| (bits & bit != 0).then(|| name.to_owned());
    names.into_iter().filter_map(has).collect()
}

/// The managed mappings of a process, the largest first: parts of one mapping that are managed
/// alike are added up. Each part has the faults of the whole mapping. Adjoining arrays are one
/// mapping, even if the program declared a role for each.
fn mappings(from: &ProcessBytes<'_>) -> Vec<PagedRegion> {
    let mut found: Vec<(PagedRegion, Watched)> = Vec::new();
    for part in from.regions() {
        let watched = samples::watched_in(&part);
        let part = region(&part);
        let same = |other: &&mut (PagedRegion, Watched)| {
            (other.0.number, &other.0.delivery, other.0.role)
                == (part.number, &part.delivery, part.role)
        };
        let Some((sum, seen)) = found.iter_mut().find(same) else {
            found.push((part, watched));
            continue;
        };
        sum.parts += 1;
        sum.bytes += part.bytes;
        sum.resident_pages += part.resident_pages;
        sum.dirty_pages += part.dirty_pages;
        sum.evicted_pages += part.evicted_pages;
        *seen = samples::sum([*seen, watched]);
    }
    found.sort_by_key(|(sum, _)| std::cmp::Reverse(sum.bytes));
    let with_heat = |(sum, watched): (PagedRegion, Watched)| PagedRegion {
        heat: heat(&watched),
        ..sum
    };
    found.into_iter().map(with_heat).collect()
}

fn region(from: &RegionBytes<'_>) -> PagedRegion {
    let [delivery, why, role] = from.delivery();
    let [resident_pages, dirty_pages, evicted_pages] = from.pages();
    let [faults, refaults] = from.faults();
    let delivery = match delivery {
        1 => "sigbus",
        _ => "fd",
    };
    let why = match why {
        0 => "default: system calls on missing pages work",
        1 => "asked for by --delivery",
        2 => "hinted by the program",
        4 => "an allocator's memory: libc passes parts of it to the kernel by itself",
        _ => "kernel faults need privilege (vm.unprivileged_userfaultfd)",
    };
    PagedRegion {
        start: format!("{:#x}", from.start()),
        bytes: from.end().saturating_sub(from.start()),
        parts: 1,
        delivery: delivery.to_owned(),
        why: why.to_owned(),
        role,
        number: from.number(),
        faults,
        refaults,
        resident_pages,
        dirty_pages,
        evicted_pages,
        heat: None,
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
            let figures = Figures::new(&bytes, |_| false);
            assert!(figures.processes.is_empty() && figures.store_bytes() == 0);
        }
    }

    /// A store that forks share counts once, and that of dead processes not at all.
    #[test]
    fn stores_are_summed_over_the_living() {
        let bytes = vec![0; snapshot::BYTES];
        let one = process(&snapshot::others(&bytes), true);
        let make = |store_number, store_disk_bytes, living| PagedProcess {
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
            ..Figures::new(&bytes, |_| false)
        };
        assert_eq!(figures.store_bytes(), 100 + 40 + 3);
    }
}
