//! What the kernel keeps of files in memory.

use rustix::fs::{Advice, fadvise, fdatasync};
use std::fs::File;
use std::io;
use std::path::Path;

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

#[cfg(test)]
mod tests {
    use super::*;

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
