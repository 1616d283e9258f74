//! What the kernel keeps of files in memory.

use pagewise_model::units::Nanos;
use rustix::fs::{Advice, Mode, OFlags, fadvise, fdatasync, open};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Writes back what of the file at `path` is dirty and takes its pages out of memory, but those that
/// a process has mapped (`posix_fadvise(2)`): whoever reads it next reads it from its disk.
///
/// # Errors
/// The kernel's: whoever may not read a file cannot evict it. What is no regular file has no pages.
pub fn evict(path: &Path) -> io::Result<()> {
    // Opening a pipe would wait for its other end.
    if !path.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = File::open(path)?;
    fdatasync(&file)?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

/// A page that a disk can write to.
#[repr(align(4096))]
struct Page([u8; PAGE]);
const PAGE: usize = 4096;
/// Pages that are read to know what a read takes, at most, and the time that it may take.
const READS: usize = 48;
const LONGEST: Duration = Duration::from_millis(100);
/// Fewer of them tell nothing.
const FEWEST: usize = 8;

/// What reading a single page of the file at `path` from its disk takes, past the page cache
/// (`open(2)`, `O_DIRECT`): the lower quartile of pages in many places, since what else the machine does
/// comes on top. `None` where the file can't be read so.
#[must_use]
pub fn page_read(path: &Path) -> Option<Nanos> {
    let metadata = path.metadata().ok()?;
    let pages = metadata.len() / PAGE as u64;
    if !metadata.is_file() || pages < READS as u64 {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    let mut page = Box::new(Page([0; PAGE]));
    let mut times = Vec::new();
    let began = Instant::now();
    let (parts, part) = (READS as u64, pages / READS as u64);
    for place in 0..parts {
        // Neither in order nor at equal distances: no device foresees what comes next.
        let (here, within) = (place * STRIDE % parts, place * place % part);
        let read = Instant::now();
        file.read_exact_at(&mut page.0, (here * part + within) * PAGE as u64)
            .ok()?;
        times.push(read.elapsed());
        if began.elapsed() > LONGEST {
            break;
        }
    }
    times.sort_unstable();
    let quartile = times.get(times.len() / 4).filter(|_| times.len() >= FEWEST);
    quartile.map(|time| Nanos::from_secs_f64(time.as_secs_f64()))
}

/// Has no factor in common with [`READS`].
const STRIDE: u64 = 29;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_from_the_disk_and_what_is_none_is_not() {
        assert_eq!(page_read(Path::new("/dev/null")), None);
        // It is on a disk, as /tmp need not be (hier(7): it outlives a reboot).
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        assert_eq!(page_read(file.path()), None, "it is empty");
        std::fs::write(file.path(), vec![1; 4 << 20]).unwrap();
        file.as_file().sync_all().unwrap();
        match page_read(file.path()) {
            Some(time) => assert!((Nanos(200)..Nanos(1_000_000_000)).contains(&time), "{time}"),
            None => skipped!("this file system reads nothing past its cache"),
        }
    }

    #[test]
    fn what_has_no_pages_is_refused() {
        assert!(evict(Path::new("/dev/null")).is_err());
        assert!(evict(Path::new("/no/such/file")).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "kept").unwrap();
        evict(file.path()).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"kept");
    }
}
