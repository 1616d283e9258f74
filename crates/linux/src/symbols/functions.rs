//! Functions at offsets in a file, from its symbol table, and its DWARF with inlined functions, or
//! from a file with its debug information.

use super::aliases::PublicNames;
use super::debug_files::{self, Described};
use super::symbol_file::SymbolFile;
use super::trampoline;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use object::{Object, ObjectSegment};
use rustc_hash::FxHashMap;
use std::path::Path;

/// Offsets that are looked up at once: a result takes some hundred bytes.
const AT_ONCE: usize = 4096;

/// What was found in a file.
pub(super) struct Found {
    /// Of each distinct offset, in order.
    pub places: Vec<Place>,
    pub functions: FoundFunctions,
    pub described: Described,
}

/// An offset in a file.
pub(super) struct Place {
    /// Index among the looked up offsets.
    pub lookup: usize,
    pub is_trampoline: bool,
    offset: u64,
}

impl Found {
    pub fn new(file: &SymbolFile, root: &Path, mut offsets: Vec<u64>) -> Option<Self> {
        offsets.sort_unstable();
        offsets.dedup();
        let described = Described::new(file);
        // The byte before a trampoline is not part of a call.
        let begins = |offset: u64| trampoline::begins_at(file.bytes(), offset);
        let mut places: Vec<Place> = Vec::with_capacity(offsets.len());
        let mut lookups: Vec<u64> = Vec::with_capacity(offsets.len());
        for offset in offsets {
            let begins_next = offset.checked_add(1).filter(|&next| begins(next));
            let offset = begins_next.unwrap_or(offset);
            if lookups.last() != Some(&offset) {
                lookups.push(offset);
            }
            places.push(Place {
                lookup: lookups.len() - 1,
                is_trampoline: begins(offset),
                offset,
            });
        }
        file.release();
        let follow = !described.names_others || debug_files::may_follow_links(root, file);
        let functions = FoundFunctions::read(file, follow, Lookup::Offsets(&lookups))?;
        let mut found = Self {
            places,
            functions,
            described,
        };
        found.functions.prefer_public_names(file);
        Some(found)
    }

    /// Takes names from debug information that a package installed, or that is next to the file.
    pub fn complete_from_package(&mut self, file: &SymbolFile, root: &Path) {
        if self.described.has_own {
            return;
        }
        if let Some(debug) = debug_files::find(root, file, &self.described) {
            let all: Vec<usize> = (0..self.functions.of.len()).collect();
            self.take_from(file, &debug, root, &all);
        }
    }

    /// Takes names that are still missing from debug information.
    pub fn complete(&mut self, file: &SymbolFile, debug: &SymbolFile, root: &Path) {
        let missing: Vec<usize> = self.missing().collect();
        self.take_from(file, debug, root, &missing);
    }

    /// The lookups without a function.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        let of = self.functions.of.iter().enumerate();
        of.filter(|(_, function)| function.is_none())
            .map(|(at, _)| at)
    }

    fn take_from(&mut self, file: &SymbolFile, debug: &SymbolFile, root: &Path, wanted: &[usize]) {
        let mut offsets = vec![u64::MAX; self.functions.of.len()];
        for place in &self.places {
            offsets[place.lookup] = place.offset;
        }
        let offsets = wanted.iter().map(|&at| offsets[at]);
        let Some(addresses) = virtual_addresses(file.bytes(), offsets) else {
            return;
        };
        let follow =
            !Described::new(debug).names_others || debug_files::may_follow_links(root, debug);
        let lookup = Lookup::Addresses(&addresses);
        if let Some(mut more) = FoundFunctions::read(debug, follow, lookup) {
            more.prefer_public_names(file);
            self.functions.replace(wanted, more);
        }
    }
}

/// What is looked up.
#[derive(Clone, Copy)]
enum Lookup<'a> {
    Offsets(&'a [u64]),
    Addresses(&'a [u64]),
}

/// Functions of one file, each once: thousands of addresses are in one function.
#[derive(Default)]
pub(super) struct FoundFunctions {
    pub all: Vec<Function>,
    /// The number of the function at each offset.
    pub of: Vec<Option<u32>>,
    numbers: FxHashMap<Vec<u8>, u32>,
    spelling: Vec<u8>,
}

/// A function, with the calls inlined where it was.
pub(super) struct Function {
    begin: u64,
    /// As in the file's tables, innermost first.
    pub inlined: Vec<String>,
    pub outermost: String,
}

/// What looks up functions and lines in a file. Debug information is read `with_debug_information` alone,
/// because its reader opens other files that it names.
pub(super) fn symbolizer(
    file: &SymbolFile,
    with_debug_information: bool,
) -> (Symbolizer, Source<'static>) {
    let symbolizer = Symbolizer::builder()
        .enable_auto_reload(false)
        .enable_code_info(true)
        .enable_inlined_fns(true)
        .enable_demangling(false)
        .build();
    let mut elf = Elf::new(file.path());
    elf.debug_syms = with_debug_information;
    (symbolizer, Source::Elf(elf))
}

impl FoundFunctions {
    /// The functions of a file at these places; `None` if it cannot be used.
    fn read(file: &SymbolFile, with_debug_information: bool, lookup: Lookup<'_>) -> Option<Self> {
        let (symbolizer, source) = symbolizer(file, with_debug_information);
        let (Lookup::Offsets(all) | Lookup::Addresses(all)) = lookup;
        let mut functions = Self::default();
        functions.of.reserve_exact(all.len());
        for piece in all.chunks(AT_ONCE) {
            let input = match lookup {
                Lookup::Offsets(_) => Input::FileOffset(piece),
                Lookup::Addresses(_) => Input::VirtOffset(piece),
            };
            let found = symbolizer.symbolize(&source, input).ok()?;
            found.iter().for_each(|symbol| functions.add(symbol));
        }
        functions.numbers = FxHashMap::default();
        Some(functions)
    }

    /// Of several names of a function, takes the one that callers use.
    fn prefer_public_names(&mut self, file: &SymbolFile) {
        let begins = self.all.iter().map(|function| function.begin);
        let public = PublicNames::new(file.bytes(), begins);
        file.release();
        for function in &mut self.all {
            let name = public.name(function.begin, &function.outermost);
            if name != function.outermost {
                function.outermost = name.to_owned();
            }
        }
    }

    /// Takes over what `more` has found at these indices.
    fn replace(&mut self, wanted: &[usize], more: Self) {
        let offset = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        for (&at, function) in wanted.iter().zip(more.of) {
            if let Some(number) = function {
                self.of[at] = Some(number.saturating_add(offset));
            }
        }
        self.all.extend(more.all);
    }

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

/// Addresses of these file offsets by the file's own layout, which separate debug information uses
/// too. Offsets that are not mapped get the end of memory.
pub(super) fn virtual_addresses(
    file: &[u8],
    offsets: impl Iterator<Item = u64>,
) -> Option<Vec<u64>> {
    let elf = object::File::parse(file).ok()?;
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
