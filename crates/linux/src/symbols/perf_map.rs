//! `/tmp/perf-PID.map`: names of code that a just-in-time compiler made.
//!
//! Format: `START SIZE NAME` in hexadecimal, a function a line
//! (tools/perf/Documentation/jit-interface.txt). Written by Node.js with `--perf-basic-prof`, by
//! Java with perf-map-agent, by CPython from 3.12 with `-X perf`, and by .NET.

use crate::own_folder;
use crate::proc::ProcRoot;
use crate::sys::process::effective_user;
use pagewise_model::symbol::Name;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Bytes of a map that are read at most: some three million functions.
const LARGEST: u64 = 256 << 20;

/// Functions by address; where two overlap, the later line counts, for code moves.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    functions: Vec<(u64, u64, String)>,
}

impl PerfMap {
    /// The map of a process, from its own `/tmp` if it lives, else from ours; `None` where there is
    /// none. Anybody can make a file of this name, so that only one of root, of the process's user or
    /// of our own is believed.
    ///
    /// # Errors
    /// Why a map that is there was not read.
    pub fn of_process(root: &Path, pid: i32) -> Result<Option<Self>, String> {
        let mut users = vec![0, effective_user()];
        let status = ProcRoot::at(root.join("proc")).status(pid);
        users.extend(status.ok().flatten().map(|status| status.user));
        let name = format!("tmp/perf-{pid}.map");
        let own = root.join("proc").join(pid.to_string()).join("root");
        for path in [own.join(&name), root.join(&name)] {
            match read(&path, &users, LARGEST) {
                Ok(text) => return Ok(Some(Self::parse(&String::from_utf8_lossy(&text)))),
                // Absent, or the process's root is closed to us.
                Err(error) if error.raw_os_error().is_some() => {}
                Err(error) => return Err(told(&path, &error)),
            }
        }
        Ok(None)
    }

    fn parse(text: &str) -> Self {
        let mut functions: Vec<_> = text.lines().filter_map(parse_line).collect();
        functions.sort_by_key(|&(start, ..)| start);
        Self { functions }
    }

    /// The function that holds `address`.
    pub fn name(&self, address: u64) -> Option<Name> {
        let after = self
            .functions
            .partition_point(|&(start, ..)| start <= address);
        let (start, size, function) = self.functions.get(after.checked_sub(1)?)?;
        (address - start < *size).then(|| Name::Known {
            functions: vec![function.clone()],
            module: "[jit]".to_owned(),
        })
    }
}

/// The file, if it is one of these users' and no larger than that.
fn read(path: &Path, users: &[u32], largest: u64) -> io::Result<Vec<u8>> {
    let file = own_folder::open_of(users, path, OpenOptions::new().read(true))?;
    let mut text = Vec::new();
    file.take(largest + 1).read_to_end(&mut text)?;
    match text.len() as u64 > largest {
        true => Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it is larger than {} MiB", largest >> 20),
        )),
        false => Ok(text),
    }
}

fn told(path: &Path, error: &io::Error) -> String {
    format!(
        "Names of code generated at run time were not read from {}: {error}.",
        path.display()
    )
}

fn parse_line(line: &str) -> Option<(u64, u64, String)> {
    let mut parts = line.splitn(3, ' ');
    let mut number = || {
        let digits = parts.next()?.trim_start_matches("0x");
        u64::from_str_radix(digits, 16).ok()
    };
    let (start, size) = (number()?, number()?);
    Some((start, size, parts.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bounded_file_of_the_right_user_is_read() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("tmp/perf-5.map");
        let map = || PerfMap::of_process(root.path(), 5);
        assert!(map().unwrap().is_none());
        std::fs::create_dir(root.path().join("tmp")).unwrap();
        // A pipe without a writer is not waited for.
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        assert!(map().unwrap_err().contains("not a regular file"));
        std::fs::remove_file(&path).unwrap();
        let other = root.path().join("other");
        std::fs::write(&other, "10 10 f\n").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(map().unwrap_err().contains("it is a link"));
        std::fs::rename(&other, &path).unwrap();
        assert!(map().unwrap().unwrap().name(0x10).is_some());
        let us = effective_user();
        assert_eq!(read(&path, &[us], 8).unwrap().len(), 8);
        let large = read(&path, &[us], 7).unwrap_err();
        assert_eq!(large.kind(), ErrorKind::FileTooLarge);
        assert!(read(&path, &[us + 1], 8).is_err());
        // Only root can give files away.
        if us == 0 {
            std::os::unix::fs::chown(&path, Some(1), None).unwrap();
            assert!(map().unwrap_err().contains("another user (id 1)"));
        }
    }

    #[test]
    fn names_may_hold_spaces_and_later_lines_win() {
        let map =
            PerfMap::parse("7f00 10 LazyCompile:~a b.js:1\nbroken\n0x8000 20 old\n8000 20 new\n");
        let name = |address| match map.name(address) {
            Some(Name::Known { functions, .. }) => functions[0].clone(),
            other => format!("{other:?}"),
        };
        assert_eq!(name(0x7f0f), "LazyCompile:~a b.js:1");
        assert_eq!(name(0x7f10), "None");
        assert_eq!(name(0x8001), "new");
        assert_eq!(name(0x10), "None");
    }
}
