//! The pager's own threads, as far as the core is concerned: they are started once in a process, by
//! functions that the layer above has supplied ([`Above`]). The core does not refer to the layer
//! above.

use super::{PAGER, Pager, discard, fatal};
use crate::sync::Lock;
use crate::sys::{signals, thread};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// What the core requests from the layer above. The functions run inside `malloc` and in the child
/// of a fork: they allocate nothing, take no lock and use no thread-local storage.
#[derive(Debug)]
pub struct Above {
    /// Starts all threads; otherwise says which did not start.
    pub start: fn(&'static Pager) -> Result<(), &'static str>,
    /// Starts the threads for the child of a fork until its first fault. Returns whether they run.
    pub start_first: fn(&'static Pager) -> bool,
    /// Starts the thread that is told when somebody is to change a mapped file. Returns whether it
    /// runs.
    pub start_watcher: fn(&'static Pager) -> bool,
    /// In the child of a fork: records that there are no threads.
    pub forget: fn(),
}

/// Whether the threads run.
#[derive(Debug)]
pub struct OwnThreads {
    above: AtomicPtr<Above>,
    running: AtomicBool,
    /// They were to be started, but that failed.
    failed: AtomicBool,
    /// Held while they start, and during forks.
    pub(super) starting: Lock,
}

impl OwnThreads {
    /// No threads.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            above: AtomicPtr::new(core::ptr::null_mut()),
            running: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            starting: Lock::new(),
        }
    }

    /// Sets the functions of the layer above, once, before the pager starts.
    pub fn answer_to(&self, above: &'static Above) {
        let above = core::ptr::from_ref(above).cast_mut();
        self.above.store(above, Ordering::Release);
    }

    fn above(&self) -> Option<&'static Above> {
        // SAFETY: published: null, or the argument of `answer_to`, which lives forever.
        unsafe { self.above.load(Ordering::Acquire).as_ref() }
    }

    /// Whether they run, or are about to.
    #[must_use]
    pub fn are_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    /// Starts the threads for the child of a fork until its first fault. Returns whether they run.
    pub(super) fn start_first(&self, pager: &'static Pager) -> bool {
        self.above().is_some_and(|above| (above.start_first)(pager))
    }

    /// Starts the thread that watches mapped files. Returns whether it runs.
    pub(super) fn start_watcher(&self, pager: &'static Pager) -> bool {
        self.above()
            .is_some_and(|above| (above.start_watcher)(pager))
    }

    /// The child of a fork has none.
    pub(super) fn forked(&self) {
        self.running.store(false, Ordering::Release);
        self.failed.store(false, Ordering::Relaxed);
        if let Some(above) = self.above() {
            (above.forget)();
        }
    }
}

impl Default for OwnThreads {
    fn default() -> Self {
        Self::new()
    }
}

impl Pager {
    /// Starts them and opens what they need, once in a process. Returns whether that succeeded.
    /// Allocates nothing, so that it may be called inside `malloc`.
    pub fn start_own_threads(&'static self) -> bool {
        let threads = &self.own_threads;
        if threads.are_running() {
            return !threads.failed.load(Ordering::Relaxed);
        }
        let _starting = threads.starting.hold();
        if threads.running.swap(true, Ordering::AcqRel) {
            return !threads.failed.load(Ordering::Relaxed);
        }
        let started = self.start_all();
        if let Err(what) = started {
            threads.failed.store(true, Ordering::Relaxed);
            fatal::say(format_args!(
                "no {what} for this process (errno {}): its memory is not managed",
                self.refused_with()
            ));
        }
        started.is_ok()
    }

    /// Otherwise says what there is none of.
    fn start_all(&'static self) -> Result<(), &'static str> {
        if !self.renew_uffds() {
            return Err("userfaultfd");
        }
        if !self.open_tray() {
            return Err("userfaultfd of the tray");
        }
        discard::prepare(self);
        self.store().prepare();
        self.tell_of_rings();
        match self.own_threads.above() {
            Some(above) => (above.start)(self),
            None => Err("threads"),
        }
    }

    /// What the kernel last refused a userfaultfd or a thread with; 0 if it did not.
    fn refused_with(&self) -> i32 {
        match thread::refused_with() {
            0 => self.uffd_refused_with(),
            errno => errno,
        }
    }

    /// Before a fault is resolved: in the child of a fork it may be the first fault.
    #[inline]
    pub fn ensure_own_threads(&self) {
        if !self.own_threads.are_running() && !PAGER.start_own_threads() {
            fatal::say(format_args!(
                "the child of a fork gets no threads to manage its memory; it ends with SIGBUS"
            ));
            signals::die_by(libc::SIGBUS);
        }
    }
}
