//! Spans of pages to be read before they are missed: policies and hints request them, and
//! read-ahead threads take them.

use super::scratch::BUFFER_PAGES;
use crate::sync::{AtomicU32, Lock};
use crate::sys;
use core::sync::atomic::{AtomicU64, Ordering};
use pagewise_policy::Span;

/// Largest number of waiting spans. More are not worth reading: they would arrive too late.
const PLACES: usize = 512;

/// The queue.
#[derive(Debug)]
pub struct Ahead {
    /// First page and count of each span, 0 for none.
    queue: [AtomicU64; PLACES],
    head: AtomicU32,
    tail: AtomicU32,
    taking: Lock,
    /// Whether the thread that holds `taking` sleeps until something is requested.
    asleep: AtomicU32,
}

impl Ahead {
    /// Nothing is wanted.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            queue: [const { AtomicU64::new(0) }; PLACES],
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            taking: Lock::new(),
            asleep: AtomicU32::new(0),
        }
    }

    /// Requests `span`, in pieces that are each read at once, so that several threads share the
    /// work; dropped if too much is already waiting.
    pub fn push(&self, span: Span) {
        let most = BUFFER_PAGES as u32;
        let pieces = (span.first..span.end()).step_by(BUFFER_PAGES);
        for first in pieces {
            let count = most.min(span.end() - first);
            if !self.push_piece(Span { first, count }) {
                return;
            }
        }
    }

    fn push_piece(&self, span: Span) -> bool {
        let value = u64::from(span.first) << 32 | u64::from(span.count);
        loop {
            let head = self.head.load(Ordering::Relaxed);
            let tail = self.tail.load(Ordering::Relaxed);
            if head.wrapping_sub(tail) as usize >= PLACES {
                return false;
            }
            let next = head.wrapping_add(1);
            let won = self
                .head
                .compare_exchange(head, next, Ordering::SeqCst, Ordering::Relaxed);
            if won.is_ok() {
                self.queue[head as usize % PLACES].store(value, Ordering::Release);
                if self.asleep.load(Ordering::SeqCst) != 0 {
                    sys::futex_wake(&self.head, 1);
                }
                return true;
            }
        }
    }

    /// Waits for a span.
    pub fn take(&self) -> Span {
        let _taking = self.taking.hold();
        loop {
            let tail = self.tail.load(Ordering::Relaxed);
            let head = self.head.load(Ordering::SeqCst);
            if head == tail {
                self.asleep.store(1, Ordering::SeqCst);
                if self.head.load(Ordering::SeqCst) == head {
                    sys::futex_wait(&self.head, head, None);
                }
                self.asleep.store(0, Ordering::SeqCst);
                continue;
            }
            // There are a few instructions of the requesting thread between the count and the
            // value.
            let value = self.queue[tail as usize % PLACES].swap(0, Ordering::Acquire);
            if value == 0 {
                core::hint::spin_loop();
                continue;
            }
            self.tail.store(tail.wrapping_add(1), Ordering::Release);
            return Span {
                first: (value >> 32) as u32,
                count: value as u32,
            };
        }
    }

    /// In the child of a fork nothing waits.
    pub fn forked(&self) {
        self.tail
            .store(self.head.load(Ordering::Relaxed), Ordering::Relaxed);
        for place in &self.queue {
            place.store(0, Ordering::Relaxed);
        }
        self.taking.reset();
        self.asleep.store(0, Ordering::Relaxed);
    }
}

impl Default for Ahead {
    fn default() -> Self {
        Self::new()
    }
}
