//! The observed threads, as their own records tell of them.

use super::record_bytes::{kind, misc, word32};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// `PERF_RECORD_MISC_COMM_EXEC`: the new name results from an exec.
pub(super) const MISC_COMM_EXEC: u16 = 1 << 13;

/// Threads that were born and have not been seen to end, and those that ended a moment ago.
#[derive(Debug, Default)]
pub(super) struct Kin {
    /// Those that live.
    pub alive: BTreeSet<i32>,
    /// Threads that ended in this round of emptying rings and in the one before.
    ended: [FxHashSet<i32>; 2],
}

impl Kin {
    /// Whether a thread is observed, or was until a moment ago.
    pub fn knows(&self, tid: i32) -> bool {
        self.alive.contains(&tid) || self.ended.iter().any(|ended| ended.contains(&tid))
    }

    /// A round of emptying the rings is over.
    pub fn end_round(&mut self) {
        self.ended.swap(0, 1);
        self.ended[0].clear();
    }

    /// Learns from a record of theirs who is born and who ends.
    pub fn follow(&mut self, record: &[u8]) {
        match word32(record, 0) {
            // A thread that calls exec takes over the identity of its process's first thread, whose
            // end was reported before.
            kind::COMM if misc(record) & MISC_COMM_EXEC != 0 => {
                self.alive.insert(word32(record, 12).cast_signed());
            }
            kind::FORK => {
                self.alive.insert(word32(record, 16).cast_signed());
            }
            kind::EXIT => {
                let tid = word32(record, 16).cast_signed();
                self.alive.remove(&tid);
                self.ended[0].insert(tid);
            }
            _ => {}
        }
    }
}
