//! Writing perf.data files that perf and related tools read.

use super::cursor::u64_at;
use super::features::{Features, SourceAttr, encode_sidecar};
use super::header::sidecar_slot;
use super::layout::{
    ATTR_SIZE_VER0, ATTR_SIZES, FILE_HEADER_SIZE, MAGIC, PREFACE_MAGIC, SIDECAR_SLOT_MAGIC,
    SIDECAR_SLOT_SIZE, feature, push_record_header, tool_record,
};
use pagewise_model::recording::Sidecar;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Why a recording could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file could not be written; the caller knows its name.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A source's attribute is not a `perf_event_attr`.
    #[error("the attribute of event {name:?} has {length} bytes; at least 64 are needed")]
    ShortAttr {
        /// Name of the source.
        name: String,
        /// Its attribute's length in bytes.
        length: usize,
    },
    /// The sidecar could not be turned into JSON.
    #[error("cannot encode the facts about the run: {0}")]
    Sidecar(#[from] serde_json::Error),
}

/// Writes a perf.data file front to back.
///
/// The header is on disk from the start with a data size of zero, so that a file whose writer
/// crashed is readable up to its end (perf warns, [`super::PerfData`] counts it as truncated).
/// [`Writer::finish`] adds the feature sections and then the final header.
#[derive(Debug)]
pub struct Writer<W: Write + Seek> {
    out: W,
    sources: Vec<SourceAttr>,
    attr_size: usize,
    data_start: u64,
    data_size: u64,
}

impl<W: Write + Seek> Writer<W> {
    /// Begins a file with these event sources. `out` should be buffered.
    ///
    /// # Errors
    /// When the file cannot be written, or an attribute is too short to be one.
    pub fn new(out: W, sources: &[SourceAttr]) -> Result<Self, WriteError> {
        Self::begin(out, sources, None)
    }

    /// The same with a preface: names of the events, and what is known of the recording at its
    /// start, for a file that loses its end.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_preface(
        out: W,
        sources: &[SourceAttr],
        known: &Features,
    ) -> Result<Self, WriteError> {
        Self::begin(out, sources, Some(known))
    }

    fn begin(out: W, sources: &[SourceAttr], known: Option<&Features>) -> Result<Self, WriteError> {
        let attr_size = common_attr_size(sources)?;
        let mut writer = Self {
            out,
            sources: sources.iter().map(|s| resized(s, attr_size)).collect(),
            attr_size,
            data_start: 0,
            data_size: 0,
        };
        let known = known.map(|known| known.sections(&writer.sources, attr_size));
        let preface = known.map_or_else(Vec::new, |sections| preface(&sections));
        let described = FILE_HEADER_SIZE + writer.ids_size() + writer.attrs_size();
        writer.data_start = described + preface.len() as u64;
        writer.out.seek(SeekFrom::Start(0))?;
        writer.write_header([0; 4])?;
        writer.write_ids_and_attrs()?;
        writer.out.write_all(&preface)?;
        writer.out.flush()?;
        Ok(writer)
    }

    /// Appends whole records, exactly as they were in a ring.
    ///
    /// # Errors
    /// When the file cannot be written. What was appended before stays readable, and
    /// [`Self::finish`] may still be called.
    pub fn records(&mut self, raw: &[u8]) -> Result<(), WriteError> {
        self.out.write_all(raw)?;
        self.data_size += raw.len() as u64;
        Ok(())
    }

    /// Appends `PERF_RECORD_FINISHED_ROUND`: every ring was drained once since the last one, so a
    /// reader may pass on everything up to the newest time of the round before.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finished_round(&mut self) -> Result<(), WriteError> {
        let mut record = Vec::with_capacity(8);
        push_record_header(&mut record, tool_record::FINISHED_ROUND, 0, 0);
        self.records(&record)
    }

    /// Bytes of records so far.
    #[must_use]
    pub fn data_size(&self) -> u64 {
        self.data_size
    }

    /// Appends the feature sections, completes the header and returns the file.
    ///
    /// # Errors
    /// When the file cannot be written: the records are then still complete and readable, because
    /// the header's data size is written first, over space that the file already has.
    pub fn finish(mut self, features: &Features) -> Result<W, WriteError> {
        self.out.seek(SeekFrom::Start(0))?;
        self.write_header([0; 4])?;
        self.out.flush()?;
        let sections = features.sections(&self.sources, self.attr_size);
        let sidecar = features.sidecar.as_ref().map(encode_sidecar).transpose()?;
        self.out
            .seek(SeekFrom::Start(self.data_start + self.data_size))?;
        let bits = self.write_sections(&sections)?;
        if let Some(sidecar) = sidecar {
            let start = self.out.stream_position()? + SIDECAR_SLOT_SIZE;
            self.write_words(&[SIDECAR_SLOT_MAGIC, start, sidecar.len() as u64])?;
            self.out.write_all(&sidecar)?;
        }
        self.out.flush()?;
        self.out.seek(SeekFrom::Start(0))?;
        self.write_header(bits)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn ids_size(&self) -> u64 {
        self.sources.iter().map(|s| s.ids.len() as u64 * 8).sum()
    }

    fn attrs_size(&self) -> u64 {
        self.sources.len() as u64 * (self.attr_size as u64 + 16)
    }

    /// `struct perf_file_header`.
    fn write_header(&mut self, feature_bits: [u64; 4]) -> io::Result<()> {
        let attrs_start = FILE_HEADER_SIZE + self.ids_size();
        let words = [
            MAGIC,
            FILE_HEADER_SIZE,
            self.attr_size as u64 + 16,
            attrs_start,
            self.attrs_size(),
            self.data_start,
            self.data_size,
            0,
            0,
        ];
        self.write_words(&words)?;
        self.write_words(&feature_bits)
    }

    fn write_ids_and_attrs(&mut self) -> io::Result<()> {
        let mut ids = Vec::new();
        let mut attrs = Vec::new();
        for source in &self.sources {
            let start = FILE_HEADER_SIZE + ids.len() as u64;
            attrs.extend_from_slice(&source.attr);
            attrs.extend_from_slice(&start.to_le_bytes());
            attrs.extend_from_slice(&(source.ids.len() as u64 * 8).to_le_bytes());
            ids.extend(source.ids.iter().flat_map(|id| id.to_le_bytes()));
        }
        self.out.write_all(&ids)?;
        self.out.write_all(&attrs)
    }

    /// The table of sections in the order of their bits, then the sections. Returns the bits.
    fn write_sections(&mut self, sections: &[(u32, Vec<u8>)]) -> io::Result<[u64; 4]> {
        let mut bits = [0; 4];
        let mut start = self.data_start + self.data_size + sections.len() as u64 * 16;
        for (bit, section) in sections {
            bits[(bit / 64) as usize] |= 1 << (bit % 64);
            self.write_words(&[start, section.len() as u64])?;
            start += section.len() as u64;
        }
        for (_, section) in sections {
            self.out.write_all(section)?;
        }
        Ok(bits)
    }

    fn write_words(&mut self, words: &[u64]) -> io::Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.out.write_all(&bytes)
    }
}

/// Sections that are also in front of the records: each with its bit and size, padded to whole words.
fn preface(sections: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (bit, section) in sections {
        body.extend_from_slice(&u64::from(*bit).to_le_bytes());
        body.extend_from_slice(&(section.len() as u64).to_le_bytes());
        body.extend_from_slice(section);
        body.resize(body.len().next_multiple_of(8), 0);
    }
    let head = [PREFACE_MAGIC, body.len() as u64].map(u64::to_le_bytes);
    [head.concat(), body].concat()
}

/// Gives a finished file of ours another sidecar, written after everything else in the file; if the
/// process dies meanwhile, the former sidecar remains.
///
/// # Errors
/// When the file cannot be read or written, or has no sidecar.
pub fn replace_sidecar(
    mut file: impl Read + Write + Seek,
    sidecar: &Sidecar,
) -> Result<(), WriteError> {
    let entry = sidecar_entry(&mut file)?;
    let section = encode_sidecar(sidecar)?;
    let start = file.seek(SeekFrom::End(0))?;
    file.write_all(&section)?;
    file.flush()?;
    file.seek(SeekFrom::Start(entry))?;
    file.write_all(&[start.to_le_bytes(), (section.len() as u64).to_le_bytes()].concat())?;
    Ok(file.flush()?)
}

/// Where offset and size of a file's sidecar are: in its slot after the last section, or, in older
/// files, in the table of sections, as the last entry.
fn sidecar_entry(file: &mut (impl Read + Seek)) -> io::Result<u64> {
    let none = || io::Error::new(io::ErrorKind::InvalidData, "it has no sidecar");
    let header = read_at(file, 0, FILE_HEADER_SIZE)?;
    let word = |index: usize| u64_at(&header, index * 8).unwrap_or(0);
    let flags = [9, 10, 11, 12].map(word);
    let sections: u32 = flags.iter().map(|bits| bits.count_ones()).sum();
    let table_start = word(5).saturating_add(word(6));
    let table = read_at(file, table_start, u64::from(sections) * 16)?;
    let bit = feature::OLD_PAGEWISE_SIDECAR;
    if flags[(bit / 64) as usize] >> (bit % 64) == 1 {
        let before = u64::from(sections).saturating_sub(1) * 16;
        return Ok(table_start.saturating_add(before));
    }
    let ends = table.chunks_exact(16).filter_map(|entry| {
        let (start, size) = u64_at(entry, 0).zip(u64_at(entry, 8))?;
        start.checked_add(size)
    });
    let table_end = table_start.saturating_add(table.len() as u64);
    let slot = ends.fold(table_end, u64::max);
    let found = read_at(file, slot, SIDECAR_SLOT_SIZE)?;
    sidecar_slot(&found, 0).ok_or_else(none)?;
    Ok(slot + 8)
}

/// At most this many bytes of a file.
fn read_at(file: &mut (impl Read + Seek), offset: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    Read::by_ref(file).take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The smallest published size that holds every attribute without its trailing zeros: perf refuses
/// attributes larger than the version with which it was built.
fn common_attr_size(sources: &[SourceAttr]) -> Result<usize, WriteError> {
    let mut needed = 112;
    for source in sources {
        if source.attr.len() < ATTR_SIZE_VER0 {
            return Err(WriteError::ShortAttr {
                name: source.name.clone(),
                length: source.attr.len(),
            });
        }
        let used = source.attr.iter().rposition(|&byte| byte != 0);
        needed = needed.max(used.map_or(0, |last| last + 1));
    }
    let published = ATTR_SIZES.into_iter().find(|&size| size >= needed);
    Ok(published.unwrap_or(needed.next_multiple_of(8)))
}

/// The source with an attribute of `size` bytes whose size field matches.
fn resized(source: &SourceAttr, size: usize) -> SourceAttr {
    let mut attr = source.attr.clone();
    attr.resize(size, 0);
    let stated = u32::try_from(size).unwrap_or(u32::MAX);
    attr[4..8].copy_from_slice(&stated.to_le_bytes());
    SourceAttr {
        attr,
        ..source.clone()
    }
}
