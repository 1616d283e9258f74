//! Pages of files that the kernel keeps in memory.

use crate::sys::machine;
use pagewise_model::units::Nanos;
use rustix::fs::{Advice, Mode, OFlags, fadvise, fdatasync, open};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Writes back the dirty pages of the file at `path` and evicts its pages from memory, except those
/// that a process has mapped (`posix_fadvise(2)`): the next reader has to read them from disk.
///
/// # Errors
/// The kernel's: a file that we may not read cannot be evicted. Only regular files have pages.
pub fn evict(path: &Path) -> io::Result<()> {
    // Opening a pipe would wait for its other end.
    if !path.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = File::open(path)?;
    fdatasync(&file)?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

/// Alignment for direct I/O: the largest base page of any machine.
#[repr(align(65536))]
struct Page([u8; LARGEST_PAGE]);
const LARGEST_PAGE: usize = 1 << 16;
/// Most pages read to measure a page read, and the time limit for all of them.
const READS: usize = 48;
const LONGEST: Duration = Duration::from_millis(100);
/// Fewer reads than this are not enough to decide.
const FEWEST: usize = 8;

/// Time to read a single page of the file at `path` from its disk, bypassing the page cache
/// (`open(2)`, `O_DIRECT`): the lower quartile over pages in many places, since other activity of
/// the machine only adds to it. `None` if the file cannot be read this way.
#[must_use]
pub fn page_read(path: &Path) -> Option<Nanos> {
    let metadata = path.metadata().ok()?;
    let size = machine::page_size().min(LARGEST_PAGE as u64);
    let pages = metadata.len() / size;
    if !metadata.is_file() || pages < READS as u64 {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    let mut buffer = Box::new(Page([0; LARGEST_PAGE]));
    let page = buffer.0.get_mut(..usize::try_from(size).ok()?)?;
    let mut times = Vec::new();
    let began = Instant::now();
    let (parts, part) = (READS as u64, pages / READS as u64);
    for place in 0..parts {
        // Neither in order nor at equal distances, so that no device can predict the next read.
        let (here, within) = (place * STRIDE % parts, place * place % part);
        let read = Instant::now();
        file.read_exact_at(page, (here * part + within) * size)
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
        // Must be on a disk; /tmp may not be, but /var/tmp survives a reboot (hier(7)).
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
