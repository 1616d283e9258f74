//! Standard output whose errors say that they are its: a full disk must not be taken for a fault of
//! the input.

use std::error::Error;
use std::fmt;
use std::io::{self, Stdout, Write};

/// Standard output.
pub struct StandardOutput(Stdout);

/// Our standard output.
pub fn standard_output() -> StandardOutput {
    StandardOutput(io::stdout())
}

/// Why standard output could not be written.
#[derive(Debug)]
struct NotWritten(io::Error);

impl fmt::Display for NotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write standard output: {}", self.0)
    }
}

impl Error for NotWritten {}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

fn named(error: io::Error) -> io::Error {
    match error.kind() {
        // The writer tries again.
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, NotWritten(error)),
    }
}

/// The message about standard output among these causes, if that is what failed.
pub fn failure<'a>(mut chain: impl Iterator<Item = &'a (dyn Error + 'static)>) -> Option<String> {
    chain.find_map(|cause| {
        let error = cause.downcast_ref::<io::Error>()?.get_ref()?;
        error.downcast_ref::<NotWritten>().map(ToString::to_string)
    })
}
