//! Time in the allocator's own code: data, `crates/faults/rules/allocators.toml`.

use super::table::matches;
use pagewise_model::profile::{Frame, FrameKind};
use pagewise_rules::{Content, RuleFile, rule_file};
use serde::Deserialize;
use std::sync::LazyLock;

/// The contents of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllocatorTable {
    allocator: Vec<Functions>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Functions {
    /// The name of the allocator; for readers of the file.
    #[allow(dead_code, reason = "a heading")]
    name: String,
    functions: Vec<String>,
    #[serde(default)]
    modules: Vec<String>,
}

const SHIPPED: RuleFile = rule_file!("allocators.toml");

impl Content for AllocatorTable {}

impl AllocatorTable {
    /// The built-in table.
    pub(super) fn shipped() -> &'static Self {
        static TABLE: LazyLock<AllocatorTable> = LazyLock::new(|| SHIPPED.shipped());
        &TABLE
    }

    /// Whether CPU time in this function belongs to an allocator.
    pub(super) fn has(&self, frame: &Frame) -> bool {
        if frame.kind == FrameKind::Kernel {
            return false;
        }
        let of_module = |one: &Functions| {
            let mut modules = one.modules.iter();
            modules.any(|start| frame.module.starts_with(start.as_str()))
        };
        let named = frame.unnamed.is_none();
        let mut all = self.allocator.iter();
        all.any(|one| of_module(one) || named && matches(&one.functions, &frame.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, module: &str) -> Frame {
        Frame {
            name: name.into(),
            module: module.into(),
            kind: FrameKind::User,
            unnamed: None,
        }
    }

    #[test]
    fn allocators_are_known_by_functions_and_by_libraries() {
        let table = AllocatorTable::shipped();
        let known = [
            ("_int_malloc", "libc.so.6"),
            ("_int_free.isra.0", "libc.so.6"),
            ("operator new(unsigned long)", "libstdc++.so.6"),
            ("je_malloc", "redis-server"),
            ("anything", "libmimalloc.so.2.0"),
        ];
        for (name, module) in known {
            assert!(table.has(&frame(name, module)), "{name} in {module}");
        }
        for name in ["memcpy", "mallocate", "freeze", "main"] {
            assert!(!table.has(&frame(name, "a.out")), "{name}");
        }
    }
}
