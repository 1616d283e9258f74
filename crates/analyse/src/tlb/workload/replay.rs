//! Accesses out of a trace, over and over.

use super::Workload;
use std::sync::Arc;

/// A trace held in memory.
pub struct Replay {
    name: String,
    addresses: Arc<[u64]>,
    at: usize,
}

impl Replay {
    /// Repeats `addresses`; `None` where there are none.
    #[must_use]
    pub fn new(name: &str, addresses: impl Into<Arc<[u64]>>) -> Option<Self> {
        let addresses = addresses.into();
        (!addresses.is_empty()).then(|| Self {
            name: name.to_owned(),
            addresses,
            at: 0,
        })
    }

    /// Accesses in one round.
    #[must_use]
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether the trace is empty, which [`Replay::new`] rules out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }
}

impl Workload for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn round(&self) -> Option<u64> {
        Some(self.addresses.len() as u64)
    }

    fn memory(&self) -> Vec<(u64, u64)> {
        let mut footprint = Footprint::default();
        footprint.add(&self.addresses);
        footprint.pieces()
    }

    fn fill(&mut self, mut out: &mut [u64]) {
        while !out.is_empty() {
            let rest = &self.addresses[self.at..];
            let now = rest.len().min(out.len());
            let (head, tail) = out.split_at_mut(now);
            head.copy_from_slice(&rest[..now]);
            out = tail;
            self.at = (self.at + now) % self.addresses.len();
        }
    }
}

/// Which memory addresses lie in, in pieces of 64 KiB.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    pieces: rustc_hash::FxHashSet<u64>,
}

const PIECE: u32 = 16;

impl Footprint {
    /// Adds addresses.
    pub fn add(&mut self, addresses: &[u64]) {
        let mut last = u64::MAX;
        for &address in addresses {
            let piece = address >> PIECE;
            if piece != last {
                self.pieces.insert(piece);
                last = piece;
            }
        }
    }

    /// Start and bytes of each contiguous stretch, in order.
    #[must_use]
    pub fn pieces(&self) -> Vec<(u64, u64)> {
        let mut sorted: Vec<u64> = self.pieces.iter().copied().collect();
        sorted.sort_unstable();
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        for piece in sorted {
            let start = piece << PIECE;
            match stretches.last_mut() {
                Some((from, bytes)) if *from + *bytes == start => *bytes += 1 << PIECE,
                _ => stretches.push((start, 1 << PIECE)),
            }
        }
        stretches
    }
}
