//! Names of frames, and which of them are of interest to a reader.

use pagewise_model::event::CpuMode;
use pagewise_model::stack::{FrameKey, StackId, StackTable};
use pagewise_model::symbol::{Name, SymbolTable, Unnamed};

/// One frame with its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// Function, or a substitute for its name.
    pub(crate) name: String,
    /// Module, empty where unknown.
    pub(crate) module: String,
}

/// Stacks with their names.
pub(crate) struct Names<'a> {
    stacks: &'a StackTable,
    symbols: &'a SymbolTable,
}

/// Files of the C library, the loader and allocators: their frames only do what the caller
/// requested.
const CARRIERS: [&str; 13] = [
    "libc.so",
    "libc-",
    "libc.musl",
    "ld-linux",
    "ld-musl",
    "ld-",
    "libpthread",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
    "libstdc++",
    "[kernel",
    "[vdso",
];

/// Functions that allocate, free, copy or make system calls, for statically linked programs.
const CARRYING_FUNCTIONS: [&str; 22] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "cfree",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "memset",
    "memcpy",
    "memmove",
    "mmap",
    "munmap",
    "brk",
    "sbrk",
    "madvise",
    "mremap",
    "systrim",
    "sysmalloc",
    "operator new",
    "operator delete",
    "_int_",
];

impl<'a> Names<'a> {
    pub(crate) fn new(stacks: &'a StackTable, symbols: &'a SymbolTable) -> Self {
        Self { stacks, symbols }
    }

    /// Frames of a stack, innermost first, with inlined calls as separate frames.
    pub(crate) fn frames(&self, stack: StackId) -> Vec<Frame> {
        let mut frames = Vec::new();
        for key in self.stacks.frames(stack) {
            self.push(key, &mut frames);
        }
        frames
    }

    fn push(&self, key: FrameKey, frames: &mut Vec<Frame>) {
        match self.symbols.get(&key) {
            Some(Name::Known { functions, module }) => {
                frames.extend(functions.iter().map(|function| Frame {
                    name: function.clone(),
                    module: module.clone(),
                }));
            }
            Some(Name::Unknown { reason, module }) => push_unnamed(
                Frame {
                    name: unnamed(*reason, module),
                    module: module.clone(),
                },
                frames,
            ),
            None => push_unnamed(
                Frame {
                    name: "[unknown]".to_owned(),
                    module: String::new(),
                },
                frames,
            ),
        }
    }

    /// Whether any frame of a stack is one of these kernel functions; `None` if no kernel frame has
    /// a name.
    pub(crate) fn kernel_calls(&self, stack: StackId, functions: &[&str]) -> Option<bool> {
        let mut named = false;
        for key in self
            .stacks
            .frames(stack)
            .filter(|key| key.mode == CpuMode::Kernel)
        {
            if let Some(Name::Known {
                functions: known, ..
            }) = self.symbols.get(&key)
            {
                named = true;
                if known
                    .iter()
                    .any(|name| functions.iter().any(|of| name.starts_with(of)))
                {
                    return Some(true);
                }
            }
        }
        named.then_some(false)
    }
}

/// Merges a run of frames without names into one: a chain that has lost its frame pointers passes
/// through up to a hundred words of stack that never were return addresses.
fn push_unnamed(frame: Frame, frames: &mut Vec<Frame>) {
    if frames.last() != Some(&frame) {
        frames.push(frame);
    }
}

fn unnamed(reason: Unnamed, module: &str) -> String {
    match (reason, module.is_empty()) {
        (Unnamed::KernelHidden, _) => "[kernel, names hidden]".to_owned(),
        (Unnamed::Guest, _) => "[virtual machine]".to_owned(),
        (Unnamed::Jit, _) => "[generated code]".to_owned(),
        (_, false) => format!("[{module}]"),
        (Unnamed::NoMapping, true) => "[broken stack]".to_owned(),
        (_, true) => "[unknown]".to_owned(),
    }
}

/// The innermost frame outside the C library, the loader, the allocator and the kernel; if there is
/// none, the outermost frame.
pub(crate) fn culprit(frames: &[Frame]) -> String {
    frames
        .iter()
        .find(|frame| !is_carrier(frame))
        .or(frames.last())
        .map_or_else(String::new, |frame| frame.name.clone())
}

fn is_carrier(frame: &Frame) -> bool {
    let name = frame.name.trim_start_matches("__");
    CARRIERS.iter().any(|file| frame.module.starts_with(file))
        || CARRYING_FUNCTIONS
            .iter()
            .any(|function| carries(name, function))
}

/// Whether a name is the function or a variant of it (`memset_avx2_unaligned_erms`, `operator
/// new[]`), but not another word with the same beginning (`freeze`).
fn carries(name: &str, function: &str) -> bool {
    name.strip_prefix(function).is_some_and(|rest| {
        function.ends_with('_') || !rest.starts_with(|next: char| next.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, module: &str) -> Frame {
        Frame {
            name: name.to_owned(),
            module: module.to_owned(),
        }
    }

    #[test]
    fn in_a_static_program_the_allocators_functions_are_passed_over() {
        let stack = [
            frame("__memset_avx2_unaligned_erms", "program"),
            frame("_int_malloc", "program"),
            frame("operator new(unsigned long)", "program"),
            frame("freeze_table", "program"),
            frame("main", "program"),
        ];
        assert_eq!(culprit(&stack), "freeze_table");
    }

    #[test]
    fn a_run_of_frames_without_names_reads_as_one() {
        let mut frames = vec![frame("main", "program")];
        for _ in 0..100 {
            push_unnamed(frame("[broken stack]", ""), &mut frames);
        }
        push_unnamed(frame("[unknown]", ""), &mut frames);
        let names: Vec<&str> = frames.iter().map(|frame| frame.name.as_str()).collect();
        assert_eq!(names, ["main", "[broken stack]", "[unknown]"]);
    }

    #[test]
    fn a_stack_inside_libc_alone_names_its_outermost_frame() {
        assert_eq!(
            culprit(&[frame("memset", "libc.so.6"), frame("start", "libc.so.6")]),
            "start"
        );
    }
}
