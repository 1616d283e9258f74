//! Records synthesised by the recorder: what a process looked like before recording began.
//!
//! The kernel reports mappings, names and births only from the moment an event is open. A
//! recorder that attaches reads the rest from `/proc` and writes it in the kernel's own records.

use super::layout::{kernel_record, misc, push_record_header, sample_type};

/// The process and time of a record: the fields that `sample_id_all` appends to every record that
/// is not a sample. Which of them are written follows from the `sample_type` of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleId {
    /// `perf_event_attr.sample_type` of the source to which the record belongs.
    pub sample_type: u64,
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Time in nanoseconds on the recording's clock; 0 for "before everything".
    pub time: u64,
    /// Id of the event; 0 for none, as perf writes on its own synthesised records.
    pub id: u64,
    /// Stream id of the event; 0 for none.
    pub stream_id: u64,
    /// CPU.
    pub cpu: u32,
}

impl SampleId {
    /// The trailer's bytes, in the order of `perf_event__output_id_sample` (kernel/events/core.c).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(48);
        let mut put = |bit: u64, bytes: [u8; 8]| {
            if self.sample_type & bit != 0 {
                out.extend_from_slice(&bytes);
            }
        };
        put(sample_type::TID, pair(self.pid, self.tid));
        put(sample_type::TIME, self.time.to_le_bytes());
        put(sample_type::ID, self.id.to_le_bytes());
        put(sample_type::STREAM_ID, self.stream_id.to_le_bytes());
        put(sample_type::CPU, u64::from(self.cpu).to_le_bytes());
        put(sample_type::IDENTIFIER, self.id.to_le_bytes());
        out
    }
}

/// A mapping read from `/proc/PID/maps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapsLine<'a> {
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// File offset of the first byte.
    pub file_offset: u64,
    /// Device number, major part.
    pub major: u32,
    /// Device number, minor part.
    pub minor: u32,
    /// Inode.
    pub inode: u64,
    /// `PROT_*` bits.
    pub protection: u32,
    /// `MAP_*` bits.
    pub flags: u32,
    /// Path; `//anon` where maps shows none.
    pub path: &'a [u8],
}

/// `PROT_EXEC` of include/uapi/asm-generic/mman-common.h.
const PROT_EXEC: u32 = 4;

/// `PERF_RECORD_MMAP2` of one mapping. `None` when the path is too long for a record.
#[must_use]
pub fn mmap2(map: &MapsLine<'_>, of: &SampleId) -> Option<Vec<u8>> {
    let mut body = pair(of.pid, of.tid).to_vec();
    for word in [map.start, map.length, map.file_offset] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    body.extend_from_slice(&map.major.to_le_bytes());
    body.extend_from_slice(&map.minor.to_le_bytes());
    body.extend_from_slice(&map.inode.to_le_bytes());
    body.extend_from_slice(&0_u64.to_le_bytes());
    body.extend_from_slice(&map.protection.to_le_bytes());
    body.extend_from_slice(&map.flags.to_le_bytes());
    push_padded_string(&mut body, map.path);
    let data = if map.protection & PROT_EXEC == 0 {
        misc::MMAP_DATA
    } else {
        0
    };
    record(kernel_record::MMAP2, misc::USER | data, &body, of)
}

/// `PERF_RECORD_MMAP` of the kernel's code, which perf calls `[kernel.kallsyms]_text` and uses to
/// find out how far the kernel was relocated.
///
/// `text` is the address of `_text` in `/proc/kallsyms`, `end` the first address past the kernel.
/// `None` when `text` is 0, as it appears without privileges.
#[must_use]
pub fn kernel_mmap(text: u64, end: u64, of: &SampleId) -> Option<Vec<u8>> {
    if text == 0 || end <= text {
        return None;
    }
    let of = SampleId {
        pid: -1,
        tid: 0,
        ..*of
    };
    let mut body = pair(of.pid, of.tid).to_vec();
    for word in [text, end - text, text] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    push_padded_string(&mut body, b"[kernel.kallsyms]_text");
    record(kernel_record::MMAP, misc::KERNEL, &body, &of)
}

/// `PERF_RECORD_COMM`: a thread's name, cut at 15 bytes as in the kernel.
#[must_use]
pub fn comm(name: &[u8], exec: bool, of: &SampleId) -> Vec<u8> {
    let mut body = pair(of.pid, of.tid).to_vec();
    push_padded_string(&mut body, &name[..name.len().min(15)]);
    let misc = if exec { misc::COMM_EXEC } else { 0 };
    record(kernel_record::COMM, misc, &body, of).unwrap_or_default()
}

/// `PERF_RECORD_CGROUP`: a control group that existed before.
#[must_use]
pub fn cgroup(id: u64, path: &[u8], of: &SampleId) -> Vec<u8> {
    let mut body = id.to_le_bytes().to_vec();
    push_padded_string(&mut body, path);
    record(kernel_record::CGROUP, 0, &body, of).unwrap_or_default()
}

/// `PERF_RECORD_FORK`: a process (`parent_pid` differs from `of.pid`) or a thread began.
#[must_use]
pub fn fork(parent_pid: i32, parent_tid: i32, of: &SampleId) -> Vec<u8> {
    life(kernel_record::FORK, parent_pid, parent_tid, of)
}

/// `PERF_RECORD_EXIT`: a thread ended.
#[must_use]
pub fn exit(parent_pid: i32, parent_tid: i32, of: &SampleId) -> Vec<u8> {
    life(kernel_record::EXIT, parent_pid, parent_tid, of)
}

fn life(kind: u32, parent_pid: i32, parent_tid: i32, of: &SampleId) -> Vec<u8> {
    let mut body = pair(of.pid, parent_pid).to_vec();
    body.extend_from_slice(&pair(of.tid, parent_tid));
    body.extend_from_slice(&of.time.to_le_bytes());
    record(kind, misc::USER, &body, of).unwrap_or_default()
}

fn record(kind: u32, misc: u16, body: &[u8], of: &SampleId) -> Option<Vec<u8>> {
    let trailer = of.to_bytes();
    let mut out = Vec::with_capacity(8 + body.len() + trailer.len());
    push_record_header(&mut out, kind, misc, body.len() + trailer.len()).then_some(())?;
    out.extend_from_slice(body);
    out.extend_from_slice(&trailer);
    Some(out)
}

/// Appends a string with its terminator, padded to a multiple of eight bytes.
fn push_padded_string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    let padded = (text.len() + 1).next_multiple_of(8);
    out.resize(out.len() + padded - text.len(), 0);
}

fn pair(first: i32, second: i32) -> [u8; 8] {
    let mut out = [0; 8];
    out[..4].copy_from_slice(&first.to_le_bytes());
    out[4..].copy_from_slice(&second.to_le_bytes());
    out
}
