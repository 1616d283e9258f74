//! Build ids in mapping records.
//!
//! The kernel would write them (`attr.build_id`, Linux 5.12), but then it harms other observers:
//! `perf_event_mmap_output()` (kernel/events/core.c, 5.12 to 6.18) marks the record as one with a
//! build id for all events that come after the first that asked for it. Those get a device and an
//! inode under that mark, and perf record 6.1 dies of it. So nothing is asked of the kernel here:
//! the ids are read from the mapped files when the records are written.

use super::record_bytes::{MISC_MMAP_DATA, kind, next_record, word32, word64};
use crate::proc::ProcRoot;
use crate::regular_file;
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `PERF_RECORD_MISC_MMAP_BUILD_ID`.
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;

/// Where the parts of a `PERF_RECORD_MMAP2` are, in bytes.
mod at {
    pub const MISC: usize = 4;
    pub const PID: usize = 8;
    pub const START: usize = 16;
    pub const LENGTH: usize = 24;
    /// Major and minor number, inode and its generation; or size, three bytes of zeros and build id.
    pub const FILE: usize = 40;
    pub const INODE: usize = 48;
    pub const GENERATION: usize = 56;
    pub const PROTECTION: usize = 64;
    pub const PATH: usize = 72;
}

/// Longest build id of a record, in bytes.
const LONGEST: usize = 20;

/// A file as a mapping record names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    device: u64,
    inode: u64,
    generation: u64,
}

/// Puts build ids into records. Each file is read once.
#[derive(Debug, Default)]
pub(super) struct BuildIds {
    proc: ProcRoot,
    known: FxHashMap<Identity, Option<Vec<u8>>>,
}

impl BuildIds {
    /// Replaces device and inode by the build id in each record of mapped code whose file has one.
    pub fn fill(&mut self, mut records: &mut [u8]) {
        while let Some((record, _)) = next_record(records) {
            let size = record.len();
            let is_mapping = word32(record, 0) == kind::MMAP2 && size > at::PATH;
            if is_mapping {
                self.fill_one(&mut records[..size]);
            }
            records = &mut records[size..];
        }
    }

    fn fill_one(&mut self, record: &mut [u8]) {
        let misc = u16::from_le_bytes([record[at::MISC], record[at::MISC + 1]]);
        let device = rustix::fs::makedev(word32(record, at::FILE), word32(record, at::FILE + 4));
        let identity = Identity {
            device,
            inode: word64(record, at::INODE),
            generation: word64(record, at::GENERATION),
        };
        let is_code = misc & MISC_MMAP_DATA == 0 && record[at::PATH] == b'/';
        let id = match is_code && identity.inode != 0 {
            true => self.of_file(identity, record),
            false => None,
        };
        // Another observer may have asked for build ids, and the mark be here by mistake.
        let mut misc = misc & !MISC_MMAP_BUILD_ID;
        if let Some(id) = id {
            misc |= MISC_MMAP_BUILD_ID;
            let place = &mut record[at::FILE..at::PROTECTION];
            place.fill(0);
            place[0] = id.len().to_le_bytes()[0];
            place[4..4 + id.len()].copy_from_slice(id);
        }
        record[at::MISC..at::MISC + 2].copy_from_slice(&misc.to_le_bytes());
    }

    fn of_file(&mut self, identity: Identity, record: &[u8]) -> Option<&[u8]> {
        let proc = &self.proc;
        let known = self.known.entry(identity);
        let id = known.or_insert_with(|| read(identity, record, proc));
        id.as_deref()
    }
}

/// The build id of the file that a record is about. Zeros, which no file has, if another file is
/// in its place: what names its code would be wrong.
fn read(identity: Identity, record: &[u8], proc: &ProcRoot) -> Option<Vec<u8>> {
    let mut is_replaced = false;
    for place in places(record, proc) {
        // The program may have put a pipe or a terminal there meanwhile.
        let Some(file) = regular_file::open(&place) else {
            continue;
        };
        match compared(identity, &file) {
            Compared::Other => is_replaced = true,
            Compared::Same | Compared::Unclear => return of_elf(&file),
        }
    }
    is_replaced.then(|| vec![0; LONGEST])
}

fn of_elf(file: &File) -> Option<Vec<u8>> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    let id = blazesym::helper::read_elf_build_id(&open).ok()??;
    let mut id = id.into_owned();
    id.truncate(LONGEST);
    Some(id)
}

/// Where the file may be opened: as the mapping itself, by its path in the process's view of the
/// file system, by its path in ours.
fn places(record: &[u8], proc: &ProcRoot) -> [PathBuf; 3] {
    let pid = word32(record, at::PID).cast_signed();
    let start = word64(record, at::START);
    let end = start.saturating_add(word64(record, at::LENGTH));
    let path = record[at::PATH..].split(|&byte| byte == 0).next();
    let path = Path::new(OsStr::from_bytes(path.unwrap_or_default()));
    let relative = path.strip_prefix("/").unwrap_or(path);
    [
        proc.process_path(pid, &format!("map_files/{start:x}-{end:x}")),
        proc.process_path(pid, "root").join(relative),
        path.to_owned(),
    ]
}

enum Compared {
    Same,
    /// Another file of the same file system.
    Other,
    /// Files of layered file systems show other devices and inodes than their mappings.
    Unclear,
}

fn compared(identity: Identity, file: &File) -> Compared {
    let Ok(found) = file.metadata() else {
        return Compared::Unclear;
    };
    match (
        found.dev() == identity.device,
        found.ino() == identity.inode,
    ) {
        (true, true) => Compared::Same,
        (true, false) => Compared::Other,
        (false, _) => Compared::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_formats::perf_data::synthesise::{self, MapsLine, SampleId};

    /// A record of this process's mapping of `path`, as if its file were that of `like`.
    fn record(path: &Path, like: &Path) -> Vec<u8> {
        let file = like.metadata().expect("a file");
        let of = SampleId {
            pid: std::process::id().cast_signed(),
            ..SampleId::default()
        };
        let line = MapsLine {
            start: 0x1000,
            length: 0x1000,
            file_offset: 0,
            major: rustix::fs::major(file.dev()),
            minor: rustix::fs::minor(file.dev()),
            inode: file.ino(),
            protection: 5,
            flags: 2,
            path: path.as_os_str().as_bytes(),
        };
        synthesise::mmap2(&line, &of).expect("a record")
    }

    fn filled(records: &[Vec<u8>]) -> Vec<u8> {
        let mut all = records.concat();
        BuildIds::default().fill(&mut all);
        all
    }

    fn id_of(record: &[u8]) -> Option<&[u8]> {
        let misc = u16::from_le_bytes([record[4], record[5]]);
        let size = usize::from(record[at::FILE]);
        let is_marked = misc & MISC_MMAP_BUILD_ID != 0;
        is_marked.then(|| &record[at::FILE + 4..][..size.min(LONGEST)])
    }

    #[test]
    fn mapped_code_gets_the_build_id_of_its_file() {
        let program = std::env::current_exe().expect("this test");
        let expected = blazesym::helper::read_elf_build_id(&program).expect("an ELF file");
        let expected = expected.expect("linkers of test programs write build ids");
        let one = record(&program, &program);
        let size = one.len();
        let all = filled(&[one.clone(), one]);
        for record in all.chunks(size) {
            assert_eq!(id_of(record), Some(&*expected));
        }
    }

    #[test]
    fn what_is_no_file_or_no_program_gets_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("text");
        std::fs::write(&text, "no program").expect("written");
        for path in [Path::new("//anon"), Path::new("[vdso]"), &text] {
            let all = filled(&[record(path, &text)]);
            assert_eq!(id_of(&all), None, "{}", path.display());
        }
    }

    #[test]
    fn a_file_that_was_replaced_gets_an_id_that_none_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        let program = std::env::current_exe().expect("this test");
        for file in [&old, &new] {
            std::fs::copy(&program, file).expect("copied");
        }
        let all = filled(&[record(&new, &old)]);
        assert_eq!(id_of(&all), Some(&[0; LONGEST][..]));
    }

    #[test]
    fn a_mark_that_another_observer_caused_is_taken_off() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("text");
        std::fs::write(&text, "no program").expect("written");
        let mut marked = record(&text, &text);
        marked[5] |= 1 << 6;
        assert!(id_of(&marked).is_some());
        assert_eq!(id_of(&filled(&[marked])), None);
    }
}
