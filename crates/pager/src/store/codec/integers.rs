//! Delta and bit packing for pages of 32-bit integers, such as the edges of a graph in CSR form.
//!
//! ```text
//!   first value (4 bytes) │ 64 × width (1 byte) │ 64 blocks of 16 differences of that width
//! ```
//!
//! Differences are zigzag-coded, so that a descent (the next vertex's list) costs as little as a
//! rise of its size. A block of 16 differences of width w takes 2 × w bytes.

use crate::page::PAGE_BYTES;

const VALUES: usize = PAGE_BYTES / 4;
const BLOCK: usize = 16;
const BLOCKS: usize = VALUES / BLOCK;
const HEAD: usize = 4 + BLOCKS;

/// Packs `page`; nothing if `out` is too small.
pub fn pack(page: &[u8; PAGE_BYTES], out: &mut [u8]) -> Option<usize> {
    let values = page.as_chunks::<4>().0;
    if out.len() < HEAD {
        return None;
    }
    let (head, mut body) = out.split_at_mut(HEAD);
    let mut previous = u32::from_le_bytes(*values.first()?);
    head.get_mut(..4)?.copy_from_slice(&previous.to_le_bytes());
    let mut used = HEAD;
    for (width_place, block) in head
        .get_mut(4..)?
        .iter_mut()
        .zip(values.chunks_exact(BLOCK))
    {
        let mut differences = [0u32; BLOCK];
        let mut all = 0;
        for (difference, value) in differences.iter_mut().zip(block) {
            let value = u32::from_le_bytes(*value);
            *difference = zigzag(value.wrapping_sub(previous));
            all |= *difference;
            previous = value;
        }
        let width = u32::BITS - all.leading_zeros();
        *width_place = u8::try_from(width).ok()?;
        let bytes = 2 * width as usize;
        let (place, rest) = body.split_at_mut_checked(bytes)?;
        pack_block(&differences, width, place);
        body = rest;
        used += bytes;
    }
    Some(used)
}

/// Unpacks what [`pack`] made; false if it is not that.
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
    let mut places = out.iter_mut();
    for value in values {
        bits |= u64::from(*value) << count;
        count += width;
        while count >= 8 {
            if let Some(place) = places.next() {
                *place = bits.to_le_bytes()[0];
            }
            bits >>= 8;
            count -= 8;
        }
    }
}

fn unpack_block(bytes: &[u8], width: u32) -> [u32; BLOCK] {
    let (mut bits, mut count) = (0u64, 0);
    let mask = (1u64 << width) - 1;
    let mut places = bytes.iter();
    let mut values = [0; BLOCK];
    for value in &mut values {
        while count < width {
            bits |= u64::from(places.next().copied().unwrap_or_default()) << count;
            count += 8;
        }
        *value = u32::try_from(bits & mask).unwrap_or_default();
        bits >>= width;
        count -= width;
    }
    values
}
