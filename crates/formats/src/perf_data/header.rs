//! The header of a file: sources, features, and where the records are.

use super::attr::Attr;
use super::cursor::{Cursor, u32_at, u64_at};
use super::error::{ReadError, damage};
use super::features::{self, BuildId, decode_sidecar};
use super::layout::{
    ATTR_SIZE_VER0, FEATURE_BITS, FILE_HEADER_SIZE, MAGIC, PIPE_HEADER_SIZE, PREFACE_MAGIC,
    RECORD_HEADER_SIZE, SIDECAR_SLOT_MAGIC, SIDECAR_SLOT_SIZE, feature, kernel_record, tool_record,
};
use super::tracing_data::{self, TracepointFormat};
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::recording::Sidecar;
use pagewise_model::units::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;

/// Information about the recording machine; empty or zero where the file has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// `uname -n`.
    pub hostname: String,
    /// `uname -r`.
    pub os_release: String,
    /// `uname -m`.
    pub arch: String,
    /// Version of the recording tool.
    pub version: String,
    /// CPU model name.
    pub cpu_desc: String,
    /// CPUs that were online.
    pub cpus_online: u32,
    /// Physical memory in KiB.
    pub total_mem_kib: u64,
    /// The recorder's command line.
    pub cmdline: Vec<String>,
    /// Times of the first and the last sample in nanoseconds.
    pub sample_time: Option<(u64, u64)>,
}

/// An event source before names are settled.
#[derive(Clone, Debug, Default)]
pub(super) struct RawSource {
    pub attr: Attr,
    pub ids: Vec<u64>,
    pub name: Option<String>,
}

/// Everything that is known before the first record is read.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub sources: Vec<RawSource>,
    pub data: Range<usize>,
    pub origin: Origin,
    pub tracepoints: BTreeMap<u64, TracepointFormat>,
    pub build_ids: Vec<BuildId>,
    pub sidecar: Option<Sidecar>,
    pub sidecar_error: Option<String>,
    /// Whether it has the preface that only our recorder writes.
    pub has_preface: bool,
    pub cut: Option<Cut>,
    pub losses: Losses,
}

/// What a file lacks that ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Its recorder did not finish it: it has records up to some moment, and no more.
    Unfinished,
    /// The file was cut: it has this many bytes of those that its header states.
    Missing {
        /// Bytes that are there.
        left: u64,
        /// Bytes that there were, at least.
        whole: u64,
    },
}

impl Cut {
    /// What to say before anything else.
    #[must_use]
    pub fn sentence(self) -> String {
        match self {
            Self::Unfinished => {
                "This recording was not finished: the recorder was killed, or is still running."
                    .to_owned()
            }
            Self::Missing { left, whole } => format!(
                "This recording is cut off: {} of {} are missing.",
                Bytes(whole - left),
                Bytes(whole)
            ),
        }
    }
}

impl Header {
    pub fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        check_magic(bytes)?;
        let mut header = match u64_at(bytes, 8) {
            Some(PIPE_HEADER_SIZE) => Self::parse_pipe(bytes)?,
            Some(size) if size >= FILE_HEADER_SIZE => Self::parse_file(bytes)?,
            Some(size) => {
                return Err(ReadError::Damaged {
                    what: format!("its header claims {size} bytes; 16 or 104 are possible"),
                });
            }
            None => return Err(cut_off("header", bytes, PIPE_HEADER_SIZE)),
        };
        // Where perf events were forbidden, our recordings contain only totals and a timeline.
        if header.sources.is_empty() && header.sidecar.is_none() {
            return Err(ReadError::NoSources);
        }
        header.settle_names();
        Ok(header)
    }

    fn parse_file(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut header = Self::default();
        let fixed = bytes
            .get(..104)
            .ok_or_else(|| cut_off("header", bytes, FILE_HEADER_SIZE))?;
        let word = |index: usize| u64_at(fixed, index * 8).unwrap_or(0);
        let (attr_size, attrs, data) = (word(2), (word(3), word(4)), (word(5), word(6)));
        let flags = [word(9), word(10), word(11), word(12)];
        header.sources = parse_attrs(bytes, attr_size, attrs)?;
        header.place_data(bytes, data, flags == [0; 4])?;
        header.parse_preface(bytes, attrs.0.saturating_add(attrs.1), data.0);
        let table = data.0.saturating_add(data.1);
        header.parse_features(bytes, flags, table);
        Ok(header)
    }

    /// What is known without the end of the file.
    fn parse_preface(&mut self, bytes: &[u8], start: u64, end: u64) {
        let between = slice(bytes, start, end.saturating_sub(start)).unwrap_or_default();
        let mut at = Cursor(between);
        let Some((PREFACE_MAGIC, size)) = at.u64().zip(at.u64()) else {
            return;
        };
        self.has_preface = true;
        let mut at = Cursor(slice(at.0, 0, size).unwrap_or_default());
        while let Some((bit, size)) = at.u64().zip(at.u64()) {
            let padded = size.checked_next_multiple_of(8).map(index);
            let Some(section) = padded.and_then(|padded| at.take(padded)) else {
                return;
            };
            if let Some((bit, section)) = u32::try_from(bit).ok().zip(slice(section, 0, size)) {
                self.take_feature(bit, section);
            }
        }
    }

    /// Where the records are. A data size of zero without features comes from a writer that did not
    /// finish: the records then extend to the end of the file.
    fn place_data(
        &mut self,
        bytes: &[u8],
        (start, size): (u64, u64),
        no_features: bool,
    ) -> Result<(), ReadError> {
        let length = bytes.len() as u64;
        if start > length {
            return Err(cut_off("description of events", bytes, start));
        }
        let end = if size == 0 && no_features {
            self.losses.add(LossKind::Unfinished, 1);
            self.cut = Some(Cut::Unfinished);
            length
        } else {
            start.saturating_add(size)
        };
        self.losses
            .add(LossKind::Truncated, end.saturating_sub(length));
        self.data = index(start)..index(end.min(length));
        Ok(())
    }

    fn parse_features(&mut self, bytes: &[u8], flags: [u64; 4], table: u64) {
        let present =
            (0..FEATURE_BITS).filter(|bit| flags[(bit / 64) as usize] >> (bit % 64) & 1 == 1);
        let mut end = table;
        for (entry, bit) in (0..).zip(present) {
            let at = table.saturating_add(entry * 16);
            end = end.max(at.saturating_add(16));
            let words =
                slice(bytes, at, 16).and_then(|table| u64_at(table, 0).zip(u64_at(table, 8)));
            let Some((start, size)) = words else { break };
            end = end.max(start.saturating_add(size));
            if let Some(section) = slice(bytes, start, size) {
                self.take_feature(bit, section);
            }
        }
        if let Some((start, size)) = sidecar_slot(bytes, end) {
            end = end.max(start.saturating_add(size));
            if let Some(section) = slice(bytes, start, size) {
                self.take_sidecar(section);
            }
        }
        let missing = end.saturating_sub(bytes.len() as u64);
        if missing > 0 {
            self.cut = Some(Cut::Missing {
                left: bytes.len() as u64,
                whole: end,
            });
        }
        if missing > 0 && self.losses.is_empty() {
            self.losses.add(LossKind::Truncated, missing);
        }
    }

    fn take_sidecar(&mut self, section: &[u8]) {
        match decode_sidecar(section) {
            Ok(sidecar) => self.sidecar = Some(sidecar),
            Err(error) => self.sidecar_error = Some(error),
        }
    }

    /// Damaged sections are skipped.
    fn take_feature(&mut self, bit: u32, section: &[u8]) {
        let mut at = Cursor(section);
        let text = || Cursor(section).header_string().unwrap_or_default();
        match bit {
            feature::BUILD_ID => self.build_ids = features::listed_build_ids(section),
            feature::TRACING_DATA => self.tracepoints = tracing_data::tracepoints(section),
            feature::HOSTNAME => self.origin.hostname = text(),
            feature::OS_RELEASE => self.origin.os_release = text(),
            feature::VERSION => self.origin.version = text(),
            feature::ARCH => self.origin.arch = text(),
            feature::CPU_DESC => self.origin.cpu_desc = text(),
            feature::CPUS => self.origin.cpus_online = u32_at(section, 4).unwrap_or(0),
            feature::TOTAL_MEM => self.origin.total_mem_kib = at.u64().unwrap_or(0),
            feature::SAMPLE_TIME => self.origin.sample_time = at.u64().zip(at.u64()),
            feature::CMDLINE => self.origin.cmdline = string_list(&mut at),
            feature::EVENT_DESC => self.take_event_desc(&mut at),
            feature::OLD_PAGEWISE_SIDECAR => self.take_sidecar(section),
            _ => {}
        }
    }

    /// `HEADER_EVENT_DESC`: names, in the order of the attributes.
    fn take_event_desc(&mut self, at: &mut Cursor<'_>) {
        let Some((_, attr_size)) = at.u32().zip(at.u32()) else {
            return;
        };
        for source in &mut self.sources {
            let Some(name) = event_desc_name(at, attr_size) else {
                return;
            };
            source.name = Some(name);
        }
    }

    /// Pipe mode: attributes and features are records before the first sample.
    fn parse_pipe(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut header = Self {
            data: index(PIPE_HEADER_SIZE)..bytes.len(),
            ..Self::default()
        };
        let mut rest = &bytes[header.data.clone()];
        while let Some((kind, record, skip)) = next_record(rest) {
            if matches!(
                kind,
                kernel_record::SAMPLE | tool_record::COMPRESSED | tool_record::COMPRESSED2
            ) {
                break;
            }
            header.take_pipe_record(kind, record, rest);
            rest = rest.get(skip..).unwrap_or_default();
        }
        match damage(rest, bytes.len() - rest.len()) {
            Some(damage) if header.sources.is_empty() => Err(ReadError::Damaged {
                what: damage.to_string(),
            }),
            _ => Ok(header),
        }
    }

    fn take_pipe_record(&mut self, kind: u32, record: &[u8], rest: &[u8]) {
        let mut at = Cursor(record.get(RECORD_HEADER_SIZE..).unwrap_or_default());
        match kind {
            tool_record::HEADER_ATTR => self.sources.extend(pipe_attr(at.0)),
            tool_record::HEADER_TRACING_DATA => {
                let data = at
                    .u32()
                    .and_then(|size| rest.get(record.len()..)?.get(..size as usize));
                self.tracepoints = tracing_data::tracepoints(data.unwrap_or_default());
            }
            tool_record::HEADER_FEATURE => {
                if let Some(bit) = at.u64().and_then(|bit| u32::try_from(bit).ok()) {
                    self.take_feature(bit, at.0);
                }
            }
            tool_record::EVENT_UPDATE => self.take_event_update(&mut at),
            _ => {}
        }
    }

    /// `PERF_EVENT_UPDATE__NAME`: the name of the source that has this id. The others are its
    /// unit (0), its scale (1) and its CPUs (3).
    fn take_event_update(&mut self, at: &mut Cursor<'_>) {
        const NAME: u64 = 2;
        let Some((NAME, id)) = at.u64().zip(at.u64()) else {
            return;
        };
        let name = String::from_utf8_lossy(super::cursor::until_zero(at.0)).into_owned();
        if let Some(source) = self.sources.iter_mut().find(|s| s.ids.contains(&id)) {
            source.name = Some(name);
        }
    }

    /// Tracepoints are named by their formats, which cannot be wrong; others by the name in the
    /// file, or else by their numbers.
    fn settle_names(&mut self) {
        for source in &mut self.sources {
            let format = self.tracepoints.get(&source.attr.config);
            if let Some(format) = format.filter(|_| source.attr.is_tracepoint()) {
                source.name = Some(format.name.clone());
            }
            source
                .name
                .get_or_insert_with(|| source.attr.default_name());
        }
    }
}

/// Offset and size of the sidecar, if the slot for it is at this offset.
pub(super) fn sidecar_slot(bytes: &[u8], at: u64) -> Option<(u64, u64)> {
    let slot = slice(bytes, at, SIDECAR_SLOT_SIZE)?;
    (u64_at(slot, 0)? == SIDECAR_SLOT_MAGIC).then_some(())?;
    Some((u64_at(slot, 8)?, u64_at(slot, 16)?))
}

/// The first record of `bytes`: its type, its bytes, and the offset of the next one. `None` at the
/// end or where no record is possible.
pub(super) fn next_record(bytes: &[u8]) -> Option<(u32, &[u8], usize)> {
    let kind = u32_at(bytes, 0)?;
    let size = usize::from(u16::from_le_bytes(*bytes.get(6..)?.first_chunk()?));
    if size < RECORD_HEADER_SIZE {
        return None;
    }
    let record = bytes.get(..size)?;
    // These two are followed by data that their own size does not count.
    let extra = match kind {
        tool_record::HEADER_TRACING_DATA => u64::from(u32_at(record, 8)?),
        tool_record::AUXTRACE => u64_at(record, 8)?,
        _ => 0,
    };
    Some((kind, record, size.saturating_add(index(extra))))
}

fn check_magic(bytes: &[u8]) -> Result<(), ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    match u64_at(bytes, 0) {
        Some(MAGIC) => Ok(()),
        Some(magic) if magic == MAGIC.swap_bytes() => Err(ReadError::BigEndian),
        _ if bytes.starts_with(b"PERFFILE") => Err(ReadError::OldVersion),
        None if b"PERFILE2".starts_with(bytes) => Err(cut_off("header", bytes, FILE_HEADER_SIZE)),
        _ => Err(ReadError::NotPerfData {
            found: bytes[..bytes.len().min(16)].escape_ascii().to_string(),
        }),
    }
}

fn parse_attrs(
    bytes: &[u8],
    entry_size: u64,
    (start, size): (u64, u64),
) -> Result<Vec<RawSource>, ReadError> {
    let smallest = ATTR_SIZE_VER0 as u64 + 16;
    if entry_size < smallest || entry_size > 1 << 16 {
        return Err(ReadError::Damaged {
            what: format!(
                "an event description of {entry_size} bytes, where {smallest} to 65536 are possible"
            ),
        });
    }
    let section = slice(bytes, start, size)
        .ok_or_else(|| cut_off("description of events", bytes, start.saturating_add(size)))?;
    let entries = section.chunks_exact(index(entry_size));
    Ok(entries
        .filter_map(|entry| parse_attr_entry(bytes, entry))
        .collect())
}

/// An attribute with the position of its ids at its end.
fn parse_attr_entry(bytes: &[u8], entry: &[u8]) -> Option<RawSource> {
    let (attr, ids) = entry.split_at_checked(entry.len().checked_sub(16)?)?;
    let ids = u64_at(ids, 0)
        .zip(u64_at(ids, 8))
        .and_then(|(start, size)| slice(bytes, start, size));
    Some(RawSource {
        attr: Attr::parse(attr)?,
        ids: id_words(ids.unwrap_or_default()),
        name: None,
    })
}

/// `PERF_RECORD_HEADER_ATTR`: an attribute of its stated size, then ids.
fn pipe_attr(payload: &[u8]) -> Option<RawSource> {
    let stated = (u32_at(payload, 4)? as usize).max(ATTR_SIZE_VER0);
    let (attr, ids) = payload.split_at_checked(stated)?;
    Some(RawSource {
        attr: Attr::parse(attr)?,
        ids: id_words(ids),
        name: None,
    })
}

fn event_desc_name(at: &mut Cursor<'_>, attr_size: u32) -> Option<String> {
    at.take(attr_size as usize)?;
    let ids = at.u32()?;
    let name = at.header_string()?;
    at.take_array(u64::from(ids), 8)?;
    Some(name)
}

fn string_list(at: &mut Cursor<'_>) -> Vec<String> {
    let count = at.u32().unwrap_or(0);
    (0..count).map_while(|_| at.header_string()).collect()
}

fn id_words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    words.filter_map(|word| u64_at(word, 0)).collect()
}

fn slice(bytes: &[u8], start: u64, size: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(start).ok()?..usize::try_from(start.checked_add(size)?).ok()?)
}

/// A file offset as an index; an offset too large for memory becomes one that is outside every
/// slice.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn cut_off(part: &'static str, bytes: &[u8], needed: u64) -> ReadError {
    ReadError::CutOff {
        part,
        length: bytes.len() as u64,
        needed,
    }
}
