//! Names of code addresses, resolved once per unique address after a recording was analysed.

use crate::stack::FrameKey;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Why an address has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unnamed {
    /// No mapping contains it: a broken frame-pointer chain.
    NoMapping,
    /// Its file has no symbol for it.
    NoSymbol,
    /// Its file could no longer be read.
    NoFile,
    /// Another file, or another kernel, is where the recorded one was.
    OtherFile,
    /// Code of a virtual machine.
    Guest,
    /// Kernel addresses are hidden (`kernel.kptr_restrict`).
    KernelHidden,
    /// Generated code without a map file.
    Jit,
}

/// What is known about one address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// Function names, innermost inlined function first, and the module (file name, `[kernel]`).
    Known {
        /// Demangled function names; more than one when calls were inlined here.
        functions: Vec<String>,
        /// Short name of the file that contains the code.
        module: String,
    },
    /// No name, with the reason, and the module where one is known.
    Unknown {
        /// Why there is no name.
        reason: Unnamed,
        /// Short name of the file that contains the code, or empty.
        module: String,
    },
}

/// Number of a name in its [`SymbolTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(u32);

impl NameId {
    /// As an index into tables with one entry per name.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names, each once: one function has thousands of addresses.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Vec<Name>,
    numbers: FxHashMap<Name, NameId>,
}

impl Names {
    /// The number of a name; equal names get equal numbers.
    pub fn intern(&mut self, name: Name) -> NameId {
        if let Some(&known) = self.numbers.get(&name) {
            return known;
        }
        let new = NameId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.clone());
        self.numbers.insert(name, new);
        new
    }

    /// All names, in the order of their numbers.
    #[must_use]
    pub fn all(&self) -> &[Name] {
        &self.names
    }
}

/// Names of a list of addresses.
#[derive(Clone, Debug, Default)]
pub struct NamedList {
    /// The names.
    pub names: Names,
    /// The name of each address of the list.
    pub of: Vec<NameId>,
}

impl NamedList {
    /// Takes away the addresses from the one at `first` on.
    #[must_use]
    pub fn split_off(&mut self, first: usize) -> Self {
        Self {
            names: self.names.clone(),
            of: self.of.split_off(first),
        }
    }
}

/// Names by address.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable {
    names: Names,
    by_address: FxHashMap<FrameKey, NameId>,
}

impl SymbolTable {
    /// The names of these addresses.
    #[must_use]
    pub fn new(keys: &[FrameKey], named: NamedList) -> Self {
        Self {
            names: named.names,
            by_address: keys.iter().copied().zip(named.of).collect(),
        }
    }

    /// What is known about an address.
    #[must_use]
    pub fn get(&self, key: &FrameKey) -> Option<&Name> {
        let name = self.by_address.get(key)?;
        self.names.all().get(name.index())
    }

    /// How many addresses have a name, or a reason for having none.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_address.len()
    }

    /// Whether no address was looked up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_address.is_empty()
    }
}

impl FromIterator<(FrameKey, Name)> for SymbolTable {
    fn from_iter<I: IntoIterator<Item = (FrameKey, Name)>>(pairs: I) -> Self {
        let mut table = Self::default();
        for (key, name) in pairs {
            let name = table.names.intern(name);
            table.by_address.insert(key, name);
        }
        table
    }
}
