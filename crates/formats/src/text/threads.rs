//! Threads that take blocks in turn.

use super::{Block, Source};
use std::io;
use std::sync::Mutex;

/// A text whose blocks are taken by several threads.
pub(crate) struct Shared<S>(Mutex<S>);

impl<S: Source> Shared<S> {
    pub fn new(source: S) -> Self {
        Self(Mutex::new(source))
    }

    /// The next block. `None` once a thread has panicked, so that the others stop, too.
    pub fn next<'s>(&self, space: &'s mut Vec<u8>) -> io::Result<Option<(Block, &'s [u8])>>
    where
        S: 's,
    {
        match self.0.lock() {
            Ok(mut source) => source.next(space),
            Err(_) => Ok(None),
        }
    }
}

/// The results of `work` on each of this many threads.
pub(crate) fn on_threads<T: Send>(
    threads: usize,
    work: impl Fn() -> io::Result<T> + Sync,
) -> io::Result<Vec<T>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect()
    })
}
