//! Which kernel was recorded, and whether it is the one that runs.

use object::NativeEndian;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::NoteIterator;
use std::path::Path;

/// What identifies a kernel, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelIdentity {
    /// Its build id; empty where not known.
    pub build_id: Vec<u8>,
    /// `uname -r`; empty where not known. It counts where the build id is not known: two builds may
    /// have the same.
    pub release: String,
}

impl KernelIdentity {
    /// Whether this kernel runs on the machine with this root directory.
    pub(super) fn is_running(&self, root: &Path) -> bool {
        self.is(&Self::running(root))
    }

    fn running(root: &Path) -> Self {
        let notes = std::fs::read(root.join("sys/kernel/notes")).unwrap_or_default();
        let release = std::fs::read_to_string(root.join("proc/sys/kernel/osrelease"));
        Self {
            build_id: build_id(&notes).unwrap_or_default().to_vec(),
            release: release.unwrap_or_default().trim_end().to_owned(),
        }
    }

    fn is(&self, running: &Self) -> bool {
        match (&*self.build_id, &*running.build_id) {
            ([], _) | (_, []) => !self.release.is_empty() && self.release == running.release,
            // perf stores no more than 20 bytes.
            (recorded, running) => running.starts_with(recorded),
        }
    }
}

/// The build id among the notes of a kernel.
fn build_id(notes: &[u8]) -> Option<&[u8]> {
    let mut notes = NoteIterator::<FileHeader64<NativeEndian>>::new(NativeEndian, 4, notes).ok()?;
    while let Some(note) = notes.next().ok()? {
        if note.name() == ELF_NOTE_GNU && note.n_type(NativeEndian) == NT_GNU_BUILD_ID {
            return Some(note.desc());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(build_id: &[u8], release: &str) -> KernelIdentity {
        KernelIdentity {
            build_id: build_id.to_vec(),
            release: release.to_owned(),
        }
    }

    #[test]
    fn the_build_id_decides_and_else_the_release() {
        let running = kernel(&[1, 2, 3], "6.18.0");
        assert!(kernel(&[1, 2, 3], "6.1.0").is(&running));
        assert!(!kernel(&[1, 2, 4], "6.18.0").is(&running));
        assert!(kernel(&[], "6.18.0").is(&running));
        assert!(!kernel(&[], "6.1.0").is(&running));
        assert!(!kernel(&[], "").is(&running));
        assert!(!kernel(&[], "").is(&kernel(&[], "")));
        assert!(kernel(&[9], "6.18.0").is(&kernel(&[], "6.18.0")));
    }

    #[test]
    fn the_running_kernel_names_itself() {
        let words = [4_u32, 1, 9, 4, 2, 3].map(u32::to_ne_bytes);
        let [a, b, c, d, e, f] = words;
        let other = [a, b, c, *b"Xen\0", *b"\x01\0\0\0"].concat();
        let own = [d, e, f, *b"GNU\0", *b"\xab\xcd\0\0"].concat();
        let notes = [other, own].concat();
        assert_eq!(build_id(&notes), Some(&[0xab, 0xcd][..]));
        assert_eq!(build_id(&notes[..20]), None);
        assert_eq!(build_id(&notes[..30]), None);
    }
}
