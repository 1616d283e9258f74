//! The cost of the first touch of fresh memory on this machine, with base and with huge pages: most
//! of the cost of page faults in a program that keeps its memory, and what huge pages save of it.

use super::map::PageSizes;
use crate::sys::anonymous::{Anonymous, Pages};
use crate::sys::machine::thread_cpu_time;
use pagewise_model::recording::FirstTouch;
use std::io;

/// Huge pages touched in a round.
const SLOTS: usize = 4;
/// Rounds, in which the two sizes alternate; the first is a warm-up.
const ROUNDS: usize = 13;

/// Touches 8 MiB (on x86-64) several times with either size. Takes some 50 ms.
///
/// # Errors
/// If memory cannot be allocated, or the kernel has no huge pages.
pub fn measure(sizes: PageSizes) -> io::Result<FirstTouch> {
    let mut found = FirstTouch::default();
    for round in 0..ROUNDS {
        let base = touch(sizes, Pages::Base)?;
        let huge = touch(sizes, Pages::Huge)?;
        if round > 0 {
            found.base.push(base);
            found.huge.push(huge);
        }
    }
    Ok(found)
}

/// The same with whatever page size faults give to `pages`: intermediate sizes, if the machine's
/// settings allow them.
///
/// # Errors
/// If memory cannot be allocated.
pub fn touch(sizes: PageSizes, pages: Pages) -> io::Result<f64> {
    let length = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let (huge, base) = (length(sizes.huge.0), length(sizes.base.0));
    let mut memory = Anonymous::map(SLOTS * huge, huge, pages)?;
    let step = base / 8;
    let began = thread_cpu_time();
    for word in memory.words_mut().iter_mut().step_by(step) {
        *word = 1;
    }
    let took = thread_cpu_time() - began;
    Ok(took.0 as f64 / (SLOTS * huge / base) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn both_sizes_cost_something_and_all_pages_were_touched() {
        let sizes = match PageSizes::read(Path::new("/sys")) {
            Ok(sizes) => sizes,
            Err(error) => return skipped!("{error}"),
        };
        let found = measure(sizes).unwrap();
        assert_eq!((found.base.len(), found.huge.len()), (12, 12));
        // Zeroing 4 KiB takes at least this long on any machine.
        let all = found.base.iter().chain(&found.huge);
        assert!(all.clone().all(|&ns| ns > 5.0), "{found:?}");
    }
}
