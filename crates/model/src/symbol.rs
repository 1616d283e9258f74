//! Names of code addresses, found once per unique address after a recording was analysed.

use crate::stack::FrameKey;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Why an address has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unnamed {
    /// No mapping holds it: a broken frame-pointer chain.
    NoMapping,
    /// Its file carries no symbol for it.
    NoSymbol,
    /// Its file could not be read any more.
    NoFile,
    /// Kernel addresses are hidden (`kernel.kptr_restrict`).
    KernelHidden,
    /// Generated code without a map file.
    Jit,
}

/// What is known of one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// Function names, innermost inlined function first, and the module (file name, `[kernel]`).
    Known {
        /// Demangled function names; more than one when calls were inlined here.
        functions: Vec<String>,
        /// Short name of the file that holds the code.
        module: String,
    },
    /// No name, with the reason, and the module where one is known.
    Unknown {
        /// Why there is no name.
        reason: Unnamed,
        /// Short name of the file that holds the code, or empty.
        module: String,
    },
}

/// Names by address.
pub type SymbolTable = FxHashMap<FrameKey, Name>;
