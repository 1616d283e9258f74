//! Recordings that wait until they can be sent: a folder of folders, `day=…/host=…/TIME`, oldest
//! first.

use anyhow::{Context, Result, bail};
use pagewise_linux::process::try_lock;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Where the number of dropped recordings is kept until a later one has told it.
const DROPPED: &str = ".dropped";
/// What a folder is called until it is complete.
const PARTIAL: &str = ".partial-";

/// The folder in which recordings wait.
pub struct Spool {
    folder: PathBuf,
    /// The folder, locked for as long as it is open.
    _lock: fs::File,
}

/// A complete recording.
#[derive(Debug)]
pub struct Waiting {
    /// Its folder within the spool.
    place: PathBuf,
    bytes: u64,
}

impl Spool {
    /// The spool in `folder`, which is created and belongs to this process alone. What a killed
    /// process left unfinished is removed.
    pub fn open(folder: &Path) -> Result<Self> {
        let named = || format!("the folder {}", folder.display());
        fs::create_dir_all(folder).with_context(named)?;
        let lock = fs::File::open(folder).with_context(named)?;
        if !try_lock(lock.as_fd()).with_context(|| format!("cannot lock {}", named()))? {
            bail!(
                "another process collects into {}: name a folder of its own (-o)",
                named()
            );
        }
        for entry in fs::read_dir(folder).with_context(named)? {
            let entry = entry.with_context(named)?;
            if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                remove(&entry.path())?;
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
            _lock: lock,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the next recording is made.
    pub fn next(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{PARTIAL}{name}"))
    }

    /// Adds the complete recording in the folder `made` as `place`.
    pub fn add(&self, made: &Path, place: &Path) -> Result<()> {
        let to = self.folder.join(place);
        to.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::rename(made, &to).with_context(|| format!("cannot make {}", to.display()))
    }

    /// What waits, oldest first.
    pub fn waiting(&self) -> Result<Vec<Waiting>> {
        let mut found = Vec::new();
        for day in folders(&self.folder, "day=")? {
            for host in folders(&day, "host=")? {
                for recording in folders(&host, "")? {
                    found.push(Waiting {
                        bytes: size(&recording)?,
                        place: within(&self.folder, &recording),
                    });
                }
            }
        }
        found.sort_by(|a, b| a.place.cmp(&b.place));
        Ok(found)
    }

    /// Drops the oldest recordings until the others take at most `most` bytes, and counts them.
    pub fn limit(&self, most: u64) -> Result<u64> {
        let waiting = self.waiting()?;
        let mut bytes: u64 = waiting.iter().map(|each| each.bytes).sum();
        let mut dropped = 0;
        for oldest in &waiting {
            if bytes <= most {
                break;
            }
            // Counted first: after a kill in between, one is counted that is still there.
            dropped += 1;
            self.keep_count(self.dropped() + 1)?;
            self.forget(oldest)?;
            bytes -= oldest.bytes;
        }
        Ok(dropped)
    }

    /// Recordings dropped so far that no recording has told yet.
    pub fn dropped(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join(DROPPED)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// A complete recording has told `count` of the dropped ones.
    pub fn reported(&self, count: u64) -> Result<()> {
        match count {
            0 => Ok(()),
            _ => self.keep_count(self.dropped().saturating_sub(count)),
        }
    }

    fn keep_count(&self, count: u64) -> Result<()> {
        let path = self.folder.join(DROPPED);
        fs::write(&path, count.to_string())
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Moves all that waits to the folder `to`, which has to be there: below the place where a file
    /// system is mounted, nothing is written while it is not.
    pub fn send(&self, to: &Path) -> Result<u64> {
        if !to.is_dir() {
            bail!("there is no folder {}", to.display());
        }
        let mut sent = 0;
        for each in self.waiting()? {
            copy(&self.folder.join(&each.place), &to.join(&each.place))
                .with_context(|| format!("cannot write {}", to.join(&each.place).display()))?;
            self.forget(&each)?;
            sent += 1;
        }
        Ok(sent)
    }

    fn forget(&self, recording: &Waiting) -> Result<()> {
        let folder = self.folder.join(&recording.place);
        remove(&folder)?;
        // The folders of a host and a day go with their last recording.
        for parent in folder.ancestors().skip(1).take(2) {
            if fs::remove_dir(parent).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Copies a folder of files; it has its name once it is complete. One that is there already, from an
/// attempt that was killed before the original was removed, is the same.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let (Some(parent), Some(name)) = (to.parent(), to.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let partial = parent.join(format!("{PARTIAL}{}", name.to_string_lossy()));
    fs::create_dir_all(&partial)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        let copied = partial.join(file.file_name());
        fs::copy(file.path(), &copied)?;
        fs::File::open(&copied)?.sync_all()?;
    }
    match fs::rename(&partial, to) {
        Err(_) if to.is_dir() => fs::remove_dir_all(&partial),
        other => other,
    }
}

fn folders(parent: &Path, prefix: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let named = || format!("cannot read {}", parent.display());
    for entry in fs::read_dir(parent).with_context(named)? {
        let entry = entry.with_context(named)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(prefix) && !name.starts_with('.') && entry.path().is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for file in fs::read_dir(folder)? {
        bytes += file?.metadata()?.len();
    }
    Ok(bytes)
}

fn within(folder: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(folder).unwrap_or(path).to_owned()
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(spool: &Spool, place: &str, bytes: usize) {
        let made = spool.next("x");
        fs::create_dir_all(&made).unwrap();
        fs::write(made.join("runs.parquet"), vec![1; bytes]).unwrap();
        spool.add(&made, Path::new(place)).unwrap();
    }

    #[test]
    fn the_oldest_are_dropped_and_counted() {
        let place = tempfile::tempdir().unwrap();
        let spool = Spool::open(place.path()).unwrap();
        recording(&spool, "day=2026-11-02/host=a/000000", 10);
        recording(&spool, "day=2026-11-01/host=a/235000", 10);
        recording(&spool, "day=2026-11-02/host=a/001000", 10);
        assert_eq!(spool.limit(30).unwrap(), 0);
        assert_eq!(spool.limit(20).unwrap(), 1);
        let left = spool.waiting().unwrap();
        assert_eq!(left[0].place, Path::new("day=2026-11-02/host=a/000000"));
        assert!(!place.path().join("day=2026-11-01").exists());
        assert_eq!(spool.limit(0).unwrap(), 2);
        assert_eq!(spool.dropped(), 3);
        spool.reported(2).unwrap();
        drop(spool);
        assert_eq!(Spool::open(place.path()).unwrap().dropped(), 1);
    }

    #[test]
    fn what_waits_is_sent_once_and_only_to_a_folder_that_is_there() {
        let (place, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let spool = Spool::open(place.path()).unwrap();
        recording(&spool, "day=2026-11-01/host=a/1", 10);
        recording(&spool, "day=2026-11-01/host=a/2", 10);
        let away = target.path().join("away");
        assert!(spool.send(&away).is_err() && !away.exists());
        // A copy from before a kill, and one that did not become complete.
        copy(
            &place.path().join("day=2026-11-01/host=a/1"),
            &target.path().join("day=2026-11-01/host=a/1"),
        )
        .unwrap();
        let partial = target.path().join("day=2026-11-01/host=a/.partial-2");
        fs::create_dir_all(&partial).unwrap();
        fs::write(partial.join("runs.parquet"), "half").unwrap();
        assert_eq!(spool.send(target.path()).unwrap(), 2);
        assert!(spool.waiting().unwrap().is_empty());
        let host = target.path().join("day=2026-11-01/host=a");
        assert_eq!(fs::read_dir(&host).unwrap().count(), 2);
        assert_eq!(fs::read(host.join("2/runs.parquet")).unwrap(), [1; 10]);
    }

    #[test]
    fn a_spool_belongs_to_one_process() {
        let place = tempfile::tempdir().unwrap();
        let first = Spool::open(place.path()).unwrap();
        let made = first.next("x");
        fs::create_dir_all(&made).unwrap();
        let refused = Spool::open(place.path()).err().unwrap().to_string();
        assert!(
            refused.contains("another process") && made.exists(),
            "{refused}"
        );
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let left = Spool::open(place.path()).unwrap().next("x");
        fs::create_dir_all(&left).unwrap();
        let spool = Spool::open(place.path()).unwrap();
        assert!(!left.exists() && spool.waiting().unwrap().is_empty());
    }
}
