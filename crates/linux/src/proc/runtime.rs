//! What kind of program a file is, as far as a preloaded library cares.

use super::elf::Elf;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Why a preloaded library would be without effect, or do harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// No dynamic linker starts it.
    Static,
    /// The Go runtime maps its memory by system calls of its own.
    Go,
    /// A sanitizer's runtime, by its name.
    Sanitizer(&'static str),
    /// Compiled for another word size.
    OtherWordSize,
    /// It runs with the rights of its owner (set-user-ID), so the linker ignores preloading.
    Privileged,
}

/// Symbols that tell a sanitizer.
const SANITIZERS: [(&str, &str); 3] = [
    ("__asan_init", "AddressSanitizer"),
    ("__tsan_init", "ThreadSanitizer"),
    ("__msan_init", "MemorySanitizer"),
];

/// What stands in the way of preloading into the program at `path`; `None` also for what is no ELF
/// file, such as a script, whose interpreter decides.
#[must_use]
pub fn obstacle(path: &Path) -> Option<Obstacle> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let mut head = [0_u8; 5];
    let mut file = File::open(path).ok()?;
    file.read_exact(&mut head).ok()?;
    if &head[..4] != b"\x7fELF" {
        return None;
    }
    if head[4] != 2 {
        return Some(Obstacle::OtherWordSize);
    }
    let metadata = file.metadata().ok()?;
    let own = std::fs::metadata("/proc/self").ok()?.uid();
    if metadata.permissions().mode() & 0o4000 != 0 && metadata.uid() != own {
        return Some(Obstacle::Privileged);
    }
    let elf = Elf::open(path)?;
    if elf.section(".note.go.buildid").is_some() {
        return Some(Obstacle::Go);
    }
    if !elf.has_interpreter() {
        return Some(Obstacle::Static);
    }
    let strings = elf.section(".dynstr").unwrap_or_default();
    SANITIZERS
        .into_iter()
        .find(|(symbol, _)| memchr::memmem::find(&strings, symbol.as_bytes()).is_some())
        .map(|(_, name)| Obstacle::Sanitizer(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_and_a_script_are_no_obstacle() {
        let own = std::env::current_exe().expect("a test has a file");
        assert_eq!(obstacle(&own), None);
        assert_eq!(obstacle(Path::new("/etc/passwd")), None);
    }
}
