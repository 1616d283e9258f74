//! Ends an observed program, on the user's request or when its time is over.

use pagewise_linux::process::{self, Finished, Running, interrupt};
use pagewise_model::run::Ending;
use std::time::{Duration, Instant};

/// Time that a program gets to end after a request.
const GRACE: Duration = Duration::from_secs(3);

/// Ends a program on the user's request. Ctrl-C has already reached it from the terminal, and it
/// may be cleaning up; any other request is passed on.
///
/// # Errors
/// If it cannot be waited for.
pub fn end(mut running: Running) -> Result<Finished, process::Error> {
    if interrupt::is_of_terminal() {
        let deadline = Instant::now() + GRACE;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            if let Some(finished) = running.wait_for(left)? {
                return Ok(finished);
            }
        }
    }
    running.stop(GRACE)
}

/// Ends a program whose time is over. If our signal then killed it, that does not count against it.
///
/// # Errors
/// If it cannot be waited for.
pub fn end_in_time(running: Running) -> Result<Finished, process::Error> {
    let finished = running.stop(GRACE)?;
    Ok(match finished.ending {
        Ending::Killed(libc::SIGTERM | libc::SIGKILL) => Finished {
            ending: Ending::Running,
            ..finished
        },
        _ => finished,
    })
}
