//! Our exit status: that of the program that we ran.

use anyhow::Result;
use pagewise_linux::process;
use pagewise_model::run::Ending;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// The program's own status, or 128 plus the signal; `running` if it still runs.
pub fn exit_code(ending: Ending, running: ExitCode) -> ExitCode {
    match ending {
        Ending::Exited(status) => shell(status),
        Ending::Killed(signal) => shell(128 + signal),
        Ending::Running => running,
    }
}

/// The same for a child of the standard library.
pub fn of_child(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.map_or(ExitCode::FAILURE, shell)
}

/// The status that a shell would report, as our own.
pub fn shell(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status & 0xff).unwrap_or(1))
}

/// If a command cannot be executed, we exit as a shell does: with 127 or 126.
pub fn failed_to_start(error: anyhow::Error) -> Result<ExitCode> {
    match error.downcast_ref::<process::Error>() {
        Some(failed) => {
            writeln!(io::stderr(), "pagewise: {failed}")?;
            Ok(ExitCode::from(failed.shell_status()))
        }
        None => Err(error),
    }
}
