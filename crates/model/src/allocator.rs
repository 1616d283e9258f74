//! Memory allocators that a process may use.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Families of allocators that have settings of their own.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AllocatorKind {
    /// GNU libc's ptmalloc.
    Glibc,
    /// musl's mallocng or oldmalloc.
    Musl,
    /// jemalloc.
    Jemalloc,
    /// tcmalloc (gperftools or Google's).
    Tcmalloc,
    /// mimalloc.
    Mimalloc,
    /// The Go runtime.
    Go,
    /// A Java virtual machine's heap.
    Jvm,
    /// V8 (Node.js, Chromium).
    V8,
    /// CPython's obmalloc arenas, on top of the C allocator.
    Cpython,
    /// PHP's Zend memory manager: chunks of 2 MiB.
    Php,
    /// Ruby's heap of slots, next to the C allocator.
    Ruby,
    /// R's heap, on top of the C allocator.
    R,
    /// .NET's garbage-collected heap.
    Dotnet,
    /// OCaml's minor and major heaps.
    Ocaml,
    /// Guile, on the collector of Boehm, Demers and Weiser.
    Guile,
    /// The Erlang virtual machine's carriers.
    Erlang,
    /// PyPy's nursery and arenas.
    Pypy,
    /// Steel Bank Common Lisp's dynamic space.
    Sbcl,
    /// LuaJIT's own malloc.
    Luajit,
    /// The heap of GHC's run-time system.
    Haskell,
    /// No allocator was recognised.
    #[default]
    Unknown,
}

impl AllocatorKind {
    /// Its name, as its authors spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Musl => "musl",
            Self::Jemalloc => "jemalloc",
            Self::Tcmalloc => "tcmalloc",
            Self::Mimalloc => "mimalloc",
            Self::Go => "Go",
            Self::Jvm => "JVM",
            Self::V8 => "V8",
            Self::Cpython => "Python",
            Self::Php => "PHP",
            Self::Ruby => "Ruby",
            Self::R => "R",
            Self::Dotnet => ".NET",
            Self::Ocaml => "OCaml",
            Self::Guile => "Guile",
            Self::Erlang => "Erlang",
            Self::Pypy => "PyPy",
            Self::Sbcl => "SBCL",
            Self::Luajit => "LuaJIT",
            Self::Haskell => "Haskell",
            Self::Unknown => "an allocator",
        }
    }
}

/// The allocators of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessAllocators {
    /// Process id.
    pub pid: i32,
    /// Its allocators.
    pub allocators: Vec<Allocator>,
}

/// An allocator found in a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Allocator {
    /// Family.
    pub kind: AllocatorKind,
    /// Version, such as `2.36` for glibc, where it could be determined.
    pub version: Option<String>,
    /// How it was recognised: a mapped file, a symbol.
    pub evidence: String,
    /// Settings in force when the program started, by their environment or tunable name.
    pub settings: BTreeMap<String, String>,
    /// Whether it was linked statically: preloading another one then has no effect.
    pub is_static: bool,
    /// The name of the file that contains it beside other code, of the program or of a library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// The variable that this build reads, where it is not the usual one of its family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
}
