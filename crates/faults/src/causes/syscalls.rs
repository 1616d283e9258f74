//! Payloads of the tracepoints that Pagewise reads, by their documented offsets.
//!
//! Every tracepoint record begins with eight bytes of common fields
//! (Documentation/trace/events.rst, "Event formats"). After them:
//!
//! ```text
//! syscalls:sys_enter_*         nr i32 at 8 (padded to 8 bytes), arguments u64 each from 16
//! syscalls:sys_exit_*          nr i32 at 8 (padded to 8 bytes), return value i64 at 16
//! exceptions:page_fault_*      address u64 at 8, ip u64 at 16, error code u64 at 24
//! lock:contention_begin        lock address u64 at 8, flags u32 at 16
//! lock:contention_end          lock address u64 at 8, return value i32 at 16
//! ```
//! (`struct syscall_trace_enter`/`_exit` in kernel/trace/trace.h,
//! arch/x86/include/asm/trace/exceptions.h, include/trace/events/lock.h; Linux 6.1 to 6.18.) They
//! are valid on every 64-bit little-endian machine.

/// System calls that change an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MmCall {
    /// `mmap(2)`.
    Mmap,
    /// `munmap(2)`.
    Munmap,
    /// `brk(2)`.
    Brk,
    /// `madvise(2)`.
    Madvise,
    /// `mremap(2)`.
    Mremap,
    /// `mprotect(2)`.
    Mprotect,
}

impl MmCall {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Mmap,
        Self::Munmap,
        Self::Brk,
        Self::Madvise,
        Self::Mremap,
        Self::Mprotect,
    ];

    /// The call's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mmap => "mmap",
            Self::Munmap => "munmap",
            Self::Brk => "brk",
            Self::Madvise => "madvise",
            Self::Mremap => "mremap",
            Self::Mprotect => "mprotect",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|call| call.name() == name)
    }
}

pub(super) const MAP_SHARED: u64 = 0x01;
pub(super) const MAP_FIXED: u64 = 0x10;
pub(super) const MAP_ANONYMOUS: u64 = 0x20;
pub(super) const MAP_STACK: u64 = 0x2_0000;
pub(super) const MAP_HUGETLB: u64 = 0x4_0000;
pub(super) const MAP_POPULATE: u64 = 0x8000;
pub(super) const MADV_DONTNEED: u64 = 4;
pub(super) const MADV_FREE: u64 = 8;
pub(super) const MADV_REMOVE: u64 = 9;
pub(super) const MADV_HUGEPAGE: u64 = 14;
pub(super) const MADV_NOHUGEPAGE: u64 = 15;
pub(super) const MADV_PAGEOUT: u64 = 21;
pub(super) const MADV_POPULATE_READ: u64 = 22;
pub(super) const MADV_POPULATE_WRITE: u64 = 23;
pub(super) const MADV_DONTNEED_LOCKED: u64 = 24;
pub(super) const PROT_WRITE: u32 = 2;
pub(super) const PROT_EXEC: u32 = 4;

/// First byte of the arguments, or of the return value.
const FIRST_FIELD: usize = 16;

fn word(raw: &[u8], offset: usize) -> Option<u64> {
    let bytes = raw.get(offset..offset + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn half(raw: &[u8], offset: usize) -> Option<u32> {
    let bytes = raw.get(offset..offset + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Arguments of a `sys_enter` payload; calls with fewer than six leave the rest zero.
pub(super) fn arguments(raw: &[u8]) -> Option<[u64; 6]> {
    let mut args = [0; 6];
    args[0] = word(raw, FIRST_FIELD)?;
    for (index, arg) in args.iter_mut().enumerate().skip(1) {
        *arg = word(raw, FIRST_FIELD + index * 8).unwrap_or(0);
    }
    Some(args)
}

/// Return value of a `sys_exit` payload; errors are negative.
pub(super) fn result(raw: &[u8]) -> Option<i64> {
    word(raw, FIRST_FIELD).map(u64::cast_signed)
}

/// Why the processor raised a page fault (Intel SDM volume 3, "Page-Fault Exceptions";
/// `enum x86_pf_error_code`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ErrorCode(u64);

impl ErrorCode {
    /// The page was present: its protection forbade the access.
    pub(super) fn is_protection(self) -> bool {
        self.0 & 1 != 0
    }

    /// The access was a write.
    pub(super) fn is_write(self) -> bool {
        self.0 & 2 != 0
    }

    #[cfg(test)]
    pub(super) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// Address and error code of an `exceptions:page_fault_*` payload.
pub(super) fn page_fault(raw: &[u8]) -> Option<(u64, ErrorCode)> {
    Some((word(raw, 8)?, ErrorCode(word(raw, 24)?)))
}

/// Whether a `lock:contention_begin` payload is about a sleeping reader-writer lock such as
/// `mmap_lock`: `LCB_F_READ` or `LCB_F_WRITE` without `LCB_F_SPIN`, `LCB_F_RT`, `LCB_F_PERCPU` and
/// `LCB_F_MUTEX` (include/trace/events/lock.h).
pub(super) fn is_rwsem(raw: &[u8]) -> Option<bool> {
    const KIND: u32 = 0b11_1111;
    let flags = half(raw, 16)? & KIND;
    Some(flags == 0b10 || flags == 0b100)
}

/// Lock address of a `lock:contention_*` payload.
pub(super) fn lock_address(raw: &[u8]) -> Option<u64> {
    word(raw, 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_payloads_are_refused_and_missing_arguments_are_zero() {
        assert_eq!(arguments(&[0; 20]), None);
        let mut raw = [0_u8; 24];
        raw[16] = 7;
        assert_eq!(arguments(&raw), Some([7, 0, 0, 0, 0, 0]));
        assert_eq!(page_fault(&[0; 30]), None);
    }

    #[test]
    fn only_sleeping_reader_writer_locks_are_candidates() {
        let with = |flags: u8| {
            let mut raw = [0_u8; 20];
            raw[16] = flags;
            is_rwsem(&raw)
        };
        assert_eq!(with(2), Some(true));
        assert_eq!(with(4), Some(true));
        assert_eq!(with(3), Some(false), "spinning");
        assert_eq!(with(32), Some(false), "mutex");
        assert_eq!(with(18), Some(false), "per-CPU");
    }
}
