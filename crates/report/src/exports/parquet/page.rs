//! Pages: the values of a column of a row group, as bytes (Encodings.md).

use super::column::{Column, Kind, Value};
use super::thrift::varint;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Most values of a dictionary. Beyond them, a dictionary of numbers outgrows the caches of those
/// who read it.
const MOST_WORDS: usize = 1 << 15;

/// The values of a column that are not written yet, in plain encoding: 8 bytes per number,
/// little-endian; texts and identifiers after their length. Absent values are left out.
#[derive(Clone, Default)]
pub(super) struct Pending {
    values: Vec<u8>,
    /// How many there are, absent ones and empty lists included.
    entries: u64,
    /// Definition levels: whether the value is present, or the list has an element.
    present: Bits,
    /// Repetition levels: whether the element continues a list.
    continues: Bits,
}

/// Bits, lowest first.
#[derive(Clone, Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

/// A column of a row group as bytes.
pub(super) struct Pages {
    /// The values of the dictionary, plain, and how many; absent where plain values are shorter.
    pub(super) dictionary: Option<(Vec<u8>, u64)>,
    /// Levels and values.
    pub(super) data: Vec<u8>,
    /// How many values, absent ones included.
    pub(super) entries: u64,
}

impl Pending {
    pub(super) fn add(&mut self, column: &Column, value: Value<'_>) {
        match (column.kind, value) {
            (Kind::Integer, Value::Integer(number)) => self.number(number),
            (Kind::Real, Value::Real(number)) => self.number(number.to_bits()),
            (Kind::Text, Value::Text(text)) => self.bytes(text.as_bytes()),
            (Kind::Bytes, Value::Bytes(bytes)) => self.bytes(bytes),
            (Kind::OptionalInteger, Value::Optional(number)) => {
                self.present.push(number.is_some());
                match number {
                    Some(number) => self.number(number),
                    None => self.entries += 1,
                }
            }
            (Kind::OptionalReal, Value::OptionalReal(number)) => {
                self.present.push(number.is_some());
                match number {
                    Some(number) => self.number(number.to_bits()),
                    None => self.entries += 1,
                }
            }
            (Kind::OptionalText, Value::OptionalText(text)) => {
                self.present.push(text.is_some());
                match text {
                    Some(text) => self.bytes(text.as_bytes()),
                    None => self.entries += 1,
                }
            }
            (Kind::Identifiers, Value::Identifiers(list)) => self.list(list),
            (kind, value) => panic!("{} holds {kind:?}, not {value:?}", column.name),
        }
    }

    fn number(&mut self, bits: u64) {
        self.entries += 1;
        self.values.extend(bits.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.entries += 1;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.values.extend(length.to_le_bytes());
        self.values.extend(bytes);
    }

    fn list(&mut self, list: &[[u8; 16]]) {
        if list.is_empty() {
            self.entries += 1;
            self.continues.push(false);
            self.present.push(false);
        }
        for (at, element) in list.iter().enumerate() {
            self.continues.push(at > 0);
            self.present.push(true);
            self.bytes(element);
        }
    }

    /// Repetition levels, definition levels, values: levels only where the column has them.
    pub(super) fn pages(self, kind: Kind) -> Pages {
        let mut data = Vec::new();
        if kind == Kind::Identifiers {
            self.continues.write_levels(&mut data);
        }
        if kind == Kind::Identifiers || kind.is_optional() {
            self.present.write_levels(&mut data);
        }
        let dictionary = match Dictionary::new(&self.values, kind) {
            Some(dictionary) => {
                dictionary.write_indices(&mut data);
                Some((dictionary.plain(&self.values), dictionary.words()))
            }
            None => {
                data.extend(&self.values);
                None
            }
        };
        Pages {
            dictionary,
            data,
            entries: self.entries,
        }
    }
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.count.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (self.count % 8);
        }
        self.count += 1;
    }

    /// Levels of one bit: their length in bytes, then one bit-packed run of groups of eight
    /// ("RLE / Bit-Packing Hybrid").
    fn write_levels(&self, out: &mut Vec<u8>) {
        let mut run = Vec::new();
        varint(&mut run, (self.bytes.len() as u64) << 1 | 1);
        run.extend(&self.bytes);
        let length = u32::try_from(run.len()).unwrap_or(u32::MAX);
        out.extend(length.to_le_bytes());
        out.extend(run);
    }
}

/// Each distinct value once, and the number of the value at each place.
struct Dictionary {
    words: Vec<Range<usize>>,
    indices: Vec<u32>,
}

impl Dictionary {
    /// `None` where most values differ: then plain ones are shorter.
    fn new(values: &[u8], kind: Kind) -> Option<Self> {
        let mut numbers: FxHashMap<&[u8], u32> = FxHashMap::default();
        let mut dictionary = Self {
            words: Vec::new(),
            indices: Vec::new(),
        };
        let mut at = 0;
        while at < values.len() {
            let length = match kind.is_number() {
                true => 8,
                false => 4 + u32::from_le_bytes(values.get(at..at + 4)?.try_into().ok()?) as usize,
            };
            let range = at..at + length;
            at = range.end;
            let next = u32::try_from(dictionary.words.len()).ok()?;
            let number = *numbers.entry(values.get(range.clone())?).or_insert(next);
            if number == next {
                dictionary.words.push(range);
                if dictionary.words.len() > MOST_WORDS {
                    return None;
                }
            }
            dictionary.indices.push(number);
        }
        let repeats = dictionary.words.len() * 2 <= dictionary.indices.len();
        (repeats && !dictionary.words.is_empty()).then_some(dictionary)
    }

    fn words(&self) -> u64 {
        self.words.len() as u64
    }

    fn plain(&self, values: &[u8]) -> Vec<u8> {
        let words = self.words.iter().map(|range| &values[range.clone()]);
        words.collect::<Vec<_>>().concat()
    }

    /// The width of an index in bits, then runs: of one repeated index, or of groups of eight
    /// packed ones.
    fn write_indices(&self, out: &mut Vec<u8>) {
        let most = self.words.len().saturating_sub(1).max(1);
        let width = usize::BITS - most.leading_zeros();
        out.push(width.to_le_bytes()[0]);
        let indices = &self.indices;
        let mut at = 0;
        while at < indices.len() {
            let run = repeats(&indices[at..]);
            if run >= 8 {
                varint(out, (run as u64) << 1);
                let bytes = width.div_ceil(8) as usize;
                out.extend(&indices[at].to_le_bytes()[..bytes]);
                at += run;
                continue;
            }
            let start = at;
            while at < indices.len() && repeats(&indices[at..]) < 8 {
                at += 8;
            }
            varint(out, ((at - start) as u64 / 8) << 1 | 1);
            pack(&indices[start..at.min(indices.len())], width, out);
        }
    }
}

/// How often the first value stands at the start.
fn repeats(indices: &[u32]) -> usize {
    indices.iter().take_while(|&&at| at == indices[0]).count()
}

/// Packs numbers of `width` bits, lowest bit first; fills up the last group of eight.
fn pack(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    let mut word = 0_u64;
    let mut bits = 0;
    let missing = numbers.len().next_multiple_of(8) - numbers.len();
    for &number in numbers.iter().chain(std::iter::repeat_n(&0, missing)) {
        word |= u64::from(number) << bits;
        bits += width;
        while bits >= 8 {
            out.push(word.to_le_bytes()[0]);
            word >>= 8;
            bits -= 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_values_take_a_bit_and_no_value() {
        let column = Column::optional("maybe");
        let mut pending = Pending::default();
        for value in [Some(7), None, Some(9)] {
            pending.add(&column, Value::Optional(value));
        }
        let pages = pending.pages(column.kind);
        assert_eq!(pages.data[..6], [2, 0, 0, 0, 3, 0b101]);
        assert_eq!(pages.data[6..14], 7_u64.to_le_bytes());
        assert_eq!(pages.data.len(), 6 + 16);
        assert_eq!((pages.entries, pages.dictionary), (3, None));
    }

    #[test]
    fn a_list_says_where_it_starts_and_whether_it_is_empty() {
        let column = Column::identifiers("frames");
        let mut pending = Pending::default();
        let [a, b] = [[1; 16], [2; 16]];
        for list in [&[a, b][..], &[], &[b]] {
            pending.add(&column, Value::Identifiers(list));
        }
        let pages = pending.pages(column.kind);
        // Repetition 0 1 0 0, definition 1 1 0 1, then the three identifiers.
        assert_eq!(pages.data[..6], [2, 0, 0, 0, 3, 0b0010]);
        assert_eq!(pages.data[6..12], [2, 0, 0, 0, 3, 0b1011]);
        assert_eq!(pages.data.len(), 12 + 3 * 20);
        assert_eq!(pages.entries, 4);
    }

    #[test]
    fn repeated_values_become_indices_into_a_dictionary() {
        let column = Column::integer("n");
        let mut pending = Pending::default();
        for value in [5, 6, 7, 5, 6, 7, 5, 6].into_iter().chain([7; 20]) {
            pending.add(&column, Value::Integer(value));
        }
        let pages = pending.pages(column.kind);
        let (words, count) = pages.dictionary.expect("three words");
        assert_eq!((words.len(), count), (24, 3));
        // Two bits each; one packed group of eight (0 1 2 0 1 2 0 1), then twenty times 2.
        assert_eq!(
            pages.data,
            [2, 3, 0b0010_0100, 0b0100_1001, 40, 2],
            "{:?}",
            pages.data
        );
    }
}
