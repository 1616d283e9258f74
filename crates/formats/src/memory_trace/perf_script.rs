//! Data addresses in the text of `perf script`: `-F addr` alone, or with other fields before it,
//! the last of which ends in a colon (the event or the time).
//!
//! ```text
//!     redis 4242 [001]  17.432: cpu/mem-loads,ldlat=30/P:   7f12a4c0e010 ...
//! ```

use super::Line;

pub fn parse(text: &[u8]) -> Line {
    if text.is_empty() || text.starts_with(b"#") {
        return Line::Nothing;
    }
    let words = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let (mut event, mut address, mut count) = (None, None, 0);
    for word in words {
        count += 1;
        if word.ends_with(b":") {
            (event, address) = (Some(word), None);
        } else if address.is_none() {
            address = Some(word);
        }
    }
    let is_write = event.is_some_and(|event| event.windows(5).any(|part| part == b"store"));
    let address = address.and_then(hexadecimal);
    let is_alone = event.is_some() || count == 1;
    match address {
        Some(address) if is_alone => Line::Access { address, is_write },
        _ => Line::Unknown,
    }
}

/// A hexadecimal number with or without `0x`.
pub fn hexadecimal(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"0x").unwrap_or(word);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })
}
