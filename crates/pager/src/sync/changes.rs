//! Changes of mappings, and work that relies on none being under way.

use super::Gate;
use super::shim::AtomicU32;
use core::sync::atomic::Ordering;

/// Who changes mappings enters; work between two changes runs while nobody is inside.
///
/// Who enters counts itself, and checks the gate afterwards; the worker closes the gate, and checks
/// the count afterwards. One of the two sees the other. The worker never waits, so that a handler
/// of a signal may enter while its thread is inside.
#[derive(Debug)]
pub struct Changes {
    under_way: AtomicU32,
    gate: Gate,
}

/// A change that is under way, until it is dropped.
#[derive(Debug)]
pub struct Change<'a>(&'a Changes);

impl Changes {
    /// None is under way.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            under_way: AtomicU32::new(0),
            gate: Gate::new(),
        }
    }

    /// None is under way.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            under_way: AtomicU32::new(0),
            gate: Gate::new(),
        }
    }

    /// Begins a change. Waits for the end of work that relies on there being none.
    pub fn enter(&self) -> Change<'_> {
        loop {
            self.under_way.fetch_add(1, Ordering::SeqCst);
            if !self.gate.is_closed() {
                return Change(self);
            }
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            self.gate.pass();
        }
    }

    /// Runs `work` while no change is under way; does not if one is. The work waits for nothing,
    /// and one thread at a time calls this.
    pub fn between(&self, work: impl FnOnce()) -> bool {
        self.gate.close();
        let quiet = self.under_way.load(Ordering::SeqCst) == 0;
        if quiet {
            work();
        }
        self.gate.open();
        quiet
    }

    /// In the child of a fork nobody is inside, and nothing relies on that.
    #[cfg(not(loom))]
    pub fn forked(&self) {
        self.under_way.store(0, Ordering::SeqCst);
        self.gate.open();
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn work_waits_for_no_change_and_changes_wait_for_work() {
        let changes = Changes::new();
        let outer = changes.enter();
        let inner = changes.enter();
        assert!(!changes.between(|| unreachable!("a change is under way")));
        drop(inner);
        assert!(!changes.between(|| unreachable!("another one is")));
        drop(outer);
        let mut worked = false;
        assert!(changes.between(|| worked = true) && worked);
        core::mem::forget(changes.enter());
        changes.forked();
        assert!(changes.between(|| {}));
    }
}
