//! Structures in Thrift's compact protocol, as Parquet's headers and metadata need them.

/// A structure in Thrift's compact protocol. Fields must be written in ascending order.
#[derive(Default)]
pub(super) struct Thrift {
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

    pub(super) fn int(&mut self, id: u8, number: u64) {
        self.field(id, I32);
        self.zigzag(number);
    }

    pub(super) fn long(&mut self, id: u8, number: u64) {
        self.field(id, I64);
        self.zigzag(number);
    }

    pub(super) fn text(&mut self, id: u8, text: &str) {
        self.field(id, BINARY);
        self.binary(text);
    }

    pub(super) fn structure(&mut self, id: u8, fill: impl FnOnce(&mut Self)) {
        self.field(id, STRUCT);
        self.nested(fill);
    }

    pub(super) fn list(&mut self, id: u8, length: usize, mut fill: impl FnMut(usize, &mut Self)) {
        self.list_header(id, length, STRUCT);
        for at in 0..length {
            self.nested(|element| fill(at, element));
        }
    }

    pub(super) fn ints(&mut self, id: u8, numbers: &[u64]) {
        self.list_header(id, numbers.len(), I32);
        numbers.iter().for_each(|number| self.zigzag(*number));
    }

    pub(super) fn texts(&mut self, id: u8, texts: &[&str]) {
        self.list_header(id, texts.len(), BINARY);
        texts.iter().for_each(|text| self.binary(text));
    }

    fn list_header(&mut self, id: u8, length: usize, kind: u8) {
        self.field(id, LIST);
        match u8::try_from(length) {
            Ok(short) if short < 15 => self.bytes.push(short << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, length as u64);
            }
        }
    }

    fn nested(&mut self, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes.extend(inner.end());
    }

    fn binary(&mut self, text: &str) {
        varint(&mut self.bytes, text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    /// The encoding alternates between signs; all our numbers are positive.
    fn zigzag(&mut self, number: u64) {
        varint(&mut self.bytes, number << 1);
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

/// Seven bits per byte, lowest first; the top bit means that more bytes follow.
pub(super) fn varint(bytes: &mut Vec<u8>, mut number: u64) {
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
}
