//! Waiting for a program's end with a moment before it, while its memory is still there.

use super::running::Finished;
use super::{Error, Running, interrupt};
use crate::sys::ptrace::{self, Stop};
use std::io;

impl Running {
    /// Waits for its end. `at_end` is called when the program is about to exit: it is stopped, and
    /// its memory is complete. Not called if the program may not be traced, or has ended before.
    ///
    /// Signals that arrive for the program are passed on at once. If a signal requests our own end,
    /// the program receives it as well.
    ///
    /// # Errors
    /// If it was already waited for elsewhere.
    pub fn wait_with_end(self, at_end: impl FnOnce()) -> Result<Finished, Error> {
        let pid = self.pid();
        if ptrace::seize(pid, true).is_err() {
            return self.wait();
        }
        let mut at_end = Some(at_end);
        loop {
            match ptrace::wait(pid, true) {
                Ok(Some((Stop::Ended(status), usage))) => {
                    super::orphans::ended(pid);
                    return Ok(self.finished(status, &usage));
                }
                Ok(Some((stop, _))) => {
                    if let Some(at_end) = at_end.take_if(|_| stop == Stop::Exit) {
                        at_end();
                    }
                    // If it was killed meanwhile, the next report is its end.
                    let _ = match stop {
                        Stop::Signal(signal) => ptrace::resume(pid, signal),
                        Stop::Group => ptrace::listen(pid),
                        Stop::Asked | Stop::Exit | Stop::Ended(_) => ptrace::resume(pid, 0),
                    };
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    // The terminal sends SIGINT to the program itself.
                    let asked = interrupt::requested().filter(|_| !interrupt::is_of_terminal());
                    if let Some(signal) = asked {
                        interrupt::clear();
                        let _ = self.signal(signal);
                    }
                }
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
}

#[cfg(test)]
mod tests {
    use super::super::{Launch, Output};
    use super::*;
    use crate::proc::ProcRoot;
    use pagewise_model::run::Ending;

    fn shell(script: &str) -> Running {
        let words = ["sh", "-c", script].map(Into::into);
        let mut launch = Launch::from_command(&words).unwrap();
        launch.output = Output::Null;
        launch.spawn().unwrap()
    }

    /// Ends once the shell is traced; where that is not allowed, after a while nevertheless.
    const UNTIL_TRACED: &str = "looks=0 tracer=0
        while [ $tracer = 0 ] && [ $looks -lt 20000 ]; do
            looks=$((looks + 1))
            while read -r key value; do
                case $key in TracerPid:) tracer=$value ;; esac
            done </proc/$$/status
        done";

    #[test]
    fn a_program_that_is_stopped_and_continued_goes_on() {
        // SIGCONT again and again: one that comes before the stop does not end it.
        let running = shell(&format!(
            "{UNTIL_TRACED}
             kill -CONT $$
             (while kill -CONT $$; do :; done) 2>/dev/null &
             kill -STOP $$
             kill -STOP $$
             exit 7"
        ));
        let mut was_seen = false;
        let finished = running.wait_with_end(|| was_seen = true).unwrap();
        assert_eq!(finished.ending, Ending::Exited(7));
        if !was_seen {
            skipped!("ptrace is not allowed here");
        }
    }

    #[test]
    fn memory_stays_at_the_end_and_signals_pass() {
        let running = shell(&format!(
            "trap 'exit 5' USR1
             {UNTIL_TRACED}
             kill -USR1 $$
             while :; do :; done"
        ));
        let pid = running.pid();
        let mut resident = None;
        let finished = running
            .wait_with_end(|| resident = ProcRoot::default().statm(pid).unwrap())
            .unwrap();
        assert_eq!(finished.ending, Ending::Exited(5));
        match resident {
            Some(statm) => assert!(statm.resident.0 > 0),
            None => skipped!("ptrace is not allowed here"),
        }
    }
}
