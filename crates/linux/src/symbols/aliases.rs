//! Of several names of one function, selects the one that its callers use.
//!
//! A C library has `malloc`, `__libc_malloc` and `__GI___libc_malloc` at one address. The public
//! name is the familiar one, and perf shows it, so that the names of two tools can be compared.

use object::{Object, ObjectSymbol, SymbolKind};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The public names of functions of one file, by address.
#[derive(Debug, Default)]
pub(super) struct PublicNames(FxHashMap<u64, String>);

/// Rank of a name: as in `symbol__choose` (`choose_best_symbol`, tools/perf/util/symbol.c), except
/// that names for the library's own use come last.
type Rank = (bool, bool, bool, bool, Reverse<usize>, usize);

impl PublicNames {
    /// The best names of those functions of the file that start at these addresses.
    pub fn of(file: &[u8], wanted: impl Iterator<Item = u64>) -> Self {
        let mut best: FxHashMap<u64, (Rank, &str)> = FxHashMap::default();
        best.extend(wanted.map(|address| (address, (Rank::default(), ""))));
        let Ok(elf) = object::File::parse(file) else {
            return Self::default();
        };
        for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
            let Some(best_so_far) = best.get_mut(&symbol.address()) else {
                continue;
            };
            // Symbol tables written by the linker contain versions too: `memcpy@@GLIBC_2.14`.
            let name = symbol.name().unwrap_or_default();
            let name = name.split('@').next().unwrap_or_default();
            if name.is_empty() || !symbol.is_definition() || symbol.kind() != SymbolKind::Text {
                continue;
            }
            let rank = rank(name, symbol.size(), symbol.is_weak(), symbol.is_global());
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

fn rank(name: &str, size: u64, is_weak: bool, is_global: bool) -> Rank {
    let underscores = name.len() - name.trim_start_matches('_').len();
    let is_own = name.starts_with("__GI_");
    (
        !is_own,
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
            rank("__GI___libc_malloc", 9, false, true),
            rank("malloc", 0, false, true),
            rank("malloc", 9, true, true),
            rank("malloc", 9, false, false),
            rank("__libc_malloc", 9, false, true),
            rank("malloc", 9, false, true),
        ];
        assert!(order.is_sorted(), "{order:?}");
    }
}
