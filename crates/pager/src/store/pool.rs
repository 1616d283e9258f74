//! Memory for compressed pages, without an allocator below it.
//!
//! The pool is divided into spans of 64 KiB; a span contains objects of one size class (multiples
//! of 64 bytes), and is returned to the kernel when its last object is freed. An object's offset in
//! the pool, in units of 64 bytes, is its number, so no table is needed between the two.
//!
//! The pool is private memory: a fork copies it with its contents, and each process frees its own
//! copy.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use crate::sync::Lock;
use crate::sys;

/// Size classes are multiples of this many bytes.
pub const GRAIN: usize = 64;
/// Bytes of an object's head.
pub const HEAD: usize = 12;
/// Largest object: an unpacked page, with its head.
pub const MAX_OBJECT: usize = 4160;
const CLASSES: usize = MAX_OBJECT / GRAIN;
const SPAN: usize = 64 << 10;
const SPAN_GRAINS: u32 = 1024;
const _: () = assert!(SPAN == SPAN_GRAINS as usize * GRAIN);
const BITMAP_WORDS: usize = SPAN / GRAIN / 64;
const NONE: u32 = u32::MAX;

/// One span.
#[derive(Debug)]
#[repr(C)]
struct Span {
    state: UnsafeCell<State>,
    /// Read without a lock by owners of objects of the span: it changes only while there are none.
    class: AtomicU16,
}

/// The state that changes while a span is in use. Belongs to the holder of its class's lock; while
/// the span is free, to the holder of the lock of free spans.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct State {
    taken: [u64; BITMAP_WORDS],
    next: u32,
    previous: u32,
    live: u16,
}

#[derive(Debug)]
struct Class {
    lock: Lock,
    /// First span of the class with room, or [`NONE`].
    roomy: UnsafeCell<u32>,
}

#[derive(Debug, Clone, Copy)]
struct FreeSpans {
    first: u32,
    /// Spans from here on were never used.
    untouched: u32,
}

/// The pool.
#[derive(Debug)]
pub struct Pool {
    memory: *mut u8,
    spans: *mut Span,
    span_count: u32,
    classes: [Class; CLASSES],
    free_lock: Lock,
    free: UnsafeCell<FreeSpans>,
    spans_used: AtomicU64,
    /// Limit on spans in use; spans beyond it remain until they are empty.
    most_spans: AtomicU64,
    objects: AtomicU64,
    /// What they take, in grains.
    live_grains: AtomicU64,
}

// SAFETY: spans and lists are accessed under the locks named at their types; objects are written
// once by the thread that allocated them, before their number is passed on, and then only read.
unsafe impl Sync for Pool {}
// SAFETY: the mappings belong to the process, not to a thread.
unsafe impl Send for Pool {}

impl Pool {
    /// A pool of at most `bytes` (rounded down to spans). `None` if there is no address space.
    #[must_use]
    pub fn new(bytes: u64) -> Option<Self> {
        // Numbers of objects must stay below the bit that distinguishes memory from disk: 8 GiB.
        let limit = (u64::from(crate::store::IN_MEMORY) - 1) * GRAIN as u64;
        let span_count = u32::try_from(bytes.min(limit) / SPAN as u64).ok()?;
        let memory = sys::map(span_count as usize * SPAN)?;
        let spans = sys::map(span_count as usize * size_of::<Span>())?;
        let class = || Class {
            lock: Lock::default(),
            roomy: UnsafeCell::new(NONE),
        };
        Some(Pool {
            memory,
            spans: spans.cast(),
            span_count,
            classes: core::array::from_fn(|_| class()),
            free_lock: Lock::default(),
            free: UnsafeCell::new(FreeSpans {
                first: NONE,
                untouched: 0,
            }),
            spans_used: AtomicU64::new(0),
            most_spans: AtomicU64::new(u64::from(span_count)),
            objects: AtomicU64::new(0),
            live_grains: AtomicU64::new(0),
        })
    }

    /// Limits the pool to `share` of `whole` of its maximum.
    pub fn hold_to(&self, share: u64, whole: u64) {
        let all = u128::from(self.span_count);
        let most = all * u128::from(share.min(whole)) / u128::from(whole.max(1));
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        self.most_spans.store(most, Ordering::Relaxed);
    }

    /// Bytes of spans in use, with their administrative data.
    pub fn bytes_used(&self) -> u64 {
        self.spans_used.load(Ordering::Relaxed) * (SPAN + size_of::<Span>()) as u64
    }

    /// Whether an object will hardly find room: no span is left, and those in use have little.
    pub fn is_full(&self) -> bool {
        let used = self.spans_used.load(Ordering::Relaxed);
        let live = self.live_grains.load(Ordering::Relaxed);
        used >= self.most_spans.load(Ordering::Relaxed)
            && live * 16 >= used * u64::from(SPAN_GRAINS) * 15
    }

    /// Whether it takes more than it may.
    pub fn is_too_large(&self) -> bool {
        self.spans_used.load(Ordering::Relaxed) > self.most_spans.load(Ordering::Relaxed)
    }

    /// Objects in the pool.
    pub fn objects(&self) -> u64 {
        self.objects.load(Ordering::Relaxed)
    }

    /// Stores head and body as one object and returns its number; `None` if there is no room.
    pub fn put(&self, head: [u8; HEAD], body: &[u8]) -> Option<u32> {
        let bytes = head.len() + body.len();
        let class = (bytes - 1) / GRAIN;
        let place = self.allocate(class)?;
        // SAFETY: `place` is a free object of at least `bytes` bytes inside the pool, owned only by
        // this function until its number is returned.
        unsafe {
            let object = self.memory.add(place as usize * GRAIN);
            object.copy_from_nonoverlapping(head.as_ptr(), head.len());
            object
                .add(head.len())
                .copy_from_nonoverlapping(body.as_ptr(), body.len());
        }
        self.objects.fetch_add(1, Ordering::Relaxed);
        let grains = class as u64 + 1;
        self.live_grains.fetch_add(grains, Ordering::Relaxed);
        Some(place)
    }

    /// The bytes of object `number`, up to the end of its class. `None` for an invalid number.
    pub fn get(&self, number: u32) -> Option<&[u8]> {
        let (span, _) = self.span_of(number)?;
        let bytes = (self.class_of(span) + 1) * GRAIN;
        let start = number as usize * GRAIN;
        if start + bytes > self.span_count as usize * SPAN {
            return None;
        }
        // SAFETY: inside the pool; a live object is not written.
        Some(unsafe { core::slice::from_raw_parts(self.memory.add(start), bytes) })
    }

    /// Frees object `number`.
    pub fn free(&self, number: u32) {
        let Some((index, offset)) = self.span_of(number) else {
            return;
        };
        let class_number = self.class_of(index);
        let Some(class) = self.classes.get(class_number) else {
            return;
        };
        let held = class.lock.hold();
        // SAFETY: the class's lock is held, and the reference ends before the lists are changed.
        let state = unsafe { &mut *self.state(index) };
        let object = offset / (class_number + 1);
        let Some(word) = state.taken.get_mut(object / 64) else {
            return;
        };
        if *word >> (object % 64) & 1 == 0 {
            return;
        }
        *word &= !(1 << (object % 64));
        let was_full = usize::from(state.live) == objects_in_span(class_number);
        state.live -= 1;
        let is_empty = state.live == 0;
        self.objects.fetch_sub(1, Ordering::Relaxed);
        let grains = class_number as u64 + 1;
        self.live_grains.fetch_sub(grains, Ordering::Relaxed);
        if was_full {
            self.link(class, index);
        }
        if is_empty {
            self.unlink(class, index);
            drop(held);
            self.give_back(index);
        }
    }

    /// Takes all locks, before a fork.
    pub fn lock_all(&self) {
        self.classes.iter().for_each(|class| class.lock.acquire());
        self.free_lock.acquire();
    }

    /// Releases all locks.
    pub fn unlock_all(&self) {
        self.free_lock.release();
        self.classes.iter().for_each(|class| class.lock.release());
    }

    /// Span of an object, and the object's offset in it in grains.
    fn span_of(&self, number: u32) -> Option<(u32, usize)> {
        let span = number / SPAN_GRAINS;
        (span < self.span_count).then_some((span, (number % SPAN_GRAINS) as usize))
    }

    fn span(&self, index: u32) -> &Span {
        // SAFETY: callers get `index` from `span_of` or from the lists, so it is below
        // `span_count`; the table is mapped for as long as the pool, and zeros are a valid span.
        unsafe { &*self.spans.add(index as usize) }
    }

    fn class_of(&self, index: u32) -> usize {
        usize::from(self.span(index).class.load(Ordering::Relaxed))
    }

    fn state(&self, index: u32) -> *mut State {
        self.span(index).state.get()
    }

    fn allocate(&self, class_number: usize) -> Option<u32> {
        let class = self.classes.get(class_number)?;
        let _held = class.lock.hold();
        // SAFETY: the class's lock is held.
        let mut index = unsafe { *class.roomy.get() };
        if index == NONE {
            index = self.fresh_span(class_number)?;
            self.link(class, index);
        }
        // SAFETY: the class's lock is held, and the span is of this class.
        let state = unsafe { &mut *self.state(index) };
        let objects = objects_in_span(class_number);
        let (number, word) = state
            .taken
            .iter_mut()
            .enumerate()
            .find(|(_, word)| **word != u64::MAX)?;
        let bit = word.trailing_ones() as usize;
        let object = number * 64 + bit;
        *word |= 1 << bit;
        state.live += 1;
        if usize::from(state.live) == objects {
            self.unlink(class, index);
        }
        let grain = object * (class_number + 1);
        Some(index * SPAN_GRAINS + u32::try_from(grain).ok()?)
    }

    /// A span for `class`, with the bits of objects that would not fit set.
    fn fresh_span(&self, class: usize) -> Option<u32> {
        let _held = self.free_lock.hold();
        if self.spans_used.load(Ordering::Relaxed) >= self.most_spans.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: the lock of free spans is held.
        let free = unsafe { &mut *self.free.get() };
        let index = if free.first != NONE {
            let index = free.first;
            // SAFETY: a free span belongs to the holder of this lock.
            free.first = unsafe { (*self.state(index)).next };
            index
        } else if free.untouched < self.span_count {
            free.untouched += 1;
            free.untouched - 1
        } else {
            return None;
        };
        self.spans_used.fetch_add(1, Ordering::Relaxed);
        let mut taken = [u64::MAX; BITMAP_WORDS];
        (0..objects_in_span(class)).for_each(|bit| taken[bit / 64] &= !(1 << (bit % 64)));
        let class = u16::try_from(class).ok()?;
        self.span(index).class.store(class, Ordering::Relaxed);
        // SAFETY: the span was free and now belongs to nothing else.
        unsafe {
            self.state(index).write(State {
                taken,
                next: NONE,
                previous: NONE,
                live: 0,
            });
        }
        Some(index)
    }

    fn give_back(&self, index: u32) {
        let start = self.memory as u64 + u64::from(index) * SPAN as u64;
        // SAFETY: no object in the span is in use.
        unsafe { sys::advise(start, start + SPAN as u64, libc::MADV_DONTNEED) };
        let _held = self.free_lock.hold();
        // SAFETY: the lock of free spans is held, and the span is free.
        unsafe {
            let free = &mut *self.free.get();
            (*self.state(index)).next = free.first;
            free.first = index;
        }
        self.spans_used.fetch_sub(1, Ordering::Relaxed);
    }

    /// Puts a span first in the list of those with room. The class's lock is held.
    fn link(&self, class: &Class, index: u32) {
        // SAFETY: the caller holds the class's lock; list members are spans of this class.
        unsafe {
            let first = &mut *class.roomy.get();
            let state = self.state(index);
            (*state).next = *first;
            (*state).previous = NONE;
            if *first != NONE {
                (*self.state(*first)).previous = index;
            }
            *first = index;
        }
    }

    /// Removes a span from the list of those with room. The class's lock is held.
    fn unlink(&self, class: &Class, index: u32) {
        // SAFETY: the caller holds the class's lock; list members are spans of this class.
        unsafe {
            let State { next, previous, .. } = *self.state(index);
            if next != NONE {
                (*self.state(next)).previous = previous;
            }
            if previous == NONE {
                *class.roomy.get() = next;
            } else {
                (*self.state(previous)).next = next;
            }
        }
    }
}

const fn objects_in_span(class: usize) -> usize {
    SPAN / ((class + 1) * GRAIN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn objects_keep_their_bytes(steps in prop::collection::vec((any::<u16>(), 1usize..3000), 1..if cfg!(miri) { 60 } else { 600 })) {
            let pool = Pool::new(1 << 20).expect("address space");
            let mut live: Vec<(u32, Vec<u8>)> = Vec::new();
            for (random, length) in steps {
                if random % 3 == 0 && !live.is_empty() {
                    let (number, body) = live.swap_remove(usize::from(random) % live.len());
                    prop_assert_eq!(&pool.get(number).expect("alive")[HEAD..HEAD + body.len()], &body[..]);
                    pool.free(number);
                } else {
                    let body = vec![random.to_le_bytes()[0]; length];
                    if let Some(number) = pool.put([1; HEAD], &body) {
                        live.push((number, body));
                    }
                }
                prop_assert_eq!(pool.objects(), live.len() as u64);
                prop_assert!(pool.bytes_used() <= 1 << 21);
            }
            for (number, body) in live.drain(..) {
                prop_assert_eq!(&pool.get(number).expect("alive")[HEAD..HEAD + body.len()], &body[..]);
                pool.free(number);
            }
            prop_assert_eq!(pool.bytes_used(), 0);
        }
    }

    #[test]
    fn threads_share_the_pool() {
        let pool = Pool::new(16 << 20).expect("address space");
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..if cfg!(miri) { 3 } else { 200 } {
                        let length = 100 + round * 13 % 2800;
                        let numbers: Vec<u32> = (0..20)
                            .map(|_| {
                                pool.put([thread; HEAD], &vec![thread; length])
                                    .expect("room")
                            })
                            .collect();
                        for number in numbers {
                            let bytes = &pool.get(number).expect("alive")[..length + HEAD];
                            assert!(bytes.iter().all(|byte| *byte == thread));
                            pool.free(number);
                        }
                    }
                });
            }
        });
        assert_eq!(pool.bytes_used(), 0);
    }

    #[test]
    fn a_full_pool_says_so() {
        let pool = Pool::new(128 << 10).expect("address space");
        let taken = core::iter::from_fn(|| pool.put([0; HEAD], &[1; 3000])).count();
        assert_eq!(taken, 2 * (SPAN / 3072));
        assert!(pool.put([0; HEAD], &[1; 10]).is_none());
    }

    #[test]
    fn a_pool_that_is_held_to_a_part_takes_no_more_than_that() {
        let pool = Pool::new(256 << 10).expect("address space");
        let fill = || core::iter::from_fn(|| pool.put([0; HEAD], &[1; 3000])).count();
        pool.hold_to(1, 2);
        assert_eq!(fill(), 2 * (SPAN / 3072));
        pool.hold_to(1, 4);
        assert_eq!(fill(), 0, "what is there stays");
        pool.hold_to(7, 7);
        assert_eq!(fill(), 2 * (SPAN / 3072));
    }
}
