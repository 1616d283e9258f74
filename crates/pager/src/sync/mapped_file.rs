//! A place in memory that one mapping leaves and another takes, beside faults that began before: what
//! was brought in for one never shows in the other, and no closed file is read.

use super::{AtomicU32, Attempt, Lock, PageLock, State, Word};
use core::sync::atomic::Ordering;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32 as Plain, fence};
use loom::thread;

/// What is mapped: nothing, anonymous memory, or one of two files.
const NOTHING: u32 = 0;
const ANONYMOUS: u32 = 1;
const FILES: [u32; 2] = [2, 3];
/// Set in a region of which nothing more is read.
const RETIRED: u32 = 1 << 8;

struct Model {
    word: AtomicU32,
    sleepers: AtomicU32,
    regions: Lock,
    /// As the list of regions shows it.
    region: Plain,
    /// Whether any file is managed.
    in_use: Plain,
    /// The kernel's view: what is mapped, and from bit 16 on for what the page was filled; 0 there if
    /// it is missing.
    memory: Plain,
    /// The files that are open.
    open: [UnsafeCell<bool>; 2],
}

impl Model {
    fn new(mapped: u32) -> Arc<Self> {
        Arc::new(Self {
            word: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            regions: Lock::new(),
            region: Plain::new(mapped),
            in_use: Plain::new(u32::from(FILES.contains(&mapped))),
            memory: Plain::new(mapped),
            open: FILES.map(|file| UnsafeCell::new(file == mapped)),
        })
    }

    fn lock(&self) -> PageLock<'_> {
        PageLock::new(&self.word, &self.sleepers)
    }

    fn is_open(&self, file: u32) -> bool {
        // SAFETY: loom reports a file that is closed meanwhile.
        self.open[file as usize - 2].with(|open| unsafe { *open })
    }

    fn set_open(&self, file: u32, to: bool) {
        // SAFETY: as above.
        self.open[file as usize - 2].with_mut(|open| unsafe { *open = to });
    }

    /// One attempt at a fault, as `resolve` and `Work::run`.
    fn fault(&self) {
        let seen = self.region.load(Ordering::Acquire);
        if seen == NOTHING {
            return;
        }
        let page = self.lock();
        let word = page.word();
        if word.is_busy()
            || word.state() == State::File
            || page.attempt(word) != Attempt::Locked(word)
        {
            return;
        }
        let asked = seen != ANONYMOUS || self.in_use.load(Ordering::SeqCst) != 0;
        let now = self.region.load(Ordering::SeqCst);
        if asked && (now != seen || now & RETIRED != 0) {
            return page.unlock(word);
        }
        assert!(
            seen == ANONYMOUS || self.is_open(seen),
            "a closed file is read"
        );
        // The kernel fills what is mapped and missing, whatever it is.
        let fill = |now: u32| (now != NOTHING && now >> 16 == 0).then_some(now | seen << 16);
        let filled = self
            .memory
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fill);
        page.unlock(match filled {
            Ok(_) => Word::new(State::File, 0),
            Err(_) => word,
        });
    }

    fn outlast_work(&self) {
        fence(Ordering::SeqCst);
        let page = self.lock();
        let mut word = page.word();
        while word.is_busy() {
            word = page.sleep(word);
        }
    }

    /// As `vacating`.
    fn unmap(&self) {
        let mapped = self.region.load(Ordering::Relaxed);
        if mapped != ANONYMOUS {
            self.region.store(mapped | RETIRED, Ordering::SeqCst);
            self.outlast_work();
        }
        let page = self.lock();
        let has_contents = page.word() != Word::EMPTY;
        if has_contents {
            page.lock();
        }
        self.memory.store(NOTHING, Ordering::SeqCst);
        if has_contents {
            page.unlock(Word::EMPTY);
        }
        self.region.store(NOTHING, Ordering::SeqCst);
        if mapped != ANONYMOUS {
            self.set_open(mapped, false);
            self.in_use.store(0, Ordering::SeqCst);
        }
    }

    /// As `manage_file`.
    fn map(&self, file: u32) {
        self.set_open(file, true);
        self.in_use.store(1, Ordering::SeqCst);
        self.outlast_work();
        // As `empty_leftovers`.
        let page = self.lock();
        page.lock();
        page.unlock(Word::EMPTY);
        self.memory.store(file, Ordering::SeqCst);
        self.region.store(file, Ordering::SeqCst);
    }

    /// Another file takes the place.
    fn replace(&self) {
        let _regions = self.regions.hold();
        self.unmap();
        self.map(FILES[1]);
    }

    /// What the program finds belongs to what is mapped.
    fn check(&self) {
        let memory = self.memory.load(Ordering::SeqCst);
        let (mapped, page) = (memory & 0xffff, memory >> 16);
        assert!(page == 0 || page == mapped, "{page} shows in {mapped}");
        let known = self.lock().word().state() == State::File;
        assert_eq!(mapped != NOTHING && known, page != 0, "the page's word");
    }
}

fn beside(mapped: u32, change: fn(&Model), faults: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(if faults > 1 { 3 } else { 5 });
    builder.check(move || {
        let model = Model::new(mapped);
        let threads: Vec<_> = (0..faults)
            .map(|_| {
                let model = model.clone();
                thread::spawn(move || model.fault())
            })
            .collect();
        change(&model);
        for one in threads {
            one.join().expect("no thread panics");
        }
        model.check();
        assert!(!model.lock().word().is_busy());
    });
}

#[test]
fn what_is_read_of_one_file_never_shows_in_the_next() {
    beside(FILES[0], Model::replace, 1);
    beside(FILES[0], Model::replace, 2);
}

#[test]
fn zeros_of_anonymous_memory_never_show_in_a_file() {
    beside(ANONYMOUS, Model::replace, 1);
    beside(ANONYMOUS, Model::replace, 2);
}

#[test]
fn no_closed_file_is_read() {
    beside(FILES[0], Model::unmap, 1);
    beside(FILES[0], Model::unmap, 2);
}
