//! Delta and bit packing for pages of 32-bit integers, such as the edges of a graph in CSR form.
//!
//! ```text
//!   first value (4 bytes) │ 64 × width (1 byte) │ 64 blocks of 16 differences of that width
//! ```
//!
//! Differences are zigzag-coded, so that a descent (the next vertex's list) costs as little as an
//! increase of the same size. A block of 16 differences of width w takes 2 × w bytes.

use crate::page::PAGE_BYTES;

const VALUES: usize = PAGE_BYTES / 4;
const BLOCK: usize = 16;
const BLOCKS: usize = VALUES / BLOCK;
const HEAD: usize = 4 + BLOCKS;

/// Packs `page`; `None` if `out` is too small, which a first pass finds out cheaply: most pages are
/// not integers.
pub fn pack(page: &[u8; PAGE_BYTES], out: &mut [u8]) -> Option<usize> {
    let (first, codes) = codes(page)?;
    let blocks = codes.as_chunks::<BLOCK>().0;
    let widths: [u32; BLOCKS] = core::array::from_fn(|block| width(&blocks[block]));
    let bytes = 2 * widths.iter().sum::<u32>() as usize;
    let (head, body) = out.get_mut(..HEAD + bytes)?.split_at_mut(HEAD);
    let (place, width_places) = head.split_first_chunk_mut::<4>()?;
    *place = first.to_le_bytes();
    let mut body = body;
    for ((place, width), block) in width_places.iter_mut().zip(widths).zip(blocks) {
        *place = u8::try_from(width).ok()?;
        let (bytes, rest) = body.split_at_mut_checked(2 * width as usize)?;
        pack_block(block, width, bytes);
        body = rest;
    }
    Some(HEAD + bytes)
}

/// The first value, and each value's difference from the one before it.
fn codes(page: &[u8; PAGE_BYTES]) -> Option<(u32, [u32; VALUES])> {
    let values = page.as_chunks::<4>().0;
    let value = |place: usize| u32::from_le_bytes(values[place]);
    let mut codes = [0; VALUES];
    for (place, code) in codes.iter_mut().enumerate().skip(1) {
        *code = zigzag(value(place).wrapping_sub(value(place - 1)));
    }
    Some((u32::from_le_bytes(*values.first()?), codes))
}

/// Number of bits of the widest of `codes`.
fn width(codes: &[u32; BLOCK]) -> u32 {
    let all = codes.iter().fold(0, |all, code| all | code);
    u32::BITS - all.leading_zeros()
}

/// Unpacks the output of [`pack`]; false if it is not such output.
pub fn unpack(packed: &[u8], page: &mut [u8; PAGE_BYTES]) -> bool {
    let Some((head, mut body)) = packed.split_at_checked(HEAD) else {
        return false;
    };
    let Some((first, widths)) = head.split_first_chunk::<4>() else {
        return false;
    };
    let mut previous = u32::from_le_bytes(*first);
    for (width, block) in widths
        .iter()
        .zip(page.as_chunks_mut::<4>().0.chunks_exact_mut(BLOCK))
    {
        let width = u32::from(*width);
        if width > 32 {
            return false;
        }
        let Some((bytes, rest)) = body.split_at_checked(2 * width as usize) else {
            return false;
        };
        body = rest;
        for (place, difference) in block.iter_mut().zip(unpack_block(bytes, width)) {
            previous = previous.wrapping_add(unzigzag(difference));
            *place = previous.to_le_bytes();
        }
    }
    body.is_empty()
}

const fn zigzag(difference: u32) -> u32 {
    let signed = difference.cast_signed();
    (signed << 1 ^ signed >> 31).cast_unsigned()
}

const fn unzigzag(code: u32) -> u32 {
    code >> 1 ^ (code & 1).wrapping_neg()
}

fn pack_block(values: &[u32; BLOCK], width: u32, out: &mut [u8]) {
    let (mut bits, mut count) = (0u64, 0);
    let mut places = out.as_chunks_mut::<2>().0.iter_mut();
    for value in values {
        bits |= u64::from(*value) << count;
        count += width;
        while count >= 16 {
            let [low, high, ..] = bits.to_le_bytes();
            if let Some(place) = places.next() {
                *place = [low, high];
            }
            bits >>= 16;
            count -= 16;
        }
    }
}

fn unpack_block(bytes: &[u8], width: u32) -> [u32; BLOCK] {
    let (mut bits, mut count) = (0u64, 0);
    let mask = (1u64 << width) - 1;
    let mut places = bytes.as_chunks::<2>().0.iter();
    let mut values = [0; BLOCK];
    for value in &mut values {
        while count < width {
            let next = places.next().copied().unwrap_or_default();
            bits |= u64::from(u16::from_le_bytes(next)) << count;
            count += 16;
        }
        *value = u32::try_from(bits & mask).unwrap_or_default();
        bits >>= width;
        count -= width;
    }
    values
}
