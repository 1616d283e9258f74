//! The machine's settings of individual page sizes (Linux 6.8): written for a while, then restored.
//!
//! They apply to every program on the machine, so they are written only on request, noted in a
//! journal first, and restored unless another process has written them since.

use super::journal::{self, Journal, Knob};
use crate::pseudo_file;
use pagewise_model::units::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A page size and its mode: `64K=always`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Bytes in a page.
    pub size: Bytes,
    /// `always`, `madvise`, `inherit` or `never`.
    pub mode: String,
}

/// Why a setting was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The machine has no pages of this size.
    #[error("this machine has no transparent huge pages of {wanted}: it has {}", listed(.known))]
    Size {
        /// The size that was requested.
        wanted: Bytes,
        /// The sizes that exist.
        known: Vec<Bytes>,
    },
    /// The file could not be written.
    #[error("cannot write {} (root may): {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A journal names a file that we never write.
    #[error(
        "the journal would write {before:?} to {}, which is not a setting of a page size: nothing was \
         written; inspect the journal, then remove it",
        path.display()
    )]
    NoSetting {
        /// The file.
        path: PathBuf,
        /// Its earlier content according to the journal.
        before: String,
    },
    /// The setting could not be noted, so it was not written.
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

fn listed(sizes: &[Bytes]) -> String {
    match sizes {
        [] => "only the largest (Linux 6.8 has more)".to_owned(),
        sizes => sizes
            .iter()
            .map(Bytes::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// Where settings of page sizes are, below `/sys`.
const FOLDER: &str = "kernel/mm/transparent_hugepage";

const MODES: [&str; 4] = ["always", "madvise", "inherit", "never"];

impl FromStr for Wish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a page size and a setting; example: 64K=always");
        let (size, mode) = text.split_once('=').ok_or_else(wrong)?;
        let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor: u64 = match size[digits.len()..].to_ascii_uppercase().as_str() {
            "K" | "KB" | "KIB" => 1 << 10,
            "M" | "MB" | "MIB" => 1 << 20,
            _ => return Err(wrong()),
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        if !MODES.contains(&mode) {
            return Err(format!("'{mode}' is not one of {}", MODES.join(", ")));
        }
        Ok(Self {
            size: Bytes(number.checked_mul(factor).ok_or_else(wrong)?),
            mode: mode.to_owned(),
        })
    }
}

/// Writes the requested modes below `sys` (`/sys`), each noted first. Returns what was written.
///
/// # Errors
/// [`Error`]; settings written before the error are in the journal.
pub fn write(sys: &Path, wishes: &[Wish], journal: &mut Journal) -> Result<Vec<Knob>, Error> {
    let known = super::transparent(sys).map_or_else(Vec::new, |found| found.sizes);
    let mut written = Vec::new();
    for wish in wishes {
        let Some(size) = known.iter().find(|size| size.size == wish.size) else {
            return Err(Error::Size {
                wanted: wish.size,
                known: known.iter().map(|size| size.size).collect(),
            });
        };
        let knob = Knob {
            path: sys
                .join(FOLDER)
                .join(format!("hugepages-{}kB", wish.size.0 >> 10))
                .join("enabled"),
            before: size.enabled.clone(),
            after: wish.mode.clone(),
        };
        journal.note_knob(knob.clone())?;
        std::fs::write(&knob.path, &knob.after).map_err(|source| Error::Write {
            path: knob.path.clone(),
            source,
        })?;
        written.push(knob);
    }
    Ok(written)
}

/// Whether `knob` is one that [`write()`] notes.
fn is_ours(sys: &Path, knob: &Knob) -> bool {
    let below = knob.path.strip_prefix(sys.join(FOLDER)).ok();
    let size = below
        .and_then(Path::to_str)
        .and_then(|path| path.strip_prefix("hugepages-")?.strip_suffix("kB/enabled"));
    size.is_some_and(|size| size.parse::<u64>().is_ok())
        && [&knob.before, &knob.after].map(|mode| MODES.contains(&mode.as_str())) == [true; 2]
}

/// Restores the settings `knobs` below `sys`, the last written first. Returns how many are
/// restored, and the paths of those that another process has written since, which are left alone.
///
/// # Errors
/// [`Error::Write`]; [`Error::NoSetting`], and then nothing is written.
pub fn restore(sys: &Path, knobs: &[Knob]) -> Result<(u64, Vec<PathBuf>), Error> {
    if let Some(knob) = knobs.iter().find(|knob| !is_ours(sys, knob)) {
        return Err(Error::NoSetting {
            path: knob.path.clone(),
            before: knob.before.clone(),
        });
    }
    let (mut restored, mut left) = (0, Vec::new());
    for knob in knobs.iter().rev() {
        let now = pseudo_file::setting(&knob.path).unwrap_or_default();
        let now = pseudo_file::bracketed(&now).unwrap_or(&now).to_owned();
        if now == knob.before {
            restored += 1;
        } else if now == knob.after {
            std::fs::write(&knob.path, &knob.before).map_err(|source| Error::Write {
                path: knob.path.clone(),
                source,
            })?;
            restored += 1;
        } else {
            left.push(knob.path.clone());
        }
    }
    Ok((restored, left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hugepages::journal::Subject;

    fn machine() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let thp = folder.path().join("kernel/mm/transparent_hugepage");
        for size in ["64", "128"] {
            let size = thp.join(format!("hugepages-{size}kB"));
            std::fs::create_dir_all(&size).unwrap();
            std::fs::write(size.join("enabled"), "always inherit madvise [never]\n").unwrap();
        }
        std::fs::write(thp.join("enabled"), "always [madvise] never\n").unwrap();
        (folder, thp)
    }

    fn journal(folder: &Path) -> Journal {
        let subject = Subject {
            pid: 1,
            start_ticks: 1,
            boot_id: "b".into(),
            comm: "c".into(),
        };
        Journal::open(&folder.join("journals"), &subject).unwrap()
    }

    #[test]
    fn a_setting_is_noted_written_and_given_back() {
        let (sys, thp) = machine();
        let mut journal = journal(sys.path());
        let wishes = [
            "64K=always".parse().unwrap(),
            "128K=madvise".parse().unwrap(),
        ];
        let knobs = write(sys.path(), &wishes, &mut journal).unwrap();
        let read = |size: &str| std::fs::read_to_string(thp.join(size).join("enabled")).unwrap();
        assert_eq!(read("hugepages-64kB"), "always");
        assert_eq!(journal::read(journal.path()).unwrap().knobs, knobs);
        // Another process has written one of them since.
        std::fs::write(thp.join("hugepages-128kB/enabled"), "inherit").unwrap();
        let (restored, left) = restore(sys.path(), &knobs).unwrap();
        assert_eq!((restored, left.len()), (1, 1));
        assert_eq!(read("hugepages-64kB"), "never");
        assert_eq!(read("hugepages-128kB"), "inherit");
    }

    #[test]
    fn a_journal_gets_nothing_written_but_modes_of_page_sizes() {
        let (sys, thp) = machine();
        let victim = sys.path().join("victim");
        std::fs::write(&victim, "always").unwrap();
        let knob = |path: &Path, before: &str| Knob {
            path: path.to_path_buf(),
            before: before.to_owned(),
            after: "always".to_owned(),
        };
        let size = thp.join("hugepages-64kB/enabled");
        std::fs::write(&size, "[always] inherit madvise never\n").unwrap();
        for wrong in [
            knob(&victim, "never"),
            knob(&thp.join("hugepages-64kB/../../../../victim"), "never"),
            knob(&thp.join("hugepages-1kB/enabled/../../victim"), "never"),
            knob(&thp.join("enabled"), "never"),
            knob(&size, "* * * * * root id"),
        ] {
            let error = restore(sys.path(), &[knob(&size, "never"), wrong]).unwrap_err();
            assert!(matches!(error, Error::NoSetting { .. }), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "always");
        assert!(std::fs::read_to_string(&size).unwrap().contains("[always]"));
        assert_eq!(restore(sys.path(), &[knob(&size, "never")]).unwrap().0, 1);
    }

    #[test]
    fn what_the_machine_lacks_is_named() {
        let (sys, _) = machine();
        let wish = "32K=always".parse().unwrap();
        let error = write(sys.path(), &[wish], &mut journal(sys.path())).unwrap_err();
        assert!(
            error.to_string().contains("it has 64.0 KiB, 128 KiB"),
            "{error}"
        );
        assert!("64K".parse::<Wish>().unwrap_err().contains("64K=always"));
        assert!("64K=on".parse::<Wish>().unwrap_err().contains("madvise"));
    }
}
