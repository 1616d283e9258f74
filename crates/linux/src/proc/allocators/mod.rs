//! The memory allocators that a process really uses.
//!
//! Found while the process lives, from its mappings, its program file and its environment. The
//! first in the list is the one that `malloc` resolves to, in the order of the dynamic linker: the
//! program's own, then preloaded libraries, then linked ones, then the C library (ld.so(8)). A C
//! library whose `malloc` is replaced is left out, because its settings have no effect. If a
//! program calls a bundled allocator by another name (`je_malloc`), both it and the C library are
//! listed. Language runtimes with a heap of their own follow: they build on the others. Allocators inside
//! other libraries, for these libraries' own use, come last; their texts tell them.

mod contained;
mod program;
mod settings;

use super::{ProcRoot, glibc_version};
use contained::version_of;
use pagewise_families::{families, matches};
use pagewise_model::allocator::{Allocator, AllocatorKind};
use program::Program;
use settings::settings_of;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The function by which a program changes glibc's settings (mallopt(3)).
const MALLOPT: &str = "mallopt";

/// Allocators of process `pid` at this moment; empty if it is gone or may not be inspected.
#[must_use]
pub fn allocators(pid: i32) -> Vec<Allocator> {
    allocators_in(&ProcRoot::default(), pid)
}

/// The same below another procfs.
#[must_use]
pub fn allocators_in(proc: &ProcRoot, pid: i32) -> Vec<Allocator> {
    let Some(process) = Process::read(proc, pid) else {
        return Vec::new();
    };
    let mut found = process.serving_malloc();
    found.extend(process.runtimes());
    found.extend(process.in_libraries());
    for allocator in &mut found {
        allocator.settings = settings_of(allocator, &process.environ, &process.arguments);
        if allocator.kind == AllocatorKind::Glibc && process.program.calls(MALLOPT) {
            allocator
                .settings
                .insert(format!("{MALLOPT}()"), String::new());
        }
    }
    found
}

/// Input of the detection.
struct Process {
    program: Program,
    /// Mapped files, as the process names them.
    files: BTreeSet<String>,
    environ: Vec<(String, String)>,
    arguments: Vec<String>,
    /// Path by which the process's own root folder can be entered.
    root: PathBuf,
}

impl Process {
    /// `None` if the process is gone or belongs to another user.
    fn read(proc: &ProcRoot, pid: i32) -> Option<Self> {
        let maps = proc.maps(pid).ok()??;
        let exe = proc.exe(pid).ok()??;
        let arguments = proc.cmdline(pid).ok()?.unwrap_or_default();
        Some(Self {
            program: Program::read(exe, &proc.process_path(pid, "exe")),
            files: maps
                .iter()
                .filter_map(|entry| entry.file().map(str::to_string))
                .collect(),
            environ: proc.environ(pid).ok()?.unwrap_or_default(),
            arguments: arguments
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            root: proc.process_path(pid, "root"),
        })
    }

    /// Path by which we can open a mapped file: through the process's own root folder, so that
    /// files of a container are found.
    fn reachable(&self, file: &str) -> PathBuf {
        let inside = self.root.join(file.trim_start_matches('/'));
        match inside.exists() {
            true => inside,
            false => PathBuf::from(file),
        }
    }

    /// Allocators that calls from C code reach, the one behind `malloc` first.
    fn serving_malloc(&self) -> Vec<Allocator> {
        if let (Some(go), true) = (self.program.go_version(), self.program.is_static()) {
            return vec![go_runtime(go, true)];
        }
        let mut found = Vec::new();
        found.extend(self.program.bundled());
        if !self.program.defines_malloc() {
            found.extend(self.library_allocator().or_else(|| self.c_library()));
        }
        if found.is_empty() {
            found.push(self.program.c_library_inside());
        }
        found
    }

    /// The allocator library that `malloc` resolves to: preloaded ones come first.
    fn library_allocator(&self) -> Option<Allocator> {
        let known = || {
            self.files
                .iter()
                .filter_map(|file| Some((file, library(file)?)))
        };
        let preloaded = self.preloads().into_iter().find_map(|wanted| {
            let matches = |file: &str| same_library(file, &wanted);
            known().find(|(file, _)| matches(file))
        });
        let how = if preloaded.is_some() {
            "preloaded"
        } else {
            "linked"
        };
        let (file, kind) = preloaded.or_else(|| known().next())?;
        Some(Allocator {
            kind,
            version: library_version(kind, file, &self.reachable(file)),
            evidence: format!("{file} is {how}: it replaces the C library's malloc"),
            ..Allocator::default()
        })
    }

    /// Allocators that other libraries contain.
    fn in_libraries(&self) -> Vec<Allocator> {
        let others = self.files.iter().filter(|file| {
            let is_program = Path::new(file) == self.program.path();
            !is_program && library(file).is_none() && !is_of_a_runtime(base_name(file))
        });
        let found = others.flat_map(|file| {
            let contained = contained::contained(&self.reachable(file)).into_iter();
            contained.map(move |one| Allocator {
                kind: one.kind,
                version: one.version,
                evidence: format!("{file} contains it"),
                settings: Default::default(),
                is_static: true,
                inside: Some(base_name(file).to_owned()),
                variable: one.variable,
            })
        });
        found.collect()
    }

    fn preloads(&self) -> Vec<String> {
        let named = self.environ.iter().filter(|(name, _)| name == "LD_PRELOAD");
        named
            .flat_map(|(_, list)| list.split([' ', ':']))
            .filter(|word| !word.is_empty())
            .map(str::to_string)
            .collect()
    }

    fn c_library(&self) -> Option<Allocator> {
        let mapped = |test: fn(&str) -> bool| self.files.iter().find(|file| test(base_name(file)));
        let (file, kind) = mapped(is_musl)
            .map(|file| (file, AllocatorKind::Musl))
            .or_else(|| mapped(is_glibc).map(|file| (file, AllocatorKind::Glibc)))?;
        let version = match kind {
            AllocatorKind::Glibc => {
                glibc_version(&self.reachable(file)).or_else(|| version_in_name(file))
            }
            _ => None,
        };
        Some(Allocator {
            kind,
            version,
            evidence: format!("{file} is mapped"),
            ..Allocator::default()
        })
    }

    /// Language runtimes that manage a heap of their own.
    fn runtimes(&self) -> Vec<Allocator> {
        let mut found = Vec::new();
        if let (Some(go), false) = (self.program.go_version(), self.program.is_static()) {
            found.push(go_runtime(go, false));
        }
        for family in families() {
            let Some(heap) = &family.heap else {
                continue;
            };
            let is_its = |file: &&String| matches(&heap.files, base_name(file));
            let has = || heap.symbols.iter().find(|one| self.program.defines(one));
            if let Some(file) = self.files.iter().find(is_its) {
                let version = runtime_version(family.kind, base_name(file), &self.reachable(file));
                found.push(runtime(family.kind, version, format!("{file} is mapped")));
            } else if let Some(symbol) = has() {
                let message = format!("the program itself defines {symbol}");
                let name = self.program.path().file_name().unwrap_or_default();
                let version = version_in_stem(&name.to_string_lossy());
                found.push(runtime(family.kind, version, message));
            }
        }
        found
    }
}

fn runtime(kind: AllocatorKind, version: Option<String>, evidence: String) -> Allocator {
    Allocator {
        kind,
        version,
        evidence,
        ..Allocator::default()
    }
}

/// The version of a runtime of which this file is mapped, where the file or its name says it.
fn runtime_version(kind: AllocatorKind, name: &str, reachable: &Path) -> Option<String> {
    match kind {
        AllocatorKind::Jvm => java_version(reachable),
        AllocatorKind::V8 => version_of(reachable, pagewise_families::family(kind)?),
        // The versions of the languages, not of the runtimes.
        AllocatorKind::Pypy | AllocatorKind::Luajit => None,
        _ => version_in_stem(name),
    }
}

/// Whether a file is a language runtime's: what it contains serves its own heap.
fn is_of_a_runtime(name: &str) -> bool {
    let mut heaps = families().iter().filter_map(|family| family.heap.as_ref());
    heaps.any(|heap| matches(&heap.files, name))
}

fn go_runtime(version: String, is_static: bool) -> Allocator {
    Allocator {
        kind: AllocatorKind::Go,
        version: (!version.is_empty()).then_some(version),
        evidence: "the program has a .go.buildinfo section".to_string(),
        is_static,
        ..Allocator::default()
    }
}

fn base_name(path: &str) -> &str {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

/// Family of an allocator library, by its file name.
fn library(file: &str) -> Option<AllocatorKind> {
    let name = base_name(file);
    let starts = |prefix: &str| name.starts_with(prefix);
    let known = families().iter();
    let mut known = known.filter(|family| family.libraries.iter().any(|prefix| starts(prefix)));
    let unknown = [
        "libtbbmalloc_proxy",
        "libsnmalloc",
        "libhoard",
        "librpmalloc",
        "libscudo",
        "libhardened_malloc",
    ];
    match known.next() {
        Some(family) => Some(family.kind),
        None => unknown
            .into_iter()
            .any(starts)
            .then_some(AllocatorKind::Unknown),
    }
}

/// Whether a mapped file is the library named in `LD_PRELOAD`: that may be a link, as
/// `libjemalloc.so.2` to `libjemalloc.so.2.1`.
fn same_library(file: &str, wanted: &str) -> bool {
    let stem = |path: &str| -> Option<String> {
        let name = base_name(path);
        Some(name.split(".so").next()?.to_string())
    };
    file == wanted || stem(file) == stem(wanted)
}

fn is_glibc(name: &str) -> bool {
    name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"))
}

/// `ld-musl-*.so.1` is a link to musl's `libc.so`, and the kernel shows the latter on Debian.
fn is_musl(name: &str) -> bool {
    name == "libc.so" || name.starts_with("ld-musl-") || name.starts_with("libc.musl-")
}

/// `3.11` of `python3.11` and of `libpython3.11.so.1.0`, `8.2` of `libphp8.2.so`.
fn version_in_stem(name: &str) -> Option<String> {
    let stem = name.split(".so").next()?;
    let digits = stem.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.');
    let digits = &digits[..end.unwrap_or(digits.len())];
    digits.contains('.').then(|| digits.to_string())
}

/// `2.31` of `libc-2.31.so`.
fn version_in_name(file: &str) -> Option<String> {
    let version = base_name(file).strip_prefix("libc-")?.strip_suffix(".so")?;
    Some(version.to_string())
}

fn library_version(kind: AllocatorKind, file: &str, reachable: &Path) -> Option<String> {
    let by_name = || {
        let suffix = base_name(file).split(".so.").nth(1)?;
        (kind == AllocatorKind::Mimalloc).then(|| suffix.to_string())
    };
    version_of(reachable, pagewise_families::family(kind)?).or_else(by_name)
}

/// `17.0.15` from the `release` file two folders above `lib/server/libjvm.so`.
fn java_version(library: &Path) -> Option<String> {
    let home = library.parent()?.parent()?.parent()?;
    let release = std::fs::read_to_string(home.join("release")).ok()?;
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    Some(line.trim_matches('"').to_string())
}

#[cfg(test)]
mod tests;
