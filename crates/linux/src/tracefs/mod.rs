//! tracefs: ids and formats of the kernel's tracepoints.
//!
//! Found where it is mounted. If it is not mounted and we may, it is mounted for this process alone
//! ([`crate::sys::mount`]), which changes nothing for other processes.

pub mod capture;
pub mod control;
pub mod functions;
pub mod guard;

use crate::pseudo_file;
use crate::sys::{machine, mount};
use pagewise_formats::perf_data::TracingData;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Usual mount points of distributions, newest first.
const USUAL_PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A tracefs that can be read.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// Keeps our own mount alive.
    _mount: Option<OwnedFd>,
}

/// One tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Its group, such as `syscalls`.
    pub system: String,
    /// Its name, such as `sys_enter_brk`.
    pub name: String,
    /// The number for `perf_event_attr.config`.
    pub id: u64,
    /// Text of its `format` file.
    pub format: String,
}

/// Why tracepoints or control files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Mounted, but not accessible to us.
    #[error("{path} is closed to this user")]
    NoAccess {
        /// Its mount point.
        path: PathBuf,
    },
    /// Not mounted, and we may not mount it.
    #[error("tracefs is not mounted, and mounting it privately failed: {cause}")]
    NotMounted {
        /// The kernel's reason.
        cause: io::Error,
    },
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] pseudo_file::Error),
    /// An operation on a control file failed.
    #[error("cannot {action} {path}: {cause}")]
    Control {
        /// `read`, `write` or `clear`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        cause: io::Error,
    },
    /// Another process of ours is tracing.
    #[error("another pagewise trace is running (process {owner}); wait for it, or stop it")]
    Busy {
        /// Its process id, as far as it can be read.
        owner: String,
    },
    /// Changes can't be noted, so nothing is changed.
    #[error("cannot keep a journal of what tracing changes, {path}: {cause}")]
    Journal {
        /// The journal.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Another process is tracing, or has left settings behind.
    #[error("{}", guard::explain(.0))]
    InUse(Vec<guard::Conflict>),
    /// The kernel can't trace what was requested.
    #[error("{0}")]
    Unable(String),
}

impl Tracefs {
    /// The mounted tracefs, or a private mount of it.
    ///
    /// # Errors
    /// [`Error::NoAccess`] or [`Error::NotMounted`].
    pub fn find() -> Result<Self, Error> {
        for place in USUAL_PLACES {
            match std::fs::read_dir(Path::new(place).join("events")) {
                Ok(_) => return Ok(Self::at(place)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(Error::NoAccess { path: place.into() });
                }
                Err(_) => {}
            }
        }
        Self::mount_privately()
    }

    /// Its control files.
    #[must_use]
    pub fn control(&self) -> control::Control {
        control::Control::at(&self.root)
    }

    /// A tracefs, or a folder that looks like one, at `root`.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            _mount: None,
        }
    }

    /// A tracefs that no other process sees, whether or not there is a public one.
    ///
    /// # Errors
    /// [`Error::NotMounted`].
    pub fn mount_privately() -> Result<Self, Error> {
        let mount = mount::detached(c"tracefs").map_err(|cause| Error::NotMounted { cause })?;
        Ok(Self {
            root: format!("/proc/self/fd/{}", mount.as_raw_fd()).into(),
            _mount: Some(mount),
        })
    }

    /// The tracepoint of this name; `None` if this kernel has none.
    ///
    /// # Errors
    /// If its files cannot be read or are invalid.
    pub fn tracepoint(&self, system: &str, name: &str) -> Result<Option<Tracepoint>, Error> {
        let folder = self.root.join("events").join(system).join(name);
        let Some(id) = pseudo_file::number(&folder.join("id"))? else {
            return Ok(None);
        };
        let format = pseudo_file::text(&folder.join("format"))?;
        Ok(format.map(|format| Tracepoint {
            system: system.to_owned(),
            name: name.to_owned(),
            id,
            format,
        }))
    }

    /// The data on these tracepoints that a perf.data file must contain.
    ///
    /// # Errors
    /// If the headers' formats cannot be read.
    pub fn tracing_data(&self, tracepoints: &[Tracepoint]) -> Result<TracingData, Error> {
        let header = |name: &str| pseudo_file::text(&self.root.join("events").join(name));
        let mut events: Vec<_> = tracepoints
            .iter()
            .map(|t| (t.system.clone(), t.name.clone(), t.format.clone()))
            .collect();
        events.sort();
        events.dedup();
        Ok(TracingData {
            page_size: u32::try_from(machine::page_size()).unwrap_or(4096),
            header_page: header("header_page")?.unwrap_or_default(),
            header_event: header("header_event")?.unwrap_or_default(),
            events,
            kallsyms: String::new(),
            saved_cmdlines: String::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn written() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let event = root.path().join("events/syscalls/sys_enter_brk");
        fs::create_dir_all(&event).unwrap();
        fs::write(event.join("id"), "91\n").unwrap();
        fs::write(event.join("format"), "name: sys_enter_brk\nID: 91\n").unwrap();
        fs::write(root.path().join("events/header_page"), "page").unwrap();
        fs::write(root.path().join("events/header_event"), "event").unwrap();
        root
    }

    #[test]
    fn a_tracepoint_has_its_number_and_format() {
        let root = written();
        let tracefs = Tracefs::at(root.path());
        let brk = tracefs
            .tracepoint("syscalls", "sys_enter_brk")
            .unwrap()
            .unwrap();
        assert_eq!(brk.id, 91);
        assert!(brk.format.starts_with("name: sys_enter_brk"));
        assert_eq!(
            tracefs.tracepoint("syscalls", "sys_enter_none").unwrap(),
            None
        );
    }

    #[test]
    fn tracing_data_names_each_tracepoint_once() {
        let root = written();
        let tracefs = Tracefs::at(root.path());
        let brk = tracefs
            .tracepoint("syscalls", "sys_enter_brk")
            .unwrap()
            .unwrap();
        let data = tracefs.tracing_data(&[brk.clone(), brk]).unwrap();
        assert_eq!(data.events.len(), 1);
        assert_eq!(data.header_page, "page");
        assert_eq!(data.header_event, "event");
    }

    #[test]
    fn a_private_mount_shows_what_the_public_one_does() {
        let private = match Tracefs::mount_privately() {
            Ok(private) => private,
            Err(error) => return skipped!("{error}"),
        };
        let found = private.tracepoint("exceptions", "page_fault_user").unwrap();
        let Some(found) = found else {
            return skipped!("this kernel has no exceptions:page_fault_user");
        };
        assert!(found.id > 0 && found.format.contains("error_code"));
    }
}
