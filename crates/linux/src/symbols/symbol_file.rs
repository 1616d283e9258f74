//! The one opening of files that a recording names.
//!
//! A recording is not trusted, and neither is whoever can replace a file that was mapped: a pipe
//! would block its reader for ever, and the mere opening of a device can have effects. So a path is
//! looked up without opening what it leads to (`O_PATH`), and only a regular file of a plausible
//! size on a real file system is opened, through the descriptor that was checked.

use crate::proc::ProcRoot;
use crate::regular_file;
use crate::sys::mapped_file::MappedFile;
use pagewise_model::address_space::FileId;
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Largest file in bytes: debug information of the largest programs (Chromium) has 5 GiB.
const LARGEST: u64 = 8 << 30;

/// `f_type` of file systems whose files are no data on a disk: reading them blocks, consumes what
/// others want to read, or asks the kernel to do something (include/uapi/linux/magic.h).
const PSEUDO_FILE_SYSTEMS: [i64; 11] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x27_e0eb,   // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0x6165_676c, // pstore
    0x1980_0202, // mqueue
];
/// `f_type` of file systems of which `stat(2)` shows other devices, or other inodes, than mappings.
const OTHER_NUMBERS: [i64; 2] = [
    0x794c_7630, // overlayfs
    0x9123_683e, // btrfs
];

/// What a file must be, to be the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity<'a> {
    /// Has this build id.
    BuildId(&'a [u8]),
    /// Has this device and inode.
    File(FileId),
    /// Nothing was recorded, so no file is known to be it.
    Unknown,
    /// Any: it is compared later, or was found by its build id.
    Any,
}

/// Why a file was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is missing, or may not be read.
    Missing,
    /// It is there, but not the recorded one.
    OtherFile,
    /// It can be no program, whatever was recorded.
    NoProgram(&'static str),
}

/// A regular file, open and mapped.
#[derive(Debug)]
pub(super) struct SymbolFile {
    file: File,
    bytes: MappedFile,
}

impl SymbolFile {
    /// Opens the file at `path` if it is what was recorded.
    pub fn open(path: &Path, identity: Identity<'_>) -> Result<Self, Refused> {
        // Not even looked up by a descriptor if it is of the wrong kind.
        check_kind(&path.metadata().map_err(|_| Refused::Missing)?)?;
        let place = regular_file::place(path).ok_or(Refused::Missing)?;
        let found = place.metadata().map_err(|_| Refused::Missing)?;
        check_kind(&found)?;
        let file_system = rustix::fs::fstatfs(&place).map_err(|_| Refused::Missing)?;
        #[allow(
            clippy::unnecessary_cast,
            reason = "its type differs between architectures"
        )]
        let file_system = file_system.f_type as i64;
        if PSEUDO_FILE_SYSTEMS.contains(&file_system) {
            return Err(Refused::NoProgram("is not on a disk"));
        }
        let is_same = match identity {
            Identity::Unknown => return Err(Refused::OtherFile),
            Identity::File(wanted) => shown(&found) == wanted,
            Identity::BuildId(_) | Identity::Any => true,
        };
        if !is_same && !OTHER_NUMBERS.contains(&file_system) {
            return Err(Refused::OtherFile);
        }
        let file = regular_file::reopened(&place).ok_or(Refused::Missing)?;
        let bytes = MappedFile::map(&file).map_err(|_| Refused::Missing)?;
        let opened = Self { file, bytes };
        let is_same = match identity {
            Identity::File(wanted) => is_same || opened.mapped_as() == Some(wanted),
            Identity::BuildId(wanted) => opened.has_build_id(wanted),
            Identity::Unknown | Identity::Any => true,
        };
        match is_same {
            true => Ok(opened),
            false => Err(Refused::OtherFile),
        }
    }

    /// Opens the file at `path` if it is the one of a mapping with this build id, or if that is not
    /// known, this device and inode.
    pub fn recorded(
        path: &Path,
        build_id: Option<&[u8]>,
        file: Option<FileId>,
    ) -> Result<Self, Refused> {
        let identity = match (build_id, file) {
            (Some(id), _) => Identity::BuildId(id),
            (None, Some(file)) => Identity::File(file),
            (None, None) => Identity::Unknown,
        };
        Self::open(path, identity)
    }

    /// A path by which the same open file is opened again, wherever its own path leads meanwhile.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// Its content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its content, once nothing more is asked of the file itself.
    pub fn into_bytes(self) -> MappedFile {
        self.bytes
    }

    /// Advises the kernel that what was read no longer counts as our memory.
    pub fn release(&self) {
        self.bytes.release(usize::MAX);
    }

    /// Whether its build id is, or begins with, the recorded one.
    pub fn has_build_id(&self, recorded: &[u8]) -> bool {
        names_a_file(recorded) && self.build_id().is_some_and(|id| id.starts_with(recorded))
    }

    /// Its build id, if it is an ELF file that has one.
    pub fn build_id(&self) -> Option<Vec<u8>> {
        let id = blazesym::helper::read_elf_build_id(&self.path());
        id.ok().flatten().map(Into::into)
    }

    /// Bytes that it takes on the disk.
    pub fn allocated(&self) -> u64 {
        /// Unit of `st_blocks`, whatever the file system's own (stat(2)).
        const BLOCK: u64 = 512;
        let found = self.file.metadata();
        found.map_or(0, |found| found.blocks().saturating_mul(BLOCK))
    }

    /// Whether root owns it.
    pub fn is_of_root(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.uid() == 0)
    }

    /// Device and inode as a mapping of it shows them.
    fn mapped_as(&self) -> Option<FileId> {
        let address = self.bytes.as_ptr() as usize as u64;
        let own = i32::try_from(std::process::id()).ok()?;
        let maps = ProcRoot::default().maps(own).ok()??;
        let entry = maps.into_iter().find(|entry| entry.contains(address))?;
        Some(FileId {
            device: entry.device,
            inode: entry.inode,
        })
    }
}

/// Whether this is a build id: the recorder writes zeros where the mapped file had been replaced.
pub(super) fn names_a_file(build_id: &[u8]) -> bool {
    build_id.iter().any(|&byte| byte != 0)
}

fn check_kind(found: &Metadata) -> Result<(), Refused> {
    let refused = |why| Err(Refused::NoProgram(why));
    match found.len() {
        _ if found.is_dir() => refused("is a folder"),
        _ if !found.is_file() => refused("is not a regular file"),
        0 => refused("is empty"),
        size if size > LARGEST => refused("is larger than 8 GiB"),
        _ => Ok(()),
    }
}

fn shown(found: &Metadata) -> FileId {
    FileId {
        device: (
            rustix::fs::major(found.dev()),
            rustix::fs::minor(found.dev()),
        ),
        inode: found.ino(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    fn opened(path: &Path, identity: Identity<'_>) -> Result<(), Refused> {
        SymbolFile::open(path, identity).map(drop)
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, socket, file, around, empty, huge] =
            ["pipe", "socket", "file", "loop", "empty", "huge"]
                .map(|name| folder.path().join(name));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let _listener = UnixListener::bind(&socket).unwrap();
        std::fs::write(&file, "text").unwrap();
        std::fs::write(&empty, "").unwrap();
        File::create(&huge).unwrap().set_len(1 << 40).unwrap();
        symlink(&around, &around).unwrap();
        let other = Err(Refused::NoProgram("is not a regular file"));
        assert_eq!(opened(&pipe, Identity::Any), other);
        assert_eq!(opened(&socket, Identity::Any), other);
        assert_eq!(opened(Path::new("/dev/zero"), Identity::Any), other);
        for (path, why) in [
            (folder.path(), "is a folder"),
            (&empty, "is empty"),
            (&huge, "is larger than 8 GiB"),
        ] {
            assert_eq!(opened(path, Identity::Any), Err(Refused::NoProgram(why)));
        }
        assert_eq!(opened(&around, Identity::Any), Err(Refused::Missing));
        assert_eq!(opened(&file, Identity::Any), Ok(()));
        // The kernel's files have no size, or are on no disk.
        for path in ["/proc/kmsg", "/proc/self/mem", "/sys/kernel/vmcoreinfo"] {
            assert!(opened(Path::new(path), Identity::Any).is_err(), "{path}");
        }
    }

    #[test]
    fn without_a_build_id_device_and_inode_must_agree() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other] = ["file", "other"].map(|name| folder.path().join(name));
        std::fs::write(&file, "text").unwrap();
        std::fs::write(&other, "text").unwrap();
        let id = |path: &Path| {
            let mapped = SymbolFile::open(path, Identity::Any).unwrap().mapped_as();
            Identity::File(mapped.expect("it is mapped"))
        };
        assert_eq!(opened(&file, id(&file)), Ok(()));
        assert_eq!(opened(&file, id(&other)), Err(Refused::OtherFile));
        assert_eq!(opened(&file, Identity::Unknown), Err(Refused::OtherFile));
    }
}
