//! Names from ELF files: symbol tables, and DWARF with inlined functions where there is any,
//! in the file or under `/usr/lib/debug`.

use super::{Batch, short_name, unknown};
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Sym, Symbolized, Symbolizer};
use pagewise_model::stack::FrameKey;
use pagewise_model::symbol::{Name, SymbolTable, Unnamed};
use std::fs::File;
use std::path::Path;

/// Files that were opened before stay open.
pub(super) struct ElfFiles {
    symbolizer: Symbolizer,
}

impl ElfFiles {
    pub fn new() -> Self {
        Self {
            symbolizer: Symbolizer::builder()
                .enable_auto_reload(false)
                .enable_code_info(true)
                .enable_inlined_fns(true)
                .build(),
        }
    }

    /// Names addresses of the file that is now at `file` and was mapped as `path`.
    pub fn name(&self, file: &Path, path: &str, batch: &Batch<'_>, table: &mut SymbolTable) {
        let keys = &batch.offsets;
        let module = short_name(path);
        if File::open(file).is_err() || !has_build_id(file, batch.build_id) {
            return fail(Unnamed::NoFile, &module, keys, table);
        }
        let offsets: Vec<u64> = keys.iter().map(|&(_, offset)| offset).collect();
        let source = Source::Elf(Elf::new(file));
        match self
            .symbolizer
            .symbolize(&source, Input::FileOffset(&offsets))
        {
            Err(_) => fail(Unnamed::NoSymbol, &module, keys, table),
            Ok(found) => table.extend(keys.iter().zip(found).map(|(&(key, _), symbol)| {
                let name = match symbol {
                    Symbolized::Sym(symbol) => known(&symbol, &module),
                    Symbolized::Unknown(_) => unknown(Unnamed::NoSymbol, &module),
                };
                (key, name)
            })),
        }
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

fn fail(reason: Unnamed, module: &str, keys: &[(FrameKey, u64)], table: &mut SymbolTable) {
    table.extend(keys.iter().map(|&(key, _)| (key, unknown(reason, module))));
}
