//! Unwind tables of files, read once.

use super::signed_returns;
use crate::symbols::symbol_file::SymbolFile;
use crate::symbols::trampoline;
use crate::sys::mapped_file::MappedFile;
use framehop::{ExplicitModuleSectionInfo, Module};
use object::elf::PF_X;
use object::{Architecture, File, Object, ObjectSection, ObjectSegment, SegmentFlags};
use pagewise_model::address_space::Mapping;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of one section, shared by all processes that map the file.
pub(super) type Section = Arc<[u8]>;

/// Largest section in bytes that is copied: those of the largest programs have 60 MiB.
const LARGEST_SECTION: usize = 256 << 20;

/// Files that were looked up, including unusable ones.
pub(super) struct ModuleFiles {
    root: PathBuf,
    by_path: FxHashMap<Box<str>, Option<Tables>>,
}

/// The data of a file that unwinding needs.
struct Tables {
    /// Executable segments: offsets in the file, and the address of the first byte.
    code: Vec<(Range<u64>, u64)>,
    text: Option<Range<u64>>,
    got: Option<Range<u64>>,
    eh_frame: Option<(Range<u64>, Section)>,
    eh_frame_hdr: Option<(Range<u64>, Section)>,
    bytes: MappedFile,
}

impl ModuleFiles {
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            by_path: FxHashMap::default(),
        }
    }

    /// The module of a mapping. `None` if it is not a readable ELF file; its frames are then walked
    /// by frame pointers.
    pub fn module(&mut self, mapping: &Mapping) -> Option<Module<Section>> {
        self.tables(mapping)?.module(mapping)
    }

    /// The bytes of the file that a mapping shows. `None` as for [`Self::module`].
    pub fn bytes(&mut self, mapping: &Mapping) -> Option<&[u8]> {
        let bytes = &self.tables(mapping)?.bytes;
        let from = usize::try_from(mapping.file_offset).ok()?;
        let length = usize::try_from(mapping.end - mapping.start).ok()?;
        let to = from.checked_add(length)?.min(bytes.len());
        bytes.get(from..to)
    }

    fn tables(&mut self, mapping: &Mapping) -> Option<&Tables> {
        if !self.by_path.contains_key(&mapping.path) {
            let file = self.root.join(mapping.path.trim_start_matches('/'));
            let tables = mapping
                .path
                .starts_with('/')
                .then(|| Tables::read(&file, mapping));
            self.by_path.insert(mapping.path.clone(), tables.flatten());
        }
        self.by_path.get(&mapping.path)?.as_ref()
    }
}

impl ModuleFiles {
    /// Whether a signal trampoline starts at this address of a known mapping.
    pub fn is_trampoline(&self, mapping: &Mapping, address: u64) -> bool {
        let tables = self.by_path.get(&mapping.path).and_then(Option::as_ref);
        let Some(bytes) = tables.map(|tables| &*tables.bytes) else {
            return false;
        };
        let within = address.checked_sub(mapping.start);
        let offset = within.and_then(|within| within.checked_add(mapping.file_offset));
        offset.is_some_and(|offset| trampoline::begins_at(bytes, offset))
    }
}

impl Tables {
    fn read(path: &Path, mapping: &Mapping) -> Option<Self> {
        let file = SymbolFile::recorded(path, mapping.build_id.as_deref(), mapping.file).ok()?;
        let bytes = file.into_bytes();
        let elf = File::parse(&*bytes).ok()?;
        let range = |name| {
            let section = elf.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let section = |name| {
            let data = elf.section_by_name(name)?.data().ok()?;
            let data = (data.len() <= LARGEST_SECTION).then_some(data)?;
            Some((range(name)?, Section::from(data)))
        };
        let executable =
            |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X.0 != 0);
        let code = elf.segments().filter(|segment| executable(segment.flags()));
        Some(Self {
            code: code
                .map(|segment| {
                    let (offset, size) = segment.file_range();
                    (offset..offset.saturating_add(size), segment.address())
                })
                .collect(),
            text: range(".text"),
            got: range(".got"),
            eh_frame: section(".eh_frame").map(|(range, data)| match elf.architecture() {
                Architecture::Aarch64 => {
                    let data = signed_returns::without_marks(data.to_vec());
                    (range, Section::from(data))
                }
                _ => (range, data),
            }),
            eh_frame_hdr: section(".eh_frame_hdr"),
            bytes,
        })
    }

    /// The file as mapped. Mappings start on a page boundary, segments need not: the segment is the
    /// one that overlaps the mapping's range of the file.
    fn module(&self, mapping: &Mapping) -> Option<Module<Section>> {
        let length = mapping.end - mapping.start;
        let mapped = mapping.file_offset..mapping.file_offset.saturating_add(length);
        let meets = |part: &Range<u64>| part.start < mapped.end && mapped.start < part.end;
        let (part, address) = self.code.iter().find(|(part, _)| meets(part))?;
        let loaded_at = mapping
            .start
            .wrapping_sub(mapping.file_offset)
            .wrapping_add(part.start)
            .wrapping_sub(*address);
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: self.text.clone(),
            got_svma: self.got.clone(),
            eh_frame_svma: self.eh_frame.as_ref().map(|(range, _)| range.clone()),
            eh_frame: self.eh_frame.as_ref().map(|(_, data)| data.clone()),
            eh_frame_hdr_svma: self.eh_frame_hdr.as_ref().map(|(range, _)| range.clone()),
            eh_frame_hdr: self.eh_frame_hdr.as_ref().map(|(_, data)| data.clone()),
            ..Default::default()
        };
        let range = mapping.start..mapping.end;
        Some(Module::new(
            mapping.path.to_string(),
            range,
            loaded_at,
            info,
        ))
    }
}
