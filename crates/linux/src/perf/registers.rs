//! User registers in a sample, for unwinding with the stack copy.

/// `PERF_REG_X86_AX` to `PERF_REG_X86_IP` (0 to 8) and `R8` to `R15` (16 to 23) of
/// arch/x86/include/uapi/asm/perf_regs.h: all general registers and the instruction pointer.
/// Flags and segments are left out, as a 64-bit kernel refuses some of them.
#[cfg(target_arch = "x86_64")]
pub(super) const USER_MASK: u64 = 0x00ff_01ff;
/// `BP`, `SP` and `IP`: enough to unwind one or two frames.
#[cfg(target_arch = "x86_64")]
pub(super) const FRAME_MASK: u64 = 0x1c0;

/// `X0` to `X30`, `SP` and `PC` (0 to 32) of arch/arm64/include/uapi/asm/perf_regs.h.
#[cfg(target_arch = "aarch64")]
pub(super) const USER_MASK: u64 = (1 << 33) - 1;
/// `X29` (frame pointer), `X30` (link register), `SP` and `PC`.
#[cfg(target_arch = "aarch64")]
pub(super) const FRAME_MASK: u64 = 0xf << 29;

/// `PC` to `T6` (0 to 31) of arch/riscv/include/uapi/asm/perf_regs.h.
#[cfg(target_arch = "riscv64")]
pub(super) const USER_MASK: u64 = (1 << 32) - 1;
/// `PC`, `RA`, `SP` and `S0` (frame pointer).
#[cfg(target_arch = "riscv64")]
pub(super) const FRAME_MASK: u64 = 0x107;
