//! Pages of zeros inside huge pages.

use super::Source;
use pagewise_model::memory::{PageRun, PageState, Presence};

/// Most bytes that are read: half a second of copying.
const MOST: u64 = 1 << 30;
/// Bytes that are chosen together, a huge page or a part of one, and those that are read at once.
const PIECE: u64 = 2 << 20;
const READ: usize = 64 << 10;

/// What was found in the huge pages of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zeros {
    /// Pages of zeros, by address.
    pub runs: Vec<PageRun>,
    /// Bytes in huge pages that were not read.
    pub unsearched: u64,
}

/// Searches the huge pages for pages of zeros; if they are too many, evenly chosen ones.
#[must_use]
pub fn zeros(source: &dyn Source, presence: &Presence, page: u64) -> Zeros {
    let is_huge = |run: &&PageRun| run.state == PageState::HugeAnonymous;
    let runs = || presence.runs().iter().filter(is_huge);
    let all: u64 = runs().map(|run| run.end - run.start).sum();
    let every = all.div_ceil(MOST).max(1);
    let mut found = Zeros::default();
    let mut bytes = vec![0; READ];
    let nothing = vec![0; usize::try_from(page).unwrap_or_default()];
    let mut number = 0;
    for run in runs() {
        let mut at = run.start;
        while at < run.end {
            let end = run.end.min((at / PIECE + 1) * PIECE);
            number += 1;
            if number % every != 0 {
                found.unsearched += end - at;
                at = end;
            }
            while at < end {
                let length = usize::try_from(end - at).unwrap_or(READ).min(READ);
                match source.read(at, &mut bytes[..length]) {
                    Ok(()) => found.add(at, &bytes[..length], &nothing),
                    Err(_) => found.unsearched += length as u64,
                }
                at += length as u64;
            }
        }
    }
    found
}

impl Zeros {
    fn add(&mut self, start: u64, bytes: &[u8], nothing: &[u8]) {
        let page = nothing.len() as u64;
        for (at, _) in (start..)
            .step_by(nothing.len().max(1))
            .zip(bytes.chunks_exact(nothing.len().max(1)))
            .filter(|(_, one)| *one == nothing)
        {
            match self.runs.last_mut() {
                Some(last) if last.end == at => last.end += page,
                _ => self.runs.push(PageRun {
                    start: at,
                    end: at + page,
                    state: PageState::HugeZeros,
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Every other page is zeros.
    struct Striped;

    impl Source for Striped {
        fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
            for (page, number) in into.chunks_mut(4096).zip(address / 4096..) {
                page.fill(u8::from(number % 2 == 0));
            }
            Ok(())
        }
    }

    #[test]
    fn zeros_are_searched_in_huge_pages_alone() {
        let run = |start, end, state| PageRun { start, end, state };
        let presence = Presence::new(vec![
            run(0x20_0000, 0x40_0000, PageState::HugeAnonymous),
            run(0x40_0000, 0x40_4000, PageState::Anonymous),
        ]);
        let found = zeros(&Striped, &presence, 4096);
        assert_eq!((found.runs.len(), found.unsearched), (256, 0));
        let split = presence.with(&found.runs);
        let of = |at| split.at(at).map(|run| run.state);
        assert_eq!(of(0x20_0000), Some(PageState::HugeAnonymous));
        assert_eq!(of(0x20_1000), Some(PageState::HugeZeros));
        assert_eq!(split.bytes(0, u64::MAX), presence.bytes(0, u64::MAX));
    }

    #[test]
    fn more_huge_pages_than_may_be_read_are_sampled_evenly() {
        let presence = Presence::new(vec![PageRun {
            start: 0,
            end: 4 << 30,
            state: PageState::HugeAnonymous,
        }]);
        let found = zeros(&Striped, &presence, 4096);
        assert_eq!(found.unsearched, 3 << 30);
        let zeros: u64 = found.runs.iter().map(|run| run.end - run.start).sum();
        assert_eq!(zeros, 512 << 20);
    }
}
