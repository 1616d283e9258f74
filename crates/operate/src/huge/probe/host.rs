//! Whether the host of a virtual machine backs it with huge pages.

use super::{Bench, LINE, STEPS, spread_line};
use anyhow::Result;
use pagewise_linux::host::is_guest;
use pagewise_linux::hugepages::chase::Chase;
use pagewise_linux::sys::anonymous::Anonymous;
use pagewise_model::probe::{HostFinding, HostPages};
use pagewise_model::units::{Bytes, Estimate};
use pagewise_simulate::tlb::steps::{Reading, extra_share, steps};

/// Huge pages over which the chase is spread; fewer than the entries of any first-level TLB.
const SPREAD: u64 = 24;

impl Bench {
    /// Whether base-sized steps within huge pages miss the TLB like base pages.
    pub fn host(&mut self, base: &[Reading]) -> Result<HostFinding> {
        let is_guest = is_guest();
        let first = steps(base, &mut self.random).into_iter().next();
        let Some(first) = first else {
            return Ok(HostFinding {
                pages: HostPages::Unknown,
                is_guest,
                missed_share: None,
                sentence: "Base pages show no step, so there is nothing to compare with."
                    .to_owned(),
            });
        };
        // Well beyond the first level, well below the second.
        let most = SPREAD * self.sizes.huge.0 / self.sizes.base.0 / 2;
        let pages = as_count(first.entries.high * 3.0).min(most);
        let mut huge = self.memory(Bytes(self.sizes.huge.0 * SPREAD), self.sizes.huge)?;
        let mut small = self.memory(Bytes(self.sizes.base.0 * pages), self.sizes.base)?;
        let (within, among) = self.within_and_among(&mut huge, &mut small, pages);
        let share = extra_share(&within, &among, &mut self.random);
        Ok(judge(is_guest, share))
    }

    /// Cost of TLB misses of a chase over `pages` base-sized steps within huge pages, and over the
    /// same number of base pages.
    fn within_and_among(
        &mut self,
        huge: &mut Anonymous,
        small: &mut Anonymous,
        pages: u64,
    ) -> (Reading, Reading) {
        let base_words = self.sizes.base.0 / 8;
        let huge_words = self.sizes.huge.0 / 8;
        let lines = self.sizes.base.0 / LINE;
        let within: Vec<u64> = (0..pages)
            .map(|page| {
                let (slot, step) = (page % SPREAD, page / SPREAD);
                slot * huge_words + step * base_words + spread_line(page, lines)
            })
            .collect();
        let among: Vec<u64> = (0..pages)
            .map(|page| page * base_words + spread_line(page, lines))
            .collect();
        // The same number of lines in one page and its neighbours: the cost of the data itself.
        let together: Vec<u64> = (0..pages).map(|page| page * LINE / 8).collect();
        let empty = Reading {
            pages,
            samples: Vec::new(),
            data: Vec::new(),
        };
        let (mut first, mut second) = (empty.clone(), empty);
        for _ in 0..self.rounds * 2 {
            let random = &mut self.random;
            let mut draw = |bound: usize| random.below(bound);
            let chase = Chase::write(huge, &within, &mut draw);
            first.samples.push(chase.time(huge, STEPS));
            let chase = Chase::write(small, &among, &mut draw);
            second.samples.push(chase.time(small, STEPS));
            let chase = Chase::write(small, &together, &mut draw);
            first.data.push(chase.time(small, STEPS));
        }
        second.data.clone_from(&first.data);
        (first, second)
    }
}

fn judge(is_guest: bool, share: Option<Estimate>) -> HostFinding {
    let pages = match share {
        None => HostPages::Unknown,
        Some(share) if share.high < 0.2 => HostPages::Huge,
        Some(share) if share.low > 0.7 => HostPages::Small,
        Some(_) => HostPages::Mixed,
    };
    let sentence = match (is_guest, pages) {
        (false, HostPages::Huge) => {
            "This is not a virtual machine, and huge pages are huge in the TLB."
        }
        (false, _) => {
            "This does not look like a virtual machine, yet its huge pages miss the TLB like base pages: the CPU may use base-sized entries for them, or a hypervisor may be hidden."
        }
        (true, HostPages::Huge) => {
            "The host backs this guest with huge pages: huge pages here are huge in the TLB."
        }
        (true, HostPages::Small) => {
            "The host backs this guest with base pages: a huge page here takes as many TLB entries \
             as base pages do. Huge pages still shorten page walks. The host's administrator can \
             change that: huge pages for the monitor's memory, aligned alike at both levels."
        }
        (true, HostPages::Mixed) => {
            "The host backs some of this guest with huge pages and some with base pages, or the measurement is too noisy to tell: run it again, on a quiet machine or with more rounds."
        }
        (true, HostPages::Unknown) => "Whether the host uses huge pages could not be determined.",
    };
    HostFinding {
        pages,
        is_guest,
        missed_share: share,
        sentence: sentence.to_owned(),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few hundred pages"
)]
fn as_count(number: f64) -> u64 {
    number as u64
}
