//! Parquet files (parquet-format 2.10: README.md, Encodings.md, src/main/thrift/parquet.thrift).
//!
//! Written by hand, because the tables are simple: numbers, short texts and one kind of list; one
//! data page per column and row group, plain or of indices into a dictionary, compressed with gzip
//! where that makes it shorter. The `parquet` crate would add 26 crates and
//! some 54 CPU seconds to every build.
//!
//! ```text
//! "PAR1" | row group: (page header, values) for each column … | metadata | its length | "PAR1"
//! ```
//! Headers and metadata are Thrift structures in the compact protocol. The metadata comes at the
//! end, so a file is readable only once it is finished.

mod column;
mod page;
mod thrift;

pub use column::{Column, Kind, Value};
use page::Pending;
use std::io::{self, Write};
use thrift::Thrift;

const MAGIC: &[u8; 4] = b"PAR1";

/// Rows that are buffered and written together.
const ROWS_IN_A_GROUP: u64 = 50_000;

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

struct Group {
    rows: u64,
    columns: Vec<Chunk>,
}

/// A written column of a row group.
struct Chunk {
    dictionary: Option<u64>,
    offset: u64,
    values: u64,
    packed: u64,
    unpacked: u64,
    codec: u64,
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
            pending.add(column, *value);
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
            let pending = std::mem::take(&mut self.waiting[at]);
            columns.push(self.write_column(pending, self.columns[at].kind)?);
        }
        self.groups.push(Group { rows, columns });
        Ok(())
    }

    fn write_column(&mut self, pending: Pending, kind: Kind) -> io::Result<Chunk> {
        let pages = pending.pages(kind);
        let start = self.written;
        let packed = gzip(&pages.data)?;
        // Packed indices rarely get shorter, and readers are faster without unpacking them.
        let codec = match packed.len() * 10 <= pages.data.len() * 9 {
            true => GZIP,
            false => UNCOMPRESSED,
        };
        let mut unpacked = 0;
        let mut dictionary = None;
        if let Some((words, count)) = &pages.dictionary {
            dictionary = Some(self.written);
            let stored = match codec {
                GZIP => gzip(words)?,
                _ => words.clone(),
            };
            let header = dictionary_header(*count, words.len(), stored.len());
            self.put(&header)?;
            self.put(&stored)?;
            unpacked += header.len() + words.len();
        }
        let stored = match codec {
            GZIP => &packed,
            _ => &pages.data,
        };
        let encoding = match pages.dictionary {
            Some(_) => RLE_DICTIONARY,
            None => PLAIN,
        };
        let offset = self.written;
        let header = page_header(pages.entries, encoding, pages.data.len(), stored.len());
        self.put(&header)?;
        self.put(stored)?;
        unpacked += header.len() + pages.data.len();
        Ok(Chunk {
            dictionary,
            offset,
            values: pages.entries,
            packed: self.written - start,
            unpacked: unpacked as u64,
            codec,
        })
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn metadata(&self) -> Vec<u8> {
        let mut file = Thrift::default();
        file.int(1, 1);
        let elements: Vec<Element> = self.columns.iter().flat_map(Element::from_column).collect();
        file.list(2, elements.len() + 1, |at, element| {
            match at.checked_sub(1) {
                None => {
                    element.text(4, self.table);
                    element.int(5, self.columns.len() as u64);
                }
                Some(at) => elements[at].write(element),
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

fn gzip(data: &[u8]) -> io::Result<Vec<u8>> {
    let level = flate2::Compression::new(4);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(data)?;
    encoder.finish()
}

const DATA_PAGE: u64 = 0;
const DICTIONARY_PAGE: u64 = 2;
const PLAIN: u64 = 0;
const RLE: u64 = 3;
const RLE_DICTIONARY: u64 = 8;
const INT64: u64 = 2;
const DOUBLE: u64 = 5;
const BYTE_ARRAY: u64 = 6;
const REQUIRED: u64 = 0;
const OPTIONAL: u64 = 1;
const REPEATED: u64 = 2;
const UTF8: u64 = 0;
const LIST: u64 = 3;
const UNCOMPRESSED: u64 = 0;
const GZIP: u64 = 2;

fn physical_type(kind: Kind) -> u64 {
    match kind {
        Kind::Integer | Kind::OptionalInteger => INT64,
        Kind::Real | Kind::OptionalReal => DOUBLE,
        Kind::Text | Kind::OptionalText | Kind::Bytes | Kind::Identifiers => BYTE_ARRAY,
    }
}

/// An element of the schema: a column, or a level of one with lists (LogicalTypes.md, "Lists").
struct Element {
    physical: Option<u64>,
    repetition: u64,
    name: &'static str,
    children: Option<u64>,
    converted: Option<u64>,
}

impl Element {
    fn from_column(column: &Column) -> Vec<Self> {
        let leaf = |name, repetition| Self {
            physical: Some(physical_type(column.kind)),
            repetition,
            name,
            children: None,
            converted: matches!(column.kind, Kind::Text | Kind::OptionalText).then_some(UTF8),
        };
        let group = |name, repetition, converted| Self {
            physical: None,
            repetition,
            name,
            children: Some(1),
            converted,
        };
        match column.kind {
            Kind::Identifiers => vec![
                group(column.name, REQUIRED, Some(LIST)),
                group("list", REPEATED, None),
                leaf("element", REQUIRED),
            ],
            kind if kind.is_optional() => vec![leaf(column.name, OPTIONAL)],
            _ => vec![leaf(column.name, REQUIRED)],
        }
    }

    fn write(&self, out: &mut Thrift) {
        if let Some(physical) = self.physical {
            out.int(1, physical);
        }
        out.int(3, self.repetition);
        out.text(4, self.name);
        if let Some(children) = self.children {
            out.int(5, children);
        }
        if let Some(converted) = self.converted {
            out.int(6, converted);
        }
    }
}

fn page_header(values: u64, encoding: u64, unpacked: usize, packed: usize) -> Vec<u8> {
    let mut header = Thrift::default();
    header.int(1, DATA_PAGE);
    header.int(2, unpacked as u64);
    header.int(3, packed as u64);
    header.structure(5, |page| {
        page.int(1, values);
        page.int(2, encoding);
        page.int(3, RLE);
        page.int(4, RLE);
    });
    header.end()
}

fn dictionary_header(values: u64, unpacked: usize, packed: usize) -> Vec<u8> {
    let mut header = Thrift::default();
    header.int(1, DICTIONARY_PAGE);
    header.int(2, unpacked as u64);
    header.int(3, packed as u64);
    header.structure(7, |page| {
        page.int(1, values);
        page.int(2, PLAIN);
    });
    header.end()
}

fn write_group(out: &mut Thrift, group: &Group, columns: &[Column]) {
    out.list(1, group.columns.len(), |at, column| {
        let chunk = &group.columns[at];
        column.long(2, chunk.dictionary.unwrap_or(chunk.offset));
        column.structure(3, |meta| {
            meta.int(1, physical_type(columns[at].kind));
            match chunk.dictionary {
                Some(_) => meta.ints(2, &[PLAIN, RLE, RLE_DICTIONARY]),
                None => meta.ints(2, &[PLAIN, RLE]),
            }
            match columns[at].kind {
                Kind::Identifiers => meta.texts(3, &[columns[at].name, "list", "element"]),
                _ => meta.texts(3, &[columns[at].name]),
            }
            meta.int(4, chunk.codec);
            meta.long(5, chunk.values);
            meta.long(6, chunk.unpacked);
            meta.long(7, chunk.packed);
            meta.long(9, chunk.offset);
            if let Some(dictionary) = chunk.dictionary {
                meta.long(11, dictionary);
            }
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
    fn the_header_of_a_page_is_thrift() {
        // Field by field: i32 0, i32 16, i32 9, struct {i32 2, i32 0, i32 3, i32 3}, stops.
        let expected = [
            0x15, 0, 0x15, 32, 0x15, 18, 0x2c, 0x15, 4, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0,
        ];
        assert_eq!(page_header(2, PLAIN, 16, 9), expected);
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
