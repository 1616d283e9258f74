//! How much work a process has done, by a counter that already exists.

use crate::proc::ProcRoot;
use crate::sys::page_map::read_memory;
use object::{Object, ObjectSymbol};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The counter that measures the work, as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A file whose first word is a number that grows.
    File(PathBuf),
    /// A global variable of 8 bytes, by its symbol, in the program's executable.
    Symbol(String),
    /// 8 bytes at an address of the process.
    Memory(u64),
    /// Calls of `read(2)`, `write(2)` and similar (`/proc/PID/io`).
    Calls,
}

/// Why a counter cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is missing or does not start with a number.
    #[error("{} shows no progress: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The executable has no such symbol.
    #[error(
        "{} has no data symbol '{symbol}': check 'nm' on it (a stripped program has none; name an \
         address as memory:0x… or a file instead)",
        executable.display()
    )]
    Symbol {
        /// The executable.
        executable: PathBuf,
        /// The symbol.
        symbol: String,
    },
    /// The process's memory or accounting cannot be read.
    #[error("cannot read {what} of process {pid}: {problem}")]
    Process {
        /// What was read.
        what: String,
        /// Process.
        pid: i32,
        /// The kernel's words.
        problem: String,
    },
}

impl FromStr for Progress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str = "file:PATH, symbol:NAME, memory:0xADDRESS or calls";
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            Some(("symbol", name)) if !name.is_empty() => Ok(Self::Symbol(name.to_string())),
            Some(("memory", address)) => {
                let digits = address.strip_prefix("0x").unwrap_or(address);
                u64::from_str_radix(digits, 16)
                    .map(Self::Memory)
                    .map_err(|_| format!("'{address}' is not a hexadecimal address"))
            }
            None if text == "calls" => Ok(Self::Calls),
            None if text.starts_with('/') || text.starts_with('.') => Ok(Self::File(text.into())),
            _ => Err(format!("'{text}' is not a counter: use {FORMS}")),
        }
    }
}

impl Progress {
    /// Text for the user.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::File(path) => format!("the counter in {}", path.display()),
            Self::Symbol(name) => format!("the program's variable '{name}'"),
            Self::Memory(address) => format!("the program's counter at {address:#x}"),
            Self::Calls => "read and write calls".to_string(),
        }
    }

    /// The counter prepared for one process: symbols become addresses.
    ///
    /// # Errors
    /// [`Error::Symbol`], [`Error::Process`].
    pub fn resolve(&self, proc: &ProcRoot, pid: i32) -> Result<Self, Error> {
        match self {
            Self::Symbol(name) => address_of(proc, pid, name).map(Self::Memory),
            other => Ok(other.clone()),
        }
    }

    /// Current value. Symbols must have been resolved.
    ///
    /// # Errors
    /// [`Error`].
    pub fn read(&self, proc: &ProcRoot, pid: i32) -> Result<u64, Error> {
        match self {
            Self::File(path) => file(path),
            Self::Memory(address) => memory(pid, *address),
            Self::Symbol(name) => memory(pid, address_of(proc, pid, name)?),
            Self::Calls => calls(proc, pid),
        }
    }
}

fn file(path: &Path) -> Result<u64, Error> {
    let failed = |problem: String| Error::File {
        path: path.to_path_buf(),
        problem,
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let word = text.split_whitespace().next().unwrap_or_default();
    let whole = word.split('.').next().unwrap_or_default();
    whole
        .parse()
        .map_err(|_| failed(format!("its first word is '{word}', not a number")))
}

fn memory(pid: i32, address: u64) -> Result<u64, Error> {
    let mut word = [0; 8];
    read_memory(pid, address, &mut word).map_err(|error| Error::Process {
        what: format!("8 bytes at {address:#x}"),
        pid,
        problem: error.to_string(),
    })?;
    Ok(u64::from_ne_bytes(word))
}

fn calls(proc: &ProcRoot, pid: i32) -> Result<u64, Error> {
    let path = proc.process_path(pid, "io");
    let failed = |problem: String| Error::Process {
        what: "the I/O accounting".into(),
        pid,
        problem,
    };
    let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
    let value = |key: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().parse().ok()
    };
    value("syscr:")
        .zip(value("syscw:"))
        .map(|(reads, writes)| reads + writes)
        .ok_or_else(|| failed("no syscr and syscw in it".into()))
}

/// Address of a data symbol of the executable in the process.
fn address_of(proc: &ProcRoot, pid: i32, name: &str) -> Result<u64, Error> {
    let link = proc.process_path(pid, "exe");
    let failed = |problem: String| Error::Process {
        what: "the executable".into(),
        pid,
        problem,
    };
    let executable = std::fs::read_link(&link).map_err(|error| failed(error.to_string()))?;
    let missing = || Error::Symbol {
        executable: executable.clone(),
        symbol: name.to_string(),
    };
    let bytes = std::fs::read(&link).map_err(|error| failed(error.to_string()))?;
    let elf = object::File::parse(&*bytes).map_err(|error| failed(error.to_string()))?;
    let symbol = elf
        .symbols()
        .chain(elf.dynamic_symbols())
        .find(|symbol| symbol.name() == Ok(name) && symbol.is_definition())
        .ok_or_else(missing)?;
    if elf.kind() == object::ObjectKind::Executable {
        return Ok(symbol.address());
    }
    // A position-independent executable: its first mapping gives the load address.
    let maps = proc.maps(pid).map_err(|error| failed(error.to_string()))?;
    let path = executable.to_string_lossy();
    let first = maps
        .unwrap_or_default()
        .into_iter()
        .find(|entry| entry.file() == Some(&*path) && entry.mapping.file_offset == 0)
        .ok_or_else(missing)?;
    Ok(first.mapping.start + symbol.address())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::page_map;

    #[test]
    fn names_of_counters() {
        assert_eq!("calls".parse(), Ok(Progress::Calls));
        assert_eq!("file:/a".parse(), Ok(Progress::File("/a".into())));
        assert_eq!("./a".parse(), Ok(Progress::File("./a".into())));
        assert_eq!("memory:0x10".parse(), Ok(Progress::Memory(16)));
        assert!("memory:zz".parse::<Progress>().unwrap_err().contains("zz"));
        assert!(
            "ops"
                .parse::<Progress>()
                .unwrap_err()
                .contains("symbol:NAME")
        );
    }

    #[test]
    fn a_file_must_begin_with_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("count");
        std::fs::write(&path, "12345.6 requests\n").unwrap();
        let progress = Progress::File(path.clone());
        assert_eq!(progress.read(&ProcRoot::default(), 1).unwrap(), 12345);
        std::fs::write(&path, "many\n").unwrap();
        let error = progress.read(&ProcRoot::default(), 1).unwrap_err();
        assert!(error.to_string().contains("'many', not a number"));
    }

    #[test]
    fn a_global_variable_is_found_by_its_name() {
        let proc = ProcRoot::default();
        let me = i32::try_from(std::process::id()).unwrap();
        let symbol = Progress::Symbol("PAGEWISE_TEST_PROGRESS".into());
        let found = symbol.resolve(&proc, me).unwrap();
        assert_eq!(
            found.read(&proc, me).unwrap(),
            page_map::PAGEWISE_TEST_PROGRESS
        );
        let error = Progress::Symbol("no_such".into()).resolve(&proc, me);
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("no data symbol 'no_such'")
        );
    }
}
