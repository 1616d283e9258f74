//! Programs and debug information by build id, from the cache of the debuginfod client
//! (debuginfod_find_debuginfo(3)) and, if `DEBUGINFOD_URLS` names servers, from them.
//!
//! The client itself, `debuginfod-find`, does the fetching, with its timeouts, proxies and checks;
//! size and time are limited by its own variables (debuginfod-client-config(7)) and by us. Without
//! `DEBUGINFOD_URLS` nothing is requested over the network.

use crate::process::client::Answer;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Seconds for a server to start its reply, unless `DEBUGINFOD_TIMEOUT` is set: the client's
/// default of 90 is too long for a report on a hundred files.
const TIMEOUT: &str = "15";
/// Seconds for a whole file, unless `DEBUGINFOD_MAXTIME` is set: the client's default is no limit.
const MOST_SECONDS: &str = "120";
/// Bytes of a file, unless `DEBUGINFOD_MAXSIZE` is set: 1 GiB, more than a kernel's debug
/// information. The client's default is no limit.
const MOST_BYTES: &str = "1073741824";
/// Time limit for all files of a report together.
const PATIENCE: Duration = Duration::from_secs(300);
/// After this many failed requests in a row, no more are made.
const MOST_FAILURES: u32 = 3;

/// What can be requested for a build id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Artefact {
    Executable,
    DebugInformation,
}

impl Artefact {
    /// Its name in the cache and for the client.
    fn name(self) -> &'static str {
        match self {
            Self::Executable => "executable",
            Self::DebugInformation => "debuginfo",
        }
    }
}

/// The client's cache, and the client.
#[derive(Debug, Default)]
pub struct Debuginfod {
    cache: Option<PathBuf>,
    /// `debuginfod-find`, if servers may be queried.
    client: Option<OsString>,
    known: RefCell<BTreeMap<(Artefact, String), Option<PathBuf>>>,
    failures: Cell<u32>,
    /// Time left for requests.
    patience: Cell<Duration>,
    note: RefCell<Option<String>>,
}

impl Debuginfod {
    /// As configured in the environment by the client's own variables.
    #[must_use]
    pub fn from_environment() -> Self {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = folder("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
        let cache = cache
            .or_else(|| Some(PathBuf::from(folder("XDG_CACHE_HOME")?).join("debuginfod_client")))
            .or_else(|| Some(PathBuf::from(folder("HOME")?).join(".cache/debuginfod_client")));
        let client = folder("DEBUGINFOD_URLS").map(|_| "debuginfod-find".into());
        Self::new(cache, client)
    }

    /// With this cache and this client.
    #[must_use]
    pub fn new(cache: Option<PathBuf>, client: Option<OsString>) -> Self {
        Self {
            cache,
            client,
            patience: Cell::new(PATIENCE),
            ..Self::default()
        }
    }

    /// What prevented requests to servers, and the remedy.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.note.borrow().clone()
    }

    /// The file with this build id.
    pub(super) fn find(&self, artefact: Artefact, build_id: &[u8]) -> Option<PathBuf> {
        if build_id.is_empty() {
            return None;
        }
        let id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let key = (artefact, id);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let found = self
            .cached(artefact, &key.1)
            .or_else(|| self.fetched(artefact, &key.1));
        self.known.borrow_mut().insert(key, found.clone());
        found
    }

    fn cached(&self, artefact: Artefact, id: &str) -> Option<PathBuf> {
        let file = self.cache.as_ref()?.join(id).join(artefact.name());
        // The client stores an empty file for what no server had.
        let holds = file.metadata().is_ok_and(|file| file.len() > 0);
        holds.then_some(file)
    }

    fn fetched(&self, artefact: Artefact, id: &str) -> Option<PathBuf> {
        let client = self.client.as_ref()?;
        if self.failures.get() >= MOST_FAILURES {
            return None;
        }
        let mut command = Command::new(client);
        command.args([artefact.name(), id]);
        for (limit, value) in [
            ("DEBUGINFOD_TIMEOUT", TIMEOUT),
            ("DEBUGINFOD_MAXTIME", MOST_SECONDS),
            ("DEBUGINFOD_MAXSIZE", MOST_BYTES),
        ] {
            if std::env::var_os(limit).is_none() {
                command.env(limit, value);
            }
        }
        let begun = Instant::now();
        let answer = Answer::receive(&mut command, b"", self.patience.get());
        let left = self.patience.get().saturating_sub(begun.elapsed());
        self.patience.set(left);
        let Answer {
            status,
            output,
            message,
        } = match answer {
            Ok(Some(answer)) => answer,
            Ok(None) => {
                self.failures.set(MOST_FAILURES);
                return self.tell(format!(
                    "Fetching debug information (DEBUGINFOD_URLS) took longer than {} s in total and was stopped, so names may be missing. Remedy: fetch it beforehand with debuginfod-find {} {id}.",
                    PATIENCE.as_secs(),
                    artefact.name()
                ));
            }
            Err(error) => {
                self.failures.set(MOST_FAILURES);
                let remedy = match error.kind() {
                    ErrorKind::NotFound => "install it (Debian, Fedora: package debuginfod)",
                    _ => "check that it is executable",
                };
                return self.tell(format!(
                    "DEBUGINFOD_URLS is set, but {} could not be started ({error}), so no debug \
                     information was fetched. Remedy: {remedy}.",
                    client.to_string_lossy()
                ));
            }
        };
        let path = PathBuf::from(output.trim_end());
        if status.success() && path.is_file() {
            self.failures.set(0);
            return Some(path);
        }
        let message = message.trim();
        // ENOENT: the servers replied that they have no such file.
        if message.contains("No such file") {
            self.failures.set(0);
            return None;
        }
        // EFBIG.
        if message.contains("File too large") {
            self.failures.set(0);
            return self.tell(format!(
                "The {} of build id {id} is larger than DEBUGINFOD_MAXSIZE allows (by default 1 GiB) \
                 and was not fetched, so names may be missing. Remedy: raise it.",
                artefact.name()
            ));
        }
        self.failures.set(self.failures.get() + 1);
        self.tell(format!(
            "The servers in DEBUGINFOD_URLS could not be reached ({message}), so names may be missing. Remedy: check that they are reachable."
        ))
    }

    fn tell(&self, note: String) -> Option<PathBuf> {
        self.note.borrow_mut().get_or_insert(note);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const ID: [u8; 3] = [0xab, 0x01, 0xff];

    /// A client that counts its calls and prints this answer.
    fn client(folder: &std::path::Path, answer: &str) -> OsString {
        let path = folder.join("client");
        let script = format!(
            "#!/bin/sh\necho \"$@\" >>{}/calls\n{answer}\n",
            folder.display()
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.into()
    }

    fn calls(folder: &std::path::Path) -> usize {
        let calls = std::fs::read_to_string(folder.join("calls")).unwrap_or_default();
        calls.lines().count()
    }

    #[test]
    fn what_the_cache_holds_is_not_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let cached = folder.path().join("ab01ff");
        std::fs::create_dir(&cached).unwrap();
        std::fs::write(cached.join("debuginfo"), "ELF").unwrap();
        std::fs::write(cached.join("executable"), "").unwrap();
        let other = folder.path().join("fetched");
        std::fs::write(&other, "ELF").unwrap();
        let client = client(folder.path(), &format!("echo {}", other.display()));
        let source = Debuginfod::new(Some(folder.path().into()), Some(client));
        let debug = source.find(Artefact::DebugInformation, &ID);
        assert_eq!(debug, Some(cached.join("debuginfo")));
        assert_eq!(calls(folder.path()), 0);
        assert_eq!(source.find(Artefact::Executable, &ID), Some(other.clone()));
        assert_eq!(source.find(Artefact::Executable, &ID), Some(other));
        assert_eq!(calls(folder.path()), 1);
        let text = std::fs::read_to_string(folder.path().join("calls")).unwrap();
        assert_eq!(text, "executable ab01ff\n");
    }

    #[test]
    fn without_servers_nobody_is_asked() {
        let source = Debuginfod::new(None, None);
        assert_eq!(source.find(Artefact::Executable, &ID), None);
        assert_eq!(source.note(), None);
    }

    #[test]
    fn what_keeps_servers_from_being_asked_is_told() {
        let gone = Debuginfod::new(None, Some("/nowhere/debuginfod-find".into()));
        assert_eq!(gone.find(Artefact::Executable, &ID), None);
        assert!(gone.note().unwrap().contains("package debuginfod"));

        let folder = tempfile::tempdir().unwrap();
        let refused = client(folder.path(), "echo 'Connection refused' >&2; exit 1");
        let source = Debuginfod::new(None, Some(refused));
        for id in 0..9 {
            assert_eq!(source.find(Artefact::Executable, &[id]), None);
        }
        assert_eq!(calls(folder.path()), 3);
        assert!(source.note().unwrap().contains("Connection refused"));
    }

    #[test]
    fn size_and_time_are_limited() {
        let folder = tempfile::tempdir().unwrap();
        let limits = "echo $DEBUGINFOD_MAXSIZE $DEBUGINFOD_MAXTIME >>\"$0.limits\"; \
                      echo 'Server query failed: File too large' >&2; exit 1";
        let large = Debuginfod::new(None, Some(client(folder.path(), limits)));
        for id in 0..5 {
            assert_eq!(large.find(Artefact::Executable, &[id]), None);
        }
        assert_eq!(calls(folder.path()), 5);
        let words = large.note().unwrap();
        assert!(words.contains("larger than DEBUGINFOD_MAXSIZE"), "{words}");
        let given = std::fs::read_to_string(folder.path().join("client.limits")).unwrap();
        let set = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        let size = set("DEBUGINFOD_MAXSIZE", MOST_BYTES);
        let expected = format!("{size} {}\n", set("DEBUGINFOD_MAXTIME", MOST_SECONDS));
        assert_eq!(given, expected.repeat(5));

        let folder = tempfile::tempdir().unwrap();
        let slow = Debuginfod::new(None, Some(client(folder.path(), "exec sleep 1000")));
        slow.patience.set(Duration::from_millis(300));
        for id in 0..5 {
            assert_eq!(slow.find(Artefact::Executable, &[id]), None);
        }
        assert!(calls(folder.path()) <= 1);
        assert!(slow.note().unwrap().contains("was stopped"));
    }

    #[test]
    fn that_servers_lack_a_file_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let lacks = client(
            folder.path(),
            "echo 'No such file or directory' >&2; exit 1",
        );
        let source = Debuginfod::new(None, Some(lacks));
        for id in 0..9 {
            assert_eq!(source.find(Artefact::Executable, &[id]), None);
        }
        assert_eq!((calls(folder.path()), source.note()), (9, None));
    }
}
