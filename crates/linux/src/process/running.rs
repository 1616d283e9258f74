//! A child from the gate to its end.

use super::Error;
use super::orphans::{self, Orphans};
use super::usage::{cost, together};
use crate::sys::process as sys;
use pagewise_model::run::{Ending, RunCost};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A child that waits before `execve(2)`. Dropping it ends the child.
#[derive(Debug)]
pub struct Gated {
    /// `None` once released.
    child: Option<Child>,
}

#[derive(Debug)]
struct Child {
    pid: i32,
    path: PathBuf,
    open: PipeWriter,
    outcome: PipeReader,
}

impl Gated {
    pub(super) fn new(pid: i32, path: PathBuf, open: PipeWriter, outcome: PipeReader) -> Self {
        Self {
            child: Some(Child {
                pid,
                path,
                open,
                outcome,
            }),
        }
    }

    /// The child's id; the same after exec. 0 never occurs: a gated child exists until it is
    /// released or dropped.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.child.as_ref().map_or(0, |child| child.pid)
    }

    /// The file that will be executed.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.child
            .as_ref()
            .map_or(Path::new(""), |child| &child.path)
    }

    /// Lets the child call exec, and returns once it has.
    ///
    /// # Errors
    /// [`Error::Exec`] with the kernel's reason if exec failed.
    pub fn release(mut self) -> Result<Running, Error> {
        let Some(child) = self.child.take() else {
            // Only this function and drop take the child, and both end `self`.
            return Err(Error::Fork(io::Error::other("released twice")));
        };
        let pidfd = sys::pidfd_open(child.pid).ok();
        let born = orphans::birth(child.pid);
        let started = Instant::now();
        child.let_go()?;
        Ok(Running {
            pid: child.pid,
            pidfd,
            started,
            born,
            ended: None,
        })
    }
}

impl Child {
    fn let_go(&self) -> Result<(), Error> {
        // A child that is gone (killed at the gate) has closed its end: the outcome shows this.
        let _ = (&self.open).write_all(b"!");
        let mut errno = Vec::new();
        let failed = |source| Error::Process {
            pid: self.pid,
            action: "start",
            source,
        };
        (&self.outcome).read_to_end(&mut errno).map_err(failed)?;
        let Ok(errno) = <[u8; 4]>::try_from(errno.as_slice()) else {
            return Ok(());
        };
        let source = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
        reap(self.pid)?;
        orphans::ended(self.pid);
        Err(Error::Exec {
            path: self.path.clone(),
            source,
        })
    }
}

impl Drop for Gated {
    /// Closes the gate: the child notices and exits without exec.
    fn drop(&mut self) {
        if let Some(Child { pid, open, .. }) = self.child.take() {
            drop(open);
            // An error cannot be reported here; the child is ours and cannot be reaped twice.
            let _ = reap(pid);
            orphans::ended(pid);
        }
    }
}

/// A running program. Dropping it leaves the program alone.
#[derive(Debug)]
pub struct Running {
    pid: i32,
    /// Absent before Linux 5.3.
    pidfd: Option<OwnedFd>,
    started: Instant,
    /// When it was born, in clock ticks.
    born: u64,
    /// Its end, while descendants still work.
    ended: Option<Ended>,
}

/// The end of a program that left processes behind.
#[derive(Debug)]
struct Ended {
    finished: Finished,
    left: Orphans,
}

/// How a program ended and its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Exit status or signal.
    pub ending: Ending,
    /// Cost by `wait4(2)`: the program and all its children that were waited for.
    ///
    /// `max_rss` is never below the resident memory of the forked child before exec (`exec_mmap`,
    /// fs/exec.c), which `lean_child` keeps to a few hundred KiB.
    pub cost: RunCost,
}

impl Running {
    /// Process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Time since it was released.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// A descriptor that becomes readable when the program ends, for poll loops.
    #[must_use]
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Waits for its end and that of its work, however many signals we receive meanwhile.
    ///
    /// # Errors
    /// If it was already waited for elsewhere.
    pub fn wait(mut self) -> Result<Finished, Error> {
        if self.ended.is_none() {
            let (status, usage) = reap(self.pid)?;
            self.note_end(status, &usage);
        }
        loop {
            if let Some(finished) = self.wait_by_looking(Duration::from_secs(3600))? {
                return Ok(finished);
            }
        }
    }

    /// How it ended, if it has ended, and no descendant of it still works.
    ///
    /// # Errors
    /// If it was already waited for.
    pub fn try_wait(&mut self) -> Result<Option<Finished>, Error> {
        if self.ended.is_some() {
            return Ok(self.work_ended());
        }
        match sys::wait4(self.pid, false) {
            Ok(Some((status, usage))) => {
                self.note_end(status, &usage);
                Ok(self.work_ended())
            }
            Ok(None) => Ok(None),
            Err(source) => Err(Error::Process {
                pid: self.pid,
                action: "wait for",
                source,
            }),
        }
    }

    /// Waits up to `timeout`. Returns early with `None` after a signal, so that the caller can
    /// check [`super::interrupt::requested`].
    ///
    /// # Errors
    /// As [`Running::try_wait`].
    pub fn wait_for(&mut self, timeout: Duration) -> Result<Option<Finished>, Error> {
        match self.pidfd.as_ref().filter(|_| self.ended.is_none()) {
            Some(fd) => match sys::poll_readable(fd.as_fd(), timeout) {
                Ok(_) => self.try_wait(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => self.try_wait(),
                Err(source) => Err(Error::Process {
                    pid: self.pid,
                    action: "wait for",
                    source,
                }),
            },
            None => self.wait_by_looking(timeout),
        }
    }

    /// Waits up to `timeout` for its end without reaping it: until then, its files in `/proc` can
    /// be read. Also false if the kernel has no such wait.
    #[must_use]
    pub fn ends_within(&self, timeout: Duration) -> bool {
        if self.ended.is_some() {
            std::thread::sleep(timeout.min(LOOK_FOR_ORPHANS));
            return false;
        }
        let ends = |fd: &OwnedFd| sys::poll_readable(fd.as_fd(), timeout);
        matches!(self.pidfd.as_ref().map(ends), Some(Ok(true)))
    }

    /// Waits for its end, but no longer than `patience` since it was released: `None` if it was
    /// ended then. If a signal requests our end, it is ended too, within `grace`; the caller checks
    /// [`super::interrupt::requested`].
    ///
    /// # Errors
    /// As [`Running::stop`].
    pub fn wait_within(
        mut self,
        patience: Duration,
        grace: Duration,
    ) -> Result<Option<Finished>, Error> {
        loop {
            let left = patience.saturating_sub(self.elapsed());
            // A signal wakes us early; the program received it from the terminal too and decides
            // itself whether to end.
            if let Some(finished) = self.wait_for(left.min(Duration::from_secs(3600)))? {
                return Ok(Some(finished));
            }
            if super::interrupt::requested().is_some() {
                return Ok(Some(self.stop(grace)?));
            }
            if self.elapsed() >= patience {
                self.stop(grace)?;
                return Ok(None);
            }
        }
    }

    /// For kernels without pidfds, and for descendants: polls.
    pub(super) fn wait_by_looking(&mut self, timeout: Duration) -> Result<Option<Finished>, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let finished = self.try_wait()?;
            if finished.is_some() || Instant::now() >= deadline {
                return Ok(finished);
            }
            std::thread::sleep(match self.ended {
                Some(_) => LOOK_FOR_ORPHANS,
                None => Duration::from_millis(1),
            });
        }
    }

    fn note_end(&mut self, status: i32, usage: &libc::rusage) {
        orphans::ended(self.pid);
        self.ended = Some(Ended {
            finished: self.finished(status, usage),
            left: Orphans::new(self.born),
        });
    }

    /// The end of the program, once its descendants have ended or rest.
    fn work_ended(&mut self) -> Option<Finished> {
        let wall = self.started.elapsed().into();
        let ended = self.ended.as_mut()?;
        let finished = ended.finished;
        ended.left.rest().then(|| {
            let more = ended.left.cost;
            let outlived = more != RunCost::default();
            let cost = together(finished.cost, more);
            Finished {
                cost: RunCost {
                    wall: if outlived { wall } else { cost.wall },
                    ..cost
                },
                ..finished
            }
        })
    }

    /// Sends a signal to the program alone (not to its children); to what it left behind, if it
    /// has ended.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn signal(&self, signal: i32) -> Result<(), Error> {
        if let Some(ended) = &self.ended {
            ended.left.signal(signal);
            return Ok(());
        }
        let failed = |source| Error::Process {
            pid: self.pid,
            action: "signal",
            source,
        };
        sys::kill(self.pid, signal).map_err(failed)
    }

    /// Ends the program: SIGTERM, and SIGKILL if it is still there after `grace`.
    ///
    /// # Errors
    /// As [`Running::signal`] and [`Running::wait`].
    pub fn stop(mut self, grace: Duration) -> Result<Finished, Error> {
        self.signal(libc::SIGTERM)?;
        let deadline = Instant::now() + grace;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            if let Some(finished) = self.wait_for(left)? {
                return Ok(finished);
            }
        }
        self.signal(libc::SIGKILL)?;
        self.wait()
    }

    pub(super) fn finished(&self, status: i32, usage: &libc::rusage) -> Finished {
        Finished {
            ending: ending(status),
            cost: cost(self.started.elapsed(), usage),
        }
    }
}

/// Time between looks at descendants that outlive the program.
const LOOK_FOR_ORPHANS: Duration = Duration::from_millis(10);

/// Waits for `pid` through any number of signals.
fn reap(pid: i32) -> Result<(i32, libc::rusage), Error> {
    loop {
        match sys::wait4(pid, true) {
            Ok(Some(end)) => return Ok(end),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => {
                return Err(Error::Process {
                    pid,
                    action: "wait for",
                    source,
                });
            }
        }
    }
}

fn ending(status: i32) -> Ending {
    if libc::WIFSIGNALED(status) {
        Ending::Killed(libc::WTERMSIG(status))
    } else {
        Ending::Exited(libc::WEXITSTATUS(status))
    }
}
