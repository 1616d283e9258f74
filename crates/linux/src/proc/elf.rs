//! Just enough of ELF (elf(5)) to find the allocator in a program: its interpreter, the content of
//! named sections, and whether it defines given symbols.
//!
//! Reads only the parts it needs: programs may be hundreds of megabytes. Only 64-bit little-endian
//! files, the only ones that Pagewise observes; anything else is `None`.

use memchr::memmem;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PT_INTERP: u32 = 3;
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const SHT_NOBITS: u32 = 8;
const SYMBOL_SIZE: usize = 24;

/// Larger parts than this are not read: no real program has a symbol table or read-only data this
/// large.
const LARGEST_PART: u64 = 512 << 20;

/// What is read at once of a section that is only searched, and how much of it twice: longer texts than this
/// are not searched for.
const BLOCK: u64 = 1 << 20;
const REPEATED: u64 = 256;

/// An opened program or library.
#[derive(Debug)]
pub(super) struct Elf {
    file: File,
    interpreter: Option<String>,
    sections: Vec<Section>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    name: String,
    kind: u32,
    offset: u64,
    size: u64,
    link: usize,
}

impl Elf {
    /// Opens `path`; `None` if it is unreadable, not an ELF file, or malformed.
    pub fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let header = part(&file, 0, 64)?;
        if header.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let program_headers = Table::at(&header, 32, 54)?;
        let section_headers = Table::at(&header, 40, 58)?;
        let names_at = usize::from(u16_at(&header, 62)?);
        let entries = program_headers.entries(&file, 56)?;
        let mut interpreters = entries
            .iter()
            .filter(|entry| u32_at(entry, 0) == Some(PT_INTERP));
        let interpreter = interpreters
            .next()
            .map(|entry| interpreter(&file, entry).unwrap_or_default());
        let sections = sections(&file, &section_headers, names_at).unwrap_or_default();
        Some(Self {
            file,
            interpreter,
            sections,
        })
    }

    /// Whether it starts with a dynamic linker. A program without one is linked statically.
    pub fn has_interpreter(&self) -> bool {
        self.interpreter.is_some()
    }

    /// The dynamic linker's path; empty if it cannot be read.
    pub fn interpreter(&self) -> Option<&str> {
        self.interpreter.as_deref()
    }

    /// Content of the section called `name`.
    pub fn section(&self, name: &str) -> Option<Vec<u8>> {
        let section = self.sections.iter().find(|section| section.name == name)?;
        self.content(section)
    }

    /// Shows the section called `name` in blocks, each of which repeats the end of the one before.
    pub fn blocks(&self, name: &str, mut look: impl FnMut(&[u8])) {
        let named = self.sections.iter().find(|section| section.name == name);
        let Some(section) = named.filter(|section| section.kind != SHT_NOBITS) else {
            return;
        };
        let end = section
            .offset
            .saturating_add(section.size.min(LARGEST_PART));
        let mut at = section.offset;
        while at < end {
            let Some(block) = part(&self.file, at, BLOCK.min(end - at)) else {
                return;
            };
            look(&block);
            let is_last = at + BLOCK >= end;
            at += if is_last { BLOCK } else { BLOCK - REPEATED };
        }
    }

    fn content(&self, section: &Section) -> Option<Vec<u8>> {
        (section.kind != SHT_NOBITS)
            .then(|| part(&self.file, section.offset, section.size))
            .flatten()
    }

    /// Which of `names` the file defines, in its full or its dynamic symbol table.
    pub fn defined<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        let mut found = Vec::new();
        for table in &self.sections {
            if matches!(table.kind, SHT_SYMTAB | SHT_DYNSYM) {
                found.extend(self.symbols_in(table, names, true).unwrap_or_default());
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether the file refers to a symbol that a library defines.
    pub fn imports(&self, name: &str) -> bool {
        let mut tables = self.sections.iter().filter(|one| one.kind == SHT_DYNSYM);
        tables.any(|table| {
            let found = self.symbols_in(table, &[name], false);
            found.is_some_and(|found| !found.is_empty())
        })
    }

    /// Which of `names` a table has, as symbols of the file itself or of others.
    fn symbols_in<'a>(
        &self,
        table: &Section,
        names: &[&'a str],
        defined: bool,
    ) -> Option<Vec<&'a str>> {
        let strings = self.content(self.sections.get(table.link)?)?;
        let offsets = name_offsets(&strings, names);
        if offsets.is_empty() {
            return None;
        }
        let symbols = self.content(table)?;
        let found = symbols.chunks_exact(SYMBOL_SIZE).filter_map(|symbol| {
            let at = u32_at(symbol, 0)?;
            let name = offsets.iter().find(|(offset, _)| *offset == at)?.1;
            ((u16_at(symbol, 6)? != 0) == defined).then_some(name)
        });
        Some(found.collect())
    }
}

/// Offsets at which the string table has one of `names`. Linkers share tails, so `mallctl` may be
/// the end of `je_mallctl`: each place counts, and names that end in another wanted name are found
/// with it in one pass. The table of a large program is 20 MB, so passes are expensive.
fn name_offsets<'a>(strings: &[u8], names: &[&'a str]) -> Vec<(u32, &'a str)> {
    let is_tail_of_none = |name: &&&str| {
        !names
            .iter()
            .any(|tail| tail != *name && name.ends_with(tail))
    };
    let mut found = Vec::new();
    for tail in names.iter().filter(is_tail_of_none) {
        let ended = format!("{tail}\0").into_bytes();
        for at in memmem::find_iter(strings, &ended) {
            let end = at + tail.len();
            let whole = names
                .iter()
                .filter(|name| strings[..end].ends_with(name.as_bytes()));
            let starts = whole.map(|name| (end - name.len(), *name));
            found.extend(starts.filter_map(|(at, name)| Some((u32::try_from(at).ok()?, name))));
        }
    }
    found
}

/// A table of headers.
struct Table {
    offset: u64,
    entry_size: u64,
    count: u64,
}

impl Table {
    /// Reads the location of the table from the file header: its offset at `offset`, size of an
    /// entry and number of entries at `sizes`.
    fn at(header: &[u8], offset: usize, sizes: usize) -> Option<Self> {
        Some(Self {
            offset: u64_at(header, offset)?,
            entry_size: u64::from(u16_at(header, sizes)?),
            count: u64::from(u16_at(header, sizes + 2)?),
        })
    }

    fn entries(&self, file: &File, smallest: u64) -> Option<Vec<Vec<u8>>> {
        if self.count == 0 {
            return Some(Vec::new());
        }
        if self.entry_size < smallest {
            return None;
        }
        let bytes = part(file, self.offset, self.entry_size * self.count)?;
        let size = usize::try_from(self.entry_size).ok()?;
        Some(bytes.chunks_exact(size).map(<[u8]>::to_vec).collect())
    }
}

fn sections(file: &File, table: &Table, names_at: usize) -> Option<Vec<Section>> {
    let headers = table.entries(file, 64)?;
    let names_header = headers.get(names_at)?;
    let names = part(file, u64_at(names_header, 24)?, u64_at(names_header, 32)?)?;
    headers
        .iter()
        .map(|header| {
            let name_at = usize::try_from(u32_at(header, 0)?).ok()?;
            let name = names.get(name_at..)?.split(|&byte| byte == 0).next()?;
            Some(Section {
                name: String::from_utf8_lossy(name).into_owned(),
                kind: u32_at(header, 4)?,
                offset: u64_at(header, 24)?,
                size: u64_at(header, 32)?,
                link: usize::try_from(u32_at(header, 40)?).ok()?,
            })
        })
        .collect()
}

/// The path that a PT_INTERP entry points to.
fn interpreter(file: &File, entry: &[u8]) -> Option<String> {
    let bytes = part(file, u64_at(entry, 8)?, u64_at(entry, 32)?)?;
    let path = bytes.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(path).into_owned())
}

/// `size` bytes at `offset`; `None` if the file is shorter.
fn part(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    let end = offset.checked_add(size)?;
    if size > LARGEST_PART || end > file.metadata().ok()?.len() {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    read_exact_at(file, &mut bytes, offset).ok()?;
    Some(bytes)
}

fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(bytes, offset)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_test_program() {
        let elf = Elf::open(&std::env::current_exe().unwrap()).unwrap();
        assert!(elf.has_interpreter());
        assert!(elf.section(".rodata").unwrap().len() > 1000);
        assert_eq!(elf.section(".no.such.section"), None);
        assert_eq!(elf.section(".bss"), None, "takes no room in the file");
        let names = ["main", "malloc", "no_such_symbol"];
        assert_eq!(elf.defined(&names), ["main"], "malloc is only referred to");
        let imported = names.map(|name| elf.imports(name));
        assert_eq!(imported, [false, true, false]);
    }

    #[test]
    fn blocks_show_the_whole_section() {
        let elf = Elf::open(&std::env::current_exe().unwrap()).unwrap();
        let whole = elf.section(".text").unwrap();
        let size = |bytes: u64| usize::try_from(bytes).unwrap();
        let mut shown: Vec<u8> = Vec::new();
        elf.blocks(".text", |block| {
            shown.truncate(shown.len().saturating_sub(size(REPEATED)));
            shown.extend_from_slice(block);
        });
        assert!(whole.len() > size(2 * BLOCK));
        assert!(shown == whole);
    }

    #[test]
    fn any_cut_or_flipped_file_is_read_or_refused_without_a_panic() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut");
        for length in [0, 5, 63, 64, 100, 4096, whole.len() / 2] {
            std::fs::write(&path, &whole[..length]).unwrap();
            let sections = Elf::open(&path).map(|elf| elf.sections.len());
            assert!(sections.is_none_or(|count| count == 0), "cut at {length}");
        }
        let mut head = whole[..8192].to_vec();
        for at in 16..64 {
            let kept = std::mem::replace(&mut head[at], 0xff);
            std::fs::write(&path, &head).unwrap();
            let defined = Elf::open(&path).map(|elf| elf.defined(&["main"]).len());
            assert!(defined.is_none_or(|count| count == 0), "byte {at}");
            head[at] = kept;
        }
    }
}
