//! Where the debug information of a file is, if it is a file of its own: by build id below
//! `/usr/lib/debug`, or by the name and checksum in the file's `.gnu_debuglink`
//! (<https://sourceware.org/gdb/current/onlinedocs/gdb.html/Separate-Debug-Files.html>).

use super::symbol_file::{Identity, SymbolFile};
use object::Object;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where packages put debug information.
const FOLDERS: [&str; 2] = ["usr/lib/debug", "lib/debug"];
/// Sections that name other files, which the reader of debug information would open by itself.
const LINKS: [&str; 3] = [".gnu_debuglink", ".gnu_debugaltlink", ".debug_sup"];

/// What a file says about its debug information.
#[derive(Debug, Default)]
pub(super) struct Described {
    /// Whether the debug information is in the file itself.
    pub has_own: bool,
    /// Whether it names other files.
    pub names_others: bool,
    pub build_id: Option<Vec<u8>>,
    /// Name and checksum of the file with the debug information.
    link: Option<(Vec<u8>, u32)>,
}

impl Described {
    pub fn new(file: &SymbolFile) -> Self {
        let Ok(elf) = object::File::parse(file.bytes()) else {
            return Self::default();
        };
        let has = |name: &str| elf.section_by_name(name).is_some();
        let link = elf.gnu_debuglink().ok().flatten();
        Self {
            has_own: has(".debug_info") || has(".zdebug_info"),
            names_others: LINKS.into_iter().any(has),
            build_id: file.build_id(),
            link: link.map(|(name, checksum)| (name.to_vec(), checksum)),
        }
    }
}

/// The file with the debug information of `file`, below `root`.
pub(super) fn find(root: &Path, file: &SymbolFile, of: &Described) -> Option<SymbolFile> {
    let by_id = of.build_id.as_deref().and_then(|id| by_build_id(root, id));
    by_id.or_else(|| by_link(root, file, of))
}

/// Whether the other files that `file` names may be opened by whoever reads it: only those of
/// packages, in folders that root alone can change.
pub(super) fn may_follow_links(root: &Path, file: &SymbolFile) -> bool {
    let place = std::fs::read_link(file.path());
    let is_of_package = |place: PathBuf| {
        let mut folders = FOLDERS.into_iter();
        folders.any(|folder| place.starts_with(root.join(folder)))
    };
    file.is_of_root() && place.is_ok_and(is_of_package)
}

fn by_build_id(root: &Path, id: &[u8]) -> Option<SymbolFile> {
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let below = format!(".build-id/{first:02x}/{rest}.debug");
    let mut places = FOLDERS
        .map(|folder| root.join(folder).join(&below))
        .into_iter();
    places.find_map(|place| SymbolFile::open(&place, Identity::BuildId(id)).ok())
}

fn by_link(root: &Path, file: &SymbolFile, of: &Described) -> Option<SymbolFile> {
    let (name, checksum) = of.link.as_ref()?;
    // A name, never a path: it is part of what may be hostile.
    let name = Path::new(OsStr::from_bytes(name));
    let name = (name.file_name() == Some(name.as_os_str())).then_some(name)?;
    let own = std::fs::read_link(file.path()).ok()?;
    let folder = own.parent()?;
    let below = folder.strip_prefix("/").unwrap_or(folder);
    let beside = [folder.join(name), folder.join(".debug").join(name)];
    let of_packages = FOLDERS.map(|packages| root.join(packages).join(below).join(name));
    let mut places = beside.into_iter().chain(of_packages);
    places.find_map(|place| {
        let debug = SymbolFile::open(&place, Identity::Any).ok()?;
        let is_it = match (&of.build_id, debug.build_id()) {
            (Some(wanted), Some(found)) => *wanted == found,
            _ => crc32(debug.bytes()) == *checksum,
        };
        is_it.then_some(debug)
    })
}

/// The checksum of debug links: CRC-32 of IEEE 802.3, reflected.
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut table = [0_u32; 256];
    for (entry, byte) in table.iter_mut().zip(0_u32..) {
        *entry = (0..8).fold(byte, |rest, _| match rest & 1 {
            1 => (rest >> 1) ^ POLYNOMIAL,
            _ => rest >> 1,
        });
    }
    let step = |crc: u32, &byte: &u8| {
        let [low, ..] = crc.to_le_bytes();
        (crc >> 8) ^ table[usize::from(low ^ byte)]
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_debug_links() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
