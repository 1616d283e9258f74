//! Which pages of a process are in memory, as runs of equal pages.

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// Anonymous and in memory.
    Anonymous,
    /// The same, as a part of a huge page.
    HugeAnonymous,
    /// The same, and nothing but zeros.
    HugeZeros,
    /// Of a file or of shared memory, in memory.
    File,
    /// Swapped out.
    Swapped,
}

impl PageState {
    /// Whether it is in memory.
    #[must_use]
    pub fn is_resident(self) -> bool {
        self != Self::Swapped
    }
}

/// Equal pages next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// What they are.
    pub state: PageState,
}

/// The pages of a process that are in memory or in swap. All others are absent, or the shared page
/// of zeros, which no resident set contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    runs: Vec<PageRun>,
}

impl Presence {
    /// Runs in any order; of runs that overlap, the first one counts.
    #[must_use]
    pub fn new(mut runs: Vec<PageRun>) -> Self {
        runs.sort_by_key(|run| run.start);
        let mut end = 0;
        runs.retain_mut(|run| {
            run.start = run.start.max(end);
            let is_kept = run.start < run.end;
            end = end.max(run.end);
            is_kept
        });
        Self { runs }
    }

    /// The same pages, where each of these runs takes the place of what they cover.
    #[must_use]
    pub fn with(&self, over: &[PageRun]) -> Self {
        let mut runs = Vec::with_capacity(self.runs.len() + 2 * over.len());
        for run in &self.runs {
            let mut at = run.start;
            let first = over.partition_point(|one| one.end <= run.start);
            let inside = over.get(first..).unwrap_or_default().iter();
            for one in inside.take_while(|one| one.start < run.end) {
                runs.push(PageRun {
                    start: at,
                    end: one.start.max(at),
                    state: run.state,
                });
                at = at.max(one.end);
            }
            runs.push(PageRun {
                start: at,
                end: run.end.max(at),
                state: run.state,
            });
        }
        runs.extend_from_slice(over);
        Self::new(runs)
    }

    /// All runs, by address.
    #[must_use]
    pub fn runs(&self) -> &[PageRun] {
        &self.runs
    }

    /// Index of the first run that ends after `address`.
    #[must_use]
    pub fn first_after(&self, address: u64) -> usize {
        self.runs.partition_point(|run| run.end <= address)
    }

    /// The run that contains `address`.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<PageRun> {
        let run = self.runs.get(self.first_after(address))?;
        (run.start <= address).then_some(*run)
    }

    /// The runs between two addresses, cut to them.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = PageRun> + '_ {
        let first = self.first_after(start);
        let runs = self.runs.get(first..).unwrap_or_default().iter();
        runs.take_while(move |run| run.start < end)
            .map(move |run| PageRun {
                start: run.start.max(start),
                end: run.end.min(end),
                state: run.state,
            })
    }

    /// Resident and swapped bytes between two addresses.
    #[must_use]
    pub fn bytes(&self, start: u64, end: u64) -> (u64, u64) {
        let mut sums = (0, 0);
        for run in self.within(start, end) {
            match run.state.is_resident() {
                true => sums.0 += run.end - run.start,
                false => sums.1 += run.end - run.start,
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u64, end: u64, state: PageState) -> PageRun {
        PageRun { start, end, state }
    }

    #[test]
    fn overlapping_runs_are_counted_once() {
        let all = vec![
            run(0x2000, 0x5000, PageState::Anonymous),
            run(0x3000, 0x4000, PageState::Swapped),
            run(0x4000, 0x7000, PageState::Swapped),
        ];
        let presence = Presence::new(all);
        assert_eq!(presence.bytes(0, u64::MAX), (0x3000, 0x2000));
        assert_eq!(presence.bytes(0x4000, 0x6000), (0x1000, 0x1000));
        assert_eq!(presence.at(0x1fff), None);
        assert_eq!(presence.at(0x7000), None);
        let swapped = presence.at(0x6fff).map(|run| run.start);
        assert_eq!(swapped, Some(0x5000));
    }
}
