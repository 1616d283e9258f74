//! Whether call chains by frame pointers lead anywhere, which decides whether stacks are copied.
//!
//! Code without frame pointers uses the register for data. A chain through it ends at once, or goes
//! on with whatever that data pointed to. Both are seen without symbols: hardly a caller, or one
//! outside all code.

use super::record_bytes::{MISC_MMAP_DATA, kind, misc, next_record, word32, word64};
use pagewise_model::event::PERF_CONTEXT_USER;
use std::collections::BTreeMap;

/// Chains of some samples, and where code is mapped.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// Starts and ends of executable mappings of all processes.
    code: BTreeMap<u64, u64>,
    seen: u64,
    broken: u64,
}

/// Most mappings that are kept. Without them all chains look broken, which costs copies.
const MOST_MAPPINGS: usize = 1 << 16;
/// Fewer broken chains than this prove nothing.
const PROOF: u64 = 5;
/// After this many, a program is known.
const ENOUGH: u64 = 32;
/// Chains break if one in this many does.
const ONE_IN: u64 = 20;
/// So many chains are remembered: half of them are forgotten then.
const MEMORY: u64 = 512;
/// A thread's first function has two callers above it, as a rule.
const FEWEST_FRAMES: usize = 3;
/// Words of a record of a mapping in front of its start (`struct { header; pid, tid; addr; len; … }`).
const MAPPING_START: usize = 16;

impl Chains {
    /// Learns where code is from records of mappings.
    pub fn learn(&mut self, mut records: &[u8]) {
        while let Some((record, after)) = next_record(records) {
            self.learn_record(record);
            records = after;
        }
    }

    /// The same of one record.
    pub fn learn_record(&mut self, record: &[u8]) {
        let is_mapping = matches!(word32(record, 0), kind::MMAP | kind::MMAP2);
        if !is_mapping || misc(record) & MISC_MMAP_DATA != 0 {
            return;
        }
        if self.code.len() >= MOST_MAPPINGS {
            self.code.clear();
        }
        let start = word64(record, MAPPING_START);
        let length = word64(record, MAPPING_START + 8);
        self.code.insert(start, start.saturating_add(length));
    }

    /// Looks at the chain at `offset` of a sample.
    pub fn look_at(&mut self, sample: &[u8], offset: usize) {
        let count = usize::try_from(word64(sample, offset)).unwrap_or(0);
        let words = sample.get(offset + 8..).unwrap_or_default().chunks_exact(8);
        let user = words
            .take(count)
            .map(|word| word64(word, 0))
            .skip_while(|word| *word != PERF_CONTEXT_USER)
            .skip(1);
        let frames: Vec<u64> = user.collect();
        if frames.is_empty() {
            return;
        }
        if self.seen >= MEMORY {
            self.seen /= 2;
            self.broken /= 2;
        }
        let is_whole = frames.len() >= FEWEST_FRAMES && frames.iter().all(|at| self.is_code(*at));
        self.seen += 1;
        self.broken += u64::from(!is_whole);
    }

    /// Whether chains break too often to be of use.
    pub fn break_often(&self) -> bool {
        self.broken >= PROOF && self.broken * ONE_IN > self.seen
    }

    /// Whether too few chains were seen to tell.
    pub fn is_undecided(&self) -> bool {
        self.seen < ENOUGH
    }

    fn is_code(&self, address: u64) -> bool {
        let below = self.code.range(..=address).next_back();
        below.is_some_and(|(_, end)| address < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let size = u16::try_from(8 + words.len() * 8).unwrap();
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend_from_slice(&misc.to_le_bytes());
        bytes.extend_from_slice(&size.to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    /// Code from 0x1000 to 0x2000, data behind it.
    fn chains() -> Chains {
        let mut chains = Chains::default();
        let code = record(kind::MMAP2, 0, &[1, 0x1000, 0x1000]);
        let data = record(kind::MMAP2, MISC_MMAP_DATA, &[1, 0x2000, 0x1000]);
        chains.learn(&[code, data].concat());
        chains
    }

    fn look_at(chains: &mut Chains, words: &[u64], times: u64) {
        let words = [&[words.len() as u64], words].concat();
        let sample = record(kind::SAMPLE, 0, &words);
        (0..times).for_each(|_| chains.look_at(&sample, 8));
    }

    const USER: u64 = PERF_CONTEXT_USER;
    const KERNEL: u64 = (-128_i64).cast_unsigned();

    #[test]
    fn chains_that_end_at_once_or_leave_the_code_are_broken() {
        for broken in [
            &[USER, 0x1100][..],
            &[USER, 0x1100, 0x1200],
            &[USER, 0x1100, 0x2100, 0x1300],
            &[KERNEL, 0xffff_ffff_8100_0000, USER, 0x1100, 0x1],
        ] {
            let mut chains = chains();
            look_at(&mut chains, broken, PROOF);
            assert!(chains.break_often(), "{broken:x?}");
        }
    }

    #[test]
    fn whole_chains_and_threads_of_the_kernel_need_no_copies() {
        for whole in [
            &[USER, 0x1100, 0x1200, 0x1300][..],
            &[KERNEL, 0xffff_ffff_8100_0000],
        ] {
            let mut chains = chains();
            look_at(&mut chains, whole, 1_000);
            assert!(!chains.break_often(), "{whole:x?}");
        }
    }

    #[test]
    fn few_broken_chains_are_borne_and_a_change_is_noticed() {
        let mut chains = chains();
        let whole = [USER, 0x1100, 0x1200, 0x1300];
        look_at(&mut chains, &whole, 500);
        look_at(&mut chains, &[USER, 0x1100], PROOF);
        assert!(!chains.break_often(), "1.6 %");
        look_at(&mut chains, &[USER, 0x1100], 40);
        assert!(chains.break_often(), "a twelfth of those of late");
    }

    #[test]
    fn a_sample_that_contradicts_itself_is_passed_over() {
        let mut chains = chains();
        let sample = record(kind::SAMPLE, 0, &[u64::MAX, KERNEL]);
        chains.look_at(&sample, 8);
        chains.look_at(&sample, 4_096);
        assert_eq!(chains.seen, 0);
    }
}
