//! Parquet files (parquet-format 2.10: README.md, Encodings.md, src/main/thrift/parquet.thrift).
//!
//! Written by hand, because the tables are flat: numbers and short texts, plain encoding, one data
//! page per column and row group, compressed with gzip. The `parquet` crate would add 26 crates and
//! some 54 CPU seconds to every build.
//!
//! ```text
//! "PAR1" | row group: (page header, values) for each column … | metadata | its length | "PAR1"
//! ```
//! Headers and metadata are Thrift structures in the compact protocol. The metadata comes at the
//! end, so a file is readable only once it is finished.

mod thrift;

use std::io::{self, Write};
use thrift::{Thrift, varint};

const MAGIC: &[u8; 4] = b"PAR1";

/// Rows that are buffered and written together.
const ROWS_IN_A_GROUP: u64 = 50_000;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit numbers, read as signed ones.
    Integer,
    /// The same, with absent values.
    OptionalInteger,
    /// Floating-point numbers.
    Real,
    /// UTF-8.
    Text,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: Kind,
}

impl Column {
    /// A column of 64-bit numbers.
    #[must_use]
    pub const fn integer(name: &'static str) -> Self {
        let kind = Kind::Integer;
        Self { name, kind }
    }

    /// A column of 64-bit numbers, with absent values.
    #[must_use]
    pub const fn optional(name: &'static str) -> Self {
        let kind = Kind::OptionalInteger;
        Self { name, kind }
    }

    /// A column of floating-point numbers.
    #[must_use]
    pub const fn real(name: &'static str) -> Self {
        let kind = Kind::Real;
        Self { name, kind }
    }

    /// A column of texts.
    #[must_use]
    pub const fn text(name: &'static str) -> Self {
        let kind = Kind::Text;
        Self { name, kind }
    }
}

/// A value; its kind must be that of its column.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// For [`Kind::Integer`].
    Integer(u64),
    /// For [`Kind::OptionalInteger`].
    Optional(Option<u64>),
    /// For [`Kind::Real`].
    Real(f64),
    /// For [`Kind::Text`].
    Text(&'a str),
}

/// A Parquet file being written.
pub struct ParquetWriter<W> {
    out: W,
    table: &'static str,
    columns: &'static [Column],
    written: u64,
    waiting: Vec<Pending>,
    rows: u64,
    groups: Vec<Group>,
}

/// The values of a column that are not written yet.
#[derive(Clone, Default)]
struct Pending {
    values: Vec<u8>,
    /// One bit per value, for columns with absent values.
    present: Vec<u8>,
}

struct Group {
    rows: u64,
    columns: Vec<Chunk>,
}

/// A written column of a row group.
struct Chunk {
    offset: u64,
    packed: u64,
    unpacked: u64,
}

impl<W: Write> ParquetWriter<W> {
    /// Starts a file with a table.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn new(out: W, table: &'static str, columns: &'static [Column]) -> io::Result<Self> {
        let mut file = Self {
            out,
            table,
            columns,
            written: 0,
            waiting: vec![Pending::default(); columns.len()],
            rows: 0,
            groups: Vec::new(),
        };
        file.put(MAGIC)?;
        Ok(file)
    }

    /// Adds a row: a value for each column, in their order.
    ///
    /// # Errors
    /// When the file can't be written.
    ///
    /// # Panics
    /// When the values do not match the columns, which is the caller's mistake.
    pub fn write(&mut self, row: &[Value<'_>]) -> io::Result<()> {
        assert_eq!(row.len(), self.columns.len(), "a value for each column");
        for ((column, pending), value) in self.columns.iter().zip(&mut self.waiting).zip(row) {
            pending.add(column, *value, self.rows);
        }
        self.rows += 1;
        match self.rows {
            ROWS_IN_A_GROUP => self.write_group(),
            _ => Ok(()),
        }
    }

    /// Writes the remaining rows and the metadata, without which the file is unreadable.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.write_group()?;
        }
        let metadata = self.metadata();
        self.put(&metadata)?;
        let length = u32::try_from(metadata.len()).map_err(io::Error::other)?;
        self.put(&length.to_le_bytes())?;
        self.put(MAGIC)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_group(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let mut columns = Vec::with_capacity(self.columns.len());
        for at in 0..self.columns.len() {
            let data = std::mem::take(&mut self.waiting[at]).page();
            let packed = gzip(&data)?;
            let header = page_header(rows, data.len(), packed.len());
            let offset = self.written;
            self.put(&header)?;
            self.put(&packed)?;
            columns.push(Chunk {
                offset,
                packed: self.written - offset,
                unpacked: (header.len() + data.len()) as u64,
            });
        }
        self.groups.push(Group { rows, columns });
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn metadata(&self) -> Vec<u8> {
        let mut file = Thrift::default();
        file.int(1, 1);
        file.list(2, self.columns.len() + 1, |at, element| {
            match at.checked_sub(1) {
                None => {
                    element.text(4, self.table);
                    element.int(5, self.columns.len() as u64);
                }
                Some(column) => schema_element(element, self.columns[column]),
            }
        });
        file.long(3, self.groups.iter().map(|group| group.rows).sum());
        file.list(4, self.groups.len(), |at, group| {
            write_group(group, &self.groups[at], self.columns);
        });
        file.text(6, concat!("pagewise ", env!("CARGO_PKG_VERSION")));
        file.end()
    }
}

impl Pending {
    /// Plain encoding: 8 bytes per number, little-endian; texts after their length. Absent values
    /// are left out.
    fn add(&mut self, column: &Column, value: Value<'_>, row: u64) {
        match (column.kind, value) {
            (Kind::Integer, Value::Integer(number)) => self.number(number),
            (Kind::Real, Value::Real(number)) => self.number(number.to_bits()),
            (Kind::Text, Value::Text(text)) => {
                let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
                self.values.extend(length.to_le_bytes());
                self.values.extend(text.as_bytes());
            }
            (Kind::OptionalInteger, Value::Optional(number)) => {
                if row.is_multiple_of(8) {
                    self.present.push(0);
                }
                if let (Some(number), Some(bits)) = (number, self.present.last_mut()) {
                    *bits |= 1 << (row % 8);
                    self.number(number);
                }
            }
            (kind, value) => panic!("{} holds {kind:?}, not {value:?}", column.name),
        }
    }

    fn number(&mut self, bits: u64) {
        self.values.extend(bits.to_le_bytes());
    }

    /// The content of a data page. Columns with absent values begin with definition levels: their
    /// length, then one bit-packed run of groups of eight levels, one bit each (Encodings.md, "RLE
    /// / Bit-Packing Hybrid").
    fn page(self) -> Vec<u8> {
        if self.present.is_empty() {
            return self.values;
        }
        let mut run = Vec::new();
        varint(&mut run, (self.present.len() as u64) << 1 | 1);
        run.extend(self.present);
        let length = u32::try_from(run.len()).unwrap_or(u32::MAX);
        [&length.to_le_bytes()[..], &run, &self.values].concat()
    }
}

fn gzip(data: &[u8]) -> io::Result<Vec<u8>> {
    let level = flate2::Compression::new(4);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(data)?;
    encoder.finish()
}

const DATA_PAGE: u64 = 0;
const PLAIN: u64 = 0;
const RLE: u64 = 3;
const INT64: u64 = 2;
const DOUBLE: u64 = 5;
const BYTE_ARRAY: u64 = 6;
const REQUIRED: u64 = 0;
const OPTIONAL: u64 = 1;
const UTF8: u64 = 0;
const GZIP: u64 = 2;

fn physical_type(kind: Kind) -> u64 {
    match kind {
        Kind::Integer | Kind::OptionalInteger => INT64,
        Kind::Real => DOUBLE,
        Kind::Text => BYTE_ARRAY,
    }
}

fn schema_element(element: &mut Thrift, column: Column) {
    element.int(1, physical_type(column.kind));
    let repetition = match column.kind {
        Kind::OptionalInteger => OPTIONAL,
        _ => REQUIRED,
    };
    element.int(3, repetition);
    element.text(4, column.name);
    if column.kind == Kind::Text {
        element.int(6, UTF8);
    }
}

fn page_header(values: u64, unpacked: usize, packed: usize) -> Vec<u8> {
    let mut header = Thrift::default();
    header.int(1, DATA_PAGE);
    header.int(2, unpacked as u64);
    header.int(3, packed as u64);
    header.structure(5, |page| {
        page.int(1, values);
        page.int(2, PLAIN);
        page.int(3, RLE);
        page.int(4, RLE);
    });
    header.end()
}

fn write_group(out: &mut Thrift, group: &Group, columns: &[Column]) {
    out.list(1, group.columns.len(), |at, column| {
        let chunk = &group.columns[at];
        column.long(2, chunk.offset);
        column.structure(3, |meta| {
            meta.int(1, physical_type(columns[at].kind));
            meta.ints(2, &[PLAIN, RLE]);
            meta.texts(3, &[columns[at].name]);
            meta.int(4, GZIP);
            meta.long(5, group.rows);
            meta.long(6, chunk.unpacked);
            meta.long(7, chunk.packed);
            meta.long(9, chunk.offset);
        });
    });
    out.long(2, group.columns.iter().map(|chunk| chunk.unpacked).sum());
    out.long(3, group.rows);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    const COLUMNS: &[Column] = &[
        Column::integer("n"),
        Column::optional("maybe"),
        Column::text("name"),
    ];

    #[test]
    fn absent_values_take_a_bit_and_no_value() {
        let mut pending = Pending::default();
        for (row, value) in (0..).zip([Some(7), None, Some(9)]) {
            pending.add(&COLUMNS[1], Value::Optional(value), row);
        }
        let data = pending.page();
        assert_eq!(data[..6], [2, 0, 0, 0, 3, 0b101]);
        assert_eq!(data[6..14], 7_u64.to_le_bytes());
        assert_eq!(data.len(), 6 + 16);
    }

    #[test]
    fn the_header_of_a_page_is_thrift() {
        // Field by field: i32 0, i32 16, i32 9, struct {i32 2, i32 0, i32 3, i32 3}, stops.
        let expected = [
            0x15, 0, 0x15, 32, 0x15, 18, 0x2c, 0x15, 4, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0,
        ];
        assert_eq!(page_header(2, 16, 9), expected);
    }

    #[test]
    fn every_group_is_where_the_metadata_says() {
        let mut file = ParquetWriter::new(Vec::new(), "t", COLUMNS).unwrap();
        for at in 0..ROWS_IN_A_GROUP + 3 {
            let maybe = at.is_multiple_of(10).then_some(1);
            file.write(&[
                Value::Integer(at),
                Value::Optional(maybe),
                Value::Text("name"),
            ])
            .unwrap();
        }
        let groups: Vec<u64> = file.groups.iter().map(|group| group.rows).collect();
        assert_eq!(groups, [ROWS_IN_A_GROUP]);
        let first = usize::try_from(file.groups[0].columns[0].offset).unwrap();
        let bytes = file.finish().unwrap();
        assert_eq!(
            (&bytes[..4], &bytes[bytes.len() - 4..]),
            (&MAGIC[..], &MAGIC[..])
        );
        let length_at = bytes.len() - 8;
        let length = u32::from_le_bytes(bytes[length_at..length_at + 4].try_into().unwrap());
        assert_eq!(bytes[length_at - 1], 0, "the metadata ends with a stop");
        assert!(length < 2000);
        // The page's data inflate to the numbers, 8 bytes each.
        let gz = (first..first + 60)
            .find(|&at| bytes[at..].starts_with(&[0x1f, 0x8b]))
            .unwrap();
        let mut data = Vec::new();
        flate2::read::GzDecoder::new(&bytes[gz..])
            .read_to_end(&mut data)
            .unwrap();
        assert_eq!(data.len() as u64, 8 * ROWS_IN_A_GROUP);
        assert_eq!(data[8 * 12_345..8 * 12_345 + 8], 12_345_u64.to_le_bytes());
    }
}
