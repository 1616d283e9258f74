//! Call stacks, interned: a stack is stored once, samples refer to it by number.

use crate::event::{Callchain, CpuMode};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

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

/// Interned stacks of raw addresses, innermost frame first.
#[derive(Clone, Debug, Default)]
pub struct StackTable {
    by_key: FxHashMap<(i32, Box<[u8]>), StackId>,
    stacks: Vec<(i32, Box<[u8]>)>,
}

impl StackTable {
    /// The number of this chain of this process; equal chains get equal numbers.
    ///
    /// # Panics
    /// Never in practice: 2^32 unique stacks do not fit in memory.
    pub fn intern(&mut self, pid: i32, chain: Callchain<'_>) -> StackId {
        let key = (pid, Box::from(chain.as_bytes()));
        if let Some(&id) = self.by_key.get(&key) {
            return id;
        }
        let id = StackId(u32::try_from(self.stacks.len()).unwrap_or(u32::MAX));
        self.stacks.push(key.clone());
        self.by_key.insert(key, id);
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
