//! What a block holds, by the first words of it: objects of C++ classes with virtual functions, and
//! Python's objects.
//!
//! ```text
//!  C++      vtable ─▶ type_info ─▶ its own vtable (__cxxabiv1), name
//!  Python   [links of a subclass 16] [links of the collector 16] references, type ─▶ type object, name
//! ```
//!
//! Only pages that are present are read in the process. What it has not touched of a file that it maps
//! is read from that file. A block without such a start has no name, rather than a guessed one.

use super::scattered::Scattered;
use super::{Image, Source};
use pagewise_linux::proc::{MapsEntry, ProcRoot};
use pagewise_linux::regular_file;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{PageState, Presence};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// Bytes of a type's name that are read.
const LONGEST_NAME: u64 = 512;
/// Where the word with the type of a Python object may be, from the start of its block: after the
/// references (`ob_type`), or also after one or two pairs of links (`PyGC_Head`, `_PyObject_PREHEADER`).
const PYTHON_TYPES: [u64; 3] = [8, 24, 40];
/// `tp_name` and `tp_basicsize` of a type object, and the largest size that is believed.
const TYPE_NAME: u64 = 24;
const BASIC_SIZE: u64 = 32;
const LARGEST_OBJECT: u64 = 1 << 32;
/// Largest distance from an object's start to a part of it (`offset-to-top`, Itanium C++ ABI 2.5.2).
const LARGEST_PART: u64 = 1 << 24;
/// glibc's header in front of the program's bytes.
const GLIBC_HEADER: u64 = 16;

/// Names the objects in the blocks of one process.
pub struct Objects<'a> {
    words: Scattered<'a>,
    presence: &'a Presence,
    maps: &'a [MapsEntry],
    files: Files,
    classes: BTreeMap<u64, Option<Arc<str>>>,
    types: BTreeMap<u64, Option<Arc<str>>>,
}

impl<'a> Objects<'a> {
    /// Those of process `pid`, of which these pages are present.
    #[must_use]
    pub fn new(
        source: &'a dyn Source,
        presence: &'a Presence,
        maps: &'a [MapsEntry],
        page: u64,
        (proc, pid): (&ProcRoot, i32),
    ) -> Self {
        Self {
            words: Scattered::new(&Image::new(source, presence, page)),
            presence,
            maps,
            files: Files {
                root: proc.process_path(pid, "root"),
                open: BTreeMap::new(),
            },
            classes: BTreeMap::new(),
            types: BTreeMap::new(),
        }
    }

    /// Class or type of the object in the block of `size` bytes at `block`; `None` if none can be seen.
    pub fn name(&mut self, allocator: AllocatorKind, block: u64, size: u64) -> Option<Arc<str>> {
        let header = match allocator {
            AllocatorKind::Glibc => GLIBC_HEADER,
            _ => 0,
        };
        let start = block + header;
        let room = size.saturating_sub(header);
        let mut type_at = |at: u64| -> Option<Arc<str>> {
            let is_inside = at + 8 <= room && self.words.word(start + at - 8).ok()? != 0;
            let place = is_inside.then(|| self.words.word(start + at).ok())??;
            self.python_type(place)
        };
        if let Some(name) = PYTHON_TYPES.into_iter().find_map(&mut type_at) {
            return Some(name);
        }
        let first = (room >= 8).then(|| self.words.word(start).ok())??;
        self.class(first)
    }

    fn class(&mut self, vtable: u64) -> Option<Arc<str>> {
        if let Some(known) = self.classes.get(&vtable) {
            return known.clone();
        }
        let name = self.class_name(vtable).map(|name| Arc::from(&*name));
        self.classes.insert(vtable, name.clone());
        name
    }

    /// The class whose objects start with the address of this table of functions.
    fn class_name(&mut self, vtable: u64) -> Option<String> {
        self.file_data(vtable)?;
        let to_top = self.word(vtable.checked_sub(16)?)?;
        if to_top.wrapping_neg() > LARGEST_PART {
            return None;
        }
        let info = self.word(vtable - 8)?;
        let mangled = self.type_name(info)?;
        // The type information is itself an object of a class that is known by name.
        let own = self.word(info)?;
        let own_info = self.word(own.checked_sub(8)?)?;
        if !self.type_name(own_info)?.contains("__cxxabiv1") {
            return None;
        }
        let mangled = mangled.strip_prefix('*').unwrap_or(&mangled);
        let symbol = cpp_demangle::Symbol::new(format!("_ZTI{mangled}")).ok()?;
        let name = symbol.demangle().ok()?;
        Some(name.strip_prefix("typeinfo for ")?.to_owned())
    }

    fn type_name(&mut self, info: u64) -> Option<String> {
        self.file_data(info)?;
        let place = self.word(info.checked_add(8)?)?;
        self.text(place)
    }

    fn python_type(&mut self, place: u64) -> Option<Arc<str>> {
        if place == 0 || !place.is_multiple_of(8) {
            return None;
        }
        if let Some(known) = self.types.get(&place) {
            return known.clone();
        }
        let name = self.python_type_name(place).map(|name| Arc::from(&*name));
        self.types.insert(place, name.clone());
        name
    }

    /// The name of the type object at `place`: its own type is `type`, which is its own type, or a
    /// subclass of it.
    fn python_type_name(&mut self, place: u64) -> Option<String> {
        let meta = self.word(place.checked_add(8)?)?;
        let top = self.word(meta.checked_add(8)?)?;
        if self.word(top.checked_add(8)?)? != top || self.own_name(top)? != "type" {
            return None;
        }
        self.own_name(place)
    }

    fn own_name(&mut self, place: u64) -> Option<String> {
        let basic_size = self.word(place.checked_add(BASIC_SIZE)?)?;
        let name = self.word(place + TYPE_NAME)?;
        (basic_size < LARGEST_OBJECT).then(|| self.text(name))?
    }

    /// The mapping of a file's data with this address.
    fn file_data(&self, address: u64) -> Option<&'a MapsEntry> {
        let entry = self.mapping(address)?;
        let is_data = entry.file().is_some() && address.is_multiple_of(8);
        is_data.then_some(entry)
    }

    fn mapping(&self, address: u64) -> Option<&'a MapsEntry> {
        let maps = self.maps;
        let behind = maps.partition_point(|entry| entry.mapping.end <= address);
        maps.get(behind).filter(|entry| entry.contains(address))
    }

    /// A text that ends with a zero byte and holds printable characters alone.
    fn text(&mut self, start: u64) -> Option<String> {
        let mut text = String::new();
        let mut at = start;
        while at < start.checked_add(LONGEST_NAME)? {
            let word = self.word(at / 8 * 8)?.to_le_bytes();
            for byte in &word[usize::try_from(at % 8).ok()?..] {
                match byte {
                    0 if text.is_empty() => return None,
                    0 => return Some(text),
                    b' '..=b'~' => text.push(char::from(*byte)),
                    _ => return None,
                }
            }
            at = at / 8 * 8 + 8;
        }
        None
    }

    /// The eight bytes at a multiple of eight, from memory or from the file behind it.
    fn word(&mut self, address: u64) -> Option<u64> {
        if !address.is_multiple_of(8) {
            return None;
        }
        match self.presence.at(address) {
            Some(run) if run.state == PageState::Swapped => None,
            Some(_) => self.words.word(address).ok(),
            None => self.files.word(self.mapping(address)?, address),
        }
    }
}

/// Files that the process maps.
struct Files {
    /// The folder that is the process's root.
    root: std::path::PathBuf,
    open: BTreeMap<u64, Option<File>>,
}

impl Files {
    fn word(&mut self, entry: &MapsEntry, address: u64) -> Option<u64> {
        let path = entry.file()?;
        let root = &self.root;
        let open = || {
            let file = regular_file::open(&root.join(path.trim_start_matches('/')))?;
            let inode = file.metadata().ok()?.ino();
            (inode == entry.inode).then_some(file)
        };
        let file = self.open.entry(entry.inode).or_insert_with(open).as_ref()?;
        let offset = address - entry.mapping.start + entry.mapping.file_offset;
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, offset).ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::Memory;
    use super::*;
    use pagewise_model::memory::PageRun;

    const HEAP: u64 = 0x10_0000;
    const DATA: u64 = 0x7000_0000;

    impl Memory {
        fn text(&mut self, at: u64, text: &str) {
            let bytes = [text.as_bytes(), &[0; 8]].concat();
            for (word, place) in bytes.chunks_exact(8).zip(0_u64..) {
                self.put(at + 8 * place, u64::from_le_bytes(word.try_into().unwrap()));
            }
        }

        fn name(&self, block: u64, allocator: AllocatorKind) -> Option<Arc<str>> {
            let run = |start| PageRun {
                start,
                end: start + 0x10000,
                state: PageState::Anonymous,
            };
            let presence = Presence::new(vec![run(HEAP), run(DATA)]);
            let maps = [
                super::super::synthetic::entry(HEAP, HEAP + 0x10000, "[heap]"),
                super::super::synthetic::entry(DATA, DATA + 0x10000, "/usr/bin/program"),
            ];
            let nowhere = ProcRoot::at("/nonexistent");
            let mut objects = Objects::new(self, &presence, &maps, 4096, (&nowhere, 1));
            objects.name(allocator, block, 64)
        }

        /// Type information with its own class `class` and this name.
        fn type_info(&mut self, at: u64, class: u64, name: &str) {
            self.put(at, class);
            self.put(at + 8, at + 0x100);
            self.text(at + 0x100, name);
        }
    }

    #[test]
    fn objects_with_virtual_functions_have_the_name_of_their_class() {
        let mut memory = Memory::default();
        let (own, info, vtable) = (DATA + 0x1000, DATA + 0x2000, DATA + 0x3010);
        memory.type_info(own, 0, "N10__cxxabiv120__si_class_type_infoE");
        memory.put(DATA + 0x4008, own);
        memory.type_info(info, DATA + 0x4010, "N3net10ConnectionE");
        memory.put(vtable - 8, info);
        memory.put(HEAP + 16, vtable);
        let name = memory.name(HEAP, AllocatorKind::Glibc);
        assert_eq!(name.as_deref(), Some("net::Connection"));
        // Without a type behind the table, any other data look the same.
        memory.put(DATA + 0x4008, info);
        assert_eq!(memory.name(HEAP, AllocatorKind::Glibc), None);
    }

    #[test]
    fn python_objects_are_named_with_and_without_links_in_front() {
        let mut memory = Memory::default();
        let (top, dict) = (DATA + 0x1000, DATA + 0x2000);
        for (place, name) in [(top, "type"), (dict, "dict")] {
            memory.put(place + 8, top);
            memory.put(place + TYPE_NAME, place + 0x200);
            memory.text(place + 0x200, name);
        }
        for at in PYTHON_TYPES {
            let block = HEAP + 0x100 * at;
            memory.put(block + at - 8, 1);
            memory.put(block + at, dict);
            let name = memory.name(block, AllocatorKind::Cpython);
            assert_eq!(name.as_deref(), Some("dict"), "{at}");
        }
        memory.put(DATA + 0x1200, u64::from_le_bytes(*b"typo\0\0\0\0"));
        assert_eq!(memory.name(HEAP + 0x800, AllocatorKind::Cpython), None);
    }
}
