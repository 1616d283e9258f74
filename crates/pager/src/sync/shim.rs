//! Atomics, and sleeping on one until it changes.

#[cfg(not(loom))]
pub use crate::sys::{futex_wait, futex_wake};
#[cfg(not(loom))]
pub use core::sync::atomic::AtomicU32;
#[cfg(loom)]
pub use modelled::{AtomicU32, futex_wait, futex_wake};

/// The same for loom.
#[cfg(loom)]
#[allow(missing_docs, reason = "as in the standard library")]
mod modelled {
    use core::sync::atomic::Ordering;
    use loom::sync::atomic::{self, fence};
    use loom::sync::{Arc, Condvar, Mutex};

    /// loom treats sequentially consistent accesses only as acquire and release, and would report
    /// wake-ups as lost that are not. It does support sequentially consistent fences: one on either
    /// side corresponds to the locked instructions of x86-64, the only architecture of the pager.
    #[derive(Debug, Default)]
    pub struct AtomicU32(atomic::AtomicU32);

    fn fenced<T>(order: Ordering, access: impl FnOnce() -> T) -> T {
        let total = order == Ordering::SeqCst;
        if total {
            fence(Ordering::SeqCst);
        }
        let answer = access();
        if total {
            fence(Ordering::SeqCst);
        }
        answer
    }

    impl AtomicU32 {
        pub fn new(value: u32) -> Self {
            Self(atomic::AtomicU32::new(value))
        }

        pub fn load(&self, order: Ordering) -> u32 {
            match order {
                Ordering::SeqCst => fenced(order, || self.0.load(Ordering::Acquire)),
                _ => self.0.load(order),
            }
        }

        pub fn store(&self, value: u32, order: Ordering) {
            match order {
                Ordering::SeqCst => fenced(order, || self.0.store(value, Ordering::Release)),
                _ => self.0.store(value, order),
            }
        }

        pub fn swap(&self, value: u32, order: Ordering) -> u32 {
            fenced(order, || self.0.swap(value, order))
        }

        pub fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
            fenced(order, || self.0.fetch_add(value, order))
        }

        pub fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
            fenced(order, || self.0.fetch_sub(value, order))
        }

        pub fn compare_exchange(
            &self,
            from: u32,
            to: u32,
            well: Ordering,
            ill: Ordering,
        ) -> Result<u32, u32> {
            fenced(well, || self.0.compare_exchange(from, to, well, ill))
        }
    }

    type Sleepers = Vec<(usize, Arc<Condvar>)>;

    loom::lazy_static! {
        static ref SLEEPERS: Mutex<Sleepers> = Mutex::new(Vec::new());
    }

    fn condition(sleepers: &mut Sleepers, word: &AtomicU32) -> Arc<Condvar> {
        let address = core::ptr::from_ref(word) as usize;
        if let Some((_, there)) = sleepers.iter().find(|(at, _)| *at == address) {
            return there.clone();
        }
        let new = Arc::new(Condvar::new());
        sleepers.push((address, new.clone()));
        new
    }

    /// Like the kernel: checks the value and falls asleep in one step. Time never passes, so a
    /// timeout does not help.
    pub fn futex_wait(word: &AtomicU32, value: u32, _timeout_ns: Option<u64>) {
        let mut sleepers = SLEEPERS.lock().expect("no thread panics");
        if word.load(Ordering::SeqCst) != value {
            return;
        }
        let condition = condition(&mut sleepers, word);
        drop(condition.wait(sleepers).expect("no thread panics"));
    }

    pub fn futex_wake(word: &AtomicU32, count: i32) {
        let mut sleepers = SLEEPERS.lock().expect("no thread panics");
        let condition = condition(&mut sleepers, word);
        match count {
            1 => condition.notify_one(),
            _ => condition.notify_all(),
        }
    }
}
