//! Feature sections: what a file contains about the machine, the command and the events.

use super::cursor::{Cursor, until_zero};
use super::layout::{RECORD_HEADER_SIZE, feature, misc, tool_record};
use super::tracing_data::TracingData;
use pagewise_model::recording::Sidecar;

/// Sidecars above this size in bytes are stored compressed.
const COMPRESS_ABOVE: usize = 4096;
/// First bytes of every zstd frame (RFC 8878, section 3.1.1).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A sidecar larger than this in bytes when unpacked is refused: 64 MiB is about 300,000 timeline
/// points, so anything above is an attack or damage.
const LARGEST_SIDECAR: usize = 64 << 20;

/// Build id of one file that samples may fall into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildId {
    /// Process, or -1 for any.
    pub pid: i32,
    /// Whether it is the kernel or a module.
    pub kernel: bool,
    /// The id, at most 20 bytes.
    pub id: Vec<u8>,
    /// The file.
    pub path: String,
}

/// An event source as it was requested from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAttr {
    /// perf's name of the event, such as `page-faults` or `syscalls:sys_enter_brk`.
    pub name: String,
    /// The `perf_event_attr` as it was passed to `perf_event_open(2)`, little-endian.
    pub attr: Vec<u8>,
    /// Ids that the kernel assigned to its instances (`PERF_EVENT_IOC_ID`).
    pub ids: Vec<u64>,
}

/// Everything that comes after the records. For empty strings and lists, the section is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Features {
    /// `uname -n`.
    pub hostname: String,
    /// `uname -r`.
    pub os_release: String,
    /// `uname -m`.
    pub arch: String,
    /// Version of the tool that recorded.
    pub version: String,
    /// CPUs that are online.
    pub cpus_online: u32,
    /// CPUs that are present.
    pub cpus_available: u32,
    /// CPU model name.
    pub cpu_desc: String,
    /// Physical memory in KiB.
    pub total_mem_kib: u64,
    /// The recorder's command line.
    pub cmdline: Vec<String>,
    /// Build ids of the files that were mapped.
    pub build_ids: Vec<BuildId>,
    /// Formats of the tracepoints; required when one of the sources is a tracepoint.
    pub tracing_data: Option<TracingData>,
    /// Times of the first and the last sample in nanoseconds.
    pub sample_time: Option<(u64, u64)>,
    /// What perf.data has no section for.
    pub sidecar: Option<Sidecar>,
}

impl Features {
    /// The sections in the order of their bits.
    pub(super) fn sections(&self, sources: &[SourceAttr], attr_size: usize) -> Vec<(u32, Vec<u8>)> {
        let tracing = self.tracing_data.as_ref().map(TracingData::to_bytes);
        let times = self.sample_time.map(|(first, last)| words(&[first, last]));
        let sections = [
            (feature::TRACING_DATA, tracing.unwrap_or_default()),
            (feature::BUILD_ID, build_ids(&self.build_ids)),
            (feature::HOSTNAME, optional_string(&self.hostname)),
            (feature::OS_RELEASE, optional_string(&self.os_release)),
            (feature::VERSION, optional_string(&self.version)),
            (feature::ARCH, optional_string(&self.arch)),
            (feature::CPUS, self.cpus()),
            (feature::CPU_DESC, optional_string(&self.cpu_desc)),
            (feature::TOTAL_MEM, self.total_mem()),
            (feature::CMDLINE, string_list(&self.cmdline)),
            (feature::EVENT_DESC, event_desc(sources, attr_size)),
            (feature::SAMPLE_TIME, times.unwrap_or_default()),
        ];
        sections
            .into_iter()
            .filter(|(_, bytes)| !bytes.is_empty())
            .collect()
    }

    /// Available before online: the order in perf's code, which differs from its documentation.
    fn cpus(&self) -> Vec<u8> {
        if self.cpus_available == 0 {
            return Vec::new();
        }
        [self.cpus_available, self.cpus_online]
            .iter()
            .flat_map(|count| count.to_le_bytes())
            .collect()
    }

    fn total_mem(&self) -> Vec<u8> {
        match self.total_mem_kib {
            0 => Vec::new(),
            kib => words(&[kib]),
        }
    }
}

pub(super) fn encode_sidecar(sidecar: &Sidecar) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_vec(sidecar)?;
    if json.len() <= COMPRESS_ABOVE {
        return Ok(json);
    }
    // Compressing in memory fails only when memory is short; the plain form is then just as good.
    Ok(zstd::bulk::compress(&json, 3).unwrap_or(json))
}

/// The sidecar of a section.
///
/// # Errors
/// With a message, when it cannot be unpacked or is not a sidecar.
pub(super) fn decode_sidecar(section: &[u8]) -> Result<Sidecar, String> {
    let parsed = if section.starts_with(&ZSTD_MAGIC) {
        let json = zstd::bulk::decompress(section, LARGEST_SIDECAR).map_err(|e| e.to_string())?;
        serde_json::from_slice(&json)
    } else {
        serde_json::from_slice(section)
    };
    parsed.map_err(|error| error.to_string())
}

/// `HEADER_EVENT_DESC`: the attributes again, with names and ids.
fn event_desc(sources: &[SourceAttr], attr_size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    push_u32(&mut out, sources.len());
    push_u32(&mut out, attr_size);
    for source in sources {
        out.extend_from_slice(&source.attr);
        push_u32(&mut out, source.ids.len());
        push_string(&mut out, &source.name);
        out.extend_from_slice(&words(&source.ids));
    }
    out
}

/// `HEADER_BUILD_ID`: one `struct perf_record_header_build_id` per file.
fn build_ids(ids: &[BuildId]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in ids {
        let name_length = (entry.path.len() + 1).next_multiple_of(64);
        let mode = if entry.kernel {
            misc::KERNEL
        } else {
            misc::USER
        };
        let Ok(size) = u16::try_from(36 + name_length) else {
            continue;
        };
        let used = entry.id.len().min(20);
        let mut id = [0; 24];
        id[..used].copy_from_slice(&entry.id[..used]);
        id[20] = u8::try_from(used).unwrap_or(20);
        out.extend_from_slice(&tool_record::HEADER_BUILD_ID.to_le_bytes());
        out.extend_from_slice(&(mode | misc::BUILD_ID_SIZE).to_le_bytes());
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&entry.pid.to_le_bytes());
        out.extend_from_slice(&id);
        push_padded(&mut out, entry.path.as_bytes(), name_length);
    }
    out
}

/// The same read back. Ends where the section is no longer meaningful.
pub(super) fn listed_build_ids(section: &[u8]) -> Vec<BuildId> {
    /// Length in bytes of a SHA-1, used by entries without a stated length.
    const USUAL: usize = 20;
    let mut found = Vec::new();
    let mut rest = section;
    while let Some((misc, body, after)) = build_id_record(rest) {
        let mut at = Cursor(body);
        let Some((pid, id)) = at.i32().zip(at.take(24)) else {
            break;
        };
        let length = match misc & misc::BUILD_ID_SIZE {
            0 => USUAL,
            _ => usize::from(id[USUAL]).min(USUAL),
        };
        found.push(BuildId {
            pid,
            kernel: misc & (misc::KERNEL | misc::USER) == misc::KERNEL,
            id: id[..length].to_vec(),
            path: String::from_utf8_lossy(until_zero(at.0)).into_owned(),
        });
        rest = after;
    }
    found
}

/// The bits of the first record's header, its body, and what follows it.
fn build_id_record(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let half = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let (misc, size) = (half(4)?, usize::from(half(6)?));
    let (record, after) = bytes.split_at_checked(size)?;
    Some((misc, record.get(RECORD_HEADER_SIZE..)?, after))
}

fn string_list(texts: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    if !texts.is_empty() {
        push_u32(&mut out, texts.len());
        texts.iter().for_each(|text| push_string(&mut out, text));
    }
    out
}

fn optional_string(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if !text.is_empty() {
        push_string(&mut out, text);
    }
    out
}

/// `struct perf_header_string`, padded to 64 bytes as perf does.
fn push_string(out: &mut Vec<u8>, text: &str) {
    let length = (text.len() + 1).next_multiple_of(64);
    push_u32(out, length);
    push_padded(out, text.as_bytes(), length);
}

fn push_padded(out: &mut Vec<u8>, text: &[u8], length: usize) {
    let end = out.len() + length;
    out.extend_from_slice(text);
    out.resize(end, 0);
}

fn push_u32(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(&u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
}

fn words(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_id(path: &str, kernel: bool, length: u8) -> BuildId {
        BuildId {
            pid: -1,
            kernel,
            id: (1..=length).collect(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn build_ids_come_back_as_they_were() {
        let long = "/".repeat(200);
        let all = [
            build_id("[kernel.kallsyms]", true, 20),
            build_id("/usr/bin/a b", false, 16),
            build_id(&long, false, 8),
        ];
        let section = build_ids(&all);
        assert_eq!(listed_build_ids(&section), all);
        // Cut anywhere: the entries before the cut, and no panic.
        for end in 0..section.len() {
            let found = listed_build_ids(&section[..end]);
            assert_eq!(found, all[..found.len()], "{end}");
            assert!(found.len() < all.len(), "{end}");
        }
    }

    /// Before perf 5.10 the length was not stored: it is a SHA-1.
    #[test]
    fn an_id_without_its_length_has_twenty_bytes() {
        let mut section = build_ids(&[build_id("/lib/x", false, 20)]);
        section[5] &= !u8::try_from(misc::BUILD_ID_SIZE >> 8).unwrap();
        section[8 + 4 + 20] = 7;
        assert_eq!(listed_build_ids(&section)[0].id.len(), 20);
    }
}
