//! How the pager works in this process, as start has found out and the command line wants it.

use super::Pager;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Set by start, and by the child of a fork while it has one thread. Later only capabilities change, and
/// `signals_used`, which stays set.
#[derive(Debug)]
pub struct Choices {
    /// Bits of [`pagewise_wire::shared::capability`].
    pub capabilities: AtomicU64,
    /// How regions' faults are delivered, as [`pagewise_wire::shared::Delivery`] in bits 0 to 7 and
    /// [`pagewise_wire::shared::Why`] above.
    pub delivery: AtomicU32,
    /// Whether any region's faults raise SIGBUS.
    pub signals_used: AtomicBool,
    /// What to do if the store is full: [`pagewise_wire::settings::WhenFull`] as a number.
    pub when_full: AtomicU32,
    /// Whether programs that cannot be managed are refused.
    pub strict: AtomicBool,
}

impl Choices {
    /// As before start.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            capabilities: AtomicU64::new(0),
            delivery: AtomicU32::new(0),
            signals_used: AtomicBool::new(false),
            when_full: AtomicU32::new(0),
            strict: AtomicBool::new(false),
        }
    }
}

impl Default for Choices {
    fn default() -> Self {
        Self::new()
    }
}

impl Pager {
    /// Whether the kernel has the capability.
    #[must_use]
    pub fn can(&self, capability: u64) -> bool {
        self.choices.capabilities.load(Ordering::Relaxed) & capability != 0
    }

    /// The kernel has turned out to have `capability` as well.
    pub fn add_capability(&self, capability: u64) {
        let all = &self.choices.capabilities;
        let before = all.fetch_or(capability, Ordering::Relaxed);
        self.counters
            .set(|all| &all.capabilities, before | capability);
    }
}
