//! A process that is stopped for a moment, so that what is read of it belongs together.

use crate::proc::ProcRoot;
use crate::sys::ptrace::{self, Registers, Stop};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// Pause between two looks whether a thread has stopped.
const PAUSE: Duration = Duration::from_micros(200);
/// Most rounds in which new threads are looked for.
const ROUNDS: usize = 8;

/// Stops all threads of `pid`, does `work`, and lets them go on. `work` gets the moment by which it
/// must be done, `limit` after the first thread was stopped. Returns what it gave, and for how long
/// the process was stopped.
///
/// Threads go on in any case: the tracer is a thread of its own, and its end lets go of all.
///
/// # Errors
/// If we may not trace the process, or not all of its threads stopped in half the time.
pub fn while_stopped<T: Send>(
    proc: &ProcRoot,
    pid: i32,
    limit: Duration,
    work: impl FnOnce(Instant) -> T + Send,
) -> io::Result<(T, Duration)> {
    std::thread::scope(|scope| {
        let tracer = scope.spawn(|| {
            let started = Instant::now();
            let mut threads = Threads(BTreeMap::new());
            threads.stop_all(proc, pid, started + limit / 2)?;
            let made = work(started + limit);
            threads.let_go();
            Ok((made, started.elapsed()))
        });
        tracer
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the tracer panicked")))
    })
}

/// What the registers of a thread hold, and where its stack ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadRegisters {
    /// All words.
    pub words: Vec<u64>,
    /// The stack pointer.
    pub stack_pointer: u64,
}

/// Where the stack pointer is among the general registers (`struct user_regs_struct`,
/// `struct user_pt_regs`).
const STACK_POINTER: usize = if cfg!(target_arch = "x86_64") { 19 } else { 31 };

/// The registers of a thread that [`while_stopped`] has stopped, from its `work`.
///
/// # Errors
/// If the thread is gone, or was not stopped.
pub fn registers(tid: i32) -> io::Result<ThreadRegisters> {
    let mut words = ptrace::registers(tid, Registers::General)?;
    let stack_pointer = words.get(STACK_POINTER).copied().unwrap_or_default();
    for further in [Registers::Vector, Registers::Extended] {
        // Which sets there are depends on the processor; those of vectors are in both.
        words.extend(ptrace::registers(tid, further).unwrap_or_default());
    }
    Ok(ThreadRegisters {
        words,
        stack_pointer,
    })
}

/// Threads that are seized; each with the signal that it is to receive, once it has stopped.
struct Threads(BTreeMap<i32, Option<i32>>);

impl Threads {
    fn stop_all(&mut self, proc: &ProcRoot, pid: i32, deadline: Instant) -> io::Result<()> {
        for _ in 0..ROUNDS {
            let new: Vec<i32> = proc
                .tasks(pid)
                .into_iter()
                .filter(|tid| !self.0.contains_key(tid))
                .collect();
            if new.is_empty() {
                return match self.0.is_empty() {
                    true => Err(io::ErrorKind::NotFound.into()),
                    false => Ok(()),
                };
            }
            for tid in new {
                match ptrace::seize(tid, false).and_then(|()| ptrace::interrupt(tid)) {
                    Ok(()) => self.0.insert(tid, None),
                    // A thread that ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                    Err(error) => return Err(error),
                };
            }
            self.wait_for_stops(deadline)?;
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    fn wait_for_stops(&mut self, deadline: Instant) -> io::Result<()> {
        let running: Vec<i32> = self
            .0
            .iter()
            .filter(|(_, signal)| signal.is_none())
            .map(|(tid, _)| *tid)
            .collect();
        for tid in running {
            loop {
                match ptrace::wait(tid, false) {
                    Ok(Some((Stop::Ended(_), _))) | Err(_) => {
                        self.0.remove(&tid);
                        break;
                    }
                    Ok(Some((Stop::Signal(signal), _))) => {
                        self.0.insert(tid, Some(signal));
                        break;
                    }
                    Ok(Some(_)) => {
                        self.0.insert(tid, Some(0));
                        break;
                    }
                    Ok(None) if Instant::now() >= deadline => {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    Ok(None) => std::thread::sleep(PAUSE),
                }
            }
        }
        Ok(())
    }

    fn let_go(self) {
        for (tid, signal) in self.0 {
            // A thread that was killed meanwhile needs no more.
            let _ = ptrace::detach(tid, signal.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_stopped_process_goes_on_and_keeps_its_signals() {
        let mut shell = Command::new("sh")
            .args([
                "-c",
                "trap 'echo term; exit 3' TERM; echo ready; while :; do :; done",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0_u8; 6];
        io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut said).unwrap();
        let pid = i32::try_from(shell.id()).unwrap();
        let proc = ProcRoot::default();
        let limit = Duration::from_secs(20);
        let state = |_| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let stopped = while_stopped(&proc, pid, limit, |until| {
            crate::process::signal(shell.id(), libc::SIGTERM).unwrap();
            state(until)
        });
        match stopped {
            Ok((stat, _)) => assert!(stat.contains(") t "), "{stat}"),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                shell.kill().unwrap();
                shell.wait().unwrap();
                skipped!("ptrace is not allowed here");
                return;
            }
            Err(error) => {
                shell.kill().unwrap();
                shell.wait().unwrap();
                panic!("{error}");
            }
        }
        assert_eq!(shell.wait().unwrap().code(), Some(3));
    }
}
