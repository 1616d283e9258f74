//! This program's own code, which need not be in its memory while it waits.

use crate::proc::{ProcRoot, SmapsEntry};
use std::os::unix::fs::MetadataExt;

/// Takes the code and constants of this program's file out of its memory. They stay in the page cache, and
/// come back, a few pages at a time, as they are used. Where that cannot be done, nothing happens: it only
/// saves memory.
pub fn release() {
    let own = i32::try_from(std::process::id());
    let (Ok(own), Ok(file)) = (own, std::fs::metadata("/proc/self/exe")) else {
        return;
    };
    let Ok(Some(mappings)) = ProcRoot::default().smaps(own) else {
        return;
    };
    for one in mappings.iter().filter(|one| is_unchanged(one, file.ino())) {
        let mapping = &one.entry.mapping;
        let (Ok(start), Ok(bytes)) = (
            usize::try_from(mapping.start),
            usize::try_from(mapping.end - mapping.start),
        ) else {
            continue;
        };
        // SAFETY: the mapping of this program's file lives as long as the process, and none of its pages
        // differs from the file, nor can it be written to: each comes back as it is.
        unsafe { libc::madvise(start as *mut libc::c_void, bytes, libc::MADV_DONTNEED) };
    }
}

/// Whether `one` maps the file with this inode, cannot be written to, and never was: what the dynamic
/// linker has relocated and then protected belongs to the process alone.
fn is_unchanged(one: &SmapsEntry, inode: u64) -> bool {
    let writable = one.entry.mapping.protection & libc::PROT_WRITE.cast_unsigned() != 0;
    let residency = &one.residency;
    let own = [residency.anonymous, residency.private_dirty, residency.swap];
    let is_plain = !writable && own.iter().all(|bytes| bytes.0 == 0);
    is_plain && one.entry.inode == inode && residency.locked.0 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_pages_that_the_file_has_are_released() {
        let mapping = |range, protection, anonymous, inode| {
            format!(
                "{range} {protection} 00000000 08:01 {inode} /bin/program\nRss: 40 kB\nAnonymous: {anonymous} kB\n"
            )
        };
        let text = [
            mapping("1000-2000", "r--p", 0, 7),
            mapping("2000-3000", "r-xp", 0, 7),
            mapping("3000-4000", "r--p", 8, 7),
            mapping("4000-5000", "rw-p", 0, 7),
            mapping("5000-6000", "r-xp", 0, 8),
        ];
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("9")).unwrap();
        fs::write(folder.path().join("9/smaps"), text.concat()).unwrap();
        let entries = ProcRoot::at(folder.path()).smaps(9).unwrap().unwrap();
        let released: Vec<u64> = entries
            .iter()
            .filter(|one| is_unchanged(one, 7))
            .map(|one| one.entry.mapping.start)
            .collect();
        assert_eq!(released, [0x1000, 0x2000]);
    }

    #[test]
    fn what_was_relocated_survives_a_release() {
        let relocated: &[&dyn Fn() -> u32] = &[&|| 40, &|| 2];
        release();
        assert_eq!(relocated.iter().map(|one| one()).sum::<u32>(), 42);
    }
}
