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
use std::cell::LazyCell;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where files and their debug information are found. Each file is asked once, for all of its
/// addresses, and then closed: tables of large compilers take a hundred mebibytes.
pub(super) struct ElfFiles {
    cache: BuildIdCache,
    debuginfod: Debuginfod,
}

/// Name for a return address of a signal handler if its file has no symbols.
const TRAMPOLINE: &str = "__restore_rt";
/// Offsets that are looked up at once: a result takes some hundred bytes.
const AT_ONCE: usize = 4096;

impl ElfFiles {
    pub fn new(cache: BuildIdCache, debuginfod: Debuginfod) -> Self {
        Self { cache, debuginfod }
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
        let mapped = File::open(file).and_then(|file| MappedFile::of(&file)).ok();
        let bytes = mapped.as_deref().unwrap_or_default();
        // What was read of a large file would count as our memory while its tables are read.
        let release = || mapped.iter().for_each(|mapped| mapped.release(usize::MAX));
        let mut keys = batch.offsets;
        // The byte before a trampoline is not part of a call.
        let is_trampoline = |offset: u64| trampoline::begins_at(bytes, offset);
        for (_, offset) in &mut keys {
            *offset += u64::from(*offset < u64::MAX && is_trampoline(*offset + 1));
        }
        release();
        keys.sort_unstable_by_key(|&(_, offset)| offset);
        let mut offsets: Vec<u64> = keys.iter().map(|&(_, offset)| offset).collect();
        offsets.dedup();
        let Some(found) = self.functions(file, batch.build_id, &offsets) else {
            return fail(Unnamed::NoSymbol, &module, &keys, named);
        };
        drop(offsets);
        let public = PublicNames::of(bytes, found.all.iter().map(|function| function.begin));
        release();
        let mut spellings = Spellings::new(module, public, found.all.len());
        let same_offset = keys.chunk_by(|(_, a), (_, b)| a == b);
        for (same, function) in same_offset.zip(found.of) {
            let name = match function {
                None if is_trampoline(same[0].1) => spellings.trampoline(&mut named.names),
                None => spellings.unknown(&mut named.names),
                Some(number) => spellings.name(number, &found.all, &mut named.names),
            };
            for &(at, _) in same {
                named.of[at] = name;
            }
        }
    }

    /// The functions at these offsets, in order. `None` if the file cannot be used.
    fn functions(
        &self,
        file: &Path,
        build_id: Option<&[u8]>,
        offsets: &[u64],
    ) -> Option<FoundFunctions> {
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            .enable_code_info(true)
            .enable_inlined_fns(true)
            .enable_demangling(false)
            .build();
        let source = Source::Elf(Elf::new(file));
        let debug = LazyCell::new(|| self.debug_information(file, build_id));
        let mut functions = FoundFunctions::default();
        functions.of.reserve_exact(offsets.len());
        for piece in offsets.chunks(AT_ONCE) {
            let input = Input::FileOffset(piece);
            let mut found = symbolizer.symbolize(&source, input).ok()?;
            complete(&symbolizer, &mut found, file, &debug, piece);
            found.iter().for_each(|symbol| functions.add(symbol));
        }
        Some(functions)
    }

    /// Separate debug information of a file.
    fn debug_information(&self, file: &Path, build_id: Option<&[u8]>) -> Option<PathBuf> {
        match build_id {
            Some(id) => self.kept(Artefact::DebugInformation, id),
            None => blazesym::helper::read_elf_build_id(file)
                .ok()
                .flatten()
                .and_then(|id| self.kept(Artefact::DebugInformation, &id)),
        }
    }

    /// A file with this build id, cached or fetched.
    fn kept(&self, artefact: Artefact, build_id: &[u8]) -> Option<PathBuf> {
        let cached = self.cache.find(artefact, build_id);
        cached.or_else(|| self.debuginfod.find(artefact, build_id))
    }
}

/// Completes results from a file from its debug information if it is stripped.
fn complete<'a>(
    symbolizer: &'a Symbolizer,
    found: &mut [Symbolized<'a>],
    file: &Path,
    debug: &LazyCell<Option<PathBuf>, impl FnOnce() -> Option<PathBuf>>,
    offsets: &[u64],
) {
    let missing: Vec<usize> = (0..found.len())
        .filter(|&at| matches!(found[at], Symbolized::Unknown(_)))
        .collect();
    if missing.is_empty() {
        return;
    }
    let Some(debug) = LazyCell::force(debug) else {
        return;
    };
    let Some(addresses) = virtual_addresses(file, missing.iter().map(|&at| offsets[at])) else {
        return;
    };
    let source = Source::Elf(Elf::new(debug));
    let input = Input::VirtOffset(&*addresses);
    if let Ok(more) = symbolizer.symbolize(&source, input) {
        for (at, symbol) in missing.into_iter().zip(more) {
            found[at] = symbol;
        }
    }
}

/// Functions of one file, each once: thousands of addresses are in one function.
#[derive(Default)]
struct FoundFunctions {
    all: Vec<Function>,
    /// The number of the function at each offset.
    of: Vec<Option<u32>>,
    numbers: FxHashMap<Vec<u8>, u32>,
    spelling: Vec<u8>,
}

/// A function, with the calls inlined where it was.
struct Function {
    begin: u64,
    /// As in the file's tables, innermost first.
    inlined: Vec<String>,
    outermost: String,
}

impl FoundFunctions {
    /// Adds what is at the next offset.
    fn add(&mut self, symbol: &Symbolized<'_>) {
        let Symbolized::Sym(symbol) = symbol else {
            return self.of.push(None);
        };
        // Innermost first; blazesym lists inlined functions from the outermost one.
        let inlined = || symbol.inlined.iter().rev().map(|call| &*call.name);
        self.spelling.clear();
        self.spelling.extend_from_slice(&symbol.addr.to_le_bytes());
        for function in inlined().chain([&*symbol.name]) {
            self.spelling.extend_from_slice(function.as_bytes());
            self.spelling.push(0);
        }
        if let Some(&known) = self.numbers.get(&self.spelling) {
            return self.of.push(Some(known));
        }
        let new = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(Function {
            begin: symbol.addr,
            inlined: inlined().map(str::to_owned).collect(),
            outermost: symbol.name.to_string(),
        });
        self.numbers.insert(self.spelling.clone(), new);
        self.of.push(Some(new));
    }
}

/// Names of the functions of one file: most differ in their addresses alone.
struct Spellings {
    module: String,
    public: PublicNames,
    of: Vec<Option<NameId>>,
    known: FxHashMap<Vec<u8>, NameId>,
    unknown: Option<NameId>,
    spelling: Vec<u8>,
}

impl Spellings {
    /// Of this many functions.
    fn new(module: String, public: PublicNames, functions: usize) -> Self {
        Self {
            module,
            public,
            of: vec![None; functions],
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

    fn unknown(&mut self, names: &mut Names) -> NameId {
        let unnamed = || names.intern(unknown(Unnamed::NoSymbol, &self.module));
        *self.unknown.get_or_insert_with(unnamed)
    }

    /// The name of the function of this number.
    fn name(&mut self, number: u32, all: &[Function], names: &mut Names) -> NameId {
        if let Some(known) = self.of[number as usize] {
            return known;
        }
        let function = &all[number as usize];
        let inlined = function.inlined.iter().map(String::as_str);
        let outermost = self.public.name(function.begin, &function.outermost);
        let functions = || inlined.clone().chain([outermost]);
        self.spelling.clear();
        for function in functions() {
            self.spelling.extend_from_slice(function.as_bytes());
            self.spelling.push(0);
        }
        let name = self.known.get(&self.spelling).copied().unwrap_or_else(|| {
            let name = names.intern(Name::Known {
                functions: functions().map(demangled).collect(),
                module: self.module.clone(),
            });
            self.known.insert(self.spelling.clone(), name);
            name
        });
        self.of[number as usize] = Some(name);
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
