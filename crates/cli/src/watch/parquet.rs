//! A Parquet file of timeline rows (parquet-format 2.10: README.md, src/main/thrift/parquet.thrift).
//!
//! Written by hand, because the table is one flat schema of numbers: plain encoding, no
//! compression, one data page a column and row group. The `parquet` crate would add 26 crates and
//! some 54 CPU seconds to every build for that.
//!
//! ```text
//! "PAR1" | row group: (page header, values) for each column … | metadata | its length | "PAR1"
//! ```
//! Headers and metadata are Thrift structures in the compact protocol. The metadata stands at the
//! end, so a file is readable only once it is finished.

use super::rows::Row;
use anyhow::Context;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const MAGIC: &[u8; 4] = b"PAR1";

/// Rows that are kept in memory and written together: a quarter of an hour at ten a second.
const ROWS_IN_A_GROUP: usize = 10_000;

/// A value of a column.
#[derive(Clone, Copy)]
enum Value {
    Integer(u64),
    /// The only kind that may be absent.
    Optional(Option<u64>),
    Real(f64),
}

/// A column's name and the way to its value.
type Column = (&'static str, fn(&Row) -> Value);

/// Columns in order.
const COLUMNS: [Column; 13] = [
    ("time_s", |row| Value::Real(row.time_s)),
    ("vsize_bytes", |row| Value::Integer(row.vsize_bytes)),
    ("rss_bytes", |row| Value::Integer(row.rss_bytes)),
    ("pss_bytes", |row| Value::Optional(row.pss_bytes)),
    ("swap_bytes", |row| Value::Integer(row.swap_bytes)),
    ("minor_faults", |row| Value::Integer(row.minor_faults)),
    ("major_faults", |row| Value::Integer(row.major_faults)),
    ("minor_faults_per_s", |row| {
        Value::Real(row.minor_faults_per_s)
    }),
    ("major_faults_per_s", |row| {
        Value::Real(row.major_faults_per_s)
    }),
    ("user_s", |row| Value::Real(row.user_s)),
    ("system_s", |row| Value::Real(row.system_s)),
    ("processes", |row| Value::Integer(u64::from(row.processes))),
    ("threads", |row| Value::Integer(u64::from(row.threads))),
];

/// An open Parquet file.
pub struct ParquetFile {
    out: BufWriter<File>,
    written: u64,
    waiting: Vec<Row>,
    groups: Vec<Group>,
}

/// A written row group.
struct Group {
    rows: u64,
    columns: Vec<Chunk>,
}

/// A written column of a row group.
struct Chunk {
    offset: u64,
    size: u64,
}

impl ParquetFile {
    /// Makes the file.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let mut file = Self {
            out: BufWriter::new(File::create(path)?),
            written: 0,
            waiting: Vec::new(),
            groups: Vec::new(),
        };
        file.put(MAGIC)?;
        Ok(file)
    }

    /// Adds a row.
    pub fn write(&mut self, row: &Row) -> anyhow::Result<()> {
        self.waiting.push(*row);
        match self.waiting.len() {
            ROWS_IN_A_GROUP => self.write_group(),
            _ => Ok(()),
        }
    }

    /// Writes what is left and the metadata, without which nothing can be read.
    pub fn finish(mut self) -> anyhow::Result<()> {
        if !self.waiting.is_empty() {
            self.write_group()?;
        }
        let metadata = metadata(&self.groups);
        self.put(&metadata)?;
        self.put(&u32::try_from(metadata.len())?.to_le_bytes())?;
        self.put(MAGIC)?;
        self.out.flush().context("cannot complete the Parquet file")
    }

    fn write_group(&mut self) -> anyhow::Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        let mut columns = Vec::with_capacity(COLUMNS.len());
        for (_, value) in COLUMNS {
            let values: Vec<Value> = rows.iter().map(value).collect();
            let data = page_data(&values);
            let offset = self.written;
            self.put(&page_header(values.len(), data.len()))?;
            self.put(&data)?;
            let size = self.written - offset;
            columns.push(Chunk { offset, size });
        }
        self.groups.push(Group {
            rows: count(rows.len()),
            columns,
        });
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.out
            .write_all(bytes)
            .context("cannot write the Parquet file")?;
        self.written += count(bytes.len());
        Ok(())
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Values in plain encoding: 8 bytes each, little-endian; absent ones are left out, and a bit for
/// each value goes before them.
fn page_data(values: &[Value]) -> Vec<u8> {
    let mut data = presence(values);
    for value in values {
        match value {
            Value::Integer(number) | Value::Optional(Some(number)) => {
                data.extend(number.to_le_bytes());
            }
            Value::Real(number) => data.extend(number.to_le_bytes()),
            Value::Optional(None) => {}
        }
    }
    data
}

/// Definition levels of an optional column: their length, then one bit-packed run of groups of
/// eight levels, one bit each (encodings.md, "RLE / Bit-Packing Hybrid").
fn presence(values: &[Value]) -> Vec<u8> {
    if !matches!(values.first(), Some(Value::Optional(_))) {
        return Vec::new();
    }
    let is_there = |value: &Value| !matches!(value, Value::Optional(None));
    let mut run = Vec::new();
    varint(&mut run, count(values.len().div_ceil(8)) << 1 | 1);
    for group in values.chunks(8) {
        let bits = group.iter().rev();
        run.push(bits.fold(0, |byte, value| byte << 1 | u8::from(is_there(value))));
    }
    let length = u32::try_from(run.len()).unwrap_or(u32::MAX);
    [length.to_le_bytes().as_slice(), &run].concat()
}

const DATA_PAGE: u64 = 0;
const PLAIN: u64 = 0;
const RLE: u64 = 3;
const INT64: u64 = 2;
const DOUBLE: u64 = 5;
const REQUIRED: u64 = 0;
const OPTIONAL: u64 = 1;
const UNCOMPRESSED: u64 = 0;

fn page_header(values: usize, size: usize) -> Vec<u8> {
    let mut header = Thrift::default();
    header.int(1, DATA_PAGE);
    header.int(2, count(size));
    header.int(3, count(size));
    header.structure(5, |page| {
        page.int(1, count(values));
        page.int(2, PLAIN);
        page.int(3, RLE);
        page.int(4, RLE);
    });
    header.end()
}

fn metadata(groups: &[Group]) -> Vec<u8> {
    let mut file = Thrift::default();
    file.int(1, 1);
    file.list(2, COLUMNS.len() + 1, |at, element| {
        match at.checked_sub(1) {
            None => {
                element.text(4, "timeline");
                element.int(5, count(COLUMNS.len()));
            }
            Some(column) => {
                let (name, value) = COLUMNS[column];
                let (kind, repetition) = type_of(value);
                element.int(1, kind);
                element.int(3, repetition);
                element.text(4, name);
            }
        }
    });
    file.long(3, groups.iter().map(|group| group.rows).sum());
    file.list(4, groups.len(), |at, group| write_group(group, &groups[at]));
    file.text(6, concat!("pagewise ", env!("CARGO_PKG_VERSION")));
    file.end()
}

fn type_of(value: fn(&Row) -> Value) -> (u64, u64) {
    match value(&Row::default()) {
        Value::Integer(_) => (INT64, REQUIRED),
        Value::Optional(_) => (INT64, OPTIONAL),
        Value::Real(_) => (DOUBLE, REQUIRED),
    }
}

fn write_group(out: &mut Thrift, group: &Group) {
    out.list(1, group.columns.len(), |at, column| {
        let chunk = &group.columns[at];
        let (name, value) = COLUMNS[at];
        column.long(2, chunk.offset);
        column.structure(3, |meta| {
            meta.int(1, type_of(value).0);
            meta.ints(2, &[PLAIN, RLE]);
            meta.texts(3, &[name]);
            meta.int(4, UNCOMPRESSED);
            meta.long(5, group.rows);
            meta.long(6, chunk.size);
            meta.long(7, chunk.size);
            meta.long(9, chunk.offset);
        });
    });
    out.long(2, group.columns.iter().map(|chunk| chunk.size).sum());
    out.long(3, group.rows);
}

/// A structure in Thrift's compact protocol. Fields must be written in ascending order.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    last_field: u8,
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Thrift {
    /// Field ids here differ by less than 16, so their difference fits the short form.
    fn field(&mut self, id: u8, kind: u8) {
        self.bytes.push((id - self.last_field) << 4 | kind);
        self.last_field = id;
    }

    fn int(&mut self, id: u8, number: u64) {
        self.field(id, I32);
        self.zigzag(number);
    }

    fn long(&mut self, id: u8, number: u64) {
        self.field(id, I64);
        self.zigzag(number);
    }

    fn text(&mut self, id: u8, text: &str) {
        self.field(id, BINARY);
        self.binary(text);
    }

    fn structure(&mut self, id: u8, fill: impl FnOnce(&mut Self)) {
        self.field(id, STRUCT);
        self.nested(fill);
    }

    fn list(&mut self, id: u8, length: usize, mut fill: impl FnMut(usize, &mut Self)) {
        self.list_header(id, length, STRUCT);
        for at in 0..length {
            self.nested(|element| fill(at, element));
        }
    }

    fn ints(&mut self, id: u8, numbers: &[u64]) {
        self.list_header(id, numbers.len(), I32);
        numbers.iter().for_each(|number| self.zigzag(*number));
    }

    fn texts(&mut self, id: u8, texts: &[&str]) {
        self.list_header(id, texts.len(), BINARY);
        texts.iter().for_each(|text| self.binary(text));
    }

    fn list_header(&mut self, id: u8, length: usize, kind: u8) {
        self.field(id, LIST);
        match u8::try_from(length) {
            Ok(short) if short < 15 => self.bytes.push(short << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, count(length));
            }
        }
    }

    fn nested(&mut self, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes.extend(inner.end());
    }

    fn binary(&mut self, text: &str) {
        varint(&mut self.bytes, count(text.len()));
        self.bytes.extend(text.as_bytes());
    }

    /// Signed numbers alternate in sign; all of ours are positive.
    fn zigzag(&mut self, number: u64) {
        varint(&mut self.bytes, number << 1);
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

/// Seven bits a byte, lowest first; the top bit says that more follow.
fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        let encode = |number| {
            let mut bytes = Vec::new();
            varint(&mut bytes, number);
            bytes
        };
        assert_eq!(encode(0), [0]);
        assert_eq!(encode(127), [127]);
        assert_eq!(encode(300), [0xac, 2]);
    }

    #[test]
    fn absent_values_take_a_bit_and_no_value() {
        let values = [Some(7), None, Some(9)].map(Value::Optional);
        let data = page_data(&values);
        assert_eq!(data[..6], [2, 0, 0, 0, 3, 0b101]);
        assert_eq!(data[6..14], 7_u64.to_le_bytes());
        assert_eq!(data.len(), 6 + 16);
    }

    #[test]
    fn the_header_of_a_page_is_thrift() {
        // Field by field: i32 0, i32 16, i32 16, struct {i32 2, i32 0, i32 3, i32 3}, stops.
        let expected = [
            0x15, 0, 0x15, 32, 0x15, 32, 0x2c, 0x15, 4, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0,
        ];
        assert_eq!(page_header(2, 16), expected);
    }

    #[test]
    fn every_group_is_where_the_metadata_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let mut file = ParquetFile::create(&path).unwrap();
        let rows = ROWS_IN_A_GROUP + 3;
        for at in 0..rows {
            file.write(&Row {
                minor_faults: at as u64,
                pss_bytes: (at % 10 == 0).then_some(1),
                ..Row::default()
            })
            .unwrap();
        }
        file.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(
            (&bytes[..4], &bytes[bytes.len() - 4..]),
            (&MAGIC[..], &MAGIC[..])
        );
        let length_at = bytes.len() - 8;
        let length = u32::from_le_bytes(bytes[length_at..length_at + 4].try_into().unwrap());
        let metadata = &bytes[length_at - usize::try_from(length).unwrap()..length_at];
        assert!(metadata.ends_with(&[0]));
        let full = 8 * ROWS_IN_A_GROUP;
        let first_page = page_header(ROWS_IN_A_GROUP, full);
        assert_eq!(bytes[4..4 + first_page.len()], first_page);
        let second_page = 4 + first_page.len() + full;
        assert_eq!(
            bytes[second_page..second_page + first_page.len()],
            first_page
        );
    }
}
