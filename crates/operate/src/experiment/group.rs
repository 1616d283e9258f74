//! A program that we started, with all its descendants: waited for, and ended, as one.

use anyhow::Result;
use pagewise_linux::memcg::temporary::Temporary;
use pagewise_linux::perf::{self, CpuClock};
use pagewise_linux::proc::{ProcRoot, family};
use pagewise_linux::process::{Finished, Gated, Launch, Running, signal};
use pagewise_model::units::Nanos;
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL: a server may have to write its data.
const GRACE: Duration = Duration::from_secs(5);
/// Interval of checks on processes that do not end.
const LOOK: Duration = Duration::from_millis(5);

/// Ended with all its descendants when dropped: a shell that is terminated leaves its children, and
/// a server that keeps running keeps its port.
#[derive(Debug)]
pub(crate) struct Group {
    /// `None` once it was waited for.
    running: Option<Running>,
    pid: i32,
    /// `None` if perf events are not allowed.
    clock: Option<CpuClock>,
}

/// A process, distinguished by its start from a later one with the same id.
#[derive(Clone, Copy, Debug)]
struct Member {
    pid: i32,
    start_ticks: u64,
}

impl Group {
    /// Starts a program, in a control group of its own if there is one.
    pub(crate) fn start(launch: &Launch, room: Option<&Temporary>) -> Result<Self> {
        let gated = gated(launch, room)?;
        let clock = CpuClock::for_process(gated.pid());
        let running = gated.release()?;
        Ok(Self {
            pid: running.pid(),
            running: Some(running),
            clock,
        })
    }

    /// CPU time of all processes until now, including those that ended unseen; `None` if it may not
    /// be counted.
    pub(super) fn cpu_time(&self) -> Option<Nanos> {
        self.clock.as_ref()?.read()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits up to `timeout` for the end of the program itself, or until a signal comes. Also
    /// `None` if it had ended before.
    pub(crate) fn wait_for(&mut self, timeout: Duration) -> Result<Option<Finished>> {
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        let finished = running.wait_for(timeout)?;
        if finished.is_some() {
            self.running = None;
        }
        Ok(finished)
    }

    /// Ends all processes. Returns the usage of the program itself; `None` if it had ended before.
    pub(crate) fn stop(mut self) -> Result<Option<Finished>> {
        self.end()
    }

    fn end(&mut self) -> Result<Option<Finished>> {
        let Some(running) = self.running.take() else {
            return Ok(None);
        };
        let proc = ProcRoot::default();
        let mut others = members(&proc, self.pid);
        others.retain(|member| member.pid != self.pid);
        let finished = running.stop(GRACE)?;
        for (way, grace) in [(libc::SIGTERM, GRACE), (libc::SIGKILL, GRACE)] {
            others.retain(|member| member.lives(&proc));
            for member in &others {
                // It may just have ended, which is the aim.
                let _ = signal(member.pid.unsigned_abs(), way);
            }
            await_end(&proc, &mut others, grace);
        }
        Ok(Some(finished))
    }
}

/// Starts a program. It is in its control group before exec.
pub(crate) fn spawn(launch: &Launch, room: Option<&Temporary>) -> Result<Running> {
    Ok(gated(launch, room)?.release()?)
}

fn gated(launch: &Launch, room: Option<&Temporary>) -> Result<Gated> {
    perf::wait_until_closed();
    let gated = launch.spawn_gated()?;
    if let Some(room) = room {
        room.take(gated.pid())?;
    }
    Ok(gated)
}

impl Drop for Group {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _ = self.end();
    }
}

impl Member {
    fn lives(&self, proc: &ProcRoot) -> bool {
        let stat = proc.stat(self.pid).ok().flatten();
        stat.is_some_and(|stat| stat.is_alive() && stat.start_ticks == self.start_ticks)
    }
}

fn members(proc: &ProcRoot, pid: i32) -> Vec<Member> {
    let stats = family(proc, pid).into_iter().map(|pid| proc.stat(pid));
    let stats = stats.filter_map(|stat| stat.ok().flatten());
    let member = |stat: pagewise_linux::proc::Stat| Member {
        pid: stat.pid,
        start_ticks: stat.start_ticks,
    };
    stats.map(member).collect()
}

fn await_end(proc: &ProcRoot, members: &mut Vec<Member>, patience: Duration) {
    let deadline = Instant::now() + patience;
    while !members.is_empty() && Instant::now() < deadline {
        std::thread::sleep(LOOK);
        members.retain(|member| member.lives(proc));
    }
}
