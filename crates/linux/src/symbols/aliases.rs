//! Of several names of one function, selects the one that its callers use.
//!
//! A C library has `malloc`, `__libc_malloc` and `__GI___libc_malloc` at one address. The public
//! name is the familiar one, and perf shows it, so that the names of two tools can be compared.

use object::read::elf::{ElfFile, FileHeader};
use object::{Endianness, Object, ObjectSymbol, ReadRef, SymbolIndex, SymbolKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// The public names of functions of one file, by address.
#[derive(Debug, Default)]
pub(super) struct PublicNames(FxHashMap<u64, String>);

/// Rank of a name: as in `symbol__choose` (`choose_best_symbol`, tools/perf/util/symbol.c), except
/// that names for the library's own use come last, behind those that no new program is linked to.
type Rank = (bool, bool, bool, bool, bool, Reverse<usize>, usize);

impl PublicNames {
    /// The best names of those functions of the file that start at these addresses.
    pub fn new(file: &[u8], wanted: impl Iterator<Item = u64>) -> Self {
        let mut best: FxHashMap<u64, (Rank, &str)> = FxHashMap::default();
        best.extend(wanted.map(|address| (address, (Rank::default(), ""))));
        let Ok(elf) = object::File::parse(file) else {
            return Self::default();
        };
        let old = old_names(&elf);
        let dynamic = elf
            .dynamic_symbols()
            .map(|symbol| (old.contains(&symbol.index()), symbol));
        for (is_old, symbol) in elf.symbols().map(|symbol| (false, symbol)).chain(dynamic) {
            let Some(best_so_far) = best.get_mut(&symbol.address()) else {
                continue;
            };
            // Symbol tables written by the linker contain versions too: `memcpy@@GLIBC_2.14`, and an
            // old one as `cfree@GLIBC_2.2.5`.
            let name = symbol.name().unwrap_or_default();
            let (name, version) = name.split_once('@').unwrap_or((name, "@"));
            let is_old = is_old || !version.starts_with('@');
            if name.is_empty() || !symbol.is_definition() || symbol.kind() != SymbolKind::Text {
                continue;
            }
            let kind = (is_old, symbol.is_weak(), symbol.is_global());
            let rank = rank(name, symbol.size(), kind);
            if best_so_far.1.is_empty() || rank > best_so_far.0 {
                *best_so_far = (rank, name);
            }
        }
        let named = best.into_iter().filter(|(_, (_, name))| !name.is_empty());
        Self(
            named
                .map(|(address, (_, name))| (address, name.to_owned()))
                .collect(),
        )
    }

    /// The better name of a function.
    pub fn name<'a>(&'a self, address: u64, name: &'a str) -> &'a str {
        self.0.get(&address).map_or(name, String::as_str)
    }
}

/// The dynamic symbols of a version that only programs linked long ago ask for (`cfree` of glibc).
fn old_names(elf: &object::File<'_>) -> FxHashSet<SymbolIndex> {
    match elf {
        object::File::Elf64(elf) => hidden_versions(elf),
        object::File::Elf32(elf) => hidden_versions(elf),
        _ => FxHashSet::default(),
    }
}

fn hidden_versions<'data, Elf, R>(elf: &ElfFile<'data, Elf, R>) -> FxHashSet<SymbolIndex>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let versions = elf.elf_section_table().versions(elf.endian(), elf.data());
    let Ok(Some(versions)) = versions else {
        return FxHashSet::default();
    };
    let of = |index| versions.version_index(elf.endian(), index);
    let all = elf.dynamic_symbols().map(|symbol| symbol.index());
    all.filter(|&index| of(index).is_hidden()).collect()
}

/// The rank of a name, `kind` being whether it is of an old version, weak, and global.
fn rank(name: &str, size: u64, (is_old, is_weak, is_global): (bool, bool, bool)) -> Rank {
    let underscores = name.len() - name.trim_start_matches('_').len();
    let is_own = name.starts_with("__GI_");
    (
        !is_own,
        !is_old,
        size > 0,
        !is_weak,
        is_global,
        Reverse(underscores),
        name.len(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_callers_use_is_the_best() {
        let order = [
            rank("__GI___libc_malloc", 9, (false, false, true)),
            rank("cfree", 9, (true, false, true)),
            rank("malloc", 0, (false, false, true)),
            rank("malloc", 9, (false, true, true)),
            rank("malloc", 9, (false, false, false)),
            rank("__libc_malloc", 9, (false, false, true)),
            rank("malloc", 9, (false, false, true)),
        ];
        assert!(order.is_sorted(), "{order:?}");
    }

    #[test]
    fn no_name_of_an_old_version_is_taken() {
        let library = |name: &str, bytes: &[u8]| {
            let of = object::File::parse(bytes).expect("it is ELF");
            let symbol = of
                .dynamic_symbols()
                .find(|symbol| symbol.name() == Ok(name) && symbol.is_definition());
            symbol.map(|symbol| symbol.address())
        };
        let maps = std::fs::read_to_string("/proc/self/maps").expect("it is there");
        let libc = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .find(|path| path.contains("/libc.so.6"))
            .expect("tests are linked to glibc");
        let bytes = std::fs::read(libc).expect("it is readable");
        let free = library("free", &bytes).expect("libc has it");
        let named = PublicNames::new(&bytes, std::iter::once(free));
        assert_eq!(named.name(free, "_"), "free");
    }
}
