//! The known meanings of texts that occur again and again.
//!
//! Texts are not kept: they are identified by 96 bits of a hash with random keys. Among 2²⁴
//! different texts, the chance that any two are confused is below 2⁻⁴⁰. Since the keys are new in
//! each process, no file can be constructed so that its texts are mixed up.

use std::hash::{BuildHasher, RandomState};

/// Values by text.
#[derive(Clone, Debug)]
pub struct Known<V> {
    keys: [u64; 4],
    /// Open addressing, at most half full.
    slots: Vec<Slot<V>>,
    len: usize,
}

/// Sixteen bytes, so that four share a cache line.
#[derive(Clone, Copy, Debug, Default)]
struct Slot<V> {
    key: TextKey,
    value: V,
}

/// A text's hash: the key of its value. No text has an all-zero key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct TextKey(u32, u32, u32);

const FREE: TextKey = TextKey(0, 0, 0);

impl<V: Copy + Default> Default for Known<V> {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            keys: [
                random.hash_one(0),
                random.hash_one(1),
                random.hash_one(2),
                random.hash_one(3),
            ],
            slots: vec![Slot::default(); 256],
            len: 0,
        }
    }
}

impl<V: Copy + Default> Known<V> {
    /// The key of a text in this table.
    #[inline]
    pub fn key(&self, text: &[u8]) -> TextKey {
        key(hash(&self.keys, self.keys, text))
    }

    /// The key of a text whose meaning depends on `context`.
    #[inline]
    pub fn key_within(&self, context: u64, text: &[u8]) -> TextKey {
        let mut lanes = self.keys;
        let mut chunk = [0; 32];
        chunk[..8].copy_from_slice(&context.to_le_bytes());
        add(&mut lanes, &self.keys, &chunk);
        key(hash(&self.keys, lanes, text))
    }

    /// The key of two texts; the same bytes split elsewhere have another. If the second is empty,
    /// the key of the first.
    #[inline]
    pub fn key_of_parts(&self, first: &[u8], second: &[u8]) -> TextKey {
        if second.is_empty() {
            return self.key(first);
        }
        let (high, low) = hash(&self.keys, self.keys, first);
        let [a, b, c, d] = self.keys;
        key(hash(
            &self.keys,
            [a ^ high, b ^ low, c ^ low, d ^ high],
            second,
        ))
    }

    /// The value stored for a text.
    #[inline]
    pub fn find(&self, key: TextKey) -> Option<V> {
        let slot = &self.slots[self.slot_of(key)];
        (slot.key != FREE).then_some(slot.value)
    }

    /// Stores the value of a new text.
    #[cold]
    pub fn add(&mut self, key: TextKey, value: V) {
        if self.len * 2 >= self.slots.len() {
            self.grow();
        }
        let at = self.slot_of(key);
        self.slots[at] = Slot { key, value };
        self.len += 1;
    }

    #[inline]
    fn slot_of(&self, key: TextKey) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key.1 as usize & mask;
        while self.slots[at].key != key && self.slots[at].key != FREE {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let slots = vec![Slot::default(); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old.into_iter().filter(|slot| slot.key != FREE) {
            let at = self.slot_of(slot.key);
            self.slots[at] = slot;
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "96 of 128 bits of a hash are taken"
)]
#[inline]
fn key((high, low): (u64, u64)) -> TextKey {
    TextKey((high >> 32) as u32, high as u32, low as u32 | 1)
}

/// Both halves of a product, folded into one word.
#[allow(
    clippy::cast_possible_truncation,
    reason = "both halves of the product are taken"
)]
#[inline]
pub fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Four lanes of folded products, each with keys of its own; every 32 bytes go through all of them
/// except for a half each. The last 32 bytes overlap those before.
#[inline]
fn hash(keys: &[u64; 4], start: [u64; 4], text: &[u8]) -> (u64, u64) {
    // Multiplied, so that no other byte can compensate for a different length.
    let len = (text.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let [a, b, c, d] = start;
    let mut lanes = [a ^ len, b ^ len, c ^ len, d ^ len];
    if let Some(last) = text.last_chunk::<32>() {
        for chunk in text.as_chunks::<32>().0 {
            add(&mut lanes, keys, chunk);
        }
        if !text.len().is_multiple_of(32) {
            add(&mut lanes, keys, last);
        }
    } else {
        add(&mut lanes, keys, &padded(text));
    }
    let [a, b, c, d] = lanes;
    (fold(a ^ keys[3], c), fold(b ^ keys[2], d))
}

#[inline]
fn add(lanes: &mut [u64; 4], keys: &[u64; 4], chunk: &[u8; 32]) {
    let [a, b, c, d] = lanes;
    let [k, l, m, n] = keys;
    let (u, v, w, x) = (
        word(chunk, 0),
        word(chunk, 8),
        word(chunk, 16),
        word(chunk, 24),
    );
    (*a, *b) = (fold(*a ^ u, v ^ m), fold(*b ^ v, u ^ n));
    (*c, *d) = (fold(*c ^ w, x ^ k), fold(*d ^ x, w ^ l));
}

#[inline]
fn word(chunk: &[u8; 32], at: usize) -> u64 {
    chunk[at..]
        .first_chunk()
        .copied()
        .map_or(0, u64::from_le_bytes)
}

/// A short text, with each of its bytes at a position determined by its length.
#[inline]
fn padded(text: &[u8]) -> [u8; 32] {
    let mut chunk = [0; 32];
    if let (Some(first), Some(last)) = (text.first_chunk::<16>(), text.last_chunk::<16>()) {
        chunk[..16].copy_from_slice(first);
        chunk[16..].copy_from_slice(last);
    } else if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        chunk[..8].copy_from_slice(first);
        chunk[16..24].copy_from_slice(last);
    } else {
        chunk[..text.len()].copy_from_slice(text);
    }
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_text_keeps_its_value_while_the_table_grows() {
        let texts = |at: u32| [vec![b'a'; at as usize % 70], at.to_le_bytes().to_vec()].concat();
        let mut known = Known::default();
        for at in 0..5000 {
            let key = known.key(&texts(at));
            assert_eq!(known.find(key), None);
            known.add(key, at);
        }
        for at in 0..5000 {
            let key = known.key(&texts(at));
            assert_eq!(known.find(key), Some(at));
        }
    }

    #[test]
    fn a_text_has_another_key_in_each_context_and_parting() {
        let known = Known::<u32>::default();
        let mut keys: HashSet<TextKey> =
            (0..1000).map(|at| known.key_within(at, b"text")).collect();
        assert!(keys.insert(known.key(b"text")));
        for parts in [("te", "xt"), ("tex", "t"), ("xt", "te"), ("", "text")] {
            assert!(keys.insert(known.key_of_parts(parts.0.as_bytes(), parts.1.as_bytes())));
        }
        assert_eq!(known.key_of_parts(b"text", b""), known.key(b"text"));
    }

    #[test]
    fn texts_that_differ_anywhere_differ_in_both_halves_of_the_hash() {
        let known = Known::<u32>::default();
        let (mut high, mut low) = (HashSet::new(), HashSet::new());
        let mut texts = Vec::new();
        for len in 0..100 {
            texts.push(vec![0_u8; len]);
            for at in 0..len {
                let mut other = vec![0; len];
                other[at] = 1;
                texts.push(other);
            }
        }
        for text in &texts {
            let hash = hash(&known.keys, known.keys, text);
            assert!(high.insert(hash.0), "{text:?}");
            assert!(low.insert(hash.1), "{text:?}");
        }
    }
}
