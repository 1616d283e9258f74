//! The few parts of the protobuf encoding that the export formats need.

/// A protobuf message.
#[derive(Default)]
pub struct Message(Vec<u8>);

impl Message {
    pub fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    /// A field of eight bytes (`fixed64`).
    pub fn fixed(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    pub fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    pub fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// A packed field of numbers.
    pub fn packed(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut packed = Self::default();
        values.for_each(|value| packed.varint(value));
        self.message(field, &packed);
    }

    /// The bytes written so far.
    pub fn bytes_so_far(&self) -> &[u8] {
        &self.0
    }

    pub fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}
