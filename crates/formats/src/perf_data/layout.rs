//! Numbers of the perf.data format.
//!
//! Sources: tools/perf/Documentation/perf.data-file-format.txt, tools/perf/util/header.h,
//! tools/lib/perf/include/perf/event.h and include/uapi/linux/perf_event.h of Linux 6.12.
//!
//! ```text
//! file mode:  header(104) | ids | attrs | (ours: preface) | records … | section table | feature sections | (ours: slot, sidecar)
//! pipe mode:  header(16)  | records, with attributes and features as records …
//! ```

/// `PERFILE2` as a little-endian number: version 2 of the format, written on a little-endian
/// machine.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"PERFILE2");
/// Size of `struct perf_file_header`.
pub(super) const FILE_HEADER_SIZE: u64 = 104;
/// Size of `struct perf_pipe_file_header`.
pub(super) const PIPE_HEADER_SIZE: u64 = 16;
/// Size of `struct perf_event_header`, which begins every record.
pub(super) const RECORD_HEADER_SIZE: usize = 8;
/// `PERF_ATTR_SIZE_VER0`: the smallest `perf_event_attr`.
pub(super) const ATTR_SIZE_VER0: usize = 64;
/// Sizes of the published versions of `perf_event_attr`, `VER0` to `VER9`.
pub(super) const ATTR_SIZES: [usize; 10] = [64, 72, 80, 96, 104, 112, 120, 128, 136, 144];
/// Number of feature bits in a file header.
pub(super) const FEATURE_BITS: u32 = 256;

/// Where our sidecar is: after the last feature section, where no reader but ours looks, are these
/// eight bytes, then the sidecar's offset and size. perf has no kind of section for what others
/// record, and no number that it would leave alone.
pub(super) const SIDECAR_SLOT_MAGIC: u64 = u64::from_le_bytes(*b"PAGEWISE");
/// What is known from the start is also before the records, so that a file without its end has a
/// maker and names of its events: these eight bytes, the size of what follows, and sections, each
/// after its bit and size. Readers find records by the header's offset and do not look there.
pub(super) const PREFACE_MAGIC: u64 = u64::from_le_bytes(*b"PAGEWISB");
/// Size of the slot of the sidecar in bytes.
pub(super) const SIDECAR_SLOT_SIZE: u64 = 24;

/// Feature bits (`enum` in tools/perf/util/header.h).
pub(super) mod feature {
    pub const TRACING_DATA: u32 = 1;
    pub const BUILD_ID: u32 = 2;
    pub const HOSTNAME: u32 = 3;
    pub const OS_RELEASE: u32 = 4;
    pub const VERSION: u32 = 5;
    pub const ARCH: u32 = 6;
    pub const CPUS: u32 = 7;
    pub const CPU_DESC: u32 = 8;
    pub const TOTAL_MEM: u32 = 10;
    pub const CMDLINE: u32 = 11;
    pub const EVENT_DESC: u32 = 12;
    pub const SAMPLE_TIME: u32 = 21;
    /// The sidecar in files of Pagewise before November 2026. `perf inject` looks each feature up in
    /// a table that ends at its last one, and crashes. See [`super::SIDECAR_SLOT_MAGIC`].
    pub const OLD_PAGEWISE_SIDECAR: u32 = 200;
}

/// Record types of the kernel (`enum perf_event_type`).
pub(super) mod kernel_record {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const UNTHROTTLE: u32 = 6;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const LOST_SAMPLES: u32 = 13;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
    pub const CGROUP: u32 = 19;
    /// Linux 6.19.
    pub const CALLCHAIN_DEFERRED: u32 = 22;
    /// The last published type.
    pub const LAST_KNOWN: u32 = CALLCHAIN_DEFERRED;
}

/// Record types that perf itself adds (`enum perf_user_event_type`).
pub(super) mod tool_record {
    pub const FIRST: u32 = 64;
    pub const HEADER_ATTR: u32 = 64;
    pub const HEADER_TRACING_DATA: u32 = 66;
    pub const HEADER_BUILD_ID: u32 = 67;
    pub const FINISHED_ROUND: u32 = 68;
    pub const AUXTRACE: u32 = 71;
    pub const EVENT_UPDATE: u32 = 78;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
    /// The last published type (`PERF_RECORD_SCHEDSTAT_DOMAIN`, Linux 6.19).
    pub const LAST_KNOWN: u32 = 86;
}

/// Bits of `perf_event_header.misc`.
pub(super) mod misc {
    /// `PERF_RECORD_MISC_CPUMODE_MASK`: where the code was running.
    pub const CPUMODE: u16 = 7;
    pub const KERNEL: u16 = 1;
    pub const USER: u16 = 2;
    /// On `MMAP`: the mapping is not executable.
    pub const MMAP_DATA: u16 = 1 << 13;
    /// On `COMM`: the name came with `execve(2)`.
    pub const COMM_EXEC: u16 = 1 << 13;
    /// On `SWITCH`: the task was switched out.
    pub const SWITCH_OUT: u16 = 1 << 13;
    /// On `MMAP2`: the record has a build id in place of device and inode.
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    /// On `SWITCH`: switched out while runnable.
    pub const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    /// On entries of the build-id section: the length byte is valid.
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// Bits of `perf_event_attr.read_format`.
pub(super) mod read_format {
    pub const TOTAL_TIME_ENABLED: u64 = 1;
    pub const TOTAL_TIME_RUNNING: u64 = 2;
    pub const ID: u64 = 4;
    pub const GROUP: u64 = 8;
    pub const LOST: u64 = 16;
}

/// Bits of `perf_event_attr.sample_type`.
pub mod sample_type {
    #![allow(
        missing_docs,
        reason = "the names are the kernel's, with PERF_SAMPLE_ left out"
    )]
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const AUX: u64 = 1 << 20;
    pub const CGROUP: u64 = 1 << 21;
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// Appends the header of a record. `payload` is the length of the rest.
///
/// Returns `false`, with nothing appended, when the record would exceed the format's 64 KiB.
pub(super) fn push_record_header(out: &mut Vec<u8>, kind: u32, misc: u16, payload: usize) -> bool {
    let Ok(size) = u16::try_from(RECORD_HEADER_SIZE + payload) else {
        return false;
    };
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&misc.to_le_bytes());
    out.extend_from_slice(&size.to_le_bytes());
    true
}
