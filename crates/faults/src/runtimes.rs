//! Language runtimes and their heaps, as visible in call stacks: data, `crates/families/rules`.

use pagewise_families::{Family, Heap, families, family, matches};
use pagewise_model::allocator::AllocatorKind;

/// The families with a heap of their own.
#[derive(Clone, Copy, Debug)]
pub struct Runtimes;

/// The C library's names of memory calls.
const KERNEL_CALLS: [&str; 5] = ["mmap", "mmap64", "munmap", "madvise", "mremap"];

impl Runtimes {
    /// The built-in table.
    pub fn shipped() -> &'static Self {
        &Self
    }

    /// The runtime to which a function in the stack of a memory call belongs.
    pub fn heap_of(&self, function: &str) -> Option<AllocatorKind> {
        find(|heap| matches(&heap.functions, function))
    }

    /// The runtime whose file makes a memory call itself; `[libruby.so]` stands for one of its
    /// functions without a name.
    pub fn calling_module(&self, stack: &[String]) -> Option<AllocatorKind> {
        let caller = stack
            .iter()
            .rev()
            .find(|function| !is_kernel_call(function))?;
        let module = caller.strip_prefix('[')?;
        find(|heap| heap.modules.iter().any(|start| module.starts_with(start)))
    }

    /// The runtime whose collector this function belongs to.
    pub fn collector_of(&self, function: &str) -> Option<AllocatorKind> {
        find(|heap| matches(&heap.collector, function))
    }

    /// The runtime to whose collector the functions without names in this file belong.
    pub fn collector_in(&self, file: &str) -> Option<AllocatorKind> {
        find(|heap| matches(&heap.collector_files, file))
    }

    /// Whether it manages a heap of its own.
    pub fn has(&self, kind: AllocatorKind) -> bool {
        family(kind).is_some_and(|family| family.heap.is_some())
    }

    /// Its displayed name.
    pub fn name(&self, kind: AllocatorKind) -> Option<&'static str> {
        let runtime = family(kind).filter(|family| family.heap.is_some());
        runtime.map(|family| family.name.as_str())
    }
}

/// The first runtime with such a heap.
fn find(fits: impl Fn(&Heap) -> bool) -> Option<AllocatorKind> {
    let fits = |family: &&Family| family.heap.as_ref().is_some_and(&fits);
    families().iter().find(fits).map(|family| family.kind)
}

fn is_kernel_call(function: &str) -> bool {
    let name = function.trim_start_matches('_');
    let name = name.strip_prefix("GI_").unwrap_or(name);
    KERNEL_CALLS.contains(&name.trim_start_matches('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(functions: &[&str]) -> Vec<String> {
        functions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn copying_what_is_live_is_haskells_collector() {
        let collector = |function| Runtimes::shipped().collector_of(function);
        for function in ["evacuate", "evacuate_BLACKHOLE", "GarbageCollect"] {
            assert_eq!(
                collector(function),
                Some(AllocatorKind::Haskell),
                "{function}"
            );
        }
        assert_eq!(collector("threadPaused"), None);
    }

    #[test]
    fn a_stripped_collector_is_told_by_its_file() {
        let collector = |file| Runtimes::shipped().collector_in(file);
        assert_eq!(collector("libgc.so.1.5.1"), Some(AllocatorKind::Guile));
        assert_eq!(collector("libguile-3.0.so.1.6.0"), None);
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
            ("collect_garbage", Some(AllocatorKind::Sbcl)),
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
