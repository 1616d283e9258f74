//! Identifiers of 128 bits that are the same on every host: the start of a SHA-256 (FIPS 180-4)
//! over the content.

use pagewise_model::profile::Frame;

/// An identifier.
pub type Identifier = [u8; 16];

/// The identifier of this text.
#[must_use]
pub fn of_text(text: &str) -> Identifier {
    of_parts([text.as_bytes()])
}

/// The identifier of these parts. Each is followed by a zero byte, so that their borders count.
pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Identifier {
    let mut content = Vec::new();
    for part in parts {
        content.extend_from_slice(part);
        content.push(0);
    }
    first_half(sha256(&content))
}

/// The identifier of a function: from its build, its offset there, its name, module and kind.
#[must_use]
pub fn of_frame(frame: &Frame, build_id: Option<&str>, offset: Option<u64>) -> Identifier {
    let offset = offset.map_or(String::new(), |offset| offset.to_string());
    of_parts([
        build_id.unwrap_or_default().as_bytes(),
        offset.as_bytes(),
        frame.name.as_bytes(),
        frame.module.as_bytes(),
    ])
}

/// The identifier of a stack: from those of its frames, outermost first.
#[must_use]
pub fn of_stack(frames: &[Identifier]) -> Identifier {
    first_half(sha256(frames.as_flattened()))
}

/// As text: 32 hexadecimal digits.
#[must_use]
pub fn hexadecimal(identifier: &[u8]) -> String {
    identifier
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn first_half(digest: [u8; 32]) -> Identifier {
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    half
}

const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

fn sha256(content: &[u8]) -> [u8; 32] {
    let mut padded = content.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - content.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let bits = content.len() as u64 * 8;
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&bits.to_be_bytes());
    let mut state: [u32; 8] = [
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
        0x5be0cd19,
    ];
    for block in padded.chunks_exact(64) {
        compress(&mut state, block);
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn compress(state: &mut [u32; 8], block: &[u8]) {
    let mut schedule = [0_u32; 64];
    for (word, bytes) in schedule.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes
            .iter()
            .fold(0, |word, &byte| word << 8 | u32::from(byte));
    }
    for at in 16..64 {
        let (a, b) = (schedule[at - 15], schedule[at - 2]);
        let small = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
        let large = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
        schedule[at] = schedule[at - 16]
            .wrapping_add(small)
            .wrapping_add(schedule[at - 7])
            .wrapping_add(large);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (round, word) in ROUNDS.iter().zip(schedule) {
        let large = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = e & f ^ !e & g;
        let first = h
            .wrapping_add(large)
            .wrapping_add(choice)
            .wrapping_add(*round)
            .wrapping_add(word);
        let small = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = a & b ^ a & c ^ b & c;
        let second = small.wrapping_add(majority);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    for (held, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *held = held.wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        let digest = |text: &str| hexadecimal(&sha256(text.as_bytes()));
        assert_eq!(
            digest(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        // Two blocks: FIPS 180-4's example, appendix B.2.
        assert_eq!(
            digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        for length in [55, 56, 63, 64, 65] {
            assert_ne!(sha256(&vec![1; length]), sha256(&vec![1; length + 1]));
        }
    }

    #[test]
    fn borders_between_parts_count() {
        assert_ne!(of_parts([&b"ab"[..], b"c"]), of_parts([&b"a"[..], b"bc"]));
    }
}
