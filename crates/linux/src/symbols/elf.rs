//! Names from ELF files: symbol tables and, if available, DWARF with inlined functions, in the
//! file, under `/usr/lib/debug`, in perf's [`BuildIdCache`], or from [`Debuginfod`].

use super::build_id_cache::BuildIdCache;
use super::deadline;
use super::debuginfod::{Artefact, Debuginfod};
use super::functions::{Found, Function};
use super::lines::{self, CodePlace};
use super::symbol_file::{Identity, Refused, SymbolFile, names_a_file};
use super::{Batch, short_name, unknown};
use pagewise_model::address_space::FileId;
use pagewise_model::symbol::{Name, NameId, NamedList, Names, Unnamed};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where files and their debug information are found. Each file is asked once, for all of its
/// addresses, and then closed: tables of large compilers take a hundred mebibytes.
pub(super) struct ElfFiles {
    root: PathBuf,
    cache: BuildIdCache,
    debuginfod: Debuginfod,
    not_read: RefCell<NotRead>,
}

/// Files that the recording names and that were left alone.
#[derive(Default)]
struct NotRead {
    /// The first, with the reason.
    first: Option<String>,
    count: usize,
    /// The one that took too long.
    slow: Option<String>,
}

/// Name for a return address of a signal handler if its file has no symbols.
const TRAMPOLINE: &str = "__restore_rt";

impl ElfFiles {
    /// Debug information of packages is looked for below `root`.
    pub fn new(root: &Path, cache: BuildIdCache, debuginfod: Debuginfod) -> Self {
        Self {
            root: root.to_owned(),
            cache,
            debuginfod,
            not_read: RefCell::default(),
        }
    }

    /// What prevented reading files and fetching debug information.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let not_read = self.not_read.borrow();
        let kinds = not_read.first.as_ref().map(|first| {
            let more = match not_read.count {
                1 => String::new(),
                count => format!(" (and {} more)", count - 1),
            };
            format!("A file that the recording names was not read, because it {first}{more}.")
        });
        let slow = not_read.slow.as_ref().map(|path| {
            format!(
                "Reading the symbols of {path} took too long and was given up, so names of it and \
                 of the files after it are missing."
            )
        });
        [kinds, slow, self.debuginfod.note()].into_iter().flatten()
    }

    /// Names addresses of the file that is now at `place` and was mapped as `path`. Each offset is
    /// looked up once, however many processes mapped the file.
    pub fn name(&self, place: &Path, path: &str, batch: Batch<'_>, named: &mut NamedList) {
        let module = short_name(path);
        let mut keys = batch.offsets;
        let file = match self.open(place, path, batch.build_id, batch.file) {
            Ok(file) => file,
            Err(reason) => return fail(reason, &module, &keys, named),
        };
        let offsets = keys.iter().map(|&(_, offset)| offset).collect();
        let Some(found) = self.found(file, batch.build_id, offsets, path) else {
            return fail(Unnamed::NoSymbol, &module, &keys, named);
        };
        keys.sort_unstable_by_key(|&(_, offset)| offset);
        let functions = &found.functions;
        let mut spellings = Spellings::new(module, functions.all.len());
        let same_offset = keys.chunk_by(|(_, a), (_, b)| a == b);
        for (same, place) in same_offset.zip(&found.places) {
            let function = functions.of.get(place.lookup).copied().flatten();
            let name = match function {
                None if place.is_trampoline => spellings.trampoline(&mut named.names),
                None => spellings.unknown(&mut named.names),
                Some(number) => spellings.name(number, &functions.all, &mut named.names),
            };
            for &(at, _) in same {
                named.of[at] = name;
            }
        }
    }

    /// Lines of the source of the file that is now at `place` and was mapped as `path`, by key.
    pub fn lines(&self, place: &Path, path: &str, batch: &Batch<'_>, places: &mut [CodePlace]) {
        let Ok(file) = self.open(place, path, batch.build_id, batch.file) else {
            return;
        };
        let file = Arc::new(file);
        let (program, root) = (Arc::clone(&file), self.root.clone());
        let offsets: Vec<u64> = batch.offsets.iter().map(|&(_, offset)| offset).collect();
        let found = self.in_time(&file, path, move || lines::at(&program, &root, &offsets));
        let found = found.flatten().unwrap_or_default();
        for (&(at, _), place) in batch.offsets.iter().zip(found) {
            places[at] = place;
        }
    }

    /// The recorded file: where it was, or one of its build id that was kept or is fetched.
    fn open(
        &self,
        place: &Path,
        path: &str,
        build_id: Option<&[u8]>,
        file: Option<FileId>,
    ) -> Result<SymbolFile, Unnamed> {
        // Nothing else is looked into after a file that took too long.
        if self.not_read.borrow().slow.is_some() {
            return Err(Unnamed::NoFile);
        }
        let refused = match SymbolFile::recorded(place, build_id, file) {
            Ok(file) => return Ok(file),
            Err(refused) => refused,
        };
        if let Some(id) = build_id.filter(|id| names_a_file(id))
            && let Some(kept) = self.kept(Artefact::Executable, id)
        {
            return Ok(kept);
        }
        Err(match refused {
            Refused::Missing => Unnamed::NoFile,
            Refused::OtherFile => Unnamed::OtherFile,
            Refused::NoProgram(why) => {
                let mut not_read = self.not_read.borrow_mut();
                not_read.count += 1;
                not_read
                    .first
                    .get_or_insert_with(|| format!("{why}: {path}"));
                Unnamed::OtherFile
            }
        })
    }

    /// What is at these offsets; `None` if the file cannot be used.
    fn found(
        &self,
        file: SymbolFile,
        build_id: Option<&[u8]>,
        offsets: Vec<u64>,
        path: &str,
    ) -> Option<Found> {
        let file = Arc::new(file);
        let (program, root) = (Arc::clone(&file), self.root.clone());
        let first = self.in_time(&file, path, move || {
            let mut found = Found::new(&program, &root, offsets)?;
            found.complete_from_package(&program, &root);
            Some(found)
        });
        let mut found = first.flatten()?;
        if found.missing().next().is_some()
            && let Some(id) = build_id
                .map(<[u8]>::to_vec)
                .or(found.described.build_id.clone())
            && let Some(debug) = self.kept(Artefact::DebugInformation, &id)
        {
            let debug = Arc::new(debug);
            let (from, root) = (Arc::clone(&debug), self.root.clone());
            let program = file;
            found = self.in_time(&debug, path, move || {
                found.complete(&program, &from, &root);
                found
            })?;
        }
        Some(found)
    }

    /// The result of reading `file`, unless that takes too long.
    fn in_time<T: Send + 'static>(
        &self,
        file: &SymbolFile,
        path: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let done = deadline::within(deadline::for_bytes(file.allocated()), work);
        if done.is_none() {
            self.not_read.borrow_mut().slow = Some(path.to_owned());
        }
        done
    }

    /// A file with this build id, cached or fetched.
    fn kept(&self, artefact: Artefact, build_id: &[u8]) -> Option<SymbolFile> {
        let open = |place: PathBuf| SymbolFile::open(&place, Identity::Any).ok();
        let cached = self.cache.find(artefact, build_id).and_then(open);
        cached.or_else(|| self.debuginfod.find(artefact, build_id).and_then(open))
    }
}

/// Names of the functions of one file: most differ in their addresses alone.
struct Spellings {
    module: String,
    of: Vec<Option<NameId>>,
    known: FxHashMap<Vec<u8>, NameId>,
    unknown: Option<NameId>,
    spelling: Vec<u8>,
}

impl Spellings {
    /// Of this many functions.
    fn new(module: String, functions: usize) -> Self {
        Self {
            module,
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
        let functions = || inlined.clone().chain([&*function.outermost]);
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
    // The demangler takes names of types, too: a function f of C would be float.
    let is_mangled =
        symbol.trim_start_matches('_').starts_with(['Z', 'G']) && symbol.starts_with('_');
    let name = is_mangled.then(|| cpp_demangle::Symbol::new(symbol));
    let name = name
        .and_then(Result::ok)
        .and_then(|name| name.demangle().ok());
    name.unwrap_or_else(|| symbol.to_owned())
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
            ("f", "f"),
            ("g", "g"),
            ("i", "i"),
            ("Pc", "Pc"),
            ("_Z", "_Z"),
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
