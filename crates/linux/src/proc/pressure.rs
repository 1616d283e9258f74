//! `/proc/pressure/memory`: pressure stall information (Documentation/accounting/psi.rst).

use super::ProcRoot;
use crate::pseudo_file::{self, Error, Result, malformed};
use pagewise_model::units::Nanos;
use std::path::Path;

/// Cumulative stall times since boot (of the machine) or since creation (of a cgroup).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallTimes {
    /// At least one task waited for memory.
    pub some: Nanos,
    /// All tasks that could have run waited for memory.
    pub full: Nanos,
}

/// Pressure stall information, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PressureStall {
    /// Stall times are counted.
    Counted(StallTimes),
    /// Built in but off: the kernel was started without `psi=1`. The file exists, and reading it
    /// returns `EOPNOTSUPP`.
    OffAtBoot,
    /// The kernel lacks it (`CONFIG_PSI`, since Linux 4.20).
    NotBuiltIn,
}

impl ProcRoot {
    /// `/proc/pressure/memory`.
    ///
    /// # Errors
    /// [`Error`] when the file is unreadable or malformed.
    pub fn memory_pressure(&self) -> Result<PressureStall> {
        memory_pressure_at(&self.path("pressure/memory"))
    }
}

/// A file in the format of `/proc/pressure/memory`, such as a cgroup's `memory.pressure`.
///
/// # Errors
/// [`Error`] when the file is unreadable or malformed.
pub(crate) fn memory_pressure_at(path: &Path) -> Result<PressureStall> {
    match pseudo_file::text(path) {
        Ok(Some(text)) => parse(&text, path).map(PressureStall::Counted),
        Ok(None) => Ok(PressureStall::NotBuiltIn),
        Err(Error::Read { source, .. }) if source.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Ok(PressureStall::OffAtBoot)
        }
        Err(error) => Err(error),
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, total in microseconds.
fn parse(text: &str, path: &Path) -> Result<StallTimes> {
    let mut times = StallTimes::default();
    for (at, line) in (1..).zip(text.lines()) {
        let total = line
            .rsplit_once("total=")
            .and_then(|(_, digits)| digits.trim().parse::<u64>().ok())
            .ok_or_else(|| malformed(path, at, "some|full … total=microseconds", line))?;
        let total = Nanos(total.saturating_mul(1000));
        match line.split(' ').next() {
            Some("some") => times.some = total,
            Some("full") => times.full = total,
            _ => return Err(malformed(path, at, "some or full", line)),
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_microseconds() {
        let folder = tempfile::tempdir().unwrap();
        let root = ProcRoot::at(folder.path());
        assert_eq!(root.memory_pressure().unwrap(), PressureStall::NotBuiltIn);
        std::fs::create_dir(folder.path().join("pressure")).unwrap();
        let text = "some avg10=1.00 avg60=0.50 avg300=0.10 total=1500\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=20\n";
        std::fs::write(folder.path().join("pressure/memory"), text).unwrap();
        let times = StallTimes {
            some: Nanos(1_500_000),
            full: Nanos(20_000),
        };
        let read = root.memory_pressure().unwrap();
        assert_eq!(read, PressureStall::Counted(times));
    }

    #[test]
    fn an_unknown_line_is_an_error() {
        assert!(parse("most total=1", Path::new("p")).is_err());
        assert!(parse("some total=x", Path::new("p")).is_err());
    }
}
