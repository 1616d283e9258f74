//! Full stacks for code without frame pointers: from registers and a copy of the top of the stack,
//! by the unwind tables (`.eh_frame`) in each library.
//!
//! Debian's libraries keep no frame pointers, so chains walked by the kernel stop inside libc's
//! allocator, just where the caller would be interesting.

mod follow;
mod frame_pointer;
mod modules;
mod signed_returns;
mod skipped_caller;

pub use follow::StackFollower;

use frame_pointer::FramePointer;
use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module};
use modules::{ModuleFiles, Section};
use pagewise_model::address_space::{AddressSpace, Mapping};
use pagewise_model::event::UserStack;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::Path;

/// Deeper stacks are cut: the kernel's copy is at most 64 KiB, and a frame takes at least two words
/// of it.
const DEEPEST: usize = 4096;

/// Unwinds the user stacks of one recording.
pub struct Unwinder {
    machine: Machine,
    files: ModuleFiles,
}

/// Supported architectures. Register numbers are those of arch/*/include/uapi/asm/perf_regs.h.
enum Machine {
    X86(Processes<UnwinderX86_64<Section>>, Box<CacheX86_64>),
    Arm(Processes<UnwinderAarch64<Section>>, Box<CacheAarch64>),
}

type Processes<U> = FxHashMap<i32, Process<U>>;

/// The unwinder's state for a process: mapped modules by start, with end and path.
struct Process<U> {
    unwinder: U,
    modules: BTreeMap<u64, (u64, Box<str>)>,
}

impl Unwinder {
    /// An unwinder for recordings of this architecture (`uname -m`), with the files of this
    /// machine; `None` for architectures other than `x86_64` and `aarch64`.
    #[must_use]
    pub fn for_architecture(name: &str) -> Option<Self> {
        Self::with_root(name, Path::new("/"))
    }

    /// As [`Self::for_architecture`], with the files under `root`.
    #[must_use]
    pub fn with_root(name: &str, root: &Path) -> Option<Self> {
        let machine = match name {
            "x86_64" => Machine::X86(Processes::default(), Box::default()),
            "aarch64" => Machine::Arm(Processes::default(), Box::default()),
            _ => return None,
        };
        Some(Self {
            machine,
            files: ModuleFiles::new(root),
        })
    }

    /// The user frames of a sample, innermost first: the instruction pointer, then return addresses
    /// as from the kernel's frame-pointer walk. A frame interrupted by a signal is presented as if
    /// it had made a call, with the address after the interrupted one. Ends with the stack copy or
    /// the unwind tables; empty if the required registers were not recorded.
    #[must_use]
    pub fn unwind(&mut self, pid: i32, space: &AddressSpace, stack: UserStack<'_>) -> Vec<u64> {
        let files = &mut self.files;
        let frames = match &mut self.machine {
            Machine::X86(processes, cache) => x86_start(&stack).map(|start| {
                processes
                    .entry(pid)
                    .or_default()
                    .unwind(space, files, cache, &start)
            }),
            Machine::Arm(processes, cache) => arm_start(&stack).map(|start| {
                processes
                    .entry(pid)
                    .or_default()
                    .unwind(space, files, cache, &start)
            }),
        };
        frames.unwrap_or_default()
    }

    /// The start of the function that the call in front of a return address leads to, where the bytes
    /// of that call are known: see [`skipped_caller`].
    fn callee(&mut self, code: &Mapping, returns_to: u64) -> Option<u64> {
        let bytes = self.files.bytes(code)?;
        skipped_caller::callee(&self.machine, bytes, code.start, returns_to)
    }

    /// Forgets a process whose address space was replaced (`execve(2)`) or is gone.
    pub fn forget(&mut self, pid: i32) {
        match &mut self.machine {
            Machine::X86(processes, _) => drop(processes.remove(&pid)),
            Machine::Arm(processes, _) => drop(processes.remove(&pid)),
        }
    }
}

impl<U: Default> Default for Process<U> {
    fn default() -> Self {
        Self {
            unwinder: U::default(),
            modules: BTreeMap::new(),
        }
    }
}

/// Where unwinding starts.
struct Start<'a, R> {
    ip: u64,
    sp: u64,
    registers: R,
    stack: &'a [u8],
}

fn x86_start<'a>(stack: &UserStack<'a>) -> Option<Start<'a, UnwindRegsX86_64>> {
    let (bp, sp, ip) = (
        register(stack, 6)?,
        register(stack, 7)?,
        register(stack, 8)?,
    );
    Some(Start {
        ip,
        sp,
        registers: UnwindRegsX86_64::new(ip, sp, bp),
        stack: stack.stack,
    })
}

fn arm_start<'a>(stack: &UserStack<'a>) -> Option<Start<'a, UnwindRegsAarch64>> {
    let (fp, lr) = (register(stack, 29)?, register(stack, 30)?);
    let (sp, pc) = (register(stack, 31)?, register(stack, 32)?);
    Some(Start {
        ip: pc,
        sp,
        registers: UnwindRegsAarch64::new_with_ptr_auth_mask(address_bits(sp | pc), lr, sp, fp),
        stack: stack.stack,
    })
}

/// The bits of an address; those above may sign it. Linux places stacks at the top of the address
/// space, which has 39 bits at least (Documentation/arch/arm64/memory.rst; with pages of 16 KiB it
/// may be 36, but then `CONFIG_EXPERT`).
fn address_bits(of: u64) -> PtrAuthMask {
    PtrAuthMask::from_max_known_address(of | 1 << 38)
}

/// The value of a register, if it was recorded.
fn register(stack: &UserStack<'_>, number: u32) -> Option<u64> {
    let bit = 1_u64.checked_shl(number)?;
    if stack.register_mask & bit == 0 {
        return None;
    }
    let before = (stack.register_mask & (bit - 1)).count_ones() as usize;
    word(stack.registers, before * 8)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl<U> Process<U>
where
    U: framehop::Unwinder<Module = Module<Section>, UnwindRegs: FramePointer>,
{
    /// Unwinds; if a frame falls into a module that is not loaded yet, loads it and starts again,
    /// which happens once per module.
    fn unwind(
        &mut self,
        space: &AddressSpace,
        files: &mut ModuleFiles,
        cache: &mut U::Cache,
        start: &Start<'_, U::UnwindRegs>,
    ) -> Vec<u64> {
        loop {
            let (frames, unknown) = self.walk(space, files, cache, start);
            match unknown {
                Some(mapping) => self.add(mapping, files),
                None => return frames,
            }
        }
    }

    /// The frames up to the end, or up to the first one in an unknown module, which is returned.
    fn walk<'s>(
        &self,
        space: &'s AddressSpace,
        files: &ModuleFiles,
        cache: &mut U::Cache,
        start: &Start<'_, U::UnwindRegs>,
    ) -> (Vec<u64>, Option<&'s Mapping>) {
        let mut read = |address: u64| {
            let offset = address
                .checked_sub(start.sp)
                .and_then(|o| usize::try_from(o).ok());
            offset.and_then(|at| word(start.stack, at)).ok_or(())
        };
        let mut registers = start.registers.clone();
        let mut next = Some(FrameAddress::from_instruction_pointer(start.ip));
        let mut frames = Vec::new();
        let mut was_interrupted = false;
        while let Some(frame) = next {
            let mapping = space.find(frame.address_for_lookup());
            match mapping {
                Some(mapping) if !self.knows(mapping) => return (frames, Some(mapping)),
                // An address outside all code was misread from a stack without an end mark.
                None if !frames.is_empty() => break,
                _ => {}
            }
            let address = frame.address();
            let is_trampoline =
                mapping.is_some_and(|mapping| files.is_trampoline(mapping, address));
            // Neither made a call: presented as if it had, with the call just before the next byte.
            let is_exact = !frames.is_empty() && (was_interrupted || is_trampoline);
            frames.push(address.saturating_add(u64::from(is_exact)));
            was_interrupted = is_trampoline;
            if frames.len() == DEEPEST {
                break;
            }
            next = self.caller(space, frame, &mut registers, cache, &mut read);
        }
        (frames, None)
    }

    /// The caller of a frame, by the tables; where a library has none for its innermost code, such
    /// as for what an interpreter generated, by the frame pointer.
    fn caller(
        &self,
        space: &AddressSpace,
        frame: FrameAddress,
        registers: &mut U::UnwindRegs,
        cache: &mut U::Cache,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<FrameAddress> {
        let at_frame = registers.clone();
        let caller = self.unwinder.unwind_frame(frame, registers, cache, read);
        let caller = caller.ok().flatten();
        let is_code = |address: &u64| space.find(address.saturating_sub(1)).is_some();
        if !frame.is_return_address() && !caller.as_ref().is_some_and(is_code) {
            let framed = at_frame
                .caller(read)
                .filter(|(address, _)| is_code(address));
            if let Some((address, of_caller)) = framed {
                *registers = of_caller;
                return FrameAddress::from_return_address(address);
            }
        }
        FrameAddress::from_return_address(caller?)
    }

    fn knows(&self, mapping: &Mapping) -> bool {
        let known = self.modules.get(&mapping.start);
        known.is_some_and(|(end, path)| *end == mapping.end && *path == mapping.path)
    }

    /// Adds a mapping, replacing those that it covers.
    fn add(&mut self, mapping: &Mapping, files: &mut ModuleFiles) {
        let covered = self.modules.range(..mapping.end).rev();
        let covered: Vec<u64> = covered
            .take_while(|(_, (end, _))| *end > mapping.start)
            .map(|(&start, _)| start)
            .collect();
        for start in covered {
            self.unwinder.remove_module(start);
            self.modules.remove(&start);
        }
        if let Some(module) = files.module(mapping) {
            self.unwinder.add_module(module);
        }
        let entry = (mapping.end, mapping.path.clone());
        self.modules.insert(mapping.start, entry);
    }
}

#[cfg(test)]
mod tests;
