//! `--engine auto`: the pager starts, and the kernel takes over where it is the better engine. The run is
//! in a memory cgroup from the start, without a limit; swap and limit come when the kernel takes over. From
//! then on the pager evicts nothing, and brings back what it has evicted when that is touched.

use super::choice::{Choice, Counts};
use super::kernel::{counted, folder_of, left_over};
use super::{Budget, Figures, Request, settings};
use crate::memory::place_for_group;
use anyhow::{Context, Result, bail};
use pagewise_linux::memcg::temporary::Temporary;
use pagewise_linux::swap_area::SwapArea;
use pagewise_model::paged_run::KernelPaging;
use pagewise_model::units::Bytes;
use pagewise_wire::snapshot;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time between two looks at the swap in use.
const LOOK: Duration = Duration::from_millis(100);

/// Options of the pager without which the program runs as well once the kernel pages it.
const WITHOUT: [&str; 3] = ["--delivery", "--min-region", "--when-full"];

/// The kernel, ready to take over. Fields are dropped in this order: what is in swap has room in memory
/// once the limit is gone.
#[derive(Debug)]
pub struct Standby {
    room: Temporary,
    state: State,
    folder: PathBuf,
    budget: Bytes,
    swap_bytes: u64,
    began: Instant,
}

#[derive(Debug)]
enum State {
    Observing(Choice),
    TookOver(TookOver),
    /// It cannot, as was said.
    Stays,
}

#[derive(Debug)]
struct TookOver {
    _swap: SwapArea,
    after: Duration,
    swap_peak: Option<Bytes>,
    has_own_peak: bool,
}

impl Standby {
    /// Makes the cgroup.
    ///
    /// # Errors
    /// Where the kernel cannot take over: without privileges, with a budget for each process, or with
    /// options that only the pager has.
    pub fn prepare(request: &Request) -> Result<Self> {
        let Budget::Together(budget) = request.budget else {
            bail!("it limits all processes together, not each (--memory-each)");
        };
        let options = request.options_of_pager.iter();
        let needed: Vec<&str> = options
            .copied()
            .filter(|option| !WITHOUT.contains(option))
            .collect();
        if !needed.is_empty() {
            bail!("it does not have {}", needed.join(", "));
        }
        let folder = folder_of(request)?;
        let place = place_for_group()?;
        let room = place.make("a paged run", place.limit)?.with_cache_left();
        let now = Instant::now();
        Ok(Self {
            room,
            state: State::Observing(Choice::new(now)),
            folder,
            budget,
            swap_bytes: settings::store_bytes(request),
            began: now,
        })
    }

    /// The cgroup of the run.
    pub fn room(&self) -> &Temporary {
        &self.room
    }

    /// Whether the kernel pages the run.
    pub fn has_taken_over(&self) -> bool {
        matches!(self.state, State::TookOver(_))
    }

    /// Time until the next look is due.
    pub fn patience(&self, most: Duration) -> Duration {
        most.min(match &self.state {
            State::Observing(choice) => choice.due().saturating_duration_since(Instant::now()),
            State::TookOver(_) => LOOK,
            State::Stays => most,
        })
    }

    /// Looks at the run, and takes over if it is better so.
    ///
    /// # Errors
    /// If the figures cannot be read.
    pub fn look(&mut self, shared: &File, say: &dyn Fn(&str)) -> Result<()> {
        let now = Instant::now();
        match &mut self.state {
            State::TookOver(taken) => {
                taken.swap_peak = taken.swap_peak.max(self.room.group().swap()?);
            }
            State::Observing(choice) if choice.due() <= now => {
                let figures = Figures::read(shared)?;
                let counts = Counts {
                    waits: figures.sum_faults(|all| all.refaults),
                    read: figures.sum_pages(|all| all.read),
                };
                let Some(pages) = choice.look(now, counts) else {
                    return Ok(());
                };
                let why = format!(
                    "the program waits for pages in random places ({pages:.1} come with each wait)"
                );
                match self.take_over(shared) {
                    Ok(()) => say(&format!(
                        "{why}: the kernel pages it from now on (--engine auto)"
                    )),
                    Err(error) => {
                        self.state = State::Stays;
                        say(&format!(
                            "{why}, but the kernel cannot page it here: {error:#}"
                        ));
                    }
                }
            }
            State::Observing(_) | State::Stays => {}
        }
        Ok(())
    }

    fn take_over(&mut self, shared: &File) -> Result<()> {
        let swap = SwapArea::make(&self.folder, self.swap_bytes)?;
        self.room.swap_as_usual()?;
        let has_own_peak = self.room.limit_to(self.budget)?;
        shared
            .write_all_at(&1_u32.to_le_bytes(), snapshot::BY_KERNEL_AT as u64)
            .context("statistics")?;
        self.state = State::TookOver(TookOver {
            _swap: swap,
            after: self.began.elapsed(),
            swap_peak: None,
            has_own_peak,
        });
        Ok(())
    }

    /// At the end: what the kernel counted, if it took over, and what goes on without a limit.
    ///
    /// # Errors
    /// If the cgroup cannot be read.
    pub fn finish(self) -> Result<(Option<KernelPaging>, Option<String>)> {
        let State::TookOver(taken) = &self.state else {
            return Ok((None, None));
        };
        let group = self.room.group();
        let mut paging = counted(&group, taken.swap_peak);
        paging.took_over_ns = u64::try_from(taken.after.as_nanos()).ok();
        // Otherwise with the page cache from before, which had no limit.
        paging.peak_bytes = paging.peak_bytes.filter(|_| taken.has_own_peak);
        Ok((Some(paging), left_over(&group)?))
    }
}
