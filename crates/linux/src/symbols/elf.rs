//! Names from ELF files: symbol tables and, if available, DWARF with inlined functions, in the
//! file, under `/usr/lib/debug`, in perf's [`BuildIdCache`], or from [`Debuginfod`].

use super::aliases::PublicNames;
use super::build_id_cache::BuildIdCache;
use super::debuginfod::{Artefact, Debuginfod};
use super::{Batch, short_name, trampoline, unknown};
use crate::sys::mapped_file::MappedFile;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use object::{Object, ObjectSegment};
use pagewise_model::symbol::{Name, NameId, NamedList, Names, Unnamed};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Files stay open once they were opened.
pub(super) struct ElfFiles {
    symbolizer: Symbolizer,
    cache: BuildIdCache,
    debuginfod: Debuginfod,
}

/// Name for a return address of a signal handler if its file has no symbols.
const TRAMPOLINE: &str = "__restore_rt";

impl ElfFiles {
    pub fn new(cache: BuildIdCache, debuginfod: Debuginfod) -> Self {
        Self {
            cache,
            debuginfod,
            symbolizer: Symbolizer::builder()
                .enable_auto_reload(false)
                .enable_code_info(true)
                .enable_inlined_fns(true)
                .enable_demangling(false)
                .build(),
        }
    }

    /// What prevented fetching debug information.
    pub fn note(&self) -> Option<String> {
        self.debuginfod.note()
    }

    /// Names addresses of the file that is now at `file` and was mapped as `path`. Each offset is
    /// looked up once, however many processes mapped the file.
    pub fn name(&self, file: &Path, path: &str, batch: Batch<'_>, named: &mut NamedList) {
        let module = short_name(path);
        let is_here = File::open(file).is_ok() && has_build_id(file, batch.build_id);
        let fetched = match (is_here, batch.build_id) {
            (false, Some(id)) if names_a_file(id) => self.kept(Artefact::Executable, id),
            _ => None,
        };
        if !is_here && fetched.is_none() {
            return fail(Unnamed::NoFile, &module, &batch.offsets, named);
        }
        let file = fetched.as_deref().unwrap_or(file);
        let bytes = File::open(file).and_then(|file| MappedFile::of(&file)).ok();
        let bytes = bytes.as_deref().unwrap_or_default();
        let mut keys = batch.offsets;
        // The byte before a trampoline is not part of a call.
        let is_trampoline = |offset: u64| trampoline::begins_at(bytes, offset);
        for (_, offset) in &mut keys {
            *offset += u64::from(*offset < u64::MAX && is_trampoline(*offset + 1));
        }
        keys.sort_unstable_by_key(|&(_, offset)| offset);
        let mut offsets: Vec<u64> = keys.iter().map(|&(_, offset)| offset).collect();
        offsets.dedup();
        let source = Source::Elf(Elf::new(file));
        let input = Input::FileOffset(&*offsets);
        let Ok(found) = self.symbolizer.symbolize(&source, input) else {
            return fail(Unnamed::NoSymbol, &module, &keys, named);
        };
        let found = self.completed(found, file, batch.build_id, &offsets);
        let begins = found.iter().filter_map(|found| match found {
            Symbolized::Sym(symbol) => Some(symbol.addr),
            Symbolized::Unknown(_) => None,
        });
        let public = PublicNames::of(bytes, begins);
        let mut spellings = Spellings::new(module, public);
        let same_offset = keys.chunk_by(|(_, a), (_, b)| a == b);
        for (same, symbol) in same_offset.zip(found) {
            let name = match symbol {
                Symbolized::Unknown(_) if is_trampoline(same[0].1) => {
                    spellings.trampoline(&mut named.names)
                }
                symbol => spellings.name(&symbol, &mut named.names),
            };
            for &(at, _) in same {
                named.of[at] = name;
            }
        }
    }

    /// A file with this build id, cached or fetched.
    fn kept(&self, artefact: Artefact, build_id: &[u8]) -> Option<PathBuf> {
        let cached = self.cache.find(artefact, build_id);
        cached.or_else(|| self.debuginfod.find(artefact, build_id))
    }

    /// Results from a file, completed from its debug information if it is stripped.
    fn completed<'a>(
        &'a self,
        mut found: Vec<Symbolized<'a>>,
        file: &Path,
        build_id: Option<&[u8]>,
        offsets: &[u64],
    ) -> Vec<Symbolized<'a>> {
        let missing: Vec<usize> = (0..found.len())
            .filter(|&at| matches!(found[at], Symbolized::Unknown(_)))
            .collect();
        if missing.is_empty() {
            return found;
        }
        let debug = match build_id {
            Some(id) => self.kept(Artefact::DebugInformation, id),
            None => blazesym::helper::read_elf_build_id(file)
                .ok()
                .flatten()
                .and_then(|id| self.kept(Artefact::DebugInformation, &id)),
        };
        let addresses = missing.iter().map(|&at| offsets[at]);
        let Some((debug, addresses)) = debug.zip(virtual_addresses(file, addresses)) else {
            return found;
        };
        let source = Source::Elf(Elf::new(debug));
        let input = Input::VirtOffset(&*addresses);
        if let Ok(more) = self.symbolizer.symbolize(&source, input) {
            for (at, symbol) in missing.into_iter().zip(more) {
                found[at] = symbol;
            }
        }
        found
    }
}

/// The functions of one file found so far, by their names in its tables: most addresses are in
/// functions that have already been demangled.
struct Spellings {
    module: String,
    public: PublicNames,
    known: FxHashMap<Vec<u8>, NameId>,
    unknown: Option<NameId>,
    spelling: Vec<u8>,
}

impl Spellings {
    fn new(module: String, public: PublicNames) -> Self {
        Self {
            module,
            public,
            known: FxHashMap::default(),
            unknown: None,
            spelling: Vec::new(),
        }
    }

    fn trampoline(&self, names: &mut Names) -> NameId {
        names.intern(Name::Known {
            functions: vec![TRAMPOLINE.to_owned()],
            module: self.module.clone(),
        })
    }

    fn name(&mut self, symbol: &Symbolized<'_>, names: &mut Names) -> NameId {
        let Symbolized::Sym(symbol) = symbol else {
            let unnamed = || names.intern(unknown(Unnamed::NoSymbol, &self.module));
            return *self.unknown.get_or_insert_with(unnamed);
        };
        // Innermost first; blazesym lists inlined functions from the outermost one.
        let inlined = symbol.inlined.iter().rev().map(|call| &*call.name);
        let outermost = self.public.name(symbol.addr, &symbol.name);
        let functions = || inlined.clone().chain([outermost]);
        self.spelling.clear();
        for function in functions() {
            self.spelling.extend_from_slice(function.as_bytes());
            self.spelling.push(0);
        }
        if let Some(&known) = self.known.get(&self.spelling) {
            return known;
        }
        let name = names.intern(Name::Known {
            functions: functions().map(demangled).collect(),
            module: self.module.clone(),
        });
        self.known.insert(self.spelling.clone(), name);
        name
    }
}

/// A function's name as spelled in its source, for Rust or C++; any other stays as it is.
fn demangled(symbol: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}");
    }
    let name = cpp_demangle::Symbol::new(symbol);
    let name = name.ok().and_then(|name| name.demangle().ok());
    name.unwrap_or_else(|| symbol.to_owned())
}

/// Whether the file is the recorded one. A file of another build under the same name would give
/// wrong names, which is worse than none.
fn has_build_id(file: &Path, recorded: Option<&[u8]>) -> bool {
    let Some(recorded) = recorded else {
        return true;
    };
    if !names_a_file(recorded) {
        return false;
    }
    match blazesym::helper::read_elf_build_id(file) {
        Ok(Some(now)) => now.starts_with(recorded),
        Ok(None) | Err(_) => true,
    }
}

/// Whether this is a build id: the recorder writes zeros where the mapped file had been replaced.
fn names_a_file(build_id: &[u8]) -> bool {
    build_id.iter().any(|&byte| byte != 0)
}

/// Addresses of these file offsets by the file's own layout, which separate debug information uses
/// too. Offsets that are not mapped get the end of memory.
fn virtual_addresses(file: &Path, offsets: impl Iterator<Item = u64>) -> Option<Vec<u64>> {
    let bytes = object::ReadCache::new(File::open(file).ok()?);
    let elf = object::File::parse(&bytes).ok()?;
    let segments: Vec<(u64, u64, u64)> = elf
        .segments()
        .map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        })
        .collect();
    let address = |wanted: u64| {
        let holds = |&&(offset, size, _): &&(u64, u64, u64)| {
            wanted.checked_sub(offset).is_some_and(|into| into < size)
        };
        let (offset, _, address) = segments.iter().find(holds)?;
        address.checked_add(wanted - offset)
    };
    Some(
        offsets
            .map(|wanted| address(wanted).unwrap_or(u64::MAX))
            .collect(),
    )
}

fn fail(reason: Unnamed, module: &str, keys: &[(usize, u64)], named: &mut NamedList) {
    let name = named.names.intern(unknown(reason, module));
    for &(at, _) in keys {
        named.of[at] = name;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_demangled_by_their_language() {
        for (symbol, expected) in [
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("malloc", "malloc"),
            ("_Zbroken", "_Zbroken"),
        ] {
            assert_eq!(demangled(symbol), expected);
        }
    }
}
