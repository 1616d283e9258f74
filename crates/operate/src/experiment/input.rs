//! The same standard input for each run.

use anyhow::{Context, Result};
use pagewise_linux::process::Input;
use std::io::{IsTerminal, Read, Seek, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

/// Our standard input, kept so that each run of a command gets it from the start.
pub struct SavedInput {
    input: Input,
    /// Deleted when dropped.
    _copy: Option<tempfile::NamedTempFile>,
}

impl SavedInput {
    /// Keeps our standard input: a file is opened anew for each run; a pipe is read to its end and
    /// copied; a terminal has nothing to keep, so runs get `/dev/null`. If a pipe does not end for
    /// long, `say` reports what we are waiting for.
    ///
    /// # Errors
    /// If it cannot be read or the copy cannot be written.
    pub fn take(say: fn(&str)) -> Result<Self> {
        let stdin = std::io::stdin();
        let path = PathBuf::from("/proc/self/fd/0");
        let kind = std::fs::metadata(&path).map(|found| found.file_type());
        let kept = |input| Ok(Self { input, _copy: None });
        match kind {
            _ if stdin.is_terminal() => kept(Input::Null),
            Ok(kind) if kind.is_file() => kept(Input::File(std::fs::read_link(path)?)),
            Ok(kind) if kind.is_fifo() || kind.is_socket() => Self::copy(say),
            _ => kept(Input::Null),
        }
    }

    /// Standard input of each run.
    #[must_use]
    pub fn input(&self) -> Input {
        self.input.clone()
    }

    fn copy(say: fn(&str)) -> Result<Self> {
        let mut copy = tempfile::NamedTempFile::new().context("cannot store standard input")?;
        let (finished, waiting) = mpsc::channel::<()>();
        let hint = std::thread::spawn(move || {
            if waiting.recv_timeout(Duration::from_secs(2)) == Err(mpsc::RecvTimeoutError::Timeout)
            {
                say(
                    "Reading standard input to its end, because each run needs the same input. If the command reads none, add </dev/null.",
                );
            }
        });
        let copied = copy_all(&mut std::io::stdin().lock(), copy.as_file_mut());
        drop(finished);
        // The thread only prints a message, so a panic there does not matter.
        let _ = hint.join();
        copied.context("cannot keep a copy of standard input")?;
        Ok(Self {
            input: Input::File(copy.path().to_owned()),
            _copy: Some(copy),
        })
    }
}

fn copy_all(from: &mut impl Read, to: &mut (impl Write + Seek)) -> std::io::Result<()> {
    std::io::copy(from, to)?;
    to.flush()
}
