//! What a unit of events is for, and its turn.

use pagewise_model::units::Nanos;
use std::time::Duration;

/// What a unit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Names, births, deaths, code.
    Lifetimes,
    /// Each fault with its call chain, from the exec until the rate of faults is known.
    Startup,
    /// Each n-th fault with its call chain, n by the rung of the ladder.
    Sampled(u8),
    /// No faults: in a storm they are sampled in windows only.
    Rest,
    /// Records nothing: keeps the ring that faults are written to.
    FaultRing,
    /// Each fault, start and end.
    Paired,
    /// Each fault with its call chain, and its end.
    PairedChains,
    /// Mappings of data.
    Mappings,
    /// Memory system calls.
    Calls,
    /// Waits for locks.
    Locks,
    /// Where CPU time goes.
    Cpu,
    /// The same, with more samples per second, at first.
    DenseCpu,
    /// Where CPU time goes, with a copy of the stack.
    CpuStacks,
    /// The same, with more samples per second, at first.
    DenseCpuStacks,
    /// Where threads leave the CPU, and when they come back.
    OffCpu,
    /// Requests to block devices.
    BlockIo,
}

impl Role {
    /// The part in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Lifetimes => "names and lifetimes of processes",
            Self::Startup | Self::Sampled(_) | Self::PairedChains => "call chains of faults",
            Self::Rest | Self::FaultRing => "the ring for faults",
            Self::Paired => "the latency of faults",
            Self::Mappings => "new mappings of data",
            Self::Calls => "memory system calls",
            Self::Locks => "waits for locks",
            Self::Cpu | Self::DenseCpu => "samples of CPU time",
            Self::CpuStacks | Self::DenseCpuStacks => "stacks of CPU time",
            Self::OffCpu => "times off the CPU",
            Self::BlockIo => "requests to block devices",
        }
    }

    /// The ring of its records. Bursts of one kind must not push out rare records of another.
    pub fn ring(self) -> RingClass {
        match self {
            Self::Lifetimes | Self::Mappings => RingClass::Side,
            Self::Startup
            | Self::Sampled(_)
            | Self::Rest
            | Self::FaultRing
            | Self::Paired
            | Self::PairedChains => RingClass::Faults,
            Self::Calls | Self::Locks => RingClass::Calls,
            Self::Cpu
            | Self::DenseCpu
            | Self::CpuStacks
            | Self::DenseCpuStacks
            | Self::OffCpu
            | Self::BlockIo => RingClass::Cpu,
        }
    }
}

/// One unit's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub role: Role,
    pub length: Nanos,
}

impl Slot {
    pub fn new(role: Role, length: Duration) -> Self {
        Self {
            role,
            length: Nanos::from(length),
        }
    }
}

/// Rings of each CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingClass {
    /// Lifetimes and mappings.
    Side,
    /// Faults.
    Faults,
    /// System calls and locks.
    Calls,
    /// CPU time, switches, block devices.
    Cpu,
}
