//! When threads began and ended, according to the events of a recording.

use pagewise_model::units::Nanos;
use rustc_hash::FxHashMap;

/// Threads that are kept, 40 bytes each.
const MOST: usize = 1_000_000;

/// Births and deaths of threads, by process and thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives(FxHashMap<(i32, i32), Life>);

/// The last thread with these ids, which are reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Life {
    /// `None` if it began before the recording.
    pub(crate) began: Option<Nanos>,
    /// `None` if it was still running at the end.
    pub(crate) ended: Option<Nanos>,
}

impl Lives {
    pub(crate) fn begin(&mut self, pid: i32, tid: i32, time: Nanos) {
        if self.0.len() < MOST {
            let life = Life {
                began: Some(time),
                ended: None,
            };
            self.0.insert((pid, tid), life);
        }
    }

    pub(crate) fn end(&mut self, pid: i32, tid: i32, time: Nanos) {
        if self.0.len() < MOST || self.0.contains_key(&(pid, tid)) {
            self.0.entry((pid, tid)).or_default().ended = Some(time);
        }
    }

    /// What is known of a thread.
    pub(crate) fn get(&self, pid: i32, tid: i32) -> Life {
        self.0.get(&(pid, tid)).copied().unwrap_or_default()
    }

    /// Threads that ended, with their lifetimes if their begin is known too.
    pub(crate) fn ended(&self) -> impl Iterator<Item = ((i32, i32), Option<Nanos>)> + '_ {
        let all = self.0.iter();
        all.filter_map(|(&key, life)| {
            let ended = life.ended?;
            Some((key, life.began.map(|began| ended - began)))
        })
    }
}
