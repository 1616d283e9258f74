//! Names from ELF files: symbol tables, and DWARF with inlined functions where there is any,
//! in the file, under `/usr/lib/debug`, or had by [`Debuginfod`].

use super::debuginfod::{Artefact, Debuginfod};
use super::{Batch, short_name, unknown};
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Sym, Symbolized, Symbolizer};
use object::{Object, ObjectSegment};
use pagewise_model::stack::FrameKey;
use pagewise_model::symbol::{Name, SymbolTable, Unnamed};
use std::fs::File;
use std::path::Path;

/// Files that were opened before stay open.
pub(super) struct ElfFiles {
    symbolizer: Symbolizer,
    debuginfod: Debuginfod,
}

impl ElfFiles {
    pub fn new(debuginfod: Debuginfod) -> Self {
        Self {
            debuginfod,
            symbolizer: Symbolizer::builder()
                .enable_auto_reload(false)
                .enable_code_info(true)
                .enable_inlined_fns(true)
                .build(),
        }
    }

    /// What kept debug information from being fetched.
    pub fn note(&self) -> Option<String> {
        self.debuginfod.note()
    }

    /// Names addresses of the file that is now at `file` and was mapped as `path`.
    pub fn name(&self, file: &Path, path: &str, batch: &Batch<'_>, table: &mut SymbolTable) {
        let keys = &batch.offsets;
        let module = short_name(path);
        let is_here = File::open(file).is_ok() && has_build_id(file, batch.build_id);
        let fetched = match (is_here, batch.build_id) {
            (false, Some(id)) => self.debuginfod.find(Artefact::Executable, id),
            _ => None,
        };
        if !is_here && fetched.is_none() {
            return fail(Unnamed::NoFile, &module, keys, table);
        }
        let file = fetched.as_deref().unwrap_or(file);
        let offsets: Vec<u64> = keys.iter().map(|&(_, offset)| offset).collect();
        let source = Source::Elf(Elf::new(file));
        match self
            .symbolizer
            .symbolize(&source, Input::FileOffset(&offsets))
        {
            Err(_) => fail(Unnamed::NoSymbol, &module, keys, table),
            Ok(found) => {
                let found = self.completed(found, file, batch.build_id, &offsets);
                table.extend(keys.iter().zip(found).map(|(&(key, _), symbol)| {
                    let name = match symbol {
                        Symbolized::Sym(symbol) => known(&symbol, &module),
                        Symbolized::Unknown(_) => unknown(Unnamed::NoSymbol, &module),
                    };
                    (key, name)
                }));
            }
        }
    }

    /// What was found in a file, and what its debug information knows where it is stripped.
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
            Some(id) => self.debuginfod.find(Artefact::DebugInformation, id),
            None => blazesym::helper::read_elf_build_id(file)
                .ok()
                .flatten()
                .and_then(|id| self.debuginfod.find(Artefact::DebugInformation, &id)),
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

/// Innermost first; blazesym lists inlined functions from the outermost one.
fn known(symbol: &Sym<'_>, module: &str) -> Name {
    let inlined = symbol.inlined.iter().rev();
    let mut functions: Vec<String> = inlined.map(|call| call.name.to_string()).collect();
    functions.push(symbol.name.to_string());
    Name::Known {
        functions,
        module: module.to_owned(),
    }
}

/// Whether the file is the one that was recorded. A file of another build under the same name
/// would give wrong names, which is worse than none.
fn has_build_id(file: &Path, recorded: Option<&[u8]>) -> bool {
    let Some(recorded) = recorded else {
        return true;
    };
    match blazesym::helper::read_elf_build_id(file) {
        Ok(Some(now)) => now.starts_with(recorded),
        Ok(None) | Err(_) => true,
    }
}

/// Where a file's bytes lie in memory by its own reckoning, by which debug information that came
/// apart from it has its addresses too. Bytes that are not mapped lie at the end of memory.
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

fn fail(reason: Unnamed, module: &str, keys: &[(FrameKey, u64)], table: &mut SymbolTable) {
    table.extend(keys.iter().map(|&(key, _)| (key, unknown(reason, module))));
}
