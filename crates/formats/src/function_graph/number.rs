//! Numbers as the kernel prints them, read from the front of a byte slice.

use super::line::Span;

/// Decimal digits at the front: their value and their number. `None` without digits or with more
/// than 18, which suffice for every field of a trace.
#[inline]
pub(super) fn digits(text: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    let mut len = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        if len == 18 {
            return None;
        }
        value = value * 10 + u64::from(digit);
        len += 1;
    }
    (len > 0).then_some((value, len))
}

/// A duration such as `0.670 us`, `12321.24 us`, `1000000 us` or, on kernels 3.x, `29. 90 us`; the
/// text starts at its first digit. Also returns its length in bytes, ` us` included.
#[inline]
pub(super) fn duration(text: &[u8]) -> Option<(Span, usize)> {
    if let [whole, b'.', a, b, c, b' ', b'u', b's', ..] = text {
        let (whole, a, b, c) = (
            whole.wrapping_sub(b'0'),
            a.wrapping_sub(b'0'),
            b.wrapping_sub(b'0'),
            c.wrapping_sub(b'0'),
        );
        if whole < 10 && a < 10 && b < 10 && c < 10 {
            let ns =
                u64::from(whole) * 1000 + u64::from(a) * 100 + u64::from(b) * 10 + u64::from(c);
            return Some((Span { ns, tick: 1 }, 8));
        }
    }
    let (micros, len) = digits(text)?;
    let (fraction, tick, fraction_len) = fraction(&text[len..]);
    let end = len + fraction_len;
    if text.get(end..end + 3)? != b" us" {
        return None;
    }
    let ns = micros.checked_mul(1000)?.checked_add(u64::from(fraction))?;
    Some((Span { ns, tick }, end + 3))
}

/// The decimals in nanoseconds, their precision and their length with the point.
#[inline]
fn fraction(text: &[u8]) -> (u32, u32, usize) {
    let [b'.', decimals @ ..] = text else {
        return (0, 1000, 0);
    };
    let (mut value, mut tick, mut len) = (0, 1000, 1);
    for &byte in decimals.iter().take(3) {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b' ' if decimals
                .get(len)
                .is_some_and(|b| matches!(b, b' ' | b'0'..=b'9')) =>
            {
                0
            }
            _ => break,
        };
        value = value * 10 + u32::from(digit);
        tick /= 10;
        len += 1;
    }
    (value * tick, tick, len)
}

/// Six digits, a time's microseconds, in nanoseconds.
#[inline]
pub(super) fn micros(six: &[u8; 6]) -> Option<u64> {
    let mut value = 0_u64;
    let mut wrong = false;
    for byte in six {
        let digit = byte.wrapping_sub(b'0');
        wrong |= digit > 9;
        value = value * 10 + u64::from(digit);
    }
    (!wrong).then_some(value * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_every_spelling() {
        for (text, ns, tick) in [
            ("0.670 us", 670, 1),
            ("11.766 us", 11_766, 1),
            ("2091.747 us", 2_091_747, 1),
            ("12321.24 us", 12_321_240, 10),
            ("159922.8 us", 159_922_800, 100),
            ("1000000 us", 1_000_000_000, 1000),
            ("123456789 us", 123_456_789_000, 1000),
            ("29. 90 us", 29_090, 1),
            ("29.  9 us", 29_009, 1),
        ] {
            let expected = Some((Span { ns, tick }, text.len()));
            assert_eq!(duration(text.as_bytes()), expected, "{text}");
        }
        for text in ["", "us", "12", "12 ns", "1.2.3 us", "x.670 us"] {
            assert_eq!(duration(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_number_too_long_is_refused() {
        assert_eq!(digits(b"1234567890123456789"), None);
        assert_eq!(
            digits(b"123456789012345678x"),
            Some((123_456_789_012_345_678, 18))
        );
    }
}
