//! Disk space kept in reserve, so that a recording that fills the disk can still be completed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::Path;

/// Enough for the sections after the records: formats, timeline, host settings.
const SIZE: usize = 2 << 20;

/// Less is of no use.
const LEAST: usize = 32 << 10;

/// An unnamed file next to the recording. Dropping it frees its space.
#[derive(Debug)]
pub(super) struct Ballast(File);

impl Ballast {
    /// Reserves space in the folder of `recording`, where there is little no more than half of it.
    /// `None` if that fails (no space, no right to create files there): the recording then goes
    /// without.
    pub fn beside(recording: &Path) -> Option<Self> {
        Self::take(recording).ok()
    }

    fn take(recording: &Path) -> io::Result<Self> {
        let folder = match recording.parent() {
            // A recording without a name: use the folder for temporary files.
            Some(folder) if folder.starts_with("/proc") => &std::env::temp_dir(),
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let name = folder.join(format!(".pagewise-room-{}", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&name)?;
        fs::remove_file(&name)?;
        // Allocated or written, not only sized: a sparse file reserves no space.
        if allocate(&file, SIZE).is_err() && file.write_all(&vec![0; SIZE]).is_err() {
            let free = file.metadata()?.len();
            let half = usize::try_from(free / 2).unwrap_or(0).min(SIZE);
            file.set_len(0)?;
            if half < LEAST {
                return Err(io::ErrorKind::StorageFull.into());
            }
            file.rewind()?;
            file.write_all(&vec![0; half])?;
        }
        Ok(Self(file))
    }
}

/// Has the file system reserve space, which not all of them can (fallocate(2)).
fn allocate(file: &File, bytes: usize) -> io::Result<()> {
    let flags = rustix::fs::FallocateFlags::empty();
    Ok(rustix::fs::fallocate(file, flags, 0, bytes as u64)?)
}

impl Drop for Ballast {
    fn drop(&mut self) {
        // Closing frees the space; truncating first does so even if a backup has the file open.
        let _ = self.0.set_len(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leaves_no_name_behind() {
        let folder = tempfile::tempdir().unwrap();
        let ballast = Ballast::beside(&folder.path().join("perf.data")).unwrap();
        assert_eq!(ballast.0.metadata().unwrap().len(), SIZE as u64);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_gives_none() {
        assert!(Ballast::beside(Path::new("/no/such/folder/perf.data")).is_none());
    }
}
