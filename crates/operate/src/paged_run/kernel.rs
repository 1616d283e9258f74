//! The kernel as the engine: the run has a memory cgroup of its own and a swap file, both made for it and
//! taken away at its end. No library is loaded into the program, so programs of every kind are held.

use super::requests::Requests;
use super::{Budget, Paged, Request, settings};
use crate::experiment::spawn_in;
use crate::memory::place_for_group;
use anyhow::{Context, Result, bail};
use pagewise_linux::memcg::temporary::Temporary;
use pagewise_linux::memcg::{MemoryCgroup, Version};
use pagewise_linux::process::{self, Finished, Running, interrupt, release_own_code};
use pagewise_linux::swap_area::SwapArea;
use pagewise_model::answer::{Document, Subject};
use pagewise_model::paged_run::{KernelPaging, OtherProcesses, PagedRun};
use pagewise_model::paging::RefaultDistances;
use pagewise_model::units::Bytes;
use std::path::PathBuf;
use std::time::Duration;

/// Time between two looks at the swap in use and at requests of the user.
const LOOK: Duration = Duration::from_millis(100);
const SIGKILL: i32 = 9;

/// A run that is ready to start. Fields are dropped in this order: what is in swap has room in memory
/// once the limit is gone.
#[derive(Debug)]
pub struct Ready {
    request: Request,
    room: Temporary,
    swap: SwapArea,
}

/// Makes the cgroup and the swap file.
///
/// # Errors
/// If they cannot be made here, with the reason and what to do.
pub fn prepare(request: Request) -> Result<Ready> {
    if !request.options_of_pager.is_empty() {
        let names = request.options_of_pager.join(", ");
        bail!("it does not have {names}, which --engine ours has");
    }
    let Budget::Together(budget) = request.budget else {
        bail!("it holds all processes together: use --memory, or --engine ours with --memory-each");
    };
    let bytes = settings::store_bytes(&request);
    let swap = SwapArea::make(&folder_of(&request)?, bytes)
        .context("name a folder on ext4 or XFS with room for --store-size (--store)")?;
    let room = place_for_group().and_then(|place| Ok(place.make("a paged run", budget)?))?;
    room.swap_as_usual()?;
    interrupt::install()?;
    Ok(Ready {
        request,
        room,
        swap,
    })
}

/// Where the swap file lies: noted for the next command, which may start in another folder.
pub(super) fn folder_of(request: &Request) -> Result<PathBuf> {
    let folder = std::fs::canonicalize(&request.store);
    folder.with_context(|| format!("--store {}", request.store.display()))
}

impl Ready {
    /// Runs the program to its end.
    ///
    /// # Errors
    /// If it cannot be started or waited for.
    pub fn run(self, say: &dyn Fn(&str)) -> Result<Paged> {
        release_own_code();
        let running = spawn_in(&self.request.launch, Some(&self.room))?;
        let group = self.room.group();
        let (finished, swap_peak) = watch(running, &group, say)?;
        let counted = counted(&group, swap_peak);
        let notes = left_over(&group)?;
        let run = document(&self.request, &finished, counted);
        let Self { room, swap, .. } = self;
        drop(room);
        drop(swap);
        Ok(Paged {
            run,
            timeline: None,
            outside: Vec::new(),
            notes: notes.into_iter().collect(),
        })
    }
}

/// What goes on in the group once the program has ended, in words.
pub(super) fn left_over(group: &MemoryCgroup) -> Result<Option<String>> {
    let left = group.processes()?.len();
    let (plural, go, have) = match left {
        0 => return Ok(None),
        1 => ("", "goes", "has"),
        _ => ("es", "go", "have"),
    };
    Ok(Some(format!(
        "{left} process{plural} of the run still {have} work and {go} on without a budget"
    )))
}

/// Waits for the program's end; returns also the most that was seen in swap.
fn watch(
    mut running: Running,
    group: &MemoryCgroup,
    say: &dyn Fn(&str),
) -> Result<(Finished, Option<Bytes>)> {
    let mut requests = Requests::default();
    let mut peak = None;
    loop {
        if let Some(finished) = running.wait_for(requests.patience(LOOK))? {
            return Ok((finished, peak));
        }
        peak = peak.max(group.swap()?);
        requests.see_to(&running, || kill(group), say)?;
    }
}

/// Kills all processes of the group.
fn kill(group: &MemoryCgroup) -> Result<()> {
    for pid in group.processes()? {
        // It may have ended meanwhile.
        let _ = process::signal(pid, SIGKILL);
    }
    Ok(())
}

pub(super) fn counted(group: &MemoryCgroup, swap_peak: Option<Bytes>) -> KernelPaging {
    let read = group.read().unwrap_or_default();
    let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0);
    KernelPaging {
        cgroup_version: match group.version {
            Version::V1 => 1,
            Version::V2 => 2,
        },
        took_over_ns: None,
        peak_bytes: bytes(group.peak().ok().flatten()),
        swap_peak_bytes: bytes(swap_peak),
        major_faults: read.stat.get("pgmajfault"),
        refaults: read.stat.get("workingset_refault_anon"),
        file_refaults: read.stat.get("workingset_refault_file"),
        limit_hits: read.limit_hits,
        killed: read.oom_kills,
    }
}

fn document(request: &Request, finished: &Finished, kernel: KernelPaging) -> Document<PagedRun> {
    let run = PagedRun {
        ending: finished.ending,
        cost: finished.cost,
        memory_bytes: request.budget.size().0,
        memory_is_each: false,
        together_peak_bytes: kernel.peak_bytes,
        policy: "kernel".to_owned(),
        store: "swap".to_owned(),
        processes_total: 0,
        processes: Vec::new(),
        others: OtherProcesses::default(),
        refault_distances: RefaultDistances::default(),
        kernel: Some(kernel),
    };
    Document::new(run).about(Subject::of_command(request.launch.words()))
}
