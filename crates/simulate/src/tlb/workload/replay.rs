//! Accesses from a trace, repeated.

use super::{Visit, Workload};
use std::sync::Arc;

/// A trace in memory, shared by clones.
#[derive(Clone, Debug)]
pub struct Replay {
    name: String,
    visits: Arc<Vec<Visit>>,
    accesses: u64,
    /// Start and bytes of each piece.
    memory: Arc<Vec<(u64, u64)>>,
    at: usize,
    /// Accesses of the current visit that [`Workload::fill`] has already returned.
    message: u64,
}

impl Replay {
    /// Repeats `visits`; `None` if there are none.
    #[must_use]
    pub fn new(name: &str, visits: Vec<Visit>) -> Option<Self> {
        if visits.is_empty() {
            return None;
        }
        let mut footprint = Footprint::default();
        footprint.add(visits.iter().map(|visit| visit.address()));
        Some(Self {
            name: name.to_owned(),
            accesses: visits.iter().map(|visit| visit.accesses()).sum(),
            memory: Arc::new(footprint.pieces()),
            visits: Arc::new(visits),
            at: 0,
            message: 0,
        })
    }

    /// The repeated visits.
    #[must_use]
    pub fn recorded(&self) -> &[Visit] {
        &self.visits
    }
}

impl Workload for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn round(&self) -> Option<u64> {
        Some(self.accesses)
    }

    fn memory(&self) -> Vec<(u64, u64)> {
        self.memory.to_vec()
    }

    fn fill(&mut self, out: &mut [u64]) {
        for address in out {
            let visit = self.visits[self.at];
            *address = visit.address();
            self.message += 1;
            if self.message == visit.accesses() {
                self.message = 0;
                self.at = (self.at + 1) % self.visits.len();
            }
        }
    }

    /// Starts with the next whole visit.
    fn visits(&mut self, mut out: &mut [Visit]) {
        self.message = 0;
        while !out.is_empty() {
            let rest = &self.visits[self.at..];
            let now = rest.len().min(out.len());
            let (head, tail) = out.split_at_mut(now);
            head.copy_from_slice(&rest[..now]);
            out = tail;
            self.at = (self.at + now) % self.visits.len();
        }
    }
}

/// The memory that contains the addresses, in pieces of 64 KiB.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    pieces: rustc_hash::FxHashSet<u64>,
}

const PIECE: u32 = 16;

impl Footprint {
    /// Adds addresses.
    pub fn add(&mut self, addresses: impl IntoIterator<Item = u64>) {
        // Most pieces were seen a moment ago.
        let mut recent = [u64::MAX; 64];
        for address in addresses {
            let piece = address >> PIECE;
            let place = &mut recent[piece as usize % 64];
            if *place != piece {
                self.pieces.insert(piece);
                *place = piece;
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
