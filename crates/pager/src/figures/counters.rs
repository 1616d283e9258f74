//! Counters, in the run's shared memory if there is one.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use pagewise_wire::shared::Process;

/// Where the counters are.
#[derive(Debug)]
pub struct Counters {
    place: AtomicPtr<Process>,
}

impl Counters {
    /// No place yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            place: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Counts at `place` from now on.
    pub fn use_place(&self, place: &'static Process) {
        let place = core::ptr::from_ref(place).cast_mut();
        self.place.store(place, Ordering::Release);
    }

    /// The counters, once there are any.
    #[must_use]
    pub fn place(&self) -> Option<&'static Process> {
        // SAFETY: published: `use_place` stored a reference that lives forever; null until then.
        unsafe { self.place.load(Ordering::Acquire).as_ref() }
    }

    /// Adds `amount` to the counter selected by `which`.
    pub fn add(&self, which: impl FnOnce(&Process) -> &AtomicU64, amount: u64) {
        if let Some(place) = self.place() {
            which(place).fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// Sets the gauge selected by `which`.
    pub fn set(&self, which: impl FnOnce(&Process) -> &AtomicU64, value: u64) {
        if let Some(place) = self.place() {
            which(place).store(value, Ordering::Relaxed);
        }
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}
