//! Call stacks, interned: each stack is stored once, and samples refer to it by number.

use crate::event::{Callchain, CpuMode};
use crate::known::Known;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Number of an interned stack in its [`StackTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct StackId(pub u32);

/// An address of one process's code at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameKey {
    /// Process whose address space the address belongs to; -1 for the kernel.
    pub pid: i32,
    /// Mode in which the address was executed.
    pub mode: CpuMode,
    /// The executed address. For a caller, an address within its call instruction: the byte before
    /// the return address.
    pub address: u64,
}

impl FrameKey {
    fn new(pid: i32, mode: CpuMode, address: u64) -> Self {
        Self {
            pid: if mode == CpuMode::Kernel { -1 } else { pid },
            mode,
            address,
        }
    }
}

/// Interned stacks of raw addresses.
///
/// Callers' addresses repeat from sample to sample; that of the innermost function mostly does not.
/// So the addresses after the innermost one are looked up as a whole, by a hash of their bytes (see
/// [`Known`]), and only new callers are processed one by one.
#[derive(Clone, Debug)]
pub struct StackTable {
    /// Addresses, each once; the fields below refer to their indices here.
    keys: Vec<FrameKey>,
    /// Indices by process and mode, then by address: what a process uses stays in the cache.
    places: FxHashMap<(i32, CpuMode), FxHashMap<u64, u32>>,
    /// Chains of callers one after another, each innermost first; the next field has the end of
    /// each.
    callers: Vec<u32>,
    ends: Vec<usize>,
    known: Known<u32>,
    stacks: Vec<Stack>,
    numbers: FxHashMap<Stack, StackId>,
}

/// One stack of a [`StackTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    innermost: u32,
    callers: u32,
}

impl Stack {
    /// No frames at all.
    const EMPTY: Self = Self {
        innermost: u32::MAX,
        callers: 0,
    };

    /// The index of its innermost address in [`StackTable::keys`]; `None` for an empty stack.
    #[must_use]
    pub fn innermost(self) -> Option<usize> {
        (self != Self::EMPTY).then_some(self.innermost as usize)
    }

    /// The index of its callers in [`StackTable::callers`].
    #[must_use]
    pub fn callers(self) -> usize {
        self.callers as usize
    }
}

impl Default for StackTable {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            places: FxHashMap::default(),
            callers: Vec::new(),
            // The first chain is the one without callers.
            ends: vec![0],
            known: Known::default(),
            stacks: vec![Stack::EMPTY],
            numbers: FxHashMap::default(),
        }
    }
}

impl StackTable {
    /// The number of this chain of this process; equal chains get equal numbers.
    pub fn intern(&mut self, pid: i32, chain: Callchain<'_>) -> StackId {
        let Some((mode, address, behind)) = chain.split_innermost() else {
            return StackId(0);
        };
        let stack = Stack {
            callers: self.chain(pid, mode, behind),
            innermost: self.place(FrameKey::new(pid, mode, address)),
        };
        let next = StackId(number(self.stacks.len()));
        let id = *self.numbers.entry(stack).or_insert(next);
        if id == next {
            self.stacks.push(stack);
        }
        id
    }

    /// Frees what only looks up stacks, which is half of the memory, once all have their numbers. A
    /// stack that is interned later gets a new number, even if it has one.
    pub fn close(&mut self) {
        self.places = FxHashMap::default();
        self.known = Known::default();
        self.numbers = FxHashMap::default();
        self.keys.shrink_to_fit();
        self.callers.shrink_to_fit();
    }

    fn chain(&mut self, pid: i32, mode: CpuMode, callers: Callchain<'_>) -> u32 {
        if callers.is_empty() {
            return 0;
        }
        let context = u64::from(pid.cast_unsigned()) << 8 | mode as u64;
        let key = self.known.key_within(context, callers.as_bytes());
        if let Some(chain) = self.known.find(key) {
            return chain;
        }
        for (mode, address) in callers.calls_from(mode) {
            let place = self.place(FrameKey::new(pid, mode, address));
            self.callers.push(place);
        }
        let chain = number(self.ends.len());
        self.ends.push(self.callers.len());
        self.known.add(key, chain);
        chain
    }

    fn place(&mut self, key: FrameKey) -> u32 {
        let of_process = self.places.entry((key.pid, key.mode)).or_default();
        let next = number(self.keys.len());
        let place = *of_process.entry(key.address).or_insert(next);
        if place == next {
            self.keys.push(key);
        }
        place
    }

    /// Frames of a stack, innermost first.
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = FrameKey> + '_ {
        let stack = self.stacks.get(id.0 as usize).copied();
        let stack = stack.unwrap_or(Stack::EMPTY);
        let callers = self.callers_at(stack.callers()).iter();
        let places = stack.innermost().into_iter();
        let places = places.chain(callers.map(|&place| place as usize));
        places.filter_map(|place| self.keys.get(place).copied())
    }

    fn callers_at(&self, chain: usize) -> &[u32] {
        let start = chain.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.callers[start..self.ends[chain]]
    }

    /// Every address of every stack, once each.
    #[must_use]
    pub fn keys(&self) -> &[FrameKey] {
        &self.keys
    }

    /// Every chain of callers as indices into [`Self::keys`], innermost first. The first is empty.
    pub fn callers(&self) -> impl Iterator<Item = &[u32]> + '_ {
        (0..self.ends.len()).map(|chain| self.callers_at(chain))
    }

    /// The stacks in the order of their numbers.
    #[must_use]
    pub fn stacks(&self) -> &[Stack] {
        &self.stacks
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER};

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn equal_chains_of_one_process_share_a_number_and_others_do_not() {
        let (a, b) = (bytes(&[10, 20]), bytes(&[20, 20]));
        let mut table = StackTable::default();
        let first = table.intern(7, Callchain::from_le_bytes(&a));
        assert_eq!(table.intern(7, Callchain::from_le_bytes(&a)), first);
        assert_ne!(table.intern(8, Callchain::from_le_bytes(&a)), first);
        assert_ne!(table.intern(7, Callchain::from_le_bytes(&b)), first);
        assert_eq!(table.keys().len(), 5);
    }

    #[test]
    fn a_closed_table_keeps_its_stacks_and_takes_new_ones() {
        let chains = [bytes(&[10, 20]), bytes(&[11, 20, 30]), bytes(&[12])];
        let mut table = StackTable::default();
        let intern = |table: &mut StackTable, of: &[u8]| {
            let id = table.intern(7, Callchain::from_le_bytes(of));
            (id, naive(7, Callchain::from_le_bytes(of)))
        };
        let mut known: Vec<_> = chains.iter().map(|of| intern(&mut table, of)).collect();
        let keys = table.keys().to_vec();
        table.close();
        assert_eq!(table.keys(), keys);
        known.extend(chains.iter().map(|of| intern(&mut table, of)));
        for (id, frames) in known {
            assert_eq!(table.frames(id).collect::<Vec<_>>(), frames);
        }
    }

    #[test]
    fn callers_are_named_at_calls_and_interrupts_in_place() {
        let words = [
            PERF_CONTEXT_KERNEL,
            0xffff_ffff_8100_0010,
            0xffff_ffff_8100_0020,
            PERF_CONTEXT_USER,
            0x40_1000,
            0x40_2000,
        ];
        let bytes = bytes(&words);
        let mut table = StackTable::default();
        let id = table.intern(7, Callchain::from_le_bytes(&bytes));
        let addresses: Vec<u64> = table.frames(id).map(|key| key.address).collect();
        assert_eq!(
            addresses,
            [
                0xffff_ffff_8100_0010,
                0xffff_ffff_8100_001f,
                0x40_1000,
                0x40_1fff
            ]
        );
    }

    /// The chain's frames, decoded one by one.
    fn naive(pid: i32, chain: Callchain<'_>) -> Vec<FrameKey> {
        let words: Vec<u64> = chain.words().collect();
        let is_marker = |word: u64| crate::event::mode_named(word, CpuMode::User).is_some();
        let places = (0..words.len()).filter(|&at| !is_marker(words[at]));
        let frames = chain.frames().zip(places).enumerate();
        frames
            .map(|(depth, ((mode, address), at))| {
                let is_exact = depth == 0 || is_marker(words[at - 1]);
                FrameKey::new(pid, mode, address.saturating_sub(u64::from(!is_exact)))
            })
            .collect()
    }

    #[test]
    fn every_stack_has_the_frames_of_its_chain() {
        let mut random = 7_u64;
        let mut below = |limit: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % limit
        };
        let mut table = StackTable::default();
        let mut met = FxHashMap::default();
        for _ in 0..20_000 {
            let mut words = Vec::new();
            for _ in 0..below(9) {
                words.push(match below(8) {
                    0 => PERF_CONTEXT_KERNEL,
                    1 => PERF_CONTEXT_USER,
                    2 => PERF_CONTEXT_USER - 1,
                    _ => below(4),
                });
            }
            let (pid, words) = (if below(2) == 0 { 3 } else { 4 }, bytes(&words));
            let chain = Callchain::from_le_bytes(&words);
            let id = table.intern(pid, chain);
            assert_eq!(table.frames(id).collect::<Vec<_>>(), naive(pid, chain));
            assert_eq!(*met.entry((pid, words.clone())).or_insert(id), id);
        }
        assert!(met.len() > 1000, "{}", met.len());
        let mut keys = table.keys().to_vec();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), table.keys().len());
    }
}
