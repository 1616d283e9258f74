//! Compression of single pages: no allocation, no failure except "does not fit".
//!
//! Tried in order of cost: one repeated word, integers whose differences are small (index arrays,
//! on which byte-oriented coders gain nothing), LZ4.

mod integers;
mod lz4;

use crate::page::PAGE_BYTES;

/// How a page is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Codec {
    /// One word of eight bytes, repeated.
    Same = 1,
    /// Differences of 32-bit integers, in blocks of fixed width.
    Integers = 2,
    /// An LZ4 block.
    Lz4 = 3,
    /// The page as it is.
    Plain = 4,
}

impl Codec {
    /// The codec with this number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Same),
            2 => Some(Self::Integers),
            3 => Some(Self::Lz4),
            4 => Some(Self::Plain),
            _ => None,
        }
    }
}

/// Packs `page` into `out`, using at most the bytes of `out`. Returns the codec and the bytes used,
/// or `None` if they do not suffice.
#[must_use]
pub fn pack(page: &[u8; PAGE_BYTES], out: &mut [u8]) -> Option<(Codec, usize)> {
    if let Some(word) = repeated_word(page) {
        let place = out.first_chunk_mut::<8>()?;
        *place = word;
        return Some((Codec::Same, 8));
    }
    let integers = integers::pack(page, out);
    if let Some(used) = integers
        && used <= GOOD
    {
        return Some((Codec::Integers, used));
    }
    // LZ4 may do better; if not, the page is already packed.
    let mut other = [0; PAGE_BYTES];
    let room = integers.unwrap_or(out.len()).min(PAGE_BYTES);
    if let Some(used) = lz4::pack(page, other.get_mut(..room)?) {
        out.get_mut(..used)?.copy_from_slice(other.get(..used)?);
        return Some((Codec::Lz4, used));
    }
    integers.map(|used| (Codec::Integers, used))
}

/// Packed size that is good enough: less than a third of the page.
const GOOD: usize = 1344;

/// Unpacks the output of [`pack`]. False if `packed` is not such output.
#[must_use]
pub fn unpack(codec: Codec, packed: &[u8], page: &mut [u8; PAGE_BYTES]) -> bool {
    match codec {
        Codec::Same => {
            let Some(word) = packed.first_chunk::<8>() else {
                return false;
            };
            page.as_chunks_mut::<8>().0.fill(*word);
            true
        }
        Codec::Integers => integers::unpack(packed, page),
        Codec::Lz4 => lz4::unpack(packed, page),
        Codec::Plain => packed.first_chunk().map(|plain| *page = *plain).is_some(),
    }
}

fn repeated_word(page: &[u8; PAGE_BYTES]) -> Option<[u8; 8]> {
    let words = page.as_chunks::<8>().0;
    let first = *words.first()?;
    // The last word first: for most pages, that decides it.
    (*words.last()? == first && words.iter().all(|word| *word == first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pages of kinds found in programs.
    fn pages() -> impl Strategy<Value = Box<[u8; PAGE_BYTES]>> {
        let words = |values: Vec<u32>| {
            let mut page = Box::new([0; PAGE_BYTES]);
            for (place, value) in page.chunks_exact_mut(4).zip(values.iter().cycle()) {
                place.copy_from_slice(&value.to_le_bytes());
            }
            page
        };
        prop_oneof![
            any::<u64>().prop_map(move |word| {
                let mut page = Box::new([0; PAGE_BYTES]);
                page.as_chunks_mut::<8>().0.fill(word.to_le_bytes());
                page
            }),
            (any::<u32>(), prop::collection::vec(0u32..5000, 1024)).prop_map(
                move |(start, steps)| {
                    words(
                        steps
                            .iter()
                            .scan(start, |sum, step| {
                                *sum = sum.wrapping_add(*step);
                                Some(*sum)
                            })
                            .collect(),
                    )
                }
            ),
            prop::collection::vec(any::<u32>(), 1024).prop_map(words),
            prop::collection::vec(any::<u32>(), 1..40).prop_map(words),
            (prop::collection::vec(any::<u8>(), 1..4096)).prop_map(|bytes| {
                let mut page = Box::new([0; PAGE_BYTES]);
                page[..bytes.len()].copy_from_slice(&bytes);
                page
            }),
            prop::collection::vec(0u8..4, 4096).prop_map(|bytes| {
                let mut page = Box::new([0; PAGE_BYTES]);
                page.copy_from_slice(&bytes);
                page
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(page in pages(), room in 0usize..5000) {
            let mut out = vec![0; room];
            if let Some((codec, used)) = pack(&page, &mut out) {
                prop_assert!(used <= room);
                let mut back = Box::new([0xaa; PAGE_BYTES]);
                prop_assert!(unpack(codec, &out[..used], &mut back));
                prop_assert_eq!(back, page);
            }
        }

        #[test]
        fn rubbish_is_refused_or_unpacked_without_harm(
            bytes in prop::collection::vec(any::<u8>(), 0..3000), number in 1u8..5,
        ) {
            let mut page = Box::new([0; PAGE_BYTES]);
            let codec = Codec::from_number(number).expect("one of four");
            let _ = unpack(codec, &bytes, &mut page);
        }
    }

    #[test]
    fn sorted_indices_pack_where_lz4_cannot() {
        let mut page = [0; PAGE_BYTES];
        let mut value = 7_000_000u32;
        let mut state = 1u32;
        for place in page.chunks_exact_mut(4) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            value += state >> 22;
            place.copy_from_slice(&value.to_le_bytes());
        }
        let mut out = [0; 3072];
        let (codec, used) = pack(&page, &mut out).expect("fits");
        assert_eq!(codec, Codec::Integers);
        assert!(used < 1600, "{used}");
        assert_eq!(lz4::pack(&page, &mut out), None);
    }
}
