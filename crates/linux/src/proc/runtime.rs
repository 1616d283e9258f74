//! Properties of a program file that matter for preloading a library.

use super::elf::Elf;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Why a preloaded library would have no effect, or do harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// It starts without a dynamic linker.
    Static,
    /// The Go runtime maps its memory by system calls of its own.
    Go,
    /// A sanitizer's runtime, by its name.
    Sanitizer(&'static str),
    /// Its dynamic linker is neither glibc's nor musl's.
    OtherLibc,
    /// Compiled for another word size.
    OtherWordSize,
    /// It runs with the rights of its owner (set-user-ID), so the linker ignores preloading.
    Privileged,
}

/// The libc whose dynamic linker starts a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Libc {
    /// `ld-linux-*.so`.
    Glibc,
    /// `ld-musl-*.so`.
    Musl,
}

/// Symbols that identify a sanitizer.
const SANITIZERS: [(&str, &str); 3] = [
    ("__asan_init", "AddressSanitizer"),
    ("__tsan_init", "ThreadSanitizer"),
    ("__msan_init", "MemorySanitizer"),
];

/// Interpreters of interpreters that the kernel follows (`exec_binprm`, Linux 6.18).
const MOST_SCRIPTS: usize = 5;
/// Bytes of a script's first line that the kernel reads.
const LINE_BYTES: usize = 256;

/// Obstacle to preloading into the program at `path` or, if that is a script, into its interpreter;
/// `None` also if it is neither.
#[must_use]
pub fn obstacle(path: &Path) -> Option<Obstacle> {
    obstacle_of_program(&without_scripts(path))
}

/// The libc of the program at `path` or, if that is a script, of its interpreter; `None` also if it
/// is neither.
#[must_use]
pub fn libc(path: &Path) -> Option<Libc> {
    libc_of(Elf::open(&without_scripts(path))?.interpreter()?)
}

/// The program that the kernel executes for `path`.
fn without_scripts(path: &Path) -> PathBuf {
    let mut program = path.to_owned();
    for _ in 0..MOST_SCRIPTS {
        match interpreter(&program) {
            Some(next) => program = next,
            None => break,
        }
    }
    program
}

/// The interpreter that a script names.
fn interpreter(path: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut line = Vec::new();
    let file = File::open(path).ok()?;
    file.take(LINE_BYTES as u64).read_to_end(&mut line).ok()?;
    let rest = line.strip_prefix(b"#!")?;
    let rest = rest.split(|byte| *byte == b'\n').next()?;
    let name = rest.trim_ascii_start();
    let name = name.split(u8::is_ascii_whitespace).next()?;
    (!name.is_empty()).then(|| PathBuf::from(std::ffi::OsStr::from_bytes(name)))
}

fn obstacle_of_program(path: &Path) -> Option<Obstacle> {
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
    match elf.interpreter() {
        None => return Some(Obstacle::Static),
        Some(linker) if libc_of(linker).is_none() => return Some(Obstacle::OtherLibc),
        Some(_) => {}
    }
    let strings = elf.section(".dynstr").unwrap_or_default();
    SANITIZERS
        .into_iter()
        .find(|(symbol, _)| memchr::memmem::find(&strings, symbol.as_bytes()).is_some())
        .map(|(_, name)| Obstacle::Sanitizer(name))
}

/// The libc that the dynamic linker at this path belongs to, in whatever folder.
fn libc_of(linker: &str) -> Option<Libc> {
    let name = linker.rsplit('/').next().unwrap_or_default();
    [("ld-linux", Libc::Glibc), ("ld-musl", Libc::Musl)]
        .into_iter()
        .find_map(|(start, libc)| name.starts_with(start).then_some(libc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_what_its_interpreter_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let [outer, inner, program] =
            ["outer", "inner", "program"].map(|name| folder.path().join(name));
        let write = |path: &Path, text: &[u8]| std::fs::write(path, text).expect("it is written");
        write(
            &outer,
            format!("#! {} -x\nrest", inner.display()).as_bytes(),
        );
        write(&inner, format!("#!{}\n", program.display()).as_bytes());
        // 32 bits.
        write(&program, b"\x7fELF\x01rest");
        assert_eq!(obstacle(&outer), Some(Obstacle::OtherWordSize));
        write(&program, b"#!");
        assert_eq!(obstacle(&outer), None);
        write(&outer, format!("#!{}\n", outer.display()).as_bytes());
        assert_eq!(obstacle(&outer), None);
    }

    #[test]
    fn linkers_are_told_apart_by_name() {
        let expected = [
            ("/lib64/ld-linux-x86-64.so.2", Some(Libc::Glibc)),
            (
                "/nix/store/abc-glibc/lib/ld-linux-x86-64.so.2",
                Some(Libc::Glibc),
            ),
            ("/lib/ld-musl-x86_64.so.1", Some(Libc::Musl)),
            ("/libexec/ld-elf.so.1", None),
        ];
        for (linker, libc) in expected {
            assert_eq!(libc_of(linker), libc, "{linker}");
        }
    }

    #[test]
    fn a_dynamic_program_and_a_script_are_no_obstacle() {
        let own = std::env::current_exe().expect("a test has a file");
        assert_eq!(obstacle(&own), None);
        assert_eq!(obstacle(Path::new("/etc/passwd")), None);
    }
}
