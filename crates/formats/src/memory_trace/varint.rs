//! LEB128 and zigzag.

/// Appends a varint.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a varint off the front of `bytes`; `None` where they end inside it or it exceeds 64 bits.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    // Most deltas fit into two bytes.
    if let [low, rest @ ..] = *bytes
        && *low < 0x80
    {
        *bytes = rest;
        return Some(u64::from(*low));
    }
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte < 0x80 {
            *bytes = &bytes[index + 1..];
            return Some(value);
        }
    }
    None
}

/// A signed difference as an unsigned number, small where the difference is.
pub fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

/// The inverse of [`zigzag`].
pub fn unzigzag(coded: u64) -> u64 {
    (coded >> 1) ^ (coded & 1).wrapping_neg()
}
