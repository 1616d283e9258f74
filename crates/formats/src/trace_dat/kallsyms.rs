//! Function names by address, from the copy of `/proc/kallsyms` in the file.

use crate::function_graph::{NameId, Names};
use rustc_hash::FxHashMap;

/// The functions of a kernel, by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    /// Ascending by address, the first of several names for one address first.
    functions: Vec<Symbol>,
    text: Vec<u8>,
}

/// A function: its address, and the positions of its name and its module in the text.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    name: (u32, u32),
    module: (u32, u32),
}

impl Symbols {
    /// Reads lines `ffffffff81000000 T name [module]`. Data and absolute symbols (per-CPU variables
    /// have small addresses) are not functions.
    pub fn parse(text: &[u8]) -> Self {
        let mut symbols = Self {
            functions: Vec::new(),
            text: text.to_vec(),
        };
        let mut at = 0;
        for line in text.split_inclusive(|&b| b == b'\n') {
            symbols.functions.extend(symbol(line, at));
            at += line.len();
        }
        // Stable, so that of several names the first one in kallsyms stays first.
        symbols.functions.sort_by_key(|symbol| symbol.address);
        symbols
    }

    /// The function that contains `address`.
    fn at(&self, address: u64) -> Option<&Symbol> {
        let after = self.functions.partition_point(|s| s.address <= address);
        let found = self.functions.get(after.checked_sub(1)?)?;
        let first = self
            .functions
            .partition_point(|s| s.address < found.address);
        self.functions.get(first)
    }

    fn part(&self, (start, end): (u32, u32)) -> &[u8] {
        let part = self.text.get(start as usize..end as usize);
        part.unwrap_or_default()
    }
}

fn symbol(line: &[u8], at: usize) -> Option<Symbol> {
    let end = line.trim_ascii_end().len();
    let blank = memchr::memchr(b' ', line)?;
    let address = u64::from_str_radix(std::str::from_utf8(&line[..blank]).ok()?, 16).ok()?;
    let kind = *line.get(blank + 1)?;
    if address == 0 || !matches!(kind, b't' | b'T' | b'w' | b'W') {
        return None;
    }
    let name = blank + 3;
    let rest = line.get(name..end)?;
    let len = rest.iter().position(u8::is_ascii_whitespace);
    let name_end = name + len.unwrap_or(rest.len());
    let open = memchr::memchr(b'[', line.get(name_end..end)?).map(|open| name_end + open + 1);
    let module = open.map_or((end, end), |open| (open, end.saturating_sub(1).max(open)));
    let place = |offset: usize| u32::try_from(at + offset).ok();
    Some(Symbol {
        address,
        name: (place(name)?, place(name_end)?),
        module: (place(module.0)?, place(module.1)?),
    })
}

/// Names of a trace by the addresses found in it.
pub(super) struct Naming<'a> {
    symbols: &'a Symbols,
    pub names: Names,
    known: FxHashMap<u64, NameId>,
    last: Option<(u64, NameId)>,
    /// Functions for which there is no name.
    pub unnamed: u64,
}

impl<'a> Naming<'a> {
    pub fn new(symbols: &'a Symbols) -> Self {
        Self {
            symbols,
            names: Names::default(),
            known: FxHashMap::default(),
            last: None,
            unnamed: 0,
        }
    }

    /// The name of the function at `address`; the address itself if it has none.
    #[inline]
    pub fn name(&mut self, address: u64) -> NameId {
        match self.last {
            Some((last, name)) if last == address => name,
            _ => {
                let name = match self.known.get(&address) {
                    Some(&name) => name,
                    None => self.learn(address),
                };
                self.last = Some((address, name));
                name
            }
        }
    }

    #[cold]
    fn learn(&mut self, address: u64) -> NameId {
        let name = match self.symbols.at(address) {
            Some(symbol) => {
                let name = self.names.intern(self.symbols.part(symbol.name));
                let module = self.symbols.part(symbol.module);
                if !module.is_empty() {
                    self.names.set_module(name, module);
                }
                name
            }
            None => {
                self.unnamed += 1;
                self.names.intern(format!("{address:#x}").as_bytes())
            }
        };
        self.known.insert(address, name);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_any_address_inside() {
        let symbols = Symbols::parse(
            b"0000000000000000 A percpu\nffffffff81000200 t second\nffffffff81000100 T first\n\
              ffffffff81000100 T alias\nffffffff81000180 d data\n\
              ffffffffc0000000 t inode\t[ext4]\n",
        );
        let mut naming = Naming::new(&symbols);
        for (address, name) in [
            (0xffff_ffff_8100_0100, "first"),
            (0xffff_ffff_8100_01ff, "first"),
            (0xffff_ffff_8100_0200, "second"),
            (0xffff_ffff_c000_0010, "inode"),
        ] {
            let found = naming.name(address);
            assert_eq!(naming.names.text(found), name);
        }
        let inode = naming.name(0xffff_ffff_c000_0010);
        assert_eq!(naming.names.module(inode), Some("ext4"));
        assert_eq!(naming.unnamed, 0);
        let stray = naming.name(0x10);
        assert_eq!(naming.names.text(stray), "0x10");
        assert_eq!(naming.unnamed, 1);
    }

    #[test]
    fn odd_lines_are_no_functions() {
        for text in ["", "ff", "ff t", "zz t x\n", "ff t x [", "ff  "] {
            let symbols = Symbols::parse(text.as_bytes());
            assert!(symbols.functions.len() <= 1, "{text}");
        }
    }
}
