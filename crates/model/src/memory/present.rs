//! The private pages of a process that were in memory at a moment, in a form that fits into a recording.

use super::pages::{PageState, Presence};
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Memory is kept or left out in stretches of this size.
const STRETCH: u64 = 1 << 20;
/// Most runs that are kept.
const MOST_RUNS: usize = 1 << 14;

/// Private pages of a process that were in memory at a moment; of very many scattered pages, those in
/// evenly chosen stretches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PresentPages {
    /// Process id.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Whether most was resident at that moment.
    pub is_peak: bool,
    /// The moment, on the clock of the events.
    pub clock: Nanos,
    /// All such pages, with those that are left out.
    pub resident: Bytes,
    /// Of stretches of 1 MiB, one in so many is kept.
    pub one_in: u64,
    /// Units of 4 KiB: from the end of the run before (or 0) to this one; then twice its length, plus one if
    /// it is a part of huge pages.
    pub runs: Vec<[u64; 2]>,
}

/// What runs are counted in.
const UNIT: u64 = 4096;

/// Pages next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresentRun {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Whether they are parts of huge pages.
    pub is_huge: bool,
}

impl PresentPages {
    /// The private pages in memory of these.
    #[must_use]
    pub fn new((pid, name): (i32, String), clock: Nanos, presence: &Presence) -> Self {
        let is_private = |state| {
            matches!(
                state,
                PageState::Anonymous | PageState::HugeAnonymous | PageState::HugeZeros
            )
        };
        let private = presence.runs().iter().filter(|run| is_private(run.state));
        let private: Vec<PresentRun> = private
            .map(|run| PresentRun {
                start: run.start,
                end: run.end,
                is_huge: run.state != PageState::Anonymous,
            })
            .collect();
        let resident = private.iter().map(|run| run.end - run.start).sum();
        let mut one_in = 1;
        let mut kept = private.clone();
        while kept.len() > MOST_RUNS {
            one_in *= 2;
            kept = private
                .iter()
                .flat_map(|run| chosen(*run, one_in))
                .collect();
        }
        Self {
            pid,
            name,
            is_peak: true,
            clock,
            resident: Bytes(resident),
            one_in,
            runs: packed(&kept),
        }
    }

    /// The pages that are kept, by address.
    pub fn kept(&self) -> impl Iterator<Item = PresentRun> + '_ {
        self.runs.iter().scan(0_u64, |end, [gap, length]| {
            let start = end.saturating_add(gap.saturating_mul(UNIT));
            *end = start.saturating_add((length / 2).saturating_mul(UNIT));
            Some(PresentRun {
                start,
                end: *end,
                is_huge: length % 2 == 1,
            })
        })
    }
}

fn packed(runs: &[PresentRun]) -> Vec<[u64; 2]> {
    let mut end = 0;
    let pack = |run: &PresentRun| {
        let gap = (run.start - end) / UNIT;
        end = run.end;
        [
            gap,
            (run.end - run.start) / UNIT * 2 + u64::from(run.is_huge),
        ]
    };
    runs.iter().map(pack).collect()
}

/// The parts of a run in the stretches that are kept.
fn chosen(run: PresentRun, one_in: u64) -> impl Iterator<Item = PresentRun> {
    let stretches = run.start / STRETCH..run.end.div_ceil(STRETCH);
    let kept = stretches.filter(move |stretch| is_chosen(*stretch, one_in));
    kept.map(move |stretch| PresentRun {
        start: run.start.max(stretch * STRETCH),
        end: run.end.min((stretch + 1) * STRETCH),
        is_huge: run.is_huge,
    })
}

/// Chosen by a multiplicative hash, so that no pattern of addresses keeps step with it.
fn is_chosen(stretch: u64, one_in: u64) -> bool {
    (stretch.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(one_in)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::PageRun;

    fn presence(runs: impl Iterator<Item = (u64, u64, PageState)>) -> Presence {
        let runs = runs.map(|(start, end, state)| PageRun { start, end, state });
        Presence::new(runs.collect())
    }

    #[test]
    fn private_pages_come_back_as_they_were() {
        let pages = presence(
            [
                (0x1000, 0x3000, PageState::Anonymous),
                (0x3000, 0x4000, PageState::File),
                (0x5000, 0x6000, PageState::Swapped),
                (0x20_0000, 0x60_0000, PageState::HugeAnonymous),
                (0x7fff_ffff_0000, 0x7fff_ffff_f000, PageState::Anonymous),
            ]
            .into_iter(),
        );
        let found = PresentPages::new((7, String::new()), Nanos(5), &pages);
        assert_eq!((found.one_in, found.resident), (1, Bytes(0x41_1000)));
        let kept: Vec<_> = found
            .kept()
            .map(|run| (run.start, run.end, run.is_huge))
            .collect();
        let expected = [
            (0x1000, 0x3000, false),
            (0x20_0000, 0x60_0000, true),
            (0x7fff_ffff_0000, 0x7fff_ffff_f000, false),
        ];
        assert_eq!(kept, expected);
    }

    #[test]
    fn of_very_many_pages_an_even_part_is_kept() {
        let scattered =
            (0..1_u64 << 18).map(|at| (at << 13, (at << 13) + 4096, PageState::Anonymous));
        let found = PresentPages::new((7, String::new()), Nanos(5), &presence(scattered));
        assert!(found.runs.len() <= MOST_RUNS && found.one_in >= 16);
        let kept: u64 = found.kept().map(|run| run.end - run.start).sum();
        let all = kept as f64 * found.one_in as f64;
        assert!((all / found.resident.0 as f64 - 1.0).abs() < 0.25, "{all}");
    }
}
