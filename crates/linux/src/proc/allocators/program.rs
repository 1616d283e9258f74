//! What the program file itself shows about its allocator.

use super::contained::{Contained, contained};
use crate::proc::elf::Elf;
use crate::proc::libc_version::glibc_version_in;
use memchr::memmem;
use pagewise_families::{families, family, matches};
use pagewise_model::allocator::{Allocator, AllocatorKind};
use std::path::{Path, PathBuf};

/// Symbols that only one family defines.
fn symbols() -> impl Iterator<Item = (&'static str, AllocatorKind)> {
    let known = families().iter().flat_map(|family| {
        let symbols = family.symbols.iter();
        symbols.map(|symbol| (symbol.as_str(), family.kind))
    });
    known.chain([("rpmalloc", AllocatorKind::Unknown)])
}

/// Symbols of a C library inside a static program.
fn inside(kind: AllocatorKind) -> impl Iterator<Item = &'static str> {
    let family = family(kind).into_iter();
    family.flat_map(|family| family.symbols_inside.iter().map(String::as_str))
}

/// Texts that survive stripping: an error message of glibc's malloc, and the first message of
/// musl's strerror.
const GLIBC_TEXT: &[u8] = b"free(): invalid pointer\0";
const MUSL_TEXT: &[u8] = b"No error information\0";

/// The observed program's file.
pub(super) struct Program {
    path: PathBuf,
    elf: Option<Elf>,
    defined: Vec<&'static str>,
    contained: Vec<Contained>,
}

impl Program {
    /// Searches the symbol tables once for all symbols needed later. `path` is its name in the process, `file`
    /// where it can be opened.
    pub fn read(path: PathBuf, file: &Path) -> Self {
        let elf = Elf::open(file);
        let allocators = symbols().map(|(symbol, _)| symbol);
        let heaps = families().iter().flat_map(|one| &one.heap);
        let runtimes = heaps.flat_map(|heap| heap.symbols.iter().map(String::as_str));
        let is_static = elf.as_ref().is_some_and(|elf| !elf.has_interpreter());
        let inside = inside(AllocatorKind::Glibc)
            .chain(inside(AllocatorKind::Musl))
            .filter(|_| is_static);
        let wanted: Vec<&'static str> = allocators
            .chain(runtimes)
            .chain(["malloc"])
            .chain(inside)
            .collect();
        let mut program = Self {
            path,
            defined: elf
                .as_ref()
                .map(|elf| elf.defined(&wanted))
                .unwrap_or_default(),
            elf,
            contained: Vec::new(),
        };
        if !program.is_a_runtime() {
            program.contained = contained(file);
        }
        program
    }

    /// Its path, as the process names it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it defines one of the symbols that tell allocators and runtimes.
    pub fn defines(&self, symbol: &str) -> bool {
        self.defined.contains(&symbol)
    }

    /// Whether it refers to a function of a library.
    pub fn calls(&self, function: &str) -> bool {
        self.elf.as_ref().is_some_and(|elf| elf.imports(function))
    }

    /// Whether it starts without a dynamic linker; preloading has no effect then. A file that
    /// cannot be read counts as dynamic.
    pub fn is_static(&self) -> bool {
        self.elf.as_ref().is_some_and(|elf| !elf.has_interpreter())
    }

    /// Whether its own `malloc` comes before every library's.
    pub fn defines_malloc(&self) -> bool {
        self.is_static() || self.defines("malloc")
    }

    /// Whether it is a language runtime, whose allocators serve its own heap.
    fn is_a_runtime(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let mut heaps = families().iter().filter_map(|one| one.heap.as_ref());
        heaps.any(|heap| {
            matches(&heap.files, &name) || heap.symbols.iter().any(|one| self.defines(one))
        })
    }

    /// An allocator linked into the program, by its symbols or, in a stripped program, by its texts.
    pub fn bundled(&self) -> Option<Allocator> {
        let by_symbol = symbols().find(|(symbol, _)| self.defines(symbol));
        let (kind, evidence) = match by_symbol {
            Some((symbol, kind)) => (kind, format!("the program itself defines {symbol}")),
            None => (
                self.contained.first()?.kind,
                "the program itself contains it".to_owned(),
            ),
        };
        let contained = self.contained.iter().find(|one| one.kind == kind);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        Some(Allocator {
            kind,
            version: contained.and_then(|one| one.version.clone()),
            evidence,
            settings: Default::default(),
            is_static: true,
            inside: Some(name.into_owned()),
            variable: contained.and_then(|one| one.variable.clone()),
        })
    }

    /// The C library inside a static program, or an unknown allocator.
    pub fn c_library_inside(&self) -> Allocator {
        let marked = |kind| inside(kind).find(|symbol| self.defines(symbol));
        let texts = self
            .elf
            .as_ref()
            .and_then(|elf| elf.section(".rodata"))
            .unwrap_or_default();
        let says = |text: &[u8]| memmem::find(&texts, text).is_some();
        let (kind, evidence) = if let Some(symbol) = marked(AllocatorKind::Musl) {
            (
                AllocatorKind::Musl,
                format!("the program itself defines {symbol}"),
            )
        } else if let Some(symbol) = marked(AllocatorKind::Glibc) {
            (
                AllocatorKind::Glibc,
                format!("the program itself defines {symbol}"),
            )
        } else if says(GLIBC_TEXT) {
            let evidence = "the program holds an error message of glibc's malloc";
            (AllocatorKind::Glibc, evidence.to_string())
        } else if says(MUSL_TEXT) {
            let evidence = "the program holds musl's error messages";
            (AllocatorKind::Musl, evidence.to_string())
        } else {
            let evidence = "no known allocator was recognised in the program or its libraries";
            (AllocatorKind::Unknown, evidence.to_string())
        };
        Allocator {
            kind,
            version: (kind == AllocatorKind::Glibc)
                .then(|| glibc_version_in(&texts))
                .flatten(),
            evidence,
            is_static: self.is_static(),
            ..Allocator::default()
        }
    }

    /// Version of the Go toolchain that built it (empty if the section has an older layout); `None`
    /// for a program that is not written in Go.
    pub fn go_version(&self) -> Option<String> {
        let info = self.elf.as_ref()?.section(".go.buildinfo")?;
        Some(version_in_build_info(&info).unwrap_or_default())
    }
}

/// Layout of debug/buildinfo since Go 1.18: `\xff Go buildinf:`, pointer size, flags (bit 1: text
/// is inline), then at byte 32 the length as varint and the version text.
fn version_in_build_info(info: &[u8]) -> Option<String> {
    let inline = info.starts_with(b"\xff Go buildinf:") && info.get(15)? & 2 != 0;
    let length = usize::from(*info.get(32)?);
    let text = info.get(33..33 + length)?;
    let version = std::str::from_utf8(text).ok()?.strip_prefix("go")?;
    (inline && length < 128).then(|| version.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version_that_go_left() {
        let mut info = b"\xff Go buildinf:\x08\x02".to_vec();
        info.resize(32, 0);
        info.push(8);
        info.extend(b"go1.22.5rest");
        assert_eq!(version_in_build_info(&info).as_deref(), Some("1.22.5"));
        info[15] = 0;
        assert_eq!(version_in_build_info(&info), None);
        assert_eq!(version_in_build_info(&info[..20]), None);
    }
}
