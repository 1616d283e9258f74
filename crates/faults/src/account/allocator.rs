//! Time in the allocator's own code: data, `crates/families/rules`.

use pagewise_families::{Code, families, matches};
use pagewise_model::profile::{Frame, FrameKind};

/// The allocators' code.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllocatorTable;

impl AllocatorTable {
    /// The built-in table.
    pub(super) fn shipped() -> &'static Self {
        &Self
    }

    /// Whether CPU time in this function belongs to an allocator.
    pub(super) fn has(&self, frame: &Frame) -> bool {
        if frame.kind == FrameKind::Kernel {
            return false;
        }
        let of_module = |code: &Code| {
            let mut modules = code.modules.iter();
            modules.any(|start| frame.module.starts_with(start.as_str()))
        };
        let named = frame.unnamed.is_none();
        let mut all = families().iter().filter_map(|family| family.code.as_ref());
        all.any(|code| of_module(code) || named && matches(&code.functions, &frame.name))
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
