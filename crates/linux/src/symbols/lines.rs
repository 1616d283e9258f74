//! Lines of source code at offsets in a file, from its DWARF or from a file with its debug information.

use super::debug_files::{self, Described};
use super::functions::{symbolizer, virtual_addresses};
use super::symbol_file::SymbolFile;
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized};
use std::path::Path;

/// A line of source code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeLine {
    /// The source file, as the compiler named it.
    pub file: String,
    /// Its line, from 1 on.
    pub line: u32,
}

/// Where an address is in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodePlace {
    /// The line in each function there: the innermost inlined one first, as names are.
    pub lines: Vec<Option<CodeLine>>,
    /// Bytes from the beginning of the outermost function.
    pub into: u64,
}

/// The places of these offsets in a file; nothing where it cannot be used.
pub(super) fn at(file: &SymbolFile, root: &Path, offsets: &[u64]) -> Option<Vec<CodePlace>> {
    let described = Described::new(file);
    let follow = !described.names_others || debug_files::may_follow_links(root, file);
    let mut places = read(file, follow, &Input::FileOffset(offsets))?;
    if described.has_own {
        return Some(places);
    }
    let Some(debug) = debug_files::find(root, file, &described) else {
        return Some(places);
    };
    let addresses = virtual_addresses(file.bytes(), offsets.iter().copied())?;
    let follow =
        !Described::new(&debug).names_others || debug_files::may_follow_links(root, &debug);
    let more = read(&debug, follow, &Input::VirtOffset(&addresses)).unwrap_or_default();
    for (place, more) in places.iter_mut().zip(more) {
        if more.lines.iter().any(Option::is_some) {
            *place = more;
        }
    }
    Some(places)
}

fn read(
    file: &SymbolFile,
    with_debug_information: bool,
    input: &Input<&[u64]>,
) -> Option<Vec<CodePlace>> {
    let (symbolizer, source) = symbolizer(file, with_debug_information);
    let found = symbolizer.symbolize(&source, *input).ok()?;
    let place = |symbol: &Symbolized<'_>| match symbol {
        Symbolized::Sym(symbol) => CodePlace {
            lines: lines(symbol),
            into: symbol.offset as u64,
        },
        Symbolized::Unknown(_) => CodePlace::default(),
    };
    Some(found.iter().map(place).collect())
}

/// Innermost first; blazesym lists inlined functions from the outermost one.
fn lines(symbol: &Sym<'_>) -> Vec<Option<CodeLine>> {
    let line = |info: Option<&CodeInfo<'_>>| {
        let info = info?;
        Some(CodeLine {
            file: info.to_path().display().to_string(),
            line: info.line?,
        })
    };
    let inlined = symbol
        .inlined
        .iter()
        .rev()
        .map(|call| line(call.code_info.as_ref()));
    inlined.chain([line(symbol.code_info.as_deref())]).collect()
}
