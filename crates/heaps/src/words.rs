//! All words of a part of another process's memory.

use super::Source;
use pagewise_model::memory::{PageState, Presence};

/// Bytes that are read at once: they stay in a core's cache.
const PIECE: usize = 64 << 10;

/// Passes on what is present between two addresses, in pieces with their addresses; pages of files only
/// `with_files`. Returns how many bytes could not be read: those swapped out, and those whose reading
/// failed.
pub fn words(
    source: &dyn Source,
    presence: &Presence,
    (start, end): (u64, u64),
    with_files: bool,
    each: &mut dyn FnMut(u64, &[u8]),
) -> (u64, u64) {
    let mut piece = vec![0; PIECE];
    let (mut swapped, mut failed) = (0, 0);
    for run in presence.within(start, end) {
        if run.state == PageState::Swapped {
            swapped += run.end - run.start;
            continue;
        }
        if run.state == PageState::File && !with_files {
            continue;
        }
        let mut at = run.start;
        while at < run.end {
            let length = usize::try_from(run.end - at).unwrap_or(PIECE).min(PIECE);
            match source.read(at, &mut piece[..length]) {
                Ok(()) => each(at, &piece[..length]),
                Err(_) => failed += length as u64,
            }
            at += length as u64;
        }
    }
    (swapped, failed)
}
