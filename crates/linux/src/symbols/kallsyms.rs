//! `/proc/kallsyms`: names of the kernel's functions, including those of modules.

use super::unknown;
use pagewise_model::symbol::{Name, Unnamed};
use std::path::Path;

/// The kernel's functions by address.
#[derive(Debug)]
pub(super) struct Kallsyms {
    text: String,
    /// Address, and the line's position in `text`.
    functions: Vec<(u64, u32)>,
    /// `_text` and `_stext`.
    starts: Vec<u64>,
}

impl Kallsyms {
    /// Reads the table. The error is the reason why all kernel addresses stay without a name: not
    /// readable, or all addresses zero because of `kernel.kptr_restrict`.
    pub fn read(path: &Path) -> Result<Self, Unnamed> {
        let text = std::fs::read_to_string(path).map_err(|_| Unnamed::NoFile)?;
        Self::parse(text)
    }

    fn parse(text: String) -> Result<Self, Unnamed> {
        let mut functions = Vec::new();
        let mut starts = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let place = u32::try_from(at).map_err(|_| Unnamed::NoFile)?;
            at += line.len();
            let mut words = line.split_ascii_whitespace();
            let (address, kind) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let address = u64::from_str_radix(address, 16).unwrap_or(0);
            if address == 0 || !matches!(kind, "t" | "T" | "w" | "W") {
                continue;
            }
            if matches!(words.next(), Some("_text" | "_stext")) {
                starts.push(address);
            }
            functions.push((address, place));
        }
        if functions.is_empty() {
            return Err(Unnamed::KernelHidden);
        }
        functions.sort_by_key(|&(address, _)| address);
        Ok(Self {
            text,
            functions,
            starts,
        })
    }

    /// Whether this is the kernel with its text at the `recorded` address. Unknown counts as yes.
    pub fn is_of_kernel_at(&self, recorded: Option<u64>) -> bool {
        self.starts.is_empty() || recorded.is_none_or(|text| self.starts.contains(&text))
    }

    /// Whether both addresses are in the same function.
    pub fn same(&self, a: u64, b: u64) -> bool {
        self.after(a) == self.after(b)
    }

    /// Index of the first function after `address`.
    fn after(&self, address: u64) -> usize {
        self.functions
            .partition_point(|&(start, _)| start <= address)
    }

    /// The function that contains `address`.
    pub fn name(&self, address: u64) -> Name {
        let line = self
            .after(address)
            .checked_sub(1)
            .and_then(|last| self.text.get(self.functions[last].1 as usize..));
        let mut words = line
            .and_then(|rest| rest.lines().next())
            .unwrap_or("")
            .split_ascii_whitespace()
            .skip(2);
        match words.next() {
            None => unknown(Unnamed::NoSymbol, "[kernel]"),
            Some(function) => Name::Known {
                functions: vec![function.to_owned()],
                module: words.next().unwrap_or("[kernel]").to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "ffffffff81000000 T _text\n\
        ffffffff81000100 T do_anonymous_page\n\
        ffffffff81000050 t early\n\
        ffffffff81000180 D some_data\n\
        ffffffffc0000000 t xfs_read\t[xfs]\n";

    fn function(table: &Kallsyms, address: u64) -> (String, String) {
        match table.name(address) {
            Name::Known { functions, module } => (functions[0].clone(), module),
            Name::Unknown { reason, module } => (format!("{reason:?}"), module),
        }
    }

    #[test]
    fn the_function_below_an_address_holds_it() {
        let table = Kallsyms::parse(TABLE.into()).expect("addresses are shown");
        let kernel = |name: &str| (name.to_owned(), "[kernel]".to_owned());
        assert_eq!(function(&table, 0xffff_ffff_8100_0049), kernel("_text"));
        assert_eq!(function(&table, 0xffff_ffff_8100_0050), kernel("early"));
        assert_eq!(
            function(&table, 0xffff_ffff_8100_01ff),
            kernel("do_anonymous_page")
        );
        assert_eq!(function(&table, 0xffff_ffff_c000_0008).1, "[xfs]");
        assert_eq!(function(&table, 0x1000), kernel("NoSymbol"));
    }

    #[test]
    fn hidden_addresses_are_a_reason() {
        let hidden = "0000000000000000 T _text\n0000000000000000 T a\n";
        let reason = Kallsyms::parse(hidden.into()).expect_err("all zero");
        assert_eq!(reason, Unnamed::KernelHidden);
    }

    #[test]
    fn a_kernel_elsewhere_is_another_kernel() {
        let table = Kallsyms::parse(TABLE.into()).expect("addresses are shown");
        assert!(table.is_of_kernel_at(None));
        assert!(table.is_of_kernel_at(Some(0xffff_ffff_8100_0000)));
        assert!(!table.is_of_kernel_at(Some(0xffff_ffff_9100_0000)));
    }
}
