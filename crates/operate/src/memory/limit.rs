//! The smallest memory limit: a program is run again and again, each time in a memory cgroup of its own
//! with another limit.

use crate::experiment::Group;
use anyhow::{Context, Result, bail};
use pagewise_linux::delays::DelayWatch;
use pagewise_linux::memcg::MemoryCgroup;
use pagewise_linux::memcg::temporary::{Place, Temporary};
use pagewise_linux::proc::{PressureStall, ProcRoot};
use pagewise_linux::process::{Finished, Launch, interrupt};
use pagewise_memory::{next_limit, smallest_limit};
use pagewise_model::answer::{Document, Subject};
use pagewise_model::memory_limit::{LimitOutcome, LimitRun, MemoryLimit, StallMeasure};
use pagewise_model::run::Ending;
use pagewise_model::units::{Bytes, Nanos};
use std::path::Path;
use std::time::Duration;

/// Share of the elapsed time that a run that fits may wait for memory.
const STALL: f64 = 0.01;
/// How much longer it may take where waiting cannot be measured.
const LONGER: f64 = 1.1;
/// A run is ended after so many times the time of the first, and this.
const TIMES: u32 = 4;
const BESIDES: Duration = Duration::from_secs(5);
/// The longest first run.
const LONGEST: Duration = Duration::from_secs(3600);

/// Finds the smallest limit for this program.
///
/// # Errors
/// If no memory cgroup can be made, the program cannot be started, or it fails without a limit.
pub fn smallest(launch: &Launch, on_run: &dyn Fn(&str)) -> Result<Document<MemoryLimit>> {
    let place = place_for_group()?;
    let most = place.most.map_or(place.limit, |most| most.min(place.limit));
    on_run("Running without a limit");
    let (first, baseline) = trial(launch, &place, None, most)?;
    let Some(finished) = baseline else {
        bail!("the program did not end within an hour: give it less to do");
    };
    if first.is_killed {
        bail!(
            "the program is killed for want of memory at the limit that holds here already ({most})"
        );
    }
    let mut runs = vec![first.as_run(None, LimitOutcome::Fits)];
    let measure = first.measure;
    while let Some(limit) = next_limit(&runs, most) {
        if interrupt::requested().is_some() {
            break;
        }
        on_run(&format!("Run {} with {limit}", runs.len()));
        let patience = Duration::from_nanos(runs[0].elapsed_ns) * TIMES + BESIDES;
        let (one, ended) = trial(launch, &place, Some(patience), limit)?;
        let outcome = one.outcome(
            ended.map(|one| one.ending),
            finished.ending,
            &runs[0],
            measure,
        );
        runs.push(one.as_run(Some(limit), outcome));
    }
    let (smallest, too_small) = smallest_limit(&runs);
    let found = MemoryLimit {
        smallest,
        too_small,
        stall_allowed: STALL,
        measure,
        runs,
    };
    let mut document = Document::new(found).about(Subject::of_command(launch.words()));
    document.host = pagewise_linux::host::snapshot();
    Ok(document)
}

/// Where cgroups for the runs are made.
pub(crate) fn place_for_group() -> Result<Place> {
    let own = i32::try_from(std::process::id())?;
    let group = MemoryCgroup::of_process(&ProcRoot::default(), Path::new("/sys/fs/cgroup"), own)?;
    let group = group.context("no memory control group is visible here")?;
    let memory = ProcRoot::default().meminfo()?;
    let total = memory.and_then(|memory| memory.get("MemTotal"));
    group
        .beside(Bytes(total.unwrap_or(u64::MAX)))
        .context("a limit is tried in a memory cgroup of its own")
}

/// What was seen of a run.
struct Trial {
    stalled: Option<f64>,
    measure: StallMeasure,
    elapsed: Nanos,
    peak: Option<Bytes>,
    is_killed: bool,
}

/// One run with this limit; without an end if it took too long.
fn trial(
    launch: &Launch,
    place: &Place,
    patience: Option<Duration>,
    limit: Bytes,
) -> Result<(Trial, Option<Finished>)> {
    let room = place.make("a search for a limit", limit)?;
    let watch = DelayWatch::begin();
    let mut group = Group::start(launch, Some(&room))?;
    let pid = group.pid();
    let ended = group.wait_for(patience.unwrap_or(LONGEST))?;
    let stopped = group.stop()?;
    let tasks = watch.and_then(|watch| watch.stop(pid));
    let last = ended.as_ref().or(stopped.as_ref());
    let elapsed = last.map_or(Nanos(0), |finished| finished.cost.wall);
    let counted = read(&room);
    let delayed = tasks.map(|tasks| {
        let delays = tasks.iter().map(|task| task.delays);
        let waits = delays.flat_map(|one| [one.swap, one.reclaim, one.thrashing]);
        waits.flatten().map(|delay| delay.time).sum::<Nanos>()
    });
    let (measure, waited) = match (counted.waited, delayed) {
        (Some(waited), _) => (StallMeasure::Pressure, Some(waited)),
        (None, Some(waited)) => (StallMeasure::Delays, Some(waited)),
        (None, None) => (StallMeasure::Time, None),
    };
    let stalled = waited.map(|waited| waited.0 as f64 / elapsed.0.max(1) as f64);
    let trial = Trial {
        stalled,
        measure,
        elapsed,
        peak: counted.peak,
        is_killed: counted.is_killed,
    };
    Ok((trial, ended))
}

/// What a cgroup has counted.
struct Counted {
    waited: Option<Nanos>,
    peak: Option<Bytes>,
    is_killed: bool,
}

fn read(room: &Temporary) -> Counted {
    let group = room.group();
    let waited = match group.pressure() {
        Ok(PressureStall::Counted(times)) => Some(times.some),
        _ => None,
    };
    Counted {
        waited,
        peak: group.peak().ok().flatten(),
        is_killed: group
            .read()
            .ok()
            .and_then(|now| now.oom_kills)
            .is_some_and(|kills| kills > 0),
    }
}

impl Trial {
    fn outcome(
        &self,
        ending: Option<Ending>,
        expected: Ending,
        first: &LimitRun,
        measure: StallMeasure,
    ) -> LimitOutcome {
        let is_slow = self.elapsed.0 as f64 > first.elapsed_ns as f64 * LONGER;
        // What the program waits for without a limit is none of a limit's doing.
        let allowed = STALL + first.stalled.unwrap_or(0.0);
        match ending {
            _ if self.is_killed => LimitOutcome::Killed,
            None => LimitOutcome::Endless,
            Some(ending) if ending != expected => LimitOutcome::Failed,
            _ if self.stalled.is_some_and(|stalled| stalled > allowed) => LimitOutcome::Stalled,
            _ if measure == StallMeasure::Time && is_slow => LimitOutcome::Stalled,
            _ => LimitOutcome::Fits,
        }
    }

    fn as_run(&self, limit: Option<Bytes>, outcome: LimitOutcome) -> LimitRun {
        LimitRun {
            limit,
            outcome,
            stalled: self.stalled,
            elapsed_ns: self.elapsed.0,
            peak: self.peak,
        }
    }
}
