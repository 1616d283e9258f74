//! What is observed and done during a run.

use super::outside::{Managed, Sizes};
use super::requests::{self, Requests};
use super::takeover::Standby;
use super::timeline::Timeline;
use super::together::Together;
use super::{Figures, Request};
use anyhow::Result;
use pagewise_linux::process::{Finished, Running};
use std::fs::File;
use std::time::Duration;

/// Interval of figures for a user who watches.
const SHOWN: Duration = Duration::from_secs(1);
/// Interval of looks if nothing requires any.
const LONGEST: Duration = Duration::from_secs(3600);

/// The run so far.
pub struct Course<'a> {
    /// Readings, if they are kept.
    pub timeline: Option<Timeline>,
    /// Of its processes.
    pub sizes: Sizes,
    /// The shared budget, if there is one.
    pub together: Option<Together>,
    /// The kernel, where it may take over.
    pub standby: Option<Standby>,
    shared: &'a File,
    budget: u64,
    is_strict: bool,
}

impl<'a> Course<'a> {
    /// The state of a run that starts now.
    pub fn new(
        request: &Request,
        shared: &'a File,
        together: Option<Together>,
        has_timeline: bool,
    ) -> Self {
        Self {
            timeline: has_timeline.then(Timeline::new),
            sizes: Sizes::default(),
            together,
            standby: None,
            shared,
            budget: request.budget.size().0,
            is_strict: request.strict,
        }
    }

    /// Waits for the end, and handles everything before it.
    ///
    /// # Errors
    /// If the shared memory cannot be read, or the program cannot be waited for.
    pub fn watch(
        &mut self,
        mut running: Running,
        say: &dyn Fn(&str),
        show: Option<&dyn Fn(&Figures)>,
    ) -> Result<Finished> {
        let root = u32::try_from(running.pid()).unwrap_or(0);
        let longest = show.map_or(LONGEST, |_| SHOWN);
        let mut requests = Requests::default();
        let mut is_refused = false;
        loop {
            let pause = self.patience(requests.patience(longest));
            if let Some(finished) = running.wait_for(pause)? {
                return Ok(finished);
            }
            self.look(say)?;
            if let Some(show) = show {
                show(&Figures::read(self.shared)?);
            }
            requests.see_to(&running, || requests::kill(&running, self.shared), say)?;
            if self.standby.as_ref().is_some_and(Standby::has_taken_over) {
                continue;
            }
            self.look_at_sizes(root, say)?;
            if self.is_strict && !is_refused && self.has_passed() {
                is_refused = true;
                requests::kill(&running, self.shared)?;
            }
        }
    }

    /// Time until the next look is due.
    fn patience(&self, most: Duration) -> Duration {
        let timeline = self.timeline.as_ref();
        let pause = timeline.map_or(most, |points| most.min(points.pause()));
        let standby = self.standby.as_ref();
        let pause = standby.map_or(pause, |standby| standby.patience(pause));
        if standby.is_some_and(Standby::has_taken_over) {
            return pause;
        }
        let pause = self.sizes.patience(pause);
        let together = self.together.as_ref();
        together.map_or(pause, |all| all.patience(pause))
    }

    /// Takes a reading and judges the engine, if it is time.
    fn look(&mut self, say: &dyn Fn(&str)) -> Result<()> {
        if let Some(points) = self.timeline.as_mut().filter(|points| points.is_due()) {
            points.take(&Figures::read(self.shared)?);
        }
        match &mut self.standby {
            Some(standby) => standby.look(self.shared, say),
            None => Ok(()),
        }
    }

    /// Assigns shares and looks at what processes take, if it is time. Once the kernel has taken over, it
    /// holds all of them.
    fn look_at_sizes(&mut self, root: u32, say: &dyn Fn(&str)) -> Result<()> {
        if let Some(all) = &mut self.together {
            all.look(root, self.shared, say)?;
        }
        let (budget, shared) = (self.budget, self.shared);
        self.sizes.look(root, budget, |pid| managed_of(shared, pid));
        Ok(())
    }

    fn has_passed(&self) -> bool {
        self.together.as_ref().is_some_and(Together::has_passed)
            || self.sizes.largest(self.budget).is_some()
    }
}

/// The pager's current report on a process.
fn managed_of(shared: &File, pid: u32) -> Managed {
    let Ok(figures) = Figures::read(shared) else {
        return Managed::Bytes(None);
    };
    let found = figures.living().find(|one| one.pid == pid);
    match found {
        Some(one) if figures.held.contains(&one.pid) => Managed::Held,
        found => Managed::Bytes(found.map(|one| one.resident_bytes)),
    }
}
