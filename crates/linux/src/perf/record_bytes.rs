//! Records as the kernel writes them into rings: their kinds and fields.

/// `PERF_RECORD_*` of include/uapi/linux/perf_event.h.
pub(super) mod kind {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
}

/// `PERF_RECORD_MISC_MMAP_DATA`: the mapping contains no code.
pub(super) const MISC_MMAP_DATA: u16 = 1 << 13;

/// The flags of a record.
pub(super) fn misc(record: &[u8]) -> u16 {
    u16::from_le_bytes([record[4], record[5]])
}

/// The first record of `bytes` and the rest; `None` at the end or if there is no valid record.
pub(super) fn next_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = usize::from(u16::from_le_bytes([*bytes.get(6)?, *bytes.get(7)?]));
    (size >= 8).then(|| bytes.split_at_checked(size))?
}

/// The word at `at`, zero if the record is too short.
pub(super) fn word64(record: &[u8], at: usize) -> u64 {
    let bytes = record.get(at..at + 8).and_then(|b| b.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

/// The same of 32 bits.
pub(super) fn word32(record: &[u8], at: usize) -> u32 {
    let bytes = record.get(at..at + 4).and_then(|b| b.try_into().ok());
    bytes.map_or(0, u32::from_le_bytes)
}
