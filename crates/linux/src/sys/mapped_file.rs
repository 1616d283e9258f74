//! Files as memory, for formats that are read without copying.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};

/// A file mapped for reading.
///
/// If another process shortens the file meanwhile, touching the lost part ends this process by
/// `SIGBUS`; a recording is never shortened by a recorder, only extended or replaced.
#[derive(Debug)]
pub struct MappedFile {
    map: memmap2::Mmap,
}

/// Whether code in `file` may be executed: not if its file system is mounted `noexec`.
///
/// # Errors
/// The kernel's refusal.
pub fn check_executable(file: &File) -> io::Result<()> {
    // SAFETY: the mapping is not read, and is unmapped at once.
    unsafe { memmap2::MmapOptions::new().len(1).map_exec(file) }.map(drop)
}

impl MappedFile {
    /// Maps a whole regular file as it is now.
    ///
    /// # Errors
    /// The kernel's error, if the file cannot be mapped (pipes, some special files).
    pub fn map(file: &File) -> io::Result<Self> {
        // SAFETY: the mapping is read-only and shared, and is only handed out as a `&[u8]` that
        // lives no longer than the mapping. Bytes that change meanwhile would be a data race in
        // theory; all readers of such slices read each byte by value and check every length, so
        // they see wrong numbers at worst. For shortening, see above.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Self { map })
    }

    /// Advises the kernel that these bytes will be read next, so that they are mapped at once
    /// instead of by a fault for every few pages. Kernels before 5.14 cannot; reading still works.
    pub fn expect(&self, bytes: Range<usize>) {
        let end = bytes.end.min(self.map.len());
        let start = bytes.start.min(end);
        let advice = memmap2::Advice::PopulateRead;
        drop(self.map.advise_range(advice, start, end - start));
    }

    /// Advises the kernel that the first `bytes` are no longer needed in memory. They can still be
    /// read, again from the file. Without this, the whole size of a large file counts as resident
    /// memory after a pass over it.
    pub fn release(&self, bytes: usize) {
        let bytes = bytes.min(self.map.len());
        // SAFETY: MADV_DONTNEED on a shared read-only mapping of a file only drops page table
        // entries; the next access reads the same bytes from the page cache or the file, so no
        // slice that was handed out changes.
        let advised = unsafe {
            self.map
                .unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, 0, bytes)
        };
        // Only advice: if it fails, more memory counts as ours.
        drop(advised);
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn released_bytes_can_still_be_read() {
        let mut file = tempfile::tempfile().expect("temporary file");
        let bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
        file.write_all(&bytes).expect("temporary file");
        let mapped = MappedFile::map(&file).expect("a regular file");
        assert!(*mapped == bytes[..]);
        mapped.release(usize::MAX);
        assert!(*mapped == bytes[..]);
    }

    #[test]
    fn an_empty_file_is_empty_memory() {
        let file = tempfile::tempfile().expect("temporary file");
        assert!(MappedFile::map(&file).expect("a regular file").is_empty());
    }
}
