//! One decoded record of a recording, borrowed from its bytes.
//!
//! Live rings, replayed files and imported files all yield these, in time order, so that an
//! analysis need not know where its input came from.

use crate::address_space::FileId;
use crate::units::Nanos;

/// What an event source measures. Parsed once from `perf_event_attr`, so that analyses match on
/// this and never on type and config numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// `PERF_COUNT_SW_PAGE_FAULTS`: fires at the entry of the fault handler.
    PageFault,
    /// `PERF_COUNT_SW_PAGE_FAULTS_MIN`: fires once a minor fault was handled.
    MinorFault,
    /// `PERF_COUNT_SW_PAGE_FAULTS_MAJ`: fires once a major fault was handled.
    MajorFault,
    /// CPU time, by clock or by cycles.
    Cpu,
    /// A kernel tracepoint, as `system:name`.
    Tracepoint(String),
    /// `PERF_COUNT_SW_DUMMY`: carries only mappings, names and lifetimes.
    Dummy,
    /// Anything else; the name is perf's.
    Other(String),
}

/// How samples of a source were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Each n-th event. `Every(1)` is each event.
    Every(u64),
    /// The kernel adapts the period to reach this many samples per second.
    Frequency(u64),
    /// Counted, and read whenever its group's leader is sampled (`perf record -e '{…}:S'`).
    WithLeader,
}

/// One event source of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSource {
    /// perf's name of the event, as shown by `perf report`.
    pub name: String,
    /// What it measures.
    pub kind: EventKind,
    /// How samples were chosen.
    pub sampling: Sampling,
    /// Whether samples carry call chains.
    pub has_callchain: bool,
    /// Whether events raised inside the kernel were left out (`exclude_kernel`), as happens
    /// without privileges: faults inside `read(2)` into fresh memory are then missing.
    pub user_only: bool,
    /// Whether it brings a record of each switch to and from a task (`context_switch`), without
    /// which it is not known how long a task was away.
    pub has_switches: bool,
}

/// Index of an [`EventSource`] in its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceIndex(pub u16);

/// Call chain as raw 64-bit words, innermost first, with perf's context markers
/// (`PERF_CONTEXT_USER` and so on, values above `-4096`) included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Callchain<'a> {
    bytes: &'a [u8],
}

/// Where the frames that follow were executing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuMode {
    /// Kernel code.
    Kernel,
    /// User code.
    User,
    /// Hypervisor or guest code.
    Other,
}

impl CpuMode {
    /// The marker before the addresses of this mode in a call chain. A guest's user code stands for
    /// all code that is not this machine's.
    #[must_use]
    pub fn marker(self) -> u64 {
        match self {
            Self::Kernel => PERF_CONTEXT_KERNEL,
            Self::User => PERF_CONTEXT_USER,
            Self::Other => PERF_CONTEXT_GUEST_USER,
        }
    }
}

/// `PERF_CONTEXT_KERNEL` of include/uapi/linux/perf_event.h.
pub const PERF_CONTEXT_KERNEL: u64 = (-128_i64).cast_unsigned();
/// `PERF_CONTEXT_USER` of include/uapi/linux/perf_event.h.
pub const PERF_CONTEXT_USER: u64 = (-512_i64).cast_unsigned();
/// `PERF_CONTEXT_GUEST_USER` of include/uapi/linux/perf_event.h.
const PERF_CONTEXT_GUEST_USER: u64 = (-2560_i64).cast_unsigned();
/// `PERF_CONTEXT_HV`, `PERF_CONTEXT_GUEST`, `PERF_CONTEXT_GUEST_KERNEL`, and the one above.
const OTHER_CONTEXTS: [u64; 4] = [
    (-32_i64).cast_unsigned(),
    (-2048_i64).cast_unsigned(),
    (-2176_i64).cast_unsigned(),
    PERF_CONTEXT_GUEST_USER,
];
/// `PERF_CONTEXT_MAX`: no word at or above this is an address.
const PERF_CONTEXT_MAX: u64 = (-4095_i64).cast_unsigned();

impl<'a> Callchain<'a> {
    /// A chain over little-endian 64-bit words; trailing bytes that make no word are ignored.
    #[must_use]
    pub fn from_le_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The raw words, markers included.
    pub fn words(self) -> impl Iterator<Item = u64> + 'a {
        self.bytes.chunks_exact(8).map(|word| {
            let mut le = [0; 8];
            le.copy_from_slice(word);
            u64::from_le_bytes(le)
        })
    }

    /// The addresses, innermost first, each with the mode given by the marker before it.
    pub fn frames(self) -> impl Iterator<Item = (CpuMode, u64)> + 'a {
        self.frames_from(CpuMode::User)
    }

    /// The same for a chain that goes on in `mode`.
    fn frames_from(self, mut mode: CpuMode) -> impl Iterator<Item = (CpuMode, u64)> + 'a {
        self.words()
            .filter_map(move |word| match mode_named(word, mode) {
                Some(named) => {
                    mode = named;
                    None
                }
                None => Some((mode, word)),
            })
    }

    /// Where the callers of a chain that goes on in `mode` were: in the call instruction, that is,
    /// at the byte before the return address, since the return address may belong to another line,
    /// inlined function or even function. The first address after a marker is where that mode was
    /// left, not a return address.
    pub(crate) fn calls_from(self, mut mode: CpuMode) -> impl Iterator<Item = (CpuMode, u64)> + 'a {
        let mut returns = true;
        self.words()
            .filter_map(move |word| match mode_named(word, mode) {
                Some(named) => {
                    (mode, returns) = (named, false);
                    None
                }
                None => {
                    let was_called = std::mem::replace(&mut returns, true);
                    Some((mode, word.saturating_sub(u64::from(was_called))))
                }
            })
    }

    /// The innermost address with its mode, and the rest of the chain, which goes on in that mode.
    pub(crate) fn split_innermost(self) -> Option<(CpuMode, u64, Self)> {
        let (mut mode, mut rest) = (CpuMode::User, self.bytes);
        while let Some((word, behind)) = rest.split_first_chunk() {
            let word = u64::from_le_bytes(*word);
            rest = behind;
            match mode_named(word, mode) {
                Some(named) => mode = named,
                None => return Some((mode, word, Self { bytes: rest })),
            }
        }
        None
    }

    /// Whether the chain has no words at all.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.bytes.len() < 8
    }

    /// The chain's bytes: equal bytes are equal stacks, so they serve as an interning key.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }
}

/// The mode in which a chain goes on after a marker between addresses; `None` for an address. A word
/// that neither can be changes nothing: code without frame pointers has one where the chain expects an
/// address.
#[inline]
pub(crate) fn mode_named(word: u64, mode: CpuMode) -> Option<CpuMode> {
    match word {
        ..PERF_CONTEXT_MAX => None,
        PERF_CONTEXT_KERNEL => Some(CpuMode::Kernel),
        PERF_CONTEXT_USER => Some(CpuMode::User),
        marker if OTHER_CONTEXTS.contains(&marker) => Some(CpuMode::Other),
        _ => Some(mode),
    }
}

/// Registers and a copy of the top of the user stack, for unwinding without frame pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserStack<'a> {
    /// `PERF_SAMPLE_REGS_USER` mask of the source.
    pub register_mask: u64,
    /// Register values in the order of the mask's bits, little-endian words.
    pub registers: &'a [u8],
    /// The bytes at and above the stack pointer.
    pub stack: &'a [u8],
}

impl UserStack<'_> {
    /// Length of a copy that only has to show the caller of a system call's wrapper: its return
    /// address, above the registers that the wrapper saves (at most six in glibc's `mmap`, 2.19 to
    /// 2.41).
    pub const HEAD: u32 = 64;

    /// Whether the copy ends just past the caller.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.stack.len() <= Self::HEAD as usize
    }
}

/// A sample: one event, with its place and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The source that fired.
    pub source: SourceIndex,
    /// Process (thread group) id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// When, on the recording's clock.
    pub time: Nanos,
    /// The CPU that it ran on, where recorded.
    pub cpu: Option<u32>,
    /// Id of the control group that it ran in, as in [`Event::Cgroup`]; 0 where not recorded.
    pub cgroup: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// Where it was executing, by the record's header.
    pub mode: CpuMode,
    /// Data address, for page faults the faulting address; 0 where not recorded.
    pub address: u64,
    /// How many events this sample stands for (at least 1).
    pub period: u64,
    /// Call chain by frame pointers.
    pub callchain: Callchain<'a>,
    /// Tracepoint payload.
    pub raw: &'a [u8],
    /// Registers and stack copy, where recorded.
    pub user_stack: Option<UserStack<'a>>,
}

/// A new mapping (`PERF_RECORD_MMAP2`, `PERF_RECORD_MMAP`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// Process id; -1 for the kernel.
    pub pid: i32,
    /// Thread that mapped it.
    pub tid: i32,
    /// When.
    pub time: Nanos,
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// File offset of the first byte.
    pub file_offset: u64,
    /// `PROT_*` bits; 0 where not recorded.
    pub protection: u32,
    /// `MAP_*` bits; 0 where not recorded.
    pub flags: u32,
    /// Path, `//anon`, `[heap]`, `[stack]`, `[vdso]`, `[kernel.kallsyms]_text`…
    pub path: &'a [u8],
    /// Build id, where the record carries one.
    pub build_id: Option<&'a [u8]>,
    /// Device and inode of the file, where the record carries them.
    pub file: Option<FileId>,
    /// Made by reading `/proc/PID/maps` when recording began, not by a call of the program.
    pub synthetic: bool,
    /// Whether the record is about executable code rather than data.
    pub executable: bool,
}

/// One record of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// An event fired.
    Sample(Sample<'a>),
    /// A mapping appeared.
    Mmap(Mmap<'a>),
    /// A thread got a name.
    Comm {
        /// Process id.
        pid: i32,
        /// Thread id.
        tid: i32,
        /// When.
        time: Nanos,
        /// The name, at most 15 bytes.
        name: &'a [u8],
        /// Whether `execve(2)` gave it: the address space is then new.
        exec: bool,
    },
    /// A process or thread began.
    Fork {
        /// New process id.
        pid: i32,
        /// New thread id.
        tid: i32,
        /// Parent process id; equal to `pid` for a new thread.
        parent_pid: i32,
        /// Parent thread id.
        parent_tid: i32,
        /// When.
        time: Nanos,
    },
    /// A thread ended.
    Exit {
        /// Process id.
        pid: i32,
        /// Thread id.
        tid: i32,
        /// When.
        time: Nanos,
    },
    /// The kernel dropped records because a ring was full.
    Lost {
        /// How many records.
        count: u64,
        /// When.
        time: Nanos,
        /// The source that lost them, where known.
        source: Option<SourceIndex>,
    },
    /// The kernel paused and resumed a source (`PERF_RECORD_THROTTLE`).
    Throttle {
        /// When.
        time: Nanos,
        /// True when sampling stops, false when it goes on.
        paused: bool,
    },
    /// A task was switched in or out (`PERF_RECORD_SWITCH`).
    Switch {
        /// Process id.
        pid: i32,
        /// Thread id.
        tid: i32,
        /// When.
        time: Nanos,
        /// Switched out rather than in.
        out: bool,
        /// Switched out while still runnable.
        preempted: bool,
    },
    /// A control group, when it was made or before recording began (`PERF_RECORD_CGROUP`).
    Cgroup {
        /// When; 0 if before the recording.
        time: Nanos,
        /// Its number.
        id: u64,
        /// Its path from the root of its hierarchy.
        path: &'a [u8],
    },
}

impl Event<'_> {
    /// When the event happened.
    #[must_use]
    pub fn time(&self) -> Nanos {
        match *self {
            Event::Sample(Sample { time, .. })
            | Event::Mmap(Mmap { time, .. })
            | Event::Comm { time, .. }
            | Event::Fork { time, .. }
            | Event::Exit { time, .. }
            | Event::Lost { time, .. }
            | Event::Throttle { time, .. }
            | Event::Switch { time, .. }
            | Event::Cgroup { time, .. } => time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_switch_the_mode_and_are_no_frames() {
        let words = [
            PERF_CONTEXT_KERNEL,
            0xffff_ffff_8100_0000,
            PERF_CONTEXT_USER,
            0x40_1000,
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let frames: Vec<_> = Callchain::from_le_bytes(&bytes).frames().collect();
        assert_eq!(
            frames,
            [
                (CpuMode::Kernel, 0xffff_ffff_8100_0000),
                (CpuMode::User, 0x40_1000)
            ]
        );
    }

    /// LLVM is built without frame pointers: a recording of compilers by them has -1 among its return
    /// addresses, and every caller behind it was a guest's.
    #[test]
    fn what_a_broken_chain_reads_is_no_guest() {
        let words = [PERF_CONTEXT_USER, 0x40_1000, u64::MAX, 0x40_2000];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let frames: Vec<_> = Callchain::from_le_bytes(&bytes).frames().collect();
        assert_eq!(
            frames,
            [(CpuMode::User, 0x40_1000), (CpuMode::User, 0x40_2000)]
        );
    }
}
