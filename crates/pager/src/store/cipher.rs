//! Encryption of pages on disk: AES-256 in XTS mode (IEEE 1619), as in disk encryption; the slot
//! number is the tweak. The key is only in memory and is lost with the run.

use aes::Aes256;
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

use crate::page::PAGE_BYTES;

type Block = [u8; 16];

/// A key, ready for use.
pub struct Cipher {
    data: Aes256,
    tweak: Aes256,
}

impl core::fmt::Debug for Cipher {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("Cipher")
    }
}

impl Cipher {
    /// The cipher with this key; the two keys that XTS needs are derived from it.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        let root = Aes256::new(&Array(*key));
        let derive = |number: u8| {
            let mut key = [0; 32];
            for (place, half) in key.as_chunks_mut::<16>().0.iter_mut().zip([0, 1]) {
                let mut block = Array([number * 2 + half; 16]);
                root.encrypt_block(&mut block);
                *place = block.0;
            }
            Aes256::new(&Array(key))
        };
        Cipher {
            data: derive(1),
            tweak: derive(2),
        }
    }

    /// Encrypts the page that goes to `slot`.
    pub fn encrypt(&self, slot: u32, page: &mut [u8; PAGE_BYTES]) {
        self.each_block(slot, page, |cipher, block| cipher.encrypt_block(block));
    }

    /// Decrypts the page that came from `slot`.
    pub fn decrypt(&self, slot: u32, page: &mut [u8; PAGE_BYTES]) {
        self.each_block(slot, page, |cipher, block| cipher.decrypt_block(block));
    }

    fn each_block(
        &self,
        slot: u32,
        page: &mut [u8; PAGE_BYTES],
        turn: impl Fn(&Aes256, &mut Array<u8, aes::cipher::typenum::U16>),
    ) {
        let mut start = Array(u128::from(slot).to_le_bytes());
        self.tweak.encrypt_block(&mut start);
        let mut tweak = u128::from_le_bytes(start.0);
        for place in page.as_chunks_mut::<16>().0 {
            let mut block = Array(mix(*place, tweak));
            turn(&self.data, &mut block);
            *place = mix(block.0, tweak);
            tweak = doubled(tweak);
        }
    }
}

fn mix(block: Block, tweak: u128) -> Block {
    (u128::from_le_bytes(block) ^ tweak).to_le_bytes()
}

/// Multiplication by x in GF(2¹²⁸), modulo x¹²⁸ + x⁷ + x² + x + 1.
fn doubled(tweak: u128) -> u128 {
    tweak << 1 ^ if tweak >> 127 == 1 { 0x87 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_comes_back_and_slots_differ() {
        let cipher = Cipher::new(&[7; 32]);
        let mut page = [0; PAGE_BYTES];
        page[5] = 1;
        let plain = page;
        cipher.encrypt(3, &mut page);
        let first = page;
        assert!(
            first
                .as_chunks::<16>()
                .0
                .windows(2)
                .all(|pair| pair[0] != pair[1])
        );
        cipher.decrypt(3, &mut page);
        assert_eq!(page, plain);
        cipher.encrypt(4, &mut page);
        assert_ne!(page, first);
    }

    #[test]
    fn the_mode_is_that_of_the_standard() {
        // IEEE 1619-2007, annex B, vector 10: XTS-AES-256, data unit 0xff, first block.
        let half = |text: &str| -> [u8; 32] {
            core::array::from_fn(|i| u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).expect("hex"))
        };
        let cipher = Cipher {
            data: Aes256::new(&Array(half(
                "2718281828459045235360287471352662497757247093699959574966967627",
            ))),
            tweak: Aes256::new(&Array(half(
                "3141592653589793238462643383279502884197169399375105820974944592",
            ))),
        };
        let mut page = [0; PAGE_BYTES];
        for (number, place) in page.iter_mut().enumerate() {
            *place = number.to_le_bytes()[0];
        }
        cipher.encrypt(0xff, &mut page);
        let expected = 0x1c3b_3a10_2f77_0386_e483_6c99_e370_cf9b_u128.to_be_bytes();
        assert_eq!(page[..16], expected);
    }
}
