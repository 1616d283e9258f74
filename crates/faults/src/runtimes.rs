//! Language runtimes and their heaps, as visible in call stacks: data, `rules/runtimes.toml`.

use pagewise_model::allocator::AllocatorKind;
use pagewise_rules::{Content, RuleFile, rule_file};
use serde::Deserialize;
use std::sync::LazyLock;

/// The contents of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runtimes {
    runtime: Vec<Runtime>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Runtime {
    kind: AllocatorKind,
    /// The displayed name.
    name: String,
    heap: Vec<String>,
    #[serde(default)]
    modules: Vec<String>,
    collector: Vec<String>,
}

const SHIPPED: RuleFile = rule_file!("runtimes.toml");

impl Content for Runtimes {}

/// The C library's names of memory calls.
const KERNEL_CALLS: [&str; 5] = ["mmap", "mmap64", "munmap", "madvise", "mremap"];

impl Runtimes {
    /// The built-in table.
    pub fn shipped() -> &'static Self {
        static TABLE: LazyLock<Runtimes> = LazyLock::new(|| SHIPPED.shipped());
        &TABLE
    }

    /// The runtime to which a function in the stack of a memory call belongs.
    pub fn heap_of(&self, function: &str) -> Option<AllocatorKind> {
        let found = self.runtime.iter().find(|one| matches(&one.heap, function));
        found.map(|one| one.kind)
    }

    /// The runtime whose file makes a memory call itself; `[libruby.so]` stands for one of its
    /// functions without a name.
    pub fn calling_module(&self, stack: &[String]) -> Option<AllocatorKind> {
        let caller = stack
            .iter()
            .rev()
            .find(|function| !is_kernel_call(function))?;
        let module = caller.strip_prefix('[')?;
        let of = |one: &&Runtime| one.modules.iter().any(|start| module.starts_with(start));
        self.runtime.iter().find(of).map(|one| one.kind)
    }

    /// The runtime whose collector this function belongs to.
    pub fn collector_of(&self, function: &str) -> Option<AllocatorKind> {
        let mut all = self.runtime.iter();
        let found = all.find(|one| matches(&one.collector, function));
        found.map(|one| one.kind)
    }

    /// Whether it manages a heap of its own.
    pub fn has(&self, kind: AllocatorKind) -> bool {
        self.runtime.iter().any(|one| one.kind == kind)
    }

    /// Its displayed name.
    pub fn name(&self, kind: AllocatorKind) -> Option<&str> {
        let found = self.runtime.iter().find(|one| one.kind == kind);
        found.map(|one| one.name.as_str())
    }
}

fn is_kernel_call(function: &str) -> bool {
    let name = function.trim_start_matches('_');
    let name = name.strip_prefix("GI_").unwrap_or(name);
    KERNEL_CALLS.contains(&name.trim_start_matches('_'))
}

fn matches(functions: &[String], name: &str) -> bool {
    functions
        .iter()
        .any(|wanted| match wanted.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == wanted,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(functions: &[&str]) -> Vec<String> {
        functions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn functions_tell_the_runtime() {
        let runtimes = Runtimes::shipped();
        let heaps = [
            ("runtime.sysUnused", Some(AllocatorKind::Go)),
            (
                "v8::base::OS::Free(void*, unsigned long)",
                Some(AllocatorKind::V8),
            ),
            (
                "os::pd_uncommit_memory(char*, unsigned long, bool)",
                Some(AllocatorKind::Jvm),
            ),
            ("main.main", None),
            ("malloc", None),
        ];
        for (function, expected) in heaps {
            assert_eq!(runtimes.heap_of(function), expected, "{function}");
        }
        assert_eq!(
            runtimes.collector_of("runtime.gcBgMarkWorker.func2"),
            Some(AllocatorKind::Go)
        );
        assert_eq!(runtimes.collector_of("runtime.mallocgc"), None);
    }

    #[test]
    fn a_stripped_runtime_is_told_by_the_file_that_calls() {
        let runtimes = Runtimes::shipped();
        let calls = |functions: &[&str]| runtimes.calling_module(&stack(functions));
        let php = ["zend_execute", "[php8.2]", "__mmap", "__GI___mmap64"];
        assert_eq!(calls(&php), Some(AllocatorKind::Php));
        assert_eq!(
            calls(&["[libruby-3.1.so.3.1.7]", "__munmap"]),
            Some(AllocatorKind::Ruby)
        );
        // An extension, and a runtime whose allocator makes the call.
        assert_eq!(calls(&["[php8.2]", "[opcache.so]", "__mmap"]), None);
        assert_eq!(
            calls(&["[php8.2]", "_int_free", "munmap_chunk", "__munmap"]),
            None
        );
    }
}
