//! Allocators and language runtimes as data: one file per family in `rules/`, from which a family is
//! recognised, its own code and the variables that it reads are known, and its settings are advised,
//! tried and tuned.
//!
//! A file has one section per reader. This crate reads what the family is; `answer` reads its rules
//! (`[[rule]]`) and `compare` its recipes for `tune` (`[[recipe]]`) from the same files.
//!
//! Deliberately absent: how a process is examined, which `linux` does.

#![forbid(unsafe_code)]

use pagewise_model::allocator::AllocatorKind;
use pagewise_rules::{Content, RuleError, RuleFile, rule_file};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::sync::LazyLock;

/// The files, allocators first.
const FILES: [RuleFile; 21] = [
    rule_file!("glibc.toml"),
    rule_file!("jemalloc.toml"),
    rule_file!("tcmalloc.toml"),
    rule_file!("mimalloc.toml"),
    rule_file!("musl.toml"),
    rule_file!("cplusplus.toml"),
    rule_file!("go.toml"),
    rule_file!("jvm.toml"),
    rule_file!("v8.toml"),
    rule_file!("php.toml"),
    rule_file!("cpython.toml"),
    rule_file!("ruby.toml"),
    rule_file!("r.toml"),
    rule_file!("dotnet.toml"),
    rule_file!("ocaml.toml"),
    rule_file!("guile.toml"),
    rule_file!("erlang.toml"),
    rule_file!("pypy.toml"),
    rule_file!("sbcl.toml"),
    rule_file!("luajit.toml"),
    rule_file!("haskell.toml"),
];

/// An allocator or a language runtime.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// What it is called in recordings; `unknown` for code that is nobody's in particular.
    pub kind: AllocatorKind,
    /// The displayed name.
    pub name: String,
    /// The newest version with which its settings were tried.
    pub tried: Option<String>,
    /// Variables of the environment that it reads; a beginning where it ends in `*`.
    variables: Vec<String>,
    /// Beginnings of the names of its shared libraries, which replace the C library's malloc.
    #[serde(default)]
    pub libraries: Vec<String>,
    /// Names of the libraries that can be preloaded, the newest first.
    #[serde(default)]
    pub preload: Vec<String>,
    /// Symbols that only it defines.
    #[serde(default)]
    pub symbols: Vec<String>,
    /// Symbols that only it defines inside a static program.
    #[serde(default)]
    pub symbols_inside: Vec<String>,
    /// Texts in it that stripping leaves; a file with all of them contains it.
    #[serde(default)]
    pub texts: Vec<String>,
    /// The variable before whose name a build may put a prefix of its own.
    pub prefixed: Option<String>,
    /// Text in it before its version.
    pub version_after: Option<String>,
    /// Text in it behind its version.
    pub version_before: Option<String>,
    /// The code of an allocator.
    pub code: Option<Code>,
    /// The heap of a language runtime.
    pub heap: Option<Heap>,
    #[serde(default, rename = "rule")]
    _rules: Vec<IgnoredAny>,
    #[serde(default, rename = "recipe")]
    _recipes: Vec<IgnoredAny>,
    #[serde(default, rename = "default")]
    _defaults: Vec<IgnoredAny>,
}

/// Functions in which time is an allocator's, by names, or by beginnings where they end in `*`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// Functions of it.
    pub functions: Vec<String>,
    /// Files in which all functions are its own, by the beginnings of their names.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Files, by the beginnings of their names, in which functions without a name that request or release
    /// memory are its own: a stripped C library.
    #[serde(default)]
    pub unnamed_in: Vec<String>,
}

/// A language runtime, and functions that show its heap at work: names, or beginnings of names where they
/// end in `*`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heap {
    /// Names of the files, one of which each process of it maps: its program, its library.
    #[serde(default)]
    pub files: Vec<String>,
    /// Symbols, one of which each program that contains it defines.
    #[serde(default)]
    pub symbols: Vec<String>,
    /// Whether all of the heap is mapped without malloc, whose settings do not reach it.
    #[serde(default)]
    pub apart: bool,
    /// Functions that map, release and place the heap: where a call for memory comes through one of
    /// them before it comes through an allocator's, no setting of the allocator reaches it.
    pub functions: Vec<String>,
    /// Files whose own calls of mmap, munmap and madvise are the heap's, although the functions that
    /// make them have no names in stripped builds.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Functions beneath which the runtime looks for garbage; the program waits for some of it.
    pub collector: Vec<String>,
    /// Files that hold little else, whose functions without names count as the collector's.
    #[serde(default)]
    pub collector_files: Vec<String>,
}

impl Content for Family {}

impl Family {
    /// Whether it reads a variable of this name.
    #[must_use]
    pub fn reads(&self, variable: &str) -> bool {
        matches(&self.variables, variable)
    }
}

/// All families, allocators first.
#[must_use]
pub fn families() -> &'static [Family] {
    static ALL: LazyLock<Vec<Family>> =
        LazyLock::new(|| FILES.iter().map(RuleFile::shipped).collect());
    &ALL
}

impl Code {
    /// Whether a function without a name that requests or releases memory in this file is the allocator's.
    #[must_use]
    pub fn has_unnamed(&self, module: &str) -> bool {
        let mut all = self.modules.iter().chain(&self.unnamed_in);
        all.any(|start| module.starts_with(start.as_str()))
    }
}

/// The family of this kind.
#[must_use]
pub fn family(kind: AllocatorKind) -> Option<&'static Family> {
    let mut all = families().iter();
    all.find(|family| family.kind == kind && kind != AllocatorKind::Unknown)
}

/// Another section of each file, in the order of the files.
///
/// # Errors
/// [`RuleError`] if one has a mistake.
pub fn sections<T: Content>() -> Result<Vec<T>, RuleError> {
    FILES.iter().map(RuleFile::read).collect()
}

/// Whether a name is among `wanted`: whole names, or beginnings where they end in `*`.
#[must_use]
pub fn matches(wanted: &[String], name: &str) -> bool {
    let is_it = |wanted: &String| match wanted.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == wanted,
    };
    wanted.iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_one_file_and_knows_its_variables() {
        let mut kinds: Vec<AllocatorKind> = families().iter().map(|one| one.kind).collect();
        kinds.sort_unstable();
        let all = kinds.len();
        kinds.dedup();
        assert_eq!(kinds.len(), all, "{kinds:?}");
        let jemalloc = family(AllocatorKind::Jemalloc).expect("a family");
        assert!(jemalloc.reads("_RJEM_MALLOC_CONF") && !jemalloc.reads("MALLOC_ARENA_MAX"));
        let mimalloc = family(AllocatorKind::Mimalloc).expect("a family");
        assert!(mimalloc.reads("MIMALLOC_PURGE_DELAY"));
        assert!(mimalloc.preload.contains(&"libmimalloc.so.3".to_owned()));
        assert!(family(AllocatorKind::Unknown).is_none());
    }
}
