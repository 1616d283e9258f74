//! Call stacks, interned: a stack is stored once, samples refer to it by number.

use crate::event::{Callchain, CpuMode};
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::hash::BuildHasher;

/// Number of an interned stack in its [`StackTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StackId(pub u32);

/// An address of one process's code at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameKey {
    /// Process whose address space the address belongs to; -1 for the kernel.
    pub pid: i32,
    /// Mode that the address executed in.
    pub mode: CpuMode,
    /// The address.
    pub address: u64,
}

/// Interned stacks of raw addresses, innermost frame first. Interning a known stack allocates
/// nothing, so it may be done per event.
#[derive(Clone, Debug, Default)]
pub struct StackTable {
    by_hash: FxHashMap<u64, SmallVec<[StackId; 1]>>,
    stacks: Vec<(i32, Box<[u8]>)>,
}

impl StackTable {
    /// The number of this chain of this process; equal chains get equal numbers.
    pub fn intern(&mut self, pid: i32, chain: Callchain<'_>) -> StackId {
        let bytes = chain.as_bytes();
        let same_hash = self.by_hash.entry(hash_of(pid, bytes)).or_default();
        for &id in same_hash.iter() {
            let (known_pid, known) = &self.stacks[id.0 as usize];
            if *known_pid == pid && **known == *bytes {
                return id;
            }
        }
        let id = StackId(u32::try_from(self.stacks.len()).unwrap_or(u32::MAX));
        same_hash.push(id);
        self.stacks.push((pid, Box::from(bytes)));
        id
    }

    /// How many unique stacks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Frames of a stack, innermost first.
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = FrameKey> + '_ {
        let stack = self.stacks.get(id.0 as usize);
        let pid = stack.map_or(-1, |stack| stack.0);
        let chain = Callchain::from_le_bytes(stack.map_or(&[][..], |stack| &stack.1));
        chain.frames().map(move |(mode, address)| FrameKey {
            pid: if mode == CpuMode::Kernel { -1 } else { pid },
            mode,
            address,
        })
    }

    /// All stacks with their process.
    pub fn iter(&self) -> impl Iterator<Item = (StackId, i32)> + '_ {
        (0_u32..)
            .zip(&self.stacks)
            .map(|(id, (pid, _))| (StackId(id), *pid))
    }
}

fn hash_of(pid: i32, chain: &[u8]) -> u64 {
    FxBuildHasher.hash_one((pid, chain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_chains_of_one_process_share_a_number_and_others_do_not() {
        let (a, b) = ([1_u8; 16], [2_u8; 16]);
        let mut table = StackTable::default();
        let first = table.intern(7, Callchain::from_le_bytes(&a));
        assert_eq!(table.intern(7, Callchain::from_le_bytes(&a)), first);
        assert_ne!(table.intern(8, Callchain::from_le_bytes(&a)), first);
        assert_ne!(table.intern(7, Callchain::from_le_bytes(&b)), first);
        assert_eq!(table.len(), 3);
    }
}
