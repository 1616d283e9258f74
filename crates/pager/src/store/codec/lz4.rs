//! LZ4 blocks for single pages (`lz4_Block_format.md`, LZ4 1.10): one hash table of 4 KiB on the
//! stack, offsets that need 12 bits, no framing.

use crate::page::PAGE_BYTES;

/// Shortest match.
const MATCH: usize = 4;
/// The last match starts at least this far from the end.
const LAST_MATCH: usize = 12;
/// The last bytes, this many, are literals.
const TAIL: usize = 5;
const HASH_BITS: u32 = 11;

/// Packs `page`; `None` if `out` is too small.
pub fn pack(page: &[u8; PAGE_BYTES], out: &mut [u8]) -> Option<usize> {
    let mut table = [0u16; 1 << HASH_BITS];
    let mut writer = Writer { out, used: 0 };
    let (mut at, mut literals) = (0, 0);
    // Consecutive misses make the search skip ahead: an incompressible page must not cost much.
    let mut misses = 0;
    while at + LAST_MATCH <= PAGE_BYTES {
        let word = word_at(page, at)?;
        let place = table.get_mut(hash(word))?;
        let candidate = usize::from(*place);
        *place = u16::try_from(at).ok()?;
        if candidate >= at || word_at(page, candidate)? != word {
            misses += 1;
            at += 1 + (misses >> 5);
            continue;
        }
        misses = 0;
        let length = MATCH + common(page, candidate + MATCH, at + MATCH);
        writer.sequence(page.get(literals..at)?, Some((at - candidate, length)))?;
        at += length;
        literals = at;
    }
    writer.sequence(page.get(literals..)?, None)?;
    Some(writer.used)
}

fn word_at(page: &[u8; PAGE_BYTES], at: usize) -> Option<u32> {
    page.get(at..)?
        .first_chunk::<4>()
        .map(|bytes| u32::from_le_bytes(*bytes))
}

fn hash(word: u32) -> usize {
    (word.wrapping_mul(2_654_435_761) >> (32 - HASH_BITS)) as usize
}

/// Length of the common run from `a` and from `b`, excluding the tail.
fn common(page: &[u8; PAGE_BYTES], a: usize, b: usize) -> usize {
    let end = PAGE_BYTES - TAIL;
    let (Some(first), Some(second)) = (page.get(a..), page.get(b..end)) else {
        return 0;
    };
    let mut length = 0;
    for (left, right) in first
        .as_chunks::<8>()
        .0
        .iter()
        .zip(second.as_chunks::<8>().0)
    {
        let difference = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
        if difference != 0 {
            return length + difference.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = first.iter().zip(second).skip(length);
    length + rest.take_while(|(left, right)| left == right).count()
}

struct Writer<'a> {
    out: &'a mut [u8],
    used: usize,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.used + bytes.len();
        self.out.get_mut(self.used..end)?.copy_from_slice(bytes);
        self.used = end;
        Some(())
    }

    fn rest_of_length(&mut self, length: usize) -> Option<()> {
        let Some(mut rest) = length.checked_sub(15) else {
            return Some(());
        };
        while rest >= 255 {
            self.bytes(&[255])?;
            rest -= 255;
        }
        self.bytes(&[u8::try_from(rest).ok()?])
    }

    fn sequence(&mut self, literals: &[u8], found: Option<(usize, usize)>) -> Option<()> {
        let extra = found.map_or(0, |(_, length)| length - MATCH);
        let token = literals.len().min(15) << 4 | extra.min(15);
        self.bytes(&[u8::try_from(token).ok()?])?;
        self.rest_of_length(literals.len())?;
        self.bytes(literals)?;
        if let Some((offset, _)) = found {
            self.bytes(&u16::try_from(offset).ok()?.to_le_bytes())?;
            self.rest_of_length(extra)?;
        }
        Some(())
    }
}

/// Unpacks a block into a page; false if it is not a block, or has a different length.
pub fn unpack(packed: &[u8], page: &mut [u8; PAGE_BYTES]) -> bool {
    sequences(packed, page) == Some(PAGE_BYTES)
}

fn sequences(mut packed: &[u8], page: &mut [u8; PAGE_BYTES]) -> Option<usize> {
    let mut filled = 0usize;
    loop {
        let token = take(&mut packed)?;
        let count = length(usize::from(token >> 4), &mut packed)?;
        let (literals, rest) = packed.split_at_checked(count)?;
        page.get_mut(filled..filled.checked_add(count)?)?
            .copy_from_slice(literals);
        filled += count;
        packed = rest;
        if packed.is_empty() {
            return Some(filled);
        }
        let offset = usize::from(take(&mut packed)?) | usize::from(take(&mut packed)?) << 8;
        let count = length(usize::from(token & 15), &mut packed)? + MATCH;
        let from = filled.checked_sub(offset).filter(|_| offset > 0)?;
        repeat(page, from, filled, count)?;
        filled += count;
    }
}

fn repeat(page: &mut [u8; PAGE_BYTES], from: usize, to: usize, count: usize) -> Option<()> {
    let end = to.checked_add(count).filter(|end| *end <= PAGE_BYTES)?;
    let period = to - from;
    if period >= count {
        page.copy_within(from..from + count, to);
        return Some(());
    }
    // Overlapping: copied bytes are copied again, twice as many each time.
    let mut done = to;
    while done < end {
        let step = (done - from).min(end - done);
        page.copy_within(from..from + step, done);
        done += step;
    }
    Some(())
}

fn take(packed: &mut &[u8]) -> Option<u8> {
    let (first, rest) = packed.split_first()?;
    *packed = rest;
    Some(*first)
}

fn length(start: usize, packed: &mut &[u8]) -> Option<usize> {
    let mut sum = start;
    if start == 15 {
        loop {
            let byte = take(packed)?;
            sum += usize::from(byte);
            if byte != 255 {
                break;
            }
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_decoders_read_our_blocks() {
        let mut page = [0; PAGE_BYTES];
        for (number, place) in page.iter_mut().enumerate() {
            *place = b"the quick brown fox jumps over the lazy dog "[number * number % 44];
        }
        let mut out = [0; PAGE_BYTES];
        let used = pack(&page, &mut out).expect("fits");
        let back = lz4_flex::block::decompress(&out[..used], PAGE_BYTES).expect("a block");
        assert_eq!(back, page);
    }

    #[test]
    fn we_read_blocks_of_other_encoders() {
        let text = include_bytes!("lz4.rs");
        let page: &[u8; PAGE_BYTES] = text.first_chunk().expect("this file has a page");
        let packed = lz4_flex::block::compress(page);
        let mut back = [0; PAGE_BYTES];
        assert!(unpack(&packed, &mut back));
        assert_eq!(back, *page);
        let mut out = [0; PAGE_BYTES];
        let ours = pack(page, &mut out).expect("fits");
        assert!(
            ours < packed.len() * 23 / 20,
            "{ours} bytes against {}",
            packed.len()
        );
    }
}
